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

set(rooms base os os/linux arch arch/${GORT_ARCH} mem trace poll sched sync time io observe)
list(TRANSFORM rooms PREPEND ${PROJECT_SOURCE_DIR}/src/)
set(patterns ${rooms})
list(TRANSFORM patterns APPEND /*.c)
file(GLOB sources CONFIGURE_DEPENDS ${patterns} ${PROJECT_SOURCE_DIR}/src/arch/${GORT_ARCH}/*.S)

add_library(gort_objects OBJECT ${sources})
set_target_properties(gort_objects PROPERTIES
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS ON
    C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
target_compile_options(gort_objects PRIVATE -fno-semantic-interposition)
target_include_directories(gort_objects PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(gort_objects PRIVATE gort_flags gort_private Threads::Threads)

set(map ${PROJECT_SOURCE_DIR}/src/gort.map)
add_library(gort SHARED $<TARGET_OBJECTS:gort_objects>)
add_library(gort_static STATIC $<TARGET_OBJECTS:gort_objects>)
set_target_properties(gort PROPERTIES LINKER_LANGUAGE C LINK_DEPENDS ${map}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
# Undefined symbols are an error when the library is linked, not when it is used; the sanitizers' runtimes
# are in the executable only, so clang cannot have that there.
target_link_options(gort PRIVATE LINKER:--version-script=${map} ${GORT_LINK_OPTIONS})
if(NOT GORT_SANITIZE)
    target_link_options(gort PRIVATE LINKER:-z,defs)
endif()
set_target_properties(gort_static PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME gort EXPORT_NAME static)

foreach(lib gort gort_static)
    target_include_directories(${lib} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${lib} PUBLIC Threads::Threads)
    target_link_options(${lib} INTERFACE $<BUILD_INTERFACE:${GORT_LINK_OPTIONS}>)
endforeach()
add_library(gort::gort ALIAS gort)
add_library(gort::static ALIAS gort_static)
