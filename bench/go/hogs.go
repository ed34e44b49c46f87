// SPDX-License-Identifier: MIT

// Four goroutines that compute without end, and one that sleeps for a millisecond again and again. The twin of bench/hogs.h.
package main

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

const hogs = 4

// sleepLate sleeps for a millisecond and returns how late it was.
func sleepLate() float64 {
	from := time.Now()
	time.Sleep(time.Millisecond)
	return float64(time.Since(from) - time.Millisecond)
}

// hogged sleeps n times and returns the lateness below which a share of the sleeps stays.
func hogged(n int, share float64) float64 {
	var wg sync.WaitGroup
	var stop int32
	late := make([]float64, n)
	wg.Add(hogs)
	for i := 0; i < hogs; i++ {
		go func() {
			for atomic.LoadInt32(&stop) == 0 {
			}
			wg.Done()
		}()
	}
	for i := range late {
		late[i] = sleepLate()
	}
	atomic.StoreInt32(&stop, 1)
	wg.Wait()
	sort.Float64s(late)
	return late[int(float64(n)*share)]
}
