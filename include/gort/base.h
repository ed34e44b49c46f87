/* SPDX-License-Identifier: MIT */
/* gort/base.h - what every header of gort needs: linkage, attributes, the standard types. */
#ifndef GORT_BASE_H
#define GORT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
#define GORT_BEGIN_DECLS              extern "C" {
#define GORT_END_DECLS                }
#define GORT_PRIV_CAST(type, p)       static_cast<type>(static_cast<void *>(p))
#define GORT_PRIV_CAST_CONST(type, p) static_cast<const type>(static_cast<const void *>(p))
#else
#define GORT_BEGIN_DECLS
#define GORT_END_DECLS
#define GORT_PRIV_CAST(type, p)       ((type)(void *)(p))
#define GORT_PRIV_CAST_CONST(type, p) ((const type)(const void *)(p))
#endif

#define GORT_API __attribute__((visibility("default")))
/* The result tells whether it happened: the compiler reminds whoever drops it. */
#define GORT_MUST_CHECK __attribute__((warn_unused_result))
#define GORT_NORETURN   __attribute__((noreturn))

#endif
