// ptxgen/builder/math.hpp - elementary functions of f32, with documented errors
#pragma once

#include <cstdint>
#include <string_view>

#include "ptxgen/builder/kernel_builder.hpp"

namespace ptxgen::inline v0 {

/// How a function is computed. There is no default: a caller chooses.
enum class Accuracy : std::uint8_t {
  Precise,      ///< range reduction and polynomial, as kMathBounds says
  Approximate,  ///< the unit for special functions (`ex2.approx`, `rcp.approx`), a few instructions
};

/// The largest error of a function that the tests have found or allow, against fp64. An error is
/// within `ulp` units in the last place of the exact result, plus `absolute`.
struct MathBound {
  std::string_view function;
  Accuracy accuracy;
  double low, high;  ///< of the arguments that it holds for
  double ulp;
  double absolute;
};

/// One row for each function and form; tests, docs/accuracy.md and the bounds of kernels take
/// theirs from here. Beyond `low` and `high` the precise forms are 0, 1 or inf as the exact
/// results are; the approximate sine and cosine have no bound there. Results below the smallest
/// normal number may be one more smallest number away. The approximate forms follow from the
/// errors that the PTX ISA gives for the instructions: `ex2.approx` and `lg2.approx` 2^-22,
/// `tanh.approx` 2^-11, `sin.approx` and `cos.approx` 2^-20.5; and from the product x * log2(e),
/// whose rounding error grows with x.
inline constexpr MathBound kMathBounds[] = {
    {"exp", Accuracy::Precise, -104, 88.72, 1, 1.5e-45},
    {"exp", Accuracy::Approximate, -87, 88.72, 68, 0},
    {"exp2", Accuracy::Precise, -150, 127.99, 1, 1.5e-45},
    {"exp2", Accuracy::Approximate, -126, 127.99, 5, 0},
    {"log", Accuracy::Precise, 1.5e-45, 3.4028234e38, 1.5, 0},
    {"log", Accuracy::Approximate, 1.2e-38, 3.4028234e38, 7, 0x1p-22},
    {"log2", Accuracy::Precise, 1.5e-45, 3.4028234e38, 2, 0},
    {"log2", Accuracy::Approximate, 1.2e-38, 3.4028234e38, 5, 0x1p-22},
    {"sigmoid", Accuracy::Precise, -87, 104, 2.5, 1e-44},
    {"sigmoid", Accuracy::Approximate, -86, 104, 64, 1e-37},
    {"tanh", Accuracy::Precise, -3.4028234e38, 3.4028234e38, 2, 1.5e-45},
    {"tanh", Accuracy::Approximate, -3.4028234e38, 3.4028234e38, 8193, 1.5e-45},
    {"erf", Accuracy::Precise, -3.4028234e38, 3.4028234e38, 1.5, 1.5e-45},
    {"erf", Accuracy::Approximate, -3.4028234e38, 3.4028234e38, 5, 1.5e-45},
    {"sin", Accuracy::Precise, -3.4028234e38, 3.4028234e38, 3, 1.5e-45},
    {"sin", Accuracy::Approximate, -0x1p17, 0x1p17, 1, 0x1p-20},
    {"cos", Accuracy::Precise, -3.4028234e38, 3.4028234e38, 3, 1.5e-45},
    {"cos", Accuracy::Approximate, -0x1p17, 0x1p17, 1, 0x1p-20},
};
/// The row of that function and form. Throws `Error` (Stage::Build, "no-function").
[[nodiscard]] const MathBound& math_bound(std::string_view function, Accuracy accuracy);

/// e to the power of x. exp(-inf) is 0, exp(inf) inf, exp(NaN) NaN.
///
/// Precise: x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts so that the products are exact
/// enough; the Taylor polynomial of degree 7 (its next term is below 2^-27); 2^n in two factors, so
/// that results below the smallest normal number are right too. Approximate: `ex2.approx`.
[[nodiscard]] Value<f32> exp(const Value<f32>& x, Accuracy accuracy,
                             SourceLocation at = SourceLocation::current());
/// 2 to the power of x; as `exp`, and exact for integers.
[[nodiscard]] Value<f32> exp2(const Value<f32>& x, Accuracy accuracy,
                              SourceLocation at = SourceLocation::current());

/// The natural logarithm. log(0) is -inf, log(inf) inf, NaN for negative numbers and NaN.
///
/// Precise: x = 2^n * m with m in [2/3, 4/3), a minimax polynomial of degree 8 for ln(m), ln 2 in
/// two parts. Approximate: `lg2.approx`.
[[nodiscard]] Value<f32> log(const Value<f32>& x, Accuracy accuracy,
                             SourceLocation at = SourceLocation::current());
/// The logarithm to base 2; as `log`. Precise: exact for powers of 2.
[[nodiscard]] Value<f32> log2(const Value<f32>& x, Accuracy accuracy,
                              SourceLocation at = SourceLocation::current());

/// 1 / (1 + exp(-x)). sigmoid(-inf) is 0, sigmoid(inf) 1, sigmoid(NaN) NaN. Precise: the precise
/// exp and `div.rn`; approximate: `ex2.approx` and `rcp.approx`.
[[nodiscard]] Value<f32> sigmoid(const Value<f32>& x, Accuracy accuracy,
                                 SourceLocation at = SourceLocation::current());
/// The hyperbolic tangent. Precise: a minimax polynomial up to 0.6, 1 - 2 / (exp(2 |x|) + 1) from
/// there. Approximate: `tanh.approx` (sm_75 and later), whose relative error is up to 2^-11.
[[nodiscard]] Value<f32> tanh(const Value<f32>& x, Accuracy accuracy,
                              SourceLocation at = SourceLocation::current());
/// The error function. Minimax polynomials: of erf up to 1, of ln(1 - erf) from there, with an exp
/// of that accuracy.
[[nodiscard]] Value<f32> erf(const Value<f32>& x, Accuracy accuracy,
                             SourceLocation at = SourceLocation::current());

/// Sine and cosine of one angle.
struct SinCos {
  Value<f32> sin, cos;
};
/// Both at once: one range reduction. Angles are radians; NaN for inf and NaN. The sine of a zero
/// is that zero, its cosine 1.
///
/// Precise: right for every f32. Below 2^17 pi / 2 is subtracted in three parts (Cody and Waite),
/// beyond it in a branch 96 bits of 2 / pi are multiplied as integers (Payne and Hanek); minimax
/// polynomials of degree 7 and 8. Approximate: full periods are subtracted, then `sin.approx` and
/// `cos.approx`; the error is absolute.
[[nodiscard]] SinCos sincos(const Value<f32>& x, Accuracy accuracy,
                            SourceLocation at = SourceLocation::current());
[[nodiscard]] Value<f32> sin(const Value<f32>& x, Accuracy accuracy,
                             SourceLocation at = SourceLocation::current());
[[nodiscard]] Value<f32> cos(const Value<f32>& x, Accuracy accuracy,
                             SourceLocation at = SourceLocation::current());

}  // namespace ptxgen::inline v0
