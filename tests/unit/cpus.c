/* SPDX-License-Identifier: MIT */
/*
 * cpus.c - how many CPUs we may use, asked in made-up machines: trees of files below a temporary
 * directory that stand for /proc and /sys.
 * Covers: src/os/linux/cpus.c src/os/linux/cgroup.c
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"
#include "test.h"

#define V2_MOUNT "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNT "35 25 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"

static char root[] = "/tmp/gort-cpus-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void clean_up(void)
{
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put_bytes(const char *path, const char *text, size_t len)
{
    char full[2 * PATH_MAX];
    if (strstr(root, "XXXXXX")) {
        CHECK(mkdtemp(root));
        atexit(clean_up);
    }
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        CHECK(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK_GE(fd, 0);
    CHECK_EQ(write(fd, text, len), len);
    close(fd);
}

static void put(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

/* The two files that say where we are. */
static void machine(const char *cgroup, const char *mountinfo)
{
    put("/proc/self/cgroup", cgroup);
    put("/proc/self/mountinfo", mountinfo);
}

static int cpus(int affinity)
{
    errno = 4711;
    int n = gort__os_cpus_below(root, affinity);
    CHECK_EQ(errno, 4711);
    return n;
}

TEST(no_files)
{
    put("/empty", "");
    CHECK_EQ(cpus(8), 8);
    CHECK_EQ(cpus(0), 1);
    machine("", "");
    CHECK_EQ(cpus(8), 8);
}

TEST(real_machine)
{
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    errno = 4711;
    int n = gort__os_cpus();
    CHECK_EQ(errno, 4711);
    CHECK_GE(n, 1);
    CHECK_LE(n, CPU_COUNT(&set));
    CHECK_EQ(gort__os_cpus_below("/", n), n);
}

TEST(follows_affinity)
{
    cpu_set_t set, one;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &set))
            CPU_SET(i, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_EQ(gort__os_cpus(), 1);
}

TEST(v2_own_group)
{
    machine("0::/a/b\n", V2_MOUNT);
    put("/sys/fs/cgroup/a/b/cpu.max", "200000 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    CHECK_EQ(cpus(8), 2);
    CHECK_EQ(cpus(1), 1);
}

TEST(v2_rounds_up)
{
    machine("0::/a\n", V2_MOUNT);
    const struct {
        const char *max;
        int cpus;
    } cases[] = {
        {"250000 100000\n", 3},
        {"200001 100000\n", 3},
        {"200000 100000", 2},
        {"1000 100000\n", 1},
        {"50000 25000\n", 2},
        {"100000 1000000\n", 1},
        {"18446744073709551000 1\n", 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("/sys/fs/cgroup/a/cpu.max", cases[i].max);
        CHECK_MSG(cpus(64) == cases[i].cpus, "%s gives %d", cases[i].max, cpus(64));
    }
}

TEST(v2_tightest_ancestor)
{
    machine("0::/a/b/c\n", V2_MOUNT);
    put("/sys/fs/cgroup/a/b/c/cpu.max", "500000 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "300000 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "400000 100000\n");
    CHECK_EQ(cpus(8), 3);
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    CHECK_EQ(cpus(8), 1);
    put("/sys/fs/cgroup/a/x/cpu.max", "1000 100000\n"); /* somebody else's */
    put("/sys/fs/cpu.max", "1000 100000\n");            /* above the mount point */
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK_EQ(cpus(8), 2);
}

TEST(v2_group_is_gone)
{
    machine("0::/a/b (deleted)\n", V2_MOUNT);
    put("/sys/fs/cgroup/a/cpu.max", "200000 100000\n");
    CHECK_EQ(cpus(8), 2);
}

TEST(v2_bad_files)
{
    machine("0::/a\n", V2_MOUNT);
    const char *bad[] = {
        "",
        "\n",
        "max\n",
        "max 100000\n",
        "200000\n",
        "200000 \n",
        "200000 0\n",
        "0 100000\n",
        "-1 100000\n",
        "200000 100000 7\n",
        "2e5 100000\n",
        "99999999999999999999999 100000\n",
        "200000 99999999999999999999999\n",
        "200000  100000\n",
        "000000000000000000000000000000000000000000000000000000000000200000 100000\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put("/sys/fs/cgroup/a/cpu.max", bad[i]);
        CHECK_MSG(cpus(8) == 8, "[%s] gives %d", bad[i], cpus(8));
    }
    put_bytes("/sys/fs/cgroup/a/cpu.max", "200000 100000\0\n", 15);
    CHECK_EQ(cpus(8), 2); /* harmless, but must not read past the end */
}

TEST(v2_file_is_a_directory)
{
    machine("0::/a\n", V2_MOUNT);
    put("/sys/fs/cgroup/a/cpu.max/x", "");
    put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
    CHECK_EQ(cpus(8), 3);
}

TEST(v1_quota)
{
    machine("7:memory:/m\n4:cpu,cpuacct:/a/b\n1:name=systemd:/s\n", V1_MOUNT);
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(cpus(8), 8);
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n");
    CHECK_EQ(cpus(8), 8); /* no period */
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "50000\n");
    CHECK_EQ(cpus(8), 3);
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.max", "100000 100000\n"); /* not of this version */
    CHECK_EQ(cpus(8), 3);
}

TEST(v1_only_the_cpu_controller)
{
    machine("5:cpuset:/a\n4:cpuacct:/a\n", "35 25 0:30 / /cg/cpuset rw - cgroup cgroup rw,cpuset,cpuacct\n");
    put("/cg/cpuset/a/cpu.cfs_quota_us", "100000\n");
    put("/cg/cpuset/a/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(cpus(8), 8);
}

TEST(hybrid)
{
    machine("4:cpu,cpuacct:/one\n0::/two\n",
            V1_MOUNT "36 25 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_quota_us", "500000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(cpus(8), 5);
    put("/sys/fs/cgroup/unified/two/cpu.max", "400000 100000\n");
    CHECK_EQ(cpus(8), 4);
    put("/sys/fs/cgroup/unified/one/cpu.max", "100000 100000\n"); /* our name in the other hierarchy */
    CHECK_EQ(cpus(8), 4);
}

TEST(container_mount_of_own_group)
{
    machine("4:cpu,cpuacct:/docker/abc\n",
            "35 25 0:30 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "100000\n"); /* a child that looks like us */
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(cpus(8), 2);
}

TEST(container_mount_of_an_ancestor)
{
    machine("0::/docker/abc/x/y\n", "30 25 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
    put("/sys/fs/cgroup/x/y/cpu.max", "300000 100000\n");
    CHECK_EQ(cpus(8), 3);
    put("/sys/fs/cgroup/x/cpu.max", "200000 100000\n");
    CHECK_EQ(cpus(8), 2);
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    CHECK_EQ(cpus(8), 1);
}

TEST(mount_of_another_group)
{
    machine("0::/docker/abcd\n", "30 25 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    put("/sys/fs/cgroup/d/cpu.max", "100000 100000\n");
    CHECK_EQ(cpus(8), 8);
}

TEST(namespace_root)
{
    machine("0::/\n", V2_MOUNT);
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK_EQ(cpus(8), 2);
}

TEST(namespace_mount_from_outside)
{
    /* The mount point is two levels above the namespace's root: an ancestor, but the way is not known. */
    machine("0::/x\n", "30 25 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
    put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
    put("/sys/fs/cgroup/x/cpu.max", "100000 100000\n");
    CHECK_EQ(cpus(8), 3);
}

TEST(namespace_group_outside)
{
    machine("0::/../other/x\n", V2_MOUNT);
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    put("/sys/fs/other/x/cpu.max", "100000 100000\n");
    CHECK_EQ(cpus(8), 8);
    machine("0::/../other/x\n", "30 25 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
    put("/sys/fs/cgroup/other/x/cpu.max", "500000 100000\n");
    put("/sys/fs/cgroup/cpu.max", "600000 100000\n");
    CHECK_EQ(cpus(8), 5);
    machine("0::/../../x\n", "30 25 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
    CHECK_EQ(cpus(8), 8);
}

TEST(escaped_names)
{
    machine("0::/my group/tab\there/back\\slash\n",
            "30 25 0:26 /my\\040group /mnt/c\\040g\\134x rw - cgroup2 cgroup rw\n");
    put("/mnt/c g\\x/tab\there/back\\slash/cpu.max", "300000 100000\n");
    CHECK_EQ(cpus(8), 3);
    put("/mnt/c g\\x/tab\there/cpu.max", "200000 100000\n");
    CHECK_EQ(cpus(8), 2);
}

TEST(colons_in_names)
{
    machine("0::/a:b:c\n", V2_MOUNT);
    put("/sys/fs/cgroup/a:b:c/cpu.max", "300000 100000\n");
    CHECK_EQ(cpus(8), 3);
}

TEST(fields_of_mountinfo)
{
    put("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
    const struct {
        const char *line;
        int cpus;
    } cases[] = {
        {"30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw", 3}, /* no tags, no end */
        {"30 25 0:26 / /sys/fs/cgroup rw shared:1 master:2 unbindable - cgroup2 c rw\n", 3}, /* several */
        {"30 25 0:26 / /sys/fs/cgroup rw -  - cgroup2 rw\n", 8}, /* no such type */
        {"30 25 0:26 / /sys/fs/cgroup rw - cgroup2  rw\n", 3},   /* empty source */
        {"30 25 0:26 / /sys/fs/cgroup rw - cgroup2\n", 8},       /* cut off */
        {"30 25 0:26 / /sys/fs/cgroup\n", 8},
        {"30\n", 8},
        {" \n\n", 8},
        {"30 25 0:26 / /sys/fs/cgroup rw - tmpfs cgroup2 rw\n", 8},
        {"30 25 0:26 / /sys/fs/cgroup rw - cgroup cgroup rw,cpu\n", 8}, /* v1, where we have no group */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        machine("0::/a\n", cases[i].line);
        CHECK_MSG(cpus(8) == cases[i].cpus, "%s gives %d", cases[i].line, cpus(8));
    }
}

TEST(mount_point_is_root)
{
    machine("0::/a\n", "30 25 0:26 / / rw - cgroup2 cgroup rw\n");
    put("/a/cpu.max", "300000 100000\n");
    CHECK_EQ(cpus(8), 3);
    put("/cpu.max", "200000 100000\n");
    CHECK_EQ(cpus(8), 2);
}

TEST(long_mountinfo)
{
    /* Many lines, one of them far longer than any buffer (overlayfs writes such), then ours. */
    static char text[300 * 1024];
    size_t n = 0;
    for (int i = 0; i < 1000; i++)
        n += (size_t)sprintf(text + n, "%d 25 0:%d / /run/mount/%d rw,relatime shared:%d - tmpfs tmpfs rw\n",
                             i, i, i, i);
    n += (size_t)sprintf(text + n, "90 25 0:9 / /sys/fs/cgroup rw - cgroup2 overlay rw,lowerdir=");
    memset(text + n, 'x', 100000);
    n += 100000;
    text[n++] = '\n';
    n += (size_t)sprintf(text + n, "%s", V2_MOUNT);
    put("/proc/self/cgroup", "0::/a\n");
    put_bytes("/proc/self/mountinfo", text, n);
    put("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
    CHECK_EQ(cpus(8), 3);
}

TEST(long_paths)
{
    /* Groups whose path does not fit are left alone; one that just fits does not overflow anything. */
    static char line[3 * PATH_MAX];
    for (size_t len = PATH_MAX - 64; len <= PATH_MAX + 4; len++) {
        memset(line, 'y', sizeof line - 1);
        memcpy(line, "0::/", strlen("0::/"));
        line[4 + len] = '\n';
        line[5 + len] = 0;
        machine(line, V2_MOUNT);
        put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
        int n = cpus(8);
        CHECK(n == 8 || n == 3);
    }
}

TEST(garbage)
{
    uint64_t state = test_seed();
    static const char letters[] = "0123:/.,\\-= \n\t40cpugrom2ax";
    char text[2][400];
    put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
    for (long i = test_scaled(2000, 100); i > 0; i--) {
        for (int f = 0; f < 2; f++) {
            size_t n = test_random(&state) % sizeof text[0];
            for (size_t k = 0; k < n; k++)
                text[f][k] = letters[test_random(&state) % (sizeof letters - 1)];
            put_bytes(f ? "/proc/self/mountinfo" : "/proc/self/cgroup", text[f], n);
        }
        int n = cpus(8);
        CHECK(n >= 1 && n <= 8);
    }
}
