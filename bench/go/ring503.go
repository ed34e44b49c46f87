// SPDX-License-Identifier: MIT

// The thread ring: 503 goroutines in a circle of unbuffered channels pass one token; one operation
// is one pass. The twin of bench/ring503.c. Whoever gets the token of 0 closes the link to its
// neighbour, and so does everyone after.
package main

import "sync"

const size = 503

func work(n int) float64 {
	var links [size]chan int64
	for i := range links {
		links[i] = make(chan int64)
	}
	var wg sync.WaitGroup
	wg.Add(size)
	for i := range links {
		go func(in <-chan int64, out chan<- int64) {
			for token := range in {
				if token == 0 {
					break
				}
				out <- token - 1
			}
			close(out)
			wg.Done()
		}(links[i], links[(i+1)%size])
	}
	links[0] <- int64(n)
	wg.Wait()
	return 0
}

func main() {
	measure("ring503", size*100, work)
}
