// SPDX-License-Identifier: MIT

// How long a goroutine that sleeps in a receive takes to run again when another P is idle and its
// thread asleep; the figure is the median (p50) over all wake-ups. The twin of bench/wakeup.c.
//
// The waker computes before each send for long enough that the other thread has given up looking
// for work, and keeps computing after it, so that the woken goroutine can only run on the other P.
package main

import (
	"runtime"
	"sort"
	"sync/atomic"
	"time"
)

const (
	pause  = 300 * time.Microsecond
	giveUp = 100 * time.Millisecond // never seen where two CPUs are free; then the waker lets go of its P
)

var (
	epoch   = time.Now()
	latency int64
)

func sleeper(in <-chan int64) {
	for stamp := range in {
		atomic.StoreInt64(&latency, int64(time.Since(epoch))-stamp)
	}
}

func work(n int) float64 {
	ch := make(chan int64)
	seen := make([]float64, n)
	go sleeper(ch)
	for i := range seen {
		for start := time.Now(); time.Since(start) < pause; {
		}
		atomic.StoreInt64(&latency, 0)
		sent := time.Now()
		ch <- int64(time.Since(epoch))
		for atomic.LoadInt64(&latency) == 0 {
			if time.Since(sent) > giveUp {
				runtime.Gosched()
			}
		}
		seen[i] = float64(atomic.LoadInt64(&latency))
	}
	close(ch)
	sort.Float64s(seen)
	return seen[n/2]
}

func main() {
	measure("wakeup", 100, work)
}
