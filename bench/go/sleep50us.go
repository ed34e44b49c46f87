// SPDX-License-Identifier: MIT

// How long a sleep of 50 us takes when nothing else goes on; the median (p50). The twin of bench/sleep50us.c.
package main

import (
	"sort"
	"time"
)

func work(n int) float64 {
	took := make([]float64, n)
	for i := range took {
		from := time.Now()
		time.Sleep(50 * time.Microsecond)
		took[i] = float64(time.Since(from))
	}
	sort.Float64s(took)
	return took[n/2]
}

func main() {
	measure("sleep50us", 10, work)
}
