// tests/litmus/lowered.hpp - memory operations of a kernel's threads, from its IR
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "memory_model.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::litmus {

/// A launch of a kernel whose only parameter is the address of `words` u32 in global memory.
struct Launch {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;          ///< of a block
  std::uint32_t cluster = 1;          ///< blocks of a cluster
  std::vector<std::uint32_t> device;  ///< of each block; empty: one device
  std::uint32_t words = 1;            ///< initially 0
};

/// What each thread of the launch does to memory. Locations 0 to words-1 of the program are the
/// words of the parameter, locations of shared memory follow. Threads without memory operations
/// are left out.
///
/// The code is executed for each thread: integer instructions are computed where their sources are
/// known, else as functions of what the thread reads. A guard or branch on such a value, and a
/// compare-and-swap, splits the path. Throws `std::runtime_error` with the instruction for what
/// this does not cover: vectors, floats in atomics, generic addresses of shared memory, accesses
/// that overlap in part, loops without end, barriers that threads use differently on their paths.
[[nodiscard]] Program read_program(const ptx::Module& module, std::string_view kernel,
                                   const Launch& launch);

}  // namespace ptxgen::litmus
