/* SPDX-License-Identifier: MIT */
/*
 * gort/typed.h - GORT_GO and typed channels: calls whose arguments the compiler checks.
 *
 *     void work(struct job *job, int n, const char *why);
 *
 *     int err = GORT_GO(work, job, 3, "because");
 */
#ifndef GORT_TYPED_H
#define GORT_TYPED_H

#include "base.h"
#include "chan.h"

GORT_BEGIN_DECLS
GORT_API int gort_priv_go(void (*fn)(void), int nargs, uintptr_t a0, uintptr_t a1, uintptr_t a2, uintptr_t a3,
                          uintptr_t a4, uintptr_t a5);
GORT_END_DECLS

/*
 * GORT_GO(f, args...) starts a goroutine that runs f(args...), with up to six pointers or integers as
 * arguments. They are passed in registers and need no memory. Returns 0, or -errno as gort_go does. Never
 * parks. The arguments are evaluated once, in the caller, and checked against the prototype of f more
 * strictly than in a call: a pointer to another type is an error with every compiler. Floating-point and
 * struct arguments or parameters do not compile.
 *
 * In C an argument is passed as a word, without the conversion that a call would make: the value for a
 * parameter of type bool, char or short must be in the range of that type.
 */
#ifndef __cplusplus

/* f counts as an argument, so that the list is never empty, which strict C11 does not allow. */
#define GORT_GO(...) GORT_PRIV_GO_(GORT_PRIV_COUNT(__VA_ARGS__), __VA_ARGS__)

#define GORT_PRIV_COUNT(...)                                                                                 \
    GORT_PRIV_COUNT_(__VA_ARGS__, _many, _many, _many, _many, _many, _many, _many, _many, _many, 6, 5, 4, 3, \
                     2, 1, 0, 0)
#define GORT_PRIV_COUNT_(f, a, b, c, d, e, g, h, i, j, k, l, m, o, p, q, n, ...) n
#define GORT_PRIV_GO_(n, ...)                                                    GORT_PRIV_GO__(n, __VA_ARGS__)
#define GORT_PRIV_GO__(n, ...)                                                   GORT_PRIV_GO##n(__VA_ARGS__)
#define GORT_PRIV_GO_many(...)                                                                               \
    __extension__({                                                                                          \
        _Static_assert(0, "GORT_GO takes up to six arguments");                                              \
        0;                                                                                                   \
    })

/*
 * The macro contains two calls that are compiled but never made. The first has the user's arguments: the
 * compiler compares their number and types with the prototype. C forbids an integer for a pointer, a pointer
 * for an integer and a pointer to another type, but gcc before 14 and clang before 16 only warn; here they
 * are errors. The second call has arguments that convert to every pointer and integer type, but to no
 * floating-point type and no struct. The names are chosen for error messages: gcc quotes the name of the
 * called function, clang the type of the argument.
 */
/* clang-format off */
#define GORT_PRIV_GO(n, f, types, args, anys, ...)                                                           \
    __extension__({                                                                                          \
        _Pragma("GCC diagnostic push")                                                                       \
        _Pragma("GCC diagnostic ignored \"-Wshadow\"")                                                       \
        _Pragma("GCC diagnostic error \"-Wint-conversion\"")                                                 \
        _Pragma("GCC diagnostic error \"-Wincompatible-pointer-types\"")                                     \
        _Pragma("GCC diagnostic error \"-Wpointer-sign\"")                                                   \
        typedef __typeof__(((void)0, (f))) GORT_GO_first_argument;                                           \
        GORT_GO_first_argument GORT_GO_function __attribute__((unused));                                     \
        types                                                                                                \
        (void)sizeof(__typeof__(GORT_GO_function args) *);                                                   \
        _Pragma("GCC diagnostic ignored \"-Wint-conversion\"")                                               \
        GORT_PRIV_CHECK(GORT_GO_function anys);                                                              \
        _Pragma("GCC diagnostic pop")                                                                        \
        gort_priv_go((void (*)(void))(f), n, __VA_ARGS__);                                                   \
    })
/* clang-format on */
#ifdef __clang__
typedef void *GORT_GO_takes_only_pointers_and_integers;
#define GORT_PRIV_ANY         ((GORT_GO_takes_only_pointers_and_integers)0)
#define GORT_PRIV_CHECK(call) (void)sizeof(__typeof__(call) *)
#define GORT_PRIV_TYPE(i, x)  typedef __typeof__(((void)0, (x))) GORT_GO_argument_##i;
#define GORT_PRIV_ARG(i, x)   (GORT_GO_argument_##i)(x)
#else
/*
 * gcc does not convert a pointer to an enum. So this is an integer of one bit with a very large type. As one
 * bit it fits into every integer type; for floating-point types -Wconversion goes by the type and complains.
 * -Wconversion does not look inside sizeof, hence `if (0)`.
 */
__extension__ typedef __int128 GORT_GO_takes_only_pointers_and_integers;
#define GORT_PRIV_ANY (1 & *(GORT_GO_takes_only_pointers_and_integers *)0)
/* clang-format off */
#define GORT_PRIV_CHECK(call)                                                                                \
    _Pragma("GCC diagnostic ignored \"-Wsign-conversion\"")                                                  \
    _Pragma("GCC diagnostic ignored \"-Wunused-value\"")                                                     \
    _Pragma("GCC diagnostic ignored \"-Wunused-result\"")                                                    \
    _Pragma("GCC diagnostic error \"-Wconversion\"")                                                         \
    if (0) call
/* clang-format on */
#define GORT_PRIV_TYPE(i, x)
#define GORT_PRIV_ARG(i, x) x
#endif

/* One argument as a word. Signed integers are sign-extended. */
#define GORT_PRIV_WORD(x)                                                                                    \
    __extension__({                                                                                          \
        _Static_assert(_Generic((x), float : 0, double : 0, long double : 0, default : 1),                   \
                       "GORT_GO takes pointers and integers; pass floating-point values by address");        \
        (uintptr_t)(x);                                                                                      \
    })
#define GORT_PRIV_GO0(f) GORT_PRIV_GO(0, f, , (), (), 0, 0, 0, 0, 0, 0)
#define GORT_PRIV_GO1(f, a)                                                                                  \
    GORT_PRIV_GO(1, f, GORT_PRIV_TYPE(1, a), (GORT_PRIV_ARG(1, a)), (GORT_PRIV_ANY), GORT_PRIV_WORD(a), 0,   \
                 0, 0, 0, 0)
#define GORT_PRIV_GO2(f, a, b)                                                                               \
    GORT_PRIV_GO(2, f, GORT_PRIV_TYPE(1, a) GORT_PRIV_TYPE(2, b),                                            \
                 (GORT_PRIV_ARG(1, a), GORT_PRIV_ARG(2, b)), (GORT_PRIV_ANY, GORT_PRIV_ANY),                 \
                 GORT_PRIV_WORD(a), GORT_PRIV_WORD(b), 0, 0, 0, 0)
#define GORT_PRIV_GO3(f, a, b, c)                                                                            \
    GORT_PRIV_GO(3, f, GORT_PRIV_TYPE(1, a) GORT_PRIV_TYPE(2, b) GORT_PRIV_TYPE(3, c),                       \
                 (GORT_PRIV_ARG(1, a), GORT_PRIV_ARG(2, b), GORT_PRIV_ARG(3, c)),                            \
                 (GORT_PRIV_ANY, GORT_PRIV_ANY, GORT_PRIV_ANY), GORT_PRIV_WORD(a), GORT_PRIV_WORD(b),        \
                 GORT_PRIV_WORD(c), 0, 0, 0)
#define GORT_PRIV_GO4(f, a, b, c, d)                                                                         \
    GORT_PRIV_GO(4, f, GORT_PRIV_TYPE(1, a) GORT_PRIV_TYPE(2, b) GORT_PRIV_TYPE(3, c) GORT_PRIV_TYPE(4, d),  \
                 (GORT_PRIV_ARG(1, a), GORT_PRIV_ARG(2, b), GORT_PRIV_ARG(3, c), GORT_PRIV_ARG(4, d)),       \
                 (GORT_PRIV_ANY, GORT_PRIV_ANY, GORT_PRIV_ANY, GORT_PRIV_ANY), GORT_PRIV_WORD(a),            \
                 GORT_PRIV_WORD(b), GORT_PRIV_WORD(c), GORT_PRIV_WORD(d), 0, 0)
#define GORT_PRIV_GO5(f, a, b, c, d, e)                                                                      \
    GORT_PRIV_GO(5, f,                                                                                       \
                 GORT_PRIV_TYPE(1, a) GORT_PRIV_TYPE(2, b) GORT_PRIV_TYPE(3, c) GORT_PRIV_TYPE(4, d)         \
                     GORT_PRIV_TYPE(5, e),                                                                   \
                 (GORT_PRIV_ARG(1, a), GORT_PRIV_ARG(2, b), GORT_PRIV_ARG(3, c), GORT_PRIV_ARG(4, d),        \
                  GORT_PRIV_ARG(5, e)),                                                                      \
                 (GORT_PRIV_ANY, GORT_PRIV_ANY, GORT_PRIV_ANY, GORT_PRIV_ANY, GORT_PRIV_ANY),                \
                 GORT_PRIV_WORD(a), GORT_PRIV_WORD(b), GORT_PRIV_WORD(c), GORT_PRIV_WORD(d),                 \
                 GORT_PRIV_WORD(e), 0)
#define GORT_PRIV_GO6(f, a, b, c, d, e, g)                                                                   \
    GORT_PRIV_GO(6, f,                                                                                       \
                 GORT_PRIV_TYPE(1, a) GORT_PRIV_TYPE(2, b) GORT_PRIV_TYPE(3, c) GORT_PRIV_TYPE(4, d)         \
                     GORT_PRIV_TYPE(5, e) GORT_PRIV_TYPE(6, g),                                              \
                 (GORT_PRIV_ARG(1, a), GORT_PRIV_ARG(2, b), GORT_PRIV_ARG(3, c), GORT_PRIV_ARG(4, d),        \
                  GORT_PRIV_ARG(5, e), GORT_PRIV_ARG(6, g)),                                                 \
                 (GORT_PRIV_ANY, GORT_PRIV_ANY, GORT_PRIV_ANY, GORT_PRIV_ANY, GORT_PRIV_ANY, GORT_PRIV_ANY), \
                 GORT_PRIV_WORD(a), GORT_PRIV_WORD(b), GORT_PRIV_WORD(c), GORT_PRIV_WORD(d),                 \
                 GORT_PRIV_WORD(e), GORT_PRIV_WORD(g))

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

/* Whether a value of type A converts to a parameter of type P, as in a call. */
template <typename A, typename P> struct fits {
    static char test(P);
    static char (&test(...))[2];
    static A a();
    static const bool value = sizeof test(a()) == 1;
};
/*
 * Converts an argument to the type of its parameter. The second form is for arguments that do not convert: a
 * static_assert elsewhere reports them.
 */
template <typename P, bool fitting> struct parameter {
    static uintptr_t word(P value)
    {
        static_assert(plain<P>::value, "GORT_GO takes pointers and integers; pass anything else by address");
        return uintptr_t(value);
    }
};
template <typename P> struct parameter<P, false> {
    template <typename A> static uintptr_t word(const A &)
    {
        return 0;
    }
};
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

/*
 * Tests whether all bools of a list are true: exactly then the list stays the same when one true is added at
 * the front or at the end.
 */
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
template <typename... P> struct function {
    template <typename... A> static int run(void (*fn)(void), A... args)
    {
        static_assert(same<list<true, fits<A, P>::value...>, list<fits<A, P>::value..., true>>::value,
                      "GORT_GO: an argument does not convert to the type of the function's parameter");
        return start(fn, int(sizeof...(P)), parameter<P, fits<A, P>::value>::word(args)...);
    }
};
/*
 * The second form, for a wrong number of arguments, does nothing, so that spawn's static_assert is the only
 * message.
 */
template <bool number> struct call {
    template <typename... P, typename... A> static int run(void (*fn)(void), A... args)
    {
        return function<P...>::run(fn, args...);
    }
};
template <> struct call<false> {
    template <typename... P, typename... A> static int run(void (*)(void), A...)
    {
        return 0;
    }
};
template <typename R, typename... P, typename... A> int spawn(R (*f)(P...), A... args)
{
    static_assert(sizeof...(P) <= 6, "GORT_GO takes up to six arguments");
    static_assert(sizeof...(P) == sizeof...(A), "GORT_GO: the number of arguments does not fit the function");
    static_assert(same<list<true, not_floating<A>::value...>, list<not_floating<A>::value..., true>>::value,
                  "GORT_GO takes pointers and integers; pass floating-point values by address");
    return call < sizeof...(P) <= 6 &&
           sizeof...(P) == sizeof...(A) > ::template run<P...>(reinterpret_cast<void (*)(void)>(f), args...);
}
/* Chosen when the first argument is not a function. */
template <bool is_function = false> int spawn(...)
{
    static_assert(is_function, "GORT_GO: the first argument is not a function (a lambda needs a + in front)");
    return 0;
}
} // namespace gort_priv

#endif

/*
 * GORT_CHAN_DEFINE(name, T) defines a channel type `name` for values of type T, with inline functions that
 * cost no more than the calls of gort/chan.h and accept only the address of a T. Given another pointer, gcc
 * before 14 and clang before 16 only warn; -Werror=incompatible-pointer-types makes it an error there too.
 * name_try_send and name_try_recv use the deadline GORT_TRY; name_chan returns the plain channel; the other
 * functions are those of gort/chan.h.
 *
 *     name *name_new(size_t cap);               name *name_ref(name *);   void name_unref(name *);
 *     int name_send(name *, T const *);         int name_recv(name *, T *);
 *     int name_try_send(name *, T const *);     int name_try_recv(name *, T *);
 *     int name_send_until(name *, T const *, int64_t);   int name_recv_until(name *, T *, int64_t);
 *     int name_close(name *);                   size_t name_len(const name *), name_cap(const name *);
 *     gort_chan *name_chan(name *);
 *     gort_case name_case_send(name *, T const *), name_case_recv(name *, T *);
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
