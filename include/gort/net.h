/* SPDX-License-Identifier: MIT */
/*
 * gort/net.h - listen, accept, dial, addresses, and names of hosts.
 *
 * net is "tcp" (IPv4 and IPv6), "tcp4", "tcp6", "udp", "udp4", "udp6", "unix", "unixgram" or "unixpacket".
 * addr is "host:port", "[::1]:port", "[fe80::1%eth0]:port", ":port" (any address), a path, or "@name" for a
 * name in Linux's abstract namespace. Host and port may be names; a lookup makes only the calling goroutine
 * wait.
 *
 * The sockets are close-on-exec and O_NONBLOCK. A library that gets such an fd must be able to handle
 * O_NONBLOCK, with gort_wait_fd to wait for the fd. TCP sockets have TCP_NODELAY set. Functions in this
 * header may park unless a comment says otherwise.
 */
#ifndef GORT_NET_H
#define GORT_NET_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

/* <sys/socket.h> defines these; see gort/io.h. */
struct sockaddr;
struct sockaddr_storage;

/* Options of a socket. A field that is zero means the default. */
typedef struct gort_net_options {
    bool reuse_port;     /* listen: set SO_REUSEPORT, so that several sockets share one address */
    bool delay;          /* do not set TCP_NODELAY */
    bool v6_only;        /* listen: an IPv6 socket does not accept IPv4 connections */
    int backlog;         /* listen: length of the queue of connections; 0: SOMAXCONN */
    int recv_buffer;     /* bytes; 0: the system's default */
    int send_buffer;     /* bytes; 0: the system's default */
    int64_t keepalive;   /* probe a peer that is silent for so many ns; 0: never; listen: for accepted fds */
    const char *local;   /* dial: the local address */
    int64_t reserved[4]; /* must be zero, else -EINVAL */
} gort_net_options;

/*
 * Returns an fd that accepts connections (udp, unixgram: receives datagrams), or -errno. TCP sockets have
 * SO_REUSEADDR set. A unix path must not exist yet (-EADDRINUSE). It remains when the fd is closed: unlink
 * it.
 */
GORT_API GORT_MUST_CHECK int gort_listen(const char *net, const char *addr);
GORT_API GORT_MUST_CHECK int gort_listen_until(const char *net, const char *addr, int64_t deadline);
GORT_API GORT_MUST_CHECK int gort_listen_with(const gort_net_options *options, const char *net,
                                              const char *addr, int64_t deadline);

/*
 * Returns the fd of the next connection, or -errno. After -EMFILE, -ENFILE, -ENOBUFS or -ENOMEM wait a little
 * and call it again. Connections that have ended before they are accepted are skipped.
 */
GORT_API GORT_MUST_CHECK int gort_accept(int fd);
GORT_API GORT_MUST_CHECK int gort_accept_until(int fd, int64_t deadline);

/*
 * Returns a connected fd, or -errno. If the name has several addresses, IPv6 and IPv4 addresses are tried in
 * turns: the next one when an attempt has failed or (except for datagrams) has taken 250 ms. The first
 * attempt that connects wins; if none does, the result is the error of the first address.
 */
GORT_API GORT_MUST_CHECK int gort_dial(const char *net, const char *addr);
GORT_API GORT_MUST_CHECK int gort_dial_until(const char *net, const char *addr, int64_t deadline);
GORT_API GORT_MUST_CHECK int gort_dial_with(const gort_net_options *options, const char *net,
                                            const char *addr, int64_t deadline);

/*
 * Write the local address or the peer's address of a socket to text: "127.0.0.1:80", "[::1]:80", a path,
 * "@abstract", or "" (a unix socket without a name). Return its length; -ENOBUFS: it does not fit into size;
 * -errno. Never park.
 */
GORT_API int gort_local_addr(int fd, char *text, size_t size);
GORT_API int gort_peer_addr(int fd, char *text, size_t size);
/* The same for an address that gort_recvfrom has returned. Never parks. */
GORT_API int gort_addr_text(const struct sockaddr *addr, unsigned int len, char *text, size_t size);
/*
 * Converts text to an address in *out, without looking up names. Returns the length of the address, or
 * -EINVAL. Never parks.
 */
GORT_API int gort_addr_parse(const char *net, const char *text, struct sockaddr_storage *out);

/*
 * Looks up host (NULL: any address) and service (NULL: port 0). Writes up to n addresses (16 at most) to out,
 * the preferred one first. Returns how many; -ENOENT: no such name; -EINVAL: service is no port, or n is 0;
 * -EAGAIN: no name server answers; another -errno.
 */
GORT_API int gort_resolve(const char *host, const char *service, struct sockaddr_storage *out, size_t n);
GORT_API int gort_resolve_until(const char *host, const char *service, struct sockaddr_storage *out, size_t n,
                                int64_t deadline);

/* Options of an open socket. The next four return 0 or -errno and never park. This one sets TCP_NODELAY. */
GORT_API int gort_set_nodelay(int fd, bool on);
/*
 * Probes the peer after it has been silent for idle nanoseconds, rounded up to seconds; 0 turns probing off.
 */
GORT_API int gort_set_keepalive(int fd, int64_t idle);
/*
 * Sets the sizes of the buffers in bytes; 0 leaves one as it is. If setting send fails, receive has been set
 * already.
 */
GORT_API int gort_set_buffers(int fd, int receive, int send);
/*
 * What gort_close does with data that is not sent yet. seconds < 0: the system sends it in the background; 0:
 * the data is dropped and the connection reset; > 0: gort_close waits up to so many seconds until it is sent.
 */
GORT_API int gort_set_linger(int fd, int seconds);

GORT_END_DECLS
#endif
