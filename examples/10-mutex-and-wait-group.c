/* SPDX-License-Identifier: MIT */
/*
 * 10-mutex-and-wait-group.c - share memory under a lock.      cc 10-mutex-and-wait-group.c -o 10-mutex-and-wait-group -lgort
 *
 * A gort_mutex is 8 bytes, valid when zero, and may lie in any struct. Whoever waits for it parks: the
 * thread goes on with another goroutine. So unlike a pthread mutex it may be held across calls that wait.
 */
#include <gort.h>
#include <stdio.h>

enum { GOROUTINES = 100, TURNS = 1000 };

struct account {
    gort_mutex lock;
    long balance; /* guarded by lock */
    long entries; /* guarded by lock */
};

static void deposit(void *arg)
{
    struct account *account = arg;
    for (int i = 0; i < TURNS; i++) {
        gort_mutex_lock(&account->lock);
        account->balance += 5;
        account->entries++;
        gort_mutex_unlock(&account->lock);
    }
}

static int start(void *arg)
{
    struct account account = {0};
    gort_wg wg = {0};
    (void)arg;
    for (int i = 0; i < GOROUTINES; i++)
        if (gort_wg_go(&wg, deposit, &account) < 0)
            return 1;
    gort_wg_wait(&wg); /* the account is on this stack: nobody may use it after the return */
    printf("%ld entries, balance %ld\n", account.entries, account.balance);
    return account.balance == 5L * GOROUTINES * TURNS ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}
