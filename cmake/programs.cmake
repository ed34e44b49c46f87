# SPDX-License-Identifier: MIT
#
# Tests, examples, the demo and benchmarks: a source file is a program. None of them is part of "all";
# the targets are tests, tests-unit (and so on, one a folder), examples, demo and benches.
#
# A test may say how it wants to be built on a line of its opening comment:
#    * Build: standalone           does not link libgort (it includes the sources it tests)
#    * Build: shared               links libgort.so instead of libgort.a
#    * Build: -DQUEUE=4 ...        extra compiler flags
#    * Build: faults               calls of the kernel can be made to fail (tests/lib/fault.h)
#    * Build: gc                   links libgort-gc; HAVE_GORT_GC is defined if it is there. Examples may say this, too:
#                                  without it they are not built
#    * Build: pkg:NAME             a library that pkg-config knows; HAVE_NAME is defined if it is there
# The words may be combined on that one line.

include(cmake/faults.cmake)

# gort_program(target source...): a program with our flags, next to its siblings in the build tree.
function(gort_program target)
    add_executable(${target} EXCLUDE_FROM_ALL ${ARGN})
    set_target_properties(${target} PROPERTIES C_STANDARD 11 C_EXTENSIONS ON CXX_STANDARD 17 CXX_EXTENSIONS OFF)
    target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE>)
    target_link_libraries(${target} PRIVATE gort_flags Threads::Threads)
    target_link_options(${target} PRIVATE ${GORT_LINK_OPTIONS})
    if(GORT_STATIC_PROGRAMS)
        target_link_options(${target} PRIVATE -static)
    endif()
endfunction()

# A library of the build machine, for tests that can do without it.
function(gort_link_package target package)
    find_package(PkgConfig QUIET)
    if(NOT PKG_CONFIG_FOUND OR CMAKE_CROSSCOMPILING OR GORT_STATIC_PROGRAMS)
        return()
    endif()
    pkg_check_modules(PKG_${package} QUIET IMPORTED_TARGET ${package})
    if(PKG_${package}_FOUND)
        string(TOUPPER ${package} upper)
        target_link_libraries(${target} PRIVATE PkgConfig::PKG_${package})
        target_compile_definitions(${target} PRIVATE HAVE_${upper})
    endif()
endfunction()

function(gort_test dir source)
    get_filename_component(name ${source} NAME_WE)
    set(target test_${dir}_${name})
    gort_program(${target} ${source})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${dir})
    add_dependencies(tests-${dir} ${target})

    set(library gort_static)
    file(STRINGS ${source} words REGEX "^ \\* Build: " LIMIT_COUNT 1)
    string(REGEX REPLACE "^ \\* Build: *" "" words "${words}")
    separate_arguments(words)
    foreach(word ${words})
        if(word STREQUAL "standalone")
            set(library "")
            target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
        elseif(word STREQUAL "shared")
            if(NOT GORT_STATIC_PROGRAMS)
                set(library gort)
            endif()
        elseif(word STREQUAL "faults")
            gort_wrap_calls(${target})
        elseif(word STREQUAL "gc")
            if(GORT_GC_FOUND)
                target_link_libraries(${target} PRIVATE gort_gc_static)
                target_compile_definitions(${target} PRIVATE HAVE_GORT_GC)
            endif()
        elseif(word MATCHES "^pkg:(.+)")
            gort_link_package(${target} ${CMAKE_MATCH_1})
        elseif(word MATCHES "^-")
            target_compile_options(${target} PRIVATE ${word})
        else()
            message(FATAL_ERROR "${source}: Build: ${word}: use standalone, shared, faults, gc, pkg:NAME or compiler flags")
        endif()
    endforeach()
    target_link_libraries(${target} PRIVATE gort_private gort_testkit ${library})
    if(dir STREQUAL "fuzz")
        target_compile_definitions(${target} PRIVATE GORT_FUZZ_CORPUS="${PROJECT_SOURCE_DIR}/tests/fuzz/corpus")
        if(GORT_FUZZ)
            target_compile_definitions(${target} PRIVATE GORT_FUZZ)
            target_link_options(${target} PRIVATE -fsanitize=fuzzer)
        endif()
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
endfunction()

if(GORT_TESTS)
    # tests/lib/*.c is linked into every test: the kit itself, and what several tests share.
    file(GLOB kit CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/lib/*.c)
    add_library(gort_testkit STATIC EXCLUDE_FROM_ALL ${kit})
    set_target_properties(gort_testkit PROPERTIES C_STANDARD 11 C_EXTENSIONS ON)
    target_compile_definitions(gort_testkit PRIVATE _GNU_SOURCE)
    target_include_directories(gort_testkit PUBLIC ${PROJECT_SOURCE_DIR}/tests/lib ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(gort_testkit PRIVATE gort_flags)
    # clang's sanitizers are archives, so their own calls are wrapped too, even before they are set up.
    set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/lib/fault.c PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
    if(GORT_FUZZ) # libFuzzer brings its own main
        target_compile_options(gort_testkit PRIVATE -DGORT_FUZZ -Dmain=test_main)
    endif()

    add_custom_target(tests)
    foreach(dir unit model scenario stress fault crash fuzz)
        add_custom_target(tests-${dir})
        add_dependencies(tests tests-${dir})
        file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${dir}/*.c)
        foreach(source ${found})
            gort_test(${dir} ${source})
        endforeach()
    endforeach()

    # Each public header alone, as strict C11 and as strict C++17, without a warning.
    if(GORT_CXX_TESTS)
        enable_language(CXX)
    endif()
    file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
         ${PROJECT_SOURCE_DIR}/include/gort.h ${PROJECT_SOURCE_DIR}/include/gort/*.h)
    set(checks "")
    foreach(header ${headers})
        string(MAKE_C_IDENTIFIER ${header} name)
        foreach(ext c cc)
            if(ext STREQUAL "c" OR GORT_CXX_TESTS)
                file(CONFIGURE OUTPUT headers/${name}.${ext} CONTENT
                     "#include <@header@>\n#include <@header@>\nint header_@name@;\n" @ONLY)
                list(APPEND checks ${PROJECT_BINARY_DIR}/headers/${name}.${ext})
            endif()
        endforeach()
    endforeach()
    add_library(header_check OBJECT EXCLUDE_FROM_ALL ${checks})
    set_target_properties(header_check PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF CXX_STANDARD 17 CXX_EXTENSIONS OFF)
    target_compile_options(header_check PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wundef -Werror)
    target_include_directories(header_check PRIVATE ${PROJECT_SOURCE_DIR}/include)

    add_custom_target(tests-cxx)
    add_dependencies(tests-cxx header_check)
    add_dependencies(tests tests-cxx)
    if(GORT_CXX_TESTS)
        file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cxx/*.cc)
        foreach(source ${found})
            gort_test(cxx ${source})
        endforeach()
    endif()

    enable_testing()
    add_test(NAME gort COMMAND ${PROJECT_SOURCE_DIR}/tools/test ${PROJECT_BINARY_DIR})
endif()

if(GORT_EXAMPLES)
    add_custom_target(examples)
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
    foreach(source ${found})
        get_filename_component(name ${source} NAME_WE)
        file(STRINGS ${source} wants_gc REGEX "^ \\* Build: gc" LIMIT_COUNT 1)
        if(wants_gc AND NOT GORT_GC_FOUND)
            continue()
        endif()
        gort_program(example_${name} ${source})
        if(wants_gc)
            target_link_libraries(example_${name} PRIVATE gort_gc_static)
        endif()
        set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
        target_link_libraries(example_${name} PRIVATE gort_static)
        add_dependencies(examples example_${name})
    endforeach()

    # The demo is one program of however many files it likes.
    add_custom_target(demo)
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/demo/*.c)
    if(found)
        gort_program(demo_program ${found})
        set_target_properties(demo_program PROPERTIES OUTPUT_NAME demo
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/demo)
        target_link_libraries(demo_program PRIVATE gort_static)
        add_dependencies(demo demo_program)
    endif()
endif()

if(GORT_BENCH)
    add_custom_target(benches)
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
    foreach(source ${found})
        get_filename_component(name ${source} NAME_WE)
        gort_program(bench_${name} ${source})
        set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name}
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
        target_link_libraries(bench_${name} PRIVATE gort_static)
        add_dependencies(benches bench_${name})
    endforeach()
endif()
