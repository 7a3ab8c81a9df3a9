// bench/gemv/common_options.hpp - options that run and tune share
#pragma once

#include <cstdint>
#include <string>

#include "cli_common/command_line.hpp"
#include "cli_common/device_choice.hpp"
#include "bench/gemv/run.hpp"

namespace ptxgen::gemv_bench {

/// Problems, samples and the device, as the command line has them; an empty text says nothing.
struct MeasuringWords {
  std::string shapes;
  std::string layout = "T,R";
  std::string dtype = "f32,f16,bf16";
  std::string n;
  std::string chain;
  std::string seconds;
  std::uint64_t seed = 0;
  std::string device;
  std::string gpu;
};

/// `words` must live as long as the command.
void add_measuring(cli::Command& command, MeasuringWords& words);

/// What the words say, the rest as default_bench_options has it. UsageError names a wrong word.
[[nodiscard]] BenchOptions bench_options(const MeasuringWords& words, const DeviceInfo& device);

/// How far a run is, in one line of standard error that is written over; nothing if that is no
/// terminal.
class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { end(); }
  [[nodiscard]] BenchProgress shower() const;
  void end();  ///< wipes it out

 private:
  bool shown_;
};

}  // namespace ptxgen::gemv_bench
