# cmake/PtxgenTargets.cmake - one function for each kind of program in the tree

# Settings that every program of ours shares.
function(ptxgen_program_settings name)
  target_link_libraries(${name} PRIVATE ptxgen::ptxgen ptxgen_warnings)
  if(PTXGEN_BUNDLE)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

# ptxgen_add_test(NAME SOURCES a.cpp... [LIBS lib...] [LABELS label...] [TIMEOUT seconds]
#                 [ENVIRONMENT VAR=value...] [COMPUTES] [BUNDLED] [SEPARATE]
#                 [UNIT size])
#
# A Catch2 v2 program with the main of tests/support (do not define CATCH_CONFIG_MAIN). Each of its
# test cases becomes one ctest test NAME/<case>, found by asking the program after it is linked.
# A case that calls ptxgen::test::skip() is reported by ctest as skipped, never as passed.
# For every label there is a target tests-<label> that builds the programs which carry it.
# The folder's name is always a label.
# Debug builds do not optimise the test's own sources, which are compiled more often than they run,
# unless COMPUTES says that the time goes into them. BUNDLED: needs no file of the source tree and
# is part of what PTXGEN_BUNDLE makes for other machines. SEPARATE: its sources define the same names,
# so they are not compiled as one. UNIT: how many of them are compiled as one, see ptxgen_unite.
function(ptxgen_add_test name)
  if(NOT PTXGEN_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPUTES;BUNDLED;SEPARATE" "TIMEOUT;UNIT" "SOURCES;LIBS;LABELS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "ptxgen_add_test(${name}): SOURCES missing, or unknown arguments: "
                        "${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  if(NOT arg_UNIT)
    set(arg_UNIT 200KB)
  endif()
  get_filename_component(folder "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  list(APPEND arg_LABELS "${folder}")
  list(REMOVE_DUPLICATES arg_LABELS)

  add_executable(${name} ${arg_SOURCES})
  ptxgen_program_settings(${name})
  target_link_libraries(${name} PRIVATE ptxgen_test_support ${arg_LIBS})
  ptxgen_unoptimized_test_sources(${name} "${arg_COMPUTES}")
  ptxgen_precompile_test(${name} "${arg_COMPUTES}")
  if(NOT arg_SEPARATE)
    ptxgen_unite(${name} ${arg_UNIT})
  endif()
  if(NOT (PTXGEN_BUNDLE AND arg_BUNDLED))
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  endif()
  foreach(label IN LISTS arg_LABELS)
    if(NOT TARGET tests-${label})
      add_custom_target(tests-${label})
    endif()
    add_dependencies(tests-${label} ${name})
  endforeach()

  # The list of cases is a file that ctest includes; labels and variables are written into a
  # settings file, since lists do not survive a command line.
  set(stem "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  file(
    WRITE "${stem}-settings.cmake"
    "set(test_name [==[${name}]==])\nset(test_labels [==[${arg_LABELS}]==])\n"
    "set(test_environment [==[${arg_ENVIRONMENT}]==])\nset(test_timeout ${arg_TIMEOUT})\n"
    "set(test_folder [==[${CMAKE_CURRENT_BINARY_DIR}]==])\n"
    "set(test_output [==[${stem}-tests.cmake]==])\n")
  add_custom_command(
    TARGET ${name}
    POST_BUILD
    BYPRODUCTS "${stem}-tests.cmake"
    COMMAND "${CMAKE_COMMAND}" -D "test_program=$<TARGET_FILE:${name}>" -D
            "test_settings=${stem}-settings.cmake" -P
            "${PROJECT_SOURCE_DIR}/cmake/PtxgenDiscoverTests.cmake"
    VERBATIM)
  file(
    WRITE "${stem}-include.cmake"
    "if(EXISTS [==[${stem}-tests.cmake]==])\n  include([==[${stem}-tests.cmake]==])\nelse()\n"
    "  add_test([==[${name}/NOT_BUILT]==] [==[${name} is not built]==])\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${stem}-include.cmake")
endfunction()

# Debug builds do not optimise the test's own sources, which are compiled more often than they run,
# unless the time goes into them; where seldom hot code is -Og, so are those: assertions make most of
# what -O1 compiles there, and two fifths of its time.
function(ptxgen_unoptimized_test_sources target computes)
  if(NOT computes)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O0>)
    ptxgen_relax_sanitizers(${target})
  elseif(PTXGEN_COLD_OPTIMIZATION STREQUAL "-Og")
    target_compile_options(${target} PRIVATE -Og)
  endif()
endfunction()

# ptxgen_test_library_settings(TARGET): for an optimised library that test programs link. It has no
# label: the programs of one that need it should need all of it.
function(ptxgen_test_library_settings target)
  ptxgen_program_settings(${target})
  target_link_libraries(${target} PRIVATE ptxgen_test_support)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/tests")
  ptxgen_unoptimized_test_sources(${target} TRUE)
  ptxgen_precompile_test(${target} TRUE)
  ptxgen_unite(${target} 200KB)
endfunction()

# ptxgen_add_check(NAME COMMAND program args... [LABELS label...] [TIMEOUT seconds])
#
# A ctest test that is any command. Exit status 77 means skipped; such a command prints a line
# `SKIP: <reason>`.
function(ptxgen_add_check name)
  if(NOT PTXGEN_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "COMMAND;LABELS")
  get_filename_component(folder "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${folder};${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
                                          SKIP_RETURN_CODE 77)
endfunction()

# ptxgen_add_example(NAME SOURCES a.cpp...)
#
# A program of examples/; in the tests it must run and exit with 0.
function(ptxgen_add_example name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES")
  add_executable(${name} ${arg_SOURCES})
  ptxgen_program_settings(${name})
  if(PTXGEN_BUILD_TESTS)
    add_test(NAME examples/${name} COMMAND ${name})
    set_tests_properties(examples/${name} PROPERTIES LABELS examples TIMEOUT 120
                                                     SKIP_RETURN_CODE 77)
  endif()
endfunction()

# ptxgen_add_bench(NAME SOURCES a.cpp... [LIBS lib...])
#
# A Google Benchmark program with a main of its own (BENCHMARK_MAIN() or a written one).
function(ptxgen_add_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ptxgen::ptxgen ptxgen_warnings benchmark::benchmark
                                        ${arg_LIBS})
  if(PTXGEN_BUNDLE)
    # Debian has no static libbenchmark. Its shared one needs a shared libstdc++, and two copies of
    # libstdc++ in one process are asking for trouble, so here all three are beside the program.
    set_target_properties(${name} PROPERTIES BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
    target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)
    foreach(library IN ITEMS libstdc++.so.6 libgcc_s.so.1)
      execute_process(
        COMMAND "${CMAKE_CXX_COMPILER}" "-print-file-name=${library}"
        OUTPUT_VARIABLE path
        OUTPUT_STRIP_TRAILING_WHITESPACE)
      list(APPEND beside "${path}")
    endforeach()
    add_custom_command(
      TARGET ${name}
      POST_BUILD
      COMMAND
        "${CMAKE_COMMAND}" -E copy_if_different
        "$<TARGET_SONAME_FILE:benchmark::benchmark>" ${beside} "$<TARGET_FILE_DIR:${name}>"
      VERBATIM)
  endif()
endfunction()

# ptxgen_add_fuzzer(NAME INPUTS n SOURCES a.cpp... [CORPUS folder...] [OPTIONS libFuzzer option...])
#
# A libFuzzer program, built only with PTXGEN_BUILD_FUZZERS; target `fuzzers` builds all of them.
# Its ctest test tries the seeds and n new inputs, or goes on for PTXGEN_FUZZ_SECONDS if the
# environment has that (tools/run_fuzzer).
function(ptxgen_add_fuzzer name)
  if(NOT PTXGEN_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "INPUTS" "SOURCES;CORPUS;OPTIONS")
  add_executable(${name} ${arg_SOURCES})
  ptxgen_program_settings(${name})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
  set(seeds "")
  foreach(folder IN LISTS arg_CORPUS)
    get_filename_component(folder "${folder}" ABSOLUTE)
    list(APPEND seeds "${folder}")
  endforeach()
  add_test(
    NAME fuzz/${name}
    COMMAND "${PROJECT_SOURCE_DIR}/tools/run_fuzzer" "$<TARGET_FILE:${name}>" ${arg_INPUTS}
            "${CMAKE_CURRENT_BINARY_DIR}/${name}-corpus" ${seeds} ${arg_OPTIONS})
  set_tests_properties(fuzz/${name} PROPERTIES LABELS fuzz TIMEOUT 1800 SKIP_RETURN_CODE 77)
endfunction()

# A library NAME beside the emulated libcuda.so.1, which it finds there: lib/emulated/OUTPUT.so.MAJOR, with
# the symbols of exports_MAJOR.map in the caller's folder.
function(ptxgen_beside_libcuda name output major)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_libraries(${name} PRIVATE ptxgen_libcuda ptxgen_fmt ptxgen_warnings)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include"
                                             "${PROJECT_SOURCE_DIR}/src")
  set(exports "${CMAKE_CURRENT_SOURCE_DIR}/exports_${major}.map")
  set_target_properties(
    ${name}
    PROPERTIES OUTPUT_NAME ${output}
               SUFFIX ".so.${major}"
               NO_SONAME ON
               LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/emulated"
               BUILD_RPATH_USE_ORIGIN ON
               INSTALL_RPATH "$ORIGIN"
               LINK_DEPENDS "${exports}")
  target_link_options(
    ${name}
    PRIVATE
    LINKER:-soname,lib${output}.so.${major}
    "LINKER:--version-script=${exports}"
    LINKER:-Bsymbolic-functions
    LINKER:--gc-sections
    LINKER:-z,nodelete
    LINKER:--no-undefined
    -static-libgcc
    -static-libstdc++)
  install(TARGETS ${name} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/ptxgen")
endfunction()
