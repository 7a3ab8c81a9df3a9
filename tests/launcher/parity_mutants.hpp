// tests/launcher/parity_mutants.hpp - batched kernels with one defect each
#pragma once

#include <span>
#include <string_view>

#include "ptxgen/kernels/description.hpp"

namespace ptxgen::test {

/// A batched kernel with a defect, and the check of parity that reports it.
struct ParityMutant {
  std::string_view name;
  std::string_view kernel;  ///< of the catalog
  std::string_view pair;    ///< the kernel, or one of its variants
  std::string_view check;   ///< that fails
  std::string_view says;    ///< a part of its text
  bool launches = false;    ///< whether only launches show the defect
  ptx::Module (*build_of)(const void* spec, const ptx::Target& target) = nullptr;
};

[[nodiscard]] std::span<const ParityMutant> parity_mutants();

/// `rope`, but it rotates pairs of the halves of a head where that rotates neighbours.
[[nodiscard]] ptx::Module rope_of_halves(const void* spec, const ptx::Target& target);

}  // namespace ptxgen::test
