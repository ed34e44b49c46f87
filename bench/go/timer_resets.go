// SPDX-License-Identifier: MIT

// A million timers are pending, and 100,000 of them a second are reset: CPU time a reset. The twin of bench/timer_resets.c.
package main

import (
	"syscall"
	"time"
)

const (
	count = 1000000
	burst = 10000
	pause = 100 * time.Millisecond
)

var (
	timers []*time.Timer
	at     uint32
)

func never() {
	panic("a timer that was reset was called")
}

func cpu() float64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Nano() + r.Stime.Nano())
}

func work(n int) float64 {
	for i := len(timers); i < count; i++ {
		timers = append(timers, time.AfterFunc(600*time.Second, never))
	}
	before := cpu()
	for i := 0; i < n; i += burst {
		for k := 0; k < burst; k++ {
			at = at*1664525 + 1013904223
			timers[(at>>8)%count].Reset(600 * time.Second)
		}
		time.Sleep(pause)
	}
	return (cpu() - before) / float64(n)
}

func main() {
	measure("timer_resets", 10000, work)
}
