// SPDX-License-Identifier: MIT

// What all programs here share: how they measure. The twin of bench/bench.h.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"syscall"
	"time"
)

// measure runs work(n) for about -ms at a time, -k times, and prints the row; n is a multiple of unit.
// work returns the nanoseconds of one operation if it measured them itself, else 0.
func measure(name string, unit int, work func(n int) float64) {
	ms, k, procs := options()
	goal := float64(ms) * 1e6
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
	if wall >= goal/2 { // perhaps a set-up, which only the first one has: samples would be too short
		wall, _ = once(unit)
	}
	for wall < goal/2 && rounds < maxRounds {
		rounds = int(float64(rounds)*min(max(goal*0.75/max(wall, 1), 2), 100)) + 1
		wall, _ = once(rounds * unit)
	}
	n := int(min(max(float64(rounds)*goal/wall, 1), maxRounds)) * unit
	perOp := make([]float64, k)
	for i := range perOp {
		_, perOp[i] = once(n)
	}
	sort.Float64s(perOp)
	fmt.Printf("row %s procs=%d ns_per_op=%.3f ops=%d median=%.3f\n", name, procs, perOp[0], n, perOp[k/2])
}

// measureAll is for programs that measure several rows at once, and print each by figure.
func measureAll(all func()) {
	options()
	all()
}

// figure prints a row that is measured once.
func figure(name string, ns float64) {
	ns = max(ns, 1)
	fmt.Printf("row %s procs=%d ns_per_op=%.3f ops=1 median=%.3f\n", name, runtime.GOMAXPROCS(0), ns, ns)
}

func options() (int, int, int) {
	defaultMs, err := strconv.Atoi(os.Getenv("BENCH_MS"))
	if err != nil {
		defaultMs = 300
	}
	ms := flag.Int("ms", defaultMs, "milliseconds of a sample")
	k := flag.Int("k", 5, "samples")
	procs := flag.Int("procs", 1, "GOMAXPROCS")
	flag.Parse()
	runtime.GOMAXPROCS(*procs)
	return *ms, *k, *procs
}

// compute does what bench_compute of bench/measure.h does.
//
//go:noinline
func compute(steps int) uint64 {
	x := uint64(1)
	for i := 0; i < steps; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

const stepsUs = 1000 // about a microsecond at 4 GHz

// cpuNs is the CPU time of the process.
func cpuNs() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return float64(r.Utime.Nano() + r.Stime.Nano())
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
