// SPDX-License-Identifier: MIT

// The prime sieve: a chain of filters, one goroutine a prime, joined by unbuffered channels; one
// operation is one of the first 1500 primes. The twin of bench/sieve.c. The numbers end at the last
// prime, so that the chain closes down.
package main

const (
	primes = 1500
	last   = 12553
)

func generate(out chan<- int64) {
	for v := int64(2); v <= last; v++ {
		out <- v
	}
	close(out)
}

func filter(in <-chan int64, out chan<- int64, prime int64) {
	for v := range in {
		if v%prime != 0 {
			out <- v
		}
	}
	close(out)
}

func sieve() (found int) {
	in := make(chan int64)
	go generate(in)
	for {
		prime, ok := <-in
		if !ok {
			return
		}
		found++
		out := make(chan int64)
		go filter(in, out, prime)
		in = out
	}
}

func work(n int) float64 {
	for done := 0; done < n; done += primes {
		if sieve() != primes {
			panic("wrong number of primes")
		}
	}
	return 0
}

func main() {
	measure("sieve", primes, work)
}
