// SPDX-License-Identifier: MIT

// Short system calls, eight goroutines; one operation is one call. The twin of bench/zero_read_8.c.
package main

func main() {
	measure("zero_read_8", 8, func(n int) float64 { return zeroRead(n, 8) })
}
