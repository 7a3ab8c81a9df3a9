// tests/gemv_bench/program.hpp - calls of the gemv-bench program
#pragma once

#include "cli/program.hpp"

namespace ptxgen::test {

inline SubprocessResult gemv_bench_program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), GEMV_BENCH);
  return run_program(arguments);
}

}  // namespace ptxgen::test
