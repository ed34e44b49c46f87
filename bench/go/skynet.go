// SPDX-License-Identifier: MIT

// Skynet: a tree in which every goroutine starts ten, down to a million leaves, and sums over an
// unbuffered channel what they send; one operation is one leaf. The twin of bench/skynet.c.
package main

const (
	leaves = 1000000
	fan    = 10
)

func node(out chan<- int64, first, size int64) {
	if size == 1 {
		out <- first
		return
	}
	in := make(chan int64)
	for i := int64(0); i < fan; i++ {
		go node(in, first+i*(size/fan), size/fan)
	}
	var sum int64
	for i := 0; i < fan; i++ {
		sum += <-in
	}
	out <- sum
}

func work(n int) float64 {
	for done := 0; done < n; done += leaves {
		out := make(chan int64)
		go node(out, 0, leaves)
		if <-out != int64(leaves)*(leaves-1)/2 {
			panic("wrong sum")
		}
	}
	return 0
}

func main() {
	measure("skynet", leaves, work)
}
