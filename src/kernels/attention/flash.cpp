// src/kernels/attention/flash.cpp - attention of many queries, without tensor cores
#include "ptxgen/kernels/attention/flash.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/attention/flash_emit.hpp"
#include "kernels/parts/block_vote.hpp"
#include "kernels/parts/packed_rows.hpp"
#include "kernels/parts/refusal.hpp"
#include "ptxgen/builder/math.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kAnySharedBytes = 65536;  // of a block, on every target
constexpr std::uint32_t kRowLanes = 8;            // that load a row together
constexpr std::uint32_t kUnit = 4;                // values of a load
constexpr std::uint32_t kColumns = 16;            // threads that share the rows of 4 queries
constexpr std::uint32_t kRows = 4;                // queries of a thread

// From row to row in shared memory, floats: an odd multiple of 16 bytes, so that 16 bytes of eight
// rows are in different banks.
std::uint32_t head_pitch(const FlashProblem& problem) { return problem.head_size + 4; }
std::uint32_t weight_pitch(const FlashTileShape& tile) { return tile.keys + 4; }

std::uint32_t bytes_of(const FlashProblem& problem, const FlashTileShape& tile) {
  const std::uint32_t heads = (tile.queries + 2 * tile.keys) * head_pitch(problem);
  return 4 * (heads + tile.queries * weight_pitch(tile));
}

/// The code of one kernel.
class FlashEmitter {
 public:
  FlashEmitter(KernelBuilder& k, const FlashAttention& kernel)
      : k_(k),
        p_(kernel.problem),
        tile_(kernel.shape()),
        kit_(k, p_, tile_.queries),
        thread_(k.tid_x()),
        column_(thread_ & (kColumns - 1)),
        row_(thread_ >> 4u << 2u),
        q_(k.dynamic_shared<f32>().base()),
        keys_(q_ + tile_.queries * head_pitch(p_)),
        values_(keys_ + tile_.keys * head_pitch(p_)),
        weights_(values_ + tile_.keys * head_pitch(p_)),
        vector_(p_.head_size % 64 == 0   ? 4
                : p_.head_size % 32 == 0 ? 2
                                         : 1) {}

  void emit() {
    start();
    const flash::KeyRange block = kit_.range_of(kit_.first(), tile_.queries, tile_.keys);
    k_.if_(kit_.first() < kit_.queries(), [&] { load_queries(); });
    const Value<u32> first_row = kit_.first() + row_;
    for (std::uint32_t i = 0; i < kRows; ++i) ranges_.push_back(kit_.range(first_row + i));
    const flash::KeyRange common = kit_.common_range(kit_.first(), tile_.queries);
    auto base = k_.var(block.begin);
    // Which all threads decide together: lengths may be from memory.
    k_.while_([&] { return block_any(k_, base < block.end); },
              [&] {
                load_tile(base);
                k_.bar_sync();
                Scores scores = score();
                const Pred early = base < common.begin;
                k_.if_(early | (base + tile_.keys > common.end), [&] { mask(base, scores); });
                weigh(scores);
                k_.bar_warp_sync();
                add_values();
                base += tile_.keys;
              });
    store();
  }

 private:
  using Scores = std::vector<std::vector<Var<f32>>>;  // of each query and key of the thread

  [[nodiscard]] std::uint32_t thread_keys() const { return tile_.keys / kColumns; }
  [[nodiscard]] std::uint32_t thread_vectors() const { return p_.head_size / (kColumns * vector_); }

  void start() {
    for (std::uint32_t i = 0; i < kRows; ++i) {
      peaks_.push_back(k_.var<f32>(-flash::kInf));
      sums_.push_back(k_.var<f32>(0.0f));
      for (std::uint32_t e = 0; e < p_.head_size / kColumns; ++e) {
        outputs_.push_back(k_.var<f32>(0.0f));
      }
    }
  }

  [[nodiscard]] PackedRows rows_of(ElementType type) const {
    const std::uint32_t units = (p_.head_size / kUnit - 1) / kRowLanes + 1;
    return {k_, {type, p_.head_size, kUnit, kRowLanes, units}, thread_ & (kRowLanes - 1)};
  }
  // Stores the lane's units of row `row` to shared memory.
  void share(const PackedRows& rows, const std::vector<PackedUnit>& units,
             const std::optional<Value<f32>>& factor, const Ptr<f32, Shared>& to) const {
    const Ptr<f32, Shared> lane = to + ((thread_ & (kRowLanes - 1)) << 2u);
    for (std::uint32_t i = 0; i < units.size(); ++i) {
      std::vector<Value<f32>> values = rows.values(units[i]);
      const std::optional<Value<f32>> step = rows.step(units[i]);
      for (Value<f32>& value : values) {
        if (step) value.rebind(value * *step);
        if (factor) value.rebind(value * *factor);
      }
      const auto store = [&] {
        k_.st(lane + i * kRowLanes * kUnit, std::array{values[0], values[1], values[2], values[3]});
      };
      const std::optional<Pred> inside =
          unit_within(thread_ & (kRowLanes - 1), p_.head_size / kUnit, kRowLanes, i);
      inside ? k_.guarded(*inside, store) : store();
    }
  }

  // Queries that do not exist are zeros.
  void load_queries() {
    const PackedRows rows = rows_of(p_.type);
    const std::uint32_t together = threads() / kRowLanes;
    const Value<u32> row = thread_ / kRowLanes;
    const Value<f32> factor = kit_.factor();
    for (std::uint32_t pass = 0; pass < tile_.queries; pass += together) {
      const Value<u32> inside = row + pass;
      const Value<u32> query = kit_.first() + inside;
      const Pred exists = query < kit_.queries();
      const Ptr<f32, Shared> to = q_ + k_.mul_lo(inside, head_pitch(p_));
      share(rows, rows.load(kit_.query_row(query), exists), factor, to);
    }
  }
  // Keys that do not exist are zeros, and their scores do not count.
  void load_tile(const Var<u32>& base) {
    const PackedRows rows = rows_of(p_.cache);
    const std::uint32_t together = threads() / kRowLanes;
    const Value<u32> row = thread_ / kRowLanes;
    std::vector<std::vector<PackedUnit>> keys, values;
    for (std::uint32_t pass = 0; pass < tile_.keys; pass += together) {
      const Value<u32> key = base + (row + pass);
      const Value<u64> offset = kit_.cache_row(key);
      const Pred exists = key < kit_.keys();
      keys.push_back(rows.load(kit_.k_cache() + offset, exists));
      values.push_back(rows.load(kit_.v_cache() + offset, exists));
    }
    const Value<u32> place = k_.mul_lo(row, head_pitch(p_));
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      share(rows, keys[i], {}, keys_ + place + i * together * head_pitch(p_));
    }
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      share(rows, values[i], {}, values_ + place + i * together * head_pitch(p_));
    }
  }
  [[nodiscard]] std::uint32_t threads() const { return tile_.queries * kColumns / kRows; }

  // Of 4 queries and every 16th key from the thread's on, in exponents of 2.
  [[nodiscard]] Scores score() {
    Scores scores(kRows);
    for (auto& row : scores) {
      for (std::uint32_t j = 0; j < thread_keys(); ++j) row.push_back(k_.var<f32>(0.0f));
    }
    const Ptr<f32, Shared> query = q_ + k_.mul_lo(row_, head_pitch(p_));
    const Ptr<f32, Shared> key = keys_ + k_.mul_lo(column_, head_pitch(p_));
    k_.for_(0u, p_.head_size, 4u, [&](Value<u32> element) {
      std::vector<std::array<Value<f32>, 4>> q, keys;
      const Ptr<f32, Shared> of_query = query + element;
      const Ptr<f32, Shared> of_key = key + element;
      for (std::uint32_t i = 0; i < kRows; ++i)
        q.push_back(k_.ld<4>(of_query + i * head_pitch(p_)));
      for (std::uint32_t j = 0; j < thread_keys(); ++j) {
        keys.push_back(k_.ld<4>(of_key + j * kColumns * head_pitch(p_)));
      }
      for (std::uint32_t e = 0; e < 4; ++e) {
        for (std::uint32_t i = 0; i < kRows; ++i) {
          for (std::uint32_t j = 0; j < thread_keys(); ++j) {
            k_.fma_inplace(scores[i][j], q[i][e], keys[j][e]);
          }
        }
      }
    });
    return scores;
  }

  // -inf for keys outside of their query's range.
  void mask(const Var<u32>& base, Scores& scores) {
    for (std::uint32_t i = 0; i < kRows; ++i) {
      const Value<u32> count = ranges_[i].end - ranges_[i].begin;
      const Value<u32> before = base + column_ - ranges_[i].begin;
      for (std::uint32_t j = 0; j < thread_keys(); ++j) {
        const Pred outside = before + j * kColumns >= count;
        k_.guarded(outside, [&] { scores[i][j] = -flash::kInf; });
      }
    }
  }

  // Raises the states to the step's largest scores; the weights go to shared memory, where the 16
  // threads of a query, all of one warp, read them.
  void weigh(Scores& scores) {
    const Ptr<f32, Shared> to = weights_ + k_.mad_lo(row_, weight_pitch(tile_), column_);
    for (std::uint32_t i = 0; i < kRows; ++i) {
      Value<f32> peak = scores[i][0].read();
      for (std::uint32_t j = 1; j < thread_keys(); ++j) peak.rebind(k_.max(peak, scores[i][j]));
      for (std::uint32_t distance = kColumns / 2; distance != 0; distance /= 2) {
        const Value<f32> other = k_.shfl_bfly(peak, distance);
        peak.rebind(k_.max(peak, other));
      }
      peak.rebind(k_.max(peak, peaks_[i]));
      // Both are -inf until a key counts.
      const Value<f32> safe = k_.selp(0.0f, peak, peak == -flash::kInf);
      const Value<f32> factor = exp2(peaks_[i] - safe, kit_.accuracy());
      peaks_[i] = peak;
      sums_[i] *= factor;
      for (std::uint32_t e = 0; e < p_.head_size / kColumns; ++e) output(i, e) *= factor;
      for (std::uint32_t j = 0; j < thread_keys(); ++j) {
        const Value<f32> weight = exp2(scores[i][j] - safe, kit_.accuracy());
        sums_[i] += weight;
        k_.st(to + (i * weight_pitch(tile_) + j * kColumns), weight);
      }
    }
  }

  [[nodiscard]] Var<f32>& output(std::uint32_t query, std::uint32_t element) {
    return outputs_[query * (p_.head_size / kColumns) + element];
  }

  void add_values() {
    const Ptr<f32, Shared> weights = weights_ + k_.mul_lo(row_, weight_pitch(tile_));
    const Ptr<f32, Shared> column = values_ + k_.mul_lo(column_, vector_);
    k_.for_(0u, tile_.keys, 4u, [&](Value<u32> key) {
      const Ptr<f32, Shared> of_weights = weights + key;
      const Ptr<f32, Shared> of_values = column + k_.mul_lo(key, head_pitch(p_));
      std::vector<std::array<Value<f32>, 4>> w;
      for (std::uint32_t i = 0; i < kRows; ++i) {
        w.push_back(k_.ld<4>(of_weights + i * weight_pitch(tile_)));
      }
      for (std::uint32_t j = 0; j < 4; ++j) {
        for (std::uint32_t c = 0; c < thread_vectors(); ++c) {
          add_vector(of_values + (j * head_pitch(p_) + c * kColumns * vector_), w, j, c);
        }
      }
    });
  }
  // Vector c of key j times the weights of each query.
  void add_vector(const Ptr<f32, Shared>& from, const std::vector<std::array<Value<f32>, 4>>& w,
                  std::uint32_t j, std::uint32_t c) {
    const Floats values = load_floats(k_, from.cast<b8>(), ElementType::f32, vector_);
    for (std::uint32_t i = 0; i < kRows; ++i) {
      for (std::uint32_t e = 0; e < vector_; ++e) {
        k_.fma_inplace(output(i, c * vector_ + e), w[i][j], values.full[e]);
      }
    }
  }

  void store() {
    const std::uint32_t element = bytes(p_.type);
    for (std::uint32_t i = 0; i < kRows; ++i) {
      Value<f32> sum = sums_[i].read();
      for (std::uint32_t distance = kColumns / 2; distance != 0; distance /= 2) {
        const Value<f32> other = k_.shfl_bfly(sum, distance);
        sum.rebind(sum + other);
      }
      const Value<u32> query = kit_.first() + row_ + i;
      const Pred exists = query < kit_.queries();
      k_.if_(query < kit_.all_queries(), [&] {
        const Ptr<b8> row = kit_.out_row(query);
        const Ptr<b8> to = row.offset_bytes(k_.mul_wide(column_, vector_ * element));
        for (std::uint32_t c = 0; c < thread_vectors(); ++c) {
          std::vector<Value<f32>> results;
          for (std::uint32_t e = 0; e < vector_; ++e) {
            const Value<f32> mean = kit_.quotient(output(i, c * vector_ + e).read(), sum);
            results.push_back(k_.selp(mean, 0.0f, exists));
          }
          store_floats(k_, to.offset_bytes(c * kColumns * vector_ * element), p_.type, results);
        }
      });
    }
  }

  KernelBuilder& k_;
  const FlashProblem& p_;
  const FlashTileShape& tile_;
  flash::Kit kit_;
  Value<u32> thread_, column_, row_;  ///< row: the thread's first query of the tile
  Ptr<f32, Shared> q_, keys_, values_, weights_;
  std::uint32_t vector_;  ///< elements that a thread loads together
  std::vector<flash::KeyRange> ranges_;
  std::vector<Var<f32>> peaks_, sums_, outputs_;
};

}  // namespace

const FlashTileShape& FlashAttention::shape() const noexcept {
  if (tile != FlashTile::Auto) return kFlashTiles[static_cast<std::size_t>(tile)];
  const auto* const fits = std::find_if(
      std::begin(kFlashTiles) + 1, std::end(kFlashTiles) - 1,
      [&](const FlashTileShape& t) { return bytes_of(problem, t) <= kAnySharedBytes; });
  return *fits;
}

std::uint32_t FlashAttention::shared_bytes() const noexcept { return bytes_of(problem, shape()); }

void check(const FlashAttention& kernel, const ptx::Target& target) {
  detail::check_flash(kernel.problem, kernel_name<FlashAttention>);
  if (kernel.shared_bytes() <= target.shared_per_block_opt_in) return;
  refuse_build(kernel_name<FlashAttention>, "target-lacks", &target,
               format_text("tile {} with head_size {} is {} B of shared memory; a block on {} may "
                           "have {} B: take a smaller tile, or auto",
                           kernel.shape().name, kernel.problem.head_size, kernel.shared_bytes(),
                           target.name, target.shared_per_block_opt_in));
}

BuiltKernel FlashAttention::build(const ptx::Target& target) const {
  check_parameters(*this);
  check(*this, target);
  KernelBuilder k(kernel_name<FlashAttention>, target.name);
  k.required_threads(threads());
  // Without a number ptxas 13 spills some tiles to have more blocks.
  k.min_blocks_per_sm(std::clamp(512 / threads() / (problem.head_size > 128 ? 2 : 1), 1u, 4u));
  k.pragma("nounroll");
  k.contract(Contract::Forbid);
  FlashEmitter(k, *this).emit();
  return k.build();
}

LaunchGeometry FlashAttention::geometry() const {
  const FlashProblem& p = problem;
  LaunchGeometry geometry =
      flash::grid_of(kernel_name<FlashAttention>, p, shape().queries, threads());
  geometry.dynamic_shared_bytes = shared_bytes();
  return geometry;
}

// A score is a chain over the head, with the query's factor; an output a chain over the keys that
// is scaled in each step; a sum of weights has a part of the chain and a tree of four steps.
void Describe<FlashAttention>::reference(const FlashAttention& spec, HostOperands& host) {
  const FlashProblem& p = spec.problem;
  const double exp2 =
      2 * math_bound("exp2", p.precise ? Accuracy::Precise : Accuracy::Approximate).ulp;
  const double steps = std::ceil(static_cast<double>(p.keys) / spec.shape().keys) + 1;
  detail::FlashRoundings roundings;
  roundings.score = p.head_size + 8;
  roundings.sum = 2 * (steps * (exp2 + 2) + exp2) + 2 * static_cast<double>(p.keys) + 12;
  detail::flash_reference(p, roundings, host);
}

}  // namespace ptxgen::inline v0
