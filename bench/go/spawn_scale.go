// SPDX-License-Identifier: MIT

// As many spawners as procs, each starting batches of 1000 and waiting for them; one operation is
// one goroutine, and the total is the same however many spawners share it. The twin of
// bench/spawn_scale.c.
package main

import (
	"runtime"
	"sync"
)

const batch = 1000

func spawner(n int) {
	var wg sync.WaitGroup
	child := func() { wg.Done() }
	for done := 0; done < n; done += batch {
		wg.Add(batch)
		for i := 0; i < batch; i++ {
			go child()
		}
		wg.Wait()
	}
}

func work(n int) float64 {
	var wg sync.WaitGroup
	spawners := runtime.GOMAXPROCS(0)
	wg.Add(spawners)
	for i := 0; i < spawners; i++ {
		go func() {
			spawner(n / spawners)
			wg.Done()
		}()
	}
	wg.Wait()
	return 0
}

func main() {
	measure("spawn_scale", batch*64, work)
}
