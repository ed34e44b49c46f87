/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - one program for two purposes: a fuzz target for libFuzzer (`make fuzz`, preset fuzz), and a test.
 *
 * As a test it runs what lies in tests/fuzz/corpus/NAME, each file also cut off at many lengths and with some
 * hundred bytes changed, so that what fuzzing has found once stays found. FUZZ(name) opens the function that
 * takes an input; it uses the checks of test.h.
 */
#ifndef GORT_TEST_FUZZ_H
#define GORT_TEST_FUZZ_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define FUZZ_MOST 4096 /* bytes of an input */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef GORT_FUZZ
#define FUZZ(name) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
#else
#define FUZZ(name)                                                                                           \
    TEST(corpus)                                                                                             \
    {                                                                                                        \
        fuzz_corpus(GORT_FUZZ_CORPUS "/" name);                                                              \
    }                                                                                                        \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)

/* In a block of just its size: the sanitizers see one byte too many. */
static void fuzz_one(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    CHECK(copy);
    memcpy(copy, data, size);
    CHECK_EQ(LLVMFuzzerTestOneInput(copy, size), 0);
    free(copy);
}

static void fuzz_file(const char *path, uint64_t *random)
{
    uint8_t data[FUZZ_MOST];
    FILE *f = fopen(path, "rb");
    CHECK_MSG(f, "%s", path);
    size_t n = fread(data, 1, sizeof data, f);
    fclose(f);
    fuzz_one(data, n);
    for (size_t cut = 0; cut < n; cut += 1 + n / 64)
        fuzz_one(data, cut);
    for (long i = test_scaled(100, 20); n && i > 0; i--) {
        uint8_t old[4];
        size_t at[4];
        for (int k = 0; k < 4; k++) {
            at[k] = test_random(random) % n;
            old[k] = data[at[k]];
            data[at[k]] = (uint8_t)(k % 2 ? data[test_random(random) % n] : test_random(random));
        }
        fuzz_one(data, n);
        for (int k = 3; k >= 0; k--)
            data[at[k]] = old[k];
    }
}

static void fuzz_corpus(const char *path)
{
    char file[1024];
    uint64_t random = test_seed();
    int files = 0;
    DIR *dir = opendir(path);
    CHECK_MSG(dir, "%s", path);
    for (struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.') {
            snprintf(file, sizeof file, "%s/%s", path, e->d_name);
            fuzz_file(file, &random);
            files++;
        }
    closedir(dir);
    CHECK_GT(files, 0);
}
#endif

#endif
