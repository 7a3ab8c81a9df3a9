// ptxgen/check/parity.hpp - a batched kernel against its single-row twin, as code
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/check/batch_strategy.hpp"
#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::gates {

/// What a batched kernel declares about its rows and its twin.
struct ParityDeclaration {
  BatchStrategy strategy = BatchStrategy::GridY;
  std::uint32_t rows = 1;  ///< RegisterUnroll: rows that the code was built for
  /// Parameters of the batched kernel: addresses of operands that have elements of each row.
  std::vector<std::string> by_row;
  /// Parameters with another name: of the single kernel, of the batched one.
  std::vector<std::array<std::string, 2>> renamed;
  /// Sizes: the batched kernel may have them as constants instead of parameters.
  std::vector<std::string> sizes;
  std::array<std::uint32_t, 3> batched_block{0, 0, 0};  ///< threads; zeros if unknown
  std::array<std::uint32_t, 3> single_block{0, 0, 0};
  std::uint64_t batched_dynamic_shared_bytes = 0;  ///< of a launch, beside what the code declares
  std::uint64_t single_dynamic_shared_bytes = 0;
};

/// One comparison of a batched kernel with its twin.
struct ParityCheck {
  std::string name;  ///< "strategy", "shared memory"
  bool ok = true;
  std::string detail;  ///< what was found; of a failure where, what, which rule, what to do
  std::vector<Finding> findings;  ///< the violating instructions
};

/// Compares the code of a batched kernel with that of its single-row twin; each module has one
/// entry with a body. Everything is derived from the instructions; text and names of registers do
/// not count. The checks, in order:
///   `strategy`           the strategy that the code shows is the declared one. grid_y: the address
///                        of each access through a `by_row` parameter depends on %ctaid.y, and the
///                        results are as many independent sums as those of the twin. grid_z:
///                        likewise. register_unroll: no such address depends on %ctaid.y or
///                        %ctaid.z, each access depends on `m_dim` by its address, its guard or a
///                        branch that decides on it, and there are independent sums for all rows,
///                        or for those of a pass of a loop up to `m_dim`.
///   `row offsets`        every `by_row` parameter is used, each access with the row in its address
///   `accumulators`       independent sums of the batched kernel and of the twin
///   `parameters`         the difference of the parameter lists, and that the strategy explains it
///   `loops`              nesting and number of loops; of register_unroll without those up to
///                        `m_dim`
///   `shared memory`      static and dynamic bytes; at most those of the twin for each row of a
///                        pass
///   `shared addresses`   32-bit addresses in the shared window, neither 64-bit nor generic ones
///   `gates`              no error or warning of the gates and the analyzer, for both kernels
[[nodiscard]] std::vector<ParityCheck> parity(const ptx::Module& batched, const ptx::Module& single,
                                              const ParityDeclaration& declared);

}  // namespace ptxgen::inline v0::gates
