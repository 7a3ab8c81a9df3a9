# cmake/PtxgenUnity.cmake - several sources of a folder compiled as one
#
# The library then compiles in about three fifths of the time; a change compiles its whole unit
# again, so it is not for builds that people work in. Names in unnamed namespaces must be unique in
# a folder. Files whose names are not, such as twins for two layouts, are compiled alone.
option(PTXGEN_UNITY "Compile several sources of a folder as one" OFF)

# A tenth of g++'s time would go into collecting garbage; a unit needs up to 0.9 GB without.
if(PTXGEN_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-heapsize=1048576)
endif()

# ptxgen_unite(TARGETS SIZE ALONE PATTERN...): up to SIZE sources of one folder in a unit, or, for a
# SIZE such as 150KB, about as many bytes of them; targets that do not exist are skipped. A unit
# instantiates the templates of its sources once: for the same bytes, fewer units take less time.
function(ptxgen_unite targets size)
  if(NOT PTXGEN_UNITY)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ALONE")
  list(JOIN arg_ALONE "|" alone)
  set(limit "${size}")
  foreach(target IN LISTS targets)
    if(NOT TARGET ${target})
      continue()
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(target_folder ${target} SOURCE_DIR)
    foreach(source IN LISTS sources)
      if(source MATCHES "/src/(${alone})\\.cpp$" OR source MATCHES "^\\$<")
        continue()
      endif()
      get_filename_component(folder "${source}" DIRECTORY)
      string(MAKE_C_IDENTIFIER "${folder}" group)
      set(weight 1)
      if(size MATCHES "^([0-9]+)KB$")
        set(limit "${CMAKE_MATCH_1}000")
        cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${target_folder}" OUTPUT_VARIABLE file)
        file(SIZE "${file}" weight)
      endif()
      math(EXPR unit "0${count_${group}} / ${limit}")
      math(EXPR count_${group} "0${count_${group}} + ${weight}")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}_${unit}")
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # It takes types of a unit's files for types of headers.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endforeach()
endfunction()
