// SPDX-License-Identifier: MIT

// Memory of a goroutine that was started and has not run, of a million: resident pages and the kernel's page tables. Its
// figure is bytes, not nanoseconds. The twin of bench/spawned_bytes.c.
package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

const million = 1000000

var first float64

func work(n int) float64 {
	if first > 0 {
		return first
	}
	var wg sync.WaitGroup
	wg.Add(million)
	child := func() { wg.Done() }
	before := memory()
	for i := 0; i < million; i++ {
		go child()
	}
	first = (memory() - before) / million
	wg.Wait()
	return first
}

// memory is what the process costs now: resident memory and page tables, in bytes.
func memory() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	kb := 0.0
	for _, line := range strings.Split(string(text), "\n") {
		var one float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &one); n == 1 {
			kb += one
		}
		if n, _ := fmt.Sscanf(line, "VmPTE: %f kB", &one); n == 1 {
			kb += one
		}
	}
	return kb * 1024
}

func main() {
	measure("spawned_bytes", million, work)
}
