/* SPDX-License-Identifier: MIT */
/*
 * strict_typed_pointers.c - typed channels whose elements are pointers: the address of one is all that they want.
 * Covers: include/gort/typed.h
 */
#include <gort.h>

struct job {
    int number;
};
GORT_CHAN_DEFINE(lines, char *);
GORT_CHAN_DEFINE(words, const char *);
GORT_CHAN_DEFINE(jobs, struct job *);
GORT_CHAN_DEFINE(replies, jobs *);

int use_all(lines *l, words *w, jobs *j, replies *r);
int use_all(lines *l, words *w, jobs *j, replies *r)
{
    char text[] = "text", *line = text;
    const char *word = "word";
    struct job job = {1}, *some = &job;
    int n = lines_send(l, &line) + lines_try_send(l, &line) + lines_recv(l, &line);
    n += words_send_until(w, &word, GORT_FOREVER) + words_recv(w, &word);
    n += jobs_send(j, &some) + jobs_recv(j, &some);
    n += replies_send(r, &j) + replies_recv(r, &j);
    gort_case cases[3] = {lines_case_send(l, &line), words_case_send(w, &word), jobs_case_recv(j, &some)};
    return n + gort_select(cases, 3, GORT_TRY);
}
