// src/cli/output/verification_text.hpp - why a verification failed
#pragma once

#include <string>

#include "ptxgen/runtime/launch/verify.hpp"

namespace ptxgen::cli {

/// Why the result is not ok, in one sentence.
[[nodiscard]] std::string reason_of(const Verification& result);

}  // namespace ptxgen::cli
