/* SPDX-License-Identifier: MIT */
/*
 * pipeline_sha.h - a reader, two workers and an ordered printer, connected by bounded queues: SHA3-256 of
 * chunks of 1 MiB.
 *
 *     reader --todo--> worker --done--> printer --empty--> reader
 *                  \-> worker -/
 *
 * Eight chunks go round. The includer knows what a queue is: it defines put and take, makes the three queues,
 * and runs reader, worker and printer side by side.
 */
#ifndef BENCH_PIPELINE_SHA_H
#define BENCH_PIPELINE_SHA_H

#include "measure.h"

#include <unistd.h>

enum { CHUNK = 1 << 20, CHUNKS = 8, WORKERS = 2, RATE = 136 };

struct chunk {
    long number; /* of the file; -1: there are no more */
    uint8_t hash[32];
    uint8_t data[CHUNK];
};

/* --- SHA3-256 --------------------------------------------------------------------------------- */

static inline uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

/* Keccak-f[1600]: 24 rounds of theta, rho and pi, chi, iota. Unrolled it is four times as fast. */
static void keccak(uint64_t s[25])
{
    static const uint64_t rc[24] = {
        0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
        0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
        0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
        0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
        0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};
    static const int turn[24] = {1,  3,  6,  10, 15, 21, 28, 36, 45, 55, 2,  14,
                                 27, 41, 56, 8,  25, 43, 62, 18, 39, 61, 20, 44};
    static const int lane[24] = {10, 7,  11, 17, 18, 3, 5,  16, 8,  21, 24, 4,
                                 15, 23, 19, 13, 12, 2, 20, 14, 22, 9,  6,  1};
    for (int round = 0; round < 24; round++) {
        uint64_t c[5], t;
#pragma GCC unroll 5
        for (int x = 0; x < 5; x++)
            c[x] = s[x] ^ s[x + 5] ^ s[x + 10] ^ s[x + 15] ^ s[x + 20];
#pragma GCC unroll 5
        for (int x = 0; x < 5; x++) {
            t = c[(x + 4) % 5] ^ rotate(c[(x + 1) % 5], 1);
#pragma GCC unroll 5
            for (int y = 0; y < 25; y += 5)
                s[x + y] ^= t;
        }
        t = s[1];
#pragma GCC unroll 24
        for (int i = 0; i < 24; i++) {
            uint64_t next = s[lane[i]];
            s[lane[i]] = rotate(t, turn[i]);
            t = next;
        }
#pragma GCC unroll 5
        for (int y = 0; y < 25; y += 5) {
#pragma GCC unroll 5
            for (int x = 0; x < 5; x++)
                c[x] = s[y + x];
#pragma GCC unroll 5
            for (int x = 0; x < 5; x++)
                s[y + x] = c[x] ^ (~c[(x + 1) % 5] & c[(x + 2) % 5]);
        }
        s[0] ^= rc[round];
    }
}

/* Of bytes in the order of a little-endian machine. */
static void sha3_256(const uint8_t *data, size_t n, uint8_t hash[32])
{
    uint64_t s[25] = {0}, word;
    uint8_t last[RATE] = {0};
    for (; n >= RATE; n -= RATE, data += RATE) {
        for (int i = 0; i < RATE / 8; i++) {
            memcpy(&word, data + i * 8, 8);
            s[i] ^= word;
        }
        keccak(s);
    }
    memcpy(last, data, n);
    last[n] ^= 0x06;
    last[RATE - 1] ^= 0x80;
    for (int i = 0; i < RATE / 8; i++) {
        memcpy(&word, last + i * 8, 8);
        s[i] ^= word;
    }
    keccak(s);
    memcpy(hash, s, 32);
}

/* --- the four --------------------------------------------------------------------------------- */

struct queue;
static void put(struct queue *q, struct chunk *c);
static struct chunk *take(struct queue *q);

static struct queue *todo, *done, *empty;
static long wanted;  /* chunks */
static FILE *source; /* read again and again */
static uint8_t printed[32];

static void reader(void)
{
    for (long i = 0; i < wanted; i++) {
        struct chunk *c = take(empty);
        if (pread(fileno(source), c->data, CHUNK, 0) != CHUNK)
            bench_die("pread", 0);
        memcpy(c->data, &i, sizeof i); /* each another one */
        c->number = i;
        put(todo, c);
    }
    for (int i = 0; i < WORKERS; i++) {
        struct chunk *c = take(empty);
        c->number = -1;
        put(todo, c);
    }
}

static void worker(void)
{
    struct chunk *c;
    while ((c = take(todo))->number >= 0) {
        sha3_256(c->data, CHUNK, c->hash);
        put(done, c);
    }
    put(empty, c);
}

/* The checksum of all checksums in their order stands for the paper. */
static void printer(void)
{
    struct chunk *early[CHUNKS] = {0};
    uint8_t both[64] = {0};
    for (long i = 0; i < wanted;) {
        struct chunk *c = take(done);
        early[c->number % CHUNKS] = c;
        while (i < wanted && (c = early[i % CHUNKS]) && c->number == i) {
            early[i++ % CHUNKS] = NULL;
            memcpy(both + 32, c->hash, 32);
            sha3_256(both, sizeof both, both);
            put(empty, c);
        }
    }
    memcpy(printed, both, 32);
}

static void pipeline_check(void)
{
    static const uint8_t abc[] = {0x3a, 0x98, 0x5d, 0xa7, 0x4f, 0xe2, 0x25, 0xb2};
    uint8_t hash[32];
    sha3_256((const uint8_t *)"abc", 3, hash);
    if (memcmp(hash, abc, sizeof abc) != 0)
        bench_die("SHA3 is wrong", 0);
}

/* Once a process. */
static void pipeline_open(void)
{
    static struct chunk chunks[CHUNKS];
    pipeline_check();
    for (int i = 0; i < CHUNK; i++)
        chunks[0].data[i] = (uint8_t)(i * 2654435761u >> 24);
    source = must_have(tmpfile());
    if (fwrite(chunks[0].data, 1, CHUNK, source) != CHUNK || fflush(source))
        bench_die("tmpfile", 0);
    for (int i = 0; i < CHUNKS; i++)
        put(empty, &chunks[i]);
}

#endif
