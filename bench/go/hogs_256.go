// SPDX-License-Identifier: MIT

// 256 goroutines that compute for about 20 ms each, and one that sleeps for a millisecond again and again
// until all have computed: how late it wakes. The twin of bench/hogs_256.c.
package main

import (
	"sort"
	"sync/atomic"
)

const (
	goroutines = 256
	eachMs     = 20
)

func main() {
	measureAll(func() {
		var left int32 = goroutines
		for i := 0; i < goroutines; i++ {
			go func() {
				compute(1000 * stepsUs * eachMs)
				atomic.AddInt32(&left, -1)
			}()
		}
		var late []float64
		for atomic.LoadInt32(&left) > 0 || len(late) == 0 {
			late = append(late, sleepLate())
		}
		sort.Float64s(late)
		n := len(late)
		figure("hogs_256_p50", late[n/2])
		figure("hogs_256_p99", late[n*99/100])
		figure("hogs_256_worst", late[n-1])
	})
}
