// src/kernels/gemm/register_tiles.cpp - gemm_tiled with several outputs of a thread in registers
#include "kernels/gemm/register_tiles.hpp"

#include "kernels/gemm/block_rows.hpp"

namespace ptxgen::inline v0::gemm {

namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kGroup = 4;  // outputs of a 16-byte load
constexpr std::uint32_t kBanks = 32;

// What a stored operand is.
struct Matrix {
  Ptr<b8> memory;
  ElementType type;
  std::uint64_t pitch = 0;   // bytes from one stored row to the next
  bool along_terms = false;  // the terms of a sum are adjacent
  std::uint32_t terms = 0;
};

// Whether the threads decode runs of eight terms of it.
bool in_blocks(const Matrix& matrix) { return info(matrix.type).block_values != 1; }

/// A tile in shared memory: a row of `size` outputs for each term. Term t has output o at column o
/// ^ 4 g(t) with g(t) = t % 8 ^ t / 8 * (8 / runs). So lanes that store eight terms of four
/// outputs, 32 outputs of a term, or value i of the runs of 32 / runs outputs, use all banks, and
/// four adjacent outputs stay adjacent.
class OperandTile {
 public:
  OperandTile(KernelBuilder& k, const char* name, const GemmTiled& kernel)
      : k_(k),
        size_(kernel.tile),
        terms_(kernel.terms()),
        runs_(terms_ / kRunValues),
        memory_(k.shared<f32>(std::uint64_t{size_} * terms_, name)) {}

  /// Loads the terms from `term` on of the outputs from `first` on; zeros from `outputs` on.
  void load(const Matrix& matrix, const Value<u32>& term, const Value<u32>& first,
            const Value<u32>& outputs) {
    if (in_blocks(matrix)) return load_runs(matrix, term, first, outputs);
    return matrix.along_terms ? load_across(matrix, term, first, outputs)
                              : load_along(matrix, term, first, outputs);
  }

  /// Where a thread's four outputs of number `place` begin, for `read`.
  void place(const Value<u32>& place) { group_.emplace(place); }
  /// The thread's outputs of one term: groups of four, 64 apart.
  [[nodiscard]] std::vector<Value<f32>> read(std::uint32_t term) const {
    std::vector<Value<f32>> values;
    const std::uint32_t g = permutation(term);
    const Value<u32> at = g == 0 ? *group_ : *group_ ^ g;
    const Ptr<f32, Shared> begin = memory_ + k_.mul_lo(at, kGroup);
    for (std::uint32_t part = 0; part < size_ / 64; ++part) {
      const auto four = k_.ld<4>(begin + (term * size_ + part * 64));
      for (const Value<f32>& value : four) values.push_back(value);
    }
    return values;
  }

 private:
  [[nodiscard]] std::uint32_t permutation(std::uint32_t term) const {
    return term % kRunValues ^ term / kRunValues * (kRunValues / runs_);
  }
  void store(const Value<u32>& row, const Value<u32>& column, const Value<f32>& value) {
    k_.st(memory_ + k_.mad_lo(row, size_, column), value);
  }
  [[nodiscard]] Value<f32> element(const Matrix& matrix, const Ptr<b8>& row, const Value<u32>& i,
                                   const Pred& inside) {
    const Ptr<b8> from = moved(k_, row, i, bytes(matrix.type));
    return expand(k_, load_floats_if(k_, from, matrix.type, 1, inside), 1)[0];
  }

  // Terms are adjacent: eight lanes on eight of them, 32 bytes of f32.
  void load_across(const Matrix& matrix, const Value<u32>& term, const Value<u32>& first,
                   const Value<u32>& outputs) {
    const Value<u32> low = k_.tid_x() & (kRunValues - 1);
    const Value<u32> own = k_.tid_x() >> 3u;
    for (std::uint32_t o = 0; o < size_; o += kThreads / kRunValues) {
      const Value<u32> output = o == 0 ? own : own + o;
      const Value<u32> j = first + output;
      const Pred in_outputs = j < outputs;
      const Ptr<b8> row = moved(k_, matrix.memory, j, matrix.pitch);
      for (std::uint32_t run = 0; run < runs_; ++run) {
        const Value<u32> t = run == 0 ? low : low + kRunValues * run;
        const Value<u32> i = term + t;
        const Pred in_terms = i < matrix.terms;
        const Value<f32> value = element(matrix, row, i, in_terms & in_outputs);
        const Value<u32> g = run == 0 ? low : low ^ (run * (kRunValues / runs_));
        store(t, output ^ (g << 2u), value);
      }
    }
  }

  // Outputs are adjacent: a warp on 32 of them.
  void load_along(const Matrix& matrix, const Value<u32>& term, const Value<u32>& first,
                  const Value<u32>& outputs) {
    const Value<u32> lane = k_.tid_x() & (kBanks - 1);
    const Value<u32> low = k_.tid_x() >> 5u;  // of eight warps
    for (std::uint32_t run = 0; run < runs_; ++run) {
      const Value<u32> t = run == 0 ? low : low + kRunValues * run;
      const Value<u32> i = term + t;
      const Pred in_terms = i < matrix.terms;
      const Ptr<b8> row = moved(k_, matrix.memory, i, matrix.pitch);
      const Value<u32> g = run == 0 ? low : low ^ (run * (kRunValues / runs_));
      for (std::uint32_t o = 0; o < size_; o += kBanks) {
        const Value<u32> output = o == 0 ? lane : lane + o;
        const Value<u32> j = first + output;
        const Pred in_outputs = j < outputs;
        const Value<f32> value = element(matrix, row, j, in_terms & in_outputs);
        store(t, output ^ (g << 2u), value);
      }
    }
  }

  // Blocks: each thread decodes one run. Rows outside the matrix repeat the last one, whose results
  // are not stored.
  void load_runs(const Matrix& matrix, const Value<u32>& term, const Value<u32>& first,
                 const Value<u32>& outputs) {
    const Value<u32> run = k_.tid_x() & (runs_ - 1);
    const Value<u32> output = k_.tid_x() / runs_;
    const Value<u32> last = outputs - 1u;
    const Value<u32> j = k_.min(first + output, last);
    const Ptr<b8> row = moved(k_, matrix.memory, j, matrix.pitch);
    // The terms of a step are within a row: k is a multiple of them.
    const std::vector<Value<f32>> values =
        load_run_of_row(k_, matrix.type, row, (term >> 3u) + run);
    const Value<u32> flip = k_.mul_lo(run, kRunValues / runs_);
    const Value<u32> begin = k_.mul_lo(run, kRunValues * size_);
    for (std::uint32_t i = 0; i < kRunValues; ++i) {
      const Value<u32> g = i == 0 ? flip : flip ^ i;
      const Value<u32> column = output ^ (g << 2u);
      k_.st(memory_ + (begin + column) + i * size_, values[i]);
    }
  }

  KernelBuilder& k_;
  std::uint32_t size_, terms_, runs_;
  SharedArray<f32> memory_;
  std::optional<Value<u32>> group_;
};

// The outputs of the block's tile at `top` and `first`.
class Tile {
 public:
  Tile(Kit& kit, const GemmTiled& kernel, OperandTile& left, OperandTile& right)
      : k_(kit.k), kit_(kit), kernel_(kernel), left_(left), right_(right) {
    for (std::uint32_t i = 0; i < outputs() * outputs(); ++i) sums_.push_back(k_.var<f32>(0.0f));
  }

  void multiply(const Value<u32>& top, const Value<u32>& first) {
    const GemmProblem& p = kit_.problem;
    const Matrix a{kit_.a, p.type, p.pitch_a() * bytes(p.type), !p.transpose_a, p.k};
    const Matrix b{kit_.b, p.type_b(), pitch_bytes_b(p), p.transpose_b, p.k};
    const Value<u32> columns = k_.constant<u32>(p.n);
    k_.for_(0u, p.k, kernel_.terms(), [&](Value<u32> term) {
      left_.load(a, term, top, kit_.m);
      right_.load(b, term, first, columns);
      k_.bar_sync();
      for (std::uint32_t t = 0; t < kernel_.terms(); ++t) add_term(t);
      k_.bar_sync();
    });
  }

  void store(const Value<u32>& top, const Value<u32>& first, const Value<u32>& row_group,
             const Value<u32>& column_group) {
    const Value<u32> row_begin = k_.mad_lo(row_group, kGroup, top);
    const Value<u32> column_begin = k_.mad_lo(column_group, kGroup, first);
    for (std::uint32_t i = 0; i < outputs(); ++i) {
      const Value<u32> row = row_begin + place_of(i);
      const Pred in_rows = row < kit_.m;
      for (std::uint32_t j = 0; j < outputs(); ++j) {
        const Value<u32> column = column_begin + place_of(j);
        const Value<f32> sum = sums_[i * outputs() + j].read();
        k_.if_(in_rows & (column < kit_.problem.n),
               [&] { store_outputs(kit_, row, column, {sum}); });
      }
    }
  }

 private:
  [[nodiscard]] std::uint32_t outputs() const { return kernel_.outputs(); }
  [[nodiscard]] static std::uint32_t place_of(std::uint32_t i) {
    return i / kGroup * 64 + i % kGroup;
  }
  void add_term(std::uint32_t term) {
    const std::vector<Value<f32>> a = left_.read(term);
    const std::vector<Value<f32>> b = right_.read(term);
    for (std::uint32_t i = 0; i < outputs(); ++i) {
      for (std::uint32_t j = 0; j < outputs(); ++j) {
        k_.fma_inplace(sums_[i * outputs() + j], a[i], b[j]);
      }
    }
  }

  KernelBuilder& k_;
  Kit& kit_;
  const GemmTiled& kernel_;
  OperandTile& left_;
  OperandTile& right_;
  std::vector<Var<f32>> sums_;
};

}  // namespace

void emit_register_tiles(Kit& kit, const GemmTiled& kernel) {
  KernelBuilder& k = kit.k;
  OperandTile left(k, "left", kernel);
  OperandTile right(k, "right", kernel);
  const Value<u32> column_group = k.tid_x() & 15u;
  const Value<u32> row_group = k.tid_x() >> 4u;
  left.place(row_group);
  right.place(column_group);
  const Value<u32> first = k.mul_lo(k.ctaid_x(), kernel.tile);
  const Value<u32> begin = k.mul_lo(k.ctaid_y(), kernel.tile);
  const Value<u32> step = k.mul_lo(k.nctaid_y(), kernel.tile);
  k.for_(begin, kit.m, step, [&](Value<u32> top) {
    Tile tile(kit, kernel, left, right);
    tile.multiply(top, first);
    tile.store(top, first, row_group, column_group);
  });
}

}  // namespace ptxgen::inline v0::gemm
