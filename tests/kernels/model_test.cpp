// tests/kernels/model_test.cpp - the law of memory under load, rates, predictions of launches
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/model/law.hpp"
#include "ptxgen/kernels.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

const ptx::Gpu& gpu(std::string_view name) { return *ptx::find_gpu(name); }

// A copy of so many f32 by blocks of 256 threads, 16 bytes a thread.
LaunchWork copy_of(std::uint64_t elements) {
  LaunchWork work;
  work.bytes_read = work.bytes_written = 4 * elements;
  work.blocks = elements / 1024 + 1;
  work.blocks_per_sm = 8;
  return work;
}

}  // namespace

TEST_CASE("a sequence under load takes the time at which its rate and its latency agree") {
  std::mt19937_64 random(test::seed());
  std::uniform_real_distribution<double> exponent(-3, 3);
  for (int i = 0; i < test::count(2000, 200000); ++i) {
    const model::Sequence sequence{std::pow(10, exponent(random)), std::pow(10, exponent(random))};
    const double dram = std::pow(10, exponent(random));
    const double us = model::under_load(sequence, dram);
    INFO(sequence.us << " " << sequence.growth_us << " " << dram << " -> " << us);
    const double load = dram / us;
    const double waited = sequence.us + sequence.growth_us * load * load;
    CHECK(load <= 1);
    // Full DRAM is the time of its bytes; otherwise the time of the loads.
    if (load == 1) {
      CHECK(waited <= us * (1 + 1e-6));
    } else {
      CHECK(us == Approx(waited).epsilon(1e-6));
    }
  }
  CHECK(model::under_load({3, 0}, 0) == 3);
  CHECK(model::under_load({0, 0}, 5) == 5);
  CHECK(model::under_load({0, 0}, 0) == 0);
}

TEST_CASE("times that must all pass take a little more than the longest") {
  CHECK(model::together(2.0, 0.0) == Approx(2));
  CHECK(model::together(1.0, 1.0) == Approx(std::pow(2, 1.0 / 6)));
  CHECK(model::together(3.0, 1.0, 1.0) < 3.01);
}

TEST_CASE("reads and writes together cost rate and latency, each alone does not") {
  const GpuRates rates = rates_of(gpu("gh200"));
  for (const double share : {0.0, 1.0}) {
    CHECK(model::mixed(rates, share).gb_per_s == rates.read_gb_per_s);
    CHECK(model::mixed(rates, share).growth_ns == rates.growth_ns);
  }
  // gpu-small-kernels: a copy far beyond the L2 has 3401 of 3888 GB/s on a GH200.
  CHECK(model::mixed(rates, 0.5).gb_per_s == Approx(0.9175 * rates.read_gb_per_s));
  CHECK(model::mixed(rates, 0.5).growth_ns > 2 * rates.growth_ns);
  CHECK(model::mixed(rates, 0.25).gb_per_s > model::mixed(rates, 0.5).gb_per_s);
}

TEST_CASE("what was measured on a GPU is taken as it is") {
  const GpuRates rates = rates_of(gpu("gh200"));
  CHECK(rates.measured);
  CHECK(rates.read_gb_per_s == Approx(0.9665 * 4023));
  CHECK(rates.latency_ns == 562);
  CHECK(rates.growth_ns == 448);
  CHECK(rates.graph_us == 1.27);
}

TEST_CASE("what was not is carried over from the nearest GPUs, each figure in its unit") {
  ptx::Gpu wanted;
  wanted.target = "sm_90";
  wanted.clock_mhz = 1000;
  wanted.sms = 10;
  wanted.bandwidth_gb_per_s = 1000;
  wanted.dram = ptx::Dram::HBM;
  const auto other = [](std::string_view target, ptx::Dram dram, ptx::MeasuredRates rates) {
    ptx::Gpu built;
    built.target = target;
    built.clock_mhz = 2000;
    built.sms = 100;
    built.dram = dram;
    built.measured = rates;
    return built;
  };
  std::vector<ptx::Gpu> known = {
      other("sm_80", ptx::Dram::GDDR, {.read_share = 0.5, .latency_ns = 100, .graph_us = 9})};
  // Neither the architecture nor the memory: better than nothing.
  CHECK(rates_of(wanted, known).read_gb_per_s == Approx(500));
  known.push_back(
      other("sm_80", ptx::Dram::HBM, {.read_share = 0.8, .latency_ns = 200, .growth_ns = 50}));
  known.push_back(other("sm_100", ptx::Dram::HBM, {.read_share = 0.9, .latency_ns = 300}));
  GpuRates rates = rates_of(wanted, known);
  CHECK_FALSE(rates.measured);
  CHECK(rates.read_gb_per_s == Approx(850));
  CHECK(rates.latency_ns == Approx(500));  // 400 and 600 clocks at 1 GHz
  CHECK(rates.growth_ns == Approx(125));   // a quarter of the latency
  CHECK(rates.graph_us == 9);
  known.push_back(other("sm_90a", ptx::Dram::HBM, {.read_share = 0.95, .l2_gb_per_s = 40000}));
  rates = rates_of(wanted, known);
  CHECK(rates.read_gb_per_s == Approx(950));
  CHECK(rates.latency_ns == Approx(500));
  CHECK(rates.l2_gb_per_s == Approx(2000));  // a tenth of the SMs, half the clock
}

TEST_CASE("every GPU of the table has all rates, and plausible ones") {
  for (const ptx::Gpu& row : ptx::gpus()) {
    INFO(row.name);
    const GpuRates rates = rates_of(row);
    CHECK(rates.read_gb_per_s > 0.8 * row.bandwidth_gb_per_s);
    CHECK(rates.read_gb_per_s < row.bandwidth_gb_per_s);
    CHECK(rates.latency_ns > 350);
    CHECK(rates.latency_ns < 1000);
    CHECK(rates.start_ns < rates.latency_ns);
    CHECK(rates.growth_ns > 0);
    CHECK(rates.block_ns > 0.3);
    CHECK(rates.block_ns < 1);
    CHECK(rates.l2_gb_per_s >= rates.read_gb_per_s);
    CHECK(rates.graph_us < rates.stream_us);
  }
}

TEST_CASE("predictions grow with the bytes and fall with the bytes in flight") {
  for (const ptx::Gpu& row : ptx::gpus()) {
    INFO(row.name);
    double before = 0;
    for (std::uint64_t elements = 1024; elements <= std::uint64_t{1} << 30; elements *= 4) {
      const double us = predict(copy_of(elements), row).us;
      CHECK(us >= before);
      before = us;
    }
    LaunchWork work = copy_of(1u << 28);
    work.blocks_per_sm = 1;
    before = 1e9;
    for (const double bytes : {4, 16, 64, 256, 1024}) {
      work.bytes_in_flight = bytes;
      const double us = predict(work, row).us;
      CHECK(us <= before);
      before = us;
    }
    // At full load the rate of DRAM decides.
    const LaunchPrediction full = predict(copy_of(1u << 28), row);
    CHECK(full.bound_by == "dram");
    CHECK(full.us < 1.1 * full.terms.dram);
  }
}

TEST_CASE("data in the L2 is faster, up to its size") {
  const ptx::Gpu& row = gpu("gh200");
  const PredictOptions warm{Boundary::Graph, true};
  const LaunchWork small = copy_of(1u << 20);
  const LaunchWork large = copy_of(1u << 28);
  CHECK(predict(small, row, warm).us < predict(small, row).us);
  CHECK(predict(small, row, warm).terms.dram == 0);
  CHECK(predict(large, row, warm).us == Approx(predict(large, row).us));
  // Cold, an output that the L2 holds is not written to DRAM by the kernel.
  LaunchWork reading = small;
  reading.bytes_written = 0;
  CHECK(predict(small, row).terms.dram == predict(reading, row).terms.dram);
  CHECK(predict(small, row).terms.l2 > 0);
}

TEST_CASE("a prediction names its largest term, its regime and its error") {
  const ptx::Gpu& row = gpu("gh200");
  const LaunchPrediction tiny = predict(copy_of(1024), row);
  CHECK(tiny.bound_by == "launch");
  CHECK(tiny.regime == Regime::Reads);
  CHECK(tiny.error.worst == error_band(Regime::Reads, true).worst);
  LaunchWork threads = copy_of(1u << 22);
  threads.threads = 32;
  threads.blocks = 1u << 20;
  CHECK(predict(threads, row).bound_by == "blocks");
  LaunchWork starved = copy_of(1u << 28);
  starved.blocks = 8;
  CHECK(predict(starved, row).bound_by == "latency");
  CHECK(predict(copy_of(1u << 28), row).regime == Regime::Mixed);
  CHECK(predict(copy_of(1024), row, {Boundary::Graph, true}).regime == Regime::Repeated);
  CHECK(unproved(Boundary::Graph).empty());
  CHECK(unproved(Boundary::Programmatic) ==
        "the boundary of a programmatic dependent launch rests on two published timings, which "
        "disagree");
  // A GPU that was never measured has a wider band.
  CHECK(predict(copy_of(1024), gpu("b200")).error.worst > tiny.error.worst);
}

TEST_CASE("the work of described kernels: traffic, geometry, loads in flight") {
  const ptx::Gpu& row = gpu("h200");
  const auto work = [&](std::string_view name) {
    const KernelDescription& kernel = kernel_named(name);
    return launch_work(kernel, kernel.default_values(), row);
  };
  const LaunchWork silu = work("silu");
  CHECK(silu.bytes_read == 4u << 20);
  CHECK(silu.bytes_written == 4u << 20);
  CHECK(silu.threads == 256);
  CHECK(silu.blocks == 1024);
  CHECK(silu.blocks_per_sm == 8);
  CHECK(silu.bytes_in_flight == 16);
  CHECK(work("swiglu").bytes_in_flight == 32);  // of each input
  for (const KernelDescription& kernel : catalog()) {
    INFO(kernel.name);
    if (kernel.family != nullptr) continue;
    const LaunchPrediction built = predict(work(kernel.name), row);
    CHECK(std::isfinite(built.us));
    CHECK(built.us >= built.terms.launch);
    CHECK(built.us >= built.terms.dram);
  }
}
