// src/kernels/gemm/wgmma.cpp - a matrix product by wgmma, from tensor copies
#include "ptxgen/kernels/gemm/wgmma.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/gemm/emit.hpp"
#include "kernels/gemm/tile_division.hpp"
#include "kernels/parts/refusal.hpp"
#include "ptxgen/builder/warpgroup.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kSwizzle = 128;        // bytes of a row in shared memory
constexpr std::uint32_t kSwizzleBytes = 1024;  // after which the swizzle repeats
// Bytes that addresses, pitches and strides are multiples of.
constexpr std::uint32_t kMapUnit = 16;
constexpr std::uint32_t kWarpgroup = 128;
constexpr std::uint32_t kConsumerWarps = GemmWgmma::kConsumers * kWarpgroup / 32;
// Of 65536 registers: 128 x 40 + 256 x 232.
constexpr unsigned kProducerRegisters = 40;
constexpr unsigned kConsumerRegisters = 232;
constexpr std::uint32_t kProductBytes = 32;    // of a row along k
constexpr std::uint32_t kTermsOfProduct = 16;  // of f16 and bf16

// Outputs of a warp on their way through shared memory: 16 rows of 32 columns of f32. A pitch of an
// odd multiple of 32 bytes: lanes of four rows store to different banks.
constexpr std::uint32_t kOutputColumns = 32;
constexpr std::uint32_t kOutputPitch = kOutputColumns + 8;
constexpr std::uint32_t kOutputBytes = 16 * kOutputPitch * 4 * kConsumerWarps;

std::uint32_t tile_a_bytes(const GemmWgmma& kernel) {
  return kSwizzle * kernel.shape().m;  // a step is a row of a box
}
std::uint32_t tile_b_bytes(const GemmWgmma& kernel) { return kSwizzle * kernel.shape().n; }
std::uint32_t stage_bytes(const GemmWgmma& kernel) {
  return tile_a_bytes(kernel) + tile_b_bytes(kernel);
}

/// One operand of a step in shared memory, in boxes of 128 bytes a row.
struct Boxes {
  bool along_k = true;        ///< rows are along k, else along m or n
  std::uint32_t outputs = 0;  ///< rows of A or columns of B in the tile
  std::uint32_t copied = 0;   ///< of these by one block of the cluster
  std::uint32_t element = 2;  ///< bytes; 1 along k only

  [[nodiscard]] std::uint32_t row_elements() const noexcept { return kSwizzle / element; }
  [[nodiscard]] std::uint32_t rows() const noexcept { return along_k ? copied : row_elements(); }
  [[nodiscard]] std::uint32_t count() const noexcept {
    return along_k ? 1 : copied / row_elements();
  }
  [[nodiscard]] std::uint32_t bytes() const noexcept { return rows() * kSwizzle; }
  /// A box of the terms of a step.
  [[nodiscard]] MatrixLayout layout() const noexcept {
    return {Swizzle::Bytes128, along_k ? 0 : row_elements() * kSwizzle, 8 * kSwizzle};
  }
  /// The terms of a product further, in the units of a descriptor.
  [[nodiscard]] std::uint32_t next_terms() const noexcept {
    return (along_k ? kProductBytes : kTermsOfProduct * kSwizzle) / 16;
  }
};
Boxes boxes_a(const GemmWgmma& kernel) {
  return {!kernel.problem.transpose_a, kernel.shape().m, kernel.shape().m,
          bytes(kernel.problem.type)};
}
Boxes boxes_b(const GemmWgmma& kernel) {
  return {kernel.problem.transpose_b, kernel.shape().n, kernel.shape().n / kernel.cluster,
          bytes(kernel.problem.type)};
}

gemm::PartialSumsLayout parts_of(const GemmWgmma& kernel) {
  return {kernel.blocks, kernel.cluster, GemmWgmma::kConsumers * kWarpgroup, kernel.shape().n / 2u};
}
gemm::TileShares shares_of(const GemmWgmma& kernel) {
  return {kernel.tiles() / kernel.cluster, kernel.blocks / kernel.cluster, kernel.steps()};
}

TensorMapUse map_of(const GemmProblem& p, const Boxes& boxes, std::uint64_t address,
                    std::uint64_t outputs, std::uint64_t pitch, std::uint64_t stride) {
  TensorMapUse use;
  use.address = address;
  use.type = p.type;
  use.swizzle = kSwizzle;
  use.rank = stride == 0 ? 2 : 3;
  use.extents = {boxes.along_k ? p.k : outputs, boxes.along_k ? outputs : p.k, p.batch};
  use.strides = {pitch * boxes.element, stride * boxes.element};
  use.box = {boxes.row_elements(), boxes.rows(), 1};
  return use;
}

/// The code of one kernel.
template <unsigned kN, class T>
class WgmmaEmitter {
 public:
  WgmmaEmitter(const GemmWgmma& kernel, gemm::Kit& kit)
      : k_(kit.k),
        kit_(kit),
        kernel_(kernel),
        map_a_(tensor_map_param(k_, "map_a")),
        map_b_(tensor_map_param(k_, "map_b")),
        memory_(k_.dynamic_shared<b8>(kSwizzleBytes).base()),
        barriers_(memory_.offset_bytes(kernel.stages * stage_bytes(kernel) + kOutputBytes)
                      .template cast<u64>()),
        warpgroup_(k_.tid_x() >> 7u) {}

  void emit() {
    start();
    k_.if_(
        warpgroup_ == 0u, [&] { produce(); }, [&] { consume(); });
    // A block whose memory others copy to, or whose barriers they arrive at, stays.
    if (kernel_.cluster > 1) cluster_sync(k_);
  }

 private:
  /// The tile's first row and column.
  struct Origin {
    Value<u32> row, column;
  };

  [[nodiscard]] Mbarrier full(std::uint32_t slot) const { return barriers_ + slot; }
  [[nodiscard]] Mbarrier empty(std::uint32_t slot) const {
    return barriers_ + (kernel_.stages + slot);
  }
  [[nodiscard]] Ptr<b8, Shared> tile_a(std::uint32_t slot) const {
    return memory_.offset_bytes(slot * stage_bytes(kernel_));
  }
  [[nodiscard]] Ptr<b8, Shared> tile_b(std::uint32_t slot) const {
    return tile_a(slot).offset_bytes(tile_a_bytes(kernel_));
  }

  void start() {
    k_.if_(k_.tid_x() == 0u, [&] {
      for (std::uint32_t slot = 0; slot < kernel_.stages; ++slot) {
        mbarrier_init(k_, full(slot), 1u);
        mbarrier_init(k_, empty(slot), kConsumerWarps * kernel_.cluster);
      }
      fence_mbarrier_init(k_);
      prefetch_map(k_, map_a_);
      prefetch_map(k_, map_b_);
    });
    if (kernel_.cluster > 1) {
      cluster_sync(k_);
    } else {
      k_.bar_sync();
    }
  }

  // Groups of rows of tiles; in a group, tiles follow each other down the columns. Blocks of a
  // cluster have adjacent rows.
  [[nodiscard]] Origin origin_of(const Value<u32>& tile) {
    const WgmmaTileShape& shape = kernel_.shape();
    const std::uint32_t grouped = GemmWgmma::kGroupedTiles;
    const std::uint32_t across = (kit_.problem.n - 1) / shape.n + 1;
    const Value<u32> down = rows_of_tiles();
    const Value<u32> group = tile / (grouped * across);
    const Value<u32> first = k_.mul_lo(group, grouped);
    const Value<u32> rows = k_.min(down - first, grouped);
    const Value<u32> inside = tile - k_.mul_lo(group, grouped * across);
    const Value<u32> column = inside / rows;
    const Value<u32> row = first + (inside - k_.mul_lo(column, rows));
    const Value<u32> top = k_.mul_lo(row, std::uint32_t{shape.m});
    return {top, k_.mul_lo(column, std::uint32_t{shape.n})};
  }
  [[nodiscard]] Value<u32> rows_of_tiles() {
    const Value<u32> down = (kit_.m - 1u) / kernel_.shape().m + 1u;
    return kernel_.cluster == 1 ? down : (down + 1u) & ~1u;
  }

  // The blocks of a cluster have the same pieces of adjacent tiles.
  [[nodiscard]] gemm::TileDivision division() {
    const std::uint32_t across = (kit_.problem.n - 1) / kernel_.shape().n + 1;
    const Value<u32> tiles = k_.mul_lo(rows_of_tiles(), across);
    return {k_, tiles / kernel_.cluster, k_.ctaid_x() / kernel_.cluster, shares_of(kernel_)};
  }
  // Calls `body(tile, piece)` for each piece of the block.
  template <class Body>
  void for_each_piece(gemm::TileDivision& division, const Body& body) {
    division.for_each_piece([&](const gemm::TilePiece& piece) {
      const Value<u32> first = k_.mul_lo(piece.tile, kernel_.cluster);
      body(kernel_.cluster == 1 ? first : first + rank(), piece);
    });
  }
  // Calls `body(tile)` for each tile of the block.
  template <class Body>
  void for_each_tile(const Body& body) {
    if (kernel_.blocks == 0) return body(k_.ctaid_x());
    const std::uint32_t across = (kit_.problem.n - 1) / kernel_.shape().n + 1;
    const Value<u32> tiles = k_.mul_lo(rows_of_tiles(), across);
    k_.for_(k_.ctaid_x(), tiles, kernel_.blocks, [&](Value<u32> tile) { body(tile); });
  }
  [[nodiscard]] Value<u32> rank() { return k_.ctaid_x() % kernel_.cluster; }

  // The producer ----------------------------------------------------------------------------------

  void produce() {
    k_.emit(ptx::Op::setmaxnreg, {ptx::Modifier::dec}, {kProducerRegisters});
    k_.if_(k_.tid_x() == 0u, [&] {
      auto parity = k_.var<u32>(1u);  // of a ring that is empty
      if (!kernel_.stream_k) {
        for_each_tile([&](const Value<u32>& tile) { fill_tile(tile, parity); });
        return;
      }
      gemm::TileDivision all = division();
      for_each_piece(all, [&](const Value<u32>& tile, const gemm::TilePiece& piece) {
        fill_piece(tile, piece, parity);
      });
    });
  }

  void fill_tile(const Value<u32>& tile, Var<u32>& parity) {
    const Origin origin = origin_of(tile);
    auto term = k_.var<u32>(0u);
    const std::uint32_t rounds = kernel_.steps() / kernel_.stages;
    const auto round = [&] { fill_round(parity, term, origin); };
    if (rounds == 1) round();
    if (rounds > 1) k_.for_(0u, rounds, 1u, round);
    for (std::uint32_t slot = 0; slot < kernel_.steps() % kernel_.stages; ++slot)
      copy_step(slot, parity, term, origin);
  }
  void fill_round(Var<u32>& parity, Var<u32>& term, const Origin& origin) {
    for (std::uint32_t slot = 0; slot < kernel_.stages; ++slot)
      copy_step(slot, parity, term, origin);
    parity ^= 1u;
  }
  void fill_piece(const Value<u32>& tile, const gemm::TilePiece& piece, Var<u32>& parity) {
    const Origin origin = origin_of(tile);
    auto term = k_.var(k_.mul_lo(piece.first, kernel_.step()));
    k_.for_(0u, piece.units / kernel_.stages, 1u, [&] { fill_round(parity, term, origin); });
    fill_rest(piece.units % kernel_.stages, parity,
              [&](std::uint32_t slot) { copy_step(slot, parity, term, origin); });
  }

  // The last steps of a piece, and the rest of their round of the ring, which stays empty.
  template <class Fill>
  void fill_rest(const Value<u32>& steps, Var<u32>& parity, const Fill& fill) {
    k_.if_(steps != 0u, [&] {
      for (std::uint32_t slot = 0; slot < kernel_.stages; ++slot) {
        k_.if_(
            k_.constant<u32>(slot) < steps, [&] { fill(slot); },
            [&] {
              wait(empty(slot), parity);
              mbarrier_arrive(k_, full(slot));
            });
      }
      parity ^= 1u;
    });
  }

  void copy_step(std::uint32_t slot, const Var<u32>& parity, Var<u32>& term, const Origin& origin) {
    wait(empty(slot), parity);
    mbarrier_arrive_expect_tx(k_, full(slot), stage_bytes(kernel_));
    const bool batch_a = kit_.problem.stride_a != 0;
    const bool batch_b = kit_.problem.stride_b != 0;
    copy_boxes(boxes_a(kernel_), tile_a(slot), map_a_, term, origin.row, batch_a, full(slot),
               false);
    copy_boxes(boxes_b(kernel_), tile_b(slot), map_b_, term, origin.column, batch_b, full(slot),
               kernel_.cluster > 1);
    term += kernel_.step();
  }

  void copy_boxes(const Boxes& boxes, const Ptr<b8, Shared>& tile, const TensorMap& map,
                  const Value<u32>& term, const Value<u32>& first, bool batched,
                  const Mbarrier& bar, bool multicast) {
    if (multicast) {
      // The block's part of a tile that the cluster shares.
      const Value<u32> rank = cluster_rank(k_);
      const Ptr<b8, Shared> part =
          tile.offset_bytes(k_.mul_lo(rank, boxes.count() * boxes.bytes()));
      const Value<u32> output = k_.mad_lo(rank, boxes.copied, first);
      copy_part(boxes, part, map, term, output, batched, bar, true);
    } else {
      copy_part(boxes, tile, map, term, first, batched, bar, false);
    }
  }

  void copy_part(const Boxes& boxes, const Ptr<b8, Shared>& tile, const TensorMap& map,
                 const Value<u32>& term, const Value<u32>& first, bool batched, const Mbarrier& bar,
                 bool multicast) {
    for (std::uint32_t i = 0; i < boxes.count(); ++i) {
      const Value<u32> output = i == 0 ? first : first + i * boxes.row_elements();
      copy_box(tile.offset_bytes(i * boxes.bytes()), map, boxes.along_k ? term : output,
               boxes.along_k ? output : term, batched, bar, multicast);
    }
  }

  void copy_box(const Ptr<b8, Shared>& to, const TensorMap& map, const Value<u32>& x,
                const Value<u32>& y, bool batched, const Mbarrier& bar, bool multicast) {
    const Value<s32> at_x = k_.bitcast<s32>(x);
    const Value<s32> at_y = k_.bitcast<s32>(y);
    const auto copy = [&](const auto& at) {
      if (multicast) {
        copy_tensor(k_, to, map, at, bar, k_.constant<u16>(3));
      } else {
        copy_tensor(k_, to, map, at, bar);
      }
    };
    if (batched) {
      copy(std::array{at_x, at_y, k_.bitcast<s32>(k_.ctaid_z())});
    } else {
      copy(std::array{at_x, at_y});
    }
  }

  // The consumers ---------------------------------------------------------------------------------

  void consume() {
    k_.emit(ptx::Op::setmaxnreg, {ptx::Modifier::inc}, {kConsumerRegisters});
    const Value<u32> consumer = warpgroup_ - 1u;
    const Ptr<b8, Shared> own_a =
        tile_a(0).offset_bytes(k_.mul_lo(consumer, tile_a_bytes(kernel_) / GemmWgmma::kConsumers));
    const Value<u64> a = matrix_descriptor(k_, own_a, boxes_a(kernel_).layout());
    const Value<u64> b = matrix_descriptor(k_, tile_b(0), boxes_b(kernel_).layout());
    const Pred releases = (k_.tid_x() & 31u) == 0u;
    if (kernel_.cluster > 1) map_barriers();
    auto parity = k_.var<u32>(0u);
    const WarpgroupAccumulator<kN, f32> sums(k_);
    const Value<u32> row = k_.mul_lo(consumer, 64u);
    if (kernel_.stream_k) return consume_pieces(sums, a, b, parity, releases, row);
    for_each_tile([&](const Value<u32>& tile) {
      multiply(sums, a, b, parity, releases);
      store_tile(sums, origin_of(tile), row);
    });
  }

  void consume_pieces(const WarpgroupAccumulator<kN, f32>& sums, const Value<u64>& a,
                      const Value<u64>& b, Var<u32>& parity, const Pred& releases,
                      const Value<u32>& row) {
    std::vector<Var<f32>> variables;
    for (const Var<f32>& sum : sums.variables()) variables.emplace_back(sum.core(), sum.reg());
    gemm::TileDivision all = division();
    for_each_piece(all, [&](const Value<u32>& tile, const gemm::TilePiece& piece) {
      k_.if_(
          piece.complete, [&] { multiply(sums, a, b, parity, releases); },
          [&] { multiply_piece(sums, a, b, parity, releases, piece.units); });
      gemm::PartialSums parts(k_, parts_of(kernel_), *kit_.workspace, k_.tid_x() - kWarpgroup);
      const Pred complete = parts.combine(piece, all, rank(), variables);
      store_tile(sums, origin_of(tile), row, complete);
    });
  }

  // The same of a number of steps that only the launch knows: the first step, rounds of the ring,
  // then what is left of the last round, whose other places are empty.
  void multiply_piece(const WarpgroupAccumulator<kN, f32>& sums, const Value<u64>& a,
                      const Value<u64>& b, Var<u32>& parity, const Pred& releases,
                      const Value<u32>& steps) {
    const std::uint32_t stages = kernel_.stages;
    wait(full(0), parity);
    issue(sums, a, b, 0, true);
    const Value<u32> more = steps - 1u;
    const Value<u32> rounds = more / stages;
    const Value<u32> rest = more % stages;
    k_.for_(0u, rounds, 1u, [&] {
      for (std::uint32_t i = 1; i <= stages; ++i) {
        const std::uint32_t slot = i % stages;
        if (slot == 0) parity ^= 1u;
        wait(full(slot), parity);
        issue(sums, a, b, slot, false);
        wgmma_wait(k_, 1);
        release(i - 1, releases);
      }
    });
    wgmma_wait(k_, 0);
    release(0, releases);
    for (std::uint32_t slot = 1; slot < stages; ++slot) {
      wait(full(slot), parity);
      k_.if_(k_.constant<u32>(slot) <= rest, [&] {
        issue(sums, a, b, slot, false);
        wgmma_wait(k_, 0);
      });
      release(slot, releases);
    }
    parity ^= 1u;
  }

  // The first step alone, then whole rounds of the ring in a loop, in which a slot is constant in
  // the code, then the rest.
  void multiply(const WarpgroupAccumulator<kN, f32>& sums, const Value<u64>& a, const Value<u64>& b,
                Var<u32>& parity, const Pred& releases) {
    const std::uint32_t stages = kernel_.stages;
    const auto step = [&](std::uint32_t number) {
      const std::uint32_t slot = number % stages;
      if (number != 0 && slot == 0) parity ^= 1u;
      wait(full(slot), parity);
      issue(sums, a, b, slot, number == 0);
      if (number == 0) return;
      wgmma_wait(k_, 1);
      release((number - 1) % stages, releases);
    };
    step(0);
    const std::uint32_t more = kernel_.steps() - 1;
    const std::uint32_t rounds = more / stages;
    const auto round = [&] {
      for (std::uint32_t i = 1; i <= stages; ++i) step(i);
    };
    if (rounds == 1) round();
    if (rounds > 1) k_.for_(0u, rounds, 1u, round);
    for (std::uint32_t i = rounds * stages + 1; i < kernel_.steps(); ++i) step(i);
    wgmma_wait(k_, 0);
    release(more % stages, releases);
    if (kernel_.blocks != 0) parity ^= 1u;  // whole rounds
  }

  void issue(const WarpgroupAccumulator<kN, f32>& sums, const Value<u64>& a, const Value<u64>& b,
             std::uint32_t slot, bool first) {
    const Boxes of_a = boxes_a(kernel_), of_b = boxes_b(kernel_);
    const std::uint64_t stage = std::uint64_t{slot} * stage_bytes(kernel_) / 16;
    wgmma_fence(k_);
    for (std::uint32_t i = 0; i < kSwizzle / kProductBytes; ++i) {
      WarpgroupProduct how;
      how.accumulate = !first || i != 0;
      how.transpose_a = !of_a.along_k;
      how.transpose_b = !of_b.along_k;
      const std::uint64_t step_a = stage + i * of_a.next_terms();
      const std::uint64_t step_b = stage + i * of_b.next_terms();
      const Value<u64> right = step_b == 0 ? b : b + step_b;
      wgmma<T, T>(k_, sums, step_a == 0 ? a : a + step_a, right, how);
    }
    wgmma_commit(k_);
  }

  // Barriers of the blocks of the cluster, which copy to each other.
  void map_barriers() {
    for (std::uint32_t rank = 0; rank < kernel_.cluster; ++rank) {
      all_barriers_.push_back(map_rank(k_, barriers_, rank));
    }
  }
  // By one lane of each warp.
  void release(std::uint32_t slot, const Pred& releases) {
    if (kernel_.cluster == 1) {
      k_.guarded(releases, [&] { mbarrier_arrive(k_, empty(slot)); });
      return;
    }
    for (const Ptr<u64, ClusterShared>& barriers : all_barriers_) {
      k_.guarded(releases, [&] { mbarrier_arrive(k_, barriers + (kernel_.stages + slot)); });
    }
  }

  void wait(const Mbarrier& bar, const Value<u32>& parity) {
    mbarrier_wait(k_, bar, parity, kernel_.cluster > 1 ? Scope::cluster : Scope::none);
  }

  // 16 rows of a warp, 32 columns at a time, through its own part of shared memory.
  void store_tile(const WarpgroupAccumulator<kN, f32>& sums, const Origin& origin,
                  const Value<u32>& consumer_row, const std::optional<Pred>& only = std::nullopt) {
    const Value<u32> lane = k_.tid_x() & 31u;
    const Value<u32> warp = (k_.tid_x() >> 5u) - kWarpgroup / 32;
    const Ptr<f32, Shared> own = memory_.offset_bytes(kernel_.stages * stage_bytes(kernel_))
                                     .offset_bytes(k_.mul_lo(warp, kOutputBytes / kConsumerWarps))
                                     .template cast<f32>();
    const Value<u32> pair = (lane & 3u) << 1u;
    const Ptr<f32, Shared> to = own + k_.mad_lo(lane >> 2u, kOutputPitch, pair);
    const Value<u32> warp_row = k_.mul_lo(warp & 3u, 16u);
    const Value<u32> first_row = origin.row + consumer_row + warp_row;
    for (std::uint32_t column = 0; column < kN; column += kOutputColumns) {
      if (column != 0 || kernel_.blocks != 0) k_.bar_warp_sync();
      for (std::uint32_t j = 0; j < kOutputColumns / 8; ++j) {
        const auto sum = [&](std::uint32_t i) {
          return sums.variables()[(column / 8 + j) * 4 + i].read();
        };
        k_.st(to + 8 * j, std::array{sum(0), sum(1)});
        k_.st(to + (8 * j + 8 * kOutputPitch), std::array{sum(2), sum(3)});
      }
      k_.bar_warp_sync();
      gemm::store_strip(kit_, own, kOutputColumns, kOutputPitch, first_row, origin.column + column,
                        only);
    }
  }

  KernelBuilder& k_;
  gemm::Kit& kit_;
  const GemmWgmma& kernel_;
  TensorMap map_a_, map_b_;
  Ptr<b8, Shared> memory_;
  Mbarrier barriers_;  ///< full of each slot, then empty of each
  Value<u32> warpgroup_;
  std::vector<Ptr<u64, ClusterShared>> all_barriers_;  ///< `barriers_` of each rank of a cluster
};

// What a tensor map cannot have: "<member> is <value>; <rule>".
void check_map(const char* pitch_name, std::uint64_t pitch, const char* stride_name,
               std::uint64_t stride, std::uint32_t element) {
  const std::uint64_t max_stride = (std::uint64_t{1} << 40) / element;
  const auto demand = [&](bool holds, const char* name, std::uint64_t value, const char* what) {
    if (holds) return;
    refuse_build(
        kernel_name<GemmWgmma>, "bad-problem", nullptr,
        format_text("{} is {} elements; tensor maps need {} of a multiple of 16 bytes below "
                    "2^40, {} elements: pad them, or take gemm_mma",
                    name, value, what, kMapUnit / element));
  };
  demand(pitch * element % kMapUnit == 0 && pitch < max_stride, pitch_name, pitch, "rows");
  demand(stride * element % kMapUnit == 0 && stride < max_stride, stride_name, stride, "matrices");
}

void check_plan(const GemmWgmma& kernel) {
  if (kernel.stages < 2 || kernel.stages > 6) {
    refuse_build(kernel_name<GemmWgmma>, "bad-plan", nullptr,
                 format_text("stages is {}; it may be 2 to 6", kernel.stages));
  }
  if (kernel.cluster != 1 && kernel.cluster != 2) {
    refuse_build(kernel_name<GemmWgmma>, "bad-plan", nullptr,
                 format_text("cluster is {}; it may be 1 or 2", kernel.cluster));
  }
  if (kernel.stream_k && (kernel.blocks == 0 || std::uint64_t{2} * kernel.blocks * kernel.steps() >
                                                    std::numeric_limits<std::uint32_t>::max())) {
    refuse_build(kernel_name<GemmWgmma>, "bad-plan", nullptr,
                 format_text("stream_k with {} blocks and {} steps; it needs blocks, and blocks * "
                             "steps below 2^31",
                             kernel.blocks, kernel.steps()));
  }
  if (kernel.blocks == 0) return;
  if (kernel.blocks > 65534 || kernel.blocks % kernel.cluster != 0 ||
      kernel.steps() % kernel.stages != 0) {
    refuse_build(
        kernel_name<GemmWgmma>, "bad-plan", nullptr,
        format_text("blocks is {} with a cluster of {} and {} steps in {} stages; it may be 0, "
                    "or a multiple of the cluster up to 65534 where the stages divide the steps",
                    kernel.blocks, kernel.cluster, kernel.steps(), kernel.stages));
  }
}

}  // namespace

std::uint32_t GemmWgmma::shared_bytes() const noexcept {
  return stages * (stage_bytes(*this) + 16) + kOutputBytes;
}

std::uint32_t GemmWgmma::tiles() const noexcept {
  const std::uint32_t down = (problem.m - 1) / shape().m + 1;
  const std::uint32_t across = (problem.n - 1) / shape().n + 1;
  return (down + cluster - 1) / cluster * cluster * across;
}

void check(const GemmWgmma& kernel, const ptx::Target& target) {
  const GemmProblem& p = kernel.problem;
  check(p);
  if (p.type == ElementType::f32) {
    refuse_build(
        kernel_name<GemmWgmma>, "bad-problem", nullptr,
        "type is f32; gemm_wgmma multiplies f16, bf16 and e4m3: take gemm_tiled, or gemm_mma for "
        "products as tf32");
  }
  detail::check_eight_bits(p, kernel_name<GemmWgmma>);
  if (p.type_b() != p.type) {
    refuse_build(kernel_name<GemmWgmma>, "bad-problem", nullptr,
                 format_text("b is {} and type is {}; tensor copies do not convert: take gemm_mma",
                             to_string(p.type_b()), to_string(p.type)));
  }
  if (p.alignment < kMapUnit) {
    refuse_build(
        kernel_name<GemmWgmma>, "bad-problem", nullptr,
        format_text("alignment is {} B; tensor maps need A and B aligned to 16: take gemm_mma",
                    p.alignment));
  }
  check_map("lda", p.pitch_a(), "stride_a", p.stride_a, bytes(p.type));
  check_map("ldb", p.pitch_b(), "stride_b", p.stride_b, bytes(p.type));
  check_plan(kernel);
  if (target.sm != 90 || target.variant != ptx::Variant::Architecture) {
    refuse_build(kernel_name<GemmWgmma>, "target-lacks", &target,
                 format_text("{} has no wgmma; sm_90a alone has it: take gemm_mma", target.name));
  }
  if (kernel.shared_bytes() > target.shared_per_block_opt_in) {
    refuse_build(
        kernel_name<GemmWgmma>, "target-lacks", &target,
        format_text("{} stages of tile {} are {} B of shared memory; a block on {} may have {} "
                    "B: take fewer stages or a smaller tile",
                    kernel.stages, kernel.shape().name, kernel.shared_bytes(), target.name,
                    target.shared_per_block_opt_in));
  }
}

bool serves(const GemmWgmma& kernel, const ptx::Target& target) {
  try {
    check(kernel, target);
  } catch (const Error&) {
    return false;
  }
  return true;
}

double warpgroup_error(std::uint64_t terms) noexcept {
  const auto groups = static_cast<double>((terms + kTermsOfProduct - 1) / kTermsOfProduct);
  return groups * ((kTermsOfProduct + 1) * 0x1p-25 + 0x1p-23);
}

double warpgroup_eight_bit_error(std::uint64_t terms) noexcept {
  const auto groups = static_cast<double>((terms + 31) / 32);
  return std::expm1(groups * std::log1p(34 * 0x1p-13));
}

BuiltKernel GemmWgmma::build(const ptx::Target& target) const {
  check(*this, target);
  KernelBuilder k(kernel_name<GemmWgmma>, target.name);
  k.required_threads(kThreads);
  k.min_blocks_per_sm(1);
  if (cluster > 1) k.cluster(cluster);
  k.pragma("nounroll");
  k.contract(Contract::Forbid);
  gemm::Kit kit = gemm::read_parameters(
      k, problem, stream_k ? gemm::WorkspaceUse::Used : gemm::WorkspaceUse::Declared);
  const bool wide = shape().n == 256;
  if (problem.type == ElementType::e4m3) {
    wide ? WgmmaEmitter<256, e4m3>(*this, kit).emit() : WgmmaEmitter<128, e4m3>(*this, kit).emit();
  } else if (problem.type == ElementType::f16) {
    wide ? WgmmaEmitter<256, f16>(*this, kit).emit() : WgmmaEmitter<128, f16>(*this, kit).emit();
  } else {
    wide ? WgmmaEmitter<256, bf16>(*this, kit).emit() : WgmmaEmitter<128, bf16>(*this, kit).emit();
  }
  return k.build();
}

LaunchGeometry GemmWgmma::geometry() const {
  return {.grid = {blocks == 0 ? tiles() : blocks, 1, problem.batch},
          .block = {kThreads, 1, 1},
          .dynamic_shared_bytes = shared_bytes(),
          .cluster = {cluster, 1, 1}};
}

namespace detail {

TensorMapUse wgmma_map_a(const GemmWgmma& kernel, const GemmOperands& operands) {
  const GemmProblem& p = kernel.problem;
  return map_of(p, boxes_a(kernel), operands.a.address, p.m, p.pitch_a(), p.stride_a);
}
TensorMapUse wgmma_map_b(const GemmWgmma& kernel, const GemmOperands& operands) {
  const GemmProblem& p = kernel.problem;
  return map_of(p, boxes_b(kernel), operands.b.address, p.n, p.pitch_b(), p.stride_b);
}

}  // namespace detail

KernelKey Describe<GemmWgmma>::key(const K& spec) {
  // Of pitches and strides of A and B the code has the dimensions of the maps alone.
  GemmProblem problem = spec.problem;
  problem.lda = problem.ldb = 1;
  problem.stride_a = problem.stride_a == 0 ? 0 : 1;
  problem.stride_b = problem.stride_b == 0 ? 0 : 1;
  return detail::gemm_key(problem, static_cast<std::uint64_t>(spec.tile) << 40 |
                                       std::uint64_t{spec.stream_k ? 1u : 0u} << 39 |
                                       std::uint64_t{spec.cluster} << 36 |
                                       std::uint64_t{spec.stages} << 32 | spec.blocks);
}

WorkspaceNeed Describe<GemmWgmma>::workspace(const K& spec) {
  if (!spec.stream_k) return {};
  const gemm::PartialSumsLayout parts = parts_of(spec);
  const std::uint64_t matrices = spec.problem.batch;
  return {parts.ticket_bytes(matrices), matrices * parts.matrix_bytes()};
}

ErrorBound Describe<GemmWgmma>::bound(const K& spec) {
  const std::uint64_t parts = spec.stream_k ? shares_of(spec).parts() : 0;
  const std::uint64_t k = spec.problem.k;
  const double cores =
      spec.problem.type == ElementType::e4m3 ? warpgroup_eight_bit_error(k) : warpgroup_error(k);
  const double sums = cores + static_cast<double>(parts) * 0x1p-24;
  return detail::gemm_bound(spec.problem, sums);
}

}  // namespace ptxgen::inline v0
