// SPDX-License-Identifier: MIT

// 5,000 pairs of goroutines, all of them busy: each pair sends a value to and fro; one operation is one round trip of one
// pair. The twin of bench/pingpong_10k.c.
package main

import (
	"runtime"
	"sync"
)

const pairs = 5000

func work(n int) float64 {
	var wg sync.WaitGroup
	wg.Add(2 * pairs)
	for i := 0; i < pairs; i++ {
		to, fro := make(chan int), make(chan int)
		go func() {
			for v := range to {
				fro <- v
			}
			wg.Done()
		}()
		go func() {
			for i := 0; i < n/pairs; i++ {
				to <- i
				<-fro
				runtime.Gosched()
			}
			close(to)
			wg.Done()
		}()
	}
	wg.Wait()
	return 0
}

func main() {
	measure("pingpong_10k", pairs*100, work)
}
