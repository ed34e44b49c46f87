// SPDX-License-Identifier: MIT

// Eight producers and eight consumers on one channel with room for 128; one operation is one item.
// The twin of bench/chan_8x8.c.
package main

import "sync"

const sides = 8

func work(n int) float64 {
	ch := make(chan int64, 128)
	share := n / sides
	var wg sync.WaitGroup
	wg.Add(2 * sides)
	for s := 0; s < sides; s++ {
		go func() {
			for i := 0; i < share; i++ {
				ch <- int64(i)
			}
			wg.Done()
		}()
		go func() {
			for i := 0; i < share; i++ {
				<-ch
			}
			wg.Done()
		}()
	}
	wg.Wait()
	return 0
}

func main() {
	measure("chan_8x8", sides, work)
}
