// src/ptx/occupancy.hpp - occupancy of a multiprocessor
#pragma once

#include <cstdint>

#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/target.hpp"

/// NVIDIA's occupancy rules, as the CUDA C++ Programming Guide (technical specifications per
/// compute capability) and the toolkit's cuda_occupancy.h (13.0) give them: what a block takes of a
/// multiprocessor in warps, registers and shared memory, and how often that fits.
namespace ptxgen::inline v0::ptx {

/// What a kernel takes.
struct BlockNeeds {
  std::uint32_t threads = 0;
  std::uint32_t registers = 0;           ///< 32-bit registers of a thread
  std::uint64_t static_shared = 0;       ///< bytes
  std::uint64_t dynamic_shared = 0;      ///< bytes
  std::uint64_t max_dynamic_shared = 0;  ///< opted in to, bytes
};

/// Blocks of such a kernel that are on one multiprocessor at a time; 0 if a block does not fit.
///
/// Registers are given to whole warps in units of 256, from one quarter of the register file each.
/// Shared memory is given in units of 128 bytes (256 before sm_80), with 1024 bytes for the system
/// in each block (none before sm_80); the multiprocessor is taken to be configured for as much of
/// it as it has. A block that fits but for its registers counts as fitting once: declared registers
/// are an upper bound of those that a compiler would allocate, and a launch is never refused for
/// them.
[[nodiscard]] std::uint32_t blocks_per_sm(const Gpu& gpu, const BlockNeeds& needs) noexcept;

/// Registers of a thread with which `blocks` blocks of `threads` are on a multiprocessor together,
/// at most 255: what an assembler keeps to for `.minnctapersm` (ptxas 13.0 did, to the register,
/// for 3 to 10 blocks of 33 to 224 threads).
[[nodiscard]] std::uint32_t max_registers(std::uint32_t registers_per_sm, std::uint32_t threads,
                                          std::uint32_t blocks) noexcept;
/// What a kernel's directives leave of them: `.maxnreg`; `.reqntid` or `.maxntid`, with
/// `.minnctapersm` if the GPU can hold so many blocks. 255 without any.
[[nodiscard]] std::uint32_t max_registers(const Gpu& gpu, const Function& function) noexcept;

/// The most dynamic shared memory with which `blocks` such blocks are on one multiprocessor
/// together, in bytes, at most `needs.max_dynamic_shared`; 0 if none is left.
/// `needs.dynamic_shared` is not looked at.
[[nodiscard]] std::uint64_t available_dynamic_shared(const Gpu& gpu, const BlockNeeds& needs,
                                                     std::uint32_t blocks) noexcept;

/// Shared memory is given to blocks in units of so many bytes.
[[nodiscard]] std::uint64_t shared_unit(const Gpu& gpu) noexcept;
/// Bytes of shared memory in each block that the system keeps.
[[nodiscard]] std::uint32_t reserved_shared(const Gpu& gpu) noexcept;

}  // namespace ptxgen::inline v0::ptx
