// src/kernels/gemm/mma.cpp - a matrix product on tensor cores by mma.sync
#include "ptxgen/kernels/gemm/mma.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/gemm/staged_operand.hpp"
#include "kernels/gemm/tile_division.hpp"
#include "kernels/parts/block_vote.hpp"
#include "kernels/parts/products.hpp"
#include "kernels/parts/refusal.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

gemm::TileLayout layout_a(const GemmMma& kernel) {
  return {!kernel.problem.transpose_a, kernel.shape().m, kernel.step(), bytes(kernel.problem.type)};
}
gemm::TileLayout layout_b(const GemmMma& kernel) {
  return {kernel.problem.transpose_b, kernel.shape().n, kernel.step(), bytes(kernel.problem.type)};
}
std::uint32_t stage_bytes(const GemmMma& kernel) {
  return layout_a(kernel).bytes() + layout_b(kernel).bytes();
}

// From row to row of a warp's outputs on their way through shared memory: an odd multiple of 32
// bytes, so that lanes of four rows store to different banks.
std::uint32_t output_pitch(const GemmTileShape& shape) { return shape.warp_n() + 8; }
std::uint32_t output_bytes(const GemmTileShape& shape) {
  return 16 * output_pitch(shape) * 4 * shape.warps_m * shape.warps_n;
}

// The widest load that alignment, pitch and stride allow.
std::uint32_t load_bytes(const GemmProblem& problem, std::uint64_t pitch, std::uint64_t stride) {
  const std::uint32_t element = ptxgen::bytes(problem.type);
  std::uint64_t bytes = std::clamp(problem.alignment, element, 16u);
  while (bytes > element && (pitch * element % bytes != 0 || stride * element % bytes != 0)) {
    bytes /= 2;
  }
  return static_cast<std::uint32_t>(bytes);
}

// What is not divided further: a round of the ring, so that places in it are constant in the code.
std::uint32_t unit_terms(const GemmMma& kernel) { return kernel.stages * kernel.step(); }

// Without cp.async a load is inside the matrix or not: rows are multiples of it.
gemm::TileCopy copy_of(const GemmMma& kernel, const ptx::Target& target, bool is_a,
                       const std::optional<Value<u32>>& part) {
  const GemmProblem& p = kernel.problem;
  gemm::TileCopy copy;
  copy.threads = kernel.shape().threads();
  copy.load_bytes = is_a ? kernel.load_bytes_a() : kernel.load_bytes_b();
  copy.async = target.sm >= kAsyncSm && copy.load_bytes >= 4;
  copy.pitch = is_a ? p.pitch_a() : p.pitch_b();
  copy.terms = p.k;
  if (part) {
    copy.shared_terms = kernel.blocks != 0 ? unit_terms(kernel) : p.k / kernel.splits;
    copy.part.emplace(*part);
  }
  copy.outputs = is_a ? 0 : p.n;
  if (!is_a && kernel.converts_b()) {
    copy.from = p.type_b();
    copy.to = p.type;
    copy.async = false;
    copy.load_bytes = 16;
    return copy;
  }
  if (!copy.async) {
    const bool along_k = is_a ? !p.transpose_a : p.transpose_b;
    const std::uint32_t row = along_k ? p.k : is_a ? 1 : p.n;
    const std::uint32_t element = bytes(p.type);
    while (copy.load_bytes > element && row * element % copy.load_bytes != 0) copy.load_bytes /= 2;
  }
  return copy;
}

constexpr std::uint64_t kMaxUnits = std::uint64_t{1} << 32;

std::uint32_t all_steps(const GemmMma& kernel) {
  return (kernel.problem.k - 1) / kernel.step() + 1;
}
std::uint64_t tile_bytes(const GemmTileShape& shape) {
  return std::uint64_t{4} * shape.m * shape.n;
}
std::uint64_t rounded_up(std::uint64_t bytes) { return (bytes + 15) / 16 * 16; }
gemm::PartialSumsLayout parts_of(const GemmMma& kernel) {
  const GemmTileShape& shape = kernel.shape();
  return {kernel.blocks, 1, shape.threads(), shape.warp_m() * shape.warp_n() / 32};
}
gemm::TileShares shares_of(const GemmMma& kernel, std::uint16_t sm) {
  return {kernel.tiles() / kernel.problem.batch, kernel.blocks,
          kernel.problem.k / unit_terms(kernel), gemm::resident_blocks(kernel, sm)};
}

// Where the block's tile is.
struct Origin {
  Value<u32> row, column;
};

std::uint32_t tiles_across(const gemm::Kit& kit, const GemmTileShape& shape) {
  return (kit.problem.n - 1) / shape.n + 1;
}
Value<u32> tiles_down(const gemm::Kit& kit, const GemmTileShape& shape) {
  return (kit.m - 1u) / shape.m + 1u;
}

// Groups of rows of tiles; in a group, tiles follow each other down the columns.
Origin origin_of(const gemm::Kit& kit, const GemmTileShape& shape, const Value<u32>& tile) {
  KernelBuilder& k = kit.k;
  const std::uint32_t across = tiles_across(kit, shape);
  const Value<u32> down = tiles_down(kit, shape);
  const Value<u32> group = tile / (GemmMma::kGroupedTiles * across);
  const Value<u32> first = k.mul_lo(group, GemmMma::kGroupedTiles);
  const Value<u32> rows = k.min(down - first, GemmMma::kGroupedTiles);
  const Value<u32> before = k.mul_lo(group, GemmMma::kGroupedTiles * across);
  const Value<u32> inside = tile - before;
  const Value<u32> column = inside / rows;
  const Value<u32> row = first + (inside - k.mul_lo(column, rows));
  const Value<u32> top = k.mul_lo(row, std::uint32_t{shape.m});
  return {top, k.mul_lo(column, std::uint32_t{shape.n})};
}

/// The code of one kernel.
template <class Shape, class T>
class Emitter {
 public:
  Emitter(const GemmMma& kernel, const ptx::Target& target, gemm::Kit& kit)
      : k_(kit.k),
        kit_(kit),
        kernel_(kernel),
        target_(target),
        shape_(kernel.shape()),
        async_(target.sm >= kAsyncSm),
        memory_(k_.dynamic_shared<b8>().base()),
        warp_(k_.tid_x() >> 5u),
        warp_row_(k_.mul_lo(warp_ / std::uint32_t{shape_.warps_n}, shape_.warp_m())),
        warp_column_(k_.mul_lo(warp_ % std::uint32_t{shape_.warps_n}, shape_.warp_n())),
        rows_a_(k_, layout_a(kernel), true, warp_row_, shape_.warp_m(), memory_),
        rows_b_(k_, layout_b(kernel), false, warp_column_, shape_.warp_n(), tile_b()) {
    for (std::uint32_t i = 0; i < shape_.warp_m() / 16 * (shape_.warp_n() / 8); ++i) {
      sums_.emplace_back(k_);
    }
  }

  void emit() {
    if (kernel_.blocks != 0) return divide_tiles();
    std::optional<Value<u32>> part;
    if (kernel_.splits != 1) part.emplace(k_.ctaid_y());
    begin_tile(k_.ctaid_x(), part);
    multiply();
    if (kernel_.splits == 1) {
      // The ring becomes the place of the outputs.
      k_.bar_sync();
      store_tile();
    } else {
      k_.if_(add_part(), [&] {
        sum_parts();
        store_tile();
      });
    }
  }

 private:
  [[nodiscard]] Ptr<b8, Shared> tile_b() const {
    return memory_.offset_bytes(layout_a(kernel_).bytes());
  }
  [[nodiscard]] std::uint32_t steps() const { return all_steps(kernel_) / kernel_.splits; }
  // The block's next outputs, and of which part of their sums.
  void begin_tile(const Value<u32>& tile, const std::optional<Value<u32>>& part) {
    origin_.emplace(origin_of(kit_, shape_, tile));
    a_.emplace(k_, layout_a(kernel_), copy_of(kernel_, target_, true, part), kit_.a, origin_->row,
               kit_.m, memory_);
    b_.emplace(k_, layout_b(kernel_), copy_of(kernel_, target_, false, part), kit_.b,
               origin_->column, k_.constant<u32>(kit_.problem.n), tile_b());
  }

  // Stream-K: the block's parts of tiles, then its whole tiles.
  void divide_tiles() {
    const Value<u32> block = k_.ctaid_x();
    const Value<u32> tiles = k_.mul_lo(tiles_down(kit_, shape_), tiles_across(kit_, shape_));
    gemm::TileDivision division(k_, tiles, block, shares_of(kernel_, target_.sm));
    std::vector<Var<f32>> sums;
    for (const auto& sum : sums_) {
      for (const Var<f32>& one : sum.variables()) sums.emplace_back(one.core(), one.reg());
    }
    division.for_each_piece([&](const gemm::TilePiece& piece) {
      begin_tile(piece.tile, piece.first);
      for (Var<f32>& sum : sums) sum = 0.0f;
      multiply_units(piece.units);
      // The ring becomes the place of the outputs, and then that of the next copies.
      k_.bar_sync();
      gemm::PartialSums parts(k_, parts_of(kernel_), *kit_.workspace, k_.tid_x());
      store_tile(parts.combine(piece, division, block, sums));
      k_.bar_sync();
    });
  }

  void store_tile(const std::optional<Pred>& only = std::nullopt) {
    for (std::uint32_t i = 0; i < shape_.warp_m() / 16; ++i) store_rows(i, only);
  }

  // The number of the block's tile among those of all matrices.
  [[nodiscard]] Value<u32> tile_number() {
    const Value<u32> tiles = k_.nctaid_x();
    const Value<u32> before = k_.mul_lo(k_.ctaid_z(), tiles);
    return before + k_.ctaid_x();
  }
  // The thread's part of the tile's first sums in the workspace, after the tickets of all tiles.
  // Sums are not in the order of outputs: consecutive threads have consecutive 16 bytes.
  [[nodiscard]] Ptr<b8> first_part() {
    const Value<u32> matrices = k_.nctaid_z();
    const Value<u32> tiles = k_.mul_lo(k_.nctaid_x(), matrices);
    const Value<u64> tickets = (k_.mul_wide(tiles, 4u) + std::uint64_t{15}) & ~std::uint64_t{15};
    const Ptr<b8> parts = kit_.workspace->offset_bytes(tickets);
    const Ptr<b8> tile = gemm::moved(k_, parts, tile_number(), kernel_.splits * tile_bytes(shape_));
    return gemm::moved(k_, tile, k_.tid_x(), 16);
  }

  // Stores the block's sums; whether it is the last of its tile to arrive, the same for all
  // threads. Leaves the ticket 0.
  [[nodiscard]] Pred add_part() {
    const Value<u32> part = k_.ctaid_y();
    const Ptr<b8> own = gemm::moved(k_, first_part(), part, tile_bytes(shape_));
    for (std::uint32_t i = 0; i < sums_.size(); ++i) {
      const auto sum = sums_[i].read();
      k_.st(own.offset_bytes(16 * i * shape_.threads()).template cast<f32>(),
            std::array{sum[0], sum[1], sum[2], sum[3]});
    }
    k_.bar_sync();
    auto last = k_.var<u32>(0u);
    k_.if_(k_.tid_x() == 0u, [&] {
      const Ptr<u32> ticket = kit_.workspace->template cast<u32>() + tile_number();
      const std::uint32_t limit = kernel_.splits - 1;
      const Value<u32> before = k_.atom_inc(ticket, limit, Atomic{Order::acq_rel, Scope::gpu});
      last = one_if(k_, before == limit);
    });
    return block_any(k_, last != 0u);
  }

  // The sums of all blocks in the order of k, past the L1, which may have stale ones.
  void sum_parts() {
    const auto variable = [&](std::size_t i, std::uint32_t r) {
      const Var<f32>& sum = sums_[i].variables()[r];
      return Var<f32>(sum.core(), sum.reg());
    };
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      for (std::uint32_t r = 0; r < 4; ++r) variable(i, r) = 0.0f;
    }
    auto from = k_.var(first_part());
    k_.for_(0u, kernel_.splits, 1u, [&] {
      for (std::uint32_t i = 0; i < sums_.size(); ++i) {
        const Ptr<b8> at = from.view().offset_bytes(16 * i * shape_.threads());
        const auto part = k_.ld<4>(at.template cast<f32>(), Load{.cache = Cache::cg});
        for (std::uint32_t r = 0; r < 4; ++r) variable(i, r) += part[r];
      }
      from += tile_bytes(shape_);
    });
  }

  // All steps: a loop over whole rounds of the ring, in which every copy has a place that is
  // constant in the code; then the rest.
  void multiply() {
    const std::uint32_t stages = kernel_.stages;
    const std::uint32_t ahead = stages - 1;
    for (std::uint32_t i = 0; i < std::min(ahead, steps()); ++i) {
      request(i);
      if (kernel_.converts_b()) convert(i);
    }
    const std::uint32_t requesting = steps() - std::min(ahead, steps());
    const std::uint32_t rounds = requesting / stages;
    if (rounds == 1) {
      round();
    } else if (rounds > 1) {
      k_.for_(0u, rounds, 1u, [&] { round(); });
    }
    for (std::uint32_t i = rounds * stages; i < steps(); ++i) {
      const std::uint32_t later = steps() - 1 - i;  // steps after this one
      step(i, std::min(ahead - 1, later), i < requesting ? std::optional(i + ahead) : std::nullopt);
    }
  }
  // A round of the ring, each step of which requests another one.
  void round() {
    const std::uint32_t ahead = kernel_.stages - 1;
    for (std::uint32_t i = 0; i < kernel_.stages; ++i) step(i, ahead - 1, i + ahead);
  }
  // The same of a number of rounds that only the launch knows. Of the last one the first step alone
  // requests another.
  void multiply_units(const Value<u32>& units) {
    const std::uint32_t stages = kernel_.stages;
    const std::uint32_t ahead = stages - 1;
    for (std::uint32_t i = 0; i < ahead; ++i) {
      request(i);
      if (kernel_.converts_b()) convert(i);
    }
    k_.for_(0u, units - 1u, 1u, [&] { round(); });
    for (std::uint32_t i = 0; i < stages; ++i) {
      step(i, std::min(ahead - 1, stages - 1 - i), i == 0 ? std::optional(ahead) : std::nullopt);
    }
  }

  // One step in stage `from`: waits for it, with `pending` later ones on their way, and requests
  // another one. After the barrier no warp reads the stage that is filled.
  void step(std::uint32_t from, std::uint32_t pending, std::optional<std::uint32_t> to) {
    if (async_) k_.cp_async_wait_group(pending);
    k_.bar_sync();
    if (to) request(*to);
    const std::uint64_t stage = std::uint64_t{from % kernel_.stages} * stage_bytes(kernel_);
    const std::uint32_t fragments = kernel_.step() / layout_a(kernel_).fragment_terms();
    for (std::uint32_t term = 0; term < fragments; ++term) multiply_terms(term, stage);
    // After the products: its loads from global memory move in front of them, its stores do not.
    if (to && kernel_.converts_b()) convert(*to);
  }

  void request(std::uint32_t to) {
    const std::uint64_t stage = std::uint64_t{to % kernel_.stages} * stage_bytes(kernel_);
    a_->request(stage);
    if (!kernel_.converts_b()) b_->request(stage);
    if (async_) k_.cp_async_commit_group();
  }
  void convert(std::uint32_t to) {
    b_->request(std::uint64_t{to % kernel_.stages} * stage_bytes(kernel_));
  }

  // Terms of a fragment: 16, of tf32 8.
  void multiply_terms(std::uint32_t term, std::uint64_t stage) {
    std::vector<std::array<Value<b32>, 4>> a, b;
    for (std::uint32_t i = 0; i < shape_.warp_m() / 16; ++i)
      a.push_back(rounded(rows_a_.load(i, term, stage)));
    for (std::uint32_t j = 0; j < shape_.warp_n() / 16; ++j)
      b.push_back(rounded(rows_b_.load(j, term, stage)));
    for (std::uint32_t i = 0; i < a.size(); ++i) {
      for (std::uint32_t j = 0; j < 2 * b.size(); ++j) {
        add_product<Shape, T>(k_, sums_[i * 2 * b.size() + j], a[i], b[j / 2], j % 2 * 2);
      }
    }
  }

  // f32 to the nearest tf32, which mma would cut off.
  [[nodiscard]] std::array<Value<b32>, 4> rounded(const std::array<Value<b32>, 4>& loaded) {
    if constexpr (T::kBits != 32) {
      return loaded;
    } else {
      const auto round = [&](std::uint32_t i) {
        const Value<b32> value = k_.undefined<b32>();
        k_.emit(ptx::Op::cvt_tf32_rna, {ptx::Modifier::rna}, {value, k_.bitcast<f32>(loaded[i])});
        return value;
      };
      const Value<b32> first = round(0), second = round(1), third = round(2);
      return {first, second, third, round(3)};
    }
  }

  // 16 rows of the warp's outputs, through its own part of shared memory.
  void store_rows(std::uint32_t i, const std::optional<Pred>& only) {
    const std::uint32_t pitch = output_pitch(shape_);
    const std::uint32_t columns = shape_.warp_n();
    const Value<u32> lane = k_.tid_x() & 31u;
    const Ptr<f32, Shared> own =
        memory_.offset_bytes(k_.mul_lo(warp_, 16 * pitch * 4)).template cast<f32>();
    if (i != 0) k_.bar_warp_sync();
    const Value<u32> group = lane >> 2u;
    const Value<u32> pair = (lane & 3u) << 1u;
    const Ptr<f32, Shared> to = own + k_.mad_lo(group, pitch, pair);
    for (std::uint32_t j = 0; j < columns / 8; ++j) {
      const auto sum = sums_[i * (columns / 8) + j].read();
      k_.st(to + 8 * j, std::array{sum[0], sum[1]});
      k_.st(to + (8 * j + 8 * pitch), std::array{sum[2], sum[3]});
    }
    k_.bar_warp_sync();
    const Value<u32> row = origin_->row + warp_row_ + 16 * i;
    gemm::store_strip(kit_, own, columns, pitch, row, origin_->column + warp_column_, only);
  }

  KernelBuilder& k_;
  gemm::Kit& kit_;
  const GemmMma& kernel_;
  const ptx::Target& target_;
  const GemmTileShape& shape_;
  bool async_;
  Ptr<b8, Shared> memory_;
  std::optional<Origin> origin_;
  Value<u32> warp_, warp_row_, warp_column_;
  std::optional<gemm::StagedCopy> a_, b_;
  gemm::FragmentRows rows_a_, rows_b_;
  std::vector<Accumulator<Shape, f32>> sums_;
};

}  // namespace

std::uint32_t GemmMma::load_bytes_a() const noexcept {
  return load_bytes(problem, problem.pitch_a(), problem.stride_a);
}
std::uint32_t GemmMma::load_bytes_b() const noexcept {
  return load_bytes(problem, problem.pitch_b(), problem.stride_b);
}
std::uint64_t GemmMma::tiles() const noexcept {
  const auto of = [](std::uint32_t outputs, std::uint32_t each) {
    return std::uint64_t{(outputs - 1) / each + 1};
  };
  return of(problem.m, shape().m) * of(problem.n, shape().n) * problem.batch;
}
std::uint32_t GemmMma::shared_bytes() const noexcept {
  return std::max(stages * stage_bytes(*this), output_bytes(shape()));
}

namespace {

void check_blocks(const GemmMma& kernel) {
  const std::uint32_t k = kernel.problem.k;
  const std::uint64_t units = std::uint64_t{k} / unit_terms(kernel);
  const bool fits = kernel.blocks <= GemmMma::kMaxBlocks && 2 * kernel.blocks * units < kMaxUnits;
  if (fits && kernel.splits == 1 && k % unit_terms(kernel) == 0) return;
  refuse_build(kernel_name<GemmMma>, "bad-plan", nullptr,
               format_text("blocks is {} with k = {}, {} stages and {} splits; it may be 0, or up "
                           "to {} where k is a multiple of {} (the terms of all stages), splits is "
                           "1, and k / {} * blocks is below 2^31",
                           kernel.blocks, k, kernel.stages, kernel.splits, GemmMma::kMaxBlocks,
                           unit_terms(kernel), unit_terms(kernel)));
}

// B of another type: whole steps of rows along k.
void check_conversion(const GemmMma& kernel) {
  const GemmProblem& p = kernel.problem;
  const std::string_view from = to_string(p.type_b());
  if (p.type == ElementType::f32) {
    refuse_build(
        kernel_name<GemmMma>, "bad-plan", nullptr,
        format_text("type is f32 with a B of {}; tensor cores multiply it with an A of f16 or "
                    "bf16: convert A, or take gemm_tiled",
                    from));
  }
  if (!p.transpose_b || p.k % kernel.step() != 0) {
    refuse_build(
        kernel_name<GemmMma>, "bad-plan", nullptr,
        format_text("B is {}, {}, with k = {}; to be rounded to {} on the way it is stored [n x "
                    "k], with k a multiple of {}: take gemm_tiled",
                    from, p.transpose_b ? "[n x k]" : "[k x n]", p.k, to_string(p.type),
                    kernel.step()));
  }
}

}  // namespace

void check(const GemmMma& kernel, const ptx::Target& target) {
  const GemmProblem& p = kernel.problem;
  check(p);
  if (kernel.stages < 2 || kernel.stages > 5) {
    refuse_build(kernel_name<GemmMma>, "bad-plan", nullptr,
                 format_text("stages is {}; it may be 2 to 5", kernel.stages));
  }
  const bool complete = p.k % kernel.step() == 0 && all_steps(kernel) % kernel.splits == 0;
  if (kernel.splits == 0 || kernel.splits > 64 || (kernel.splits > 1 && !complete)) {
    refuse_build(
        kernel_name<GemmMma>, "bad-plan", nullptr,
        format_text("splits is {} with k = {}; it may be 1 to 64, and more than 1 where k is a "
                    "multiple of {} times the splits",
                    kernel.splits, p.k, kernel.step()));
  }
  if (kernel.blocks != 0) {
    GemmMma built = kernel;
    if (target.sm < kAsyncSm) built.stages = 2;
    check_blocks(built);
  }
  detail::check_eight_bits(p, kernel_name<GemmMma>);
  if (kernel.converts_b()) check_conversion(kernel);
  if (p.type == ElementType::e4m3 && target.sm < kEightBitSm) {
    refuse_build(kernel_name<GemmMma>, "target-lacks", &target,
                 format_text("type is e4m3, which the tensor cores of {} do not have; they need "
                             "sm_89 or newer: take f16",
                             target.name));
  }
  if (target.sm < kAsyncSm && p.type != ElementType::f16) {
    refuse_build(
        kernel_name<GemmMma>, "target-lacks", &target,
        format_text("type is {}, which the tensor cores of {} do not have; they need sm_80 or "
                    "newer: take f16",
                    p.type == ElementType::f32 ? "f32, multiplied as tf32" : "bf16", target.name));
  }
  if (kernel.shared_bytes() > target.shared_per_block_opt_in) {
    refuse_build(
        kernel_name<GemmMma>, "target-lacks", &target,
        format_text("{} stages of tile {} are {} B of shared memory; a block on {} may have {} "
                    "B: take fewer stages or a smaller tile",
                    kernel.stages, kernel.shape().name, kernel.shared_bytes(), target.name,
                    target.shared_per_block_opt_in));
  }
}

double tensor_core_error(std::uint64_t terms) noexcept {
  // One group more than full ones: the incomplete step comes first.
  const double groups = static_cast<double>((terms + 7) / 8 + 1);
  return groups * 11 * 0x1p-24;
}

double eight_bit_error(std::uint64_t terms) noexcept {
  // 17 cuts and one, of what the sum may have been before, for each 16 terms; one group more, as
  // above.
  const double groups = static_cast<double>((terms + 15) / 16 + 1);
  return std::expm1(groups * std::log1p(18 * 0x1p-13));
}

BuiltKernel GemmMma::build(const ptx::Target& target) const {
  check(*this, target);
  KernelBuilder k(kernel_name<GemmMma>, target.name);
  k.required_threads(shape().threads());
  k.min_blocks_per_sm(gemm::resident_blocks(*this, target.sm));
  k.pragma("nounroll");
  k.contract(Contract::Forbid);
  const bool shared_sums = splits != 1 || blocks != 0;
  gemm::Kit kit = gemm::read_parameters(
      k, problem, shared_sums ? gemm::WorkspaceUse::Used : gemm::WorkspaceUse::Declared);
  if (target.sm < kAsyncSm) {
    // Copies that wait for their loads run no steps ahead; a third stage is only more code, whose
    // registers do not suffice.
    GemmMma two = *this;
    two.stages = 2;
    Emitter<m16n8k8, f16>(two, target, kit).emit();
  } else if (problem.type == ElementType::f16) {
    Emitter<m16n8k16, f16>(*this, target, kit).emit();
  } else if (problem.type == ElementType::f32) {
    Emitter<m16n8k8, tf32>(*this, target, kit).emit();
  } else if (problem.type == ElementType::e4m3) {
    Emitter<m16n8k32, e4m3>(*this, target, kit).emit();
  } else {
    Emitter<m16n8k16, bf16>(*this, target, kit).emit();
  }
  return k.build();
}

LaunchGeometry GemmMma::geometry() const {
  const auto of_matrix = static_cast<std::uint32_t>(tiles() / problem.batch);
  return {.grid = {blocks == 0 ? of_matrix : blocks, splits, problem.batch},
          .block = {shape().threads(), 1, 1},
          .dynamic_shared_bytes = shared_bytes()};
}

KernelKey Describe<GemmMma>::key(const K& spec) {
  return detail::gemm_key(spec.problem, static_cast<std::uint64_t>(spec.tile) << 16 |
                                            std::uint64_t{spec.blocks} << 32 |
                                            std::uint64_t{spec.splits} << 8 | spec.stages);
}

WorkspaceNeed Describe<GemmMma>::workspace(const K& spec) {
  if (spec.blocks != 0) {
    const gemm::PartialSumsLayout parts = parts_of(spec);
    const std::uint64_t matrices = spec.problem.batch;
    return {parts.ticket_bytes(matrices), matrices * parts.matrix_bytes()};
  }
  if (spec.splits == 1) return {};
  const std::uint64_t tiles = spec.tiles();
  return {rounded_up(4 * tiles), tiles * spec.splits * tile_bytes(spec.shape())};
}

ErrorBound Describe<GemmMma>::bound(const K& spec) {
  const std::uint64_t parts = spec.blocks == 0 ? spec.splits : shares_of(spec, kAsyncSm).parts();
  const std::uint64_t k = spec.problem.k;
  const double cores =
      spec.problem.type == ElementType::e4m3 ? eight_bit_error(k) : tensor_core_error(k);
  const double sums = cores + static_cast<double>(parts) * 0x1p-24;
  if (spec.problem.type != ElementType::f32) {
    return detail::gemm_bound(spec.problem, sums + detail::b_rounding(spec.problem));
  }
  // tf32: both factors are rounded to 11 binary digits; groups have four products.
  return detail::gemm_bound(spec.problem, 2 * sums + 0x1.001p-10);
}

}  // namespace ptxgen::inline v0
