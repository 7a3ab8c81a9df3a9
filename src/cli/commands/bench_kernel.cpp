// src/cli/commands/bench_kernel.cpp - ptxgen bench NAME: any kernel of the library
#include "cli/commands/bench_kernel.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands/bench_rules.hpp"
#include "cli/commands/library_kernel.hpp"
#include "cli/output/verification_text.hpp"
#include "cli_common/files.hpp"
#include "cli_common/numbers.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "ptxgen/support/trace.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

constexpr std::uint64_t kMaxLaunches = 1'000'000'000;

BenchmarkOptions counts_of(const BenchKernelOptions& options, const Settings& settings,
                           bool emulated) {
  const auto count = [](const char* name, const std::string& text, const char* by_default,
                        std::uint64_t min) {
    return whole_number(name, text.empty() ? by_default : text, min, kMaxLaunches);
  };
  BenchmarkOptions counts;
  // On the emulator later launches are not faster than the first.
  counts.launches = count("--iters", options.iters, options.cold ? "1" : emulated ? "3" : "100", 1);
  if (options.cold && counts.launches != 1) {
    throw UsageError(
        format_text("--iters {} with --cold: a cold round is one launch; ask for "
                    "more --rounds",
                    counts.launches));
  }
  counts.warmup = count("--warmup", options.warmup, emulated ? "1" : "10", 0);
  counts.cold = options.cold;
  const std::uint32_t rounds = !options.cold ? 5 : emulated ? 3 : 20;
  counts.rounds = options.rounds == 0 ? rounds : static_cast<std::uint32_t>(options.rounds);
  counts.operands.seed = options.seed;
  if (options.cublas) counts.cublas = settings;
  return counts;
}

// Units of 10^9 per second.
double rate(std::uint64_t amount, double microseconds) {
  return microseconds > 0 ? static_cast<double>(amount) / microseconds * 1e-3 : 0;
}

void add_cublas(nlohmann::json& document, const Benchmark& result) {
  const Verification& verified = result.cublas;
  if (result.cublas_microseconds.empty()) {
    document["cublas_missing"] = reason_of(verified);
    return;
  }
  const double median = result.cublas_median();
  document["cublas_version"] = result.cublas_version;
  document["cublas_us"] = result.cublas_microseconds;
  document["cublas_us_median"] = median;
  document["cublas_gflops"] = rate(result.cost.flops, median);
  document["cublas_ok"] = verified.ok();
  document["cublas_compared"] = verified.compared;
  document["cublas_wrong"] = verified.wrong;
  document["cublas_worst_error_over_bound"] = verified.worst_share;
}

std::string cublas_text(const Benchmark& result) {
  const Verification& verified = result.cublas;
  if (result.cublas_microseconds.empty()) {
    return format_text("cuBLAS is not measured: {}\n", reason_of(verified));
  }
  const double median = result.cublas_median();
  return format_text(
      "cuBLAS {} in turn: {:.2f} us, {:.2f} GFLOP/s, the kernel takes {:.2f} times as "
      "long; {}\n",
      result.cublas_version, median, rate(result.cost.flops, median),
      median > 0 ? result.median() / median : 0,
      verified.ok() ? format_text("right, largest error / bound {:.3f}", verified.worst_share)
                    : "WRONG: " + reason_of(verified));
}

nlohmann::json as_json(const LibraryKernel& kernel, const Benchmark& result,
                       const BenchmarkOptions& counts, const DeviceChoice& choice,
                       const std::string& gpu) {
  const Verification& verified = result.verification;
  const LaunchGeometry& geometry = result.geometry;
  const double median = result.median();
  const bool by_host = choice.emulator || choice.host;
  nlohmann::json document = {{"kernel", kernel.entry->name},
                             {"parameters", parameters_json(*kernel.entry, kernel.values)},
                             {"device", choice.name},
                             {"gpu", gpu},
                             {"emulated", choice.emulator},
                             {"timing_source", by_host ? "host" : "cuda_events"},
                             {"ok", verified.ok()},
                             {"implementation", verified.implementation},
                             {"grid", {geometry.grid.x, geometry.grid.y, geometry.grid.z}},
                             {"block", {geometry.block.x, geometry.block.y, geometry.block.z}},
                             {"iters", counts.launches},
                             {"warmup", counts.warmup},
                             {"rounds", counts.rounds},
                             {"seed", counts.operands.seed},
                             {"us", result.microseconds},
                             {"us_median", median},
                             {"bytes", result.cost.bytes()},
                             {"flops", result.cost.flops},
                             {"achieved_gbs", rate(result.cost.bytes(), median)},
                             {"achieved_gflops", rate(result.cost.flops, median)},
                             {"compared", verified.compared},
                             {"wrong", verified.wrong},
                             {"worst_error_over_bound", verified.worst_share},
                             {"findings", verified.findings}};
  document["cold"] = counts.cold;
  if (counts.cold) {
    const double copy = rate(result.copy_bytes, result.copy_median());
    document["lead_bytes"] = result.lead_bytes;
    document["copy_us"] = result.copy_microseconds;
    document["copy_us_median"] = result.copy_median();
    document["copy_gbs"] = copy;
    document["copy_share"] = copy > 0 ? rate(result.cost.bytes(), median) / copy : 0;
  }
  if (counts.cublas) add_cublas(document, result);
  if (!verified.ok()) document["error"] = reason_of(verified);
  if (choice.emulator) document["note"] = kEmulatedNote;
  return document;
}

std::string as_text(const LibraryKernel& kernel, const Benchmark& result,
                    const BenchmarkOptions& counts, const DeviceChoice& choice,
                    const std::string& gpu) {
  const Verification& verified = result.verification;
  std::string text =
      format_text("{} {}{}{} on {}\n", kernel.entry->name, verified.shape,
                  verified.implementation.empty() ? "" : ", ", verified.implementation, gpu);
  if (!result.microseconds.empty()) {
    const auto [low, high] =
        std::minmax_element(result.microseconds.begin(), result.microseconds.end());
    const double median = result.median();
    text += format_text(
        "{:.2f} us per launch, the median of {} rounds of {} ({:.2f} to {:.2f}); {:.2f} GB/s, "
        "{:.2f} GFLOP/s\n",
        median, counts.rounds, counts.launches, *low, *high, rate(result.cost.bytes(), median),
        rate(result.cost.flops, median));
  }
  if (!result.copy_microseconds.empty()) {
    const double copy = rate(result.copy_bytes, result.copy_median());
    text += format_text(
        "cold: {} read before each launch; a copy of as many bytes beside each: {:.2f} us, {:.2f} "
        "GB/s, of which the kernel has {:.1f} %\n",
        count_text(result.lead_bytes, "byte"), result.copy_median(), copy,
        copy > 0 ? rate(result.cost.bytes(), result.median()) / copy * 100 : 0);
  }
  if (counts.cublas) text += cublas_text(result);
  text += verified.ok() ? format_text("right: {} elements compared, largest error / bound {:.3f}\n",
                                      verified.compared, verified.worst_share)
                        : format_text("WRONG: {}\n", reason_of(verified));
  if (choice.emulator) text += format_text("{}\n", kEmulatedNote);
  return text;
}

}  // namespace

int bench_kernel(const BenchKernelOptions& options) {
  Settings settings = Settings::from_environment();
  Profile profile(options.profile);
  profile.apply(settings);
  const LibraryKernel kernel = library_kernel(options.kernel, options.settings);
  const DeviceChoice choice = options.device.choice(settings);
  const BenchmarkOptions counts = counts_of(options, settings, choice.emulator);
  const Device device = options.device.open(choice, settings);
  const Context context(device);
  LauncherOptions how;
  how.settings = settings;
  const Launcher launcher(context, how);
  Span span(device.trace(), "bench", "program");
  span.argument("kernel", kernel.entry->name);
  const Benchmark result = benchmark(launcher, context, *kernel.entry, kernel.values, counts);
  span.end();
  const std::string& gpu = device.info().name;
  write_output({}, options.json ? text_of(as_json(kernel, result, counts, choice, gpu))
                                : as_text(kernel, result, counts, choice, gpu));
  profile.report(device.trace());
  return result.verification.ok() ? kDone : kFound;
}

}  // namespace ptxgen::cli
