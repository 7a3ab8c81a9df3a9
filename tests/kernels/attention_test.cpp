// tests/kernels/attention_test.cpp - decode attention against fp64, and its extreme cases
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <map>

#include "attention_run.hpp"
#include "kernels/attention/decode_layout.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr ElementType kCaches[] = {ElementType::f32, ElementType::f16, ElementType::bf16,
                                   ElementType::q8_0};

/// Query heads and K/V heads.
struct Heads {
  std::uint32_t query, kv;
};
constexpr Heads kHeads[] = {{1, 1}, {4, 2}, {12, 2}, {4, 1}};

AttentionDecode spec_of(Heads heads, ElementType cache, std::uint32_t head_size,
                        std::uint32_t max_seq) {
  AttentionDecode spec;
  spec.kv_heads = heads.kv;
  spec.group = heads.query / heads.kv;
  spec.cache = cache;
  spec.head_size = head_size;
  spec.max_seq = max_seq;
  return spec;
}

// The NMSE that is wanted over unrounded numbers.
double wanted(ElementType cache) {
  if (cache == ElementType::f32) return 1e-10;
  return cache == ElementType::q8_0 ? 1e-4 : 1e-5;
}

// What a launch may add to the NMSE of exact attention over the cache as stored, which is what
// rounding the cache costs, whatever computes with it.
constexpr double kAdded = 1e-9;

/// Largest NMSE of some launches.
struct Largest {
  double stored = 0;     ///< over the cache as stored
  double unrounded = 0;  ///< over unrounded numbers
  double floor = 0;      ///< of exact attention over the cache as stored, over unrounded numbers
  double added = 0;      ///< what a launch adds to its floor
  std::size_t launches = 0;
  std::size_t above = 0;  ///< launches whose floor is above what is wanted
};

void check_point(const AttentionDecode& spec, const AttentionData& data, Largest& largest) {
  INFO(to_string(spec.cache) << ", group " << spec.group << ", head size " << spec.head_size
                             << ", window " << spec.window << ", chunk " << spec.chunk_positions()
                             << ", max_seq " << spec.max_seq);
  const AttentionOutcome outcome = AttentionRunner(spec, data).run();
  CHECK(outcome.findings == "");
  const std::vector<double> of_stored = exact_attention(spec, as_stored(spec, data)).out;
  const std::vector<double> exact = exact_attention(spec, data).out;
  const double stored = nmse(outcome.out, of_stored);
  const double unrounded = nmse(outcome.out, exact);
  const double floor = nmse(of_stored, exact);
  CHECK(stored <= 1e-9);
  CHECK(unrounded <= floor + kAdded);
  if (floor + kAdded <= wanted(spec.cache)) CHECK(unrounded <= wanted(spec.cache));
  largest.stored = std::max(largest.stored, stored);
  largest.unrounded = std::max(largest.unrounded, unrounded);
  largest.floor = std::max(largest.floor, floor);
  largest.added = std::max(largest.added, unrounded - floor);
  ++largest.launches;
  if (floor > wanted(spec.cache)) ++largest.above;
}

void print(const char* what, const std::map<ElementType, Largest>& table) {
  for (const auto& [cache, largest] : table) {
    std::printf(
        "attention, %s, %-4s: %zu launches, NMSE %.2g as stored, %.2g unrounded, of which rounding "
        "the cache %.2g and a launch at most %.2g; %zu with more than %.0g by rounding alone\n",
        what, std::string(to_string(cache)).c_str(), largest.launches, largest.stored,
        largest.unrounded, largest.floor, largest.added, largest.above, wanted(cache));
  }
}

/// A launch of one head whose scores are `scores` and whose values are their positions' numbers.
struct Line {
  AttentionDecode spec;
  AttentionData data;
};
Line line_of(const std::vector<double>& scores, std::uint32_t chunk) {
  const auto length = static_cast<std::uint32_t>(scores.size());
  Line line;
  line.spec = spec_of({1, 1}, ElementType::f32, 32, length);
  line.spec.chunk = chunk;
  line.data = normal_data(line.spec, 7);
  line.data.scale = 1;
  for (std::size_t e = 0; e < 32; ++e) line.data.q[e] = e == 5 ? 1 : 0;
  for (std::size_t i = 0; i < scores.size(); ++i) line.data.k[i * 32 + 5] = scores[i];
  return line;
}

std::vector<double> run(const Line& line) {
  const AttentionOutcome outcome = AttentionRunner(line.spec, line.data).run();
  CHECK(outcome.findings == "");
  return outcome.out;
}

}  // namespace

TEST_CASE("attention: every cache type, GQA and head size over short lengths is within its NMSE") {
  const std::vector<std::uint32_t> lengths[] = {{1, 16, 17, 63, 64, 65, 128}, {1000}};
  std::map<ElementType, Largest> table;
  std::uint64_t seed = 1;
  for (const ElementType cache : kCaches) {
    for (std::size_t h = 0; h < std::size(kHeads); ++h) {
      for (const std::uint32_t size : {32u, 64u, 96u, 128u, 256u, 80u, 160u}) {
        if (cache == ElementType::q8_0 && size % 32 != 0) continue;
        // Every day each head size with one of the others.
        if (!full() && (size / 16 + h + seed) % 4 != 0 && size != 64) {
          ++seed;
          continue;
        }
        for (const std::vector<std::uint32_t>& rows : lengths) {
          AttentionDecode spec = spec_of(kHeads[h], cache, size, rows.back());
          if (!attention::fits(spec)) continue;
          spec.rows = static_cast<std::uint32_t>(rows.size());
          spec.chunk = seed % 2 == 0 ? 0 : 30;
          spec.precise = seed % 3 == 0;
          AttentionData data = normal_data(spec, seed++);
          data.lengths = rows;
          check_point(spec, data, table[cache]);
        }
      }
    }
  }
  print("lengths to 1000", table);
}

TEST_CASE("attention: long contexts") {
  std::map<ElementType, Largest> table;
  for (const ElementType cache : kCaches) {
    for (const Heads heads : kHeads) {
      for (const std::uint32_t length : {4096u, 32768u}) {
        const bool daily = length == 4096 ? heads.query == 4 : heads.query == 1;
        if (!full() && !daily) continue;
        const AttentionDecode spec = spec_of(heads, cache, full() ? 128 : 64, length);
        check_point(spec, normal_data(spec, length + heads.query), table[cache]);
      }
    }
  }
  print("lengths 4096 and 32768", table);
}

TEST_CASE("attention: windows, a soft cap, 16-bit queries, one cache for all rows") {
  std::map<ElementType, Largest> table;
  std::uint64_t seed = 100;
  for (const ElementType cache : kCaches) {
    for (const std::uint32_t window : {1u, 16u, 100u, 299u, 5000u}) {
      AttentionDecode spec = spec_of({4, 2}, cache, 64, 700);
      spec.rows = 4;
      spec.window = window;
      spec.chunk = seed % 2 == 0 ? 0 : 48;
      spec.softcap = seed % 3 == 0;
      spec.shared_cache = seed % 5 == 0;
      AttentionData data = normal_data(spec, seed++);
      data.lengths = {700, 1, 299, 300};
      data.cap = spec.softcap ? 2.5f : 0.0f;
      data.scale = 0.3f;
      check_point(spec, data, table[cache]);
    }
  }
  print("windows", table);
  // A result of 16 bits has its own rounding.
  AttentionDecode spec = spec_of({12, 2}, ElementType::f16, 64, 200);
  spec.type = ElementType::f16;
  const AttentionData data = normal_data(spec, 9);
  const AttentionOutcome outcome = AttentionRunner(spec, data).run();
  CHECK(outcome.findings == "");
  CHECK(nmse(outcome.out, exact_attention(spec, as_stored(spec, data)).out) <= 1e-6);
}

TEST_CASE("attention: a maximum that rises in every step, one in the first, equal ones") {
  for (const std::uint32_t chunk : {0u, 100u, 7u}) {
    INFO("chunk " << chunk);
    std::vector<double> rising(600);
    for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = 0.05 * static_cast<double>(i);
    std::vector<double> falling(rising.rbegin(), rising.rend());
    for (const std::vector<double>& scores : {rising, falling}) {
      const Line line = line_of(scores, chunk);
      const AttentionExact exact = exact_attention(line.spec, as_stored(line.spec, line.data));
      CHECK(nmse(run(line), exact.out) <= 1e-9);
    }
    // Steep: the last position alone counts, and what came before is scaled to nothing.
    for (double& score : rising) score *= 4000;
    const Line steep = line_of(rising, chunk);
    const std::vector<double> last = run(steep);
    for (std::size_t e = 0; e < 32; ++e) {
      CHECK(last[e] == double{static_cast<float>(steep.data.v[599 * 32 + e])});
    }
    // Equal scores, of any size, give the mean.
    for (const double score : {0.0, -3.0, 9000.0}) {
      Line equal = line_of(std::vector<double>(600, score), chunk);
      for (std::size_t i = 0; i < 600 * 32; ++i) equal.data.v[i] = static_cast<double>(i % 3);
      const AttentionExact exact = exact_attention(equal.spec, equal.data);
      CHECK(nmse(run(equal), exact.out) <= 1e-12);
    }
  }
}

TEST_CASE("attention: scores of 10,000 are finite, and within what their rounding allows") {
  for (const ElementType cache : kCaches) {
    for (const std::uint32_t chunk : {0u, 64u}) {
      AttentionDecode spec = spec_of({4, 1}, cache, 128, 500);
      spec.chunk = chunk;
      AttentionData data = normal_data(spec, 31);
      data.scale = 400;  // unit-normal numbers: scores of 400 * sqrt(128), and larger
      const AttentionOutcome outcome = AttentionRunner(spec, data).run();
      CHECK(outcome.findings == "");
      const AttentionExact exact = exact_attention(spec, as_stored(spec, data));
      CHECK(exact.largest > 1e4);
      // A score has the roundings of its longest path, each of a sum of up to `largest`.
      const double steps = attention::decode_layout(spec).values() + 13;
      const double share = 2 * steps * exact.largest * 0x1p-24;
      for (std::size_t i = 0; i < exact.out.size(); ++i) {
        REQUIRE(std::isfinite(outcome.out[i]));
        CHECK(std::abs(outcome.out[i] - exact.out[i]) <=
              std::expm1(share) * (exact.magnitude[i] + std::abs(exact.out[i])) + 1e-4);
      }
    }
  }
}

TEST_CASE("attention: rows without positions, or with scores of -inf, give exactly 0") {
  for (const ElementType cache : kCaches) {
    AttentionDecode spec = spec_of({4, 2}, cache, 64, 300);
    spec.rows = 3;
    spec.chunk = 64;
    AttentionData data = normal_data(spec, 17);
    data.lengths = {0, 300, 0};
    const AttentionOutcome outcome = AttentionRunner(spec, data).run();
    CHECK(outcome.findings == "");
    for (std::size_t i = 0; i < outcome.out.size(); ++i) {
      const bool masked = i / (4 * 64) != 1;
      if (masked) CHECK((outcome.out[i] == 0 && !std::signbit(outcome.out[i])));
      if (!masked) CHECK((outcome.out[i] != 0 && std::isfinite(outcome.out[i])));
    }
  }
  for (const std::uint32_t chunk : {0u, 50u}) {
    std::vector<double> scores(200, -INFINITY);
    for (const double out : run(line_of(scores, chunk))) CHECK(out == 0);
    scores[137] = -1e30;
    const Line one = line_of(scores, chunk);
    const std::vector<double> out = run(one);
    CHECK(out[3] == double{static_cast<float>(one.data.v[137 * 32 + 3])});
  }
}

TEST_CASE("attention: NaN in a key that counts makes its heads NaN, and no other") {
  AttentionDecode spec = spec_of({4, 2}, ElementType::f32, 32, 100);
  AttentionData data = normal_data(spec, 23);
  data.k[(100 + 60) * 32] = NAN;  // position 60 of K/V head 1
  const AttentionOutcome outcome = AttentionRunner(spec, data).run();
  for (std::size_t i = 0; i < outcome.out.size(); ++i) {
    CHECK(std::isnan(outcome.out[i]) == (i / 32 >= 2));
  }
}
