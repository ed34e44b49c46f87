# SPDX-License-Identifier: MIT
#
# libgort.a and libgort.so.0 from one set of objects. They are position independent for both: inside an
# executable the linker relaxes what that costs, and libgort.a can go into somebody else's shared library.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    set(GORT_ARCH x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(GORT_ARCH aarch64)
else()
    message(FATAL_ERROR "gort has no src/arch for ${CMAKE_SYSTEM_PROCESSOR}: x86_64 and aarch64 are there")
endif()

set(rooms base os os/linux arch arch/${GORT_ARCH} mem trace poll
    sched/core sched/timers sched/wait sched/threads sched/monitor sched/life scavenge sync time io observe wiring)
list(TRANSFORM rooms PREPEND ${PROJECT_SOURCE_DIR}/src/)
set(patterns ${rooms})
list(TRANSFORM patterns APPEND /*.c)
file(GLOB sources CONFIGURE_DEPENDS ${patterns} ${PROJECT_SOURCE_DIR}/src/arch/${GORT_ARCH}/*.S)

add_library(gort_objects OBJECT ${sources})
set_target_properties(gort_objects PROPERTIES
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS ON
    C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
target_compile_options(gort_objects PRIVATE -fno-semantic-interposition ${GORT_TSAN_FLAGS})
target_include_directories(gort_objects PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(gort_objects PRIVATE gort_flags gort_private Threads::Threads)

# Host names: c-ares if it is there, else the C library's resolver on a thread of its own (src/io/dns.c).
set(GORT_CARES AUTO CACHE STRING "Resolve names with c-ares: AUTO (if pkg-config finds it), ON or OFF")
set(GORT_CARES_FOUND FALSE)
if(GORT_CARES STREQUAL "ON" OR (GORT_CARES STREQUAL "AUTO" AND NOT CMAKE_CROSSCOMPILING AND NOT GORT_STATIC_PROGRAMS))
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(GORT_CARES_PKG QUIET libcares>=1.16)
    endif()
    if(GORT_CARES_PKG_FOUND)
        set(GORT_CARES_FOUND TRUE)
        set(GORT_PC_REQUIRES_PRIVATE libcares)
        target_compile_definitions(gort_objects PRIVATE GORT_CARES=1)
        target_include_directories(gort_objects SYSTEM PRIVATE ${GORT_CARES_PKG_INCLUDE_DIRS})
    elseif(GORT_CARES STREQUAL "ON")
        message(FATAL_ERROR "GORT_CARES=ON, but pkg-config knows no libcares >= 1.16 (Debian: libc-ares-dev)")
    endif()
endif()

set(map ${PROJECT_SOURCE_DIR}/src/gort.map)
add_library(gort SHARED $<TARGET_OBJECTS:gort_objects>)
add_library(gort_static STATIC $<TARGET_OBJECTS:gort_objects>)
set_target_properties(gort PROPERTIES LINKER_LANGUAGE C LINK_DEPENDS ${map}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
# dlclose must not unmap it: threads that a run left behind come back to it, the ends of threads and forks call it.
target_link_options(gort PRIVATE LINKER:-z,nodelete)
# Undefined symbols are an error when the library is linked, not when it is used; the sanitizers' runtimes
# are in the executable only, so clang cannot have that there.
target_link_options(gort PRIVATE LINKER:--version-script=${map} ${GORT_LINK_OPTIONS})
if(NOT GORT_SANITIZE)
    target_link_options(gort PRIVATE LINKER:-z,defs)
endif()
set_target_properties(gort_static PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME gort EXPORT_NAME static)

if(GORT_CARES_FOUND)
    target_link_libraries(gort PRIVATE cares)
    target_link_libraries(gort_static PUBLIC cares)
endif()
# What users' code is compiled with. A frame that is larger than the guard below a stack would jump over it; with this option the
# code touches each page of a large frame in turn. gcc for aarch64 touches only every 64 KiB unless told that guards are
# smaller; clang for aarch64 has the option since 18.
set(gcc "$<COMPILE_LANG_AND_ID:C,GNU>,$<COMPILE_LANG_AND_ID:CXX,GNU>")
set(clang "$<COMPILE_LANG_AND_ID:C,Clang>,$<COMPILE_LANG_AND_ID:CXX,Clang>")
if(GORT_ARCH STREQUAL aarch64)
    set(GORT_PC_CFLAGS "-fstack-clash-protection --param=stack-clash-protection-guard-size=12")
    if(CMAKE_C_COMPILER_ID MATCHES "Clang")
        set(GORT_PC_CFLAGS "-fstack-clash-protection")
    endif()
    set(GORT_USER_FLAGS
        "$<$<OR:${gcc}>:-fstack-clash-protection;--param=stack-clash-protection-guard-size=12>"
        "$<$<AND:$<OR:${clang}>,$<VERSION_GREATER_EQUAL:$<C_COMPILER_VERSION>,18>>:-fstack-clash-protection>")
else()
    set(GORT_PC_CFLAGS "-fstack-clash-protection")
    set(GORT_USER_FLAGS "$<$<OR:${gcc},${clang}>:-fstack-clash-protection>")
endif()

foreach(lib gort gort_static)
    target_compile_options(${lib} INTERFACE ${GORT_USER_FLAGS})
    target_include_directories(${lib} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${lib} PUBLIC Threads::Threads)
    target_link_options(${lib} INTERFACE $<BUILD_INTERFACE:${GORT_LINK_OPTIONS}>)
endforeach()
add_library(gort::gort ALIAS gort)
add_library(gort::static ALIAS gort_static)
