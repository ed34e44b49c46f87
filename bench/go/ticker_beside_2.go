// SPDX-License-Identifier: MIT

// Two goroutines that compute a fixed amount beside one that sleeps for 5 ms in a loop: how long that takes,
// and the CPU time. The twin of bench/ticker_beside_2.c.
package main

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	hogs   = 2
	eachMs = 1500
	tick   = 5 * time.Millisecond
)

func main() {
	measureAll(func() {
		var hogsDone, others sync.WaitGroup
		var stop int32
		time.Sleep(20 * time.Millisecond)
		hogsDone.Add(hogs)
		others.Add(1)
		go func() {
			for atomic.LoadInt32(&stop) == 0 {
				time.Sleep(tick)
			}
			others.Done()
		}()
		from, cpu := time.Now(), cpuNs()
		for i := 0; i < hogs; i++ {
			go func() {
				compute(1000 * stepsUs * eachMs)
				hogsDone.Done()
			}()
		}
		hogsDone.Wait()
		wall := float64(time.Since(from))
		figure("ticker_beside_2", wall)
		figure("ticker_beside_2_cpu", cpuNs()-cpu)
		atomic.StoreInt32(&stop, 1)
		others.Wait()
	})
}
