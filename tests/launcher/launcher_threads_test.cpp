// tests/launcher/launcher_threads_test.cpp - one launcher, many threads
#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

#include "launcher/rig.hpp"
#include "ptxgen/kernels.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

TEST_CASE("threads launch through one launcher, hits and misses mixed, each on its stream") {
  Rig rig;
  constexpr std::uint32_t kThreads = 8;
  constexpr std::uint32_t kRounds = 20;
  std::atomic<int> wrong{0};
  std::atomic<int> thrown{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        const Stream stream(rig.context);
        for (std::uint32_t round = 0; round < kRounds; ++round) {
          // Shapes that other threads ask for too, at the same time or before.
          const std::uint32_t k = 1 + (round + t) % 5;
          const std::uint32_t n = 3;
          const Buffer<f32> y(rig.context, n);
          const Buffer<f32> a(rig.context, std::vector<float>(k * n, static_cast<float>(t)));
          const Buffer<f32> x(rig.context, std::vector<float>(k, 2.0f));
          rig.launcher.gemv(y, a, x, k, n, stream);
          const LaunchPlan plan = rig.launcher.plan(Vadd{.n = n}, {.c = y, .a = y, .b = y}, stream);
          plan.launch();
          stream.synchronize();
          const auto expected = static_cast<float>(4 * k * t);
          wrong += read(y) != std::vector<float>(n, expected);
        }
      } catch (const std::exception&) {
        ++thrown;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(thrown == 0);
  CHECK(rig.launcher.cache().statistics().compiles == 6);
}
