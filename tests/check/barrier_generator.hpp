// tests/check/barrier_generator.hpp - random kernels full of barriers
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace ptxgen::test {

/// A kernel of barriers of all kinds under control of all kinds: branches and loops, structured or
/// with jumps between them, exits, device functions; conditions of the thread's index, parameters,
/// blocks, loaded values, votes, bar.red, loop counters. It always reaches its end but for its
/// barriers. About one in three is safe.
struct BarrierKernel {
  std::string ptx;
  std::array<std::uint32_t, 3> block{96, 1, 1};
  bool shape_known = true;  ///< to the gate
};

/// Equal seeds give equal kernels.
[[nodiscard]] BarrierKernel random_barrier_kernel(std::uint64_t seed);

}  // namespace ptxgen::test
