// src/emulator/lane/comparison.cpp - floating-point setp, set, slct of one lane
#include "emulator/lane/lane_numerics.hpp"
#include "ptx/semantics/compare.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using namespace numerics;
using ptx::Modifier;
using ptx::Op;

/// Element `element` compared. A third source is the predicate that the result is combined with.
template <class F>
bool outcome(const LaneOp& op, const u64* sources, int element, bool opposite) noexcept {
  const Ordering ordering =
      compared<F>(flushed<F>(emulator::element<F>(sources[0], element), op.ftz),
                  flushed<F>(emulator::element<F>(sources[1], element), op.ftz));
  const bool value = ptx::holds(op.comparison, ordering) != opposite;
  return op.boolean == Modifier::none ? value : ptx::combined(op.boolean, value, sources[2] != 0);
}

/// Two destinations: of the two elements, or the comparison and its opposite.
template <class F, int lanes>
void set_predicates(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = outcome<F>(op, sources, 0, false) ? 1 : 0;
  if (op.result_count < 2) return;
  constexpr bool kPacked = lanes == 2;
  results[1] = outcome<F>(op, sources, kPacked ? 1 : 0, !kPacked) ? 1 : 0;
}
template <class F>
void set_predicate(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = outcome<F>(op, sources, 0, false) ? 1 : 0;
}

template <class F, int lanes>
void set_value(const LaneOp& op, const u64* sources, u64* results) {
  const u64 value = ptx::set_true(op.type);
  if constexpr (lanes == 1) {
    results[0] = outcome<F>(op, sources, 0, false) ? value : 0;
  } else {
    const bool low = outcome<F>(op, sources, 0, false);
    const bool high = outcome<F>(op, sources, 1, false);
    results[0] = (low ? value & 0xffff : 0) | (high ? (value & 0xffff) << 16 : 0);
  }
}

void select_by_float(const LaneOp& op, const u64* sources, u64* results) {
  const Ordering ordering = compared<F32>(flushed<F32>(element<F32>(sources[2]), op.ftz), 0);
  results[0] = ptx::holds(Modifier::ge, ordering) ? sources[0] : sources[1];
}

}  // namespace

LaneFunction float_comparison_function(const LaneOp& op) {
  switch (op.op) {
    case Op::setp_f32:
    case Op::setp_f32_bool:
    case Op::setp_f64:
    case Op::setp_f64_bool:
    case Op::setp_f16x2:
    case Op::setp_f16x2_bool:
    case Op::setp_bf16x2:
    case Op::setp_bf16x2_bool:
      return with_format(
          op.type, []<class F, int lanes>() -> LaneFunction { return &set_predicates<F, lanes>; });
    case Op::setp_f16:
    case Op::setp_f16_bool:
    case Op::setp_bf16:
    case Op::setp_bf16_bool:
      return with_format(op.type,
                         []<class F, int lanes>() -> LaneFunction { return &set_predicate<F>; });
    case Op::set_f32:
    case Op::set_f32_bool:
    case Op::set_f64:
    case Op::set_f64_bool:
    case Op::set_f16_from_f32:
    case Op::set_f16_from_f32_bool:
    case Op::set_bf16_from_f32:
    case Op::set_bf16_from_f32_bool:
    case Op::set_f16_from_f64:
    case Op::set_f16_from_f64_bool:
    case Op::set_f16:
    case Op::set_f16_bool:
    case Op::set_bf16:
    case Op::set_bf16_bool:
    case Op::set_f16x2:
    case Op::set_f16x2_bool:
    case Op::set_bf16x2:
    case Op::set_bf16x2_bool:
      return with_format(op.type2,
                         []<class F, int lanes>() -> LaneFunction { return &set_value<F, lanes>; });
    case Op::slct_f32:
      return &select_by_float;
    default:
      return nullptr;
  }
}

}  // namespace ptxgen::inline v0::emulator
