// src/emulator/memory/faults.hpp - findings about accesses to memory
#pragma once

#include <cstdint>

#include "emulator/memory/request.hpp"

namespace ptxgen::inline v0::emulator {

/// One lane of an access that fails a check.
struct Fault {
  Context& context;
  const Step& step;
  const MemoryDetail& detail;
  const AccessRequest& request;
  ptx::Space space;  ///< of the address; never Generic
  unsigned lane;
  std::uint64_t address;       ///< device address, or offset in the space
  const Cta* owner = nullptr;  ///< of shared memory; null: the thread's own block
};

/// Rule out-of-bounds if an allocation is near or was freed, else invalid-address. True if no
/// allocation holds the bytes but a GPU maps them (RunFinding::mapped).
bool report_bounds(const Fault& fault);
void report_misaligned(const Fault& fault);
void report_readonly(const Fault& fault);
void report_unwritten(const Fault& fault);
/// Shared memory of a block of the cluster that has exited; rule exited-block.
void report_exited(const Fault& fault);
/// Another block's shared memory, accessed by a .shared::cta instruction; rule invalid-address.
void report_not_own(const Fault& fault);
/// An mbarrier instruction on memory without an mbarrier object; rule uninitialized-read.
void report_no_object(const Fault& fault);

}  // namespace ptxgen::inline v0::emulator
