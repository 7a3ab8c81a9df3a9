# cmake/PtxgenInstall.cmake - what `cmake --install` puts where
include(CMakePackageConfigHelpers)

set(ptxgen_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ptxgen")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/ptxgen" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(
  TARGETS ptxgen
  EXPORT ptxgen-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
# The C API has joined the same export as ptxgen::c, in its slot.
install(
  EXPORT ptxgen-targets
  NAMESPACE ptxgen::
  FILE ptxgenTargets.cmake
  DESTINATION "${ptxgen_cmake_dir}")

# A static archive leaves it to the consumer's link to name what the archive needs.
set(ptxgen_needs_icu OFF)
if(PTXGEN_ICU AND NOT BUILD_SHARED_LIBS)
  set(ptxgen_needs_icu ON)
endif()
set(ptxgen_needs_hwy OFF)
if(PTXGEN_HIGHWAY AND NOT BUILD_SHARED_LIBS)
  set(ptxgen_needs_hwy ON)
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/ptxgenConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/ptxgenConfig.cmake"
                              INSTALL_DESTINATION "${ptxgen_cmake_dir}")
# Before 1.0 a minor version may break its users, so only the same minor version is compatible.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ptxgenConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ptxgenConfig.cmake"
              "${PROJECT_BINARY_DIR}/ptxgenConfigVersion.cmake" DESTINATION "${ptxgen_cmake_dir}")

# The .pc file finds its prefix from its own place, so that an installed tree can be moved.
set(pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH ptxgen_pc_to_prefix "/${pc_dir}" "/")
string(REGEX REPLACE "/$" "" ptxgen_pc_to_prefix "${ptxgen_pc_to_prefix}")
set(ptxgen_pc_libs_private "-lstdc++ -lm -ldl -pthread")
set(ptxgen_pc_libs "-L\${libdir} -lptxgen")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND ptxgen_pc_libs " -ldl -pthread")
endif()
if(ptxgen_needs_icu)
  string(APPEND ptxgen_pc_libs " -licui18n -licuuc")
endif()
if(ptxgen_needs_hwy)
  string(APPEND ptxgen_pc_libs " -lhwy")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/ptxgen.pc.in" "${PROJECT_BINARY_DIR}/ptxgen.pc" @ONLY)
configure_file("${PROJECT_SOURCE_DIR}/cmake/ptxgen_c.pc.in" "${PROJECT_BINARY_DIR}/ptxgen_c.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/ptxgen.pc" "${PROJECT_BINARY_DIR}/ptxgen_c.pc"
        DESTINATION "${pc_dir}")

# Documents keep their places relative to each other, so that their links hold.
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md"
              "${PROJECT_SOURCE_DIR}/CHANGELOG.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_SOURCE_DIR}/examples"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" PATTERN "__pycache__" EXCLUDE)
