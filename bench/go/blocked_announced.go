// SPDX-License-Identifier: MIT

// 50 goroutines in blocking reads: how long until another one has run. The twin of bench/blocked_announced.c. The reads are
// system calls on a blocking fd, which the runtime is told of by package syscall.
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

const blocked = 50

var fds [2]int

func work(n int) float64 {
	took := make([]float64, n)
	if fds[1] == 0 {
		if err := syscall.Pipe(fds[:]); err != nil {
			panic(err)
		}
	}
	for i := range took {
		var readers, other sync.WaitGroup
		readers.Add(blocked)
		other.Add(1)
		from := time.Now()
		for k := 0; k < blocked; k++ {
			go func() {
				var buf [1]byte
				if got, err := syscall.Read(fds[0], buf[:]); got != 1 {
					panic(err)
				}
				readers.Done()
			}()
		}
		runtime.Gosched() // they go first
		go func() {
			took[i] = float64(time.Since(from))
			other.Done()
		}()
		other.Wait()
		if _, err := syscall.Write(fds[1], make([]byte, blocked)); err != nil {
			panic(err)
		}
		readers.Wait()
	}
	sort.Float64s(took)
	return took[n/2]
}

func main() {
	measure("blocked_announced", 1, work)
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
