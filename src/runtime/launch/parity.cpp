// src/runtime/launch/parity.cpp - batched kernels against their single-row twins
#include "ptxgen/runtime/launch/parity.hpp"

#include <algorithm>
#include <chrono>

#include "ptxgen/optimize.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/launch/parity_rows.hpp"
#include "runtime/module/gates.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kRowsOfCode = 8;  // a full pass

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

const ParameterInfo* variants_of(const KernelDescription& kernel) {
  const std::string_view name = kernel.batch->variants;
  return name.empty() ? nullptr : &kernel.parameters[parameter_index(kernel, name)];
}

ParityPair pair_of(const KernelDescription& kernel, const LayerSizes& sizes,
                   const ParameterInfo* variants, std::uint64_t variant) {
  ParityPair pair;
  pair.batched = &kernel;
  std::vector<std::uint64_t> values = kernel.default_values();
  std::string suffix;
  if (variants != nullptr) {
    values[static_cast<std::size_t>(variants - kernel.parameters.data())] = variant;
    suffix = " " + std::string(variants->words[variant]);
  }
  pair.values = kernel.batch->for_layer(values, sizes);
  pair.batched_name = std::string(kernel.name) + suffix;
  pair.single_name = std::string(kernel.batch->twin().name) + suffix;
  return pair;
}

// Sizes that a launch on the emulator takes milliseconds for.
LayerSizes launched(LayerSizes sizes) {
  sizes.outputs = std::min(sizes.outputs, 67u);
  sizes.vocabulary = std::min(sizes.vocabulary, 2500u);
  sizes.positions = std::min(sizes.positions, 200u);
  return sizes;
}

std::array<std::uint32_t, 3> threads_of(const LaunchGeometry& geometry) {
  return {geometry.block.x, geometry.block.y, geometry.block.z};
}

gates::ParityDeclaration declaration_of(const ParitySpecs& specs, const ptx::Gpu& gpu) {
  const KernelBatch& batch = *specs.batched.batch;
  gates::ParityDeclaration declared;
  declared.strategy = batch.strategy;
  declared.rows = specs.rows;
  const LaunchGeometry batched = specs.batched.geometry_of(specs.batched_spec.get(), gpu);
  const LaunchGeometry single = specs.single.geometry_of(specs.single_spec.get(), gpu);
  declared.batched_block = threads_of(batched);
  declared.single_block = threads_of(single);
  declared.batched_dynamic_shared_bytes = batched.dynamic_shared_bytes;
  declared.single_dynamic_shared_bytes = single.dynamic_shared_bytes;
  for (const ParityOperand& operand : parity_operands(specs)) {
    const std::string_view name = specs.batched.arguments[operand.batched].name;
    if (operand.by_row) declared.by_row.emplace_back(name);
    const std::string_view of_single = specs.single.arguments[operand.single].name;
    if (of_single != name && !operand.scalar)
      declared.renamed.push_back({std::string(of_single), std::string(name)});
  }
  for (const ArgumentInfo& argument : specs.single.arguments) {
    if (argument.role == ArgumentRole::Shape) declared.sizes.emplace_back(argument.name);
  }
  return declared;
}

// As a launcher loads it, after the passes.
ptx::Module code_of(const Device& device, const KernelDescription& kernel, const void* spec) {
  ptx::Module module = kernel.build_of(spec, device.target());
  optimize::run_passes(module, {});
  return module;
}

std::vector<gates::ParityCheck> compare_code(const Device& device, const ParityPair& pair) {
  const ParitySpecs specs(pair, kRowsOfCode);
  const gates::ParityDeclaration declared = declaration_of(specs, gpu_of(device.info()));
  const ptx::Module batched = code_of(device, specs.batched, specs.batched_spec.get());
  const ptx::Module single = code_of(device, specs.single, specs.single_spec.get());
  std::vector<gates::ParityCheck> checks = gates::parity(batched, single, declared);
  const bool ok = std::all_of(checks.begin(), checks.end(), [](const auto& c) { return c.ok; });
  if (ok) return checks;
  // Again with lines, which costs time only if something is wrong.
  std::string text;
  const ptx::Module batched_lines = with_lines(batched, text);
  const ptx::Module single_lines = with_lines(single, text);
  return gates::parity(batched_lines, single_lines, declared);
}

void compare_rows(const Device& device, const ParityPair& pair, const ParityOptions& options,
                  std::vector<gates::ParityCheck>& checks) {
  ParityRows rows(device, pair, options);
  checks.push_back(rows.reference());
  if (!checks.back().ok) return;
  for (const std::uint32_t count : options.rows) {
    checks.push_back(rows.rows(count));
    if (!checks.back().ok) return;
  }
  if (pair.batched->batch->strategy == BatchStrategy::RegisterUnroll)
    checks.push_back(rows.refusal());
}

}  // namespace

std::size_t registered_pairs(std::span<const KernelDescription> kernels) {
  std::size_t count = 0;
  for (const KernelDescription& kernel : kernels) {
    if (kernel.batch == nullptr) continue;
    const ParameterInfo* const variants = variants_of(kernel);
    count += variants == nullptr ? 1 : variants->words.size();
  }
  return count;
}

std::vector<ParityPair> parity_pairs(std::span<const KernelDescription> kernels,
                                     const LayerSizes& sizes) {
  std::vector<ParityPair> pairs;
  for (const KernelDescription& kernel : kernels) {
    if (kernel.batch == nullptr) continue;
    const ParameterInfo* const variants = variants_of(kernel);
    const std::size_t count = variants == nullptr ? 1 : variants->words.size();
    for (std::size_t i = 0; i < count; ++i) pairs.push_back(pair_of(kernel, sizes, variants, i));
  }
  return pairs;
}

bool ParityResult::ok() const noexcept {
  return !checks.empty() &&
         std::all_of(checks.begin(), checks.end(), [](const auto& check) { return check.ok; });
}

std::size_t ParityReport::passed() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.ok(); }));
}

bool ParityReport::ok() const noexcept {
  return registered != 0 && pairs.size() == registered && passed() == registered;
}

std::string ParityReport::summary() const {
  if (registered == 0)
    return "0 kernel pairs are registered: PTX parity compared nothing, which is a failure";
  return format_text("{}/{} kernel pairs passed PTX parity in {:.0f} ms", passed(), registered, ms);
}

ParityResult check_parity(const Device& device, const ParityPair& pair,
                          const ParityOptions& options) {
  ParityResult result;
  result.batched = pair.batched_name;
  result.single = pair.single_name;
  result.strategy = pair.batched->batch->strategy;
  const Clock::time_point begin = Clock::now();
  try {
    result.checks = compare_code(device, pair);
    result.code_ms = ms_since(begin);
    if (options.launches) {
      ParityPair small = pair;
      small.values = pair.batched->batch->for_layer(pair.values, launched(options.sizes));
      compare_rows(device, small, options, result.checks);
    }
  } catch (const Error& error) {
    result.checks.push_back({"build", false, error.what(), {}});
  }
  result.ms = ms_since(begin);
  return result;
}

ParityReport check_parity(const Device& device, const ParityOptions& options,
                          std::span<const KernelDescription> kernels) {
  const Clock::time_point begin = Clock::now();
  ParityReport report;
  report.registered = registered_pairs(kernels);
  for (const ParityPair& pair : parity_pairs(kernels, options.sizes))
    report.pairs.push_back(check_parity(device, pair, options));
  report.ms = ms_since(begin);
  return report;
}

}  // namespace ptxgen::inline v0
