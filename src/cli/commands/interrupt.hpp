// src/cli/commands/interrupt.hpp - Ctrl-C that ends long work in order
#pragma once

#include <csignal>

namespace ptxgen::cli {

/// While it lives, the first SIGINT is recorded and does not end the process; the next one does.
/// One at a time.
class Interrupt {
 public:
  Interrupt() noexcept;
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  [[nodiscard]] bool requested() const noexcept;

 private:
  void (*before_)(int);
};

}  // namespace ptxgen::cli
