// tests/emulator/cuda/numbers_test.cpp - integer, float, double and narrow float arithmetic of nvcc
#include <algorithm>
#include <array>

#include "cuda_case.hpp"
#include "numbers.hpp"

using namespace ptxgen::test;

namespace {

// The high half of a product, by halves.
std::uint64_t high_product(std::uint64_t x, std::uint64_t y) {
  const std::uint64_t x0 = x & 0xffffffffu, x1 = x >> 32, y0 = y & 0xffffffffu, y1 = y >> 32;
  const std::uint64_t middle = x1 * y0 + (x0 * y0 >> 32);
  const std::uint64_t other = x0 * y1 + (middle & 0xffffffffu);
  return x1 * y1 + (middle >> 32) + (other >> 32);
}

template <class T>
T reversed(T value) {
  T out = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; ++i, value = static_cast<T>(value >> 1))
    out = static_cast<T>(out << 1 | (value & 1));
  return out;
}

template <class T>
std::uint64_t leading_zeros(T value) {
  std::uint64_t count = sizeof(T) * 8;
  for (; value != 0; value = static_cast<T>(value >> 1)) --count;
  return count;
}

// Numbers of every size, and the edges.
template <class T>
std::vector<T> wide_numbers(CudaRun& run, std::size_t n) {
  const std::array<std::uint64_t, 8> edges{0,          1,           ~0ull,      1ull << 63,
                                           ~0ull >> 1, 0xffffffffu, 1ull << 31, 10};
  std::vector<T> values;
  for (std::size_t i = 0; i < n; ++i)
    values.push_back(
        static_cast<T>(i < 64 ? edges[run.dice.below(8)] : run.dice.bits() >> run.dice.below(64)));
  return values;
}

// Halves (or bfloats) of moderate size: sums, products and fused sums are exact in double.
std::vector<std::uint16_t> moderate(CudaRun& run, std::size_t n, Format format) {
  std::vector<std::uint16_t> values;
  for (std::size_t i = 0; i < n; ++i)
    values.push_back(static_cast<std::uint16_t>(encoded(run.dice.uniform(-16, 16), format)));
  return values;
}

// The neighbour of a result that was rounded to nearest, given the sign of what was cut off.
enum class Way { Up, Down, Zero };
double directed(double nearest, double rest, Way way) {
  if (rest == 0) return nearest;
  const bool up = way == Way::Up || (way == Way::Zero && nearest < 0);
  if (up == (rest > 0))
    return up ? std::nextafter(nearest, INFINITY) : std::nextafter(nearest, -INFINITY);
  return nearest;
}

}  // namespace

TEST_CASE("cuda: 64-bit and 32-bit integer arithmetic") {
  run_case({"integer64.cu"}, [](CudaRun& run) {
    const std::size_t n = 256;
    const auto a = wide_numbers<std::uint64_t>(run, n), b = wide_numbers<std::uint64_t>(run, n);
    const auto out = run.output<std::uint64_t>(16 * n);
    run.launch("integer64", {2}, {128}, run.input(a), run.input(b), out, as_int(n));
    std::vector<std::uint64_t> expected;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t x = a[i], y = b[i] == 0 ? 1 : b[i];
      const auto sx = static_cast<std::int64_t>(x), sy = static_cast<std::int64_t>(y);
      const std::uint64_t quotient = sy == -1 ? 0 : static_cast<std::uint64_t>(sx / sy);
      const std::uint64_t remainder = sy == -1 ? 0 : static_cast<std::uint64_t>(sx % sy);
      const std::uint64_t high = high_product(x, y);
      const std::uint64_t signed_high = high - (sx < 0 ? y : 0) - (sy < 0 ? x : 0);
      std::uint64_t ones = 0;
      for (unsigned bit = 0; bit < 64; ++bit) ones += x >> bit & 1;
      const std::uint64_t shift = y & 63, low = x * y + b[i];
      const std::uint64_t carry = low < b[i] ? 1 : 0;
      const std::uint64_t wide_high = high + carry;
      const std::uint64_t arithmetic =
          shift == 0 ? x : x >> shift | (sx < 0 ? ~0ull << (64 - shift) : 0);
      const std::uint64_t first_set = x == 0 ? 0 : 64 - leading_zeros(x & (~x + 1));
      expected.insert(
          expected.end(),
          {x / y, x % y, quotient, remainder, high, signed_high, leading_zeros(x), ones,
           reversed(x), first_set, x << shift | x >> (63 - shift), arithmetic, wide_high, low,
           wide_high - (low < x ? 1 : 0) + (x < y ? 1 : 0), x % 1000000007u});
    }
    run.check_equal(out, expected);

    const auto c = wide_numbers<std::uint32_t>(run, n), d = wide_numbers<std::uint32_t>(run, n);
    const auto words = run.output<std::uint32_t>(16 * n);
    run.launch("integer32", {2}, {128}, run.input(c), run.input(d), words, as_int(n));
    std::vector<std::uint32_t> wanted;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t x = c[i], y = d[i] == 0 ? 1 : d[i];
      const auto sx = static_cast<std::int32_t>(x), sy = static_cast<std::int32_t>(y);
      const std::int64_t lx = sx, ly = sy;
      const auto narrow = [](auto value) { return static_cast<std::uint32_t>(value); };
      const std::uint64_t both = std::uint64_t{y} << 32 | x;
      const auto byte = [](std::uint32_t word, int k) { return word >> (8 * k) & 255; };
      const auto signed_byte = [&](std::uint32_t word, int k) {
        return std::int64_t{static_cast<std::int8_t>(byte(word, k))};
      };
      std::int64_t dot = 11;
      for (int k = 0; k < 4; ++k) dot += signed_byte(x, k) * signed_byte(y, k);
      const auto low24 = [](std::int32_t v) {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(v) << 40) >> 40;
      };
      const std::uint32_t clamped = std::min(y & 63, 32u);
      wanted.insert(
          wanted.end(),
          {x / y + x % y * 3, sy == -1 ? 0 : narrow(lx / ly + lx % ly * 3),
           narrow(std::uint64_t{x} * y >> 32), narrow(lx * ly >> 32),
           // Selector 0x2745 over the bytes x0..x3 y0..y3, the lowest nibble for the lowest byte.
           byte(y, 1) | byte(y, 0) << 8 | byte(y, 3) << 16 | byte(x, 2) << 24,
           narrow(both << (y & 31) >> 32), narrow(both >> clamped),
           narrow((lx > ly ? lx - ly : ly - lx) + 5), (x > y ? x - y : y - x) + 9,
           narrow((lx + ly) >> 1), narrow((std::uint64_t{x} + y + 1) >> 1),
           narrow(low24(sx) * low24(sy)), reversed(x) ^ narrow(leading_zeros(x)), narrow(dot),
           (x & 0xffff) * byte(y, 0) + (x >> 16) * byte(y, 1) + 13,
           x / 7 + x % 10 + narrow(sx / 13 + sx % 9)});
    }
    run.check_equal(words, wanted);
  });
}

TEST_CASE("cuda: double functions and directed rounding") {
  run_case({"double_math.cu"}, [](CudaRun& run) {
    const std::size_t n = 128;
    std::vector<double> in;
    for (std::size_t i = 0; i < n; ++i)
      in.push_back(static_cast<double>(run.dice.between(-(1 << 30), 1 << 30)) * 0x1p-27);
    in[0] = 0;
    const auto out = run.output<double>(20 * n);
    run.launch("double_math", {1}, {n}, run.input(in), out, as_int(n));
    std::vector<double> expected;
    for (const double x : in) {
      const double p = std::abs(x) + 0.25;
      expected.insert(expected.end(), {std::sin(x),
                                       std::cos(x),
                                       std::tan(x),
                                       std::exp(x),
                                       std::log(p),
                                       std::pow(p, x / 4),
                                       std::erf(x),
                                       std::sqrt(p),
                                       1 / std::sqrt(p),
                                       std::cbrt(x),
                                       std::atan2(x, p),
                                       std::sinh(x / 2),
                                       std::tanh(x),
                                       std::fma(x, p, -x),
                                       x / p,
                                       std::fmod(x * 100, p),
                                       std::rint(x) + std::trunc(x) * 10 + std::floor(x) * 100 +
                                           std::ceil(x) * 1000,
                                       std::asin(x / (p + std::abs(x))),
                                       std::log1p(p) + std::expm1(x / 8),
                                       std::lgamma(p)});
    }
    // The library's worst documented error here is a few units in the last place; lgamma and log
    // lose relative accuracy beside their zeros.
    run.check_close(out, expected, 4e-15, 4e-15);

    std::vector<double> a, b;
    for (std::size_t i = 0; i < n; ++i) {
      a.push_back(static_cast<double>(run.dice.bits() >> 11) * 0x1p-50 *
                  (run.dice.below(2) != 0 ? 1 : -1));
      b.push_back(static_cast<double>(run.dice.bits() >> 11) * 0x1p-52 + 0x1p-20);
    }
    const auto rounded = run.output<double>(8 * n);
    run.launch("rounded", {2}, {64}, run.input(a), run.input(b), rounded, as_int(n));
    std::vector<double> wanted;
    for (std::size_t i = 0; i < n; ++i) {
      // Volatile: the compiler must not fuse what error-free transformations keep apart.
      const auto rest_of_sum = [](double x, double y) {
        const volatile double sum = x + y;
        const volatile double y1 = sum - x;
        const volatile double x1 = sum - y1;
        return (x - x1) + (y - y1);
      };
      const volatile double product = a[i] * b[i];
      const double product_rest = std::fma(a[i], b[i], -product);
      const volatile double sum = a[i] + b[i];
      const double sum_rest = rest_of_sum(a[i], b[i]);
      const volatile double quotient = a[i] / b[i];
      const double quotient_rest = std::fma(-quotient, b[i], a[i]);  // b is positive
      const volatile double root = std::sqrt(std::abs(a[i]));
      const double root_rest = std::fma(-root, root, std::abs(a[i]));
      const volatile double fused = std::fma(a[i], b[i], 1.0);
      const volatile double product_and_one = product + 1.0;
      const double fused_rest =
          ((product_and_one - fused) + rest_of_sum(product, 1.0)) + product_rest;
      const auto single = static_cast<float>(a[i]);
      const double to_float =
          std::abs(double{single}) > std::abs(a[i]) ? std::nextafter(single, 0.0f) : single;
      wanted.insert(
          wanted.end(),
          {directed(sum, sum_rest, Way::Up) - directed(sum, sum_rest, Way::Down),
           directed(product, product_rest, Way::Zero), directed(quotient, quotient_rest, Way::Up),
           directed(fused, fused_rest, Way::Down), directed(root, root_rest, Way::Up),
           std::ceil(a[i]) + 0.5 * std::floor(b[i]), to_float, -a[i]});
    }
    run.check_equal(rounded, wanted);
  });
}

TEST_CASE("cuda: float functions and option prices") {
  run_case({"float_math.cu"}, [](CudaRun& run) {
    const std::size_t n = 256;
    const auto in = run.dice.floats(n, -8, 8);
    const auto out = run.output<float>(14 * n);
    run.launch("float_math", {2}, {128}, run.input(in), out, as_int(n));
    std::vector<double> expected;
    for (const float value : in) {
      const double x = value;
      const double p = std::abs(value) + 0.25f;
      const float far = value * 100000.0f, tenfold = value * 10;
      expected.insert(
          expected.end(),
          {std::sin(x), std::cos(x), std::exp(x), std::log(p), std::pow(p, x / 4), std::erf(x),
           std::sqrt(p), x / p, std::atan(x), std::tanh(x), std::cbrt(x),
           std::exp2(x) + std::log2(p), std::sin(double{far}), std::fmod(double{tenfold}, p)});
    }
    // Four units in the last place cover each documented error but powf's eight.
    run.check_close(out, expected, 3e-7, 1e-6);

    const auto price = run.dice.floats(n, 5, 30), strike = run.dice.floats(n, 1, 100),
               years = run.dice.floats(n, 0.25f, 10);
    const auto call = run.output<float>(n), put = run.output<float>(n);
    run.launch("options", {1}, {64}, run.input(price), run.input(strike), run.input(years), call,
               put, 0.02f, 0.3f, as_int(n));
    std::vector<double> calls, puts;
    for (std::size_t i = 0; i < n; ++i) {
      const auto normal = [](double d) { return 0.5 * std::erfc(-d * std::sqrt(0.5)); };
      const double root = std::sqrt(double{years[i]});
      const double d1 =
          (std::log(double{price[i]} / strike[i]) + (0.02 + 0.045) * years[i]) / (0.3 * root);
      const double d2 = d1 - 0.3 * root, discount = std::exp(-0.02 * years[i]) * strike[i];
      calls.push_back(price[i] * normal(d1) - discount * normal(d2));
      puts.push_back(discount * normal(-d2) - price[i] * normal(-d1));
    }
    // The polynomial for the normal distribution is good to 7.5e-8, times prices up to 100.
    run.check_close(call, calls, 1e-4, 1e-5);
    run.check_close(put, puts, 1e-4, 1e-5);
  });
}

TEST_CASE("cuda: half arithmetic") {
  run_case({"half_math.cu"}, [](CudaRun& run) {
    const std::size_t n = 256;
    const auto a = moderate(run, n, kHalf), b = moderate(run, n, kHalf);
    const auto out = run.output<std::uint16_t>(10 * n);
    run.launch("half_math", {2}, {128}, run.input(a), run.input(b), out, as_int(n));
    // Zeros' signs are the operation's own; nothing here gives one but by equal numbers.
    std::vector<std::uint16_t> expected;
    for (std::size_t i = 0; i < n; ++i) {
      const double x = half_value(a[i]), y = half_value(b[i]);
      const auto stretched = static_cast<float>(x * 1.00048828125);
      const double sum = half_value(half_bits(x + 0.25));
      expected.insert(expected.end(),
                      {half_bits(x + y), half_bits(x - y), half_bits(x * y),
                       half_bits(std::fma(x, y, x)), half_bits(-std::abs(y)), x < y ? a[i] : b[i],
                       static_cast<std::uint16_t>(encoded(stretched, kHalf, Round::Zero)),
                       half_bits(std::floor(x)), half_bits(std::clamp(sum, 0.0, 1.0)),
                       static_cast<std::uint16_t>(a[i] ^ 0x8000)});
    }
    run.check_equal(out, expected);

    const auto pairs = run.output<std::uint16_t>(2 * 5 * (n / 2));
    run.launch("half_pairs", {1}, {128}, run.input(a), run.input(b), pairs, as_int(n / 2));
    std::vector<std::uint16_t> wanted;
    for (std::size_t i = 0; i < n; i += 2) {
      const double x0 = half_value(a[i]), x1 = half_value(a[i + 1]);
      const double y0 = half_value(b[i]), y1 = half_value(b[i + 1]);
      wanted.insert(
          wanted.end(),
          {half_bits(std::fma(x0, y0, 1.5)), half_bits(std::fma(x1, y1, 1.5)), half_bits(x1 + y0),
           half_bits(x0 + y1), a[i + 1], b[i], half_bits(x0 > y0 ? 1 : 0),
           half_bits(x1 > y1 ? 1 : 0), half_bits(x0 * y0), half_bits(x1 * y0)});
    }
    run.check_equal(pairs, wanted);

    const auto axpy = run.output<float>(n);
    run.launch("half_axpy", {2}, {128}, 3.0f, run.input(a), run.input(b), axpy, as_int(n));
    std::vector<float> sums;
    for (std::size_t i = 0; i < n; ++i)
      sums.push_back(static_cast<float>(3 * half_value(a[i]) + half_value(b[i])));
    run.check_equal(axpy, sums);
  });
}

TEST_CASE("cuda: bfloat16 arithmetic") {
  run_case({"bfloat_math.cu", 80}, [](CudaRun& run) {
    const std::size_t n = 256;
    const auto a = run.dice.floats(n, -100, 100), b = run.dice.floats(n, -100, 100);
    const auto out = run.output<std::uint16_t>(6 * n);
    run.launch("bfloat_math", {2}, {128}, run.input(a), run.input(b), out, as_int(n));
    std::vector<std::uint16_t> expected;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint16_t xb = bfloat_bits(a[i]), yb = bfloat_bits(b[i]);
      const double x = bfloat_value(xb), y = bfloat_value(yb);
      expected.insert(expected.end(),
                      {xb, static_cast<std::uint16_t>(encoded(a[i], kBfloat, Round::Zero)),
                       bfloat_bits(x * y), bfloat_bits(std::fma(x, y, x)), x > y ? xb : yb,
                       x > y ? static_cast<std::uint16_t>(xb ^ 0x8000) : yb});
    }
    run.check_equal(out, expected);

    std::vector<std::uint16_t> u, v;
    float dot = 0;
    for (std::size_t i = 0; i < 2 * 100; ++i) {
      const int x = run.dice.between(-100, 100), y = run.dice.between(-100, 100);
      u.push_back(bfloat_bits(x));
      v.push_back(bfloat_bits(y));
      dot += static_cast<float>(x * y);
    }
    const auto sum = run.output<float>(1);
    run.launch("bfloat_dot", {1}, {32}, run.input(u), run.input(v), sum, 100);
    run.check_equal(sum, {dot});
  });
}

TEST_CASE("cuda: fp8 conversions") {
  run_case({"fp8_convert.cu"}, [](CudaRun& run) {
    const std::size_t n = 512;
    std::vector<float> in;
    for (std::size_t i = 0; i < n; ++i) {
      const int scale = run.dice.between(-20, 18);
      // Every other one on a tie or a number itself: few bits.
      const float x =
          i % 2 == 0 ? run.dice.uniform(1, 2) : static_cast<float>(run.dice.between(16, 31)) / 16;
      in.push_back(std::ldexp(run.dice.below(2) != 0 ? -x : x, scale));
    }
    in[0] = 0;
    in[1] = -0.0f;
    in[2] = 464;  // e4m3: half-way from its largest number to the next step
    in[3] = 61440;
    in[4] = INFINITY;
    const auto clamped = [](float value, Format format, std::uint32_t max) {
      const std::uint32_t sign = std::signbit(value) ? 128 : 0;
      if (std::abs(value) > 65536) return static_cast<std::uint8_t>(sign | max);
      return static_cast<std::uint8_t>(sign | std::min(encoded(std::abs(value), format), max));
    };
    std::vector<std::uint8_t> e4, e5;
    std::vector<std::uint16_t> pairs;
    for (const float value : in) {
      e4.push_back(clamped(value, kE4m3, 0x7e));
      e5.push_back(clamped(value, kE5m2, 0x7b));
    }
    for (std::size_t i = 0; i < n; i += 2)
      pairs.push_back(static_cast<std::uint16_t>(e4[i] | e4[i + 1] << 8));
    const auto device_in = run.input(in);
    const auto out4 = run.output<std::uint8_t>(n), out5 = run.output<std::uint8_t>(n);
    run.launch("fp8_from_float", {4}, {128}, device_in, out4, out5, as_int(n));
    run.check_equal(out4, e4);
    run.check_equal(out5, e5);
    const auto both = run.output<std::uint16_t>(n / 2);
    run.launch("fp8_pairs", {2}, {128}, device_in, both, as_int(n / 2));
    run.check_equal(both, pairs);

    const auto back4 = run.output<float>(256), back5 = run.output<float>(256);
    run.launch("fp8_to_float", {1}, {256}, back4, back5);
    std::vector<double> of4, of5;
    for (std::uint32_t bits = 0; bits < 256; ++bits) {
      of4.push_back((bits & 127) == 127 ? NAN : decoded(bits, kE4m3));
      const bool last = (bits >> 2 & 31) == 31;
      of5.push_back(last ? ((bits & 3) != 0 ? NAN
                            : bits > 127    ? -INFINITY
                                            : INFINITY)
                         : decoded(bits, kE5m2));
    }
    run.check_close(back4, of4, 0, 0);
    run.check_close(back5, of5, 0, 0);
  });
}
