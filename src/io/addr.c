/* SPDX-License-Identifier: MIT */
/*
 * addr.c - names of networks and addresses as text, both ways, without asking anybody.
 * Threads: any; nothing here parks.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include "base/fatal.h"
#include "base/fmt.h"
#include "io/net.h"

int gort__addr_parse(const char *name, struct gort__net *net)
{
    static const struct {
        const char *name;
        struct gort__net net;
    } known[] = {
        {"tcp", {AF_UNSPEC, SOCK_STREAM}},         {"tcp4", {AF_INET, SOCK_STREAM}},
        {"tcp6", {AF_INET6, SOCK_STREAM}},         {"udp", {AF_UNSPEC, SOCK_DGRAM}},
        {"udp4", {AF_INET, SOCK_DGRAM}},           {"udp6", {AF_INET6, SOCK_DGRAM}},
        {"unix", {AF_UNIX, SOCK_STREAM}},          {"unixgram", {AF_UNIX, SOCK_DGRAM}},
        {"unixpacket", {AF_UNIX, SOCK_SEQPACKET}},
    };
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) {
            *net = known[i].net;
            return 0;
        }
    return -EINVAL;
}

socklen_t gort__addr_len(const struct sockaddr_storage *addr)
{
    return addr->ss_family == AF_INET    ? sizeof(struct sockaddr_in)
           : addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                         : sizeof *addr;
}

/* --- from text -------------------------------------------------------------------------------- */

int gort__addr_split(const char *text, char *buf, size_t size, const char **host, const char **port)
{
    size_t len = strlen(text);
    if (len >= size)
        return -EINVAL;
    memcpy(buf, text, len + 1);
    char *colon = strrchr(buf, ':'), *from = buf;
    if (!colon)
        return -EINVAL;
    *colon = '\0';
    *port = colon + 1;
    if (*buf == '[') {
        if (colon[-1] != ']')
            return -EINVAL;
        colon[-1] = '\0';
        from++;
    } else if (strchr(buf, ':')) {
        return -EINVAL; /* an IPv6 address needs its brackets */
    }
    *host = from;
    return 0;
}

int gort__addr_port(const char *port)
{
    int n = 0;
    if (!*port)
        return -1;
    for (; *port; port++) {
        if (*port < '0' || *port > '9')
            return -1;
        n = n * 10 + (*port - '0');
        if (n > 65535)
            return -2;
    }
    return n;
}

void gort__addr_set_port(struct sockaddr_storage *addr, int port)
{
    if (addr->ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)addr)->sin_port = htons((uint16_t)port);
    else if (addr->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)addr)->sin6_port = htons((uint16_t)port);
}

static int unix_addr(const char *path, struct gort__addr *out)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&out->any;
    size_t len = strlen(path);
    memset(un, 0, sizeof *un);
    un->sun_family = AF_UNIX;
    if (len == 0)
        return -EINVAL;
    bool abstract = *path == '@';
    if (len > sizeof un->sun_path - (abstract ? 0 : 1))
        return -ENAMETOOLONG;
    memcpy(un->sun_path, path, len);
    if (abstract)
        un->sun_path[0] = '\0';
    out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (abstract ? 0 : 1));
    return 1;
}

/* The interface that a link-local address belongs to: its number or its name. 0: there is none of that
 * name. */
static uint32_t zone_of(const char *zone)
{
    uint64_t n = 0;
    size_t len = strspn(zone, "0123456789");
    if (!len || zone[len] || len > 10)
        return if_nametoindex(zone);
    for (size_t i = 0; i < len; i++)
        n = n * 10 + (uint64_t)(zone[i] - '0');
    return n <= UINT32_MAX ? (uint32_t)n : 0;
}

/* "::1", "fe80::1%2", "fe80::1%eth0". False: it is none, perhaps a name. */
static bool v6_of(const char *host, struct sockaddr_in6 *v6)
{
    char plain[INET6_ADDRSTRLEN];
    size_t len = strcspn(host, "%");
    if (len >= sizeof plain)
        return false;
    memcpy(plain, host, len);
    plain[len] = '\0';
    if (inet_pton(AF_INET6, plain, &v6->sin6_addr) != 1)
        return false;
    if (host[len])
        v6->sin6_scope_id = zone_of(host + len + 1);
    return !host[len] || v6->sin6_scope_id;
}

int gort__addr_numeric(const struct gort__net *net, const char *text, struct gort__addr *out)
{
    char buf[300];
    const char *host, *port;
    if (!text)
        return -EINVAL;
    if (net->family == AF_UNIX)
        return unix_addr(text, out);
    int err = gort__addr_split(text, buf, sizeof buf, &host, &port);
    if (err)
        return err;
    int number = gort__addr_port(port);
    if (number == -2)
        return -EINVAL;
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&out->any;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&out->any;
    memset(&out->any, 0, sizeof out->any);
    bool four = *host && inet_pton(AF_INET, host, &v4->sin_addr) == 1;
    if (four) {
        if (net->family == AF_INET6)
            return -EAFNOSUPPORT;
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)number);
    } else if (!*host ? net->family == AF_INET : false) {
        v4->sin_family = AF_INET; /* the any address */
        v4->sin_port = htons((uint16_t)number);
    } else if (!*host || v6_of(host, v6)) {
        if (net->family == AF_INET)
            return -EAFNOSUPPORT;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)number);
    } else {
        return 0;
    }
    if (number < 0)
        return 0; /* the name of a service, or nonsense that the resolver refuses */
    out->len = gort__addr_len(&out->any);
    return 1;
}

struct gort__addr gort__addr_any_v4(const struct gort__addr *any6)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&any6->any;
    struct gort__addr any4 = {.len = sizeof(struct sockaddr_in)};
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&any4.any;
    v4->sin_family = AF_INET;
    v4->sin_port = v6->sin6_port;
    return any4;
}

int gort_addr_parse(const char *name, const char *text, struct sockaddr_storage *out)
{
    GORT_NEED("gort_addr_parse", "network", name);
    GORT_NEED("gort_addr_parse", "text", text);
    GORT_NEED("gort_addr_parse", "place for the address", out);
    struct gort__net net;
    struct gort__addr addr = {0};
    int err = gort__addr_parse(name, &net);
    if (!err)
        err = gort__addr_numeric(&net, text, &addr);
    if (err <= 0)
        return err ? err : -EINVAL;
    *out = addr.any;
    return (int)addr.len;
}

/* --- to text ---------------------------------------------------------------------------------- */

/* RFC 5952: no leading zeros, the longest run of at least two zero groups is "::". */
static void text_of_v6(const uint8_t *bytes, char *out, size_t size)
{
    uint16_t group[8];
    int best = -1, best_len = 1;
    size_t at = 0;
    for (int i = 0; i < 8; i++)
        group[i] = (uint16_t)(bytes[2 * i] << 8 | bytes[2 * i + 1]);
    for (int i = 0, len; i < 8; i += len + 1) {
        for (len = 0; i + len < 8 && group[i + len] == 0; len++)
            ;
        if (len > best_len)
            best = i, best_len = len;
    }
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (memcmp(bytes, mapped, sizeof mapped) == 0) {
        gort__fmt(out, size, "::ffff:%u.%u.%u.%u", bytes[12], bytes[13], bytes[14], bytes[15]);
        return;
    }
    for (int i = 0; i < 8; i++) {
        if (i == best) {
            at += gort__fmt(out + at, size - at, "::");
            i += best_len - 1;
            continue;
        }
        bool first = i == 0 || (best >= 0 && i == best + best_len);
        at += gort__fmt(out + at, size - at, first ? "%x" : ":%x", (unsigned)group[i]);
    }
}

static size_t text_of_unix(const struct sockaddr_un *un, socklen_t len, char *out, size_t size)
{
    size_t n = len > offsetof(struct sockaddr_un, sun_path) ? len - offsetof(struct sockaddr_un, sun_path)
                                                            : 0;
    if (n > sizeof un->sun_path)
        n = sizeof un->sun_path;
    bool abstract = n && !un->sun_path[0];
    if (!abstract)
        n = strnlen(un->sun_path, n);
    if (n >= size)
        n = size - 1;
    memcpy(out, un->sun_path, n);
    if (abstract && n)
        out[0] = '@';
    out[n] = '\0';
    return n;
}

int gort_addr_text(const struct sockaddr *addr, socklen_t len, char *text, size_t size)
{
    GORT_NEED("gort_addr_text", "address", addr);
    GORT_NEED("gort_addr_text", "place for the text", text || !size);
    char all[140], six[48];
    size_t n = 0;
    all[0] = '\0';
    if (len && len < sizeof addr->sa_family)
        return -EAFNOSUPPORT;
    if (len >= sizeof(struct sockaddr_in) && addr->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)addr;
        const uint8_t *b = (const uint8_t *)&v4->sin_addr;
        n = gort__fmt(all, sizeof all, "%u.%u.%u.%u:%u", b[0], b[1], b[2], b[3], ntohs(v4->sin_port));
    } else if (len >= sizeof(struct sockaddr_in6) && addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)addr;
        text_of_v6(v6->sin6_addr.s6_addr, six, sizeof six);
        if (v6->sin6_scope_id)
            n = gort__fmt(all, sizeof all, "[%s%%%u]:%u", six, (unsigned)v6->sin6_scope_id,
                          ntohs(v6->sin6_port));
        else
            n = gort__fmt(all, sizeof all, "[%s]:%u", six, ntohs(v6->sin6_port));
    } else if (len && addr->sa_family == AF_UNIX) {
        n = text_of_unix((const struct sockaddr_un *)(const void *)addr, len, all, sizeof all);
    } else if (len) {
        return -EAFNOSUPPORT;
    }
    if (n >= size)
        return -ENOBUFS;
    memcpy(text, all, n + 1);
    return (int)n;
}

static int text_by(int (*get)(int, struct sockaddr *, socklen_t *), int fd, char *text, size_t size)
{
    struct sockaddr_storage any;
    socklen_t len = sizeof any;
    if (get(fd, (struct sockaddr *)(void *)&any, &len) != 0)
        return -errno;
    return gort_addr_text((struct sockaddr *)(void *)&any, len, text, size);
}

int gort_local_addr(int fd, char *text, size_t size)
{
    GORT_NEED("gort_local_addr", "place for the text", text || !size);
    return text_by(getsockname, fd, text, size);
}

int gort_peer_addr(int fd, char *text, size_t size)
{
    GORT_NEED("gort_peer_addr", "place for the text", text || !size);
    return text_by(getpeername, fd, text, size);
}
