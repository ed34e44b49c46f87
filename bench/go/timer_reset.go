// SPDX-License-Identifier: MIT

// A timer is pushed into the future again and again, as an idle connection's. The twin of bench/timer_reset.c.
package main

import "time"

func never() {
	panic("a timer that was reset was called")
}

func work(n int) float64 {
	t := time.AfterFunc(time.Hour, never)
	for i := 0; i < n; i++ {
		t.Reset(time.Hour)
	}
	t.Stop()
	return 0
}

func main() {
	measure("timer_reset", 100, work)
}
