// SPDX-License-Identifier: MIT

// How late 99 of 100 among 100,000 sleeping goroutines wake at most. The twin of bench/sleepers_p99.c.
package main

func main() {
	measure("sleepers_p99", count, func(n int) float64 {
		sleepers()
		return lateness[count/100*99]
	})
}
