# cmake/PtxgenDiscoverTests.cmake - writes one ctest test for each Catch2 case
#
# Run with -P after a test program is linked; see ptxgen_add_test.
cmake_minimum_required(VERSION 3.20)
include("${test_settings}")

execute_process(
  COMMAND "${test_program}" --list-test-names-only
  OUTPUT_VARIABLE listing
  ERROR_VARIABLE complaints
  RESULT_VARIABLE status)
# Catch2 v2 returns the number of tests here, so only a signal or an empty list is a failure.
if(NOT status MATCHES "^[0-9]+$" OR listing STREQUAL "")
  message(FATAL_ERROR "${test_program} cannot list its tests: ${status}\n${listing}${complaints}")
endif()

# A `;` in a case's name would split the list and a lone bracket would join it: both are hidden
# until each line stands alone.
string(ASCII 1 semicolon)
string(ASCII 2 opening)
string(ASCII 3 closing)
string(REPLACE ";" "${semicolon}" listing "${listing}")
string(REPLACE "[" "${opening}" listing "${listing}")
string(REPLACE "]" "${closing}" listing "${listing}")
string(REPLACE "\n" ";" lines "${listing}")

set(script "# ${test_name}: one test for each case of the program\n")
foreach(line IN LISTS lines)
  if(line STREQUAL "")
    continue()
  endif()
  string(REPLACE "${semicolon}" ";" name "${line}")
  string(REPLACE "${opening}" "[" name "${name}")
  string(REPLACE "${closing}" "]" name "${name}")
  # What a test specification of Catch2 reads as its own syntax.
  set(filter "${name}")
  string(REPLACE "\\" "\\\\" filter "${filter}")
  string(REPLACE "," "\\," filter "${filter}")
  string(REPLACE "[" "\\[" filter "${filter}")
  string(APPEND script "add_test([==[${test_name}/${name}]==] [==[${test_program}]==] "
         "[==[${filter}]==])\n" "set_tests_properties([==[${test_name}/${name}]==] PROPERTIES "
         "WORKING_DIRECTORY [==[${test_folder}]==] SKIP_RETURN_CODE 77 "
         "TIMEOUT ${test_timeout} LABELS [==[${test_labels}]==] "
         "ENVIRONMENT [==[${test_environment}]==])\n")
endforeach()
file(WRITE "${test_output}" "${script}")
