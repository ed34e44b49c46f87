/* SPDX-License-Identifier: MIT */
/* gort/base.h - linkage macros, attributes and standard types that every header of gort needs. */
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
/* Only the result tells whether the call has done its work: the compiler warns a caller that ignores it. */
#define GORT_MUST_CHECK __attribute__((warn_unused_result))
#define GORT_NORETURN   __attribute__((noreturn))

#endif
