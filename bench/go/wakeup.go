// SPDX-License-Identifier: MIT

// How long a goroutine that sleeps in a receive takes to run again when another P is idle and its
// thread asleep; the figure is the median (p50) over all wake-ups. The twin of bench/wakeup.c.
//
// The waker computes before each send for long enough that the other thread has given up looking
// for work, and keeps computing after it, so that the woken goroutine can only run on the other P.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
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

// ---- measuring: the same lines end every file here; bench/run checks that ----

// measure runs work(n) for about -ms at a time, -k times, and prints the row; n is a multiple of unit.
// work returns the nanoseconds of one operation if it measured them itself, else 0.
func measure(name string, unit int, work func(n int) float64) {
	defaultMs, err := strconv.Atoi(os.Getenv("BENCH_MS"))
	if err != nil {
		defaultMs = 300
	}
	ms := flag.Int("ms", defaultMs, "milliseconds of a sample")
	k := flag.Int("k", 5, "samples")
	procs := flag.Int("procs", 1, "GOMAXPROCS")
	flag.Parse()
	runtime.GOMAXPROCS(*procs)
	goal := float64(*ms) * 1e6
	const maxRounds = 1000000000 // a row that measures once and repeats its figure takes no time after that
	once := func(n int) (wall, perOp float64) {
		start := time.Now()
		perOp = work(n)
		wall = float64(time.Since(start))
		if perOp == 0 {
			perOp = wall / float64(n)
		}
		return
	}
	rounds := 1 // the search for the right n is the warm-up
	wall, _ := once(unit)
	for wall < goal/2 && rounds < maxRounds {
		rounds = int(float64(rounds)*min(max(goal*0.75/max(wall, 1), 2), 100)) + 1
		wall, _ = once(rounds * unit)
	}
	n := int(min(max(float64(rounds)*goal/wall, 1), maxRounds)) * unit
	perOp := make([]float64, *k)
	for i := range perOp {
		_, perOp[i] = once(n)
	}
	sort.Float64s(perOp)
	fmt.Printf("row %s procs=%d ns_per_op=%.3f ops=%d median=%.3f\n", name, *procs, perOp[0], n, perOp[*k/2])
}

func min(a, b float64) float64 {
	if a < b {
		return a
	}
	return b
}

func max(a, b float64) float64 {
	if a > b {
		return a
	}
	return b
}
