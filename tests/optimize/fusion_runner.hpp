// tests/optimize/fusion_runner.hpp - runs three-operand bodies on the emulator
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/ptx.hpp"

namespace ptxgen::test {

/// Operands of so many threads, `width` bits each.
struct Operands {
  std::vector<std::uint64_t> a, b, c;
};

/// A kernel `k` whose threads load %a, %b and %c of `width` bits, execute the body and store %d.
/// %x0 .. %x7 have that width too, %p0 .. %p3 are predicates; the first line of the body is line 2.
[[nodiscard]] std::string elementwise_kernel(std::string_view body, int width);

/// What the threads store.
[[nodiscard]] std::vector<std::uint64_t> run_elementwise(const ptx::Module& module, int width,
                                                         const Operands& operands);

}  // namespace ptxgen::test
