// SPDX-License-Identifier: MIT

// Start goroutines that end at once, 1000 at a time, and wait for each batch; one operation is one
// goroutine. The twin of bench/spawn_batch.c. The function value is made once, so that a go
// statement allocates nothing.
package main

import "sync"

const batch = 1000

func work(n int) float64 {
	var wg sync.WaitGroup
	child := func() { wg.Done() }
	for done := 0; done < n; done += batch {
		wg.Add(batch)
		for i := 0; i < batch; i++ {
			go child()
		}
		wg.Wait()
	}
	return 0
}

func main() {
	measure("spawn_batch", batch, work)
}
