// tests/kernels/flash_attention_cases_test.cpp - options of flash attention, and extreme numbers
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "flash_run.hpp"
#include "ptxgen/kernels/attention/flash_tensor_core.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// What tensor cores have of it: they multiply f16 here.
template <class K>
constexpr bool kTensorCores = std::is_same_v<K, FlashAttentionTensorCore>;
template <class K>
constexpr ElementType kCache = kTensorCores<K> ? ElementType::f16 : ElementType::f32;
template <class K>
constexpr double kWanted = kTensorCores<K> ? 1e-5 : 1e-10;

// A problem with f32 queries and outputs.
template <class K>
K kernel_of(std::uint32_t queries, std::uint32_t keys, std::uint32_t head_size = 32) {
  K kernel;
  FlashProblem& p = kernel.problem;
  p.kv_heads = 1;
  p.head_size = head_size;
  p.queries = queries;
  p.keys = keys;
  p.type = ElementType::f32;
  p.cache = kCache<K>;
  return kernel;
}

template <class K>
std::vector<double> run(const K& kernel, const FlashData& data) {
  const FlashOutcome outcome = FlashRunner(kernel, data).run();
  CHECK(outcome.findings == "");
  return outcome.out;
}

template <class K>
void check_exact(const K& kernel, const FlashData& data) {
  const FlashProblem& p = kernel.problem;
  INFO(kDescription<K>.name << ": queries " << p.queries << ", keys " << p.keys << ", head_size "
                            << p.head_size << ", window " << p.window << ", page " << p.page
                            << ", tile " << static_cast<int>(kernel.tile));
  CHECK(nmse_of(run(kernel, data), exact_attention(p, as_stored(p, data))) <= kWanted<K>);
}

}  // namespace

#define BOTH_KERNELS FlashAttention, FlashAttentionTensorCore

TEMPLATE_TEST_CASE("flash attention: numbers of queries and keys that differ", "", BOTH_KERNELS) {
  std::uint64_t seed = 20;
  for (const auto& [queries, keys] :
       {std::pair{1u, 130u}, std::pair{17u, 150u}, std::pair{65u, 30u}, std::pair{70u, 64u},
        std::pair{130u, 1u}}) {
    for (const bool causal : {true, false}) {
      if (!full() && (queries + seed) % 2 == 0) continue;
      auto kernel = kernel_of<TestType>(queries, keys);
      kernel.problem.causal = causal;
      check_exact(kernel, normal_data(kernel.problem, ++seed));
    }
  }
}

TEMPLATE_TEST_CASE("flash attention: windows", "", BOTH_KERNELS) {
  for (const std::uint32_t window : {1u, 16u, 50u, 64u, 65u, 149u, 5000u}) {
    if (!full() && window > 16 && window != 65) continue;
    auto kernel = kernel_of<TestType>(100, 150, 16);
    kernel.problem.window = window;
    check_exact(kernel, normal_data(kernel.problem, window));
  }
}

TEMPLATE_TEST_CASE("flash attention: every tile", "", BOTH_KERNELS) {
  const ParameterInfo& tiles =
      kDescription<TestType>.parameters[parameter_index(kDescription<TestType>, "tile")];
  for (std::uint64_t tile = 0; tile <= tiles.max; ++tile) {
    for (const std::uint32_t size : {48u, 112u}) {
      if (!full() && (size == 112 || tile % 2 == 0)) continue;
      auto kernel = kernel_of<TestType>(70, 90, size);
      kernel.tile = static_cast<decltype(kernel.tile)>(tile);
      kernel.problem.group = 2;
      kernel.problem.tokens_first = tile % 2 == 0;
      check_exact(kernel, normal_data(kernel.problem, tile));
    }
  }
}

TEMPLATE_TEST_CASE("flash attention: lengths of each row, in device memory", "", BOTH_KERNELS) {
  auto kernel = kernel_of<TestType>(66, 140, 16);
  FlashProblem& p = kernel.problem;
  p.rows = 6;
  p.kv_heads = 2;
  p.max_seq = 145;
  p.variable = true;
  for (const std::uint32_t window : {0u, 20u}) {
    if (!full() && window == 0) continue;
    p.window = window;
    FlashData data = normal_data(p, 40);
    data.key_lengths = {140, 0, 64, 5, 4000000000u, 65};
    data.query_lengths = {66, 10, 0, 20, 64, 4000000000u};
    const std::vector<double> out = run(kernel, data);
    CHECK(nmse_of(out, exact_attention(p, as_stored(p, data))) <= kWanted<TestType>);
    const std::size_t row = 2 * 66 * 16;
    for (std::size_t i = row; i < 3 * row; ++i) CHECK((out[i] == 0 && !std::signbit(out[i])));
  }
}

TEMPLATE_TEST_CASE("flash attention: pages, a shared cache, a scale, precise functions", "",
                   BOTH_KERNELS) {
  for (const std::uint32_t page : {1u, 16u, 64u, 128u}) {
    if (!full() && page != 16) continue;
    auto kernel = kernel_of<TestType>(20, 200, 80);
    FlashProblem& p = kernel.problem;
    p.rows = 2;
    p.max_seq = 230;
    p.page = page;
    p.pages = 2 * p.table_width() + 3;
    p.variable = page == 16;
    p.tokens_first = true;
    FlashData data = normal_data(p, page);
    data.key_lengths = {200, 33};
    data.scale = 0.3f;
    check_exact(kernel, data);
  }
  auto kernel = kernel_of<TestType>(20, 70);
  kernel.problem.rows = 3;
  kernel.problem.shared_cache = true;
  kernel.problem.precise = true;
  check_exact(kernel, normal_data(kernel.problem, 5));
}

TEST_CASE("flash attention: types of q and out, and of the cache") {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    for (const ElementType cache :
         {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::q8_0}) {
      // Every day each type once or twice.
      if (!full() && (static_cast<unsigned>(type) + static_cast<unsigned>(cache)) % 3 != 0)
        continue;
      const double wanted = type == ElementType::f32   ? 1e-10
                            : type == ElementType::f16 ? 1e-5
                                                       : 1e-4;
      auto plain = kernel_of<FlashAttention>(18, 40, 64);
      plain.problem.type = type;
      plain.problem.cache = cache;
      const FlashData data = normal_data(plain.problem, 60);
      INFO(to_string(type) << ", cache " << to_string(cache));
      const std::vector<double> exact =
          exact_attention(plain.problem, as_stored(plain.problem, data));
      CHECK(nmse_of(run(plain, data), exact) <= wanted);
      if (cache == ElementType::f32 || cache == ElementType::q8_0) continue;
      FlashAttentionTensorCore tensor;
      tensor.problem = plain.problem;
      CHECK(nmse_of(run(tensor, data), exact) <= (cache == ElementType::f16 ? 1e-5 : 1e-4));
    }
  }
}

namespace {

/// One head whose scores are `scores` for each query.
template <class K>
struct Line {
  K kernel;
  FlashData data;
};
template <class K>
Line<K> line_of(const std::vector<double>& scores, std::uint32_t queries = 3) {
  Line<K> line;
  line.kernel = kernel_of<K>(queries, static_cast<std::uint32_t>(scores.size()), 16);
  line.kernel.problem.causal = false;
  line.data = normal_data(line.kernel.problem, 7);
  line.data.scale = 1;
  for (std::size_t e = 0; e < line.data.q.size(); ++e) line.data.q[e] = e % 16 == 5 ? 1 : 0;
  for (std::size_t i = 0; i < scores.size(); ++i) line.data.k[i * 16 + 5] = scores[i];
  return line;
}

}  // namespace

TEMPLATE_TEST_CASE(
    "flash attention: a maximum that rises in every tile, one in the first, equal ones", "",
    BOTH_KERNELS) {
  std::vector<double> rising(200);
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = 0.0625 * static_cast<double>(i);
  const std::vector<double> falling(rising.rbegin(), rising.rend());
  for (const std::vector<double>& scores : {rising, falling}) {
    const auto line = line_of<TestType>(scores);
    check_exact(line.kernel, line.data);
  }
  // Steep: the last position alone counts, and what came before is scaled to nothing.
  for (double& score : rising) score *= 4096;
  const auto steep = line_of<TestType>(rising);
  const std::vector<double> last = run(steep.kernel, steep.data);
  const std::vector<double> v = as_stored(steep.kernel.problem, steep.data).v;
  // Weights that are rounded to f16 are off by 2^-11 at most, of one score as of many.
  const double off = kTensorCores<TestType> ? 0x1p-11 : 0;
  for (std::size_t e = 0; e < 48; ++e) {
    const double value = v[199 * 16 + e % 16];
    CHECK(std::abs(last[e] - value) <= off * std::abs(value));
  }
  // Equal scores, of any size, give the mean.
  for (const double score : {0.0, -3.0, 9000.0}) {
    auto equal = line_of<TestType>(std::vector<double>(192, score));
    for (std::size_t i = 0; i < 192 * 16; ++i) equal.data.v[i] = static_cast<double>(i / 16 % 3);
    for (const double mean : run(equal.kernel, equal.data)) CHECK(std::abs(mean - 1) <= off + 1e-6);
  }
}

TEMPLATE_TEST_CASE("flash attention: scores of 10,000 are finite, and within what rounding allows",
                   "", BOTH_KERNELS) {
  auto kernel = kernel_of<TestType>(40, 100, 64);
  FlashData data = normal_data(kernel.problem, 31);
  data.scale = 400;
  const FlashData stored = as_stored(kernel.problem, data);
  const std::vector<double> exact = exact_attention(kernel.problem, stored);
  const std::vector<double> out = run(kernel, data);
  double largest = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    double score = 0;
    for (std::size_t e = 0; e < 64; ++e) score += stored.q[i * 64 + e] * stored.k[e];
    largest = std::max(largest, std::abs(score) * 400);
  }
  CHECK(largest > 5e3);
  for (const double value : out) CHECK(std::isfinite(value));
  // f32 scores of this size are off by some thousandths; q as f16 by units.
  if (!kTensorCores<TestType>) CHECK(nmse_of(out, exact) <= 1e-4);
}

TEMPLATE_TEST_CASE("flash attention: queries without keys, and scores of -inf, give exactly 0", "",
                   BOTH_KERNELS) {
  // The first 40 queries attend no key.
  auto kernel = kernel_of<TestType>(70, 30, 16);
  const std::vector<double> out = run(kernel, normal_data(kernel.problem, 9));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i / 16 < 40) CHECK((out[i] == 0 && !std::signbit(out[i])));
    if (i / 16 >= 40) CHECK((out[i] != 0 && std::isfinite(out[i])));
  }
  std::vector<double> scores(130, -INFINITY);
  const auto none = line_of<TestType>(scores);
  for (const double value : run(none.kernel, none.data)) CHECK(value == 0);
  scores[100] = -1e4;
  const auto one = line_of<TestType>(scores);
  const std::vector<double> v = as_stored(one.kernel.problem, one.data).v;
  const double off = kTensorCores<TestType> ? 0x1p-11 : 0;
  const double value = v[100 * 16 + 3];
  CHECK(std::abs(run(one.kernel, one.data)[3] - value) <= off * std::abs(value));
}

TEMPLATE_TEST_CASE("flash attention: NaN in a key reaches the queries that attend it, and no other",
                   "", BOTH_KERNELS) {
  auto kernel = kernel_of<TestType>(100, 100, 16);
  kernel.problem.window = 20;
  FlashData data = normal_data(kernel.problem, 23);
  data.k[60 * 16 + 2] = NAN;
  const std::vector<double> out = run(kernel, data);
  for (std::size_t i = 0; i < out.size(); ++i) {
    CHECK(std::isnan(out[i]) == (i / 16 >= 60 && i / 16 < 80));
  }
}

TEMPLATE_TEST_CASE("flash attention: sums of small integers are exact", "", BOTH_KERNELS) {
  // Equal scores of 0: each weight is 1, and a power of two of them divides exactly.
  auto line = line_of<TestType>(std::vector<double>(128, 0.0));
  for (std::size_t i = 0; i < 128 * 16; ++i) line.data.v[i] = static_cast<double>(i * 7 % 31) - 15;
  const std::vector<double> out = run(line.kernel, line.data);
  for (std::size_t e = 0; e < 16; ++e) {
    double sum = 0;
    for (std::size_t j = 0; j < 128; ++j) sum += line.data.v[j * 16 + e];
    CHECK(out[e] == sum / 128);
  }
}
