// SPDX-License-Identifier: MIT

// Short system calls, one goroutine; one operation is one call. The twin of bench/zero_read_1.c.
package main

func main() {
	measure("zero_read_1", 1, func(n int) float64 { return zeroRead(n, 1) })
}
