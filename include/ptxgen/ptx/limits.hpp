// ptxgen/ptx/limits.hpp - limits of blocks and multiprocessors
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ptxgen/ptx/types.hpp"

namespace ptxgen::inline v0::ptx {

/// Limits of a block and of a multiprocessor (SM) of an architecture. A row of src/ptx/target.cpp;
/// shared bytes per block are in `Target`. Fields with an initialiser are the same on every
/// architecture of the table.
struct Limits {
  std::uint16_t sm = 0;
  std::uint16_t threads_per_sm = 0;
  std::uint16_t blocks_per_sm = 0;
  std::uint32_t shared_per_sm = 0;  ///< bytes
  std::uint16_t fma_per_clock = 0;  ///< of f32, by an SM
  std::uint32_t threads_per_block = 1024;
  std::array<std::uint32_t, 3> block{1024, 1024, 64};  ///< threads in x, y, z
  std::uint32_t registers_per_thread = 255;            ///< 32-bit
  std::uint32_t registers_per_block = 65536;
  std::uint32_t registers_per_sm = 65536;
  std::uint32_t constant_bytes = 65536;  ///< `.const` variables of a module
  std::uint32_t cluster_blocks = 8;  ///< portable limit; up to twice as many if a kernel opts in
};

/// The row of the target's architecture, ignoring its suffix. For an unknown one the next newer
/// row, or else the newest.
[[nodiscard]] const Limits& limits(std::string_view target) noexcept;

/// Maximum bytes of kernel parameters in that PTX version.
[[nodiscard]] std::uint32_t parameter_bytes(Version version) noexcept;

}  // namespace ptxgen::inline v0::ptx
