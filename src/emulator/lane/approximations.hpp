// src/emulator/lane/approximations.hpp - the .approx and .full instructions, and their error bounds
//
// The ISA gives only bounds; the emulator computes in double and rounds once: the
// results are as accurate as the host's libm, and may differ from a GPU's within the bound. Special
// values, subnormals and .ftz are as documented.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/lane/numerics.hpp"
#include "ptxgen/ptx/ops.hpp"

namespace ptxgen::inline v0::emulator {

enum class ErrorMeasure : std::uint8_t { Ulp, Relative, Absolute };

/// The maximum error of a result, for finite a with min <= |a| <= max.
struct ApproximationBound {
  ptx::Op op;
  ptx::Type type;
  ErrorMeasure measure;
  double bound;
  double min = 0;
  double max = 0x1.fffffffffffffp1023;
};

/// Bounds of the PTX ISA 9.0. Rows that occur twice have different bounds in different ranges. For
/// results that are subnormal a relative bound means one unit in the last place at most. Two rows
/// of f64 have no bound in the ISA; theirs are the emulator's.
inline constexpr std::array kApproximationBounds{
    // f32; div: 2 ulp for 2^-126 <= |b| <= 2^126 (.full: all b)
    ApproximationBound{ptx::Op::div_f32_approx, ptx::Type::f32, ErrorMeasure::Ulp, 2},
    ApproximationBound{ptx::Op::rcp_f32_approx, ptx::Type::f32, ErrorMeasure::Ulp, 1},
    ApproximationBound{ptx::Op::sqrt_f32_approx, ptx::Type::f32, ErrorMeasure::Relative, 0x1p-23},
    ApproximationBound{ptx::Op::rsqrt_f32, ptx::Type::f32, ErrorMeasure::Relative,
                       0x1.125fbp-23},  // 2^-22.9
    ApproximationBound{ptx::Op::sin, ptx::Type::f32, ErrorMeasure::Absolute, 0x1.6a09ep-21, 0,
                       6.2831},  // 2^-20.5 in [-2 pi, 2 pi]
    ApproximationBound{ptx::Op::sin, ptx::Type::f32, ErrorMeasure::Absolute, 0x1.3b2c4p-15, 6.2831,
                       314.15},  // 2^-14.7 in [-100 pi, 100 pi]
    ApproximationBound{ptx::Op::cos, ptx::Type::f32, ErrorMeasure::Absolute, 0x1.6a09ep-21, 0,
                       6.2831},
    ApproximationBound{ptx::Op::cos, ptx::Type::f32, ErrorMeasure::Absolute, 0x1.3b2c4p-15, 6.2831,
                       314.15},
    ApproximationBound{ptx::Op::lg2, ptx::Type::f32, ErrorMeasure::Absolute, 0x1p-22, 0.5, 2},
    ApproximationBound{ptx::Op::lg2, ptx::Type::f32, ErrorMeasure::Relative, 0x1p-22, 0, 0.5},
    ApproximationBound{ptx::Op::lg2, ptx::Type::f32, ErrorMeasure::Relative, 0x1p-22, 2},
    ApproximationBound{ptx::Op::ex2_f32, ptx::Type::f32, ErrorMeasure::Relative, 0x1p-22},
    ApproximationBound{ptx::Op::tanh_f32, ptx::Type::f32, ErrorMeasure::Relative, 0x1p-11},
    // f16, bf16
    ApproximationBound{ptx::Op::ex2_f16, ptx::Type::f16, ErrorMeasure::Relative,
                       0x1.125fbp-10},  // 2^-9.9
    ApproximationBound{ptx::Op::ex2_bf16, ptx::Type::bf16, ErrorMeasure::Relative, 0x1p-7},
    ApproximationBound{ptx::Op::tanh_f16, ptx::Type::f16, ErrorMeasure::Absolute,
                       0x1.02513p-11},  // 2^-10.987
    ApproximationBound{ptx::Op::tanh_f16, ptx::Type::bf16, ErrorMeasure::Absolute, 0x1p-8},
    // f64; rcp and rsqrt.ftz look at the upper 32 bits alone, and the lower ones become 0
    ApproximationBound{ptx::Op::rcp_f64_approx, ptx::Type::f64, ErrorMeasure::Relative, 0x1p-20},
    ApproximationBound{ptx::Op::rsqrt_f64, ptx::Type::f64, ErrorMeasure::Relative, 0x1p-51},
};

namespace numerics {

// All take and return bits; `ftz` flushes subnormal operands and results to zero of their sign.

/// a / b. Not `full`: 0 for 2^126 < |b| < 2^128, or NaN if a is infinite.
[[nodiscard]] u32 divide_approximately(u32 a, u32 b, bool full, bool ftz) noexcept;
[[nodiscard]] u32 reciprocal_approximately(u32 a, bool ftz) noexcept;
[[nodiscard]] u32 square_root_approximately(u32 a, bool ftz) noexcept;
[[nodiscard]] u32 reciprocal_root_approximately(u32 a, bool ftz) noexcept;
[[nodiscard]] u32 sine_approximately(u32 a, bool ftz) noexcept;
[[nodiscard]] u32 cosine_approximately(u32 a, bool ftz) noexcept;
[[nodiscard]] u32 logarithm_approximately(u32 a, bool ftz) noexcept;
[[nodiscard]] u32 power_of_two_approximately(u32 a, bool ftz) noexcept;
[[nodiscard]] u32 tangent_approximately(u32 a) noexcept;

/// rcp.approx.ftz.f64
[[nodiscard]] u64 reciprocal_approximately(u64 a) noexcept;
/// rsqrt.approx.f64: with `ftz` on the upper 32 bits alone, as rcp.
[[nodiscard]] u64 reciprocal_root_approximately(u64 a, bool ftz) noexcept;

/// 2^a and tanh a for F16 and BF16.
template <class F>
[[nodiscard]] typename F::Bits power_of_two_approximately(typename F::Bits a, bool ftz) noexcept {
  const double x = as_host<F64>(convert<F64, F>(flushed<F>(a, ftz)));
  return flushed<F>(convert<F, F64>(as_bits<F64>(std::exp2(x))), ftz);
}
template <class F>
[[nodiscard]] typename F::Bits tangent_approximately(typename F::Bits a) noexcept {
  return convert<F, F64>(as_bits<F64>(std::tanh(as_host<F64>(convert<F64, F>(a)))));
}

}  // namespace numerics
}  // namespace ptxgen::inline v0::emulator
