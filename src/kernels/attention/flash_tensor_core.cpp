// src/kernels/attention/flash_tensor_core.cpp - attention of many queries by mma.sync
#include "ptxgen/kernels/attention/flash_tensor_core.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "kernels/attention/flash_rows.hpp"
#include "kernels/parts/block_vote.hpp"
#include "kernels/parts/packed_rows.hpp"
#include "kernels/parts/products.hpp"
#include "kernels/parts/refusal.hpp"
#include "ptxgen/builder/math.hpp"
#include "ptxgen/kernels/gemm/mma.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kAutoSharedBytes = 99 * 1024;
constexpr std::uint32_t kCopyLanes = 8;  // that copy a row together
constexpr std::uint32_t kChunk = 8;      // elements of 16 bytes
constexpr std::uint32_t kStages = 2;

// From row to row in shared memory: an odd multiple of 16 bytes, so that 16 bytes of eight rows are
// in different banks. A permutation would do without the 16 bytes more, but then each 32 bytes of a
// row need an address register of their own.
std::uint32_t pitch_of(const FlashProblem& problem) { return 2 * problem.head_size + 16; }

std::uint32_t bytes_of(const FlashProblem& problem, const FlashMmaTileShape& tile) {
  return (tile.queries + 2 * kStages * tile.keys) * pitch_of(problem);
}

// What registers are left for, as ptxas 13 allocates them: 32 queries of a warp and 64 keys spill
// with 128 elements.
std::uint32_t max_head_size(const FlashMmaTileShape& tile) {
  if (tile.warp_queries() == 16) return 256;
  return tile.keys > 32 ? 112 : 128;
}

using Fragment4 = std::array<Value<b32>, 4>;

/// The code of one kernel. Shape is that of a product, E the type of its factors.
template <class Shape, class E>
class FlashMmaEmitter {
  using Sums = Accumulator<Shape, f32>;
  using Rows = flash::FragmentRows<E>;
  using Pair = typename Rows::Pair;

 public:
  FlashMmaEmitter(KernelBuilder& k, const FlashAttentionTensorCore& kernel,
                  const ptx::Target& target)
      : k_(k),
        p_(kernel.problem),
        tile_(kernel.shape()),
        async_(target.sm >= kAsyncSm),
        splits_(kernel.splits),
        kit_(k, p_, tile_.queries, splits_),
        workspace_(workspace_param(k)),
        thread_(k.tid_x()),
        lane_(thread_ & 31u),
        warp_row_(k.mul_lo(thread_ >> 5u, tile_.warp_queries())),
        memory_(k.dynamic_shared<b8>().base()),
        ring_(memory_.offset_bytes(tile_.queries * pitch_of(p_))),
        q_fragments_(queries_place()),
        k_fragments_(keys_place()),
        v_fragments_(values_place()),
        rows_(kit_, {2 * tiles(), key_tiles(), async_}, lane_, warp_row_, kit_.factor()) {}

  void emit() {
    start();
    const flash::KeyRange block = part_of(kit_.range_of(kit_.first(), tile_.queries, tile_.keys));
    k_.if_(kit_.first() < kit_.queries(), [&] { load_queries(); });
    common_.emplace(kit_.common_range(kit_.first() + warp_row_, tile_.warp_queries()));
    auto base = k_.var(block.begin);
    k_.if_(block.begin < block.end, [&] { request(block.begin, 0); });
    if (async_) k_.cp_async_commit_group();
    // Which all threads decide together: lengths may be from memory. After it no warp reads the
    // stage that is filled next.
    const auto more = [&] {
      if (async_) k_.cp_async_wait_group(0);
      return block_any(k_, base < block.end);
    };
    const auto use = [&](std::uint32_t stage) {
      const Value<u32> next = base + tile_.keys;
      k_.if_(next < block.end, [&] { request(next, 1 - stage); });
      if (async_) k_.cp_async_commit_group();
      step(base, stage);
      base = next;
    };
    // Stages are constants in the code, so that the gate for races tells them apart.
    k_.while_(more, [&] {
      use(0);
      k_.if_(more(), [&] { use(1); });
    });
    if (splits_ == 1) {
      rows_.store(output());
    } else {
      k_.if_(add_part(), [&] { store_merged(); });
    }
  }

 private:
  [[nodiscard]] static Ptr<b8> workspace_param(KernelBuilder& k) {
    k.declare_param<Ptr<b8>>("workspace");
    return k.load_param<Ptr<b8>>("workspace");
  }
  // The block's part of the keys: steps in equal numbers, the last ones fewer or none.
  [[nodiscard]] flash::KeyRange part_of(const flash::KeyRange& all) const {
    if (splits_ == 1) return all;
    const Value<u32> steps = (all.end - all.begin + (tile_.keys - 1)) / tile_.keys;
    const Value<u32> each = k_.mul_lo((steps + (splits_ - 1)) / splits_, tile_.keys);
    const Value<u32> begin = k_.min(k_.mad_lo(kit_.part(), each, all.begin), all.end);
    return {begin, k_.min(begin + each, all.end)};
  }
  // Where the parts of the block's queries are.
  [[nodiscard]] Ptr<b8> first_part() const {
    const Value<u64> tickets =
        (k_.mul_wide(kit_.tiles(), 4u) + std::uint64_t{15}) & ~std::uint64_t{15};
    const Value<u64> before = k_.mul_wide(kit_.tile_number(), splits_ * part_bytes());
    const Ptr<b8> parts = workspace_.offset_bytes(tickets + before);
    return parts.offset_bytes(k_.mul_wide(thread_, 16u));
  }
  [[nodiscard]] static constexpr std::uint32_t pitch() {
    return 16 * FlashAttentionTensorCore::kThreads;
  }
  [[nodiscard]] std::uint32_t part_bytes() const { return rows_.state_vectors() * pitch(); }
  // Stores the block's state; whether it is the last of its queries to arrive, the same for all
  // threads. Leaves the ticket 0.
  [[nodiscard]] Pred add_part() const {
    const Ptr<b8> own = first_part().offset_bytes(k_.mul_wide(kit_.part(), part_bytes()));
    rows_.save(own, pitch(), output());
    k_.bar_sync();
    auto last = k_.var<u32>(0u);
    k_.if_(thread_ == 0u, [&] {
      const Ptr<u32> ticket = workspace_.template cast<u32>() + kit_.tile_number();
      const std::uint32_t limit = splits_ - 1;
      const Value<u32> before = k_.atom_inc(ticket, limit, Atomic{Order::acq_rel, Scope::gpu});
      last = one_if(k_, before == limit);
    });
    return block_any(k_, last != 0u);
  }
  // All states in the order of their keys.
  void store_merged() const {
    rows_.restart(output());
    auto from = k_.var(first_part());
    k_.for_(0u, splits_, 1u, [&] {
      rows_.merge(from.view(), pitch(), output());
      from += part_bytes();
    });
    rows_.store(output());
  }
  [[nodiscard]] std::uint32_t tiles() const { return tile_.warp_queries() / 16; }
  [[nodiscard]] std::uint32_t key_tiles() const { return tile_.keys / 8; }
  [[nodiscard]] std::uint32_t tile_bytes() const { return tile_.keys * pitch_of(p_); }
  [[nodiscard]] Ptr<b8, Shared> at(const Ptr<b8, Shared>& from, const Value<u32>& row,
                                   const Value<u32>& chunk) const {
    const Value<u32> begin = k_.mul_lo(row, pitch_of(p_));
    return from.offset_bytes(k_.mad_lo(chunk, 16u, begin));
  }
  // Matrices of 8 rows x 8 elements: along the rows first.
  [[nodiscard]] Ptr<b8, Shared> queries_place() const {
    const Value<u32> chunk = lane_ >> 4u;
    return at(memory_, warp_row_ + (lane_ & 15u), chunk);
  }
  [[nodiscard]] Ptr<b8, Shared> values_place() const {
    const Value<u32> chunk = lane_ >> 4u;
    return at(ring_.offset_bytes(tile_bytes()), lane_ & 15u, chunk);
  }
  // Matrices of 8 keys x 8 elements: along the elements first.
  [[nodiscard]] Ptr<b8, Shared> keys_place() const {
    const Value<u32> first = lane_ >> 4u << 3u;
    const Value<u32> key = (lane_ & 7u) | first;
    return at(ring_, key, (lane_ >> 3u) & 1u);
  }
  [[nodiscard]] static Var<f32> variable(const Sums& sums, std::uint32_t i) {
    const Var<f32>& of = sums.variables()[i];
    return Var<f32>(of.core(), of.reg());
  }

  void start() {
    rows_.start();
    for (std::uint32_t i = 0; i < tiles() * p_.head_size / 8; ++i) outputs_.emplace_back(k_);
  }

  // 16 bytes of each lane of eight; some of the last are beyond the row.
  [[nodiscard]] std::uint32_t chunks() const { return p_.head_size / kChunk; }
  void for_each_chunk(const std::function<void(std::uint32_t)>& copy) const {
    for (std::uint32_t i = 0; i * kCopyLanes < chunks(); ++i) {
      const std::optional<Pred> inside =
          unit_within(thread_ & (kCopyLanes - 1), chunks(), kCopyLanes, i);
      if (inside) {
        k_.guarded(*inside, [&] { copy(i * kCopyLanes * 16); });
      } else {
        copy(i * kCopyLanes * 16);
      }
    }
  }
  // Copies a row, or zeros unless `inside`, from the lane's first 16 bytes on.
  void copy_row(const Ptr<b8>& from, const Ptr<b8, Shared>& to,
                const std::optional<Pred>& inside) const {
    if (!async_) return copy_through_registers(from, to, inside);
    const ptx::Modifier modifiers[] = {ptx::Modifier::async, ptx::Modifier::cg,
                                       ptx::Modifier::shared, ptx::Modifier::global};
    std::optional<Value<u32>> size;
    if (inside) size.emplace(k_.selp(k_.constant<u32>(16u), 0u, *inside));
    for_each_chunk([&](std::uint32_t offset) {
      const Ptr<b8, Shared> place = to.offset_bytes(offset);
      if (size) {
        const Operand operands[] = {place, from.offset_bytes(offset), 16, *size};
        k_.emit(ptx::Op::cp_async_src_size, modifiers, operands);
      } else {
        const Operand operands[] = {place, from.offset_bytes(offset), 16};
        k_.emit(ptx::Op::cp_async, modifiers, operands);
      }
    });
  }
  void copy_through_registers(const Ptr<b8>& from, const Ptr<b8, Shared>& to,
                              const std::optional<Pred>& inside) const {
    for (std::uint32_t i = 0; i * kCopyLanes < chunks(); ++i) {
      const std::optional<Pred> chunk =
          unit_within(thread_ & (kCopyLanes - 1), chunks(), kCopyLanes, i);
      std::optional<Pred> loads = inside;
      if (chunk) loads.emplace(inside ? *inside & *chunk : *chunk);
      const Ptr<b8> source = from.offset_bytes(i * kCopyLanes * 16);
      const std::vector<Value<u32>> words =
          loads ? load_words_if(k_, source, 4, *loads) : load_words(source);
      const auto store = [&] {
        k_.st(to.offset_bytes(i * kCopyLanes * 16).template cast<u32>(),
              std::array{words[0], words[1], words[2], words[3]});
      };
      chunk ? k_.guarded(*chunk, store) : store();
    }
  }
  [[nodiscard]] std::vector<Value<u32>> load_words(const Ptr<b8>& from) const {
    const auto words = k_.template ld<4>(from.template cast<u32>());
    return {words.begin(), words.end()};
  }
  [[nodiscard]] Value<u32> copy_row_number() const { return thread_ / kCopyLanes; }
  [[nodiscard]] Ptr<b8, Shared> copy_place(const Ptr<b8, Shared>& to) const {
    const Value<u32> chunk = thread_ & (kCopyLanes - 1);
    return at(to, copy_row_number(), chunk);
  }

  // Queries from the last one on are that one, and store nothing.
  void load_queries() {
    constexpr std::uint32_t kTogether = FlashAttentionTensorCore::kThreads / kCopyLanes;
    for (std::uint32_t pass = 0; pass < tile_.queries; pass += kTogether) {
      const Value<u32> row = copy_row_number() + pass;
      const Ptr<b8> from = kit_.query_row(kit_.query_or_last(kit_.first() + row));
      if (p_.type == p_.cache) {
        const Value<u32> chunk = (thread_ & (kCopyLanes - 1)) << 4u;
        const Ptr<b8, Shared> to = copy_place(memory_).offset_bytes(pass * pitch_of(p_));
        copy_row(from.offset_bytes(k_.convert<u64>(chunk)), to, {});
      } else {
        round_row(from, at(memory_, row, k_.constant<u32>(0u)));
      }
    }
  }
  // Four elements of each lane of eight.
  void round_row(const Ptr<b8>& row, const Ptr<b8, Shared>& to) const {
    const std::uint32_t units = (p_.head_size / 4 - 1) / kCopyLanes + 1;
    const Value<u32> lane = thread_ & (kCopyLanes - 1);
    const PackedRows rows{k_, {p_.type, p_.head_size, 4, kCopyLanes, units}, lane};
    const std::vector<PackedUnit> loaded = rows.load(row);
    for (std::uint32_t i = 0; i < units; ++i) {
      const std::vector<Value<f32>> values = rows.values(loaded[i]);
      const Value<Pair> low = flash::rounded_pair<E>(k_, values[0], values[1], async_);
      const Value<Pair> high = flash::rounded_pair<E>(k_, values[2], values[3], async_);
      const auto store = [&] {
        const Ptr<b8, Shared> place = to.offset_bytes(lane << 3u).offset_bytes(i * kCopyLanes * 8);
        k_.st(place.template cast<b32>(),
              std::array{k_.template bitcast<b32>(low), k_.template bitcast<b32>(high)});
      };
      const std::optional<Pred> inside = unit_within(lane, p_.head_size / 4, kCopyLanes, i);
      inside ? k_.if_(*inside, store) : store();
    }
  }

  [[nodiscard]] std::uint32_t stage_bytes() const { return 2 * tile_bytes(); }
  // Copies the tile of keys and values from `base` on to a stage; zeros from the last key on.
  void request(const Value<u32>& base, std::uint32_t stage) {
    constexpr std::uint32_t kTogether = FlashAttentionTensorCore::kThreads / kCopyLanes;
    const Value<u32> first = base + copy_row_number();
    const Value<s32> left = k_.template bitcast<s32>(kit_.keys() - first);
    const Ptr<b8, Shared> to = copy_place(ring_).offset_bytes(stage * stage_bytes());
    const Value<u64> chunk = k_.mul_wide(thread_ & (kCopyLanes - 1), 16u);
    std::optional<Value<u64>> offset;
    for (std::uint32_t pass = 0; pass < tile_.keys; pass += kTogether) {
      const Pred inside = left > static_cast<std::int32_t>(pass);
      if (p_.page != 0) {
        offset.emplace(kit_.cache_row(first + pass) + chunk);
      } else if (pass == 0) {
        offset.emplace(kit_.cache_row(first) + chunk);
      }
      const std::uint32_t ahead = p_.page != 0 ? 0 : pass * kit_.cache_pitch();
      const std::uint32_t row = pass * pitch_of(p_);
      copy_row(kit_.k_cache().offset_bytes(*offset).offset_bytes(ahead), to.offset_bytes(row),
               inside);
      copy_row(kit_.v_cache().offset_bytes(*offset).offset_bytes(ahead),
               to.offset_bytes(row + tile_bytes()), inside);
    }
  }

  void step(const Var<u32>& base, std::uint32_t stage) {
    std::vector<Sums> scores = score(k_fragments_.offset_bytes(stage * stage_bytes()));
    const Pred early = base < common_->begin;
    // Row 2 t + h of the thread is row lane / 4 + 8 h of tile t of the warp.
    const typename Rows::ScoreOf score_of = [&](std::uint32_t row, std::uint32_t j) {
      return variable(scores[row / 2 * key_tiles() + j / 2], row % 2 * 2 + j % 2);
    };
    k_.if_(early | (base + tile_.keys > common_->end), [&] { rows_.mask(base, score_of); });
    const std::vector<Fragment4> weights = fragments(rows_.weigh(score_of, output()));
    add_values(weights, v_fragments_.offset_bytes(stage * stage_bytes()));
  }

  // q . k of each 16 queries and 8 keys.
  [[nodiscard]] std::vector<Sums> score(const Ptr<b8, Shared>& keys) {
    std::vector<Sums> scores;
    for (std::uint32_t i = 0; i < tiles() * key_tiles(); ++i) scores.emplace_back(k_);
    for (std::uint32_t term = 0; term < p_.head_size / 16; ++term) {
      std::vector<Fragment4> q;
      for (std::uint32_t t = 0; t < tiles(); ++t) {
        const Ptr<b8, Shared> from = q_fragments_.offset_bytes(16 * t * pitch_of(p_) + 32 * term);
        q.push_back(ldmatrix<4>(k_, from.template cast<b16>()));
      }
      for (std::uint32_t j = 0; j < key_tiles() / 2; ++j) {
        const Ptr<b8, Shared> from = keys.offset_bytes(16 * j * pitch_of(p_) + 32 * term);
        const Fragment4 k = ldmatrix<4>(k_, from.template cast<b16>());
        for (std::uint32_t t = 0; t < tiles(); ++t) {
          for (std::uint32_t half = 0; half < 2; ++half) {
            add_product<Shape, E>(k_, scores[t * key_tiles() + 2 * j + half], q[t], k, 2 * half);
          }
        }
      }
    }
    return scores;
  }

  // Weights as left factors: four registers for each 16 queries and 16 keys.
  [[nodiscard]] std::vector<Fragment4> fragments(const std::vector<Value<Pair>>& pairs) const {
    std::vector<Fragment4> weights;
    for (std::uint32_t t = 0; t < tiles(); ++t) {
      for (std::uint32_t j = 0; j < key_tiles(); j += 2) {
        const auto part = [&](std::uint32_t half, std::uint32_t eight) {
          return k_.template bitcast<b32>(pairs[(2 * t + half) * key_tiles() + j + eight]);
        };
        weights.push_back(Fragment4{part(0, 0), part(1, 0), part(0, 1), part(1, 1)});
      }
    }
    return weights;
  }
  [[nodiscard]] typename Rows::OutputOf output() const {
    return [this](std::uint32_t row, std::uint32_t n, std::uint32_t e) {
      return variable(outputs_[row / 2 * (p_.head_size / 8) + n], row % 2 * 2 + e);
    };
  }

  void add_values(const std::vector<Fragment4>& weights, const Ptr<b8, Shared>& values) {
    const std::uint32_t steps = tile_.keys / 16;
    for (std::uint32_t step = 0; step < steps; ++step) {
      for (std::uint32_t n = 0; n < p_.head_size / 16; ++n) {
        const Ptr<b8, Shared> from = values.offset_bytes(16 * step * pitch_of(p_) + 32 * n);
        const Fragment4 v = ldmatrix<4>(k_, from.template cast<b16>(), true);
        for (std::uint32_t t = 0; t < tiles(); ++t) {
          for (std::uint32_t half = 0; half < 2; ++half) {
            Sums& sum = outputs_[t * (p_.head_size / 8) + 2 * n + half];
            add_product<Shape, E>(k_, sum, weights[t * steps + step], v, 2 * half);
          }
        }
      }
    }
  }

  KernelBuilder& k_;
  const FlashProblem& p_;
  const FlashMmaTileShape& tile_;
  bool async_;
  std::uint32_t splits_;
  flash::Kit kit_;
  Ptr<b8> workspace_;
  Value<u32> thread_, lane_, warp_row_;
  Ptr<b8, Shared> memory_, ring_;  ///< queries; stages of keys, then values
  Ptr<b8, Shared> q_fragments_, k_fragments_, v_fragments_;  ///< addresses of the lane
  Rows rows_;
  std::optional<flash::KeyRange> common_;  ///< that all queries of the warp attend
  std::vector<Sums> outputs_;
};

}  // namespace

const FlashMmaTileShape& FlashAttentionTensorCore::shape() const noexcept {
  if (tile != FlashMmaTile::Auto) return kFlashMmaTiles[static_cast<std::size_t>(tile)];
  if (problem.head_size > 128) return std::end(kFlashMmaTiles)[-1];
  const FlashMmaTileShape& wide = kFlashMmaTiles[1];
  return bytes_of(problem, wide) <= kAutoSharedBytes ? wide : kFlashMmaTiles[2];
}

std::uint32_t FlashAttentionTensorCore::shared_bytes() const noexcept {
  return bytes_of(problem, shape());
}

std::uint64_t FlashAttentionTensorCore::part_bytes() const noexcept {
  const std::uint64_t rows = shape().warp_queries() / 8;
  return kThreads * rows * (2 + problem.head_size / 4) * 4;
}

WorkspaceNeed Describe<FlashAttentionTensorCore>::workspace(const K& spec) {
  if (spec.splits == 1) return {};
  const std::uint64_t tiles = spec.problem.rows * spec.problem.heads() *
                              ((spec.problem.queries - 1) / spec.shape().queries + 1);
  return {(4 * tiles + 15) / 16 * 16, tiles * spec.splits * spec.part_bytes()};
}

void check(const FlashAttentionTensorCore& kernel, const ptx::Target& target) {
  const FlashProblem& p = kernel.problem;
  detail::check_flash(p, kernel_name<FlashAttentionTensorCore>);
  if (p.cache != ElementType::f16 && p.cache != ElementType::bf16) {
    refuse_build(
        kernel_name<FlashAttentionTensorCore>, "bad-parameter", nullptr,
        format_text("cache is {}; tensor cores multiply f16 or bf16: take one of them, or the "
                    "kernel flash_attention",
                    to_string(p.cache)));
  }
  if (target.sm < kAsyncSm && p.cache == ElementType::bf16) {
    refuse_build(
        kernel_name<FlashAttentionTensorCore>, "target-lacks", &target,
        format_text("cache is bf16, which the tensor cores of {} do not have; they need sm_80 "
                    "or newer: take f16",
                    target.name));
  }
  const FlashMmaTileShape& tile = kernel.shape();
  if (p.head_size > max_head_size(tile)) {
    refuse_build(
        kernel_name<FlashAttentionTensorCore>, "bad-parameter", nullptr,
        format_text("tile {} with head_size {}: a thread has registers for at most {} elements "
                    "of a head: take a smaller tile, or auto",
                    tile.name, p.head_size, max_head_size(tile)));
  }
  if (kernel.shared_bytes() > target.shared_per_block_opt_in) {
    refuse_build(
        kernel_name<FlashAttentionTensorCore>, "target-lacks", &target,
        format_text("tile {} with head_size {} is {} B of shared memory; a block on {} may have "
                    "{} B: take a smaller tile",
                    kernel.shape().name, p.head_size, kernel.shared_bytes(), target.name,
                    target.shared_per_block_opt_in));
  }
}

BuiltKernel FlashAttentionTensorCore::build(const ptx::Target& target) const {
  check_parameters(*this);
  check(*this, target);
  KernelBuilder k(kernel_name<FlashAttentionTensorCore>, target.name);
  k.required_threads(kThreads);
  k.min_blocks_per_sm(shape().warp_queries() == 16 && problem.head_size <= 64 ? 3 : 2);
  k.pragma("nounroll");
  k.contract(Contract::Forbid);
  if (target.sm < kAsyncSm) {
    FlashMmaEmitter<m16n8k8, f16>(k, *this, target).emit();
  } else if (problem.cache == ElementType::f16) {
    FlashMmaEmitter<m16n8k16, f16>(k, *this, target).emit();
  } else {
    FlashMmaEmitter<m16n8k16, bf16>(k, *this, target).emit();
  }
  return k.build();
}

LaunchGeometry FlashAttentionTensorCore::geometry() const {
  LaunchGeometry geometry =
      flash::grid_of(kernel_name<FlashAttentionTensorCore>, problem, shape().queries, kThreads);
  geometry.grid.x *= splits;
  geometry.dynamic_shared_bytes = shared_bytes();
  return geometry;
}

void Describe<FlashAttentionTensorCore>::reference(const FlashAttentionTensorCore& spec,
                                                   HostOperands& host) {
  const FlashProblem& p = spec.problem;
  detail::flash_reference(
      p,
      flash::tensor_roundings(p, spec.shape().keys, tensor_core_error(p.head_size),
                              tensor_core_error(p.keys)),
      host);
}

}  // namespace ptxgen::inline v0
