/* SPDX-License-Identifier: MIT */
/*
 * shim.h - base/atomic.h under GORT_MODEL: each atomic operation becomes a step of the explorer.
 *
 * Why macros: they give the engine the width of the word, the function it stands in and the expression
 * as written, which is what a counterexample prints and what a mutation names. The engine (engine/memory.c)
 * decides when the operation happens and what the other threads see of it.
 */
#ifndef GORT_TEST_MODEL_SHIM_H
#define GORT_TEST_MODEL_SHIM_H

#include <stdbool.h>
#include <stdint.h>

enum model_order { MODEL_RELAXED, MODEL_ACQUIRE, MODEL_RELEASE, MODEL_ACQ_REL, MODEL_SEQ_CST };
enum model_rmw { MODEL_XCHG, MODEL_ADD, MODEL_SUB, MODEL_OR, MODEL_AND };

/* Values travel as 64 bits, whatever their width; an address is never written through if it came in const. */
uint64_t model_load(const void *p, unsigned size, enum model_order order, const char *func, const char *text);
void model_store(void *p, unsigned size, uint64_t v, enum model_order order, const char *func,
                 const char *text);
uint64_t model_rmw(enum model_rmw kind, void *p, unsigned size, uint64_t v, enum model_order order,
                   const char *func, const char *text);
bool model_cas(void *p, unsigned size, void *expected, uint64_t v, enum model_order order, const char *func,
               const char *text);
void model_fence(enum model_order order, const char *func, const char *text);

/* The type of *p without qualifiers; nothing is evaluated. */
#define MODEL_TYPE(p)    __typeof__(__atomic_load_n((p), __ATOMIC_RELAXED))
#define MODEL_WORD(p, v) ((uint64_t)(MODEL_TYPE(p))(v))
/* A block, because a mere cast whose value nobody uses would be warned about. */
#define MODEL_RMW(k, p, v, o)                                                                                \
    ({ (MODEL_TYPE(p)) model_rmw(k, (p), sizeof *(p), MODEL_WORD(p, v), o, __func__, #p); })

#define gort__load(p, order)     ((MODEL_TYPE(p))model_load((p), sizeof *(p), MODEL_##order, __func__, #p))
#define gort__store(p, v, order) model_store((p), sizeof *(p), MODEL_WORD(p, v), MODEL_##order, __func__, #p)
#define gort__xchg(p, v, order)  MODEL_RMW(MODEL_XCHG, p, v, MODEL_##order)
#define gort__add(p, v, order)   MODEL_RMW(MODEL_ADD, p, v, MODEL_##order)
#define gort__sub(p, v, order)   MODEL_RMW(MODEL_SUB, p, v, MODEL_##order)
#define gort__or(p, v, order)    MODEL_RMW(MODEL_OR, p, v, MODEL_##order)
#define gort__and(p, v, order)   MODEL_RMW(MODEL_AND, p, v, MODEL_##order)
#define gort__cas(p, expected, v, order)                                                                     \
    model_cas((p), sizeof *(p), (expected), MODEL_WORD(p, v), MODEL_##order, __func__, #p)
#define gort__fence(order)     model_fence(MODEL_##order, __func__, #order)
#define gort__compiler_fence() ((void)0)

#endif
