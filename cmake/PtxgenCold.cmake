# cmake/PtxgenCold.cmake - what tests spend little time in, compiled with less optimisation
#
# With sanitizers, optimising code costs four times as much as compiling it, and more for code that
# builds kernels (calls inlined into calls): -O0. Without, -Og takes a fifth less time than -O1 with
# g++, and -O0 hardly less than -O1. Tests run hardly slower: the emulator, the analyses
# and the gates, which they do spend their time in, stay optimised.
set(PTXGEN_COLD_OPTIMIZATION "" CACHE STRING "Optimisation of code that is seldom hot, such as -O0")

# ptxgen_cold(TARGET): all of TARGET is seldom hot
function(ptxgen_cold target)
  if(PTXGEN_COLD_OPTIMIZATION)
    target_compile_options(${target} PRIVATE ${PTXGEN_COLD_OPTIMIZATION})
    ptxgen_relax_sanitizers(${target})
  endif()
endfunction()

# ptxgen_split_cold(TARGET PATTERN... EXCEPT PATTERN...): moves sources of TARGET, src/PATTERN.cpp,
# into an object library of their own, since one precompiled header serves one level of optimisation
function(ptxgen_split_cold target)
  if(NOT PTXGEN_COLD_OPTIMIZATION)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCEPT")
  list(JOIN arg_UNPARSED_ARGUMENTS "|" patterns)
  list(JOIN arg_EXCEPT "|" except)
  get_target_property(sources ${target} SOURCES)
  set(moved ${sources})
  list(FILTER moved INCLUDE REGEX "/src/(${patterns})\\.cpp$")
  list(FILTER moved EXCLUDE REGEX "/src/(${except})\\.cpp$")
  list(REMOVE_ITEM sources ${moved})
  set(objects ${target}_cold)
  add_library(${objects} OBJECT EXCLUDE_FROM_ALL ${moved})
  foreach(property IN ITEMS INCLUDE_DIRECTORIES LINK_LIBRARIES COMPILE_FEATURES COMPILE_OPTIONS)
    get_target_property(value ${target} ${property})
    set_target_properties(${objects} PROPERTIES ${property} "${value}")
  endforeach()
  ptxgen_cold(${objects})
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  ptxgen_precompile(${objects})
  set_target_properties(${target} PROPERTIES SOURCES "${sources};$<TARGET_OBJECTS:${objects}>")
endfunction()
