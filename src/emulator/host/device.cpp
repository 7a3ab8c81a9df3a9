// src/emulator/host/device.cpp - the host's view of device memory
#include <utility>

#include "emulator/state/address_space.hpp"

namespace ptxgen::inline v0::emulator {

Device::Device(const ptx::Gpu& gpu) : space_(Hidden<AddressSpace>::make(gpu)) {}
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;
Device::~Device() = default;

const ptx::Gpu& Device::gpu() const noexcept { return space_->gpu(); }

std::uint64_t Device::allocate(std::uint64_t bytes, std::string_view name) {
  return space_->allocate(bytes, name);
}

void Device::free(std::uint64_t address) { space_->free(address); }

void Device::protect(std::uint64_t address) { space_->protect(address); }

Device::Extent Device::allocation_of(std::uint64_t address) const noexcept {
  const Allocation* const allocation = space_->find(address);
  if (allocation == nullptr || allocation->freed) return {};
  return {allocation->start, allocation->bytes};
}

void Device::write(std::uint64_t address, std::span<const std::byte> bytes) {
  space_->write(address, bytes);
}

void Device::read(std::uint64_t address, std::span<std::byte> bytes) const {
  space_->read(address, bytes);
}

void Device::fill(std::uint64_t address, std::byte value, std::uint64_t bytes) {
  space_->fill(address, value, bytes);
}

void Device::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  space_->copy(to, from, bytes);
}

void Device::track_initialised(bool on) { space_->track_initialised(on); }

std::uint64_t Device::overhead_bytes() const noexcept { return space_->overhead_bytes(); }

AddressSpace& Device::space() const noexcept { return *space_; }

}  // namespace ptxgen::inline v0::emulator
