// SPDX-License-Identifier: MIT

// The CPU time of one of 100,000 goroutines that sleep once. The twin of bench/sleepers_cpu.c.
package main

func main() {
	measure("sleepers_cpu", count, func(n int) float64 {
		return sleepers()
	})
}
