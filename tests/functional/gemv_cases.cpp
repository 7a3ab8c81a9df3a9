// tests/functional/gemv_cases.cpp - inputs of GEMV tests and what results may be
#include "functional/gemv_cases.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <limits>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::functional {

std::uint64_t Numbers::bits() {
  // splitmix64: every seed, 0 too, gives a full sequence.
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

float Numbers::between(float low, float high) {
  return low + (high - low) * (static_cast<float>(bits() >> 40) * 0x1p-24f);
}

std::uint32_t Numbers::integer(std::uint32_t min, std::uint32_t max) {
  return min + static_cast<std::uint32_t>(bits() % (std::uint64_t{max} - min + 1));
}

std::vector<float> Numbers::list(std::size_t count, float low, float high) {
  std::vector<float> values(count);
  for (float& value : values) value = between(low, high);
  return values;
}

Problem random_problem(Shape shape, std::uint64_t seed, float low, float high) {
  Numbers numbers(seed);
  Problem problem{shape, {}, {}};
  problem.a = numbers.list(std::size_t{shape.k} * shape.n, low, high);
  problem.x = numbers.list(shape.k, low, high);
  return problem;
}

std::uint64_t roundings(GemvChoice choice, Shape shape) {
  if (choice == GemvChoice::Strided) return GemvStrided{shape.k, shape.n}.roundings();
  // The others add in one order or another, at worst one after the other.
  return std::max<std::uint64_t>(1, GemvCoalesced{shape.k, shape.n}.roundings());
}

std::vector<GemvChoice> choices(const Place& place) {
  std::vector<GemvChoice> list = {GemvChoice::Direct, GemvChoice::Coalesced, GemvChoice::Strided};
  if (place.emulated()) return list;
  try {
    const Launcher launcher = place.with_gemv(GemvChoice::Cublas);
    const Buffer<f32> one(place.context, 3);
    const DeviceSpan<f32> all = one;
    launcher.gemv(all.subspan(0, 1), all.subspan(1, 1), all.subspan(2, 1), 1, 1, place.stream);
    place.stream.synchronize();
    list.push_back(GemvChoice::Cublas);
  } catch (const Error& error) {
    if (error.code != "no-cublas") throw;
  }
  return list;
}

namespace {

constexpr std::uint32_t kGuard = 0xdeadbeefu;
constexpr std::size_t kGuardElements = 64;
constexpr double kTiny = 0x1p-150;  // half of the smallest number
constexpr std::uint32_t kColumnsOfMeanError = 64;

// Elements with a guard before and after.
class Guarded {
 public:
  Guarded(const Place& place, const std::vector<float>& values)
      : host_(values.size() + 2 * kGuardElements, std::bit_cast<float>(kGuard)),
        size_(values.size()) {
    std::copy(values.begin(), values.end(), host_.begin() + kGuardElements);
    buffer_ = Buffer<f32>(place.context, host_);
  }
  [[nodiscard]] DeviceSpan<f32> span() const {
    return DeviceSpan<f32>(buffer_).subspan(kGuardElements, size_);
  }
  // The elements; the guards are checked.
  [[nodiscard]] std::vector<float> read(const char* name) const {
    std::vector<float> now(host_.size());
    buffer_.read(now);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < kGuardElements; ++i) {
      changed += std::bit_cast<std::uint32_t>(now[i]) != kGuard;
      changed += std::bit_cast<std::uint32_t>(now[now.size() - 1 - i]) != kGuard;
    }
    INFO("guards of " << name);
    CHECK(changed == 0);
    return {now.begin() + kGuardElements, now.end() - kGuardElements};
  }

 private:
  std::vector<float> host_;
  std::size_t size_;
  Buffer<f32> buffer_;
};

bool same_bits(const std::vector<float>& left, const std::vector<float>& right) {
  return std::ranges::equal(left, right, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

std::vector<float> nans(std::size_t count) {
  return std::vector<float>(count, std::numeric_limits<float>::quiet_NaN());
}

}  // namespace

std::vector<float> run_guarded(const Place& place, const Launcher& launcher,
                               const Problem& problem) {
  const auto [k, n] = problem.shape;
  const Guarded y(place, nans(n));
  const Guarded a(place, problem.a);
  const Guarded x(place, problem.x);
  launcher.gemv(y.span(), a.span(), x.span(), k, n, place.stream);
  place.stream.synchronize();
  CHECK(same_bits(a.read("a"), problem.a));
  CHECK(same_bits(x.read("x"), problem.x));
  return y.read("y");
}

std::vector<float> run_exact(const Place& place, const Launcher& launcher, const Problem& problem) {
  const auto [k, n] = problem.shape;
  std::vector<float> result = nans(n);
  const Buffer<f32> y(place.context, result);
  const Buffer<f32> a(place.context, problem.a);
  const Buffer<f32> x(place.context, problem.x);
  launcher.gemv(y, a, x, k, n, place.stream);
  place.stream.synchronize();
  y.read(result);
  return result;
}

void check_gemv(const Problem& problem, const std::vector<float>& y, std::uint64_t roundings) {
  const auto [k, n] = problem.shape;
  REQUIRE(y.size() == n);
  const GemvReference reference = gemv_reference(problem.a, problem.x, k, n);
  double error = 0;
  double square = 0;
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t j = 0; j < n; ++j) {
    const double exact = reference.y[j];
    const double got = y[j];
    bool good = false;
    if (std::isnan(exact)) {
      good = std::isnan(got);
    } else if (std::isinf(exact)) {
      good = got == exact;
    } else {
      const double bound = gemv_error_bound(reference.magnitude[j], roundings) + kTiny * k;
      good = std::abs(got - exact) <= bound;
      error += (got - exact) * (got - exact);
      square += exact * exact;
    }
    if (!good && wrong++ == 0) {
      char text[128];
      std::snprintf(text, sizeof text, "y[%zu] is %.9g, not %.17g", j, got, exact);
      first = text;
    }
  }
  INFO("k = " << k << ", n = " << n << "; " << first);
  CHECK(wrong == 0);
  const double limit = 1e-12 * std::max(1.0, static_cast<double>(roundings) / 1024);
  // It says something of many columns only: a single one may cancel. And where squares leave the
  // range of doubles' normal numbers, a quotient of them says nothing.
  if (n >= kColumnsOfMeanError && square > 1e-200) CHECK(error <= limit * square);
}

void check_everywhere(const Place& place, const Problem& problem) {
  for (const GemvChoice choice : choices(place)) {
    INFO("gemv " << to_string(choice));
    const Launcher launcher = place.with_gemv(choice);
    check_gemv(problem, run_guarded(place, launcher, problem), roundings(choice, problem.shape));
  }
}

}  // namespace ptxgen::functional
