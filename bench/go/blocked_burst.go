// SPDX-License-Identifier: MIT

// Many goroutines enter a blocking read at once: how late the sleeps of a millisecond of another one end,
// p99. The twin of bench/blocked_burst.c, but the reads are known to the runtime: a call that is not would
// stop a Go program at one P.
package main

import (
	"sort"
	"sync"
	"syscall"
	"time"
)

const (
	bursts = 7
	window = 50 * time.Millisecond
)

var fds [2]int

func sleepLate() float64 {
	from := time.Now()
	time.Sleep(time.Millisecond)
	return float64(time.Since(from) - time.Millisecond)
}

// burst adds the lateness of the sleeps during one burst.
func burst(goroutines int, late []float64) []float64 {
	var wg sync.WaitGroup
	wg.Add(goroutines)
	end := time.Now().Add(window)
	for i := 0; i < goroutines; i++ {
		go func() {
			var buf [1]byte
			if got, err := syscall.Read(fds[0], buf[:]); got != 1 {
				panic(err)
			}
			wg.Done()
		}()
	}
	for time.Now().Before(end) {
		late = append(late, sleepLate())
	}
	if _, err := syscall.Write(fds[1], make([]byte, goroutines)); err != nil {
		panic(err)
	}
	wg.Wait()
	time.Sleep(20 * time.Millisecond)
	return late
}

func p99(goroutines int) float64 {
	var late []float64
	for i := 0; i < bursts; i++ {
		late = burst(goroutines, late)
	}
	sort.Float64s(late)
	return late[len(late)*99/100]
}

func main() {
	measureAll(func() {
		if err := syscall.Pipe(fds[:]); err != nil {
			panic(err)
		}
		figure("blocked_burst_50", p99(50))
		figure("blocked_burst_400", p99(400))
	})
}
