// SPDX-License-Identifier: MIT

// How late half of 100,000 sleeping goroutines wake at most. The twin of bench/sleepers_p50.c.
package main

func main() {
	measure("sleepers_p50", count, func(n int) float64 {
		sleepers()
		return lateness[count/2]
	})
}
