// ptxgen/support/language.hpp - stops a compilation that is not C++20
#pragma once

#if defined(__cplusplus) && __cplusplus < 202002L
#error "ptxgen needs C++20: compile with -std=c++20 (CMake: target_compile_features(t cxx_std_20))"
// A file that does not exist ends the compilation here: all else would follow from the line above.
#include "ptxgen needs C++20"
#endif
