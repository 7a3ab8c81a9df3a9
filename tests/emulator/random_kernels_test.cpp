// tests/emulator/random_kernels_test.cpp - random kernels: threads, seeds and handlers agree
#include <catch2/catch.hpp>

#include <string>

#include "kernel_runner.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

constexpr std::uint64_t kNumbers = 1'000'000;

/// Fails the test case unless two runs left the same.
void check_same(const KernelOutcome& expected, const KernelOutcome& got) {
  CHECK(got.status == expected.status);
  CHECK(got.findings == expected.findings);
  CHECK(got.out == expected.out);
  CHECK(got.sum == expected.sum);
  CHECK(got.printed == expected.printed);
  CHECK(got.counters == expected.counters);
}

emulator::Options options_for(std::uint64_t schedule, unsigned threads) {
  emulator::Options options;
  options.seed = schedule;
  options.threads = threads;
  options.max_instructions = 1'000'000;
  return options;
}

}  // namespace

TEST_CASE("a random kernel gives the same with any handlers") {
  const int kernels = count(60, 2000);
  std::size_t replaced = 0;
  for (int i = 0; i < kernels; ++i) {
    const std::uint64_t number = seed() * kNumbers + static_cast<std::uint64_t>(i);
    const RandomKernel kernel =
        random_kernel(number, i % 4 == 3 ? RaceKind::Shared : RaceKind::None);
    INFO("kernel " << number << "\n" << kernel.ptx);
    KernelRunner chosen(kernel);
    const KernelOutcome expected = chosen.run(options_for(0, 1));
    for (const Handlers handlers :
         {Handlers::LaneByLane, Handlers::Baseline, Handlers::Avx2, Handlers::Avx512}) {
      if (!offers(handlers)) continue;
      INFO(name(handlers));
      KernelRunner other(kernel, handlers);
      if (handlers == Handlers::LaneByLane) replaced += other.replaced();
      check_same(expected, other.run(options_for(0, 1)));
    }
  }
  CHECK(replaced > static_cast<std::size_t>(kernels) * 20);
}

TEST_CASE("a random kernel gives the same with any number of threads") {
  const int kernels = count(60, 2000);
  for (int i = 0; i < kernels; ++i) {
    const std::uint64_t number = seed() * kNumbers + 5000 + static_cast<std::uint64_t>(i);
    const RaceKind races = i % 3 == 2 ? RaceKind::Shared : RaceKind::None;
    const RandomKernel kernel = random_kernel(number, races);
    INFO("kernel " << number << "\n" << kernel.ptx);
    KernelRunner runner(kernel);
    for (const std::uint64_t schedule : {std::uint64_t{0}, std::uint64_t{1} + number}) {
      const KernelOutcome expected = runner.run(options_for(schedule, 1));
      for (const unsigned threads : {2u, 3u, 8u}) {
        INFO("seed " << schedule << ", " << threads << " threads");
        check_same(expected, runner.run(options_for(schedule, threads)));
      }
    }
  }
}

TEST_CASE("a random kernel without races gives the same in any schedule, and no finding") {
  const int kernels = count(60, 2000);
  for (int i = 0; i < kernels; ++i) {
    const std::uint64_t number = seed() * kNumbers + 10000 + static_cast<std::uint64_t>(i);
    const RandomKernel kernel = random_kernel(number, RaceKind::None);
    INFO("kernel " << number << "\n" << kernel.ptx);
    KernelRunner runner(kernel);
    emulator::Options options = options_for(0, 1);
    options.checks = emulator::RuleSet::all();
    const KernelOutcome expected = runner.run(options);
    CHECK(expected.status == emulator::Status::Ok);
    CHECK(expected.findings.empty());
    for (std::uint64_t schedule = 1; schedule <= 4; ++schedule) {
      INFO("seed " << schedule);
      options.seed = schedule;
      const KernelOutcome got = runner.run(options);
      CHECK(got.findings.empty());
      CHECK(got.out == expected.out);
      CHECK(got.sum == expected.sum);
    }
  }
}

TEST_CASE("a random kernel with races is reported in every schedule") {
  const int kernels = count(30, 500);
  int racy = 0;
  for (int i = 0; i < kernels; ++i) {
    const std::uint64_t number = seed() * kNumbers + 15000 + static_cast<std::uint64_t>(i);
    const RandomKernel kernel = random_kernel(number, RaceKind::Global);
    if (kernel.ptx.find("[%sum") == std::string::npos) continue;
    if (kernel.grid.count() * kernel.block.count() < 2) continue;
    INFO("kernel " << number << "\n" << kernel.ptx);
    KernelRunner runner(kernel);
    emulator::Options options = options_for(0, 1);
    options.checks = emulator::RuleSet::all();
    for (std::uint64_t schedule = 0; schedule < 3; ++schedule) {
      INFO("seed " << schedule);
      options.seed = schedule;
      const KernelOutcome got = runner.run(options);
      CHECK((got.findings.find("global-race") != std::string::npos ||
             got.findings.find("race-same-value") != std::string::npos));
      ++racy;
    }
  }
  CHECK(racy > 0);
}

}  // namespace ptxgen::test
