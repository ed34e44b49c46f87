// SPDX-License-Identifier: MIT

// A pair of goroutines with 1 us of work a message beside a pair with 1 ms: 1000 times the larger share of
// work done divided by the smaller one. The twin of bench/shares_1us_1ms.c.
package main

import (
	"sync"
	"sync/atomic"
	"time"
)

func work(n int) float64 {
	var pairs sync.WaitGroup
	var stop int32
	start := func(us int, rounds *int) {
		there, back := make(chan int64), make(chan int64)
		go func() {
			for v := range there {
				compute(us * stepsUs)
				back <- v
			}
			pairs.Done()
		}()
		go func() {
			for v := int64(0); atomic.LoadInt32(&stop) == 0; *rounds++ {
				compute(us * stepsUs)
				there <- v
				v = <-back
			}
			close(there)
			pairs.Done()
		}()
	}
	var brief, lengthy int
	pairs.Add(4)
	start(1, &brief)
	start(1000, &lengthy)
	time.Sleep(500 * time.Millisecond)
	atomic.StoreInt32(&stop, 1)
	pairs.Wait()
	a, b := float64(brief)+1, float64(lengthy)*1000+1
	return 1000 * max(a/b, b/a)
}

func main() {
	measure("shares_1us_1ms", 1, work)
}
