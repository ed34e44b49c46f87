// SPDX-License-Identifier: MIT

// Start a million goroutines, then wait for all; one operation is one goroutine. The twin of
// bench/spawn_million.c. The function value is made once, so that a go statement allocates nothing.
package main

import "sync"

const million = 1000000

func work(n int) float64 {
	var wg sync.WaitGroup
	child := func() { wg.Done() }
	for done := 0; done < n; done += million {
		wg.Add(million)
		for i := 0; i < million; i++ {
			go child()
		}
		wg.Wait()
	}
	return 0
}

func main() {
	measure("spawn_million", million, work)
}
