/* SPDX-License-Identifier: MIT */
/*
 * 05-lock-thread.c - stay on one thread.      cc -D_GNU_SOURCE 05-lock-thread.c -o 05-lock-thread -lgort
 *
 * Some libraries keep state in the thread that calls them: OpenGL, a GUI's event loop, anything with
 * thread-local variables. Between gort_lock_thread and gort_unlock_thread a goroutine has its thread
 * for itself: whatever it waits for, it goes on there, and no other goroutine runs on it.
 */
#include <gort.h>
#include <stdio.h>
#include <unistd.h>

enum { YIELDS = 10000 };

static void wander(void *moves)
{
    pid_t before = gettid();
    for (int i = 0; i < YIELDS; i++) {
        gort_yield();
        *(int *)moves += gettid() != before;
        before = gettid();
    }
}

static void stay(void *moves)
{
    gort_lock_thread();
    wander(moves);
    gort_unlock_thread();
}

static int start(void *arg)
{
    int moves[4] = {0}, tied_moves = 0;
    gort_wg wg = {0};
    (void)arg;
    for (int i = 0; i < 4; i++)
        if (gort_wg_go(&wg, wander, &moves[i]) < 0)
            return 1;
    if (gort_wg_go(&wg, stay, &tied_moves) < 0)
        return 1;
    gort_wg_wait(&wg);
    printf("%d yields each; free goroutines changed threads %d %d %d %d times, the locked one %d times\n",
           YIELDS, moves[0], moves[1], moves[2], moves[3], tied_moves);
    return tied_moves;
}

int main(void)
{
    return gort_run(start, NULL);
}
