/* SPDX-License-Identifier: MIT */
/*
 * addr.c - addresses: text to address and back, and any bytes as an address.
 * Covers: src/io/addr.c
 *
 * The first byte chooses the kind of network. What parses must print, and what was printed must parse to the
 * same again.
 */
#include <gort.h>

#include <errno.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "io/net.h"

static const char *const nets[] = {"tcp",  "tcp4", "tcp6",     "udp",        "udp4",
                                   "udp6", "unix", "unixgram", "unixpacket", "nonsense"};

static void try_text(const char *net, const char *text)
{
    struct sockaddr_storage a, b;
    char first[256], second[256], small[8];
    int len = gort_addr_parse(net, text, &a);
    if (len < 0)
        return;
    CHECK_LE(len, (int)sizeof a);
    int n = gort_addr_text((struct sockaddr *)&a, (unsigned)len, first, sizeof first);
    CHECK_MSG(n >= 0, "%s '%s': %d", net, text, n);
    CHECK_EQ(n, strlen(first) > (size_t)n ? -1 : n);
    int cut = gort_addr_text((struct sockaddr *)&a, (unsigned)len, small, sizeof small);
    CHECK(n < (int)sizeof small ? cut == n : cut == -ENOBUFS);
    if ((size_t)n != strlen(first))
        return; /* an abstract unix name with a zero in it */
    CHECK_MSG(gort_addr_parse(net, first, &b) == len, "%s '%s' is '%s'", net, text, first);
    CHECK_EQ(gort_addr_text((struct sockaddr *)&b, (unsigned)len, second, sizeof second), n);
    CHECK_STR(first, second);
}

static void try_split(const char *text)
{
    char buf[64];
    const char *host = NULL, *port = NULL;
    if (gort__addr_split(text, buf, sizeof buf, &host, &port) == 0) {
        CHECK(host >= buf && host < buf + sizeof buf);
        CHECK(port >= buf && port < buf + sizeof buf);
        CHECK_LT(strlen(host) + strlen(port), sizeof buf);
    }
}

FUZZ("addr")
{
    char text[256];
    if (!size || size > 1000)
        return 0;
    const char *net = nets[data[0] % (sizeof nets / sizeof *nets)];
    /* As an address that the kernel might have given. */
    gort_addr_text((const struct sockaddr *)(const void *)(data), (unsigned)size, text, sizeof text);
    char *copy = malloc(size);
    CHECK(copy);
    memcpy(copy, data + 1, size - 1);
    copy[size - 1] = '\0';
    try_text(net, copy);
    try_split(copy);
    free(copy);
    return 0;
}
