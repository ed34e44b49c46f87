/* SPDX-License-Identifier: MIT */
/*
 * block.c - calls that block in the kernel, announced or not, stop nobody else and notice nothing themselves.
 * Covers: src/sched/threads/block.c src/sched/threads/handoff.c src/sched/monitor/sysmon.c
 */
#include "hogs.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>

static atomic_long counter, ticks;
static atomic_bool stop, flag;
static int fds[2];

static void tick(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        atomic_fetch_add(&ticks, 1);
        gort_sleep(GORT_MS);
    }
}

/* Others that keep every P busy, so that a blocked one is in the way. */
static void turn(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop))
        gort_yield();
}

static void start_others(void)
{
    CHECK_EQ(gort_go(tick, NULL), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_go(turn, NULL), 0);
}

static void wait_for_ticks(long n)
{
    long from = atomic_load(&ticks);
    for (int64_t until = gort_in(test_seconds(30)); atomic_load(&ticks) < from + n; gort_sleep(GORT_MS))
        CHECK_MSG(gort_now() < until, "the others do not go on");
}

/* Did somebody go on since? On a loaded machine the others may get no CPU during one call, but not in 20 of
 * them. */
static bool again(long from)
{
    static int tries;
    if (atomic_load(&ticks) > from)
        return false;
    CHECK_MSG(++tries < 20, "nobody goes on while one is in a call");
    return true;
}

/* --- system calls without a word to gort ------------------------------------------------------------------- */

/* Writes 5 bytes one by one, each after the others have gone on; needs the P all the time. */
static void write_slowly(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++) {
        wait_for_ticks(5);
        CHECK_EQ(write(fds[1], &"hello"[i], 1), 1);
    }
}

TEST_GO(read, .procs = "1,2")
{
    CHECK_EQ(pipe(fds), 0);
    start_others();
    CHECK_EQ(gort_go(write_slowly, NULL), 0);
    char text[6] = "";
    for (int i = 0; i < 5; i++)
        CHECK_EQ(read(fds[0], text + i, 1), 1);
    CHECK_STR(text, "hello");
    atomic_store(&stop, true);
}

static void sleep_in(int call)
{
    struct timespec left = {0, 0}, t = {0, 50000000};
    struct pollfd pfd = {fds[0], POLLIN, 0};
    int64_t from = hog_clock();
    if (call == 0)
        CHECK_EQ(usleep(50000), 0);
    else if (call == 1)
        CHECK_EQ(nanosleep(&t, &left), 0);
    else if (call == 2)
        CHECK_EQ(poll(&pfd, 1, 50), 0);
    else
        CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL), 0);
    CHECK_GE(hog_clock() - from, 50 * GORT_MS);
}

TEST_GO(sleeping_calls_keep_their_time, .procs = "1,2")
{
    CHECK_EQ(pipe(fds), 0);
    start_others();
    for (int call = 0; call < 4; call++) {
        long before;
        do {
            before = atomic_load(&ticks);
            sleep_in(call);
        } while (again(before));
        gort_yield();
    }
    atomic_store(&stop, true);
}

enum { BIG = 300000 };

static void read_slowly(void *unused)
{
    static char buf[4096];
    (void)unused;
    long got = 0;
    while (got < BIG) {
        ssize_t n = read(fds[0], buf, sizeof buf);
        CHECK_GT(n, 0);
        for (ssize_t i = 0; i < n; i++)
            CHECK_EQ((unsigned char)buf[i], (unsigned char)((got + i) * 7));
        got += n;
        gort_sleep(GORT_MS);
    }
    atomic_store(&counter, got);
}

TEST_GO(a_big_write_is_not_cut_short, .procs = "1,2")
{
    static char data[BIG];
    CHECK_EQ(pipe(fds), 0);
    for (int i = 0; i < BIG; i++)
        data[i] = (char)(i * 7);
    start_others();
    CHECK_EQ(gort_go(read_slowly, NULL), 0);
    CHECK_EQ(write(fds[1], data, BIG), BIG);
    while (atomic_load(&counter) != BIG)
        gort_yield();
    atomic_store(&stop, true);
}

static void unlock_later(void *file)
{
    wait_for_ticks(10);
    CHECK_EQ(flock(*(int *)file, LOCK_UN), 0);
}

TEST_GO(flock, .procs = "1,2")
{
    char name[] = "/tmp/gort-flock-XXXXXX";
    int first = mkstemp(name), second = open(name, O_RDWR);
    CHECK(first >= 0 && second >= 0);
    CHECK_EQ(unlink(name), 0);
    CHECK_EQ(flock(first, LOCK_EX), 0);
    start_others();
    CHECK_EQ(gort_go(unlock_later, &first), 0);
    CHECK_EQ(flock(second, LOCK_EX), 0);
    atomic_store(&stop, true);
}

static void wait_for_child(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "sleep 0.1; exit 5", (char *)NULL);
        _exit(9);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(WEXITSTATUS(status), 5);
}

TEST_GO(waitpid, .procs = "1,2", .native = TEST_FORKS)
{
    start_others();
    long from;
    do {
        from = atomic_load(&ticks);
        wait_for_child();
    } while (again(from));
    atomic_store(&stop, true);
}

TEST_GO(getaddrinfo, .procs = "1,2")
{
    start_others();
    for (int i = 0; i < 5; i++) {
        struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM};
        CHECK_EQ(getaddrinfo("localhost", "80", &hints, &list), 0);
        CHECK(list);
        freeaddrinfo(list);
        gort_yield();
    }
    wait_for_ticks(1);
    atomic_store(&stop, true);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;

/* Parks with the mutex in its hand. */
static void hold_mutex(void *unused)
{
    (void)unused;
    gort_lock_thread(); /* a mutex is unlocked by the thread that locked it */
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    atomic_store(&flag, true);
    wait_for_ticks(10);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    gort_unlock_thread();
}

TEST_GO(a_mutex_whose_owner_is_parked, .procs = "1,2")
{
    start_others();
    CHECK_EQ(gort_go(hold_mutex, NULL), 0);
    while (!atomic_load(&flag))
        gort_yield();
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    atomic_store(&stop, true);
}

static void wait_for_condition(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &until), ETIMEDOUT);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

TEST_GO(a_condition_times_out, .procs = "1,2")
{
    start_others();
    long from;
    do {
        from = atomic_load(&ticks);
        wait_for_condition();
    } while (again(from));
    atomic_store(&stop, true);
}

static void post_later(void *unused)
{
    (void)unused;
    wait_for_ticks(10);
    sem_post(&sem);
}

TEST_GO(sem_wait, .procs = "1,2")
{
    CHECK_EQ(sem_init(&sem, 0, 0), 0);
    start_others();
    CHECK_EQ(gort_go(post_later, NULL), 0);
    CHECK_EQ(sem_wait(&sem), 0); /* -1 with EINTR would be noticed */
    atomic_store(&stop, true);
}

/* --- many at a time ---------------------------------------------------------------------------------------------- */

static intptr_t read_one(void *unused)
{
    char c;
    (void)unused;
    return read(fds[0], &c, 1);
}

static void block_somehow(void *how)
{
    switch ((intptr_t)how % 3) {
    case 0:
        CHECK_EQ(read_one(NULL), 1);
        break;
    case 1:
        gort_block_enter();
        CHECK_EQ(read_one(NULL), 1);
        gort_block_leave();
        break;
    default:
        CHECK_EQ(gort_block(read_one, NULL), 1);
    }
    atomic_fetch_add(&counter, 1);
}

static bool few_threads(void *most)
{
    return test_thread_count() <= *(int *)most;
}

enum { MANY = 50 };

TEST_GO(many_blocked_at_a_time, .procs = "1,2", .env = "GORT_DEBUG=idle=50")
{
    gort_wg wg = {0};
    char bytes[MANY] = {0};
    CHECK_EQ(pipe(fds), 0);
    int before = test_thread_count();
    for (int round = 0; round < 2; round++) {
        atomic_store(&counter, 0);
        for (intptr_t i = 0; i < MANY; i++)
            CHECK_EQ(gort_wg_go(&wg, block_somehow, (void *)i), 0);
        int64_t until = gort_in(test_seconds(30));
        while (test_thread_count() < before + MANY - 1 && !test_under_emulator()) {
            CHECK_MSG(gort_now() < until, "not all of them block: %d threads", test_thread_count());
            gort_sleep(GORT_MS);
        }
        hog_ticks(5);
        CHECK_EQ(atomic_load(&counter), 0);
        CHECK_LT(test_thread_count(), before + MANY + 20);
        CHECK_EQ(write(fds[1], bytes, MANY), MANY);
        gort_wg_wait(&wg);
        CHECK_EQ(atomic_load(&counter), MANY);
    }
    int most = before + 6;
    for (int64_t until = gort_in(test_seconds(30)); !few_threads(&most); gort_sleep(5 * GORT_MS))
        CHECK_MSG(gort_now() < until, "idle threads stay: %d, %d at first", test_thread_count(), before);
}

/* Calls about as long as a tick of the monitor: the P is lost and kept at random, never shared. */
static atomic_int inside;

static void block_briefly(void *arg)
{
    uint64_t state = test_seed() + (uint64_t)(uintptr_t)arg;
    while (!atomic_load(&stop)) {
        struct timespec t = {0, (long)(test_random(&state) % 60000)};
        bool announce = test_random(&state) & 1;
        if (announce)
            gort_block_enter();
        nanosleep(&t, NULL);
        if (announce)
            gort_block_leave();
        else
            gort_yield(); /* an entry: from here on it has a P */
        gort_preempt_off();
        gort_id();
        if (announce) /* between leave and the next call that blocks there is one at a time */
            CHECK_EQ(atomic_fetch_add(&inside, 1), 0);
        for (volatile int i = 0; i < 100; i++)
            ;
        if (announce)
            atomic_fetch_sub(&inside, 1);
        gort_preempt_on();
        atomic_fetch_add(&counter, 1);
    }
}

TEST_GO(a_p_has_one_owner, .procs = "1")
{
    gort_wg wg = {0};
    test_seed();
    for (intptr_t i = 0; i < 6; i++)
        CHECK_EQ(gort_wg_go(&wg, block_briefly, (void *)i), 0);
    for (int64_t until = gort_in(400 * GORT_MS); gort_now() < until || atomic_load(&counter) <= 10;)
        gort_sleep(GORT_MS);
    atomic_store(&stop, true);
    gort_wg_wait(&wg);
}

/* --- between enter and leave -------------------------------------------------------------------------------------- */

TEST_GO(pairs_nest, .procs = "1,2")
{
    start_others();
    uint64_t id = gort_id();
    int tid = hog_tid();
    gort_block_enter();
    gort_block_enter();
    gort_block_enter();
    usleep(20000);
    gort_block_leave();
    CHECK_EQ(gort_id(), 0);
    usleep(5000);
    gort_block_leave();
    CHECK_EQ(gort_id(), 0);
    CHECK_EQ(hog_tid(), tid);
    gort_block_leave();
    CHECK_EQ(hog_tid(), tid);
    CHECK_EQ(gort_id(), id);
    wait_for_ticks(2);
    atomic_store(&stop, true);
}

/* Others have nothing to announce, so the pair means nothing, and one that is left over does no harm. */
static intptr_t pairs_on_a_thread(void *unused)
{
    (void)unused;
    for (int i = 0; i < 3; i++) {
        gort_block_enter();
        gort_block_enter();
        CHECK_EQ(gort_sleep(GORT_MS), 0);
        CHECK_EQ(gort_id(), 0);
        gort_block_leave();
        gort_block_leave();
    }
    return 1;
}

static void *pairs_in_a_thread(void *unused)
{
    gort_block_enter(); /* no gort call yet */
    gort_block_leave();
    CHECK_GE(gort_count(), 1);
    CHECK_EQ(pairs_on_a_thread(NULL), 1);
    gort_block_leave();
    CHECK_GE(gort_count(), 1);
    return unused;
}

TEST_GO(pairs_where_there_is_nothing_to_announce, .procs = "1,2")
{
    pthread_t t;
    uint64_t id = gort_id();
    start_others();
    CHECK_EQ(gort_block(pairs_on_a_thread, NULL), 1);
    CHECK_EQ(gort_id(), id);
    CHECK_EQ(pthread_create(&t, NULL, pairs_in_a_thread, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    gort_block_enter();
    CHECK_EQ(gort_sleep(GORT_MS), 0); /* from here on as in gort_block */
    gort_block_enter();
    CHECK_EQ(gort_id(), 0);
    gort_block_leave();
    CHECK_EQ(gort_id(), 0);
    gort_block_leave();
    CHECK_EQ(gort_id(), id);
    atomic_store(&stop, true);
}

/* Keys come and go under a lock of the runtime, and need nothing else of a call: the announced one goes
 * on. */
static void keys_in_between(void *unused)
{
    (void)unused;
    uint64_t id = gort_id();
    for (int i = 0; i < 200; i++) {
        gort_key key;
        gort_block_enter();
        CHECK_EQ(gort_key_create(&key, NULL), 0);
        if (i % 20 == 0)
            usleep(100);
        CHECK_EQ(gort_key_delete(key), 0);
        CHECK_EQ(gort_key_delete(key), -EINVAL);
        gort_block_leave();
        CHECK_EQ(gort_id(), id);
    }
    atomic_fetch_add(&counter, 1);
}

TEST_GO(keys_in_an_announced_call, .procs = "1,2,4", .fuzz = true)
{
    start_others();
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_go(keys_in_between, NULL), 0);
    for (int64_t until = gort_in(test_seconds(30)); atomic_load(&counter) < 4; gort_yield()) {
        CHECK_MSG(gort_now() < until, "they do not come back");
        CHECK_EQ(gort_world_stop(), 0); /* while one of them holds the lock, perhaps */
        CHECK_EQ(gort_world_start(), 0);
    }
    atomic_store(&stop, true);
}

static void echo(void *pair)
{
    gort_chan **ch = pair;
    int v;
    while (gort_chan_recv(ch[0], &v) > 0) {
        v++;
        if (gort_chan_send(ch[1], &v) < 0)
            break;
    }
    atomic_store(&flag, true);
}

TEST_GO(a_plain_thread_in_between, .procs = "1,2")
{
    gort_chan *ch[2] = {gort_chan_new(sizeof(int), 0), gort_chan_new(sizeof(int), 0)};
    CHECK(ch[0] && ch[1]);
    start_others();
    CHECK_EQ(gort_go(echo, ch), 0);
    for (int round = 0; round < 20; round++) {
        uint64_t id = gort_id();
        int tid = hog_tid(), back = 0;
        gort_block_enter();
        if (round % 2)
            usleep(2000);
        CHECK_EQ(gort_id(), 0);
        CHECK_GE(gort_chan_send(ch[0], &round), 0);
        CHECK_GE(gort_chan_recv(ch[1], &back), 0);
        CHECK_EQ(back, round + 1);
        CHECK_EQ(gort_sleep(GORT_MS), 0);
        CHECK_EQ(hog_tid(), tid);
        gort_block_leave();
        CHECK_EQ(hog_tid(), tid);
        CHECK_EQ(gort_id(), id);
        gort_yield();
    }
    CHECK_GE(gort_chan_close(ch[0]), 0);
    while (!atomic_load(&flag))
        gort_yield();
    atomic_store(&stop, true);
}

/* --- gort_block ------------------------------------------------------------------------------------------------------ */

static intptr_t twice(void *arg)
{
    usleep(2000);
    return 2 * (intptr_t)arg;
}

static intptr_t on_big_stack(void *arg)
{
    char *volatile big = alloca((size_t)1 << 20);
    memset(big, 1, (size_t)1 << 20);
    CHECK_EQ(gort_id(), 0);
    return (intptr_t)arg + big[1000] + gort_block(twice, (void *)20);
}

TEST_GO(block_returns_the_value, .procs = "1,2")
{
    start_others();
    for (intptr_t i = 0; i < 20; i++)
        CHECK_EQ(gort_block(twice, (void *)i), 2 * i);
    uint64_t id = gort_id();
    CHECK_EQ(gort_block(on_big_stack, (void *)1), 42);
    CHECK_EQ(gort_id(), id);
    wait_for_ticks(2);
    atomic_store(&stop, true);
}

static intptr_t own_tid(void *unused)
{
    (void)unused;
    usleep(1000);
    return hog_tid();
}

static void *call_block(void *unused)
{
    CHECK_EQ(gort_block(twice, (void *)4), 8);
    CHECK_GE(gort_count(), 1); /* attached now */
    CHECK_EQ(gort_block(twice, (void *)5), 10);
    CHECK_EQ(gort_block(own_tid, NULL), hog_tid());
    return unused;
}

TEST_GO(block_under_lock_thread_and_in_a_plain_thread, .procs = "1,2")
{
    pthread_t t;
    start_others();
    gort_lock_thread();
    int tid = hog_tid();
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_block(own_tid, NULL), tid);
        CHECK_EQ(hog_tid(), tid);
        gort_yield();
        CHECK_EQ(hog_tid(), tid);
    }
    gort_unlock_thread();
    CHECK_EQ(pthread_create(&t, NULL, call_block, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0); /* blocks, too */
    atomic_store(&stop, true);
}

TEST(block_outside_of_a_run)
{
    gort_block_enter();
    gort_block_leave();
    CHECK_EQ(gort_block(twice, (void *)3), 6);
}

/* --- dumps ------------------------------------------------------------------------------------------------------------- */

TEST_GO(dumps_tell, .procs = "1,2")
{
    static char text[20000];
    char bytes[3] = {0};
    gort_wg wg = {0};
    int out[2];
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(pipe(out), 0);
    start_others();
    for (intptr_t i = 0; i < 3; i++)
        CHECK_EQ(gort_wg_go(&wg, block_somehow, (void *)i), 0);
    for (int64_t until = gort_in(test_seconds(20));;) {
        wait_for_ticks(5);
        gort_dump(out[1]);
        ssize_t n = read(out[0], text, sizeof text - 1);
        CHECK_GT(n, 0);
        text[n] = '\0';
        const char *first = strstr(text, "[syscall");
        if (first && strstr(first + 1, "[syscall") && strstr(text, "[detached"))
            break;
        CHECK_MSG(gort_now() < until, "no [syscall] twice and [detached] in\n%s", text);
    }
    CHECK_EQ(write(fds[1], bytes, 3), 3);
    gort_wg_wait(&wg);
    atomic_store(&stop, true);
}

/* --- a plain thread meanwhile ---------------------------------------------------------------------------------------- */

static gort_key own_key;
static atomic_int own_values, own_exits;

static void count_up(void *n)
{
    atomic_fetch_add((atomic_int *)n, 1);
}

/* What a plain thread may have of its own; nothing of it is there before. */
static intptr_t be_a_thread(void *ctx)
{
    CHECK(gort_ctx_current() == NULL && gort_key_get(own_key) == NULL);
    gort_ctx_use(ctx);
    CHECK_EQ(gort_key_set(own_key, &own_values), 0);
    CHECK_EQ(gort_on_exit(count_up, &own_exits), 0);
    return 0;
}

static void see_nothing(void *unused)
{
    (void)unused;
    CHECK(gort_ctx_current() == NULL);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(what_a_call_has_as_a_thread_ends_with_it, .procs = "1,2,4", .fuzz = true)
{
    enum { TIMES = 20 };
    CHECK_EQ(gort_key_create(&own_key, count_up), 0);
    for (int i = 0; i < TIMES; i++) {
        gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
        if (i % 2) {
            CHECK_EQ(gort_block(be_a_thread, ctx), 0);
        } else {
            gort_block_enter();
            be_a_thread(ctx);
            gort_block_leave();
        }
        CHECK_EQ(atomic_load(&own_values), i + 1);
        CHECK_EQ(atomic_load(&own_exits), i + 1);
        CHECK(gort_ctx_current() == NULL && gort_key_get(own_key) == NULL);
        gort_ctx_unref(ctx);
        /* Calls of timers are started by whatever thread sees that they are due. */
        gort_timer *t = gort_timer_new(GORT_US, 0, see_nothing, NULL);
        while (atomic_load(&counter) <= i)
            gort_sleep(100 * GORT_US);
        gort_timer_free(t);
    }
}

/* Its timer is taken back from outside of a run's code, and the rest of it freed. */
TEST_GO(the_last_reference_goes_in_a_call, .procs = "1,2")
{
    for (int i = 0; i < 100; i++) {
        gort_ctx *ctx = gort_ctx_new(NULL, gort_in(test_seconds(10)));
        CHECK(ctx && gort_ctx_done(ctx)); /* sets its timer */
        gort_block_enter();
        gort_ctx_unref(ctx);
        gort_block_leave();
        gort_yield();
    }
}

/* --- the end of a run ---------------------------------------------------------------------------------------------------- */

static int leave_blocked(void *unused)
{
    (void)unused;
    for (intptr_t i = 0; i < 9; i++)
        CHECK_EQ(gort_go(block_somehow, (void *)i), 0);
    hog_ticks(10);
    return 3;
}

TEST(the_end_waits_for_no_call, .procs = "1,2")
{
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pipe(fds), 0);
        int64_t from = hog_clock();
        CHECK_EQ(gort_run(leave_blocked, NULL), 3);
        CHECK_LT(hog_clock() - from, test_seconds(30));
        CHECK_EQ(atomic_load(&counter), 0);
    }
}
