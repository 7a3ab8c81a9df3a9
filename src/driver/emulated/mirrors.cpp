// src/driver/emulated/mirrors.cpp - device memory that mirrors registered host memory
#include "driver/emulated/mirrors.hpp"

#include <algorithm>
#include <cstring>

#include "emulator/state/address_space.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

void copy_to_device(emulator::AddressSpace& space, CUctx_st::Mirror& mirror) {
  std::copy_n(mirror.host, mirror.before.size(), mirror.before.begin());
  space.write(mirror.device, mirror.before);
}

/// Copies back the bytes that differ from those that the operation found.
void copy_to_host(const emulator::AddressSpace& space, const CUctx_st::Mirror& mirror) {
  constexpr std::size_t kChunk = 256;
  const std::byte* const now = space.host(mirror.device);
  const std::byte* const before = mirror.before.data();
  for (std::size_t start = 0; start < mirror.before.size(); start += kChunk) {
    const std::size_t end = std::min(start + kChunk, mirror.before.size());
    if (std::memcmp(now + start, before + start, end - start) == 0) continue;
    for (std::size_t i = start; i < end; ++i) {
      if (now[i] != before[i]) mirror.host[i] = now[i];
    }
  }
}

}  // namespace

void add_mirror(CUctx_st& context, std::byte* host, CUdeviceptr device, std::uint64_t bytes) {
  const std::lock_guard lock(context.memory_mutex);
  context.mirrors.push_back({host, device, std::vector<std::byte>(bytes)});
  context.mirrored.store(true, std::memory_order_release);
}

bool remove_mirror(CUctx_st& context, const std::byte* host) {
  const std::lock_guard lock(context.memory_mutex);
  const auto removed =
      std::erase_if(context.mirrors, [&](const auto& mirror) { return mirror.host == host; });
  if (context.mirrors.empty()) context.mirrored.store(false, std::memory_order_release);
  return removed != 0;
}

Mirroring::Mirroring(CUctx_st& context)
    : context_(context), any_(context.mirrored.load(std::memory_order_acquire)) {
  if (!any_) return;
  const std::lock_guard lock(context.memory_mutex);
  for (CUctx_st::Mirror& mirror : context.mirrors) copy_to_device(context.memory.space(), mirror);
}

Mirroring::~Mirroring() {
  if (!any_) return;
  const std::lock_guard lock(context_.memory_mutex);
  for (const CUctx_st::Mirror& mirror : context_.mirrors) {
    copy_to_host(context_.memory.space(), mirror);
  }
}

}  // namespace ptxgen::inline v0::driver::emulated
