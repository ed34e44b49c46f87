/* SPDX-License-Identifier: MIT */
/*
 * 23-collected.c - memory that nobody frees.      cc 23-collected.c -o 23-collected $(pkg-config --cflags --libs gort-gc)
 * Build: gc
 *
 * With libgort-gc and the Boehm collector goroutines share lists and strings without asking who frees them. What a
 * goroutine, a channel or a global variable can reach stays; the rest is used again.
 */
#include <gort.h>
#include <gort/gc.h>
#include <stdio.h>
#include <string.h>

struct line {
    struct line *next;
    char text[];
};

static void writer(gort_chan *out, int id)
{
    struct line *list = NULL;
    for (int i = 0; i < 1000; i++) {
        struct line *l = gort_gc_malloc(sizeof *l + 40);
        if (!l)
            break;
        snprintf(l->text, 40, "writer %d, line %d", id, i);
        l->next = i % 10 ? list : NULL; /* drops what it has after every ten */
        list = l;
    }
    gort_chan_send(out, &list); /* the receiver gets all of it */
}

static int start(void *arg)
{
    gort_chan *ch = gort_chan_new(sizeof(struct line *), 4);
    struct line *list = NULL;
    int lines = 0;
    (void)arg;
    for (int id = 0; id < 100; id++)
        GORT_GO(writer, ch, id);
    for (int id = 0; id < 100; id++) {
        gort_chan_recv(ch, &list);
        for (struct line *l = list; l; l = l->next)
            lines++;
    }
    printf("%d lines left of 100000, the last is \"%s\"; the heap has %zu KiB\n", lines, list->text,
           gort_gc_heap_size() / 1024);
    return lines == 1000 ? 0 : 1;
}

int main(void)
{
    gort_gc_init();
    return gort_run(start, NULL);
}
