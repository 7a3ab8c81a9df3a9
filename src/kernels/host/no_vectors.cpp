// src/kernels/host/no_vectors.cpp - a build without Highway has no vector functions
#include "ptxgen/kernels/host.hpp"

namespace ptxgen::inline v0 {

std::span<const HostTarget> host_targets() noexcept { return {}; }

}  // namespace ptxgen::inline v0
