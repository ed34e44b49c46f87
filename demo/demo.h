/* SPDX-License-Identifier: MIT */
/*
 * demo.h - the parts of the showcase: a million goroutines, a picture on all cores, a live dashboard.
 *
 * Each part shows itself through screen.c and leaves what it measured in struct results.
 */
#ifndef GORT_DEMO_DEMO_H
#define GORT_DEMO_DEMO_H

#include <gort.h>

struct results {
    int procs;               /* maxprocs as the run began */
    int count;               /* goroutines in the first part */
    double spawn_ns;         /* to start one, its memory never used before */
    double spawn_bytes;      /* of memory for one that has not run */
    double all_ms;           /* from the first start until the last had run */
    double again_ns;         /* to start and run one when all memory is warm, on all Ps */
    int parked;              /* goroutines that waited all at once; 0: left out */
    double parked_bytes;     /* of memory each, with a stack that was used */
    double one_ms, many_ms;  /* the picture on one P, on all */
    int pieces;              /* goroutines that drew it */
    double yields;           /* the most a second */
    int goroutines, threads; /* the most at once, on the dashboard */
};

/* Run in the main goroutine. `fast`: a short version. */
void million_rehearse(struct results *r); /* in a run of its own, before: the first figures of million_show */
void million_show(struct results *r, bool fast);
void picture_show(struct results *r, bool fast);
void board_show(struct results *r, bool fast);

/* --- screen.c --------------------------------------------------------------------------------- */

struct size {
    int rows, cols;
};

void screen_begin(bool plain); /* finds out what the terminal can do; catches Ctrl-C */
void screen_end(void);         /* cursor and colours as they were */
bool screen_live(void);        /* a terminal that can be redrawn; else lines are all there is */
struct size screen_size(void);
void say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* into the buffer */
void show(void);                                                         /* the buffer onto the screen */
size_t said(void);                                                       /* how much is in the buffer */
void unsay(size_t mark);   /* forgets what was said after that */
void colour(unsigned rgb); /* of what is said next; nothing without a terminal */
void background(unsigned rgb);
void plain(void);                               /* the terminal's own colours */
void erase_rest(void);                          /* of the line */
void up(int lines);                             /* to the start of the line so many above */
void heading(const char *text);                 /* of a part */
void bar(double part, int width, unsigned rgb); /* a horizontal bar of width cells, filled to part (0..1) */
unsigned hue(int i);                            /* the colour of the i-th thread */
const char *human(double n, char buf[16]);      /* 1234567 as 1.23 M */

enum {
    GREY = 0x808080,
    TITLE = 0x00add8,
    GREEN = 0x5fd787,
    AMBER = 0xffaf5f,
    BLUE = 0x5fafff,
    ROSE = 0xff5f87
};

/* --- thread.c --------------------------------------------------------------------------------- */

#define THREADS_MAX 1024
int thread_here(void);  /* a small number for the calling thread, the same every time */
int thread_tid(int i);  /* the kernel's number of thread i */
int thread_known(void); /* how many have asked */

/* Calls draw(arg) so many times a second in a thread of its own, a plain one, until ticker_stop. */
void ticker_start(void (*draw)(void *), void *arg, int hz);
void ticker_stop(void); /* after one last draw */
void wait_ms(int ms);   /* holds up the calling thread; others go on */
double ms_since(int64_t then);
size_t memory_used(void); /* bytes of this process that are in memory */
size_t memory_free(void); /* bytes that the machine could still give */
int threads_now(void);    /* of this process */

#endif
