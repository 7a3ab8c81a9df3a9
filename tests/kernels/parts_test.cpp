// tests/kernels/parts_test.cpp - parts, in kernels that use nothing else
#include <catch2/catch.hpp>
#include <numeric>

#include "kernels/parts/cluster_reduce.hpp"
#include "kernels/parts/staged_copy.hpp"
#include "ptxgen/runtime.hpp"
#include "ptxgen/runtime/device/findings.hpp"

using namespace ptxgen;

namespace {

constexpr std::uint32_t kThreads = 64;
constexpr std::uint32_t kStepBytes = kThreads * 4;
constexpr std::uint32_t kStages = 3;

struct Rig {
  Device device = Device::open("emulator");
  Context context{device};
  ptxgen::Stream stream{context};
  Launcher launcher{context};
};

// y[t] = sum over `steps` rows of x[row][t], by cp.async.
auto async_kernel() {
  return build_kernel("by_async", "sm_90", {"y", "x", "steps"},
                      [](KernelBuilder& k, Ptr<f32> y, Ptr<f32> x, Value<u32> steps) {
                        k.required_threads(kThreads);
                        const Value<u32> thread = k.tid_x();
                        const auto memory = k.shared<f32>(kStages * kThreads, "stages");
                        auto from = k.var((x + thread).cast<b8>());
                        AsyncStages stages(k,
                                           {.stages = kStages,
                                            .load_bytes = 4,
                                            .load_pitch = kStepBytes,
                                            .stage_bytes = kStepBytes,
                                            .step_bytes = kStepBytes},
                                           (memory.base() + thread).cast<b8>(), from);
                        stages.add_load(0);
                        auto sum = k.var<f32>(0.0f);
                        stages.run(steps, "end",
                                   [&] { sum += k.ld(stages.take()[0].cast<f32>()); });
                        y[thread] = sum;
                      });
}

// The same by bulk copies of the first thread.
auto bulk_kernel() {
  return build_kernel("by_bulk", "sm_90", {"y", "x", "steps"},
                      [](KernelBuilder& k, Ptr<f32> y, Ptr<f32> x, Value<u32> steps) {
                        k.required_threads(kThreads);
                        const Value<u32> thread = k.tid_x();
                        const Value<u32> lane = k.laneid();
                        const Pred producer = thread == 0u;
                        BulkStages stages(k, k.dynamic_shared<b8>().base(), kStages, kStepBytes);
                        stages.start(producer, kThreads / 32);
                        auto from = k.var(x.cast<b8>());
                        auto requested = k.var<u32>(0u);
                        const auto request = [&] {
                          k.if_(producer & (requested < steps), [&] {
                            stages.wait_empty();
                            const Mbarrier barrier = stages.barrier();
                            mbarrier_arrive_expect_tx(k, barrier, kStepBytes);
                            copy_bulk(k, stages.destination(), from.view(), kStepBytes, barrier);
                            from += kStepBytes;
                            requested += 1u;
                            stages.sent();
                          });
                        };
                        for (std::uint32_t i = 1; i < kStages; ++i) request();
                        auto sum = k.var<f32>(0.0f);
                        k.for_(0u, steps, 1u, [&] {
                          stages.wait_full();
                          sum += k.ld(stages.source().cast<f32>() + thread);
                          stages.release(lane);
                          request();
                          stages.received();
                        });
                        y[thread] = sum;
                      });
}

template <class K>
void check_sums(const K& kernel) {
  const Rig rig;
  for (const std::uint32_t steps : {0u, 1u, 2u, 3u, 4u, 17u}) {
    INFO(steps << " steps");
    std::vector<float> x(std::size_t{kThreads} * std::max(steps, 1u));
    std::iota(x.begin(), x.end(), 1.0f);
    const Buffer<f32> in(rig.context, x);
    const Buffer<f32> out(rig.context, kThreads);
    rig.launcher.launch(
        kernel, {.grid = {1}, .block = {kThreads}, .dynamic_shared_bytes = kStages * kStepBytes},
        rig.stream, out, in, steps);
    rig.stream.synchronize();
    std::vector<float> y(kThreads);
    out.read(y);
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      float sum = 0;
      for (std::uint32_t step = 0; step < steps; ++step) sum += x[step * kThreads + t];
      CHECK(y[t] == sum);
    }
  }
  CHECK(rig.device.findings().empty());
}

}  // namespace

TEST_CASE("stages by cp.async have each step once, for any number of steps") {
  check_sums(async_kernel());
}

TEST_CASE("stages by bulk copies have each step once, for any number of steps") {
  check_sums(bulk_kernel());
}

// y[cluster][t] = sum over the cluster's blocks of x[block][t], for the even threads.
TEST_CASE("a cluster's blocks are added in the order of their ranks, in the first of them") {
  constexpr float kValues[] = {1e8f, 1.0f, -1e8f, 0.5f, 3.0f, 1e8f, -1e8f, 0.25f};
  for (const std::uint32_t blocks : {2u, 4u, 8u}) {
    INFO(blocks << " blocks");
    constexpr std::uint32_t kClusters = 3;
    const auto kernel = build_kernel(
        "by_cluster", "sm_90", {"y", "x"}, [&](KernelBuilder& k, Ptr<f32> y, Ptr<f32> x) {
          k.required_threads(kThreads);
          k.cluster(blocks);
          const auto slots = k.shared<f32>(kThreads * (blocks - 1), "slots");
          cluster_arrive(k);
          const Value<u32> thread = k.tid_x();
          auto sum = k.var<f32>(x[k.mad_lo(k.ctaid_x(), kThreads, thread)]);
          const Pred even = (thread & 1u) == 0u;
          const Pred first = cluster_reduce(
              k, {blocks, cluster_rank(k), slots.base() + thread, kThreads * 4, even},
              [&](const Ptr<f32, ClusterShared>& slot) { k.st(slot, sum); },
              [&](const Ptr<f32, Shared>& slot) { sum += k.ld(slot); });
          k.if_(first & even, [&] { y[k.mad_lo(cluster_id(k), kThreads, thread)] = sum; });
        });
    const Rig rig;
    std::vector<float> x;
    for (std::uint32_t i = 0; i < kClusters * blocks * kThreads; ++i) {
      x.push_back(kValues[(i / kThreads + i) % std::size(kValues)]);
    }
    const Buffer<f32> in(rig.context, x);
    const Buffer<f32> out(rig.context, std::vector<float>(kClusters * kThreads, -1.0f));
    rig.launcher.launch(
        kernel, {.grid = {kClusters * blocks}, .block = {kThreads}, .cluster = {blocks, 1, 1}},
        rig.stream, out, in);
    rig.stream.synchronize();
    std::vector<float> y(kClusters * kThreads);
    out.read(y);
    for (std::uint32_t i = 0; i < y.size(); ++i) {
      const std::uint32_t thread = i % kThreads, begin = i / kThreads * blocks;
      float sum = 0;
      for (std::uint32_t b = 0; b < blocks; ++b) sum += x[(begin + b) * kThreads + thread];
      INFO("cluster " << i / kThreads << ", thread " << thread);
      CHECK(y[i] == (thread % 2 == 0 ? sum : -1.0f));
    }
    CHECK(rig.device.findings().empty());
  }
}
