/* SPDX-License-Identifier: MIT */
/*
 * gort/net.h - sockets by name: listen, accept, dial, addresses, host names.
 *
 * net is "tcp" (both families), "tcp4", "tcp6", "udp", "udp4", "udp6", "unix", "unixgram" or "unixpacket". addr is
 * "host:port", "[::1]:port", "[fe80::1%eth0]:port", ":port" (any address), a path, or "@name" for an abstract unix name (Linux). Hosts and
 * services may be names; looking them up blocks nobody else. Sockets are close-on-exec; TCP has TCP_NODELAY set.
 * The plain form waits for ever, `_until` until a deadline. They may park unless they say otherwise.
 */
#ifndef GORT_NET_H
#define GORT_NET_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

/* <sys/socket.h> defines these; see gort/io.h. */
struct sockaddr;
struct sockaddr_storage;

/* All zero: the default. */
typedef struct gort_net_options {
    bool reuse_port;   /* several sockets share one address (SO_REUSEPORT); listen only */
    bool delay;        /* leave Nagle's algorithm on */
    bool v6_only;      /* a listening socket for :: does not take IPv4 */
    int backlog;       /* of a listening socket; 0: SOMAXCONN */
    int recv_buffer;   /* bytes; 0: the system's choice */
    int send_buffer;   /* bytes; 0: the system's choice */
    int64_t keepalive; /* probe a silent peer after this long; 0: never. Listen: for what it accepts */
    const char *local; /* dial from this address */
    int64_t reserved[4];
} gort_net_options;

/* An fd that accepts connections, or (udp, unixgram) receives datagrams; -errno. SO_REUSEADDR is set. A path
 * must be free (-EADDRINUSE), and stays when the fd is closed: unlink it. */
GORT_API GORT_MUST_CHECK int gort_listen(const char *net, const char *addr);
GORT_API GORT_MUST_CHECK int gort_listen_until(const char *net, const char *addr, int64_t deadline);
GORT_API GORT_MUST_CHECK int gort_listen_with(const gort_net_options *options, const char *net,
                                              const char *addr, int64_t deadline);

/* The next connection. -EMFILE and the like are returned, and the next call may work: wait a little before it.
 * Connections that end before they are accepted are skipped. */
GORT_API GORT_MUST_CHECK int gort_accept(int fd);
GORT_API GORT_MUST_CHECK int gort_accept_until(int fd, int64_t deadline);

/* A connected fd. A name with several addresses: the next is tried when one has failed or taken 250 ms, IPv6 and
 * IPv4 in turns; the first that connects wins. The error is that of the first address. */
GORT_API GORT_MUST_CHECK int gort_dial(const char *net, const char *addr);
GORT_API GORT_MUST_CHECK int gort_dial_until(const char *net, const char *addr, int64_t deadline);
GORT_API GORT_MUST_CHECK int gort_dial_with(const gort_net_options *options, const char *net,
                                            const char *addr, int64_t deadline);

/* "127.0.0.1:80", "[::1]:80", a path, "@abstract", "" (unnamed). Its length, -ENOBUFS when it does not fit, -errno. Never
 * park. */
GORT_API int gort_local_addr(int fd, char *text, size_t size);
GORT_API int gort_peer_addr(int fd, char *text, size_t size);
/* The same for an address from gort_recvfrom. */
GORT_API int gort_addr_text(const struct sockaddr *addr, unsigned int len, char *text, size_t size);
/* The other way, without looking up names: the length of the address in *out, or -EINVAL. Never parks. */
GORT_API int gort_addr_parse(const char *net, const char *text, struct sockaddr_storage *out);

/* Up to n addresses of host (NULL: any) and service (NULL: 0), the preferred first. How many; -ENOENT: no such name; -EINVAL: no
 * port, or n is 0;
 * -EAGAIN: the name servers do not answer; -errno. */
GORT_API int gort_resolve(const char *host, const char *service, struct sockaddr_storage *out, size_t n);
GORT_API int gort_resolve_until(const char *host, const char *service, struct sockaddr_storage *out, size_t n,
                                int64_t deadline);

/* Options of a socket. 0 or -errno. Never park. */
GORT_API int gort_set_nodelay(int fd, bool on);
/* Probes a peer that is silent for idle; 0 turns it off. */
GORT_API int gort_set_keepalive(int fd, int64_t idle);
/* Bytes; 0 leaves one as it is. When the second fails, the first has been set. */
GORT_API int gort_set_buffers(int fd, int receive, int send);
/* How a close treats data that is not sent yet: < 0 as the system does, 0 resets the connection, > 0 waits for it so long. */
GORT_API int gort_set_linger(int fd, int seconds);

GORT_END_DECLS
#endif
