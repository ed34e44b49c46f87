# SPDX-License-Identifier: MIT
#
# The version lives in one place, include/gort/version.h; this reads it from there.

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../include/gort/version.h)

function(gort_read_version out)
    set(header ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../include/gort/version.h)
    set(version "")
    foreach(part MAJOR MINOR PATCH)
        file(STRINGS ${header} line REGEX "^#[ \t]*define[ \t]+GORT_VERSION_${part}[ \t]+[0-9]+")
        if(NOT line MATCHES "GORT_VERSION_${part}[ \t]+([0-9]+)")
            message(FATAL_ERROR "include/gort/version.h does not define GORT_VERSION_${part}")
        endif()
        list(APPEND version ${CMAKE_MATCH_1})
    endforeach()
    list(JOIN version "." version)
    set(${out} ${version} PARENT_SCOPE)
endfunction()
