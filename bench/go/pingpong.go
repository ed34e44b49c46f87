// SPDX-License-Identifier: MIT

// Two goroutines throw a value to and fro over two unbuffered channels; one operation is one round
// trip. The twin of bench/pingpong.c.
package main

func work(n int) float64 {
	ping, pong := make(chan int64), make(chan int64)
	go func() {
		for v := range ping {
			pong <- v + 1
		}
		close(pong)
	}()
	var v int64
	for i := 0; i < n; i++ {
		ping <- v
		v = <-pong
	}
	close(ping)
	<-pong
	return 0
}

func main() {
	measure("pingpong", 1, work)
}
