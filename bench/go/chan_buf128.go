// SPDX-License-Identifier: MIT

// One producer, one consumer, a channel with room for 128; one operation is one item. The twin of
// bench/chan_buf128.c.
package main

func work(n int) float64 {
	ch := make(chan int64, 128)
	go func() {
		for i := 0; i < n; i++ {
			ch <- int64(i)
		}
	}()
	var sum int64
	for i := 0; i < n; i++ {
		sum += <-ch
	}
	if sum != int64(n)*int64(n-1)/2 {
		panic("items lost")
	}
	return 0
}

func main() {
	measure("chan_buf128", 1, work)
}
