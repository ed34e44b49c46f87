// SPDX-License-Identifier: MIT

// fib(24) the silly way: every call starts two goroutines and waits for both; one operation is one
// goroutine (there are 150049). The twin of bench/fib24.c. What the two share with their parent is
// one allocation.
package main

import "sync"

const (
	arg    = 24
	answer = 46368
	calls  = 150049
)

type call struct {
	parent   *sync.WaitGroup
	n, value int
}

func fib(c *call) {
	if c.n < 2 {
		c.value = c.n
	} else {
		var below struct {
			wg   sync.WaitGroup
			a, b call
		}
		below.a = call{&below.wg, c.n - 1, 0}
		below.b = call{&below.wg, c.n - 2, 0}
		below.wg.Add(2)
		go fib(&below.a)
		go fib(&below.b)
		below.wg.Wait()
		c.value = below.a.value + below.b.value
	}
	c.parent.Done()
}

func work(n int) float64 {
	for done := 0; done < n; done += calls {
		var wg sync.WaitGroup
		top := call{&wg, arg, 0}
		wg.Add(1)
		go fib(&top)
		wg.Wait()
		if top.value != answer {
			panic("wrong sum")
		}
	}
	return 0
}

func main() {
	measure("fib24", calls, work)
}
