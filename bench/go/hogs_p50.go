// SPDX-License-Identifier: MIT

// Beside four hogs at one P, how late 50 of 100 sleeps of a millisecond end at most. The twin of bench/hogs_p50.c.
package main

func main() {
	measure("hogs_p50", 100, func(n int) float64 { return hogged(n, 0.50) })
}
