// bench/validation/kernels.hpp - the kernels that others timed
#pragma once

#include <cstdint>
#include <string>

#include "bench/validation/points.hpp"

namespace ptxgen::validation {

/// gpu-stream: one element of 8 bytes in each array for each thread, 2^27 + 2 elements, two blocks
/// on an SM. `gb_per_s` counts the bytes of all arrays.
[[nodiscard]] Point stream_point(std::uint32_t block, std::uint32_t arrays_read,
                                 std::uint32_t arrays_written, double gb_per_s);

/// gpu-small-kernels: `a[i] = b[i] * 0.25` over doubles, one for each thread, launched again and
/// again with a and b exchanged.
[[nodiscard]] Point small_point(const ptx::Gpu& gpu, std::uint64_t elements, std::uint32_t block,
                                double gb_per_s);

/// A kernel of another library of which only the bytes are known: 16 bytes of each input on the way
/// for each thread, all SMs full.
[[nodiscard]] Point library_point(const ptx::Gpu& gpu, std::string label, std::uint64_t bytes_read,
                                  std::uint64_t bytes_written, double us);

}  // namespace ptxgen::validation
