/* SPDX-License-Identifier: MIT */
/*
 * gort/process.h - child processes, with pipes to talk to them.
 *
 *     gort_command c = {.file = "sort", .argv = (char *[]){"sort", NULL}, .in = GORT_PIPE, .out = GORT_PIPE};
 *     gort_process p;
 *     if (gort_spawn(&p, &c) == 0) { gort_write_all(p.in, ...); gort_close(p.in); ... gort_wait(&p, NULL); }
 */
#ifndef GORT_PROCESS_H
#define GORT_PROCESS_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

/* What a child's standard input, output or error may be, beside an fd of ours above 0. */
enum { GORT_INHERIT = 0, GORT_PIPE = -1, GORT_NULL = -2, GORT_SAME = -3 /* error: where output goes */ };

typedef struct gort_command {
    const char *file;  /* looked for in PATH if it has no '/' */
    char *const *argv; /* ends with NULL */
    char *const *envp; /* NULL: ours */
    const char *dir;   /* NULL: ours */
    int in, out, err;
    int64_t reserved[4];
} gort_command;

typedef struct gort_process {
    int pid;
    int in, out, err; /* our ends of GORT_PIPE, to be closed with gort_close; else -1 */
    int gort_priv_pidfd, gort_priv_status;
    bool gort_priv_ended;
} gort_process;

/* Starts it; no fd of ours but those named reaches it, as far as they are close-on-exec. 0 or -errno, as exec says. May park. */
GORT_API GORT_MUST_CHECK int gort_spawn(gort_process *p, const gort_command *c);
/* Waits for its end: the exit status, or 128 + the signal that ended it; as waitpid tells it in *status, unless NULL. Once ended
 * it may be asked again. Pipes stay open. May park. */
GORT_API int gort_wait(gort_process *p, int *status);
GORT_API int gort_wait_until(gort_process *p, int *status, int64_t deadline);
/* Sends a signal; -ESRCH when its end was waited for. Never parks. */
GORT_API int gort_kill(const gort_process *p, int signo);

GORT_END_DECLS
#endif
