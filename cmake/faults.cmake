# SPDX-License-Identifier: MIT
#
# The calls that a test with `Build: faults` can make fail: tests/lib/fault.c has a __wrap_ function for each.

set(GORT_FAULT_CALLS
    mmap munmap madvise mprotect
    pthread_create pthread_key_create pthread_setspecific pthread_atfork
    syscall
    epoll_create1 epoll_ctl epoll_wait eventfd
    socket accept4 setsockopt bind listen connect
    pipe2 open
    posix_spawnp posix_spawn_file_actions_init posix_spawn_file_actions_adddup2
    getaddrinfo ares_init_options
    read write readv writev preadv2 pwritev2 recv send recvfrom sendto recvmsg sendmsg sendfile)

function(gort_wrap_calls target)
    set(calls ${GORT_FAULT_CALLS})
    if(GORT_SANITIZE MATCHES "thread") # it makes these itself, for each thread, and cannot do without
        list(REMOVE_ITEM calls pthread_key_create pthread_setspecific pthread_atfork)
    endif()
    list(TRANSFORM calls PREPEND "LINKER:--wrap=" OUTPUT_VARIABLE wraps)
    target_link_options(${target} PRIVATE ${wraps})
endfunction()
