// tests/kernels/catalog_test.cpp - kernels by name, geometry, cost
#include <algorithm>
#include <catch2/catch.hpp>

#include "ptxgen/kernels.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;

TEST_CASE("the catalog lists the kernels in order, with ranges that hold their defaults") {
  std::vector<std::string_view> names;
  for (const KernelDescription& entry : catalog()) {
    names.push_back(entry.name);
    CHECK(find_kernel(entry.name) == &entry);
    CHECK_FALSE(entry.doc.empty());
    CHECK_FALSE(entry.access_pattern.empty());
    for (const ParameterInfo& parameter : entry.parameters) {
      CHECK(parameter.min <= parameter.default_value);
      CHECK(parameter.default_value <= parameter.max);
    }
  }
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(names.size() >= 10);
  CHECK(find_kernel("gem") == nullptr);
}

TEST_CASE("values outside a parameter's range are refused by name") {
  const KernelDescription* vadd = find_kernel("vadd");
  const std::vector<std::uint64_t> zero{0, 0};
  const std::vector<std::uint64_t> huge{std::uint64_t{1} << 32, 0};
  try {
    (void)vadd->cost(zero);
    FAIL("n = 0 was accepted");
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Build);
    CHECK(error.code == "bad-parameter");
    CHECK(error.kernel == "vadd");
    CHECK(error.message == "n is 0, outside 1..4294967295");
  }
  CHECK_THROWS_AS((void)vadd->cost(huge), Error);
  CHECK_THROWS_AS((void)vadd->cost({}), Error);
}

TEST_CASE("blocks are 256 threads and the grid covers n") {
  const std::pair<std::uint32_t, std::uint32_t> elementwise[] = {
      {1, 1}, {1023, 1}, {1024, 1}, {1025, 2}, {4096, 4}, {4097, 5}, {~0u, 4194304}};
  for (const auto& [n, blocks] : elementwise) {
    CHECK(Vadd{n}.geometry() == LaunchGeometry{{blocks, 1, 1}, {256, 1, 1}, 0});
    CHECK(Copy{n}.geometry() == LaunchGeometry{{blocks, 1, 1}, {256, 1, 1}, 0});
    CHECK(FmaRpt{n, 1}.geometry() == LaunchGeometry{{blocks, 1, 1}, {256, 1, 1}, 0});
    CHECK(Vadd{n, ElementType::f16}.geometry().grid.x == (blocks + 1) / 2);
    CHECK(Vadd{n, ElementType::bf16, 512}.geometry().grid.x == (blocks + 3) / 4);
    CHECK(Copy{n, 1024, 7}.geometry() == LaunchGeometry{{7, 1, 1}, {1024, 1, 1}, 0});
  }
  try {
    (void)Copy{100, 1025}.geometry();
    FAIL("a block of 1025 threads was accepted");
  } catch (const Error& error) {
    CHECK(error.code == "bad-block");
    CHECK(error.message == "a block of 1025 threads; the size must be 1 to 1024");
  }

  const std::pair<std::uint32_t, std::uint32_t> cases[] = {
      {1, 1}, {255, 1}, {256, 1}, {257, 2}, {4096, 16}, {4097, 17}, {~0u, 16777216}};
  for (const auto& [n, blocks] : cases) {
    CHECK(GemvCoalesced{4096, n}.geometry() == LaunchGeometry{{blocks, 1, 1}, {256, 1, 1}, 0});
    CHECK(GemvStrided{7, n}.geometry() == LaunchGeometry{{n, 1, 1}, {32, 1, 1}, 0});
  }
}

TEST_CASE("an empty output has no geometry") {
  try {
    (void)GemvCoalesced{4096, 0}.geometry();
    FAIL("n = 0 was accepted");
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Launch);
    CHECK(error.code == "empty-grid");
    CHECK(error.kernel == "gemv_coalesced");
    CHECK(error.message ==
          "n is 0, which leaves no block to launch; skip the launch for an empty output");
  }
  CHECK_THROWS_AS(Vadd{0}.geometry(), Error);
  CHECK_NOTHROW((void)GemvCoalesced{0, 1}.geometry());
}

TEST_CASE("costs are the work models, beyond 32 bits too") {
  const KernelCost gemv = GemvCoalesced{4096, 4096}.cost();
  CHECK(gemv.bytes_read == 4ull * (4096ull * 4096 + 4096));
  CHECK(gemv.bytes_written == 4 * 4096);
  CHECK(gemv.flops == 2ull * 4096 * 4096);
  CHECK(GemvStrided{65536, 65536}.cost().flops == 2ull * 65536 * 65536);
  CHECK(Vadd{1000}.cost().bytes() == 3 * 1000 * 4);
  CHECK(Vadd{1000}.cost().flops == 1000);
  CHECK(Copy{3000000000u}.cost().bytes() == 8ull * 3000000000u);
  CHECK(Vadd{1000, ElementType::f16}.cost().bytes() == 3 * 1000 * 2);
  CHECK(Copy{5}.cost().flops == 0);
  CHECK(FmaRpt{1u << 30, 1u << 20}.cost().flops == 2ull << 50);
  CHECK(FmaRpt{10, 3}.cost().bytes() == 80);
}
