// SPDX-License-Identifier: MIT

// SHA3-256 of 200 chunks of 1 MiB: a reader, two workers and an ordered printer, connected by channels; one
// operation is one chunk. The twin of bench/pipeline_sha.c and bench/pipeline_sha.h.
package main

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"os"
	"sync"
)

const (
	size    = 1 << 20
	chunks  = 8
	workers = 2
	rate    = 136
)

type chunk struct {
	number int
	hash   [32]byte
	data   [size]byte
}

var rc = [24]uint64{
	0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
	0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
	0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
	0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
	0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008}
var turn = [24]int{1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44}
var lane = [24]int{10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1}

func keccak(s *[25]uint64) {
	for round := 0; round < 24; round++ {
		var c [5]uint64
		for x := 0; x < 5; x++ {
			c[x] = s[x] ^ s[x+5] ^ s[x+10] ^ s[x+15] ^ s[x+20]
		}
		for x := 0; x < 5; x++ {
			t := c[(x+4)%5] ^ bits.RotateLeft64(c[(x+1)%5], 1)
			for y := 0; y < 25; y += 5 {
				s[x+y] ^= t
			}
		}
		t := s[1]
		for i := 0; i < 24; i++ {
			next := s[lane[i]]
			s[lane[i]] = bits.RotateLeft64(t, turn[i])
			t = next
		}
		for y := 0; y < 25; y += 5 {
			copy(c[:], s[y:y+5])
			for x := 0; x < 5; x++ {
				s[y+x] = c[x] ^ (^c[(x+1)%5] & c[(x+2)%5])
			}
		}
		s[0] ^= rc[round]
	}
}

func sha3(data []byte) (hash [32]byte) {
	var s [25]uint64
	var last [rate]byte
	for ; len(data) >= rate; data = data[rate:] {
		for i := 0; i < rate/8; i++ {
			s[i] ^= binary.LittleEndian.Uint64(data[i*8:])
		}
		keccak(&s)
	}
	last[copy(last[:], data)] ^= 0x06
	last[rate-1] ^= 0x80
	for i := 0; i < rate/8; i++ {
		s[i] ^= binary.LittleEndian.Uint64(last[i*8:])
	}
	keccak(&s)
	for i := 0; i < 4; i++ {
		binary.LittleEndian.PutUint64(hash[i*8:], s[i])
	}
	return
}

var (
	todo, done, empty = make(chan *chunk, chunks), make(chan *chunk, chunks), make(chan *chunk, chunks)
	source            *os.File
	printed           [32]byte
)

func reader(wanted int) {
	for i := 0; i < wanted; i++ {
		c := <-empty
		if got, err := source.ReadAt(c.data[:], 0); got != size {
			panic(err)
		}
		binary.LittleEndian.PutUint64(c.data[:], uint64(i))
		c.number = i
		todo <- c
	}
	for i := 0; i < workers; i++ {
		c := <-empty
		c.number = -1
		todo <- c
	}
}

func worker() {
	c := <-todo
	for ; c.number >= 0; c = <-todo {
		c.hash = sha3(c.data[:])
		done <- c
	}
	empty <- c
}

func printer(wanted int) {
	var early [chunks]*chunk
	var both [64]byte
	for i := 0; i < wanted; {
		c := <-done
		early[c.number%chunks] = c
		for c = early[i%chunks]; i < wanted && c != nil && c.number == i; c = early[i%chunks] {
			early[i%chunks] = nil
			i++
			copy(both[32:], c.hash[:])
			hash := sha3(both[:])
			copy(both[:], hash[:])
			empty <- c
		}
	}
	copy(printed[:], both[:])
}

func open() {
	hash := sha3([]byte("abc"))
	if hex.EncodeToString(hash[:8]) != "3a985da74fe225b2" {
		panic("SHA3 is wrong")
	}
	var err error
	if source, err = os.CreateTemp("", "pipeline_sha"); err != nil {
		panic(err)
	}
	os.Remove(source.Name())
	for i := 0; i < chunks; i++ {
		c := new(chunk)
		if i == 0 {
			for k := range c.data {
				c.data[k] = byte(uint32(k) * 2654435761 >> 24)
			}
			if _, err := source.Write(c.data[:]); err != nil {
				panic(err)
			}
		}
		empty <- c
	}
}

func work(n int) float64 {
	if source == nil {
		open()
	}
	var wg sync.WaitGroup
	start := func(f func()) {
		wg.Add(1)
		go func() {
			f()
			wg.Done()
		}()
	}
	start(func() { reader(n) })
	for i := 0; i < workers; i++ {
		start(worker)
	}
	start(func() { printer(n) })
	wg.Wait()
	return 0
}

func main() {
	measure("pipeline_sha", 200, work)
}
