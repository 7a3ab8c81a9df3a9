// tests/support/served_target.hpp - targets for tests that go through the catalog
#pragma once

#include "ptxgen/kernels/description.hpp"

namespace ptxgen::test {

/// The preferred target, or sm_90a for a kernel that the preferred one cannot run.
[[nodiscard]] inline const ptx::Target& served_target(const KernelDescription& kernel,
                                                      std::string_view preferred) {
  const ptx::Target& target = ptx::target(preferred);
  return kernel.serves(target) ? target : ptx::target("sm_90a");
}

}  // namespace ptxgen::test
