// ptxgen/kernels/tokens/argmax.hpp - the index of the largest element of rows
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// `index[r]` = the index of the largest element of row r of x, [rows][columns]: of equal elements
/// the lowest index, where -0 and 0 are equal. A NaN is below every number, so a row of NaN gives
/// 0. The result does not depend on timing.
///
/// A block for each 2048 elements of a row, up to 1024 blocks: 128 for a vocabulary of 262,144. The
/// last block of a row to finish merges the results of all through the workspace: 8 bytes a block
/// and 4 a row, none for rows of up to 2048 elements. Entry `argmax(x, index, workspace, columns)`;
/// the grid's y is the row. Consecutive lanes access consecutive elements.
struct Argmax {
  std::uint32_t rows = 1;  ///< at most 65535
  std::uint32_t columns = 32000;
  ElementType type = ElementType::f32;  ///< of x: f32, f16 or bf16

  static constexpr std::uint32_t kThreads = 256;
  /// Of a row.
  [[nodiscard]] constexpr std::uint32_t blocks() const noexcept {
    const std::uint32_t wanted = columns / 2048 + (columns % 2048 != 0 ? 1 : 0);
    return wanted < 1024 ? wanted : 1024;
  }

  struct Operands {
    DeviceRange index{}, x{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// rows = 0 or columns = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads x once, writes an index for each row.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<Argmax> {
  using K = Argmax;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"argmax",
                                  "index of the largest element of each row, the lowest "
                                  "of equal ones; a NaN is below every number",
                                  "coalesced: consecutive lanes on consecutive elements of a row"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 65535, "rows, in the grid's y"),
      number<&K::columns>("columns", 1, 0x7fffffffu, "elements of a row"),
      choice<&K::type, kFloatTypes>("type", "of x").specializes()};
  static constexpr auto kElements = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.columns;
  };
  static constexpr Row arguments[] = {
      Row::input("x", &O::x, &K::type, kElements, "rows"),
      Row::output("index", &O::index, ElementType::u32, &K::rows, "of the largest elements"),
      Row::workspace(), Row::shape<&K::columns>("columns")};
  static WorkspaceNeed workspace(const K& spec);
  static constexpr KernelBatch batch{BatchStrategy::GridY, "rows"};
  static K twin(K spec) {
    spec.rows = 1;
    return spec;
  }
  static K for_layer(K spec, const LayerSizes& sizes) {
    spec.columns = sizes.vocabulary;
    return spec;
  }
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K&) { return {.exact = true}; }
  static constexpr K cases[] = {{1, 1},
                                {17, 31},
                                {3, 2048},
                                {2, 2049},
                                {1, 70000},
                                {5, 4099, ElementType::f16},
                                {16, 1000, ElementType::bf16},
                                {1, 262144, ElementType::f16}};
};

}  // namespace ptxgen::inline v0
