// src/kernels/model/described.cpp - the work of a described kernel
#include <algorithm>

#include "ptx/occupancy.hpp"
#include "ptxgen/analysis/cfg.hpp"
#include "ptxgen/analysis/liveness.hpp"
#include "ptxgen/analysis/loads_in_flight.hpp"
#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/analysis/registers.hpp"
#include "ptxgen/kernels/model/predict.hpp"

namespace ptxgen::inline v0 {

namespace {

// 32-bit registers that are alive at a time, at most what a thread can have.
std::uint32_t registers_alive(const ptx::Function& function) {
  const analysis::Cfg cfg(function);
  const analysis::RegisterIndex index(function);
  const analysis::Liveness liveness(function, cfg, index);
  return std::min(liveness.maximum().pressure.words(), 255u);
}

const ptx::Function& entry_of(const ptx::Module& module) {
  return *std::find_if(module.functions.begin(), module.functions.end(),
                       [](const ptx::Function& f) { return f.entry && !f.declaration; });
}

}  // namespace

LaunchWork launch_work(const KernelDescription& kernel, std::span<const std::uint64_t> values,
                       const ptx::Gpu& gpu) {
  const ErasedValue spec = kernel.make_spec(values);
  const LaunchGeometry geometry = kernel.geometry_of(spec.get(), gpu);
  const KernelCost cost = kernel.cost_of(spec.get());
  const ptx::Module module = kernel.build_of(spec.get(), ptx::target(gpu.target));
  const ptx::Function& entry = entry_of(module);
  analysis::MemoryReportOptions options;
  options.block = {{geometry.block.x, geometry.block.y, geometry.block.z}};
  const analysis::LoadsInFlight loads =
      analysis::loads_in_flight(entry, analysis::memory_report(module, entry, options));
  ptx::BlockNeeds needs;
  needs.threads = geometry.block.x * geometry.block.y * geometry.block.z;
  needs.registers = registers_alive(entry);
  needs.dynamic_shared = needs.max_dynamic_shared = geometry.dynamic_shared_bytes;
  LaunchWork work;
  work.bytes_read = cost.bytes_read;
  work.bytes_written = cost.bytes_written;
  work.blocks = std::uint64_t{geometry.grid.x} * geometry.grid.y * geometry.grid.z;
  work.threads = needs.threads;
  work.blocks_per_sm = std::max(1u, ptx::blocks_per_sm(gpu, needs));
  if (loads.bytes != 0) work.bytes_in_flight = static_cast<double>(loads.bytes);
  return work;
}

}  // namespace ptxgen::inline v0
