/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - the files that limit the CPUs, in a made-up machine: which groups, which mounts, which limits,
 * separated by a byte 1. However they read, there is at least one CPU and no more than the affinity allows.
 * Covers: src/os/linux/cgroup.c src/os/linux/cpus.c
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "os/os.h"

static char root[64]; /* in memory if possible: six files an input */
static const char *const files[] = {"/proc/self/cgroup",
                                    "/proc/self/mountinfo",
                                    "/sys/fs/cgroup/cpu.max",
                                    "/sys/fs/cgroup/a/cpu.max",
                                    "/sys/fs/cgroup/a/cpu.cfs_quota_us",
                                    "/sys/fs/cgroup/a/cpu.cfs_period_us"};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void clean_up(void)
{
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_root(void)
{
    static const char *const dirs[] = {"/proc",   "/proc/self",     "/sys",
                                       "/sys/fs", "/sys/fs/cgroup", "/sys/fs/cgroup/a"};
    char path[128];
    snprintf(root, sizeof root, "%s/gort-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(root));
    atexit(clean_up);
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s%s", root, dirs[i]);
        CHECK_EQ(mkdir(path, 0700), 0);
    }
}

static void put(const char *name, const uint8_t *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s%s", root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK_GE(fd, 0);
    CHECK_EQ(write(fd, data, size), size);
    close(fd);
}

FUZZ("cgroup")
{
    if (!root[0])
        make_root();
    for (int i = 0; i < 6; i++) {
        const uint8_t *end = size ? memchr(data, 1, size) : NULL;
        size_t n = end ? (size_t)(end - data) : size;
        put(files[i], data, n);
        data += n + (end != NULL);
        size -= n + (end != NULL);
    }
    int n = gort__os_cpus_below(root, 64);
    CHECK(n >= 1 && n <= 64);
    return 0;
}
