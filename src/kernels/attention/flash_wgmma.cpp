// src/kernels/attention/flash_wgmma.cpp - attention of many queries by wgmma
#include "ptxgen/kernels/attention/flash_wgmma.hpp"

#include <cmath>

#include "kernels/attention/flash_rows.hpp"
#include "kernels/parts/packed_rows.hpp"
#include "kernels/parts/refusal.hpp"
#include "ptxgen/builder/warpgroup.hpp"
#include "ptxgen/kernels/gemm/mma.hpp"
#include "ptxgen/kernels/gemm/wgmma.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kBoxRowBytes = 128;     // of a box in shared memory: the swizzle's width
constexpr std::uint32_t kBoxColumns = 64;       // elements of 2 bytes
constexpr std::uint32_t kSwizzleRepeat = 1024;  // bytes after which the swizzle repeats
constexpr std::uint32_t kGroup = 128;           // threads of a warpgroup
constexpr std::uint32_t kGroupQueries = 64;
constexpr std::uint32_t kTerms = 16;  // of a product
constexpr std::uint32_t kPieces = 8;  // of 16 bytes in a row of a box
// Of 65536 registers: 128 x 24 + 256 x 240.
constexpr unsigned kProducerRegisters = 24;
constexpr unsigned kConsumerRegisters = 240;

std::uint32_t box_bytes(std::uint32_t rows) { return rows * kBoxRowBytes; }
std::uint32_t boxes_of(const FlashProblem& problem) { return problem.head_size / kBoxColumns; }
std::uint32_t queries_bytes(const FlashAttentionWgmma& kernel) {
  return boxes_of(kernel.problem) * box_bytes(kernel.shape().queries);
}
// Of keys, or of values, of a step.
std::uint32_t tile_bytes(const FlashAttentionWgmma& kernel) {
  return boxes_of(kernel.problem) * box_bytes(kernel.shape().keys);
}
std::uint32_t stage_bytes(const FlashAttentionWgmma& kernel) { return 2 * tile_bytes(kernel); }

// Rows from `keys` on are out of the map's bounds, though the cache has them.
TensorMapUse map_of(const FlashAttentionWgmma& kernel, std::uint64_t address) {
  const FlashProblem& p = kernel.problem;
  const std::uint64_t pitch = bytes(p.cache, p.head_size);
  TensorMapUse use;
  use.address = address;
  use.type = p.cache;
  use.swizzle = kBoxRowBytes;
  use.rank = 3;
  use.extents = {p.head_size, p.keys, std::uint64_t{p.shared_cache ? 1 : p.rows} * p.kv_heads};
  use.strides = {pitch, p.positions() * pitch};
  use.box = {kBoxColumns, kernel.shape().keys, 1};
  return use;
}

/// The code of one kernel: kKeys keys a step, heads of kHead elements of type E.
template <unsigned kKeys, unsigned kHead, class E>
class FlashWgmmaEmitter {
  using Rows = flash::FragmentRows<E>;
  using Pair = typename Rows::Pair;

 public:
  FlashWgmmaEmitter(KernelBuilder& k, const FlashAttentionWgmma& kernel)
      : k_(k),
        kernel_(kernel),
        p_(kernel.problem),
        kit_(k, p_, kernel.shape().queries),
        map_k_(tensor_map_param(k, "map_k")),
        map_v_(tensor_map_param(k, "map_v")),
        memory_(k.dynamic_shared<b8>(kSwizzleRepeat).base()),
        ring_(memory_.offset_bytes(queries_bytes(kernel))),
        barriers_(ring_.offset_bytes(FlashAttentionWgmma::kStages * stage_bytes(kernel))
                      .template cast<u64>()),
        thread_(k.tid_x()),
        warpgroup_(thread_ >> 7u) {}

  void emit() {
    start();
    const flash::KeyRange block = kit_.range_of(kit_.first(), kernel_.shape().queries, kKeys);
    k_.if_(
        warpgroup_ == 0u, [&] { produce(block); }, [&] { consume(block); });
  }

 private:
  [[nodiscard]] Mbarrier full(std::uint32_t stage) const { return barriers_ + stage; }
  [[nodiscard]] Mbarrier empty(std::uint32_t stage) const {
    return barriers_ + (FlashAttentionWgmma::kStages + stage);
  }
  [[nodiscard]] Ptr<b8, Shared> keys(std::uint32_t stage) const {
    return ring_.offset_bytes(stage * stage_bytes(kernel_));
  }
  [[nodiscard]] Ptr<b8, Shared> values(std::uint32_t stage) const {
    return keys(stage).offset_bytes(tile_bytes(kernel_));
  }

  void start() {
    k_.if_(thread_ == 0u, [&] {
      for (std::uint32_t stage = 0; stage < FlashAttentionWgmma::kStages; ++stage) {
        mbarrier_init(k_, full(stage), 1u);
        // A lane of each warp that multiplies.
        mbarrier_init(k_, empty(stage), FlashAttentionWgmma::kConsumers * kGroup / 32);
      }
      fence_mbarrier_init(k_);
      prefetch_map(k_, map_k_);
      prefetch_map(k_, map_v_);
    });
    k_.if_(warpgroup_ != 0u, [&] {
      const Value<u32> group = warpgroup_ - 1u;
      const Value<u32> group_row = k_.mul_lo(group, kGroupQueries);
      load_queries(queries_of(group), group_row);
    });
    // wgmma reads what all four warps stored.
    fence_proxy_async(k_);
    k_.bar_sync();
  }
  [[nodiscard]] Ptr<b8, Shared> queries_of(const Value<u32>& group) const {
    return memory_.offset_bytes(k_.mul_lo(group, box_bytes(kGroupQueries)));
  }

  // Calls `use(stage)` for each step. Stages are constants in the code; both are used before
  // `parity` changes.
  template <class Use>
  void for_each_step(Var<u32>& base, const Value<u32>& end, Var<u32>& parity, const Use& use) {
    k_.while_([&] { return base < end; },
              [&] {
                use(0);
                base += kKeys;
                k_.if_(base < end, [&] {
                  use(1);
                  base += kKeys;
                });
                parity ^= 1u;
              });
  }

  // The producer ----------------------------------------------------------------------------------

  void produce(const flash::KeyRange& block) {
    k_.emit(ptx::Op::setmaxnreg, {ptx::Modifier::dec}, {kProducerRegisters});
    k_.if_(thread_ == 0u, [&] {
      auto base = k_.var(block.begin);
      auto parity = k_.var<u32>(1u);  // of a ring that is empty
      for_each_step(base, block.end, parity, [&](std::uint32_t stage) {
        mbarrier_wait(k_, empty(stage), parity);
        mbarrier_arrive_expect_tx(k_, full(stage), stage_bytes(kernel_));
        copy(keys(stage), map_k_, base, stage);
        copy(values(stage), map_v_, base, stage);
      });
    });
  }
  void copy(const Ptr<b8, Shared>& to, const TensorMap& map, const Var<u32>& base,
            std::uint32_t stage) {
    for (std::uint32_t box = 0; box < boxes_of(p_); ++box) {
      const std::array at{k_.constant<s32>(static_cast<std::int32_t>(box * kBoxColumns)),
                          k_.template bitcast<s32>(base.read()),
                          k_.template bitcast<s32>(kit_.cache_strip())};
      copy_tensor(k_, to.offset_bytes(box * box_bytes(kKeys)), map, at, full(stage));
    }
  }

  // The consumers ---------------------------------------------------------------------------------

  void consume(const flash::KeyRange& block) {
    k_.emit(ptx::Op::setmaxnreg, {ptx::Modifier::inc}, {kConsumerRegisters});
    const Value<u32> group = warpgroup_ - 1u;
    const Value<u32> group_row = k_.mul_lo(group, kGroupQueries);
    const Ptr<b8, Shared> queries = queries_of(group);
    const MatrixLayout along_head{Swizzle::Bytes128, 0, 8 * kBoxRowBytes};
    const MatrixLayout along_keys{Swizzle::Bytes128, box_bytes(kKeys), 8 * kBoxRowBytes};
    const Descriptors from{matrix_descriptor(k_, queries, along_head),
                           matrix_descriptor(k_, keys(0), along_head),
                           matrix_descriptor(k_, values(0), along_keys)};
    const Value<u32> lane = thread_ & 31u;
    const Value<u32> warp_row = group_row + (k_.mul_lo((thread_ >> 5u) & 3u, 16u));
    Rows rows(kit_, {2, kKeys / 8, true}, lane, warp_row, kit_.factor());
    rows.start();
    const WarpgroupAccumulator<kKeys, f32> scores(k_);
    const WarpgroupAccumulator<kHead, f32> outputs(k_);
    const flash::KeyRange common = kit_.common_range(kit_.first() + group_row, kGroupQueries);
    auto base = k_.var(block.begin);
    auto parity = k_.var<u32>(0u);
    for_each_step(base, block.end, parity, [&](std::uint32_t stage) {
      mbarrier_wait(k_, full(stage), parity);
      score(scores, from, stage);
      const Pred early = base < common.begin;
      k_.if_(early | (base + kKeys > common.end), [&] { rows.mask(base, row_of(scores)); });
      add_values(outputs, fragments(rows.weigh(row_of(scores), element_of(outputs))), from, stage);
      k_.guarded(lane == 0u, [&] { mbarrier_arrive(k_, empty(stage)); });
    });
    rows.store(element_of(outputs));
  }

  /// Of the warpgroup's queries, and of stage 0.
  struct Descriptors {
    Value<u64> queries, keys, values;
  };

  // Column 8 (j / 2) + 2 (lane % 4) + j % 2 of row lane / 4 + 8 row.
  template <unsigned kN>
  [[nodiscard]] static typename Rows::ScoreOf row_of(const WarpgroupAccumulator<kN, f32>& sums) {
    return [&sums](std::uint32_t row, std::uint32_t j) {
      const Var<f32>& of = sums.variables()[j / 2 * 4 + row * 2 + j % 2];
      return Var<f32>(of.core(), of.reg());
    };
  }
  template <unsigned kN>
  [[nodiscard]] static typename Rows::OutputOf element_of(
      const WarpgroupAccumulator<kN, f32>& sums) {
    return [&sums](std::uint32_t row, std::uint32_t n, std::uint32_t e) {
      return row_of(sums)(row, 2 * n + e);
    };
  }

  // Four lanes of a row would have the same banks without the swizzle: piece p of row r is at p xor
  // r. A thread stores 16 bytes: 8 elements. Queries from the last one on are that one, and store
  // nothing.
  void load_queries(const Ptr<b8, Shared>& to, const Value<u32>& group_row) {
    const std::uint32_t pieces = p_.head_size / 8;  // of a row
    const std::uint32_t together = kGroup / pieces;
    const Value<u32> inside = thread_ & (kGroup - 1);
    const Value<u32> piece = inside & (pieces - 1);
    const Value<u32> box = piece / kPieces;
    const Value<u32> in_box = piece & (kPieces - 1);
    const Ptr<b8, Shared> own =
        to.offset_bytes(k_.mul_lo(box, box_bytes(FlashAttentionWgmma::kConsumers * kGroupQueries)));
    for (std::uint32_t pass = 0; pass < kGroupQueries; pass += together) {
      const Value<u32> row = inside / pieces + pass;
      const Value<u32> query = kit_.query_or_last(kit_.first() + group_row + row);
      const Ptr<b8> from = kit_.query_row(query).offset_bytes(
          k_.mul_wide(piece, 8 * static_cast<std::uint32_t>(bytes(p_.type))));
      const Value<u32> place = (in_box ^ (row & (kPieces - 1))) << 4u;
      const Ptr<b8, Shared> at =
          own.offset_bytes(k_.mad_lo(row, std::uint32_t{kBoxRowBytes}, place));
      store_piece(from, at);
    }
  }
  void store_piece(const Ptr<b8>& from, const Ptr<b8, Shared>& to) {
    if (p_.type == p_.cache) {
      k_.st(to.template cast<u32>(), k_.template ld<4>(from.template cast<u32>()));
      return;
    }
    const auto low = k_.template ld<4>(from.template cast<f32>());
    const auto high = k_.template ld<4>(from.template cast<f32>() + 4);
    const auto word = [&](const Value<f32>& a, const Value<f32>& b) {
      return k_.template bitcast<b32>(flash::rounded_pair<E>(k_, a, b));
    };
    k_.st(to.template cast<b32>(), std::array{word(low[0], low[1]), word(low[2], low[3]),
                                              word(high[0], high[1]), word(high[2], high[3])});
  }

  // q . k of the warpgroup's queries and the keys of the stage, complete.
  void score(const WarpgroupAccumulator<kKeys, f32>& scores, const Descriptors& from,
             std::uint32_t stage) {
    wgmma_fence(k_);
    for (std::uint32_t term = 0; term < kHead / kTerms; ++term) {
      const std::uint32_t box = term * kTerms / kBoxColumns;
      const std::uint32_t inside = term % (kBoxColumns / kTerms) * 2 * kTerms;
      const std::uint32_t q = box * box_bytes(2 * kGroupQueries) + inside;
      const std::uint32_t key = stage * stage_bytes(kernel_) + box * box_bytes(kKeys) + inside;
      const Value<u64> right = further(from.keys, key);
      wgmma<E, E>(k_, scores, further(from.queries, q), right, {.accumulate = term != 0});
    }
    wgmma_commit(k_);
    wgmma_wait(k_, 0);
  }
  [[nodiscard]] Value<u64> further(const Value<u64>& descriptor, std::uint32_t bytes) const {
    return bytes == 0 ? descriptor : descriptor + std::uint64_t{bytes / 16};
  }

  // Weights as left factors: four registers for each 16 keys.
  [[nodiscard]] std::vector<std::array<Value<Pair>, 4>> fragments(
      const std::vector<Value<Pair>>& pairs) const {
    constexpr std::uint32_t kEights = kKeys / 8;
    std::vector<std::array<Value<Pair>, 4>> weights;
    for (std::uint32_t j = 0; j < kEights; j += 2) {
      weights.push_back({pairs[j], pairs[kEights + j], pairs[j + 1], pairs[kEights + j + 1]});
    }
    return weights;
  }
  void add_values(const WarpgroupAccumulator<kHead, f32>& outputs,
                  const std::vector<std::array<Value<Pair>, 4>>& weights, const Descriptors& from,
                  std::uint32_t stage) {
    wgmma_fence(k_);
    for (std::uint32_t step = 0; step < kKeys / kTerms; ++step) {
      const std::uint32_t value = stage * stage_bytes(kernel_) + step * kTerms * kBoxRowBytes;
      wgmma<E, E>(k_, outputs, weights[step], further(from.values, value), {.transpose_b = true});
    }
    wgmma_commit(k_);
    wgmma_wait(k_, 0);
  }

  KernelBuilder& k_;
  const FlashAttentionWgmma& kernel_;
  const FlashProblem& p_;
  flash::Kit kit_;
  TensorMap map_k_, map_v_;
  Ptr<b8, Shared> memory_, ring_;  ///< queries; stages of keys, then values
  Mbarrier barriers_;
  Value<u32> thread_, warpgroup_;
};

template <class E>
void emit_kernel(KernelBuilder& k, const FlashAttentionWgmma& kernel) {
  const bool wide = kernel.tile == FlashWgmmaTile::t128x128;
  if (kernel.problem.head_size == 64) {
    wide ? FlashWgmmaEmitter<128, 64, E>(k, kernel).emit()
         : FlashWgmmaEmitter<64, 64, E>(k, kernel).emit();
  } else {
    wide ? FlashWgmmaEmitter<128, 128, E>(k, kernel).emit()
         : FlashWgmmaEmitter<64, 128, E>(k, kernel).emit();
  }
}

void check_limits(const FlashProblem& p) {
  const auto demand = [](bool holds, std::string_view what, std::string_view rule) {
    if (holds) return;
    refuse_build(kernel_name<FlashAttentionWgmma>, "bad-parameter", nullptr,
                 format_text("{}; {}: take flash_attention_tensor_core", what, rule));
  };
  demand(p.cache == ElementType::f16 || p.cache == ElementType::bf16,
         format_text("cache is {}", to_string(p.cache)), "this kernel multiplies f16 or bf16");
  demand(p.type == p.cache || p.type == ElementType::f32,
         format_text("type is {} with a cache of {}", to_string(p.type), to_string(p.cache)),
         "q is of the type of the cache, or f32");
  demand(p.head_size == 64 || p.head_size == 128, format_text("head_size is {}", p.head_size),
         "boxes of 64 elements make heads of 64 or 128");
  demand(!p.variable, "variable is set", "tensor maps have one length for all rows");
  demand(p.page == 0, format_text("page is {}", p.page), "tensor maps do not follow a table");
}

}  // namespace

std::uint32_t FlashAttentionWgmma::shared_bytes() const noexcept {
  return queries_bytes(*this) + kStages * (stage_bytes(*this) + 16);
}

void check(const FlashAttentionWgmma& kernel, const ptx::Target& target) {
  detail::check_flash(kernel.problem, kernel_name<FlashAttentionWgmma>);
  check_limits(kernel.problem);
  if (target.sm == 90 && target.variant == ptx::Variant::Architecture) return;
  refuse_build(kernel_name<FlashAttentionWgmma>, "target-lacks", &target,
               format_text("{} has no wgmma; sm_90a alone has it: take "
                           "flash_attention_tensor_core",
                           target.name));
}

BuiltKernel FlashAttentionWgmma::build(const ptx::Target& target) const {
  check_parameters(*this);
  check(*this, target);
  KernelBuilder k(kernel_name<FlashAttentionWgmma>, target.name);
  k.required_threads(kThreads);
  k.min_blocks_per_sm(1);
  k.pragma("nounroll");
  k.contract(Contract::Forbid);
  if (problem.cache == ElementType::f16) {
    emit_kernel<f16>(k, *this);
  } else {
    emit_kernel<bf16>(k, *this);
  }
  return k.build();
}

LaunchGeometry FlashAttentionWgmma::geometry() const {
  LaunchGeometry geometry =
      flash::grid_of(kernel_name<FlashAttentionWgmma>, problem, shape().queries, kThreads);
  geometry.dynamic_shared_bytes = shared_bytes();
  return geometry;
}

namespace detail {

TensorMapUse flash_map_k(const FlashAttentionWgmma& kernel, const FlashOperands& operands) {
  return map_of(kernel, operands.k.address);
}
TensorMapUse flash_map_v(const FlashAttentionWgmma& kernel, const FlashOperands& operands) {
  return map_of(kernel, operands.v.address);
}

}  // namespace detail

// As of flash_attention_tensor_core, with the errors of wgmma.
void Describe<FlashAttentionWgmma>::reference(const FlashAttentionWgmma& spec, HostOperands& host) {
  const FlashProblem& p = spec.problem;
  detail::flash_reference(
      p,
      flash::tensor_roundings(p, spec.shape().keys, warpgroup_error(p.head_size),
                              warpgroup_error(p.keys)),
      host);
}

}  // namespace ptxgen::inline v0
