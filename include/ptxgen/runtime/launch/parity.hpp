// ptxgen/runtime/launch/parity.hpp - batched kernels against their single-row twins
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/check/parity.hpp"
#include "ptxgen/kernels/description.hpp"
#include "ptxgen/runtime/device/device.hpp"

namespace ptxgen::inline v0 {

/// A batched kernel and its single-row twin.
struct ParityPair {
  const KernelDescription* batched = nullptr;
  std::vector<std::uint64_t> values;  ///< parameters of the batched kernel, for a layer
  std::string batched_name;           ///< "batched_gemv q4_k"
  std::string single_name;            ///< "gemv q4_k"
};

/// The pairs that these kernels register: one for each kernel with a `KernelBatch`, or for each
/// word of the parameter that `KernelBatch::variants` names.
[[nodiscard]] std::vector<ParityPair> parity_pairs(std::span<const KernelDescription> kernels,
                                                   const LayerSizes& sizes = {});
/// How many pairs that are, by counting.
[[nodiscard]] std::size_t registered_pairs(std::span<const KernelDescription> kernels);

struct ParityOptions {
  LayerSizes sizes = {};
  /// Numbers of rows that batched kernels are built and launched for.
  std::vector<std::uint32_t> rows = {1, 2, 3, 4, 7, 8, 16};
  std::uint64_t seed = 1;  ///< of the operands
  bool launches = true;    ///< false: only the code is compared
};

/// The comparison of one pair. Checks are those of `gates::parity` on code for eight rows, then
///   `reference`  the twin's results for each row are within its bound of the fp64 reference
///   `M = 4`      each of M rows has the bits that the twin gives for it, in two launches one after
///                the other over outputs that were NaN; nothing else is written. register_unroll:
///                launches of fewer rows than the code serves leave the others as they were
///   `m_dim`      register_unroll: more rows than the code serves are refused before the launch
struct ParityResult {
  std::string batched;
  std::string single;
  BatchStrategy strategy = BatchStrategy::GridY;
  std::vector<gates::ParityCheck> checks;
  double code_ms = 0;  ///< building and comparing the code
  double ms = 0;       ///< all
  [[nodiscard]] bool ok() const noexcept;
};

struct ParityReport {
  std::size_t registered = 0;  ///< pairs
  std::vector<ParityResult> pairs;
  double ms = 0;
  [[nodiscard]] std::size_t passed() const noexcept;
  /// All registered pairs passed, and there are some.
  [[nodiscard]] bool ok() const noexcept;
  /// "6/6 kernel pairs passed PTX parity in 14 ms"
  [[nodiscard]] std::string summary() const;
};

/// Compares one pair. A kernel that cannot be built or launched is a failed check. Launches have
/// the sizes of the layer, but at most 67 outputs of a matrix, 2500 tokens of the vocabulary and
/// 200 positions of a cache.
[[nodiscard]] ParityResult check_parity(const Device& device, const ParityPair& pair,
                                        const ParityOptions& options = {});
/// Compares all pairs of `kernels`.
[[nodiscard]] ParityReport check_parity(const Device& device, const ParityOptions& options = {},
                                        std::span<const KernelDescription> kernels = catalog());

}  // namespace ptxgen::inline v0
