/* SPDX-License-Identifier: MIT */
/*
 * gort/typed.h - calls that the compiler checks against the types involved.
 *
 *     static void work(struct job *job, int n, const char *why);
 *     GORT_GO(work, job, 3, "because");
 */
#ifndef GORT_TYPED_H
#define GORT_TYPED_H

#include "base.h"
#include "chan.h"

/*
 * A value for a pointer, a pointer for a value, a pointer to another type: C forbids them, but compilers before gcc 14
 * and clang 16 only warn. Here they are errors, for the whole file that includes this: the checks below rest on it.
 */
#ifndef __cplusplus
#pragma GCC diagnostic error "-Wint-conversion"
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wpointer-sign"
#endif

GORT_BEGIN_DECLS
GORT_API int gort_priv_go(void (*fn)(void), int nargs, uintptr_t a0, uintptr_t a1, uintptr_t a2, uintptr_t a3,
                          uintptr_t a4, uintptr_t a5);
GORT_END_DECLS

/*
 * Starts a goroutine that runs f(args...): up to six pointers or integers, handed over in registers,
 * without memory of their own. 0, or -errno as gort_go. The arguments are evaluated once, here, and
 * checked against f's prototype; floating-point and struct arguments or parameters do not compile.
 * In C the words go over as they are, without the conversion that a call would make: what a bool, char or short
 * parameter gets must be in its range already.
 */
#ifndef __cplusplus

/* The number of arguments counts f, so the list is never empty, which strict C11 does not allow. */
#define GORT_GO(...) GORT_PRIV_GO_(GORT_PRIV_COUNT(__VA_ARGS__), __VA_ARGS__)

#define GORT_PRIV_COUNT(...)                          GORT_PRIV_COUNT_(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0, 0)
#define GORT_PRIV_COUNT_(f, a, b, c, d, e, g, n, ...) n
#define GORT_PRIV_GO_(n, ...)                         GORT_PRIV_GO__(n, __VA_ARGS__)
#define GORT_PRIV_GO__(n, ...)                        GORT_PRIV_GO##n(__VA_ARGS__)

/* Two calls that are never made: the first checks number and types of the arguments; the second passes what converts
 * to any pointer or integer, but to no floating-point type and no struct. */
#define GORT_PRIV_GO(n, f, args, nulls, ...)                                                                 \
    __extension__({                                                                                          \
        (void)sizeof(__typeof__((f)args) *);                                                                 \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wint-conversion\"")                \
            GORT_PRIV_CHECK((f)nulls);                                                                       \
        _Pragma("GCC diagnostic pop") gort_priv_go((void (*)(void))(f), n, __VA_ARGS__);                     \
    })
#ifdef __clang__
#define GORT_PRIV_NULL        ((void *)0)
#define GORT_PRIV_CHECK(call) (void)sizeof(__typeof__(call) *)
#else
/* gcc converts no pointer to an enum. But an integer that is too large for every integer type is a matter of -Woverflow,
 * and one that no floating-point type has the digits for, of -Wconversion; neither is looked for inside sizeof. */
#define GORT_PRIV_NULL (((__int128)1 << 120) + 1)
#define GORT_PRIV_CHECK(call)                                                                                \
    _Pragma("GCC diagnostic ignored \"-Woverflow\"") _Pragma("GCC diagnostic ignored \"-Wunused-value\"")    \
        _Pragma("GCC diagnostic ignored \"-Wsign-conversion\"")                                              \
            _Pragma("GCC diagnostic ignored \"-Wunused-result\"")                                            \
                _Pragma("GCC diagnostic error \"-Wconversion\"") if (0) call
#endif

/* The word for one argument. Integers are widened with their sign. */
#define GORT_PRIV_WORD(x)                                                                                    \
    __extension__({                                                                                          \
        _Static_assert(_Generic((x), float : 0, double : 0, long double : 0, default : 1),                   \
                       "GORT_GO takes pointers and integers; pass floating-point values by address");        \
        (uintptr_t)(x);                                                                                      \
    })
#define GORT_PRIV_GO0(f)    GORT_PRIV_GO(0, f, (), (), 0, 0, 0, 0, 0, 0)
#define GORT_PRIV_GO1(f, a) GORT_PRIV_GO(1, f, (a), (GORT_PRIV_NULL), GORT_PRIV_WORD(a), 0, 0, 0, 0, 0)
#define GORT_PRIV_GO2(f, a, b)                                                                               \
    GORT_PRIV_GO(2, f, (a, b), (GORT_PRIV_NULL, GORT_PRIV_NULL), GORT_PRIV_WORD(a), GORT_PRIV_WORD(b), 0, 0, \
                 0, 0)
#define GORT_PRIV_GO3(f, a, b, c)                                                                            \
    GORT_PRIV_GO(3, f, (a, b, c), (GORT_PRIV_NULL, GORT_PRIV_NULL, GORT_PRIV_NULL), GORT_PRIV_WORD(a),       \
                 GORT_PRIV_WORD(b), GORT_PRIV_WORD(c), 0, 0, 0)
#define GORT_PRIV_GO4(f, a, b, c, d)                                                                         \
    GORT_PRIV_GO(4, f, (a, b, c, d), (GORT_PRIV_NULL, GORT_PRIV_NULL, GORT_PRIV_NULL, GORT_PRIV_NULL),       \
                 GORT_PRIV_WORD(a), GORT_PRIV_WORD(b), GORT_PRIV_WORD(c), GORT_PRIV_WORD(d), 0, 0)
#define GORT_PRIV_GO5(f, a, b, c, d, e)                                                                      \
    GORT_PRIV_GO(5, f, (a, b, c, d, e),                                                                      \
                 (GORT_PRIV_NULL, GORT_PRIV_NULL, GORT_PRIV_NULL, GORT_PRIV_NULL, GORT_PRIV_NULL),           \
                 GORT_PRIV_WORD(a), GORT_PRIV_WORD(b), GORT_PRIV_WORD(c), GORT_PRIV_WORD(d),                 \
                 GORT_PRIV_WORD(e), 0)
#define GORT_PRIV_GO6(f, a, b, c, d, e, g)                                                                   \
    GORT_PRIV_GO(                                                                                            \
        6, f, (a, b, c, d, e, g),                                                                            \
        (GORT_PRIV_NULL, GORT_PRIV_NULL, GORT_PRIV_NULL, GORT_PRIV_NULL, GORT_PRIV_NULL, GORT_PRIV_NULL),    \
        GORT_PRIV_WORD(a), GORT_PRIV_WORD(b), GORT_PRIV_WORD(c), GORT_PRIV_WORD(d), GORT_PRIV_WORD(e),       \
        GORT_PRIV_WORD(g))

#else /* C++ */

#define GORT_GO(...) gort_priv::spawn(__VA_ARGS__)

namespace gort_priv
{
template <typename T> struct plain {
    static const bool value = __is_enum(T);
};
template <typename T> struct plain<T *> {
    static const bool value = true;
};
#define GORT_PRIV_PLAIN(T)                                                                                   \
    template <> struct plain<T> {                                                                            \
        static const bool value = true;                                                                      \
    };
GORT_PRIV_PLAIN(bool)
GORT_PRIV_PLAIN(char)
GORT_PRIV_PLAIN(signed char)
GORT_PRIV_PLAIN(unsigned char)
GORT_PRIV_PLAIN(wchar_t)
GORT_PRIV_PLAIN(short)
GORT_PRIV_PLAIN(unsigned short)
GORT_PRIV_PLAIN(int)
GORT_PRIV_PLAIN(unsigned)
GORT_PRIV_PLAIN(long)
GORT_PRIV_PLAIN(unsigned long)
GORT_PRIV_PLAIN(long long)
GORT_PRIV_PLAIN(unsigned long long)
#undef GORT_PRIV_PLAIN

/* Converts to the parameter's type first, as the call would. */
template <typename P> struct param {
    typedef P type;
};
template <typename P> uintptr_t word(typename param<P>::type value)
{
    static_assert(plain<P>::value, "GORT_GO takes pointers and integers; pass anything else by address");
    return uintptr_t(value);
}
template <typename A> struct not_floating {
    static const bool value = true;
};
template <> struct not_floating<float> {
    static const bool value = false;
};
template <> struct not_floating<double> {
    static const bool value = false;
};
template <> struct not_floating<long double> {
    static const bool value = false;
};

/* All are true if a list with one more of it at the front is the same as with one more at the end. */
template <bool...> struct list {
};
template <typename A, typename B> struct same {
    static const bool value = false;
};
template <typename A> struct same<A, A> {
    static const bool value = true;
};

inline int start(void (*fn)(void), int n, uintptr_t a = 0, uintptr_t b = 0, uintptr_t c = 0, uintptr_t d = 0,
                 uintptr_t e = 0, uintptr_t g = 0)
{
    return gort_priv_go(fn, n, a, b, c, d, e, g);
}
template <typename R, typename... P, typename... A> int spawn(R (*f)(P...), A... args)
{
    static_assert(sizeof...(P) <= 6, "GORT_GO takes up to six arguments");
    static_assert(sizeof...(P) == sizeof...(A), "GORT_GO: the number of arguments does not fit the function");
    static_assert(same<list<true, not_floating<A>::value...>, list<not_floating<A>::value..., true>>::value,
                  "GORT_GO takes pointers and integers");
    return start(reinterpret_cast<void (*)(void)>(f), int(sizeof...(P)), word<P>(args)...);
}
} // namespace gort_priv

#endif

/*
 * GORT_CHAN_DEFINE(name, T) makes `name` a type of channels that carry T, with inline functions that cost no more than
 * the plain calls and take nothing but the address of a T:
 *
 *     name *name_new(size_t cap);               name *name_ref(name *);   void name_unref(name *);
 *     int name_send(name *, T const *);         int name_recv(name *, T *);
 *     int name_try_send(name *, T const *);     int name_try_recv(name *, T *);
 *     int name_send_until(name *, T const *, int64_t);   int name_recv_until(name *, T *, int64_t);
 *     int name_close(name *);   size_t name_len(const name *), name_cap(const name *);   gort_chan *name_chan(name *);
 *     gort_case name_case_send(name *, T const *), name_case_recv(name *, T *);           for gort_select
 */
#define GORT_PRIV_INLINE static inline __attribute__((unused))
#define GORT_CHAN_DEFINE(name, T)                                                                            \
    typedef struct name name;                                                                                \
    GORT_PRIV_INLINE gort_chan *name##_chan(name *ch)                                                        \
    {                                                                                                        \
        return GORT_PRIV_CAST(gort_chan *, ch);                                                              \
    }                                                                                                        \
    GORT_PRIV_INLINE name *name##_new(size_t cap)                                                            \
    {                                                                                                        \
        return GORT_PRIV_CAST(name *, gort_chan_new(sizeof(T), cap));                                        \
    }                                                                                                        \
    GORT_PRIV_INLINE name *name##_ref(name *ch)                                                              \
    {                                                                                                        \
        return GORT_PRIV_CAST(name *, gort_chan_ref(name##_chan(ch)));                                       \
    }                                                                                                        \
    GORT_PRIV_INLINE void name##_unref(name *ch)                                                             \
    {                                                                                                        \
        gort_chan_unref(name##_chan(ch));                                                                    \
    }                                                                                                        \
    GORT_PRIV_INLINE int name##_send(name *ch, T const *value)                                               \
    {                                                                                                        \
        return gort_chan_send(name##_chan(ch), value);                                                       \
    }                                                                                                        \
    GORT_PRIV_INLINE int name##_send_until(name *ch, T const *value, int64_t deadline)                       \
    {                                                                                                        \
        return gort_chan_send_until(name##_chan(ch), value, deadline);                                       \
    }                                                                                                        \
    GORT_PRIV_INLINE int name##_try_send(name *ch, T const *value)                                           \
    {                                                                                                        \
        return gort_chan_send_until(name##_chan(ch), value, GORT_TRY);                                       \
    }                                                                                                        \
    GORT_PRIV_INLINE int name##_recv(name *ch, T *value)                                                     \
    {                                                                                                        \
        return gort_chan_recv(name##_chan(ch), value);                                                       \
    }                                                                                                        \
    GORT_PRIV_INLINE int name##_recv_until(name *ch, T *value, int64_t deadline)                             \
    {                                                                                                        \
        return gort_chan_recv_until(name##_chan(ch), value, deadline);                                       \
    }                                                                                                        \
    GORT_PRIV_INLINE int name##_try_recv(name *ch, T *value)                                                 \
    {                                                                                                        \
        return gort_chan_recv_until(name##_chan(ch), value, GORT_TRY);                                       \
    }                                                                                                        \
    GORT_PRIV_INLINE int name##_close(name *ch)                                                              \
    {                                                                                                        \
        return gort_chan_close(name##_chan(ch));                                                             \
    }                                                                                                        \
    GORT_PRIV_INLINE size_t name##_len(const name *ch)                                                       \
    {                                                                                                        \
        return gort_chan_len(GORT_PRIV_CAST_CONST(gort_chan *, ch));                                         \
    }                                                                                                        \
    GORT_PRIV_INLINE size_t name##_cap(const name *ch)                                                       \
    {                                                                                                        \
        return gort_chan_cap(GORT_PRIV_CAST_CONST(gort_chan *, ch));                                         \
    }                                                                                                        \
    GORT_PRIV_INLINE gort_case name##_case_send(name *ch, T const *value)                                    \
    {                                                                                                        \
        return gort_priv_case_send(name##_chan(ch), value);                                                  \
    }                                                                                                        \
    GORT_PRIV_INLINE gort_case name##_case_recv(name *ch, T *value)                                          \
    {                                                                                                        \
        return gort_priv_case_recv(name##_chan(ch), value);                                                  \
    }                                                                                                        \
    struct gort_priv_semicolon

#endif
