// ptxgen/kernels/tokens/embedding.hpp - rows of a table, picked by token ids
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

inline constexpr Word<ElementType> kTableTypes[] = {
    {"f32", ElementType::f32},   {"f16", ElementType::f16},   {"bf16", ElementType::bf16},
    {"q4_0", ElementType::q4_0}, {"q4_1", ElementType::q4_1}, {"q5_0", ElementType::q5_0},
    {"q5_1", ElementType::q5_1}, {"q8_0", ElementType::q8_0}, {"q8_1", ElementType::q8_1},
    {"q4_k", ElementType::q4_k}, {"q5_k", ElementType::q5_k}, {"q6_k", ElementType::q6_k}};

/// `y[r][i] = table[ids[r]][i] * scale` for each row r. Values of block formats are those of
/// `dequantize`; the product is computed in f32 and rounded once to the type of y. The scale is 1
/// for llama, the root of `columns` for gemma.
///
/// Ids are u32 in device memory, so a captured graph can replay with new tokens. An id at or above
/// `vocabulary` gives a row of NaN and reads nothing beyond the table. Entry
/// `embedding(ids, table, y, rows, columns, vocabulary, scale)`: table is [vocabulary][columns], y
/// is [rows][columns], both aligned to an element (a block: to 2 bytes). The grid's y counts rows
/// by stride. Floats: 16 bytes a lane where the rows are aligned, else single elements; blocks: 8
/// values a lane.
struct Embedding {
  std::uint32_t rows = 1;                ///< tokens
  std::uint32_t columns = 4096;          ///< of a row; whole blocks of a block format
  std::uint32_t vocabulary = 32000;      ///< rows of the table
  ElementType table = ElementType::f16;  ///< f32, f16, bf16 or a block format
  ElementType y = ElementType::f32;      ///< f32, f16 or bf16

  static constexpr std::uint32_t kThreads = 256;

  struct Operands {
    DeviceRange y{}, table{}, ids{};
    float scale = 1;
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// Throws `Error` (Stage::Launch): "empty-grid" if rows = 0 or columns = 0, "bad-parameter"
  /// unless the columns are whole blocks.
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads ids and one row of the table for each, writes y once.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<Embedding> {
  using K = Embedding;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{
      "embedding", "y[r] = table[ids[r]] * scale; a row of NaN for an id outside the table",
      "coalesced: consecutive lanes on consecutive 16 bytes, or 8 values of blocks"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 0xffffffffu, "tokens"),
      number<&K::columns>("columns", 1, 0x7fffffffu, "elements of a row"),
      number<&K::vocabulary>("vocabulary", 1, 0xffffffffu, "rows of the table"),
      choice<&K::table, kTableTypes>("table", "type of the table").specializes(),
      choice<&K::y, kFloatTypes>("y", "type of the result").specializes()};
  static constexpr auto kTable = [](const K& spec) {
    return std::uint64_t{spec.vocabulary} * spec.columns;
  };
  static constexpr auto kElements = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.columns;
  };
  static constexpr Row arguments[] = {
      Row::input("ids", &O::ids, ElementType::u32, &K::rows, "rows of the table").values(0, 300),
      Row::input("table", &O::table, &K::table, kTable, "a row for each token"),
      Row::output("y", &O::y, &K::y, kElements, "the rows of the ids, scaled"),
      Row::shape<&K::rows>("rows"),
      Row::shape<&K::columns>("columns"),
      Row::shape<&K::vocabulary>("vocabulary"),
      Row::scalar<&O::scale>("scale", "factor of every element").values(0.5, 64)};
  /// Throws as `geometry`.
  static void check(const K& spec, const O&) { static_cast<void>(spec.geometry()); }
  static constexpr KernelBatch batch{BatchStrategy::GridY, "rows"};
  static K twin(K spec) {
    spec.rows = 1;
    return spec;
  }
  static K for_layer(K spec, const LayerSizes& sizes) {
    spec.columns = sizes.hidden;
    spec.vocabulary = sizes.vocabulary;
    return spec;
  }
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{1, 1, 1},
                                {3, 255, 300},
                                {17, 256, 280},
                                {2, 4099, 300, ElementType::f32},
                                {2, 1000, 300, ElementType::bf16, ElementType::f16},
                                {4, 96, 300, ElementType::f32, ElementType::bf16},
                                {5, 96, 300, ElementType::q4_0},
                                {7, 32, 300, ElementType::q4_1, ElementType::bf16},
                                {3, 160, 200, ElementType::q5_0},
                                {3, 64, 300, ElementType::q5_1},
                                {8, 4096, 300, ElementType::q8_0, ElementType::f16},
                                {3, 288, 300, ElementType::q8_1},
                                {16, 512, 250, ElementType::q4_k, ElementType::bf16},
                                {3, 256, 300, ElementType::q5_k},
                                {2, 768, 300, ElementType::q6_k, ElementType::f16}};
};

}  // namespace ptxgen::inline v0
