// ptxgen/kernels/tokens/top_k.hpp - the largest elements of rows, in descending order
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// The k largest elements of each row of x, [rows][columns], in descending order, with their
/// indices: `values` and `indices` are [rows][k]. Equal elements, as -0 and 0, are in the order of
/// their indices, lowest first. A NaN is below every number. Values are the elements bit for bit.
/// The result does not depend on timing.
///
/// A block of 1024 threads for each 2048 elements of a row (4096 for k above 64, 8192 above 128):
/// 128 blocks for 40 of a vocabulary of 262,144. A thread keeps its elements in registers, as keys
/// of the element and the index, all different. A binary search over the bits of a key, two to four
/// barriers a step, finds a number that exactly k keys are not below: about 20 steps where elements
/// differ early, at most 50. The last block of a row to finish does the same with the k keys of
/// each block, at most 8192, and sorts its k. x is read once; the workspace has 8 k bytes a block
/// and 4 a row. Entry
/// `top_k(x, values, indices, workspace, columns, k)`; the grid's y is the row. Consecutive lanes
/// access consecutive elements.
struct TopK {
  std::uint32_t rows = 1;               ///< at most 65535
  std::uint32_t columns = 32000;        ///< at most 262144
  std::uint32_t k = 40;                 ///< at most 256, and at most the columns
  ElementType type = ElementType::f32;  ///< of x and values: f32, f16 or bf16

  static constexpr std::uint32_t kThreads = 1024;
  static constexpr std::uint32_t kMaxKeys = 8192;  ///< of a block, in registers
  /// Elements of a block: the blocks of the longest row leave at most `kMaxKeys`.
  [[nodiscard]] constexpr std::uint32_t chunk() const noexcept {
    return k <= 64 ? 2048 : k <= 128 ? 4096 : kMaxKeys;
  }
  /// Of a row.
  [[nodiscard]] constexpr std::uint32_t blocks() const noexcept {
    return columns / chunk() + (columns % chunk() != 0 ? 1 : 0);
  }

  struct Operands {
    DeviceRange values{}, indices{}, x{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// Throws `Error` (Stage::Launch): "empty-grid" if rows, columns or k is 0, "bad-parameter" if k
  /// is more than the columns.
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads x once, writes k elements and indices for each row.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<TopK> {
  using K = TopK;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{
      "top_k",
      "the k largest elements of each row and their indices, descending, equal ones by index; a "
      "NaN is below every number",
      "coalesced: consecutive lanes on consecutive elements of a row"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 65535, "rows, in the grid's y"),
      number<&K::columns>("columns", 1, 262144, "elements of a row"),
      number<&K::k>("k", 1, 256, "elements that are picked, at most the columns"),
      choice<&K::type, kFloatTypes>("type", "of x and values").specializes()};
  static constexpr auto kElements = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.columns;
  };
  static constexpr auto kPicked = [](const K& spec) { return std::uint64_t{spec.rows} * spec.k; };
  static constexpr Row arguments[] = {
      Row::input("x", &O::x, &K::type, kElements, "rows"),
      Row::output("values", &O::values, &K::type, kPicked, "the largest elements, descending"),
      Row::output("indices", &O::indices, ElementType::u32, kPicked, "their indices in the row"),
      Row::workspace(),
      Row::shape<&K::columns>("columns"),
      Row::shape<&K::k>("k")};
  /// Throws as `geometry`.
  static void check(const K& spec, const O&) { static_cast<void>(spec.geometry()); }
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
  static ErrorBound bound(const K&) { return {.exact = true}; }
  static constexpr K cases[] = {{1, 1, 1},
                                {17, 31, 7},
                                {3, 256, 256},
                                {2, 4097, 2},
                                {1, 70000, 256},
                                {1, 262144, 64, ElementType::f16},
                                {2, 9000, 65},
                                {4, 16385, 129, ElementType::bf16},
                                {5, 9000, 40, ElementType::f16},
                                {3, 12289, 1, ElementType::bf16}};
};

}  // namespace ptxgen::inline v0
