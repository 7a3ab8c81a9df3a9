// bench/gemv/common_options.cpp - options that run and tune share
#include "bench/gemv/common_options.hpp"

#include <iostream>
#include <utility>

#include "cli_common/files.hpp"
#include "cli_common/numbers.hpp"
#include "cli_common/program.hpp"

namespace ptxgen::gemv_bench {

void add_measuring(cli::Command& command, MeasuringWords& words) {
  command.add_option("--shapes", words.shapes,
                     "grid, decode, a model or KxN, with commas between (default grid; emulator "
                     "256x256)");
  command.add_option("--layout", words.layout, "T, R").capture_default_str();
  command.add_option("--dtype", words.dtype, "f32, f16, bf16; with layout R also q4_0 to q6_k")
      .capture_default_str();
  command.add_option("--n", words.n, "samples of each (default 200; emulator 5)");
  command.add_option("--chain", words.chain, "launches of a chain (default 64; emulator 4)");
  command.add_option("--seconds", words.seconds, "begin no problem after so many");
  command.add_option("--seed", words.seed, "of the random inputs").capture_default_str();
  command.add_option("--device", words.device, "auto, emulator, host or cuda:N");
  command.add_option("--gpu", words.gpu, "the GPU to emulate: h200, ..., or sm_90 and the like");
}

BenchOptions bench_options(const MeasuringWords& words, const DeviceInfo& device) {
  BenchOptions result = default_bench_options(device);
  const bool emulated = device.kind == DeviceKind::Emulator;
  result.shapes =
      bench_shapes(words.shapes.empty() ? (emulated ? "256x256" : "grid") : words.shapes);
  result.layouts = bench_layouts(words.layout);
  result.types = bench_types(words.dtype);
  if (!words.n.empty()) result.measure.samples = cli::whole_number("--n", words.n, 1, 1'000'000);
  if (!words.chain.empty()) {
    result.min_chain =
        static_cast<std::uint32_t>(cli::whole_number("--chain", words.chain, 1, 1u << 20));
  }
  if (!words.seconds.empty()) {
    result.seconds =
        static_cast<double>(cli::whole_number("--seconds", words.seconds, 0, 1'000'000));
  }
  result.seed = words.seed;
  return result;
}

ProgressLine::ProgressLine() : shown_(cli::is_terminal(cli::Stream::Err)) {}

BenchProgress ProgressLine::shower() const {
  return [shown = shown_](std::size_t done, std::size_t all, const std::string& what) {
    if (shown) std::cerr << "\r[" << done << '/' << all << "] " << what << "\x1b[K" << std::flush;
  };
}

void ProgressLine::end() {
  if (std::exchange(shown_, false)) std::cerr << "\r\x1b[K" << std::flush;
}

}  // namespace ptxgen::gemv_bench
