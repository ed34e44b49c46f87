// SPDX-License-Identifier: MIT

// 100,000 goroutines that each sleep once, for half a second to one and a half. The twin of bench/sleepers.h.
package main

import (
	"sort"
	"sync"
	"syscall"
	"time"
)

const count = 100000

var lateness = make([]float64, count)

func cpu() float64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Nano() + r.Stime.Nano())
}

func sleepOf(i uint64) time.Duration {
	return time.Duration(500000000 + (i*2654435761)%1000000000)
}

// sleepers runs one batch and returns the CPU time of one sleeper; lateness is sorted.
func sleepers() float64 {
	before := cpu()
	var wg sync.WaitGroup
	wg.Add(count)
	for i := 0; i < count; i++ {
		go func(i int) {
			length, from := sleepOf(uint64(i)), time.Now()
			time.Sleep(length)
			lateness[i] = float64(time.Since(from) - length)
			wg.Done()
		}(i)
	}
	wg.Wait()
	used := cpu() - before
	sort.Float64s(lateness)
	return used / count
}
