# cmake/PtxgenUnoptimized.cmake - what tests spend little time in, compiled without optimisation
#
# With sanitizers, optimising code costs four times as much as compiling it, and more for code that
# builds kernels (calls inlined into calls). Tests run hardly slower without: the emulator, the
# analyses and the gates, which they do spend their time in, stay optimised.
option(PTXGEN_UNOPTIMIZED "Compile parts of the library that are seldom hot without optimisation" OFF)

# ptxgen_unoptimize(TARGET PATTERN... EXCEPT PATTERN...): moves sources of TARGET, src/PATTERN.cpp,
# into an object library of their own, since one precompiled header serves one level of optimisation
function(ptxgen_unoptimize target)
  if(NOT PTXGEN_UNOPTIMIZED)
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
  set(objects ${target}_unoptimized)
  add_library(${objects} OBJECT EXCLUDE_FROM_ALL ${moved})
  foreach(property IN ITEMS INCLUDE_DIRECTORIES LINK_LIBRARIES COMPILE_FEATURES COMPILE_OPTIONS)
    get_target_property(value ${target} ${property})
    set_target_properties(${objects} PROPERTIES ${property} "${value}")
  endforeach()
  target_compile_options(${objects} PRIVATE -O0)
  ptxgen_relax_sanitizers(${objects})
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  ptxgen_precompile(${objects})
  set_target_properties(${target} PROPERTIES SOURCES "${sources};$<TARGET_OBJECTS:${objects}>")
endfunction()
