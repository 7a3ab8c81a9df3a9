// src/emulator/lane/float.cpp - floating-point arithmetic of one lane
#include "emulator/lane/approximations.hpp"
#include "emulator/lane/lane_numerics.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using namespace numerics;
using ptx::Modifier;
using ptx::Op;
using ptx::Type;

/// The modifiers that the kernels below read.
struct Modes {
  Rounding rounding = Rounding::Nearest;
  bool ftz = false;
  bool sat = false;
  bool relu = false;
  bool nan = false;
  bool abs = false;
  bool xorsign = false;
};

Modes modes_of(const LaneOp& op) noexcept {
  return {rounding_of(op.rounding), op.ftz, op.sat, op.relu, op.nan, op.abs, op.xorsign};
}
bool plain(const LaneOp& op) noexcept {
  return rounding_of(op.rounding) == Rounding::Nearest && !op.ftz && !op.sat && !op.relu;
}

template <class F>
using Bits = typename F::Bits;

template <class F>
Bits<F> finished(Bits<F> result, const Modes& modes) noexcept {
  return rectified<F>(saturated<F>(flushed<F>(result, modes.ftz), modes.sat), modes.relu);
}

// Kernels: one element of one instruction. `of` takes as many operands as kOperands says.

struct Add {
  static constexpr int kOperands = 2;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a, Bits<F> b) noexcept {
    a = flushed<F>(a, modes.ftz);
    b = flushed<F>(b, modes.ftz);
    if constexpr (kHasHost<F>) {
      if (modes.rounding == Rounding::Nearest) return finished<F>(add_nearest<F>(a, b), modes);
    }
    return finished<F>(add<F>(a, b, modes.rounding), modes);
  }
};

struct Subtract {
  static constexpr int kOperands = 2;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a, Bits<F> b) noexcept {
    return Add::of<F>(modes, a, negated<F>(b));
  }
};

struct Multiply {
  static constexpr int kOperands = 2;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a, Bits<F> b) noexcept {
    a = flushed<F>(a, modes.ftz);
    b = flushed<F>(b, modes.ftz);
    if constexpr (kHasHost<F>) {
      if (modes.rounding == Rounding::Nearest) return finished<F>(multiply_nearest<F>(a, b), modes);
    }
    return finished<F>(multiply<F>(a, b, modes.rounding), modes);
  }
};

struct FusedMultiplyAdd {
  static constexpr int kOperands = 3;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a, Bits<F> b, Bits<F> c) noexcept {
    a = flushed<F>(a, modes.ftz);
    b = flushed<F>(b, modes.ftz);
    c = flushed<F>(c, modes.ftz);
    if constexpr (kHasHost<F>) {
      if (modes.rounding == Rounding::Nearest) {
        return finished<F>(fused_multiply_add_nearest<F>(a, b, c), modes);
      }
    }
    return finished<F>(fused_multiply_add<F>(a, b, c, modes.rounding), modes);
  }
};

struct FusedMultiplyAddInBounds {
  static constexpr int kOperands = 3;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a, Bits<F> b, Bits<F> c) noexcept {
    if (a == kOutOfBoundsNan || b == kOutOfBoundsNan || c == kOutOfBoundsNan) return 0;
    return FusedMultiplyAdd::of<F>(modes, a, b, c);
  }
};

struct Divide {
  static constexpr int kOperands = 2;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a, Bits<F> b) noexcept {
    a = flushed<F>(a, modes.ftz);
    b = flushed<F>(b, modes.ftz);
    if constexpr (kHasHost<F>) {
      if (modes.rounding == Rounding::Nearest) return finished<F>(divide_nearest<F>(a, b), modes);
    }
    return finished<F>(divide<F>(a, b, modes.rounding), modes);
  }
};

struct Reciprocal {
  static constexpr int kOperands = 1;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a) noexcept {
    return Divide::of<F>(modes, F::kOne, a);
  }
};

struct SquareRoot {
  static constexpr int kOperands = 1;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a) noexcept {
    a = flushed<F>(a, modes.ftz);
    if constexpr (kHasHost<F>) {
      if (modes.rounding == Rounding::Nearest) return square_root_nearest<F>(a);
    }
    return numerics::square_root<F>(a, modes.rounding);
  }
};

struct Absolute {
  static constexpr int kOperands = 1;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a) noexcept {
    return static_cast<Bits<F>>(flushed<F>(a, modes.ftz) & F::kMagnitude);
  }
};

struct Negate {
  static constexpr int kOperands = 1;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a) noexcept {
    return negated<F>(flushed<F>(a, modes.ftz));
  }
};

template <bool larger>
struct Extremum {
  static constexpr int kOperands = 2;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a, Bits<F> b) noexcept {
    a = flushed<F>(a, modes.ftz);
    b = flushed<F>(b, modes.ftz);
    const auto sign = static_cast<Bits<F>>((a ^ b) & F::kSign);
    if (modes.abs) {
      a = static_cast<Bits<F>>(a & F::kMagnitude);
      b = static_cast<Bits<F>>(b & F::kMagnitude);
    }
    const Bits<F> result = extremum<F>(a, b, larger, modes.nan);
    if (!modes.xorsign || is_nan<F>(result)) return result;
    return static_cast<Bits<F>>(result | sign);
  }
};

template <bool larger>
struct Extremum3 {
  static constexpr int kOperands = 3;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a, Bits<F> b, Bits<F> c) noexcept {
    return Extremum<larger>::template of<F>(modes, Extremum<larger>::template of<F>(modes, a, b),
                                            c);
  }
};

struct CopySign {
  static constexpr int kOperands = 2;
  template <class F>
  static Bits<F> of(const Modes&, Bits<F> a, Bits<F> b) noexcept {
    return static_cast<Bits<F>>((a & F::kSign) | (b & F::kMagnitude));
  }
};

struct PowerOfTwo {
  static constexpr int kOperands = 1;
  template <class F>
  static Bits<F> of(const Modes& modes, Bits<F> a) noexcept {
    return power_of_two_approximately<F>(a, modes.ftz);
  }
};

struct Tangent {
  static constexpr int kOperands = 1;
  template <class F>
  static Bits<F> of(const Modes&, Bits<F> a) noexcept {
    return tangent_approximately<F>(a);
  }
};

/// A kernel on all elements of the operands. `modes` are known at compile time for the commonest
/// form, to nearest and without other modifiers.
template <class Kernel, class F, int lanes, bool is_plain>
void run(const LaneOp& op, const u64* sources, u64* results) {
  const Modes modes = is_plain ? Modes{} : modes_of(op);
  u64 result = 0;
  for (int lane = 0; lane < lanes; ++lane) {
    const auto operand = [&](int index) { return element<F>(sources[index], lane); };
    Bits<F> value{};
    if constexpr (Kernel::kOperands == 1) {
      value = Kernel::template of<F>(modes, operand(0));
    } else if constexpr (Kernel::kOperands == 2) {
      value = Kernel::template of<F>(modes, operand(0), operand(1));
    } else {
      value = Kernel::template of<F>(modes, operand(0), operand(1), operand(2));
    }
    result |= u64{value} << (lane * F::kWidth % 64);
  }
  results[0] = result;
}

/// Arithmetic, with a function of its own for the plain form.
template <class Kernel>
LaneFunction arithmetic(const LaneOp& op) {
  return with_format(op.type, [&op]<class F, int lanes>() -> LaneFunction {
    return plain(op) ? &run<Kernel, F, lanes, true> : &run<Kernel, F, lanes, false>;
  });
}
template <class Kernel>
LaneFunction other(const LaneOp& op) {
  return with_format(
      op.type, []<class F, int lanes>() -> LaneFunction { return &run<Kernel, F, lanes, false>; });
}
/// Rows of f16 and bf16 alone.
template <class Kernel>
LaneFunction halves(const LaneOp& op) {
  return with_format(op.type, []<class F, int lanes>() -> LaneFunction {
    if constexpr (F::kWidth == 16) return &run<Kernel, F, lanes, false>;
    return nullptr;
  });
}

/// f32 arithmetic whose first operands (all but the last) have half the width.
template <class Kernel, class Half>
void run_mixed(const LaneOp& op, const u64* sources, u64* results) {
  const Modes modes = modes_of(op);
  const auto wide = [&](int index) { return convert<F32, Half>(element<Half>(sources[index])); };
  if constexpr (Kernel::kOperands == 2) {
    results[0] = Kernel::template of<F32>(modes, wide(0), element<F32>(sources[1]));
  } else {
    results[0] = Kernel::template of<F32>(modes, wide(0), wide(1), element<F32>(sources[2]));
  }
}
template <class Kernel>
LaneFunction mixed(const LaneOp& op) {
  return op.type2 == Type::f16 ? &run_mixed<Kernel, F16> : &run_mixed<Kernel, BF16>;
}

/// A unary approximation in f32.
template <u32 (*approximation)(u32, bool) noexcept>
void approximate(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = approximation(element<F32>(sources[0]), op.ftz);
}
void divide_f32_approximately(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = divide_approximately(element<F32>(sources[0]), element<F32>(sources[1]),
                                    op.mode == Modifier::full, op.ftz);
}
void tanh_f32(const LaneOp&, const u64* sources, u64* results) {
  results[0] = tangent_approximately(element<F32>(sources[0]));
}
void rcp_f64_approximately(const LaneOp&, const u64* sources, u64* results) {
  results[0] = reciprocal_approximately(sources[0]);
}
void rsqrt_f64(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = reciprocal_root_approximately(sources[0], op.ftz);
}

template <class F>
bool belongs(Bits<F> bits, Modifier word) noexcept {
  switch (word) {
    case Modifier::finite:
      return (bits & F::kMagnitude) < F::kInfinity;
    case Modifier::infinite:
      return is_infinite<F>(bits);
    case Modifier::number:
      return !is_nan<F>(bits);
    case Modifier::notanumber:
      return is_nan<F>(bits);
    case Modifier::subnormal:
      return is_subnormal<F>(bits);
    // Zero counts as normal.
    default:
      return (bits & F::kMagnitude) < F::kInfinity && !is_subnormal<F>(bits);
  }
}
template <class F>
void test_property(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = belongs<F>(element<F>(sources[0]), op.mode) ? 1 : 0;
}

LaneFunction approximation_function(const LaneOp& op) {
  switch (op.op) {
    case Op::div_f32_approx:
      return &divide_f32_approximately;
    case Op::rcp_f32_approx:
      return &approximate<&reciprocal_approximately>;
    case Op::sqrt_f32_approx:
      return &approximate<&square_root_approximately>;
    case Op::rsqrt_f32:
      return &approximate<&reciprocal_root_approximately>;
    case Op::sin:
      return &approximate<&sine_approximately>;
    case Op::cos:
      return &approximate<&cosine_approximately>;
    case Op::lg2:
      return &approximate<&logarithm_approximately>;
    case Op::ex2_f32:
      return &approximate<&power_of_two_approximately>;
    case Op::tanh_f32:
      return &tanh_f32;
    case Op::ex2_f16:
    case Op::ex2_bf16:
      return halves<PowerOfTwo>(op);
    case Op::tanh_f16:
      return halves<Tangent>(op);
    case Op::rcp_f64_approx:
      return &rcp_f64_approximately;
    case Op::rsqrt_f64:
      return &rsqrt_f64;
    default:
      return nullptr;
  }
}

LaneFunction sign_and_order_function(const LaneOp& op) {
  switch (op.op) {
    case Op::abs_f32:
    case Op::abs_f64:
    case Op::abs_f16:
    case Op::abs_bf16:
      return other<Absolute>(op);
    case Op::neg_f32:
    case Op::neg_f64:
    case Op::neg_f16:
    case Op::neg_bf16:
      return other<Negate>(op);
    case Op::min_f32:
    case Op::min_f32_xorsign:
    case Op::min_f64:
    case Op::min_f16:
    case Op::min_f16_xorsign:
    case Op::min_bf16:
    case Op::min_bf16_xorsign:
      return other<Extremum<false>>(op);
    case Op::max_f32:
    case Op::max_f32_xorsign:
    case Op::max_f64:
    case Op::max_f16:
    case Op::max_f16_xorsign:
    case Op::max_bf16:
    case Op::max_bf16_xorsign:
      return other<Extremum<true>>(op);
    case Op::min3_f32:
      return other<Extremum3<false>>(op);
    case Op::max3_f32:
      return other<Extremum3<true>>(op);
    case Op::copysign:
      return other<CopySign>(op);
    case Op::testp:
      return op.type == Type::f64 ? &test_property<F64> : &test_property<F32>;
    default:
      return nullptr;
  }
}

}  // namespace

LaneFunction float_function(const LaneOp& op) {
  switch (op.op) {
    case Op::add_f32:
    case Op::add_f64:
    case Op::add_f32x2:
    case Op::add_f16:
    case Op::add_bf16:
      return arithmetic<Add>(op);
    case Op::add_mixed:
      return mixed<Add>(op);
    case Op::sub_f32:
    case Op::sub_f64:
    case Op::sub_f32x2:
    case Op::sub_f16:
    case Op::sub_bf16:
      return arithmetic<Subtract>(op);
    case Op::sub_mixed:
      return mixed<Subtract>(op);
    case Op::mul_f32:
    case Op::mul_f64:
    case Op::mul_f32x2:
    case Op::mul_f16:
    case Op::mul_bf16:
      return arithmetic<Multiply>(op);
    case Op::fma_f32:
    case Op::fma_f64:
    case Op::fma_f32x2:
    case Op::fma_f16:
    case Op::fma_f16_relu:
    case Op::fma_bf16:
    case Op::mad_f32:
    case Op::mad_f64:
      return arithmetic<FusedMultiplyAdd>(op);
    case Op::fma_oob:
      return halves<FusedMultiplyAddInBounds>(op);
    case Op::fma_mixed:
      return mixed<FusedMultiplyAdd>(op);
    case Op::div_f32:
    case Op::div_f64:
      return arithmetic<Divide>(op);
    case Op::rcp_f32:
    case Op::rcp_f64:
      return arithmetic<Reciprocal>(op);
    case Op::sqrt_f32:
    case Op::sqrt_f64:
      return arithmetic<SquareRoot>(op);
    default:
      break;
  }
  if (const LaneFunction found = sign_and_order_function(op)) return found;
  return approximation_function(op);
}

}  // namespace ptxgen::inline v0::emulator
