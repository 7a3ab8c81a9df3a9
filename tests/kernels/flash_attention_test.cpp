// tests/kernels/flash_attention_test.cpp - flash attention against fp64, and its extreme cases
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <map>

#include "flash_run.hpp"
#include "ptxgen/kernels/attention/flash_tensor_core.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr std::uint32_t kLengths[] = {1, 16, 17, 63, 64, 65, 128, 130};
constexpr std::uint32_t kSizes[] = {16, 32, 64, 80, 128};
struct Heads {
  std::uint32_t query, kv;
};
constexpr Heads kHeads[] = {{1, 1}, {4, 2}, {12, 2}};

std::string text_of(const FlashProblem& p) {
  return std::string(to_string(p.type)) + "/" + std::string(to_string(p.cache)) + " queries " +
         std::to_string(p.queries) + " keys " + std::to_string(p.keys) + " head_size " +
         std::to_string(p.head_size) + " heads " + std::to_string(p.heads()) + "/" +
         std::to_string(p.kv_heads) + (p.causal ? " causal" : "") + " window " +
         std::to_string(p.window) + (p.variable ? " variable" : "") + " page " +
         std::to_string(p.page) + (p.tokens_first ? " tokens first" : "");
}

/// Largest NMSE over fp64 of the operands as stored, of some launches.
struct Largest {
  double nmse = 0;
  std::size_t launches = 0;
};

template <class K>
void check_point(const K& kernel, const FlashData& data, double wanted, Largest& largest) {
  INFO(kDescription<K>.name << " " << text_of(kernel.problem));
  const FlashOutcome outcome = FlashRunner(kernel, data).run();
  CHECK(outcome.findings == "");
  const std::vector<double> exact =
      exact_attention(kernel.problem, as_stored(kernel.problem, data));
  const double nmse = nmse_of(outcome.out, exact);
  CHECK(nmse <= wanted);
  largest.nmse = std::max(largest.nmse, nmse);
  ++largest.launches;
}

// What tensor cores have of it: f16 and bf16 round the weights.
double wanted_of(const FlashAttentionTensorCore& kernel) {
  return kernel.problem.cache == ElementType::f16 ? 1e-5 : 1e-4;
}
// Rounding of the output included.
double wanted_of(const FlashAttention& kernel) {
  const ElementType type = kernel.problem.type;
  return type == ElementType::f32 ? 1e-10 : type == ElementType::f16 ? 1e-5 : 1e-4;
}

template <class K>
void check_grid(const char* name, const std::vector<ElementType>& types) {
  std::map<ElementType, Largest> table;
  std::uint64_t seed = 1;
  for (const std::uint32_t length : kLengths) {
    for (const std::uint32_t size : kSizes) {
      for (const Heads& heads : kHeads) {
        for (const bool causal : {true, false}) {
          ++seed;
          // Every day a spread of the smaller ones.
          const std::uint64_t work = std::uint64_t{heads.query} * length * length * size;
          if (!full() && (seed % 24 != 0 || work > 1'500'000)) continue;
          K kernel;
          FlashProblem& p = kernel.problem;
          p.kv_heads = heads.kv;
          p.group = heads.query / heads.kv;
          p.head_size = size;
          p.queries = p.keys = length;
          p.causal = causal;
          p.type = p.cache = types[seed / 16 % types.size()];
          check_point(kernel, normal_data(p, seed), wanted_of(kernel), table[p.type]);
        }
      }
    }
  }
  for (const auto& [type, largest] : table) {
    std::printf("%s, %s: %zu launches, largest NMSE %.2g\n", name,
                std::string(to_string(type)).c_str(), largest.launches, largest.nmse);
  }
}

}  // namespace

TEST_CASE("flash attention: lengths, head sizes and GQA are within their NMSE") {
  check_grid<FlashAttention>("flash_attention",
                             {ElementType::f32, ElementType::f16, ElementType::bf16});
  check_grid<FlashAttentionTensorCore>("flash_attention_tensor_core",
                                       {ElementType::f16, ElementType::bf16});
}
