// src/cli/output/captured_output.hpp - keeps what others print to standard output
#pragma once

#include <cstdio>
#include <string>

namespace ptxgen::cli {

/// Catches what is written to standard output below our own streams, as the driver writes device
/// printf. Where that is not possible (no POSIX, no temporary file) nothing is caught.
class CapturedOutput {
 public:
  /// Does nothing if not `wanted`.
  explicit CapturedOutput(bool wanted);
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;
  ~CapturedOutput();

  /// Ends the capture; what was written meanwhile.
  [[nodiscard]] std::string text();

 private:
  void restore() noexcept;

  std::FILE* file_ = nullptr;
  int saved_ = -1;
};

}  // namespace ptxgen::cli
