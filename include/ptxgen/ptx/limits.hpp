// ptxgen/ptx/limits.hpp - what a block and a multiprocessor can hold
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ptxgen/ptx/types.hpp"

namespace ptxgen::inline v0::ptx {

/// What blocks of an architecture may have, and how many a multiprocessor (SM) holds. A row of
/// src/ptx/target.cpp; shared bytes of a block are columns of `Target`. Figures with a value here
/// are the same on every architecture of the table.
struct Limits {
  std::uint16_t sm = 0;
  std::uint16_t threads_per_sm = 0;
  std::uint16_t blocks_per_sm = 0;
  std::uint32_t shared_per_sm = 0;  ///< bytes
  std::uint32_t threads_per_block = 1024;
  std::array<std::uint32_t, 3> block{1024, 1024, 64};  ///< threads in x, y, z
  std::uint32_t registers_per_thread = 255;            ///< 32-bit
  std::uint32_t registers_per_block = 65536;
  std::uint32_t registers_per_sm = 65536;
  std::uint32_t constant_bytes = 65536;  ///< `.const` variables of a module
  std::uint32_t cluster_blocks = 8;      ///< everywhere; up to twice as many where a kernel asks
};

/// The row of the architecture of that target, whatever its suffix. For one that the table does not
/// have, the next newer row, else the newest.
[[nodiscard]] const Limits& limits(std::string_view target) noexcept;

/// Bytes that the parameters of a kernel may have in PTX of that version.
[[nodiscard]] std::uint32_t parameter_bytes(Version version) noexcept;

}  // namespace ptxgen::inline v0::ptx
