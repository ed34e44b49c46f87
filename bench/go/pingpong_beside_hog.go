// SPDX-License-Identifier: MIT

// Two goroutines throw a value to and fro at one P, beside one that only computes; one operation is one round
// trip. The twin of bench/pingpong_beside_hog.c.
package main

import (
	"sync"
	"sync/atomic"
	"time"
)

func work(n int) float64 {
	var hog sync.WaitGroup
	var stop int32
	hog.Add(1)
	go func() {
		for atomic.LoadInt32(&stop) == 0 {
		}
		hog.Done()
	}()
	there, back, done := make(chan int64), make(chan int64), make(chan bool)
	go func() {
		for v := range there {
			back <- v
		}
	}()
	var took time.Duration
	go func() {
		var v int64
		from := time.Now()
		for i := 0; i < n; i++ {
			there <- v
			v = <-back
		}
		took = time.Since(from)
		close(there)
		done <- true
	}()
	<-done
	atomic.StoreInt32(&stop, 1)
	hog.Wait()
	return float64(took) / float64(n)
}

func main() {
	measure("pingpong_beside_hog", 1000, work)
}
