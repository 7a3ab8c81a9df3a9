// bench/gemv/common_options.hpp - options that run and tune share
#pragma once

#include <cstdint>
#include <string>

#include "bench/gemv/run.hpp"
#include "cli_common/command_line.hpp"
#include "cli_common/device_choice.hpp"

namespace ptxgen::gemv_bench {

/// Options for problems, samples and the device; an empty text means the default.
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

/// The options, with the defaults of default_bench_options. `UsageError` names an invalid value.
[[nodiscard]] BenchOptions bench_options(const MeasuringWords& words, const DeviceInfo& device);

/// The progress of a run in one line of standard error that is overwritten. Prints nothing if that
/// is not a terminal.
class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { end(); }
  [[nodiscard]] BenchProgress shower() const;
  void end();  ///< clears the line

 private:
  bool shown_;
};

}  // namespace ptxgen::gemv_bench
