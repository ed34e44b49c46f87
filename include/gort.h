/* SPDX-License-Identifier: MIT */
/*
 * gort.h - goroutines for C: everything in one include.
 *
 *     #include <gort.h>
 *     static void hello(void *who) { printf("hello, %s\n", (char *)who); }
 *     static int start(void *arg) { gort_go(hello, "world"); return gort_yield(); }
 *     int main(void) { return gort_run(start, NULL); }
 */
#ifndef GORT_H
#define GORT_H

#include "gort/base.h"
#include "gort/errno.h"
#include "gort/version.h"
#include "gort/run.h"
#include "gort/key.h"
#include "gort/time.h"
#include "gort/ticker.h"
#include "gort/chan.h"
#include "gort/select.h"
#include "gort/sync.h"
#include "gort/ctx.h"
#include "gort/group.h"
#include "gort/typed.h"
#include "gort/io.h"
#include "gort/net.h"
#include "gort/buf.h"
#include "gort/signal.h"
#include "gort/process.h"

#endif
