// SPDX-License-Identifier: MIT

// A timer is started and stopped before its time: what nearly all timers do. The twin of bench/timer_startstop.c.
package main

import "time"

func never() {
	panic("a stopped timer was called")
}

func work(n int) float64 {
	for i := 0; i < n; i++ {
		time.AfterFunc(time.Hour, never).Stop()
	}
	return 0
}

func main() {
	measure("timer_startstop", 100, work)
}
