// SPDX-License-Identifier: MIT

// Lock and unlock a mutex that nobody else wants; one operation is one pair. The twin of
// bench/mutex_uncontended.c.
package main

import "sync"

var (
	mutex   sync.Mutex
	counter int64
)

func work(n int) float64 {
	for i := 0; i < n; i++ {
		mutex.Lock()
		counter++
		mutex.Unlock()
	}
	return 0
}

func main() {
	measure("mutex_uncontended", 1000, work)
}
