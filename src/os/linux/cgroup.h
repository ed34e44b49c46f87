/* SPDX-License-Identifier: MIT */
/* cgroup.h - the CPU limit that control groups put on this process. */
#ifndef GORT_SRC_OS_LINUX_CGROUP_H
#define GORT_SRC_OS_LINUX_CGROUP_H

/* The tightest limit of all groups that this process is in, in CPUs, rounded up; INT_MAX: none.
 * Files are read below root ("" is the real one). Changes errno. */
int gort__cgroup_cpus(const char *root);

#endif
