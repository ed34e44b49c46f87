# SPDX-License-Identifier: MIT
#
# What gets installed: headers, both libraries, gort.pc and the CMake package; debug.cmake adds the debug library. All of it
# can be moved together to another prefix afterwards.

include(CMakePackageConfigHelpers)

install(FILES ${PROJECT_SOURCE_DIR}/include/gort.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# gc.h comes with the library that it is about; gort.h does not include it.
set(without_gc)
if(NOT GORT_GC_FOUND)
    set(without_gc PATTERN gc.h EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gort DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" ${without_gc})
install(TARGETS gort gort_static EXPORT gortTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

if(GORT_GC_FOUND)
    install(TARGETS gort_gc gort_gc_static EXPORT gortTargets
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gort)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/gortConfig.cmake.in
    ${PROJECT_BINARY_DIR}/gortConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gortConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(EXPORT gortTargets NAMESPACE gort:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/gortConfig.cmake ${PROJECT_BINARY_DIR}/gortConfigVersion.cmake
        DESTINATION ${package_dir})

# gort.pc finds its prefix from its own place, so DESTDIR and a moved tree work.
file(RELATIVE_PATH GORT_PC_PREFIX /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
string(REGEX REPLACE "/$" "" GORT_PC_PREFIX ${GORT_PC_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/gort.pc.in ${PROJECT_BINARY_DIR}/gort.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gort.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(GORT_GC_FOUND)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/gort-gc.pc.in ${PROJECT_BINARY_DIR}/gort-gc.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/gort-gc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
