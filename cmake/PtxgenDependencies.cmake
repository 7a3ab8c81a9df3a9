# cmake/PtxgenDependencies.cmake - packages of the distribution that the build uses

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
# Its headers alone (libxxhash-dev): nothing is linked.
find_path(PTXGEN_XXHASH_INCLUDE xxhash.h REQUIRED)
mark_as_advanced(PTXGEN_XXHASH_INCLUDE)
if(PTXGEN_ICU)
  find_package(ICU 67 COMPONENTS i18n uc)
  if(NOT ICU_FOUND)
    message(FATAL_ERROR "ICU is not found, which tokenizers of byte-level BPE need: install the "
                        "package libicu-dev, or configure with -DPTXGEN_ICU=OFF, which leaves "
                        "SentencePiece and token ids")
  endif()
endif()
if(PTXGEN_HIGHWAY)
  find_package(hwy 1.0.3 QUIET)
  if(NOT hwy_FOUND)
    message(STATUS "Highway is not found (package libhwy-dev): kernels on the host run without "
                   "vectors")
    set(PTXGEN_HIGHWAY OFF)
  endif()
endif()

if(PTXGEN_NCURSES)
  find_package(Curses QUIET)
  if(NOT CURSES_FOUND)
    message(STATUS "ncurses is not found (package libncurses-dev): `ptxgen step` prints frames but "
                   "has no terminal")
    set(PTXGEN_NCURSES OFF)
  endif()
endif()

# fmt's header-only target defines FMT_HEADER_ONLY in every source, which then compiles a part of its
# output; here the sources that call it, such as src/support/format.cpp, define that themselves.
add_library(ptxgen_fmt INTERFACE)
target_include_directories(
  ptxgen_fmt SYSTEM
  INTERFACE $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
# spdlog's own header-only target links the shared libfmt; this one leaves nothing to link.
add_library(ptxgen_spdlog INTERFACE)
target_compile_definitions(ptxgen_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_include_directories(
  ptxgen_spdlog SYSTEM
  INTERFACE $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(ptxgen_spdlog INTERFACE ptxgen_fmt Threads::Threads)

if(PTXGEN_BUILD_CLI)
  find_package(CLI11 2.1 REQUIRED)
  # Playbooks. A bundle links the archive that the package has beside the shared library.
  find_package(yaml-cpp 0.6 QUIET)
  if(NOT yaml-cpp_FOUND)
    message(FATAL_ERROR "yaml-cpp is not found, which the ptxgen program reads playbooks with: install "
                        "the package libyaml-cpp-dev, or configure with -DPTXGEN_BUILD_CLI=OFF")
  endif()
  add_library(ptxgen_yaml INTERFACE)
  if(PTXGEN_BUNDLE)
    find_library(PTXGEN_YAML_ARCHIVE libyaml-cpp.a REQUIRED)
    mark_as_advanced(PTXGEN_YAML_ARCHIVE)
    target_link_libraries(ptxgen_yaml INTERFACE "${PTXGEN_YAML_ARCHIVE}")
  else()
    target_link_libraries(ptxgen_yaml INTERFACE yaml-cpp)
  endif()
  if(PTXGEN_PNG)
    find_package(PNG 1.6 QUIET)
    if(NOT PNG_FOUND)
      message(STATUS "libpng is not found (package libpng-dev): ptxgen coverage writes SVG, no PNG")
      set(PTXGEN_PNG OFF)
    endif()
  endif()
endif()
if(PTXGEN_BUILD_TESTS)
  find_package(Catch2 2.13 REQUIRED)
  find_package(rapidcheck REQUIRED)
  find_package(Python3 3.7 REQUIRED COMPONENTS Interpreter)
  # A wrapper that chooses a version, as pyenv's, takes longer to start than the interpreter.
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c "import sys; print(sys.executable)"
    OUTPUT_VARIABLE interpreter
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(EXISTS "${interpreter}")
    set(Python3_EXECUTABLE "${interpreter}")
  endif()
endif()
if(PTXGEN_BUILD_BENCH)
  find_package(benchmark 1.7 REQUIRED)
endif()
