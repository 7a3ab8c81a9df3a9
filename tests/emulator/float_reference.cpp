// tests/emulator/float_reference.cpp - correctly rounded results by MPFR, troublesome operands
#include "float_reference.hpp"

#include <cmath>
#include <stdexcept>

#ifdef PTXGEN_HAVE_MPFR
#include <mpfr.h>
#endif

namespace ptxgen::test {

const char* suffix(Towards mode) {
  switch (mode) {
    case Towards::Nearest:
      return "rn";
    case Towards::Zero:
      return "rz";
    case Towards::Down:
      return "rm";
    default:
      return "rp";
  }
}

double value_of(const FloatFormat& format, std::uint64_t bits) {
  const std::uint64_t magnitude = bits & (format.sign() - 1);
  const double sign = (bits & format.sign()) != 0 ? -1.0 : 1.0;
  if (magnitude > format.infinity()) return std::nan("");
  if (magnitude == format.infinity()) return sign * HUGE_VAL;
  const auto exponent = static_cast<int>(magnitude >> format.fraction_bits);
  const std::uint64_t fraction = magnitude & (format.min_normal() - 1);
  if (exponent == 0) {
    return sign *
           std::ldexp(static_cast<double>(fraction), 1 - format.bias() - format.fraction_bits);
  }
  return sign * std::ldexp(static_cast<double>(fraction | format.min_normal()),
                           exponent - format.bias() - format.fraction_bits);
}

#ifdef PTXGEN_HAVE_MPFR

namespace {

/// A variable of the library, freed at the end.
class Variable {
 public:
  explicit Variable(int precision) { mpfr_init2(value_, precision); }
  ~Variable() { mpfr_clear(value_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  // The library's type is an array of one.
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

mpfr_rnd_t rounding(Towards mode) {
  switch (mode) {
    case Towards::Nearest:
      return MPFR_RNDN;
    case Towards::Zero:
      return MPFR_RNDZ;
    case Towards::Down:
      return MPFR_RNDD;
    default:
      return MPFR_RNDU;
  }
}

void load(mpfr_ptr x, const FloatFormat& format, std::uint64_t bits) {
  mpfr_set_d(x, value_of(format, bits), MPFR_RNDN);  // 64 bits of precision: exact
}

/// Rounds what was computed with the format's precision (with ternary value `inexact`) into the
/// format's range, and gives its bits.
std::uint64_t store(mpfr_ptr x, const FloatFormat& format, Towards mode, int inexact) {
  const mpfr_exp_t emin = mpfr_get_emin();
  const mpfr_exp_t emax = mpfr_get_emax();
  // The library's significands are in [1/2, 1).
  mpfr_set_emin(2 - format.bias() - format.fraction_bits);
  mpfr_set_emax(format.bias() + 1);
  inexact = mpfr_check_range(x, inexact, rounding(mode));
  mpfr_subnormalize(x, inexact, rounding(mode));
  mpfr_set_emin(emin);
  mpfr_set_emax(emax);

  if (mpfr_nan_p(x)) return format.nan;
  const std::uint64_t sign = mpfr_signbit(x) != 0 ? format.sign() : 0;
  if (mpfr_inf_p(x)) return sign | format.infinity();
  if (mpfr_zero_p(x)) return sign;
  mpfr_abs(x, x, MPFR_RNDN);
  const long min_exponent = 1 - format.bias();
  const long exponent = mpfr_get_exp(x) - 1;
  const long scale = std::max(exponent, min_exponent);
  mpfr_mul_2si(x, x, format.fraction_bits - scale, MPFR_RNDN);
  const std::uint64_t integer = mpfr_get_uj(x, MPFR_RNDN);
  if (exponent < min_exponent) return sign | integer;
  return sign |
         ((static_cast<std::uint64_t>(exponent + format.bias() - 1) << format.fraction_bits) +
          integer);
}

}  // namespace

bool has_reference() { return true; }

std::uint64_t reference(Calculation what, const FloatFormat& format, Towards mode, std::uint64_t a,
                        std::uint64_t b, std::uint64_t c) {
  thread_local Variable x(64);
  thread_local Variable y(64);
  thread_local Variable z(64);
  thread_local Variable result(64);
  mpfr_set_prec(result.get(), format.fraction_bits + 1);
  load(x.get(), format, a);
  load(y.get(), format, b);
  load(z.get(), format, c);
  const mpfr_rnd_t to = rounding(mode);
  int inexact = 0;
  switch (what) {
    case Calculation::Add:
      inexact = mpfr_add(result.get(), x.get(), y.get(), to);
      break;
    case Calculation::Multiply:
      inexact = mpfr_mul(result.get(), x.get(), y.get(), to);
      break;
    case Calculation::Fma:
      inexact = mpfr_fma(result.get(), x.get(), y.get(), z.get(), to);
      break;
    case Calculation::Divide:
      inexact = mpfr_div(result.get(), x.get(), y.get(), to);
      break;
    case Calculation::SquareRoot:
      inexact = mpfr_sqrt(result.get(), x.get(), to);
      break;
  }
  return store(result.get(), format, mode, inexact);
}

std::uint64_t reference_conversion(const FloatFormat& to, const FloatFormat& from, Towards mode,
                                   std::uint64_t bits) {
  thread_local Variable x(64);
  thread_local Variable result(64);
  mpfr_set_prec(result.get(), to.fraction_bits + 1);
  load(x.get(), from, bits);
  const int inexact = mpfr_set(result.get(), x.get(), rounding(mode));
  return store(result.get(), to, mode, inexact);
}

std::uint64_t reference_from_integer(const FloatFormat& to, Towards mode, std::uint64_t magnitude,
                                     bool negative) {
  thread_local Variable x(64);
  thread_local Variable result(64);
  mpfr_set_prec(result.get(), to.fraction_bits + 1);
  mpfr_set_uj(x.get(), magnitude, MPFR_RNDN);
  if (magnitude == 0) return 0;
  if (negative) mpfr_neg(x.get(), x.get(), MPFR_RNDN);
  const int inexact = mpfr_set(result.get(), x.get(), rounding(mode));
  return store(result.get(), to, mode, inexact);
}

#else

bool has_reference() { return false; }
std::uint64_t reference(Calculation, const FloatFormat&, Towards, std::uint64_t, std::uint64_t,
                        std::uint64_t) {
  throw std::logic_error(kNoReference);
}
std::uint64_t reference_conversion(const FloatFormat&, const FloatFormat&, Towards, std::uint64_t) {
  throw std::logic_error(kNoReference);
}
std::uint64_t reference_from_integer(const FloatFormat&, Towards, std::uint64_t, bool) {
  throw std::logic_error(kNoReference);
}

#endif

std::vector<std::uint64_t> corners(const FloatFormat& format) {
  std::vector<std::uint64_t> all;
  const std::uint64_t min_normal = format.min_normal();
  const std::uint64_t infinity = format.infinity();
  for (const std::uint64_t magnitude : {std::uint64_t{0},
                                        std::uint64_t{1},
                                        std::uint64_t{2},
                                        min_normal / 2,
                                        min_normal - 1,
                                        min_normal,
                                        min_normal + 1,
                                        min_normal + min_normal / 2,
                                        format.one() - 1,
                                        format.one(),
                                        format.one() + 1,
                                        format.one() + min_normal,                   // 2
                                        format.one() - min_normal,                   // 1/2
                                        format.one() + min_normal + min_normal / 2,  // 3
                                        format.one() + min_normal / 2,               // 3/2
                                        infinity - 1,
                                        infinity - min_normal / 2,
                                        infinity,
                                        infinity + 1,
                                        infinity + min_normal / 2,
                                        format.sign() - 1}) {
    all.push_back(magnitude);
    all.push_back(magnitude | format.sign());
  }
  return all;
}

std::uint64_t FloatDice::bits() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t FloatDice::any(const FloatFormat& format) {
  const std::uint64_t random = bits();
  std::uint64_t fraction = bits() & (format.min_normal() - 1);
  const auto low = static_cast<int>(below(static_cast<std::uint64_t>(format.fraction_bits) + 1));
  // Fractions: any, few leading bits (exact results, ties), ones at the end (carries).
  switch (random & 3) {
    case 1:
      fraction &= ~((std::uint64_t{1} << low) - 1);
      break;
    case 2:
      fraction |= (std::uint64_t{1} << low) - 1;
      fraction &= format.min_normal() - 1;
      break;
    default:
      break;
  }
  const std::uint64_t exponents = std::uint64_t{1} << format.exponent_bits;
  std::uint64_t exponent = bits() & (exponents - 1);
  // Exponents: any, around 1, around the min_normal, around the root of the range, at the end.
  const std::uint64_t near = below(6);
  switch (random >> 2 & 7) {
    case 0:
      exponent = near;
      break;
    case 1:
      exponent = exponents - 1 - near;
      break;
    case 2:
      exponent = static_cast<std::uint64_t>(format.bias()) + near - 3;
      break;
    case 3:
      exponent = static_cast<std::uint64_t>(format.bias()) / 2 + near;
      break;
    case 4:
      exponent = static_cast<std::uint64_t>(format.bias()) * 3 / 2 + near - 2;
      break;
    default:
      break;
  }
  return (exponent << format.fraction_bits | fraction) |
         ((random >> 8 & 1) != 0 ? format.sign() : 0);
}

std::uint64_t FloatDice::partner(const FloatFormat& format, std::uint64_t a) {
  const std::uint64_t random = bits();
  const std::uint64_t magnitude = a & (format.sign() - 1);
  const std::uint64_t other = ~a & format.sign();
  std::uint64_t result = magnitude;
  switch (random & 7) {
    case 0:  // a neighbour: nearly everything cancels
      result = magnitude + below(5) - 2;
      break;
    case 1:  // somewhere about half an ulp of a
    case 2: {
      const std::uint64_t steps = static_cast<std::uint64_t>(format.fraction_bits) - 1 + below(4);
      const std::uint64_t down = steps << format.fraction_bits;
      result = (magnitude & ~(format.min_normal() - 1)) - down +
               (below(2) == 0 ? below(3) : bits() & (format.min_normal() - 1));
      break;
    }
    case 3:  // a few binades away
      result = magnitude - (below(6) << format.fraction_bits);
      break;
    default:
      return any(format);
  }
  result &= format.sign() - 1;
  return result | ((random >> 8 & 1) != 0 ? other : a & format.sign());
}

}  // namespace ptxgen::test
