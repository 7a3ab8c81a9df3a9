// src/kernels/attention/flash_rows.hpp - the online softmax of rows in the places of accumulators
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "kernels/attention/flash_emit.hpp"
#include "kernels/parts/words.hpp"
#include "ptxgen/builder/math.hpp"
#include "ptxgen/builder/matrix.hpp"

namespace ptxgen::inline v0::flash {

/// Two values rounded to E, by one instruction or (`converts_two` false) by two.
template <class E>
[[nodiscard]] Value<typename detail::FragmentRegister<E>::type> rounded_pair(
    KernelBuilder& k, const Value<f32>& low, const Value<f32>& high, bool converts_two = true) {
  using Pair = typename detail::FragmentRegister<E>::type;
  if (converts_two) return k.template cvt2<Pair>(high, low, Convert{Rounding::rn});
  const Value<E> lower = k.template cvt<E>(low, Rounding::rn);
  return k.template pack<Pair>(lower, k.template cvt<E>(high, Rounding::rn));
}

/// Rows that a thread has of its warp's queries, in the places of sums of `mma.sync` and `wgmma`:
/// row r is query lane / 4 + 8 r from the warp's first on; of each 8 columns the thread has 2 (lane
/// % 4) and the next one. Scores and outputs are f32 variables; weights have the type E of the
/// cache.
template <class E>
class FragmentRows {
 public:
  using Pair = typename detail::FragmentRegister<E>::type;
  /// Column j of a row of scores: key 8 (j / 2) + 2 (lane % 4) + j % 2.
  using ScoreOf = std::function<Var<f32>(std::uint32_t row, std::uint32_t j)>;
  /// Element 8 n + 2 (lane % 4) + e of a row.
  using OutputOf = std::function<Var<f32>(std::uint32_t row, std::uint32_t n, std::uint32_t e)>;

  struct Shape {
    std::uint32_t rows = 0;    ///< of a thread
    std::uint32_t eights = 0;  ///< keys / 8
    bool converts_two = true;  ///< the target rounds two values at once
  };

  FragmentRows(const Kit& kit, const Shape& shape, const Value<u32>& lane,
               const Value<u32>& warp_row, const Value<f32>& factor)
      : k_(kit.k), kit_(kit), shape_(shape), lane_(lane), warp_row_(warp_row), factor_(factor) {}

  void start() {
    for (std::uint32_t i = 0; i < shape_.rows; ++i) {
      peaks_.push_back(k_.var<f32>(-kInf));
      sums_.push_back(k_.var<f32>(0.0f));
    }
  }

  [[nodiscard]] Value<u32> query_of(std::uint32_t row) const {
    const Value<u32> first = kit_.first() + warp_row_;
    return first + (lane_ >> 2u) + 8 * row;
  }

  /// -inf for keys outside of their query's range. Ranges are computed anew: registers are scarcer
  /// than these steps are frequent.
  void mask(const Var<u32>& base, const ScoreOf& score) const {
    const Value<u32> first = base + ((lane_ & 3u) << 1u);
    for (std::uint32_t row = 0; row < shape_.rows; ++row) {
      const KeyRange range = kit_.range(query_of(row));
      const Value<u32> count = range.end - range.begin;
      const Value<u32> before = first - range.begin;
      for (std::uint32_t j = 0; j < 2 * shape_.eights; ++j) {
        const Pred outside = before + (j / 2 * 8 + j % 2) >= count;
        Var<f32> of_key = score(row, j);
        k_.guarded(outside, [&] { of_key = -kInf; });
      }
    }
  }

  /// Raises the states to the step's largest scores, and scales what was summed. Weights of pairs
  /// of keys, `eights` for each row.
  [[nodiscard]] std::vector<Value<Pair>> weigh(const ScoreOf& score, const OutputOf& output) {
    std::vector<Value<f32>> peaks;
    std::optional<Pred> rises;
    for (std::uint32_t row = 0; row < shape_.rows; ++row) {
      peaks.push_back(peak_of(score, row));
      const Pred higher = peaks[row] > peaks_[row];
      rises.emplace(rises ? *rises | higher : higher);
    }
    std::vector<Value<f32>> negated;
    for (std::uint32_t row = 0; row < shape_.rows; ++row) {
      // Both are -inf until a key counts.
      const Pred none = peaks[row] == -kInf;
      negated.push_back(k_.selp(0.0f, k_.neg(peaks[row]), none));
    }
    // A factor of 1 changes nothing, so the warp skips it when no maximum rises.
    k_.if_(k_.vote_any(*rises), [&] {
      for (std::uint32_t row = 0; row < shape_.rows; ++row) {
        raise(row, peaks[row], negated[row], output);
      }
    });
    std::vector<Value<Pair>> pairs;
    for (std::uint32_t row = 0; row < shape_.rows; ++row) {
      for (std::uint32_t j = 0; j < shape_.eights; ++j) {
        const Value<f32> low = weight(score(row, 2 * j), negated[row]);
        const Value<f32> high = weight(score(row, 2 * j + 1), negated[row]);
        sums_[row] += low;
        sums_[row] += high;
        pairs.push_back(rounded_pair<E>(k_, low, high, shape_.converts_two));
      }
    }
    return pairs;
  }

  /// Vectors of 16 bytes of a thread's state.
  [[nodiscard]] std::uint32_t state_vectors() const {
    return shape_.rows * (2 + kit_.problem.head_size / 4) / 4;
  }
  /// Stores the state: a thread's vectors are `pitch` bytes apart.
  void save(const Ptr<b8>& to, std::uint32_t pitch, const OutputOf& output) const {
    const std::vector<Var<f32>> all = state(output);
    for (std::uint32_t i = 0; i < state_vectors(); ++i) {
      const auto value = [&](std::uint32_t e) { return all[4 * i + e].read(); };
      k_.st(to.offset_bytes(i * pitch).template cast<f32>(),
            std::array{value(0), value(1), value(2), value(3)});
    }
  }
  /// The state of no keys.
  void restart(const OutputOf& output) const {
    std::vector<Var<f32>> all = state(output);
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i < shape_.rows ? -kInf : 0.0f;
  }
  /// Adds a state that another block has saved, read past the L1, which may have stale data.
  void merge(const Ptr<b8>& from, std::uint32_t pitch, const OutputOf& output) const {
    const std::uint32_t rows = shape_.rows;
    std::vector<Var<f32>> all = state(output);
    const auto vector = [&](std::uint32_t i) {
      return k_.template ld<4>(from.offset_bytes(i * pitch).template cast<f32>(),
                               Load{.cache = Cache::cg});
    };
    std::vector<Value<f32>> ends;  // maxima, then sums
    for (std::uint32_t i = 0; i < rows / 2; ++i) {
      for (const Value<f32>& value : vector(i)) ends.push_back(value);
    }
    std::vector<Value<f32>> own, theirs;  // factors
    for (std::uint32_t row = 0; row < rows; ++row) {
      const Value<f32> peak = k_.max(all[row], ends[row]);
      const Pred none = peak == -kInf;
      const Value<f32> negated = k_.selp(0.0f, k_.neg(peak), none);
      own.push_back(exp2(all[row] + negated, kit_.accuracy()));
      theirs.push_back(exp2(ends[row] + negated, kit_.accuracy()));
      all[row] = peak;
      all[rows + row] = k_.fma(theirs[row], ends[rows + row], own[row] * all[rows + row]);
    }
    for (std::uint32_t i = rows / 2; i < state_vectors(); ++i) {
      const auto four = vector(i);
      for (std::uint32_t e = 0; e < 4; ++e) {
        Var<f32>& value = all[4 * i + e];
        const std::uint32_t row = (4 * i + e - 2 * rows) / (kit_.problem.head_size / 4);
        value = k_.fma(theirs[row], four[e], own[row] * value);
      }
    }
  }

  /// The quotients, or 0 for queries that the row does not have.
  void store(const OutputOf& output) const {
    const std::uint32_t element = bytes(kit_.problem.type);
    const Value<u64> column = k_.mul_wide(lane_ & 3u, 2 * element);
    for (std::uint32_t row = 0; row < shape_.rows; ++row) {
      Value<f32> sum = sums_[row].read();
      for (const std::uint32_t distance : {1u, 2u}) {
        const Value<f32> other = k_.shfl_bfly(sum, distance);
        sum.rebind(sum + other);
      }
      const Value<u32> query = query_of(row);
      const Pred exists = query < kit_.queries();
      k_.if_(query < kit_.all_queries(), [&] {
        const Ptr<b8> to = kit_.out_row(query).offset_bytes(column);
        for (std::uint32_t n = 0; n < kit_.problem.head_size / 8; ++n) {
          std::vector<Value<f32>> results;
          for (std::uint32_t e = 0; e < 2; ++e) {
            const Value<f32> mean = kit_.quotient(output(row, n, e).read(), sum);
            results.push_back(k_.selp(mean, 0.0f, exists));
          }
          store_floats(k_, to.offset_bytes(8 * n * element), kit_.problem.type, results);
        }
      });
    }
  }

 private:
  // Maxima, sums of weights, then outputs.
  [[nodiscard]] std::vector<Var<f32>> state(const OutputOf& output) const {
    std::vector<Var<f32>> all;
    for (const Var<f32>& peak : peaks_) all.emplace_back(peak.core(), peak.reg());
    for (const Var<f32>& sum : sums_) all.emplace_back(sum.core(), sum.reg());
    for (std::uint32_t row = 0; row < shape_.rows; ++row) {
      for (std::uint32_t n = 0; n < kit_.problem.head_size / 8; ++n) {
        for (std::uint32_t e = 0; e < 2; ++e) all.push_back(output(row, n, e));
      }
    }
    return all;
  }
  // The larger of the state's maximum and the step's, in exponents of 2. The factor is positive.
  [[nodiscard]] Value<f32> peak_of(const ScoreOf& score, std::uint32_t row) const {
    Value<f32> peak = k_.max(score(row, 0), score(row, 1));
    for (std::uint32_t j = 2; j < 2 * shape_.eights; ++j) {
      peak.rebind(k_.max(peak, score(row, j)));
    }
    for (const std::uint32_t distance : {1u, 2u}) {
      const Value<f32> other = k_.shfl_bfly(peak, distance);
      peak.rebind(k_.max(peak, other));
    }
    return k_.max(peak * factor_, peaks_[row]);
  }
  void raise(std::uint32_t row, const Value<f32>& peak, const Value<f32>& negated,
             const OutputOf& output) {
    const Value<f32> factor = exp2(peaks_[row] + negated, kit_.accuracy());
    peaks_[row] = peak;
    sums_[row] *= factor;
    for (std::uint32_t n = 0; n < kit_.problem.head_size / 8; ++n) {
      for (std::uint32_t e = 0; e < 2; ++e) output(row, n, e) *= factor;
    }
  }
  [[nodiscard]] Value<f32> weight(const Var<f32>& score, const Value<f32>& negated) const {
    return exp2(k_.fma(score, factor_, negated), kit_.accuracy());
  }

  KernelBuilder& k_;
  const Kit& kit_;
  Shape shape_;
  Value<u32> lane_, warp_row_;  ///< warp_row: the warp's first query of the tile
  Value<f32> factor_;
  std::vector<Var<f32>> peaks_, sums_;
};

}  // namespace ptxgen::inline v0::flash
