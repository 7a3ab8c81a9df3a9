# cmake/PtxgenSettings.cmake - compiler settings: warnings, sanitizers, cache, output folders

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(PTXGEN_CCACHE ccache)
  mark_as_advanced(PTXGEN_CCACHE)
  if(PTXGEN_CCACHE)
    # Sources have absolute paths, so what one build folder compiled serves the others.
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_NOHASHDIR=1;CCACHE_SLOPPINESS=pch_defines,time_macros;${PTXGEN_CCACHE}")
  endif()
endif()

set(PTXGEN_LINKER "" CACHE STRING "Linker (mold, lld, ...); empty or not there: the compiler's own")
if(PTXGEN_LINKER)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS "-fuse-ld=${PTXGEN_LINKER}")
  check_cxx_source_compiles("int main() { return 0; }" PTXGEN_HAS_LINKER_${PTXGEN_LINKER})
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(PTXGEN_HAS_LINKER_${PTXGEN_LINKER})
    add_link_options("-fuse-ld=${PTXGEN_LINKER}")
  endif()
endif()

# ICU is for programs that tokenise text; the others do not load it.
if(PTXGEN_ICU AND UNIX AND NOT APPLE)
  add_link_options(LINKER:--as-needed)
endif()

if(PTXGEN_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
endif()

# An installed program finds an installed shared library without LD_LIBRARY_PATH. Not for static
# builds: CMake would pad the build tree's rpath with colons, which mean the current folder.
if(BUILD_SHARED_LIBS)
  file(RELATIVE_PATH ptxgen_bin_to_lib "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  list(APPEND CMAKE_INSTALL_RPATH "$ORIGIN/${ptxgen_bin_to_lib}")
endif()

# Every target of ours links this one (PRIVATE); it is never exported.
add_library(ptxgen_warnings INTERFACE)
target_compile_options(
  ptxgen_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                            $<$<BOOL:${PTXGEN_WERROR}>:-Werror>)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # From -O2 on gcc 12 sees overlap in `"literal" + std::string` (GCC PR 105651, fixed in 13).
  target_compile_options(ptxgen_warnings INTERFACE -Wno-restrict)
  # At -O3 it sees accesses beyond the end where a vector grows (GCC PR 107852).
  target_compile_options(ptxgen_warnings INTERFACE $<$<CONFIG:Release>:-Wno-array-bounds>
                                                   $<$<CONFIG:Release>:-Wno-stringop-overread>)
endif()

if(PTXGEN_SANITIZE)
  add_compile_options("-fsanitize=${PTXGEN_SANITIZE}" -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options("-fsanitize=${PTXGEN_SANITIZE}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # gcc 12's own instrumentation makes it warn about <regex> and <functional>.
    target_compile_options(ptxgen_warnings INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(PTXGEN_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PTXGEN_BUILD_FUZZERS needs clang (libFuzzer); "
                        "configure with the preset `fuzz`, or with -DCMAKE_CXX_COMPILER=clang++")
  endif()
endif()

# ptxgen_guide_fuzzers(TARGET): counts of executed edges, by which libFuzzer chooses its inputs, in
# code that fuzzers look into. They make a fifth of what clang takes for a file.
function(ptxgen_guide_fuzzers target)
  if(PTXGEN_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# ptxgen_relax_sanitizers(TARGET): without UBSan's checks of the pointer of each access, which make
# a quarter of what clang takes for a file. A null pointer still ends the program, with its stack.
# The preset asan-ubsan has them everywhere.
function(ptxgen_relax_sanitizers target)
  if(PTXGEN_BUILD_FUZZERS AND PTXGEN_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment)
  endif()
endfunction()
if(PTXGEN_BUNDLE)
  if(BUILD_SHARED_LIBS)
    message(FATAL_ERROR "PTXGEN_BUNDLE links libptxgen statically; set BUILD_SHARED_LIBS=OFF")
  endif()
endif()

# ptxgen_allow_long_constexpr(SOURCE...)
#
# Raises the compiler's budget of constant evaluation for sources of the library (relative to the
# caller's folder) that build large tables at compile time.
function(ptxgen_allow_long_constexpr)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(options -fconstexpr-steps=100000000 -fbracket-depth=1024)
  else()
    set(options -fconstexpr-ops-limit=1000000000 -fconstexpr-loop-limit=10000000)
  endif()
  foreach(source IN LISTS ARGN)
    set_property(
      SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/${source}"
      TARGET_DIRECTORY ptxgen
      APPEND
      PROPERTY COMPILE_OPTIONS ${options})
  endforeach()
endfunction()

# The version is written in project() and in version.hpp; the two must agree.
file(STRINGS "${PROJECT_SOURCE_DIR}/include/ptxgen/version.hpp" ptxgen_header_version
     REGEX "kVersion = ")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" ptxgen_header_version "${ptxgen_header_version}")
if(NOT ptxgen_header_version STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "include/ptxgen/version.hpp says ${ptxgen_header_version}, "
                      "CMakeLists.txt says ${PROJECT_VERSION}; make them agree")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                                       "${PROJECT_SOURCE_DIR}/include/ptxgen/version.hpp")
