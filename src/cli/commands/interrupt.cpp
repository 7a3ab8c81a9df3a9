// src/cli/commands/interrupt.cpp - Ctrl-C that ends long work in order
#include "cli/commands/interrupt.hpp"

namespace ptxgen::cli {

namespace {

// A signal handler can reach nothing but a variable of the process.
volatile std::sig_atomic_t interrupted = 0;

extern "C" void record_interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() noexcept {
  interrupted = 0;
  before_ = std::signal(SIGINT, record_interrupt);
  // Started with the signal ignored, as nohup does.
  if (before_ == SIG_IGN) std::signal(SIGINT, SIG_IGN);
}

Interrupt::~Interrupt() {
  if (before_ != SIG_ERR) std::signal(SIGINT, before_);
}

bool Interrupt::requested() const noexcept { return interrupted != 0; }

}  // namespace ptxgen::cli
