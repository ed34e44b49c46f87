/* SPDX-License-Identifier: MIT */
/* net.h - names of networks and addresses, for the files of this room. */
#ifndef GORT_SRC_IO_NET_H
#define GORT_SRC_IO_NET_H

#include <sys/socket.h>

#include <gort/net.h>

#include "io/io.h"

#define GORT__ADDRS 16 /* addresses of a name that are looked at */

struct gort__net {
    int family, type; /* AF_UNSPEC: both families of IP */
};

struct gort__addr {
    socklen_t len;
    struct sockaddr_storage any;
};

/* --- addr.c --- */
int gort__addr_parse(const char *name, struct gort__net *net); /* 0 or -EINVAL */
/* "host:port" into its parts, copied into buf. 0 or -EINVAL. */
int gort__addr_split(const char *text, char *buf, size_t size, const char **host, const char **port);
/* The number of a port; -1: it is the name of a service; -2: it is too large. */
int gort__addr_port(const char *port);
/* Without names. 1: done; 0: there is a name in it; -errno. */
int gort__addr_numeric(const struct gort__net *net, const char *text, struct gort__addr *out);
/* A port as a number; -1: it is a name; -2: it is too large. */
int gort__addr_port(const char *port);
void gort__addr_set_port(struct sockaddr_storage *addr, int port);
/* Any address of IPv4, with the port of the one of IPv6. */
struct gort__addr gort__addr_any_v4(const struct gort__addr *any6);
socklen_t gort__addr_len(const struct sockaddr_storage *addr);

/* --- dns.c --- */
/* All addresses of text in net, looked up if need be. How many, or -errno. May park. */
int gort__dns_find(const struct gort__net *net, const char *text, struct gort__addr *out, int n,
                   int64_t deadline);

/* --- listen.c --- */
/* A socket for an address, with the options that must be set early. fd or -errno. */
int gort__listen_socket_make(const struct gort__net *net, int family, const gort_net_options *options,
                             bool listens);
uint32_t gort__listen_socket_kind(const struct gort__net *net);

#endif
