/* SPDX-License-Identifier: MIT */
/* table.h - what the files of this room share: the poller of the run, and the table of fds. */
#ifndef GORT_SRC_POLL_TABLE_H
#define GORT_SRC_POLL_TABLE_H

#include "poll/fd.h"

extern int gort__poll_fd GORT_HIDDEN;         /* the poller; written by open and close only */
extern uint32_t gort__poll_epoch GORT_HIDDEN; /* counts pollers: 0 is none; written by open only */
extern uint32_t gort__poll_waits GORT_HIDDEN; /* how many wait for events; atomic */

/* The entry of an fd number if it was ever used, else NULL. */
struct gort__fd *gort__table_find(uint32_t fd);
/* The run is over: all who wait are gone. */
void gort__table_reset(void);

#endif
