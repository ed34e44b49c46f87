// SPDX-License-Identifier: MIT

// Two goroutines that do nothing but yield to each other; one operation is one yield. The twin of
// bench/yield2.c.
package main

import (
	"runtime"
	"sync"
)

func work(n int) float64 {
	var wg sync.WaitGroup
	yielder := func() {
		for i := 0; i < n/2; i++ {
			runtime.Gosched()
		}
		wg.Done()
	}
	wg.Add(2)
	go yielder()
	go yielder()
	wg.Wait()
	return 0
}

func main() {
	measure("yield2", 2, work)
}
