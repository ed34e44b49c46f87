/* SPDX-License-Identifier: MIT */
/*
 * state.c - the states of a goroutine: every edge of the table passes, every other one ends the program, and
 * each state and each reason to wait has a name of its own.
 * Covers: src/sched/core/state.c src/sched/core/g.h
 */
#include "sched/core/g.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* From the state of the row to that of the column, in the order of the enum: idle, runnable, running,
 * syscall, detached, waiting, preempted, dead. */
static const char *const legal[GORT_G_STATES] = {
    ".x...x..", "..x.....", ".x.xxxxx", ".xx.x.x.", ".xx.....", ".xx.....", ".xx.....", "x.......",
};

static bool passes(struct gort__g *g, enum gort__gstate to)
{
    int status;
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        close(2); /* the report is not for the log of this test */
        gort__state_check_edge(g, to);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    CHECK_EQ(WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGABRT);
    return false;
}

TEST(edges_of_the_table_pass_and_no_others)
{
    static struct gort__g g;
    for (int from = 0; from < GORT_G_STATES; from++)
        for (int to = 0; to < GORT_G_STATES; to++) {
            g.state = (uint8_t)from;
            CHECK_MSG(passes(&g, (enum gort__gstate)to) == (legal[from][to] == 'x'), "from %s to %s",
                      gort__state_name((enum gort__gstate)from), gort__state_name((enum gort__gstate)to));
        }
}

TEST(a_wrong_edge_says_which, .crash = "goroutine 7 goes from waiting to dead")
{
    static struct gort__g g;
    g.id = 7;
    g.state = GORT_G_WAITING;
    gort__state_check_edge(&g, GORT_G_DEAD);
}

TEST(no_state_at_all, .crash = "goroutine 7 goes from \\? to running")
{
    static struct gort__g g;
    g.id = 7;
    g.state = GORT_G_STATES;
    gort__state_check_edge(&g, GORT_G_RUNNING);
}

TEST(set_takes_legal_edges)
{
    static const uint8_t life[] = {GORT_G_RUNNABLE,  GORT_G_RUNNING, GORT_G_WAITING,  GORT_G_RUNNABLE,
                                   GORT_G_RUNNING,   GORT_G_SYSCALL, GORT_G_DETACHED, GORT_G_RUNNING,
                                   GORT_G_PREEMPTED, GORT_G_RUNNING, GORT_G_DEAD,     GORT_G_IDLE};
    static struct gort__g g;
    for (size_t i = 0; i < sizeof life; i++) {
        gort__g_set(&g, (enum gort__gstate)life[i]);
        CHECK_EQ(g.state, life[i]);
    }
}

TEST(flags_come_and_go_alone)
{
    static struct gort__g g;
    gort__g_flag_on(&g, GORT_G_MAIN | GORT_G_CHECKED);
    gort__g_flag_on(&g, GORT_G_BOUND);
    gort__g_flag_off(&g, GORT_G_MAIN | GORT_G_BLOCKS);
    CHECK_EQ(g.flags, GORT_G_BOUND | GORT_G_CHECKED);
}

TEST(names_tell_them_apart)
{
    for (int a = 0; a < GORT_G_STATES; a++)
        for (int b = 0; b < a; b++)
            CHECK(strcmp(gort__state_name((enum gort__gstate)a), gort__state_name((enum gort__gstate)b)));
    for (int a = 0; a < GORT_WAIT_REASONS; a++) {
        CHECK_EQ(*gort__state_reason_name((enum gort__reason)a) == '\0', a == GORT_WAIT_NONE);
        for (int b = 0; b < a; b++)
            CHECK(strcmp(gort__state_reason_name((enum gort__reason)a),
                         gort__state_reason_name((enum gort__reason)b)));
    }
    CHECK_STR(gort__state_name(GORT_G_STATES), "?");
    CHECK_STR(gort__state_reason_name(GORT_WAIT_REASONS), "");
}
