// SPDX-License-Identifier: MIT

// 50 goroutines in blocking reads: how long until another one has run. The twin of bench/blocked_announced.c. The reads are
// system calls on a blocking fd, which the runtime is told of by package syscall.
package main

import (
	"runtime"
	"sort"
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
