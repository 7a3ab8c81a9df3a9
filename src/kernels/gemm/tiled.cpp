// src/kernels/gemm/tiled.cpp - a matrix product in tiles, without tensor cores
#include "ptxgen/kernels/gemm/tiled.hpp"

#include "kernels/gemm/block_rows.hpp"
#include "kernels/gemm/register_tiles.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kRegisterThreads = 256;  // of tiles with several outputs of a thread

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
    const Value<u32> row_in_tile = swapped_ ? x : y;
    const Value<u32> place = swapped_ ? y ^ x : x;
    k_.st(row_of(row_in_tile) + place, value);
  }

  /// The same of a B in blocks, whose rows are outputs: each warp decodes the same eight terms of
  /// all of them, so that its lanes store a row. Rows outside the matrix repeat the last one, whose
  /// results are not stored.
  void load_runs(const Ptr<b8>& matrix, ElementType type, std::uint64_t pitch,
                 const Value<u32>& term, const Value<u32>& output, const Value<u32>& outputs) {
    const Value<u32> x = k_.tid_x();
    const Value<u32> thread = k_.mad_lo(k_.tid_y(), size_, x);
    const Value<u32> run = thread >> 5u;
    const Value<u32> own = thread & 31u;
    const Pred in_runs = run < size_ / kRunValues;
    k_.if_(in_runs & (own < size_), [&] {
      const Value<u32> last = outputs - 1u;
      const Value<u32> j = k_.min(output + own, last);
      const Ptr<b8> row = gemm::moved(k_, matrix, j, pitch);
      const std::vector<Value<f32>> values =
          gemm::load_run_of_row(k_, type, row, (term >> 3u) + run);
      const Value<u32> first = run << 3u;
      for (std::uint32_t i = 0; i < kRunValues; ++i) {
        const Value<u32> t = i == 0 ? first : first + i;
        const Value<u32> place = own ^ t;
        k_.st(row_of(t) + place, values[i]);
      }
    });
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
    if (info(p.type_b()).block_values != 1) {
      right.load_runs(kit.b, p.type_b(), gemm::pitch_bytes_b(p), term, first, columns);
    } else {
      right.load(kit.b, p.type_b(), p.pitch_b(), term, p.k, first, columns);
    }
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
  detail::refuse_eight_bits(problem, kernel_name<GemmTiled>);
  KernelBuilder k(kernel_name<GemmTiled>, target.name);
  if (outputs() == 1) {
    k.required_threads(tile, tile);
  } else {
    k.required_threads(kRegisterThreads);
    k.min_blocks_per_sm(2);
  }
  k.contract(Contract::Forbid);
  gemm::Kit kit = gemm::read_parameters(k, problem);
  if (outputs() != 1) {
    gemm::emit_register_tiles(kit, *this);
    return k.build();
  }
  Tile left(k, "left", tile, true, problem.transpose_a);
  Tile right(k, "right", tile, false, problem.transpose_b);
  const Value<u32> first = k.mul_lo(k.ctaid_x(), tile);
  const Value<u32> begin = k.mul_lo(k.ctaid_y(), tile);
  const Value<u32> step = k.mul_lo(k.nctaid_y(), tile);
  k.for_(begin, kit.m, step,
         [&](Value<u32> top) { emit_tile(kit, left, right, tile, top, first); });
  return k.build();
}

LaunchGeometry GemmTiled::geometry() const {
  LaunchGeometry launch = gemm::square_geometry(problem, tile);
  if (outputs() != 1) launch.block = {kRegisterThreads, 1, 1};
  return launch;
}

KernelKey Describe<GemmTiled>::key(const K& spec) {
  return gemm::unaligned_key(spec.problem, spec.tile);
}

ErrorBound Describe<GemmTiled>::bound(const K& spec) {
  return detail::gemm_bound(spec.problem, gemm::chain_error(spec.problem.k + 1));
}

}  // namespace ptxgen::inline v0
