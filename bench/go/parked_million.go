// SPDX-License-Identifier: MIT

// The first million goroutines of a process: start, run, park; one operation is one goroutine. The twin of
// bench/parked_million.c.
package main

import (
	"sync"
	"time"
)

const million = 1000000

var first float64

func work(n int) float64 {
	if first > 0 {
		return first
	}
	var arrived, gate, left sync.WaitGroup
	gate.Add(1)
	arrived.Add(million)
	left.Add(million)
	child := func() {
		arrived.Done()
		gate.Wait()
		left.Done()
	}
	start := time.Now()
	for i := 0; i < million; i++ {
		go child()
	}
	arrived.Wait()
	first = float64(time.Since(start)) / million
	gate.Done()
	left.Wait()
	return first
}

func main() {
	measure("parked_million", million, work)
}
