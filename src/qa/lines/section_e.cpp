// src/qa/lines/section_e.cpp - E: times on a GPU, exact counts on the emulator
#include <algorithm>
#include <chrono>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/gemv_check.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace section_e {
namespace {

// Cold launches of the planned GEMV, or of another kernel.
Benchmark measure(Fixture& fixture, std::string_view kernel, std::uint64_t size,
                  GemvChoice choice = GemvChoice::Auto) {
  const KernelDescription& description = kernel_named(kernel);
  std::vector<std::uint64_t> values = description.default_values();
  values[parameter_index(description, "k")] = size;
  values[parameter_index(description, "n")] = size;
  BenchmarkOptions options;
  options.launches = 1;
  options.rounds = 200;
  options.cold = true;
  const Launcher launcher = fixture.launcher(choice);
  return benchmark(launcher, fixture.context(), description, values, options);
}

// A cold time below a limit, beside the rate of a copy in the same process.
Outcome cold_time(Fixture& fixture, std::uint64_t size, double limit_us) {
  if (!fixture.facts.gpu) {
    return skipped(Need::Gpu,
                   "a time of the emulator is no result; thresholds are for sm_89 and "
                   "newer");
  }
  if (fixture.facts.device.sm < 89) return not_applicable("the threshold is for sm_89 and newer");
  Tally tally;
  const Benchmark result = measure(fixture, "gemv", fixture.changed() ? 2 * size : size);
  tally.check(result.verification.ok(), "the result is wrong: {}", result.verification.first_wrong);
  const double us = result.median();
  tally.check(us > 0 && us < limit_us, "median of 200 cold launches: {:.2f} us, limit {} us", us,
              limit_us);
  tally.figure(
      "median {:.2f} us of 200 cold launches, {} bytes, {:.0f} GB/s; a copy of as many "
      "bytes {:.2f} us",
      us, result.cost.bytes(), us > 0 ? static_cast<double>(result.cost.bytes()) / us / 1e3 : 0.0,
      result.copy_median());
  return tally.outcome();
}

Outcome time_4096(Fixture& fixture, const Line&) { return cold_time(fixture, 4096, 100); }
Outcome time_2048(Fixture& fixture, const Line&) { return cold_time(fixture, 2048, 30); }
Outcome time_8192(Fixture& fixture, const Line&) { return cold_time(fixture, 8192, 300); }

Outcome rate_from_host(Fixture& fixture, const Line&) {
  if (!fixture.facts.gpu) return skipped(Need::Gpu, "a rate of the emulator is no result");
  Tally tally;
  constexpr std::uint32_t kSize = 4096;
  const std::uint64_t matrix = std::uint64_t{kSize} * kSize;
  const std::uint64_t l2 = fixture.facts.device.limits.l2_bytes;
  const std::size_t matrices = 4 * l2 / (4 * matrix) + 1;
  const Problem problem = random_problem(kSize, kSize, 41);
  std::vector<Buffer<f32>> a;
  for (std::size_t i = 0; i < matrices; ++i) a.emplace_back(fixture.context(), problem.a);
  const Buffer<f32> x(fixture.context(), problem.x);
  const Buffer<f32> y(fixture.context(), std::uint64_t{kSize});
  const Launcher launcher = fixture.launcher();
  const Stream stream(fixture.context());
  const int launches = fixture.changed() ? 1 : 2000;
  launcher.gemv(y, a[0], x, kSize, kSize, stream);
  stream.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i) {
    launcher.gemv(y, a[static_cast<std::size_t>(i) % matrices], x, kSize, kSize, stream);
    if (fixture.changed()) stream.synchronize();
  }
  stream.synchronize();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::vector<float> result(kSize);
  y.read(result);
  check_gemv(tally, problem, result, kSize, "gemv");
  const double rate = launches / seconds;
  tally.check(rate > 10000, "{:.0f} products per second from the host, limit 10000", rate);
  tally.figure("{} launches over {} matrices in {:.4f} s: {:.0f} per second", launches, matrices,
               seconds, rate);
  return tally.outcome();
}

Outcome needs_counters(Fixture& fixture, const Line&) {
  if (!fixture.facts.gpu) return skipped(Need::Gpu, "counters of DRAM and L2 are a GPU's");
  return skipped(Need::Tool, "this program reads no hardware counters; ncu does");
}

// A launch of gemv_coalesced on the emulator, for its counters.
emulator::Result counted(Fixture& fixture, std::uint32_t k, std::uint32_t n) {
  const Problem problem = random_problem(k, n, 42);
  Emulation emulation(gpu_of(fixture.device().info()));
  return emulation.launch(fixture.build(GemvCoalesced{k, n}), GemvCoalesced{k, n}.geometry(),
                          {emulation.allocate(4 * std::uint64_t{n}), emulation.upload(problem.a),
                           emulation.upload(problem.x), k, n});
}

Outcome load_efficiency(Fixture& fixture, const Line&) {
  Tally tally;
  for (const std::uint32_t n : {1024u, 4096u}) {
    constexpr std::uint32_t kRows = 512;
    const emulator::Result result = counted(fixture, kRows, n);
    const emulator::MemoryCounters& load = result.counters.global_load;
    const double share =
        static_cast<double>(load.bytes) / (32.0 * static_cast<double>(load.sectors));
    tally.check(load.requests != 0 && share > 0.9,
                "n = {}: {} bytes in {} sectors: {:.1f} % are used", n, load.bytes, load.sectors,
                100 * share);
    // Four sectors for each row and warp, and for each warp's part of a tile of x.
    const std::uint64_t warps = n / 32;
    const std::uint64_t expected = warps * kRows * 4 + warps * (kRows / 256) * 4;
    tally.check(load.sectors == expected, "n = {}: {} sectors, by the layout {}", n, load.sectors,
                expected);
    tally.figure("{} x {}: {} sectors, {:.1f} % of their bytes used", kRows, n, load.sectors,
                 100 * share);
  }
  return tally.outcome();
}

Outcome bank_conflicts(Fixture& fixture, const Line&) {
  Tally tally;
  const emulator::Result result = counted(fixture, 513, 300);
  const emulator::SharedCounters& load = result.counters.shared_load;
  const emulator::SharedCounters& store = result.counters.shared_store;
  tally.check(load.requests != 0 && store.requests != 0, "no shared access was executed");
  tally.check(load.bank_conflicts + store.bank_conflicts == 0, "{} bank conflicts",
              load.bank_conflicts + store.bank_conflicts);
  tally.figure("0 conflicts in {} shared loads and {} stores of warps", load.requests,
               store.requests);
  return tally.outcome();
}

Outcome warp_efficiency(Fixture& fixture, const Line&) {
  Tally tally;
  const emulator::Result result = counted(fixture, 512, 4096);
  const double share = result.counters.warp_execution_efficiency();
  tally.check(share > 0.9, "{:.1f} % of the lanes are active", 100 * share);
  tally.figure("{} instructions of warps, {:.1f} % of the lanes active",
               result.counters.warp_instructions, 100 * share);
  return tally.outcome();
}

Outcome beside_strided(Fixture& fixture, const Line&) {
  if (!fixture.facts.gpu) return skipped(Need::Gpu, "a ratio of times");
  Tally tally;
  const Benchmark planned = measure(fixture, fixture.changed() ? "gemv_strided" : "gemv", 4096);
  const Benchmark strided = measure(fixture, "gemv_strided", 4096);
  tally.check(planned.verification.ok() && strided.verification.ok(), "a result is wrong");
  const double ratio = strided.median() / std::max(planned.median(), 1e-9);
  tally.check(ratio >= 10, "{:.1f} times the strided kernel, expected 10", ratio);
  tally.figure("{:.2f} us, strided {:.2f} us: {:.1f} times", planned.median(), strided.median(),
               ratio);
  return tally.outcome();
}

Outcome beside_cublas(Fixture& fixture, const Line&) {
  if (!fixture.facts.gpu) return skipped(Need::Gpu, "cuBLAS runs on a GPU alone");
  Tally tally;
  const Benchmark ours = measure(fixture, fixture.changed() ? "gemv_strided" : "gemv", 4096);
  Benchmark theirs;
  try {
    theirs = measure(fixture, "gemv", 4096, GemvChoice::Cublas);
  } catch (const std::exception& error) {
    return skipped(Need::Tool, error.what());
  }
  if (theirs.verification.error) return skipped(Need::Tool, theirs.verification.error_text());
  const double ratio = ours.median() / std::max(theirs.median(), 1e-9);
  tally.check(ours.verification.ok() && ratio <= 1.5, "{:.2f} times the time of cublasSgemv",
              ratio);
  tally.figure("{:.2f} us, cublasSgemv {:.2f} us", ours.median(), theirs.median());
  return tally.outcome();
}

constexpr Mutant kTwice{"the matrix has four times as many elements"};
constexpr Mutant kNoCounters{"no counters are read"};

constexpr Line kLines[] = {
    {"E1", Section::E, 3, "4096 x 4096 takes less than 0.1 ms",
     "median of 200 cold launches of the planned kernel, device-resident random data", Means::Gpu,
     time_4096, kTwice, "ptxgen bench gemv -p k=4096 -p n=4096"},
    {"E2", Section::E, 2, "2048 x 2048 takes less than 0.03 ms", "likewise", Means::Gpu, time_2048,
     kTwice, "ptxgen bench gemv -p k=2048 -p n=2048"},
    {"E3", Section::E, 2, "8192 x 8192 takes less than 0.3 ms", "likewise", Means::Gpu, time_8192,
     kTwice, "ptxgen bench gemv -p k=8192 -p n=8192"},
    {"E4",
     Section::E,
     3,
     "more than 10,000 products of 4096 x 4096 each second",
     "2000 launches in one stream over 4 x L2 of matrices, timed on the host from the first call "
     "to the end of the last",
     Means::Gpu,
     rate_from_host,
     {"each launch is waited for, and there is one"},
     "gemv-bench run"},
    {"E5", Section::E, 3, "the read rate is 79 % of the datasheet's or more",
     "dram__bytes_read.sum.per_second of ncu", Means::Gpu, needs_counters, kNoCounters,
     "ncu --metrics dram__bytes_read.sum.per_second"},
    {"E6",
     Section::E,
     3,
     "more than 90 % of the bytes of loaded sectors are used",
     "exact sectors of the emulator, equal to those of the layout",
     Means::Emulator,
     load_efficiency,
     {"a warp's columns are 128 bytes apart",
      [](ptx::Module& m) { set_operand(m, ptx::Op::mad_wide, 0, 2, ptx::Operand::integer(128)); },
      nullptr},
     "ptxgen gemv -p k=512 -p n=4096 --impl coalesced --json"},
    {"E7", Section::E, 2, "the products of a 7B model's layers allow 50 tokens each second",
     "summed times of 225 products, measured by gemv-bench", Means::Gpu, needs_counters,
     kNoCounters, "gemv-bench decode"},
    {"E8",
     Section::E,
     2,
     "ten times as fast as the strided kernel",
     "medians of 200 cold launches",
     Means::Gpu,
     beside_strided,
     {"the strided kernel is timed beside itself"},
     "ptxgen bench gemv_strided -p k=4096 -p n=4096"},
    {"E9",
     Section::E,
     3,
     "within 1.5 times the time of cublasSgemv",
     "the same data and layout",
     Means::Gpu,
     beside_cublas,
     {"the strided kernel takes the place of the planned one"},
     "ptxgen gemv -p k=4096 -p n=4096 --impl cublas"},
    {"E10",
     Section::E,
     2,
     "shared memory has no bank conflicts",
     "exact count of the emulator",
     Means::Emulator,
     bank_conflicts,
     {"threads store x eight bytes apart",
      [](ptx::Module& m) { set_operand(m, ptx::Op::mad, 1, 2, ptx::Operand::integer(8)); },
      nullptr},
     "ptxgen gemv -p k=513 -p n=300 --impl coalesced --json"},
    {"E11", Section::E, 2, "a cold run reads the matrix once",
     "L2 hit rate below 15 % and DRAM bytes within 5 % of the ideal, by ncu", Means::Gpu,
     needs_counters, kNoCounters, "ncu --metrics lts__t_sector_hit_rate.pct"},
    {"E12",
     Section::E,
     2,
     "more than 90 % of the lanes are active",
     "exact count of the emulator, 512 x 4096",
     Means::Emulator,
     warp_efficiency,
     {"half of the columns leave the sums",
      [](ptx::Module& m) {
        set_operand(m, ptx::Op::setp_unsigned, 0, 2, ptx::Operand::integer(16));
      },
      nullptr},
     "ptxgen gemv -p k=512 -p n=4096 --impl coalesced --json"},
};

}  // namespace
}  // namespace section_e

std::span<const Line> performance_lines() { return section_e::kLines; }

}  // namespace ptxgen::qa
