// SPDX-License-Identifier: MIT

// Several kinds of goroutines at once, and what each of them gets: the twin of bench/mix.c, which explains the options
// and the line that is printed. The blocking calls are made by a system call package function that the runtime knows,
// since Go has no other.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const unitLoops = 20000

var (
	procs    = flag.Int("procs", 2, "")
	ms       = flag.Int("ms", 2000, "")
	hogs     = flag.Int("hogs", 0, "")
	each     = flag.Int("each", 0, "")
	ticker   = flag.Int("ticker", 0, "")
	pair     = flag.Int("pair", 0, "")
	pair2    = flag.Int("pair2", 0, "")
	blockers = flag.Int("blockers", 0, "")
	sleepMs  = flag.Int("sleep", 20, "")
	echo     = flag.Int("echo", 0, "")

	stop   int32
	units  int64
	calls  int64
	rounds [2]int64
	unitUs float64
	sink   [64]int64
)

//go:noinline
func computeLoops(p *int64, loops int) {
	for i := 0; i < loops; i++ {
		*p = int64(i)
		if *p < 0 {
			return
		}
	}
}

func computeUnit(p *int64) { computeLoops(p, unitLoops) }

func compute(us float64) {
	var x int64
	computeLoops(&x, int(us/unitUs*unitLoops))
}

func calibrate() {
	var x int64
	unitUs = 1e9
	for i := 0; i < 200; i++ {
		from := time.Now()
		computeUnit(&x)
		if us := float64(time.Since(from)) / 1e3; us < unitUs {
			unitUs = us
		}
	}
}

func stopped() bool { return atomic.LoadInt32(&stop) != 0 }

func hog(wg *sync.WaitGroup) {
	var x, mine int64
	end := int64(-1)
	if *each > 0 {
		end = int64(float64(*each) * 1000 / unitUs)
	}
	for !stopped() && mine != end {
		computeUnit(&x)
		mine++
	}
	atomic.AddInt64(&units, mine)
	wg.Done()
}

func startPair(us, which int, wg *sync.WaitGroup) {
	there, back := make(chan int), make(chan int)
	wg.Add(2)
	go func() {
		for v := range there {
			compute(float64(us))
			back <- v
		}
		wg.Done()
	}()
	go func() {
		for !stopped() {
			compute(float64(us))
			there <- 0
			<-back
			atomic.AddInt64(&rounds[which], 1)
		}
		close(there)
		wg.Done()
	}()
}

func serve(c net.Conn) {
	buf := make([]byte, 64)
	for {
		n, err := c.Read(buf)
		if err != nil {
			c.Close()
			return
		}
		c.Write(buf[:n])
	}
}

func printLate(name string, late []time.Duration) {
	if len(late) == 0 {
		return
	}
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	fmt.Printf("%s_n=%d %s_p50=%.0f %s_p99=%.0f %s_worst=%.0f ", name, len(late), name, us(late[len(late)/2]),
		name, us(late[len(late)*99/100]), name, us(late[len(late)-1]))
}

func main() {
	flag.Parse()
	runtime.GOMAXPROCS(*procs)
	calibrate()
	var wg, batch sync.WaitGroup
	var late []time.Duration
	if *echo > 0 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("port=%d\n", l.Addr().(*net.TCPAddr).Port)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go serve(c)
			}
		}()
		time.Sleep(100 * time.Millisecond)
	}
	var before, after syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	from := time.Now()
	if *ticker > 0 {
		wg.Add(1)
		go func() {
			period := time.Duration(*ticker) * time.Millisecond
			for !stopped() {
				t := time.Now()
				time.Sleep(period)
				late = append(late, time.Since(t)-period)
			}
			wg.Done()
		}()
		time.Sleep(time.Millisecond) // it is to have begun before there are thousands of others
	}
	batch.Add(*hogs)
	for i := 0; i < *hogs; i++ {
		go hog(&batch)
	}
	if *pair > 0 {
		startPair(*pair, 0, &wg)
	}
	if *pair2 > 0 {
		startPair(*pair2, 1, &wg)
	}
	wg.Add(*blockers)
	for i := 0; i < *blockers; i++ {
		go func() {
			t := syscall.Timeval{}
			for !stopped() {
				t.Usec = int64(*sleepMs) * 1000
				syscall.Select(0, nil, nil, nil, &t)
				atomic.AddInt64(&calls, 1)
			}
			wg.Done()
		}()
	}
	var batchTime time.Duration
	if *each > 0 {
		batch.Wait()
		batchTime = time.Since(from)
	} else {
		time.Sleep(time.Duration(*ms) * time.Millisecond)
	}
	s := time.Since(from).Seconds()
	syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	atomic.StoreInt32(&stop, 1)
	batch.Wait()
	wg.Wait()
	if *hogs > 0 {
		fmt.Printf("work=%.3f ", float64(atomic.LoadInt64(&units))*unitUs/1e6/s)
	}
	if batchTime > 0 {
		fmt.Printf("batch_ms=%.0f ", float64(batchTime)/1e6)
	}
	printLate("tick", late)
	for i, us := range []int{*pair, *pair2} {
		if us > 0 {
			r := float64(atomic.LoadInt64(&rounds[i])) / s
			fmt.Printf("pair%d_rounds=%.0f pair%d_us=%.0f ", i, r, i, r*2*float64(us))
		}
	}
	if *blockers > 0 {
		fmt.Printf("calls=%.0f ", float64(atomic.LoadInt64(&calls))/s)
	}
	cpu := func(u *syscall.Rusage) float64 {
		return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
	}
	fmt.Printf("cpu=%.3f sysmon=0 switches=%.0f threads=0\n", (cpu(&after)-cpu(&before))/s,
		float64(after.Nvcsw+after.Nivcsw-before.Nvcsw-before.Nivcsw)/s)
}
