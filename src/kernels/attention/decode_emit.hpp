// src/kernels/attention/decode_emit.hpp - the parts of attention_decode
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/attention/decode_layout.hpp"
#include "kernels/parts/packed_rows.hpp"
#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0::attention {

inline constexpr float kInf = std::numeric_limits<float>::infinity();

/// What all parts need while a kernel is built.
struct Kit {
  KernelBuilder& k;
  const AttentionDecode& spec;
  DecodeLayout layout;
  std::uint32_t heads;            ///< query heads of the block
  Value<u32> lane, warp;          ///< of the block
  Value<u32> team, lane_of_team;  ///< of the warp, of the team
  SharedArray<f32> outputs;       ///< of each warp and head: `head_floats`
  SharedArray<f32> peaks;         ///< of each warp and head: maximum and sum

  [[nodiscard]] Accuracy accuracy() const noexcept {
    return spec.precise ? Accuracy::Precise : Accuracy::Approximate;
  }
  /// 2 to the power of `x - peak`, and 0 where both are -inf: a state without positions.
  [[nodiscard]] Value<f32> power(const Value<f32>& x, const Value<f32>& peak) const;
};

/// The online softmax of a team for one query head, in units of log2: the largest score, the sum of
/// the powers, the sum of powers times values; of the latter each lane has its units.
struct HeadState {
  Var<f32> peak, sum;
  std::vector<Var<f32>> output;
};
using States = std::vector<HeadState>;

/// A variable where it is, without a copy; valid until it is written.
[[nodiscard]] inline Value<f32> view(const Var<f32>& variable) {
  return Value<f32>(variable.core(), variable.reg());
}

[[nodiscard]] States start_states(const Kit& kit);
/// Scales the state to a larger peak.
void raise(const Kit& kit, HeadState& state, const Value<f32>& peak);

/// Positions [begin, end) of a K/V head.
struct Span {
  Ptr<b8> k, v;
  Value<u32> begin, end;
};

/// The queries of the block's heads, times the factor that makes scores exponents of 2.
class Query {
 public:
  /// `from` is the first head of the group. With several heads per lane all threads of the block
  /// meet at a barrier.
  Query(const Kit& kit, const Ptr<b8>& from, const Value<f32>& factor);
  /// Unit i of the lane.
  [[nodiscard]] std::vector<Value<f32>> unit(std::uint32_t head, std::uint32_t i) const;

 private:
  void load_registers(const Ptr<b8>& from, const Value<f32>& factor);
  void load_shared(const Ptr<b8>& from, const Value<f32>& factor);
  void share_units(const Ptr<b8>& row, const Ptr<f32, Shared>& to, const Value<f32>& factor,
                   std::uint32_t first);

  const Kit& kit_;
  std::vector<std::vector<Value<f32>>> registers_;  ///< of each head and unit
  std::optional<Ptr<f32, Shared>> lane_start_;
};

/// Adds the span's positions to the states. `cap` is in units of log2, if there is one.
void accumulate(const Kit& kit, const Query& query, const Span& span,
                const std::optional<Value<f32>>& cap, States& states);

/// The parts of a K/V head of a row in the workspace.
struct Parts {
  Ptr<b8> first;
  Value<u32> count;
};
/// Merges the parts of all blocks: team t of the block those with numbers t, t + teams, ...
void accumulate_parts(const Kit& kit, const Parts& parts, States& states);

/// Merges the states of the warps' teams and writes them to shared memory. All threads of the block
/// meet at a barrier before `store_output` or `store_part`, which merge those of the warps.
void share_states(const Kit& kit, States& states);
/// What `share_states` left, normalised, as the output of the group at `out`.
void store_output(const Kit& kit, const Ptr<b8>& out);
/// The same unnormalised, as a part.
void store_part(const Kit& kit, const Ptr<b8>& part);

}  // namespace ptxgen::inline v0::attention
