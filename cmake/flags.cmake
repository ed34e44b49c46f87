# SPDX-License-Identifier: MIT
#
# Flags in two interface targets that are never installed:
#   gort_flags    how everything in this repository is compiled (warnings, sanitizers, LTO)
#   gort_private  what only the library and its unit tests see (src/ headers, GORT_CHECKS)

add_library(gort_flags INTERFACE)
add_library(gort_private INTERFACE)

target_compile_options(gort_flags INTERFACE -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Wundef -Wvla
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
# __FILE__ in messages reads src/sched/core/park.c, wherever the tree lies.
target_compile_options(gort_flags INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
# TEST(name, .timeout = 5) leaves the other options zero on purpose; g++ alone minds.
target_compile_options(gort_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
if(GORT_WERROR)
    target_compile_options(gort_flags INTERFACE -Werror)
endif()

if(GORT_SANITIZE)
    if(NOT GORT_SANITIZE MATCHES "^(address|thread|undefined|address,undefined)$")
        message(FATAL_ERROR "GORT_SANITIZE=${GORT_SANITIZE}: use address, thread, undefined or address,undefined")
    endif()
    set(sanitize -fsanitize=${GORT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(gort_flags INTERFACE ${sanitize})
    # What the library was compiled with, its users must be linked with.
    set(GORT_LINK_OPTIONS -fsanitize=${GORT_SANITIZE})
endif()

# ThreadSanitizer, asked for by us or by a project around us, looks at the program's accesses and at all atomics; at our own
# plain accesses only in our own tests, because then it misses races of goroutines that share a thread
# (src/base/compiler.h).
if("${GORT_SANITIZE} ${CMAKE_C_FLAGS}" MATCHES "thread")
    if(GORT_TSAN_SELF)
        target_compile_definitions(gort_private INTERFACE GORT_TSAN_SELF)
    elseif(CMAKE_C_COMPILER_ID MATCHES "Clang")
        set(GORT_TSAN_FLAGS "SHELL:-mllvm -tsan-instrument-memory-accesses=0")
    endif()
endif()

if(GORT_COVERAGE)
    # The counters lie in a file that is mapped (LLVM_PROFILE_FILE=%c...): they survive _exit and every kind of death.
    set(coverage -fprofile-instr-generate -fcoverage-mapping -fprofile-update=atomic)
    target_compile_options(gort_flags INTERFACE ${coverage} "SHELL:-mllvm -runtime-counter-relocation")
    list(APPEND GORT_LINK_OPTIONS ${coverage})
endif()

if(GORT_FUZZ)
    target_compile_options(gort_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(GORT_LTO)
    # Written out rather than CMake's own switch, which would choose thin LTO for clang. The archive
    # needs the compiler's ar to get an index of the intermediate code.
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
        set(lto -flto=auto)
    else()
        set(lto -flto)
    endif()
    target_compile_options(gort_flags INTERFACE ${lto})
    list(APPEND GORT_LINK_OPTIONS ${lto})
    if(CMAKE_C_COMPILER_ID MATCHES "Clang")
        list(APPEND GORT_LINK_OPTIONS -fuse-ld=lld)
    endif()
    if(NOT CMAKE_C_COMPILER_AR)
        message(FATAL_ERROR "GORT_LTO: no ar for this compiler (gcc-ar comes with gcc, llvm-ar with llvm)")
    endif()
    set(CMAKE_AR ${CMAKE_C_COMPILER_AR})
    set(CMAKE_RANLIB ${CMAKE_C_COMPILER_RANLIB})
endif()

target_include_directories(gort_private INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(gort_private INTERFACE _GNU_SOURCE GORT_CHECKS=$<BOOL:${GORT_CHECKS}>)
