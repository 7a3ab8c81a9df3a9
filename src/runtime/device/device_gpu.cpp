// src/runtime/device/device_gpu.cpp - a device as the planner models it
#include <cmath>

#include "ptxgen/ptx/limits.hpp"
#include "ptxgen/runtime/device/specific_target.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr double kSameBandwidth = 0.05;

// The row whose clock is nearest, of those with the device's architecture, SMs and bandwidth. The
// memory size is not compared: emulated devices can have any.
const ptx::Gpu* row_of(const DeviceInfo& info) noexcept {
  const auto clock_off = [&](const ptx::Gpu& row) {
    return std::abs(info.limits.clock_khz / 1000.0 - row.clock_mhz);
  };
  const ptx::Gpu* best = nullptr;
  for (const ptx::Gpu& row : ptx::gpus()) {
    if (ptx::sm_of(row) != info.sm || row.sms != info.limits.multiprocessors) continue;
    const double off = std::abs(info.limits.bandwidth_gb_per_s - row.bandwidth_gb_per_s);
    if (off > kSameBandwidth * row.bandwidth_gb_per_s) continue;
    if (best == nullptr || clock_off(row) < clock_off(*best)) best = &row;
  }
  return best;
}

// Figures that no device reports, for a GPU without a row.
ptx::Gpu made_of(const DeviceInfo& info) noexcept {
  ptx::Gpu gpu;
  gpu.bandwidth_gb_per_s = info.limits.bandwidth_gb_per_s;
  const ptx::Gpu* const relative = ptx::first_gpu_of(info.target);
  if (relative == nullptr) return gpu;
  gpu.dram = relative->dram;
  if (gpu.bandwidth_gb_per_s == 0) {
    gpu.bandwidth_gb_per_s =
        relative->bandwidth_gb_per_s * info.limits.multiprocessors / relative->sms;
  }
  return gpu;
}

}  // namespace

const ptx::Target* specific_target(const DeviceInfo& info) noexcept {
  for (const ptx::Target& row : ptx::targets()) {
    const bool compiled =
        info.newest_ptx == 0 || row.version.major * 10 + row.version.minor <= info.newest_ptx;
    if (row.sm == info.sm && row.variant == ptx::Variant::Architecture && compiled) return &row;
  }
  return nullptr;
}

ptx::Gpu gpu_of(const DeviceInfo& info) noexcept {
  const ptx::Gpu* const row = row_of(info);
  ptx::Gpu gpu = row != nullptr ? *row : made_of(info);
  const ptx::Target* const target = ptx::find_target(info.target);
  if (target != nullptr) gpu.target = target->name;
  if (row == nullptr) gpu.name = gpu.full_name = gpu.target;
  const DeviceLimits& limits = info.limits;
  const ptx::Limits& known = ptx::limits(info.target);
  const auto reported = [](std::uint32_t value, std::uint32_t otherwise) {
    return value != 0 ? value : otherwise;
  };
  gpu.sms = static_cast<std::uint16_t>(reported(limits.multiprocessors, gpu.sms));
  gpu.clock_mhz = reported(limits.clock_khz / 1000, gpu.clock_mhz);
  gpu.memory_bytes = limits.memory_bytes;
  gpu.l2_bytes = limits.l2_bytes;
  gpu.shared_per_sm = reported(limits.shared_per_multiprocessor, known.shared_per_sm);
  gpu.shared_per_block = limits.shared_per_block_opt_in;
  gpu.registers_per_sm = reported(limits.registers_per_multiprocessor, known.registers_per_sm);
  gpu.threads_per_sm =
      static_cast<std::uint16_t>(reported(limits.threads_per_multiprocessor, known.threads_per_sm));
  gpu.blocks_per_sm =
      static_cast<std::uint16_t>(reported(limits.blocks_per_multiprocessor, known.blocks_per_sm));
  return gpu;
}

}  // namespace ptxgen::inline v0
