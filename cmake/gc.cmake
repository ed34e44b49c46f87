# SPDX-License-Identifier: MIT
#
# libgort-gc: the Boehm collector for goroutines, if libgc is there. A library of its own, so that libgort needs
# nothing but the C library.

set(GORT_GC AUTO CACHE STRING "Build libgort-gc, for the Boehm collector: AUTO (if pkg-config finds bdw-gc), ON or OFF")
set(GORT_GC_FOUND FALSE)
if(GORT_GC STREQUAL "ON" OR (GORT_GC STREQUAL "AUTO" AND NOT CMAKE_CROSSCOMPILING AND NOT GORT_STATIC_PROGRAMS
                             AND NOT GORT_SANITIZE))
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(GORT_GC_PKG QUIET bdw-gc>=8.0)
    endif()
    if(GORT_GC_PKG_FOUND)
        set(GORT_GC_FOUND TRUE)
    elseif(GORT_GC STREQUAL "ON")
        message(FATAL_ERROR "GORT_GC=ON, but pkg-config knows no bdw-gc >= 8.0 (Debian: libgc-dev)")
    endif()
endif()
if(NOT GORT_GC_FOUND)
    return()
endif()

add_library(gort_gc SHARED ${PROJECT_SOURCE_DIR}/src/gc/gc.c)
add_library(gort_gc_static STATIC ${PROJECT_SOURCE_DIR}/src/gc/gc.c)
foreach(lib gort_gc gort_gc_static)
    set_target_properties(${lib} PROPERTIES OUTPUT_NAME gort-gc
        C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS ON
        C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
    target_include_directories(${lib} SYSTEM PRIVATE ${GORT_GC_PKG_INCLUDE_DIRS})
    target_compile_definitions(${lib} PRIVATE _GNU_SOURCE)
    target_link_libraries(${lib} PRIVATE $<BUILD_INTERFACE:gort_flags>)
endforeach()
set_target_properties(gort_gc PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME gc)
set_target_properties(gort_gc_static PROPERTIES EXPORT_NAME gc_static)
target_link_options(gort_gc PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/src/gort.map LINKER:-z,nodelete)
target_link_libraries(gort_gc PUBLIC gort PRIVATE gc)
target_link_libraries(gort_gc_static PUBLIC gort_static gc)
add_library(gort::gc ALIAS gort_gc)
add_library(gort::gc_static ALIAS gort_gc_static)
