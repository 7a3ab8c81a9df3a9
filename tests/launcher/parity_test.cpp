// tests/launcher/parity_test.cpp - batched kernels against their twins: all pairs, and wrong ones
#include "ptxgen/runtime/launch/parity.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <ctime>
#include <limits>
#include <map>

#include "parity_mutants.hpp"
#include "ptxgen/kernels.hpp"
#include "rig.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// No size is a multiple of 256; GQA of 3.
constexpr LayerSizes kSmall{.hidden = 300,
                            .intermediate = 520,
                            .heads = 6,
                            .kv_heads = 2,
                            .head_size = 64,
                            .outputs = 45,
                            .vocabulary = 777,
                            .positions = 100};

/// The only pair of a kernel, or that of a variant.
ParityPair pair_named(const KernelDescription& kernel, std::string_view name) {
  for (ParityPair& pair : parity_pairs({&kernel, 1}, kSmall)) {
    if (pair.batched_name == name) return std::move(pair);
  }
  FAIL("no pair " << name);
  return {};
}

/// Those that engines need first.
constexpr std::string_view kSixPairs[] = {
    "rmsnorm",        "batched_residual_add", "rope",
    "batched_swiglu", "batched_gemv q4_k",    "batched_gemv q6_k"};

const gates::ParityCheck* failure(const ParityResult& result, std::string_view name) {
  const auto found = std::find_if(result.checks.begin(), result.checks.end(),
                                  [&](const auto& c) { return c.name == name && !c.ok; });
  return found == result.checks.end() ? nullptr : &*found;
}

std::string all_failures(const ParityResult& result) {
  std::string text;
  for (const gates::ParityCheck& check : result.checks) {
    if (!check.ok) text += check.name + ": " + check.detail + "\n";
  }
  return text;
}

ParityResult compared(const KernelDescription& kernel, std::string_view name, bool launches) {
  const Device device = Device::open(driver::emulated::table(), 0, DeviceKind::Cuda);
  ParityOptions options;
  options.sizes = kSmall;
  options.rows = {1, 2, 3};
  options.launches = launches;
  return check_parity(device, pair_named(kernel, name), options);
}

}  // namespace

TEST_CASE("every registered pair passes parity for every number of rows") {
  const Device device = Device::open(driver::emulated::table(), 0, DeviceKind::Cuda);
  ParityOptions options;
  if (!full()) options.sizes = kSmall;
  if (kSanitized) options.rows = {1, 3};
  const ParityReport report = check_parity(device, options);
  CHECK(report.registered == registered_pairs(catalog()));
  CHECK(report.pairs.size() == report.registered);
  std::map<std::string, BatchStrategy> strategies;
  for (const ParityResult& pair : report.pairs) {
    INFO(pair.batched << "\n" << all_failures(pair));
    CHECK(pair.ok());
    strategies[pair.batched] = pair.strategy;
    std::vector<std::string> names;
    for (const gates::ParityCheck& check : pair.checks) names.push_back(check.name);
    for (const std::uint32_t rows : options.rows) {
      CHECK(std::count(names.begin(), names.end(), "M = " + std::to_string(rows)) == 1);
    }
    CHECK(std::count(names.begin(), names.end(), "reference") == 1);
  }
  CHECK(report.ok());
  for (const std::string_view name : kSixPairs) {
    INFO(name);
    REQUIRE(strategies.count(std::string(name)) == 1);
    const bool gemv = name.starts_with("batched_gemv");
    CHECK(strategies.at(std::string(name)) ==
          (gemv ? BatchStrategy::RegisterUnroll : BatchStrategy::GridY));
  }
  CHECK(report.registered >= 24);
  WARN(report.summary());
}

TEST_CASE("the code of six pairs is built and compared within its time on one core") {
  const Device device = Device::open(driver::emulated::table(), 0, DeviceKind::Cuda);
  ParityOptions options;
  options.launches = false;
  std::vector<ParityPair> pairs;
  for (ParityPair& pair : parity_pairs(catalog())) {
    const auto& six = kSixPairs;
    if (std::find(std::begin(six), std::end(six), pair.batched_name) != std::end(six))
      pairs.push_back(std::move(pair));
  }
  REQUIRE(pairs.size() == std::size(kSixPairs));
  double best_ms = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i) {
    const std::clock_t begin = std::clock();  // of this thread's process: nothing else runs
    for (const ParityPair& pair : pairs) CHECK(check_parity(device, pair, options).ok());
    best_ms = std::min(best_ms, 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  WARN("six pairs: " << best_ms << " ms, best of 5");
  constexpr double kLimit = 250;  // -O1 takes 90 to 130 on a busy machine, -O3 about 76
  if (!kSanitized) CHECK(best_ms <= kLimit);
}

TEST_CASE("parity of no pairs is a failure") {
  const Device device = Device::open(driver::emulated::table(), 0, DeviceKind::Cuda);
  const ParityReport none =
      check_parity(device, ParityOptions(), std::span<const KernelDescription>());
  CHECK(none.pairs.empty());
  CHECK_FALSE(none.ok());
  CHECK(none.summary() ==
        "0 kernel pairs are registered: PTX parity compared nothing, which is a failure");
  // Neither is a report that lost a pair, or a pair without checks.
  ParityReport lost;
  lost.registered = 1;
  CHECK_FALSE(lost.ok());
  lost.pairs.emplace_back();
  CHECK_FALSE(lost.ok());
  CHECK(lost.summary().starts_with("0/1 kernel pairs passed PTX parity in "));
}

TEST_CASE("parity: each defect fails the check that is named for it") {
  const LogOfTest log;  // of the findings
  std::map<std::string_view, std::size_t> by_check;
  for (const ParityMutant& mutant : parity_mutants()) {
    INFO(mutant.name);
    const KernelDescription& original = kernel_named(mutant.kernel);
    KernelDescription wrong = original;
    wrong.build_of = mutant.build_of;
    const ParityResult result = compared(wrong, mutant.pair, mutant.launches);
    INFO(all_failures(result));
    CHECK_FALSE(result.ok());
    const gates::ParityCheck* const check = failure(result, mutant.check);
    REQUIRE(check != nullptr);
    CHECK(check->detail.find(mutant.says) != std::string::npos);
    ++by_check[mutant.check];
  }
  for (const char* const name : {"strategy", "row offsets", "accumulators", "parameters", "loops",
                                 "shared memory", "shared addresses", "gates", "M = 1", "M = 2"}) {
    INFO(name);
    CHECK(by_check[name] >= 1);
  }
}

TEST_CASE("parity: what only a launch shows passes the comparison of the code") {
  for (const ParityMutant& mutant : parity_mutants()) {
    if (!mutant.launches) continue;
    INFO(mutant.name);
    KernelDescription wrong = kernel_named(mutant.kernel);
    wrong.build_of = mutant.build_of;
    const ParityResult result = compared(wrong, mutant.pair, false);
    INFO(all_failures(result));
    CHECK(result.ok());
  }
}

TEST_CASE("parity: a strategy that the code does not have") {
  const auto declared = [](std::string_view name, std::string_view pair, BatchStrategy strategy) {
    const KernelDescription& original = kernel_named(name);
    KernelBatch batch = *original.batch;
    batch.strategy = strategy;
    KernelDescription wrong = original;
    wrong.batch = &batch;
    const ParityResult result = compared(wrong, pair, false);
    const gates::ParityCheck* const check = failure(result, "strategy");
    REQUIRE(check != nullptr);
    return check->detail;
  };
  CHECK(declared("batched_gemv", "batched_gemv q4_k", BatchStrategy::GridY) ==
        "grid_y is declared, but the code shows register_unroll; each row of a batched operand is "
        "at an address of its own; declare the strategy that the kernel has, or move every batched "
        "pointer by %ctaid.y");
  CHECK(declared("rmsnorm", "rmsnorm", BatchStrategy::GridZ) ==
        "grid_z is declared, but the code shows grid_y; each row of a batched operand is at an "
        "address of its own; declare the strategy that the kernel has, or move every batched "
        "pointer by %ctaid.z");
  const std::string swapped = declared("rmsnorm", "rmsnorm", BatchStrategy::RegisterUnroll);
  CHECK(
      swapped.starts_with("register_unroll is declared, but the address of an access through x "));
  CHECK(
      swapped.ends_with("depends on %ctaid.y; register_unroll has all rows in one thread; declare "
                        "grid_y, or sum the rows in registers"));
}

TEST_CASE("parity: a launch of more rows than the code serves has to be refused") {
  KernelDescription wrong = kernel_named("batched_gemv");
  wrong.check_of = [](const void*, const void*) {};
  const ParityResult result = compared(wrong, "batched_gemv q8_0", true);
  const gates::ParityCheck* const check = failure(result, "m_dim");
  REQUIRE(check != nullptr);
  CHECK(check->detail ==
        "m_dim = 4 of a kernel that was built for 3 rows is not refused; more rows than the code "
        "serves have no result; refuse them in Describe<K>::check");
  CHECK(all_failures(result) == "m_dim: " + check->detail + "\n");
}

TEST_CASE("parity: ROPE, halves instead of neighbours") {
  KernelDescription wrong = kernel_named("rope");
  wrong.build_of = rope_of_halves;
  const ParityResult result = compared(wrong, "rope", true);
  const gates::ParityCheck* const check = failure(result, "M = 1");
  REQUIRE(check != nullptr);
  CHECK(check->detail.starts_with("first launch: row 0 of y differs from the twin on that row: "));
}

TEST_CASE("parity: results that the twin has wrong, too") {
  // Both are compared with fp64: twins that agree on a wrong result do not pass.
  KernelDescription single = kernel_named("rmsnorm");
  static KernelDescription wrong_twin = single;
  wrong_twin.reference_of = [](const void*, HostOperands& operands) {
    for (double& y : operands["y"].values) y = 1;
  };
  KernelBatch batch = *single.batch;
  batch.twin = []() -> const KernelDescription& { return wrong_twin; };
  single.batch = &batch;
  const ParityResult result = compared(single, "rmsnorm", true);
  CHECK(failure(result, "reference") != nullptr);
}
