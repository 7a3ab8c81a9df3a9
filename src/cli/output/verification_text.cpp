// src/cli/output/verification_text.cpp - why a verification failed
#include "cli/output/verification_text.hpp"

#include "support/format.hpp"

namespace ptxgen::cli {

std::string reason_of(const Verification& result) {
  if (result.error) return result.error->what();
  if (result.wrong != 0) {
    return format_text("{} of {} elements are outside their bound; {}", result.wrong,
                       result.compared, result.first_wrong);
  }
  if (result.outside != 0) {
    return format_text("{} bytes outside the outputs were changed", result.outside);
  }
  return result.findings.empty() ? "nothing was compared" : result.findings.front();
}

}  // namespace ptxgen::cli
