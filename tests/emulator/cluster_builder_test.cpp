// tests/emulator/cluster_builder_test.cpp - kernels with clusters and bulk copies, built and run
#include <catch2/catch.hpp>

#include <cstring>
#include <numeric>

#include "emulator/memory_kernels.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/builder/cluster.hpp"

using namespace ptxgen;
using test::findings_of;

namespace {

constexpr unsigned kStages = 3, kChunk = 64, kThreads = 64;

/// out[cluster] = sum of the cluster's part of in: each block sums what it copies into a ring of
/// stages, rank 0 adds what the others have written into its memory.
ptx::Module cluster_sum(unsigned blocks, unsigned chunks) {
  KernelBuilder k("cluster_sum", "sm_90");
  const auto in = k.param<Ptr<u32>>("in");
  const auto out = k.param<Ptr<u32>>("out");
  k.cluster(blocks);
  const auto ring = k.shared<u32>(kStages * kChunk, "ring", 128);
  const auto bars = k.shared<u64>(kStages, "bars");
  const auto sums = k.shared<u32>(blocks * kThreads, "sums");
  const auto tid = k.tid_x();
  const Pred first = tid == 0;
  k.if_(first, [&] {
    for (unsigned s = 0; s < kStages; ++s) mbarrier_init(k, bars.base() + s, 1);
    fence_mbarrier_init(k);
  });
  grid_wait(k);
  k.bar_sync();
  const auto own = in + k.ctaid_x() * (chunks * kChunk);
  const auto fill = [&](unsigned chunk) {
    k.if_(first, [&] {
      const Mbarrier bar = bars.base() + chunk % kStages;
      mbarrier_arrive_expect_tx(k, bar, kChunk * 4);
      copy_bulk(k, ring.base() + chunk % kStages * kChunk, own + chunk * kChunk, kChunk * 4, bar);
    });
  };
  for (unsigned chunk = 0; chunk < std::min(kStages, chunks); ++chunk) fill(chunk);
  auto sum = k.var<u32>(0);
  for (unsigned chunk = 0; chunk < chunks; ++chunk) {
    mbarrier_wait(k, bars.base() + chunk % kStages, chunk / kStages % 2);
    sum = sum + k.ld(ring.base() + chunk % kStages * kChunk + tid);
    k.bar_sync();
    if (chunk + kStages < chunks) fill(chunk + kStages);
  }
  const auto rank = cluster_rank(k);
  cluster_sync(k);
  k.st(map_rank(k, sums.base(), 0) + (rank * kThreads + tid), sum);
  cluster_sync(k);
  k.if_((rank == 0) & first, [&] {
    auto total = k.var<u32>(0);
    k.for_(0u, blocks * kThreads, 1u,
           [&](const auto& i) { total = total + k.ld(sums.base() + i); });
    k.st(out + cluster_id(k), total);
  });
  return k.build().module();
}

}  // namespace

TEST_CASE("a sum over clusters, made with the builder") {
  const unsigned blocks = 4, chunks = 7, clusters = 2;
  emulator::Device device(emulator::default_gpu("sm_90"));
  emulator::Program program = emulator::Program::load(device, cluster_sum(blocks, chunks));
  std::vector<std::uint32_t> values(clusters * blocks * chunks * kChunk);
  std::iota(values.begin(), values.end(), 3u);
  const std::uint64_t in = device.allocate(values.size() * 4, "in");
  const std::uint64_t out = device.allocate(clusters * 4, "out");
  device.write(in, std::as_bytes(std::span(values)));
  std::byte parameters[16];
  std::memcpy(parameters, &in, 8);
  std::memcpy(parameters + 8, &out, 8);
  emulator::Launch launch;
  launch.kernel = "cluster_sum";
  launch.grid = {clusters * blocks, 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.parameters = parameters;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    emulator::Options options;
    options.seed = seed;
    options.checks = emulator::RuleSet::all();
    const emulator::Result result = emulator::run(program, launch, options);
    REQUIRE(findings_of(result) == "");
    std::vector<std::uint32_t> sums(clusters);
    device.read(out, std::as_writable_bytes(std::span(sums)));
    const std::size_t part = values.size() / clusters;
    for (unsigned c = 0; c < clusters; ++c) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(c * part);
      REQUIRE(sums[c] == std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(part), 0u));
    }
    // All bytes of `in` come by copies, each once.
    CHECK(result.counters.bulk_load.bytes == values.size() * 4);
    CHECK(result.counters.bulk_load.sectors == values.size() / 8);
    CHECK(result.counters.global_load.requests == 0);
    CHECK(result.counters.peer_store.bytes == clusters * (blocks - 1) * kThreads * 4);
  }
}
