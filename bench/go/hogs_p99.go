// SPDX-License-Identifier: MIT

// Beside four hogs at one P, how late 99 of 100 sleeps of a millisecond end at most. The twin of bench/hogs_p99.c.
package main

func main() {
	measure("hogs_p99", 100, func(n int) float64 { return hogged(n, 0.99) })
}
