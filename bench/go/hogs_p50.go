// SPDX-License-Identifier: MIT

// Beside four hogs at one P, how late 50 of 100 sleeps of a millisecond end at most. The twin of bench/hogs_p50.c.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const hogs = 4

func work(n int) float64 {
	var wg sync.WaitGroup
	var stop int32
	late := make([]float64, n)
	wg.Add(hogs)
	for i := 0; i < hogs; i++ {
		go func() {
			for atomic.LoadInt32(&stop) == 0 {
			}
			wg.Done()
		}()
	}
	for i := range late {
		from := time.Now()
		time.Sleep(time.Millisecond)
		late[i] = float64(time.Since(from) - time.Millisecond)
	}
	atomic.StoreInt32(&stop, 1)
	wg.Wait()
	sort.Float64s(late)
	return late[int(float64(n)*0.50)]
}

func main() {
	measure("hogs_p50", 100, work)
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
