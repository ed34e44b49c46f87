// SPDX-License-Identifier: MIT

// A select that receives from three unbuffered channels, one producer on each; one operation is one
// item. The twin of bench/select3.c.
package main

import "sync"

func work(n int) float64 {
	a, b, c := make(chan int64), make(chan int64), make(chan int64)
	var wg sync.WaitGroup
	produce := func(ch chan int64) {
		for i := 0; i < n/3; i++ {
			ch <- int64(i)
		}
		wg.Done()
	}
	wg.Add(3)
	go produce(a)
	go produce(b)
	go produce(c)
	var sum int64
	for i := 0; i < n; i++ {
		select {
		case v := <-a:
			sum += v
		case v := <-b:
			sum += v
		case v := <-c:
			sum += v
		}
	}
	wg.Wait()
	if m := int64(n / 3); sum != 3*(m*(m-1)/2) {
		panic("items lost")
	}
	return 0
}

func main() {
	measure("select3", 3, work)
}
