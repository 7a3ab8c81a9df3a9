// src/ptx/occupancy.cpp - occupancy of a multiprocessor
#include <algorithm>

#include "ptx/occupancy.hpp"

namespace ptxgen::inline v0::ptx {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kRegisterUnit = 256;
constexpr std::uint32_t kQuarters = 4;
constexpr std::uint32_t kMaxRegisters = 255;
constexpr std::uint32_t kMaxThreads = 1024;

template <class T>
constexpr T up(T value, T unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::uint64_t shared_unit(const Gpu& gpu) noexcept { return sm_of(gpu) >= 80 ? 128 : 256; }

std::uint32_t reserved_shared(const Gpu& gpu) noexcept { return sm_of(gpu) >= 80 ? 1024 : 0; }

std::uint32_t blocks_per_sm(const Gpu& gpu, const BlockNeeds& needs) noexcept {
  if (needs.threads == 0 || needs.threads > kMaxThreads) return 0;
  const std::uint64_t own = needs.static_shared + needs.dynamic_shared;
  if (own > gpu.shared_per_block || needs.dynamic_shared > needs.max_dynamic_shared) return 0;

  const std::uint32_t warps = (needs.threads + kWarp - 1) / kWarp;
  std::uint32_t blocks =
      std::min<std::uint32_t>(gpu.blocks_per_sm, gpu.threads_per_sm / kWarp / warps);

  if (const std::uint32_t registers = std::min(needs.registers, kMaxRegisters); registers != 0) {
    const std::uint32_t of_warp = up(registers * kWarp, kRegisterUnit);
    const std::uint32_t warps_held = gpu.registers_per_sm / kQuarters / of_warp * kQuarters;
    blocks = std::min(blocks, std::max(1u, warps_held / warps));
  }
  if (const std::uint64_t taken = up(own + reserved_shared(gpu), shared_unit(gpu)); taken != 0) {
    blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, gpu.shared_per_sm / taken));
  }
  return blocks;
}

std::uint32_t max_registers(std::uint32_t registers_per_sm, std::uint32_t threads,
                            std::uint32_t blocks) noexcept {
  const std::uint64_t warps = std::uint64_t{up(std::max(threads, 1u), kWarp) / kWarp} * blocks;
  const std::uint64_t of_quarter =
      up<std::uint64_t>(std::max<std::uint64_t>(warps, 1), kQuarters) / kQuarters;
  const std::uint64_t of_warp = registers_per_sm / kQuarters / of_quarter;
  return std::min(kMaxRegisters,
                  static_cast<std::uint32_t>(of_warp / kRegisterUnit * (kRegisterUnit / kWarp)));
}

std::uint32_t max_registers(const Gpu& gpu, const Function& function) noexcept {
  std::uint32_t max = kMaxRegisters, threads = 0, blocks = 1;
  for (const Directive& directive : function.directives) {
    switch (directive.kind) {
      case DirectiveKind::maxnreg:
        max = std::min<std::uint32_t>(max, directive.values[0]);
        break;
      case DirectiveKind::minnctapersm:
        blocks = directive.values[0];
        break;
      case DirectiveKind::reqntid:
      case DirectiveKind::maxntid:
        threads = 1;
        for (unsigned i = 0; i < directive.count; ++i) threads *= directive.values[i];
        break;
      default:
        break;
    }
  }
  if (threads == 0 || threads > kMaxThreads) return max;
  const std::uint32_t held = gpu.threads_per_sm / up(threads, kWarp);
  if (blocks > std::min<std::uint32_t>(gpu.blocks_per_sm, held)) blocks = 1;
  return std::min(max, max_registers(gpu.registers_per_sm, threads, blocks));
}

std::uint64_t available_dynamic_shared(const Gpu& gpu, const BlockNeeds& needs,
                                       std::uint32_t blocks) noexcept {
  if (blocks == 0) return 0;
  const std::uint64_t each = gpu.shared_per_sm / blocks / shared_unit(gpu) * shared_unit(gpu);
  const std::uint64_t gone = needs.static_shared + reserved_shared(gpu);
  const std::uint64_t max =
      gpu.shared_per_block - std::min<std::uint64_t>(gpu.shared_per_block, needs.static_shared);
  return std::min({each - std::min(each, gone), max, needs.max_dynamic_shared});
}

}  // namespace ptxgen::inline v0::ptx
