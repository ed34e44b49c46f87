// SPDX-License-Identifier: MIT

// Short system calls: 16 bytes of /dev/zero. For zero_read_1.go and zero_read_8.go.
package main

import (
	"sync"
	"syscall"
)

var zero = -1

// zeroRead makes n calls from so many goroutines.
func zeroRead(n, readers int) float64 {
	var wg sync.WaitGroup
	if zero < 0 {
		fd, err := syscall.Open("/dev/zero", syscall.O_RDONLY, 0)
		if err != nil {
			panic(err)
		}
		zero = fd
	}
	wg.Add(readers)
	for i := 0; i < readers; i++ {
		go func() {
			var buf [16]byte
			for i := 0; i < n/readers; i++ {
				if got, err := syscall.Read(zero, buf[:]); got != len(buf) {
					panic(err)
				}
			}
			wg.Done()
		}()
	}
	wg.Wait()
	return 0
}
