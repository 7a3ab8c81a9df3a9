// src/emulator/host/gpu.cpp - the modelled GPU
#include "ptxgen/emulator/emulator.hpp"

#include "ptxgen/ptx/limits.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// A generic GPU: round figures; only the limits of the architecture are exact.
ptx::Gpu generic(const ptx::Target& target) {
  ptx::Gpu gpu;
  gpu.name = target.name;
  gpu.full_name = target.name;
  gpu.target = target.name;
  gpu.sms = 32;
  gpu.clock_mhz = 1500;
  gpu.bandwidth_gb_per_s = 500;
  gpu.memory_bytes = std::uint64_t{16} << 30;
  gpu.l2_bytes = std::uint64_t{16} << 20;
  const ptx::Limits& limits = ptx::limits(target.name);
  gpu.shared_per_sm = limits.shared_per_sm;
  gpu.shared_per_block = target.shared_per_block_opt_in;
  gpu.registers_per_sm = limits.registers_per_sm;
  gpu.threads_per_sm = limits.threads_per_sm;
  gpu.blocks_per_sm = limits.blocks_per_sm;
  return gpu;
}

}  // namespace

ptx::Gpu gpu_named(std::string_view name) {
  if (const ptx::Gpu* gpu = ptx::find_gpu(name)) return *gpu;
  if (const ptx::Target* target = ptx::find_target(name)) return generic(*target);
  std::vector<std::string_view> names;
  for (const ptx::Gpu& gpu : ptx::gpus()) names.push_back(gpu.name);
  throw Error(Stage::Emulate, "unknown-gpu",
              format_text("there is no GPU '{}'; write {}, or a target such as sm_89 for a generic "
                          "GPU",
                          name, join_text(names)));
}

ptx::Gpu default_gpu(std::string_view target) {
  if (const ptx::Gpu* gpu = ptx::first_gpu_of(target)) return *gpu;
  if (const ptx::Target* row = ptx::find_target(target)) return generic(*row);
  // PTX for a target that the table no longer lists runs on a newer one.
  ptx::TargetName wanted;
  if (ptx::parse_target_name(target, wanted)) {
    for (const ptx::Target& row : ptx::targets()) {
      if (row.sm >= wanted.sm && row.variant == ptx::Variant::None) return generic(row);
    }
  }
  return gpu_named(target);
}

}  // namespace ptxgen::inline v0::emulator
