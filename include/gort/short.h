/* SPDX-License-Identifier: MIT */
/*
 * gort/short.h - short names for the most common calls. gort.h does not include this header.
 *
 * It defines only names that neither POSIX nor the C library uses.
 */
#ifndef GORT_SHORT_H
#define GORT_SHORT_H

#include "../gort.h"

#define go(...) GORT_GO(__VA_ARGS__)

typedef gort_chan chan;
#define chan_new        gort_chan_new
#define chan_ref        gort_chan_ref
#define chan_unref      gort_chan_unref
#define chan_send       gort_chan_send
#define chan_send_until gort_chan_send_until
#define chan_recv       gort_chan_recv
#define chan_recv_until gort_chan_recv_until
#define chan_close      gort_chan_close
#define chan_len        gort_chan_len
#define chan_cap        gort_chan_cap
#define chan_elem       gort_chan_elem

#define wg_add        gort_wg_add
#define wg_done       gort_wg_done
#define wg_wait       gort_wg_wait
#define wg_wait_until gort_wg_wait_until
#define wg_go         gort_wg_go

#define mutex_lock       gort_mutex_lock
#define mutex_trylock    gort_mutex_trylock
#define mutex_lock_until gort_mutex_lock_until
#define mutex_unlock     gort_mutex_unlock

#endif
