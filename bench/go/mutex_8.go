// SPDX-License-Identifier: MIT

// Eight goroutines lock one mutex, count and unlock; one operation is one lock and unlock. The twin
// of bench/mutex_8.c.
package main

import "sync"

const goroutines = 8

var (
	mutex   sync.Mutex
	counter int
)

func work(n int) float64 {
	var wg sync.WaitGroup
	wg.Add(goroutines)
	counter = 0
	for g := 0; g < goroutines; g++ {
		go func() {
			for i := 0; i < n/goroutines; i++ {
				mutex.Lock()
				counter++
				mutex.Unlock()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	if counter != n {
		panic("counts lost")
	}
	return 0
}

func main() {
	measure("mutex_8", goroutines*100, work)
}
