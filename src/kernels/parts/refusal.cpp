// src/kernels/parts/refusal.cpp - kernels that cannot be built
#include "kernels/parts/refusal.hpp"

#include <utility>

#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

void refuse_build(std::string_view kernel, std::string_view code, const ptx::Target* target,
                  std::string message) {
  Error error(Stage::Build, std::string(code), std::move(message));
  error.kernel = kernel;
  if (target != nullptr) error.target = target->name;
  throw error.refresh();
}

}  // namespace ptxgen::inline v0
