// src/cli/commands/explanation.cpp - what `explain` finds out about a module
#include "cli/commands/explanation.hpp"

#include <algorithm>

#include "check/limits/limit_findings.hpp"
#include "cli/commands/commands.hpp"
#include "ptx/occupancy.hpp"
#include "ptxgen/analysis/liveness.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

using ptx::BlockNeeds;

constexpr std::uint32_t kWarp = 32;

/// The module in machine code, if an assembler is available.
std::optional<Assembly> assembled(const ptx::Module& module) {
  try {
    const Assembler assembler(Settings::from_environment());
    if (!assembler.available()) return {};
    return assembler.assemble(
        ptx::print(module),
        {.target = module.target, .tool = AssemblerTool::FewestRegisters, .file = module.file});
  } catch (const Error&) {
    // The assembler refuses the PTX or does not know the target: fall back to an estimate.
    return {};
  }
}

RegisterUse estimate(const ptx::Function& function) {
  const analysis::Cfg cfg(function);
  const analysis::RegisterIndex index(function);
  const analysis::Liveness liveness(function, cfg, index);
  const analysis::PressurePoint& peak = liveness.maximum();
  RegisterUse use;
  use.source = "estimate: alive at once in the PTX, no assembler took it";
  if (peak.statement == ptx::kNone) return use;
  use.max_alive = peak.pressure.words();
  use.max_alive_line = function.body[peak.statement].line;
  use.count = std::min(use.max_alive, 255u);
  return use;
}

RegisterUse registers_of(const ptx::Module& module, const ptx::Function& function,
                         const std::optional<Assembly>& assembly) {
  RegisterUse use = estimate(function);
  if (!assembly) return use;
  const std::string_view name = module.text(function.name);
  for (const KernelResources& kernel : assembly->kernels) {
    if (kernel.name != name) continue;
    use.count = kernel.registers;
    use.spill_stores = kernel.spill_stores;
    use.spill_loads = kernel.spill_loads;
    use.source = std::string(to_string(assembly->tool)) + " " + assembly->tool_version;
    use.assembled = true;
  }
  return use;
}

std::optional<std::array<std::uint32_t, 3>> declared_block(const ptx::Function& function,
                                                           ptx::DirectiveKind kind) {
  for (const ptx::Directive& directive : function.directives) {
    if (directive.kind != kind) continue;
    std::array<std::uint32_t, 3> block{1, 1, 1};
    for (std::size_t i = 0; i < directive.count; ++i) block[i] = directive.values[i];
    return block;
  }
  return {};
}

std::string comma_text(const std::array<std::uint32_t, 3>& block) {
  return format_text("{},{},{}", block[0], block[1], block[2]);
}

/// Threads of a block if known, else 0.
std::array<std::uint32_t, 3> block_of(const ptx::Function& function, const Subject& subject) {
  if (subject.geometry) {
    const Dim3& block = subject.geometry->block;
    return {block.x, block.y, block.z};
  }
  const auto required = declared_block(function, ptx::DirectiveKind::reqntid);
  if (subject.block && required && *subject.block != *required) {
    throw UsageError("--block " + comma_text(*subject.block) + ": the kernel's .reqntid is " +
                     comma_text(*required) + "; leave --block out, or give the same");
  }
  if (required) return *required;
  if (subject.block) return *subject.block;
  return declared_block(function, ptx::DirectiveKind::maxntid)
      .value_or(std::array<std::uint32_t, 3>{0, 0, 0});
}

std::optional<Occupancy> occupancy_of(const ptx::Gpu& gpu, std::array<std::uint32_t, 3> block,
                                      const KernelExplanation& kernel) {
  const std::uint64_t threads = std::uint64_t{block[0]} * block[1] * block[2];
  if (threads == 0 || threads > 1024) return {};
  const BlockNeeds needs{static_cast<std::uint32_t>(threads), kernel.registers.count,
                         kernel.static_shared, kernel.dynamic_shared, gpu.shared_per_block};
  Occupancy occupancy;
  occupancy.threads = needs.threads;
  occupancy.blocks = blocks_per_sm(gpu, needs);
  occupancy.warps = occupancy.blocks * ((needs.threads + kWarp - 1) / kWarp);
  occupancy.max_warps = gpu.threads_per_sm / kWarp;
  // The limiting resource is the one without which more blocks would fit.
  BlockNeeds free = needs;
  free.registers = 0;
  const bool by_registers = blocks_per_sm(gpu, free) > occupancy.blocks;
  free = needs;
  free.static_shared = free.dynamic_shared = 0;
  const bool by_shared = blocks_per_sm(gpu, free) > occupancy.blocks;
  const bool by_blocks = occupancy.blocks == gpu.blocks_per_sm;
  occupancy.limited_by = by_registers ? "registers"
                         : by_shared  ? "shared memory"
                         : by_blocks  ? "blocks"
                                      : "threads";
  return occupancy;
}

/// Statements of a built module get the lines of its text, as `dump --passes none` prints it.
void number_lines(ptx::Module& module) {
  ptx::LineMap map;
  (void)ptx::print(module, &map);
  for (std::size_t f = 0; f < module.functions.size() && f < map.lines.size(); ++f) {
    std::vector<ptx::Instruction>& body = module.functions[f].body;
    for (std::size_t i = 0; i < body.size() && i < map.lines[f].size(); ++i) {
      body[i].line = map.lines[f][i];
    }
  }
}

std::optional<Prediction> prediction_of(const Subject& subject) {
  if (!subject.cost) return {};
  Prediction prediction;
  prediction.bytes = subject.cost->bytes();
  prediction.microseconds =
      static_cast<double>(prediction.bytes) / subject.gpu.bandwidth_gb_per_s / 1000;
  return prediction;
}

}  // namespace

Explanation explain(Subject subject, const optimize::PassOptions& passes) {
  Explanation all;
  all.subject = std::move(subject);
  ptx::Module& module = all.subject.module;
  if (all.subject.geometry) number_lines(module);
  all.passes = optimize::run_passes(module, passes);
  const std::optional<Assembly> assembly = assembled(module);
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
    const ptx::Function& function = module.functions[i];
    if (!function.entry || function.declaration) continue;
    KernelExplanation& kernel = all.kernels.emplace_back();
    kernel.name = module.text(function.name);
    const std::array<std::uint32_t, 3> block = block_of(function, all.subject);
    // The report reads the block's size from the directives itself.
    analysis::MemoryReportOptions options;
    if (all.subject.geometry || all.subject.block) options.block = block;
    kernel.memory = analysis::memory_report(module, function, options);
    kernel.registers = registers_of(module, function, assembly);
    kernel.static_shared = gates::static_shared_bytes(module, i);
    if (all.subject.geometry) kernel.dynamic_shared = all.subject.geometry->dynamic_shared_bytes;
    kernel.occupancy = occupancy_of(all.subject.gpu, block, kernel);
  }
  all.prediction = prediction_of(all.subject);
  return all;
}

}  // namespace ptxgen::cli
