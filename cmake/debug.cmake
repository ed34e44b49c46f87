# SPDX-License-Identifier: MIT
#
# The debug library, for the tests of programs: libgort with all checks. It has the same file names and the same soname, in a
# folder of its own (lib/gort-debug), so that a program can be linked or run with either. -O1, because checks are what it is
# for; stepping through gort itself is what the preset "debug" is for.

# Copies what library.cmake has said about one target, so that it is said only once.
function(gort_copy_target from to)
    foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_LIBRARIES LINK_OPTIONS LINK_DEPENDS LINKER_LANGUAGE
            C_STANDARD C_STANDARD_REQUIRED C_EXTENSIONS C_VISIBILITY_PRESET POSITION_INDEPENDENT_CODE VERSION SOVERSION
            INTERFACE_COMPILE_OPTIONS INTERFACE_INCLUDE_DIRECTORIES INTERFACE_LINK_LIBRARIES INTERFACE_LINK_OPTIONS)
        get_target_property(value ${from} ${property})
        if(NOT value MATCHES "-NOTFOUND$") # 0 is a value
            set_property(TARGET ${to} PROPERTY ${property} ${value})
        endif()
    endforeach()
endfunction()

add_library(gort_debug_private INTERFACE)
target_include_directories(gort_debug_private INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(gort_debug_private INTERFACE _GNU_SOURCE GORT_CHECKS=1)

get_target_property(sources gort_objects SOURCES)
add_library(gort_debug_objects OBJECT ${sources})
gort_copy_target(gort_objects gort_debug_objects)
get_target_property(libraries gort_debug_objects LINK_LIBRARIES)
list(TRANSFORM libraries REPLACE "^gort_private$" gort_debug_private)
set_property(TARGET gort_debug_objects PROPERTY LINK_LIBRARIES ${libraries})
target_compile_options(gort_debug_objects PRIVATE -O1 -g -fno-omit-frame-pointer)

add_library(gort_debug SHARED $<TARGET_OBJECTS:gort_debug_objects>)
add_library(gort_debug_static STATIC $<TARGET_OBJECTS:gort_debug_objects>)
gort_copy_target(gort gort_debug)
gort_copy_target(gort_static gort_debug_static)
set_target_properties(gort_debug gort_debug_static PROPERTIES OUTPUT_NAME gort
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/gort-debug ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/gort-debug)
set_target_properties(gort_debug PROPERTIES EXPORT_NAME debug)
set_target_properties(gort_debug_static PROPERTIES EXPORT_NAME debug_static)

set(GORT_DEBUG_DIR ${CMAKE_INSTALL_LIBDIR}/gort-debug)
install(TARGETS gort_debug gort_debug_static EXPORT gortTargets
        LIBRARY DESTINATION ${GORT_DEBUG_DIR} ARCHIVE DESTINATION ${GORT_DEBUG_DIR})
configure_file(${PROJECT_SOURCE_DIR}/cmake/gort-debug.pc.in ${PROJECT_BINARY_DIR}/gort-debug.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gort-debug.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
