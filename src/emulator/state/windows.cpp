// src/emulator/state/windows.cpp - state spaces of generic addresses
#include "emulator/state/windows.hpp"

namespace ptxgen::inline v0::emulator {

bool find_owner(const Context& context, std::uint64_t& address, Cta*& owner) noexcept {
  std::uint64_t offset = address;
  if (in_window(offset, kSharedWindow)) offset -= kSharedWindow;
  const std::uint64_t place = offset / kPeerBytes;
  const std::vector<Cta*>& blocks = context.cta->cluster->blocks;
  if (place > blocks.size()) return false;
  owner = place == 0 ? context.cta : blocks[place - 1];
  address = offset % kPeerBytes;
  return true;
}

std::uint64_t window_start(ptx::Space space) noexcept {
  switch (space) {
    case ptx::Space::Shared:
      return kSharedWindow;
    case ptx::Space::Local:
      return kLocalWindow;
    case ptx::Space::Param:
      return kParamWindow;
    default:
      return 0;
  }
}

}  // namespace ptxgen::inline v0::emulator
