// src/cli/output/captured_output.cpp - keeps what others print to standard output
#include "cli/output/captured_output.hpp"

#ifndef _WIN32
#include <unistd.h>
#endif

#include <iostream>

namespace ptxgen::cli {

#ifndef _WIN32

CapturedOutput::CapturedOutput(bool wanted) {
  if (!wanted) return;
  file_ = std::tmpfile();
  if (file_ == nullptr) return;
  std::cout.flush();
  std::fflush(stdout);
  saved_ = ::dup(STDOUT_FILENO);
  if (saved_ >= 0 && ::dup2(::fileno(file_), STDOUT_FILENO) < 0) {
    ::close(saved_);
    saved_ = -1;
  }
}

void CapturedOutput::restore() noexcept {
  if (saved_ < 0) return;
  std::fflush(stdout);
  (void)::dup2(saved_, STDOUT_FILENO);
  ::close(saved_);
  saved_ = -1;
}

#else

CapturedOutput::CapturedOutput(bool) {}
void CapturedOutput::restore() noexcept {}

#endif

CapturedOutput::~CapturedOutput() {
  restore();
  if (file_ != nullptr) std::fclose(file_);
}

std::string CapturedOutput::text() {
  restore();
  std::string all;
  if (file_ == nullptr) return all;
  std::rewind(file_);
  char piece[4096];
  while (const std::size_t count = std::fread(piece, 1, sizeof piece, file_)) {
    all.append(piece, count);
  }
  return all;
}

}  // namespace ptxgen::cli
