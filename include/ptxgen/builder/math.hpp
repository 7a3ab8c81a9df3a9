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
/// within `ulp` units in the last place of the exact result, or `absolute`.
struct MathBound {
  std::string_view function;
  Accuracy accuracy;
  double low, high;  ///< of the arguments that it holds for; beyond them results are 0, 1 or inf
  double ulp;
  double absolute;
};

/// One row for each function and form; tests and the bounds of kernels take theirs from here.
/// Results below the smallest normal number may be one more smallest number away. The approximate
/// forms follow from the errors that the PTX ISA gives for the instructions: `ex2.approx` 2 ulp,
/// and the product x * log2(e), whose rounding error grows with x.
inline constexpr MathBound kMathBounds[] = {
    {"exp", Accuracy::Precise, -104, 88.72, 1, 1.5e-45},
    {"exp", Accuracy::Approximate, -87, 88.72, 64, 0},
    {"sigmoid", Accuracy::Precise, -87, 104, 2.5, 1e-44},
    {"sigmoid", Accuracy::Approximate, -86, 104, 64, 1e-37},
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

/// 1 / (1 + exp(-x)). sigmoid(-inf) is 0, sigmoid(inf) 1, sigmoid(NaN) NaN. Precise: the precise
/// exp and `div.rn`; approximate: `ex2.approx` and `rcp.approx`.
[[nodiscard]] Value<f32> sigmoid(const Value<f32>& x, Accuracy accuracy,
                                 SourceLocation at = SourceLocation::current());

}  // namespace ptxgen::inline v0
