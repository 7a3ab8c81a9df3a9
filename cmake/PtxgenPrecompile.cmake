# cmake/PtxgenPrecompile.cmake - headers that most sources include, parsed once
#
# Sources include what they use as if there were no precompiled headers: the presets clang, release
# and shared build without.
option(PTXGEN_PRECOMPILE "Precompile the headers that most sources include" OFF)

set(ptxgen_precompiled_headers
    <algorithm> <array> <bit> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <mutex>
    <numeric> <optional> <set> <span> <string> <string_view> <tuple> <unordered_map> <utility>
    <variant> <vector> "${PROJECT_SOURCE_DIR}/include/ptxgen/ptx.hpp")
set(ptxgen_test_precompiled_headers <catch2/catch.hpp> ${ptxgen_precompiled_headers})

# ptxgen_precompile(TARGET [HEADER...]): those and the library's headers for a target of many sources
function(ptxgen_precompile target)
  if(PTXGEN_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ARGN} <fmt/core.h> ${ptxgen_precompiled_headers})
    ptxgen_allow_cached_precompiled(${target})
  endif()
endfunction()

# ptxgen_reuse_precompiled(TARGET OWNER): what OWNER has precompiled, for a target with its settings
function(ptxgen_reuse_precompiled target owner)
  if(PTXGEN_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    ptxgen_allow_cached_precompiled(${target})
  endif()
endfunction()

# ptxgen_precompile_test(TARGET [COMPUTES]): Catch2 and the library's headers, compiled once for all
# test programs with and once for those without optimisation
function(ptxgen_precompile_test target computes)
  if(NOT PTXGEN_PRECOMPILE)
    return()
  endif()
  set(owner ptxgen_test_headers)
  if(computes)
    set(owner ptxgen_test_headers_optimized)
  endif()
  if(NOT TARGET ${owner})
    file(WRITE "${PROJECT_BINARY_DIR}/${owner}.cpp" "// precompiled headers of the tests\n")
    add_library(${owner} OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/${owner}.cpp")
    target_link_libraries(${owner} PRIVATE ptxgen::ptxgen ptxgen_warnings ptxgen_test_support)
    target_precompile_headers(${owner} PRIVATE ${ptxgen_test_precompiled_headers})
    ptxgen_unoptimized_test_sources(${owner} "${computes}")
    ptxgen_allow_cached_precompiled(${owner})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  ptxgen_allow_cached_precompiled(${target})
endfunction()

# ccache takes objects made with a precompiled header only if the header's text can be seen.
function(ptxgen_allow_cached_precompiled target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # The overlap that gcc 12 sees in `"literal" + std::string` is reported by these, too.
      target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
    endif()
  else()
    # The same headers make the same file: without a time in it.
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
