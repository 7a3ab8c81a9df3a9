// src/driver/emulated/reservations.hpp - virtual memory management (cuMemAddressReserve, cuMemMap)
#pragma once

#include <string>

#include "driver/emulated/state.hpp"
#include "emulator/state/address_space.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// Memory of cuMemCreate, without an address. Counted as used until it has neither references nor
/// mappings.
struct MemoryHandle {
  std::uint64_t bytes = 0;
  CUmemAllocationProp properties{};
  emulator::Pages pages;
  std::uint64_t references = 1;  ///< cuMemCreate and cuMemRetainAllocationHandle, less cuMemRelease
};

/// What a context has reserved and mapped. Its address space is divided accordingly: adjacent
/// mappings with the same access are one part, so that a copy may go over all of them.
struct Reservations {
  struct Mapping {
    std::uint64_t bytes = 0;
    CUmemGenericAllocationHandle handle = 0;
    std::shared_ptr<MemoryHandle> memory;
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  };
  struct Range {
    std::uint64_t bytes = 0;
    std::map<CUdeviceptr, Mapping> mappings;
  };
  std::mutex mutex;  ///< guards what follows; taken last
  std::map<CUdeviceptr, Range> ranges;
  std::map<CUmemGenericAllocationHandle, std::shared_ptr<MemoryHandle>> handles;
};

/// The accessible bytes around an address; 0 bytes if it is in no reservation or not accessible.
[[nodiscard]] emulator::Device::Extent accessible_extent(CUctx_st& context, CUdeviceptr address);
/// Why an address in a reservation is not accessible, for messages; empty if it is, or is in none.
[[nodiscard]] std::string why_inaccessible(CUctx_st& context, CUdeviceptr address);
/// The mapping that holds an address. False if there is none.
[[nodiscard]] bool find_mapping(CUctx_st& context, CUdeviceptr address,
                                emulator::Device::Extent& extent, CUmemAccess_flags& access);

}  // namespace ptxgen::inline v0::driver::emulated
