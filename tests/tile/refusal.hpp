// tests/tile/refusal.hpp - the error that a call throws, as text
#pragma once

#include <string>

#include "ptxgen/support/error.hpp"

namespace ptxgen::test {

/// "code: message", or "no error".
template <class Work>
std::string refusal(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.code + ": " + error.message;
  }
  return "no error";
}

}  // namespace ptxgen::test
