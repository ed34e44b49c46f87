// SPDX-License-Identifier: MIT

// How late 99 of 100 among 100,000 sleeping goroutines wake at most. The twin of bench/sleepers_p99.c;
// the same program as the other sleepers here but for the figure that it returns.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const count = 100000

var lateness = make([]float64, count)

func cpu() float64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Nano() + r.Stime.Nano())
}

func sleepOf(i uint64) time.Duration {
	return time.Duration(500000000 + (i*2654435761)%1000000000)
}

// sleepers runs one batch and returns the CPU time of one sleeper; lateness is sorted.
func sleepers() float64 {
	before := cpu()
	var wg sync.WaitGroup
	wg.Add(count)
	for i := 0; i < count; i++ {
		go func(i int) {
			length, from := sleepOf(uint64(i)), time.Now()
			time.Sleep(length)
			lateness[i] = float64(time.Since(from) - length)
			wg.Done()
		}(i)
	}
	wg.Wait()
	used := cpu() - before
	sort.Float64s(lateness)
	return used / count
}

func work(n int) float64 {
	sleepers()
	return lateness[count/100*99]
}

func main() {
	measure("sleepers_p99", count, work)
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
