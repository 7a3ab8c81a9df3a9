// tests/host/vectors_test.cpp - loops over vectors against plain loops
#include "kernels/host/vectors.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "backends.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "support/half.hpp"
#include "support/harness.hpp"
#include "support/random_values.hpp"

using namespace ptxgen;

namespace {

// Counts of a test: every remainder of the lanes, several times.
constexpr std::size_t kMaxCount = 3 * kDotLanes + 1;
constexpr float kGuard = -12345.5f;

bool fuses(const HostTarget& target) { return target.name != "sse4" && target.name != "portable"; }

float multiply_add(const HostTarget& target, float a, float b, float c) {
  return fuses(target) ? std::fmaf(a, b, c) : a * b + c;
}

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

bool same_bits(const float* a, const float* b, std::size_t count) {
  return count == 0 || std::memcmp(a, b, count * sizeof(float)) == 0;
}

/// An array between guards, at any element of a vector, of exactly the size.
struct Guarded {
  Guarded(std::size_t size, std::size_t shift) : all(size + shift + 8, kGuard), begin(shift + 4) {}
  Guarded(const std::vector<float>& values, std::size_t shift) : Guarded(values.size(), shift) {
    std::copy(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  [[nodiscard]] float* data() { return all.data() + begin; }
  [[nodiscard]] bool intact(std::size_t size) const {
    bool good = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
      good = good && ((i >= begin && i < begin + size) || all[i] == kGuard);
    }
    return good;
  }
  std::vector<float> all;
  std::size_t begin;
};

std::vector<float> random(std::size_t count, std::uint64_t seed) {
  return random_values(count, seed);
}

std::vector<std::uint16_t> packed(ElementType type, const std::vector<float>& values) {
  std::vector<std::uint16_t> elements;
  for (const float value : values) {
    elements.push_back(type == ElementType::f16 ? float_to_f16(value) : float_to_bf16(value));
  }
  return elements;
}

float unpacked(ElementType type, std::uint16_t bits) {
  return type == ElementType::f16 ? f16_to_float(bits) : bf16_to_float(bits);
}

bool skipped() {
  if (!host_targets().empty()) return false;
  test::skip("this build has no Highway: install libhwy-dev and configure again");
  return true;
}

/// Compares `out[i]` of a function with `expected(a[i], b[i])`, for every count.
void check_map(const HostTarget& target, std::string_view name, double ulps,
               const std::function<void(const float*, const float*, std::size_t, float*)>& work,
               const std::function<double(double, double)>& expected) {
  for (std::size_t count = 0; count <= kMaxCount; ++count) {
    const std::vector<float> a = random(count, 2 * count + 1);
    const std::vector<float> b = random(count, 2 * count + 2);
    Guarded left(a, count % 3);
    Guarded right(b, count % 5);
    Guarded out(count, count % 7);
    work(left.data(), right.data(), count, out.data());
    INFO(target.name << " " << name << ", " << count << " elements");
    CHECK(out.intact(count));
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double want = expected(a[i], b[i]);
      const double error = std::abs(double{out.data()[i]} - want);
      const double unit =
          std::ldexp(1.0, std::max(std::ilogb(want == 0 ? 1e-30 : want), -126) - 23);
      worst = std::max(worst, error / unit);
    }
    CHECK(worst <= ulps);
    // In place.
    work(left.data(), right.data(), count, left.data());
    CHECK(same_bits(left.data(), out.data(), count));
    CHECK(left.intact(count));
  }
}

}  // namespace

TEST_CASE("vectors: every f16 and bf16 is converted exactly, and back") {
  if (skipped()) return;
  for (const HostTarget& target : test::supported_targets()) {
    const HostVectors& vectors = *target.vectors;
    for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
      INFO(target.name << " " << to_string(type));
      std::vector<std::uint16_t> all(65536);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
      std::vector<float> floats(all.size());
      vectors.to_f32(type, all.data(), all.size(), floats.data());
      std::vector<std::uint16_t> back(all.size());
      vectors.from_f32(type, floats.data(), floats.size(), back.data());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const float want = unpacked(type, all[i]);
        const bool nan = std::isnan(want);
        const bool same = nan ? std::isnan(floats[i]) : bits(floats[i]) == bits(want);
        wrong += same && (nan ? std::isnan(unpacked(type, back[i])) : back[i] == all[i]) ? 0 : 1;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("vectors: f32 is rounded to f16 and bf16 as the scalar functions round") {
  if (skipped()) return;
  // Halfway cases and their neighbours, subnormals, the ends of the ranges, NaN.
  std::vector<float> values = {0.0f,          -0.0f,         INFINITY,       -INFINITY,
                               NAN,           65504.0f,      65519.99f,      65520.0f,
                               1e38f,         3.4e38f,       -3.4028235e38f, 5.9604645e-8f,
                               2.9802322e-8f, 2.9802326e-8f, 1e-40f,         -1e-45f};
  const std::vector<float> some = random(20000, test::seed());
  for (std::size_t i = 0; i < some.size(); ++i) {
    const auto power = static_cast<int>(i % 60) - 40;
    const float value = std::ldexp(some[i], power);
    values.push_back(value);
    values.push_back(std::bit_cast<float>((bits(value) & 0xffff0000u) | 0x8000u));
    values.push_back(std::bit_cast<float>((bits(value) & 0xffffe000u) | 0x1000u));
  }
  for (const HostTarget& target : test::supported_targets()) {
    for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
      std::vector<std::uint16_t> got(values.size());
      target.vectors->from_f32(type, values.data(), values.size(), got.data());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint16_t want =
            type == ElementType::f16 ? float_to_f16(values[i]) : float_to_bf16(values[i]);
        const bool nan = std::isnan(values[i]) && std::isnan(unpacked(type, got[i]));
        wrong += nan || got[i] == want ? 0 : 1;
      }
      INFO(target.name << " " << to_string(type));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("falsification 83: elementwise loops are right for every remainder of a vector") {
  if (skipped()) return;
  for (const HostTarget& target : test::supported_targets()) {
    const HostVectors& v = *target.vectors;
    check_map(target, "add", 0.5, v.add, [](double a, double b) { return a + b; });
    check_map(target, "multiply", 0.5, v.multiply, [](double a, double b) { return a * b; });
    const auto unary = [](auto function) {
      return [function](const float* a, const float*, std::size_t count, float* out) {
        function(a, count, out);
      };
    };
    check_map(target, "gate", 3,
              unary([&](const float* x, std::size_t n, float* out) { v.gate(1, x, n, out); }),
              [](double x, double) { return x / (1 + std::exp(-x)); });
    check_map(target, "gelu_tanh", 4, unary(v.gelu_tanh), [](double x, double) {
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    });
    check_map(target, "relu", 0, unary(v.relu), [](double x, double) { return x < 0 ? 0 : x; });
    check_map(target, "exponentials", 2, unary([&](const float* x, std::size_t n, float* out) {
                v.exponentials(x, 0, 1, n, out);
              }),
              [](double x, double) { return std::exp(x); });
    check_map(
        target, "scale", 1.5,
        [&](const float* x, const float* weight, std::size_t n, float* out) {
          v.scale(x, 0.7f, weight, n, out);
        },
        [](double x, double weight) { return x * double{0.7f} * weight; });
    check_map(
        target, "normalise", 0.51,
        [&](const float* x, const float* weight, std::size_t n, float* out) {
          v.normalise(x, 0.25, 3, weight, weight, n, out);
        },
        [](double x, double weight) { return (x - 0.25) * 3 * weight + weight; });
  }
}

TEST_CASE(
    "falsification 83: sums are right for every remainder of a vector, on all vectors alike") {
  if (skipped()) return;
  const std::vector<HostTarget> targets = test::supported_targets();
  for (std::size_t count = 0; count <= kMaxCount; ++count) {
    const std::vector<float> values = random(count, count + 1);
    Guarded x(values, count % 5);
    double sum = 0;
    double squares = 0;
    float largest = -INFINITY;
    for (const float value : values) {
      sum += value;
      squares += (value - 0.3) * (value - 0.3);
      largest = std::max(largest, value);
    }
    for (const HostTarget& target : targets) {
      const HostVectors& v = *target.vectors;
      INFO(target.name << ", " << count << " elements");
      CHECK(std::abs(v.sum(x.data(), count) - sum) <= 1e-13 * kMaxCount);
      CHECK(std::abs(v.squares(x.data(), 0.3, count) - squares) <= 1e-13 * kMaxCount);
      CHECK(v.largest(x.data(), count) == largest);
      CHECK(v.sum(x.data(), count) == targets[0].vectors->sum(x.data(), count));
      CHECK(v.squares(x.data(), 0.3, count) == targets[0].vectors->squares(x.data(), 0.3, count));
    }
  }
}

TEST_CASE("falsification 83: products have the stated order of sums for every remainder") {
  if (skipped()) return;
  for (const HostTarget& target : test::supported_targets()) {
    const HostVectors& v = *target.vectors;
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
      for (std::size_t count = 0; count <= kMaxCount; ++count) {
        const std::size_t rows = count % 8;
        const std::size_t pitch = count + count % 3;
        INFO(target.name << " " << to_string(type) << ", " << rows << " rows of " << count);
        std::vector<float> weights = random(pitch * rows, count + 5);
        const std::vector<std::uint16_t> elements = packed(type, weights);
        if (type != ElementType::f32) {
          for (std::size_t i = 0; i < weights.size(); ++i) {
            weights[i] = unpacked(type, elements[i]);
          }
        }
        const void* const matrix =
            type == ElementType::f32 ? static_cast<const void*>(weights.data()) : elements.data();
        const std::vector<float> x = random(count, count + 6);
        Guarded lanes(std::vector<float>(rows * kDotLanes, 0.25f), count % 4);
        std::vector<float> want(rows * kDotLanes, 0.25f);
        v.dot(type, matrix, pitch, rows, x.data(), count, lanes.data());
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t i = 0; i < count; ++i) {
            float& lane = want[r * kDotLanes + i % kDotLanes];
            lane = multiply_add(target, weights[r * pitch + i], x[i], lane);
          }
        }
        CHECK(lanes.intact(want.size()));
        CHECK(same_bits(lanes.data(), want.data(), want.size()));
      }
    }
  }
}

TEST_CASE("falsification 83: rows are added in order for every remainder and number of rows") {
  if (skipped()) return;
  for (const HostTarget& target : test::supported_targets()) {
    const HostVectors& v = *target.vectors;
    for (std::size_t count = 0; count <= kDotLanes + 1; ++count) {
      for (std::size_t rows = 0; rows <= 17; ++rows) {
        const auto type = static_cast<ElementType>((count + rows) % 3);  // f32, f16, bf16
        const std::size_t pitch = count + rows % 3;
        std::vector<float> a = random(pitch * rows, count + 9);
        const std::vector<std::uint16_t> elements = packed(type, a);
        if (type != ElementType::f32) {
          for (std::size_t i = 0; i < a.size(); ++i) a[i] = unpacked(type, elements[i]);
        }
        const void* const matrix =
            type == ElementType::f32 ? static_cast<const void*>(a.data()) : elements.data();
        const std::vector<float> x = random(rows, 10);
        Guarded y(random(count, 11), rows % 4);
        std::vector<float> want(y.data(), y.data() + count);
        v.add_rows(type, matrix, pitch, rows, x.data(), count, y.data());
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t j = 0; j < count; ++j) {
            want[j] = multiply_add(target, a[r * pitch + j], x[r], want[j]);
          }
        }
        INFO(target.name << ", " << rows << " rows of " << count << " " << to_string(type));
        CHECK(y.intact(count));
        CHECK(same_bits(want.data(), y.data(), count));
      }
    }
  }
}

TEST_CASE("vectors: blocks have the values of dequantize") {
  if (skipped()) return;
  for (const HostTarget& target : test::supported_targets()) {
    for (const ElementInfo& info : kElementTypes) {
      const auto type = static_cast<ElementType>(&info - kElementTypes);
      if (!is_block_format(type)) continue;
      std::vector<std::byte> blocks(std::size_t{5} * info.block_bytes);
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = static_cast<std::byte>(i * 37 + i / 7 + 11);
      }
      // Scales that are numbers.
      for (std::size_t at = 0; at < blocks.size(); at += info.block_bytes) {
        for (const std::uint8_t field : half_fields(type)) {
          const std::uint16_t scale = float_to_f16(0.01f * static_cast<float>(at + field + 1));
          std::memcpy(&blocks[at + field], &scale, sizeof scale);
        }
      }
      std::vector<float> want(std::size_t{5} * info.block_values);
      dequantize(type, blocks, want);
      Guarded got(want.size(), 3);
      target.vectors->dequantize(type, blocks.data(), want.size(), got.data());
      INFO(target.name << " " << info.name);
      CHECK(got.intact(want.size()));
      CHECK(same_bits(want.data(), got.data(), want.size()));
    }
  }
}

TEST_CASE("vectors: NaN and infinities of exp and its sums are those of the definition") {
  if (skipped()) return;
  const std::vector<float> x = {NAN, INFINITY, -INFINITY, 1000.0f, -1000.0f, 104.5f, -104.5f};
  for (const HostTarget& target : test::supported_targets()) {
    INFO(target.name);
    std::vector<float> out(x.size());
    target.vectors->exponentials(x.data(), 0, 1, x.size(), out.data());
    CHECK(std::isnan(out[0]));
    CHECK(out[1] == INFINITY);
    CHECK(out[2] == 0);
    CHECK(out[3] == INFINITY);
    CHECK(out[4] == 0);
    CHECK(out[5] == INFINITY);
    CHECK(out[6] <= 1e-44f);
    target.vectors->gate(1, x.data(), x.size(), out.data());
    CHECK(std::isnan(out[0]));
    CHECK(out[1] == INFINITY);
    CHECK(std::isnan(out[2]));
    CHECK(out[3] == 1000.0f);
    CHECK(out[4] == 0);
  }
}

TEST_CASE(
    "for_parts covers every item once, for any number of threads, and throws what work throws") {
  for (const unsigned threads : {1u, 2u, 3u, 7u}) {
    const HostRun run(0, nullptr, threads);
    for (const std::uint64_t items : {0u, 1u, 5u, 64u, 65u, 1000u}) {
      for (const std::uint64_t step : {1u, 64u}) {
        std::vector<int> seen(items);
        run.for_parts(items, std::uint64_t{1} << 20, step,
                      [&](std::uint64_t begin, std::uint64_t end) {
                        if (begin % step != 0) throw std::runtime_error("begins inside a step");
                        for (std::uint64_t i = begin; i < end; ++i) ++seen[i];
                      });
        CHECK(seen == std::vector<int>(items, 1));
      }
    }
    CHECK_THROWS_WITH(run.for_parts(100, std::uint64_t{1} << 20, 1,
                                    [](std::uint64_t, std::uint64_t) {
                                      throw std::runtime_error("the work fails");
                                    }),
                      "the work fails");
  }
}
