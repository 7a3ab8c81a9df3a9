// tests/analysis/memory_counts_test.cpp - requests as the emulator's own counters take them
#include "analysis/memory_counts.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "emulator/memory/access_counts.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using analysis::count_range;
using analysis::count_request;
using analysis::LaneAddress;

TEST_CASE("memory counts: sectors and wavefronts of random requests") {
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < test::count(3000, 50000); ++round) {
    const std::uint32_t sizes[] = {1, 2, 4, 8, 16, 32};
    const std::uint32_t bytes = sizes[random() % 6];
    const std::uint64_t apart = random() % 3 == 0 ? bytes : bytes * (random() % 40);
    const bool scattered = random() % 4 == 0;
    auto mask = static_cast<std::uint32_t>(random() % 2 == 0 ? random() : 0xffffffffu);
    if (mask == 0) mask = 1;
    std::uint64_t addresses[32] = {};
    std::vector<LaneAddress> lanes;
    const std::uint64_t base = bytes * (random() % 64);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      addresses[lane] = 4096 + base + (scattered ? bytes * (random() % 512) : lane * apart);
      if ((mask >> lane & 1) != 0) lanes.push_back({lane, addresses[lane]});
    }
    INFO("seed " << test::seed() << ", round " << round << ", bytes " << bytes << ", mask "
                 << mask);
    const auto global = emulator::count_sectors(addresses, mask, bytes);
    const auto self = count_request(ptx::Space::Global, lanes, bytes);
    CHECK(self.sectors == global.sectors);
    CHECK(self.ideal_sectors() == global.ideal);
    if (bytes > 16) continue;
    const auto local = emulator::count_local_sectors(addresses, mask, bytes);
    const auto own = count_request(ptx::Space::Local, lanes, bytes);
    CHECK(own.sectors == local.sectors);
    CHECK(own.ideal_sectors() == local.ideal);
    const auto shared = emulator::count_wavefronts(addresses, mask, bytes);
    const auto banks = count_request(ptx::Space::Shared, lanes, bytes);
    CHECK(banks.wavefronts == shared.wavefronts);
    CHECK(banks.phases == shared.ideal);
  }
}

TEST_CASE("memory counts: constants, one word at a time") {
  const LaneAddress same[] = {{0, 16}, {1, 16}, {5, 16}};
  const LaneAddress apart[] = {{0, 16}, {1, 20}, {5, 32}};
  CHECK(count_request(ptx::Space::Const, same, 4).wavefronts == 1);
  CHECK(count_request(ptx::Space::Const, apart, 4).wavefronts == 3);
  CHECK(count_request(ptx::Space::Const, same, 16).wavefronts == 1);
  CHECK(count_request(ptx::Space::Generic, same, 16).sectors == 0);
}

TEST_CASE("memory counts: a range is a request of one lane") {
  for (std::uint64_t at = 4096; at < 4096 + 64; at += 4) {
    for (const std::uint32_t bytes : {0u, 4u, 16u, 32u, 48u, 4096u}) {
      INFO(at << ' ' << bytes);
      const LaneAddress lane[] = {{0, at}};
      const auto range = count_range(at, bytes);
      const auto request = count_request(ptx::Space::Global, lane, bytes);
      CHECK(range.sectors == request.sectors);
      CHECK(range.distinct_bytes == request.distinct_bytes);
    }
  }
}
