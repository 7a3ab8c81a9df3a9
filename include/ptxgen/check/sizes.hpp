// ptxgen/check/sizes.hpp - sizes whose last elements a kernel cannot see
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::gates {

/// A parameter of a kernel that is a number of elements.
struct SizeDeclaration {
  std::string name;
  std::uint64_t multiple = 1;  ///< values are multiples of it
};

/// Sizes of which the kernel uses only multiples of a power of two: rule `size-rounded-down`, an
/// error. Whatever it does for n elements it does for n rounded down, so the last ones are lost: a
/// number of tiles of n / 64 without a tile for the rest. Found by the bits of each parameter that
/// can reach a branch, an address, a store or any other effect; so what is reported is proved, and
/// a size that is rounded down by another number, or that something else uses as well, is not
/// reported. Parameters that are not declared, or that the kernel does not read, are not looked at.
[[nodiscard]] std::vector<Finding> sizes(const ptx::Module& module,
                                         std::span<const SizeDeclaration> declared);

}  // namespace ptxgen::inline v0::gates
