// src/kernels/gemm/tiled.cpp - a matrix product in tiles, without tensor cores
#include "ptxgen/kernels/gemm/tiled.hpp"

#include "kernels/gemm/emit.hpp"

namespace ptxgen::inline v0 {

namespace {

// A tile of an operand: rows are those of C (A: rows, B: columns) or of k, as `outputs_first` says.
// Each thread loads one element, consecutive lanes along the stored row.
class Tile {
 public:
  /// `outputs_first`: a row of the tile is an output (A), else a term (B).
  Tile(KernelBuilder& k, const char* name, std::uint32_t size, bool outputs_first, bool transposed)
      : k_(k),
        size_(size),
        // Whether the stored row, along which lanes load, is the tile's column.
        swapped_(transposed),
        along_terms_(outputs_first != transposed),
        memory_(k.shared<f32>(std::uint64_t{size} * size, name)) {}

  /// Column `i` of a thread's row, which begins at `row_of(row)`.
  [[nodiscard]] Ptr<f32, Shared> row_of(const Value<u32>& row) const {
    return memory_ + k_.mul_lo(row, size_);
  }
  [[nodiscard]] Ptr<f32, Shared> in_row(const Ptr<f32, Shared>& begin, const Value<u32>& row,
                                        std::uint32_t i) const {
    return swapped_ ? begin + (row ^ i) : begin + i;
  }
  /// Row `i` of a thread's column, which begins at `column_of(column)`.
  [[nodiscard]] Ptr<f32, Shared> column_of(const Value<u32>& column) const {
    return swapped_ ? memory_.base() : memory_ + column;
  }
  [[nodiscard]] Ptr<f32, Shared> in_column(const Ptr<f32, Shared>& begin, const Value<u32>& column,
                                           std::uint32_t i) const {
    return (swapped_ ? begin + (column ^ i) : begin) + i * size_;
  }

  /// Loads the tile from term `term` and output `output` on; zeros from `terms` and `outputs` on.
  void load(const Ptr<b8>& matrix, ElementType type, std::uint64_t pitch, const Value<u32>& term,
            std::uint32_t terms, const Value<u32>& output, const Value<u32>& outputs) {
    const Value<u32> x = k_.tid_x();
    const Value<u32> y = k_.tid_y();
    const Value<u32> i = term + (along_terms_ ? x : y);
    const Value<u32> j = output + (along_terms_ ? y : x);
    const Ptr<b8> row = gemm::moved(k_, matrix, along_terms_ ? j : i, pitch * bytes(type));
    const Ptr<b8> from = gemm::moved(k_, row, along_terms_ ? i : j, bytes(type));
    const Pred in_terms = i < terms;
    const Pred inside = in_terms & (j < outputs);
    const Floats loaded = load_floats_if(k_, from, type, 1, inside);
    const Value<f32> value = expand(k_, loaded, 1)[0];
    // Permuted: lanes that store a column do not share a bank.
    k_.st(swapped_ ? row_of(x) + (y ^ x) : row_of(y) + x, value);
  }

 private:
  KernelBuilder& k_;
  std::uint32_t size_;
  bool swapped_, along_terms_;
  SharedArray<f32> memory_;
};

// One tile of outputs.
void emit_tile(gemm::Kit& kit, Tile& left, Tile& right, std::uint32_t size, const Value<u32>& top,
               const Value<u32>& first) {
  KernelBuilder& k = kit.k;
  const GemmProblem& p = kit.problem;
  const Value<u32> x = k.tid_x();
  const Value<u32> y = k.tid_y();
  const Value<u32> columns = k.constant<u32>(p.n);
  const Ptr<f32, Shared> row_begin = left.row_of(y);
  const Ptr<f32, Shared> column_begin = right.column_of(x);
  auto sum = k.var<f32>(0.0f);
  k.for_(0u, p.k, size, [&](Value<u32> term) {
    left.load(kit.a, p.type, p.pitch_a(), term, p.k, top, kit.m);
    right.load(kit.b, p.type, p.pitch_b(), term, p.k, first, columns);
    k.bar_sync();
    for (std::uint32_t i = 0; i < size; ++i) {
      const Value<f32> a = k.ld(left.in_row(row_begin, y, i));
      const Value<f32> b = k.ld(right.in_column(column_begin, x, i));
      k.fma_inplace(sum, a, b);
    }
    k.bar_sync();
  });
  const Value<u32> row = top + y;
  const Value<u32> column = first + x;
  const Pred in_rows = row < kit.m;
  k.if_(in_rows & (column < p.n), [&] { gemm::store_outputs(kit, row, column, {sum.read()}); });
}

}  // namespace

BuiltKernel GemmTiled::build(const ptx::Target& target) const {
  check(problem);
  KernelBuilder k(kernel_name<GemmTiled>, target.name);
  k.required_threads(tile, tile);
  k.contract(Contract::Forbid);
  gemm::Kit kit = gemm::read_parameters(k, problem);
  Tile left(k, "left", tile, true, problem.transpose_a);
  Tile right(k, "right", tile, false, problem.transpose_b);
  const Value<u32> first = k.mul_lo(k.ctaid_x(), tile);
  const Value<u32> begin = k.mul_lo(k.ctaid_y(), tile);
  const Value<u32> step = k.mul_lo(k.nctaid_y(), tile);
  k.for_(begin, kit.m, step,
         [&](Value<u32> top) { emit_tile(kit, left, right, tile, top, first); });
  return k.build();
}

LaunchGeometry GemmTiled::geometry() const { return gemm::square_geometry(problem, tile); }

KernelKey Describe<GemmTiled>::key(const K& spec) {
  return gemm::unaligned_key(spec.problem, spec.tile);
}

ErrorBound Describe<GemmTiled>::bound(const K& spec) {
  return detail::gemm_bound(spec.problem, gemm::chain_error(spec.problem.k + 1));
}

}  // namespace ptxgen::inline v0
