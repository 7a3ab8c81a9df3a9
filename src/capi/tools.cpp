// src/capi/tools.cpp - checks and passes on PTX, assemblers by name
#include <algorithm>
#include <limits>
#include <utility>

#include "capi/objects.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/source_map.hpp"
#include "support/format.hpp"

using namespace ptxgen;
using namespace ptxgen::capi;

namespace {

/// Text that cannot be parsed is a finding like any other.
Finding syntax_finding(const Error& error) {
  Finding finding;
  finding.rule = error.code;
  finding.message = error.message;
  finding.file = error.file;
  finding.line = error.line;
  std::string_view rest = error.excerpt;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    finding.details.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return finding;
}

gates::GateOptions gate_options(const ptxgen_check_options& from) {
  gates::GateOptions options;
  if (from.target != nullptr) {
    options.target = from.target;
    ptx::TargetName parsed;
    if (!ptx::parse_target_name(options.target, parsed)) {
      throw UsageError{
          "bad-target",
          format_text("options.target is '{}', which is no target; try sm_90", options.target)};
    }
  }
  if (from.entry != nullptr) options.entry = from.entry;
  std::copy_n(from.block, 3, options.block.begin());
  return options;
}

std::vector<Finding> checked(std::string_view text, std::string_view file,
                             const gates::GateOptions& options) {
  ptx::Module module;
  try {
    module = ptx::parse(text, file);
  } catch (const Error& error) {
    if (error.code != "syntax") throw;
    return {syntax_finding(error)};
  }
  std::vector<Finding> findings = gates::run(module, options);
  ptx::fill_sources(findings, module);
  return findings;
}

/// The lines of a text, without the spaces around them.
std::vector<std::string_view> lines_of(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    line = line.substr(0, line.find_last_not_of(kBlank) + 1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// The findings of a check in the form of those of launches.
std::vector<LaunchFinding> without_launch(std::vector<Finding> findings, std::string_view text,
                                          const std::array<std::uint32_t, 3>& block) {
  const std::vector<std::string_view> lines = lines_of(text);
  std::vector<LaunchFinding> created;
  for (Finding& finding : findings) {
    LaunchFinding one;
    one.grid = {0, 0, 0};
    one.block = {block[0], block[1], block[2]};
    one.kernel = finding.kernel;
    if (finding.line != 0 && finding.line <= lines.size()) {
      one.statement = lines[finding.line - 1];
    }
    one.text = to_text(finding);
    one.finding = std::move(finding);
    created.push_back(std::move(one));
  }
  return created;
}

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  for (;;) {
    const std::size_t end = std::min(list.find(','), list.size());
    names.emplace_back(list.substr(0, end));
    if (end == list.size()) return names;
    list.remove_prefix(end + 1);
  }
}

optimize::PassOptions pass_options(const ptxgen_optimize_options& from) {
  optimize::PassOptions options;
  if (from.passes != nullptr) options.passes = names_in(from.passes);
  options.contract = from.no_contract == 0;
  options.explain = true;
  if (from.set_split_threshold != 0) {
    constexpr auto kMax = std::numeric_limits<std::int16_t>::max();
    if (from.split_threshold > static_cast<std::uint32_t>(kMax)) {
      throw UsageError{"out-of-range",
                       format_text("options.split_threshold is {}; it may be 0 to {}",
                                   from.split_threshold, kMax)};
    }
    options.split_threshold = static_cast<std::int16_t>(from.split_threshold);
  }
  return options;
}

AssemblerTool tool_named(std::string_view name) {
  if (name == "fewest") return AssemblerTool::FewestRegisters;
  if (name == "nvjitlink") return AssemblerTool::NvJitLink;
  if (name == "ptxas") return AssemblerTool::Ptxas;
  if (name == "driver") return AssemblerTool::Driver;
  throw UsageError{
      "bad-tool",
      format_text("options.tool is '{}'; it may be nvjitlink, ptxas, driver or fewest", name)};
}

AssembleOptions assemble_options(const ptxgen_assemble_options& from) {
  AssembleOptions options;
  if (from.tool != nullptr) options.tool = tool_named(from.tool);
  if (from.set_optimization != 0) {
    if (from.optimization > 3) {
      throw UsageError{"out-of-range", format_text("options.optimization is {}; it may be 0 to 3",
                                                   from.optimization)};
    }
    options.optimization = from.optimization;
  }
  options.max_registers = from.max_registers;
  options.line_info = from.line_info != 0;
  return options;
}

}  // namespace

extern "C" {

ptxgen_status ptxgen_check(const char* ptx, size_t bytes, const char* file,
                           const ptxgen_check_options* options,
                           ptxgen_findings** findings) noexcept {
  return guarded(nullptr, [&] {
    ptxgen_findings*& result = need_result(findings, "findings");
    if (ptx == nullptr) throw_null("ptx");
    const gates::GateOptions how = gate_options(read_struct(options, "options"));
    const std::string_view text(ptx, bytes);
    result = new ptxgen_findings(
        without_launch(checked(text, file == nullptr ? "<ptx>" : file, how), text, how.block));
  });
}

ptxgen_status ptxgen_program_optimize(const ptxgen_program* program,
                                      const ptxgen_optimize_options* options,
                                      ptxgen_program** optimized) noexcept {
  return guarded(program, [&] {
    ptxgen_program*& result = need_result(optimized, "optimized");
    const ptxgen_program& of = need(program, "program");
    const optimize::PassOptions how = pass_options(read_struct(options, "options"));
    ptx::Module module = of.module;
    optimize::PipelineReport report = optimize::run_passes(module, how);
    auto created = std::make_unique<ptxgen_program>(std::move(module));
    created->log = optimize::to_text(report, created->module);
    created->passes = std::move(report.passes);
    created->geometry = of.geometry;
    result = created.release();
  });
}

size_t ptxgen_program_pass_count(const ptxgen_program* program) noexcept {
  return program == nullptr || !program->is(Kind::Program) ? 0 : program->passes.size();
}

ptxgen_status ptxgen_program_get_pass(const ptxgen_program* program, size_t index,
                                      ptxgen_pass_info* info) noexcept {
  return guarded(program, [&] {
    const std::vector<optimize::PassReport>& passes = need(program, "program").passes;
    if (index >= passes.size()) {
      throw UsageError{"out-of-range", format_text("index is {}; the passes of the program are {}",
                                                   index, passes.size())};
    }
    const optimize::PassReport& from = passes[index];
    // Names of passes are literals, hence terminated.
    write_struct(
        info,
        ptxgen_pass_info{0, from.name.data(), from.changed ? 1 : 0, from.fired(), from.refused(),
                         from.statements_before, from.statements_after, from.microseconds},
        "info");
  });
}

ptxgen_status ptxgen_program_assemble_with(const ptxgen_program* program, ptxgen_device* device,
                                           const ptxgen_assemble_options* options,
                                           ptxgen_image** image) noexcept {
  return guarded(program, [&] {
    ptxgen_image*& result = need_result(image, "image");
    const ptxgen_program& of = need(program, "program");
    const ptxgen_assemble_options from = read_struct(options, "options");
    result = assemble(of, device, from.target, assemble_options(from));
  });
}

size_t ptxgen_image_kernel_count(const ptxgen_image* image) noexcept {
  return image == nullptr || !image->is(Kind::Image) ? 0 : image->assembly.kernels.size();
}

ptxgen_status ptxgen_image_get_kernel(const ptxgen_image* image, size_t index,
                                      ptxgen_kernel_resources* resources) noexcept {
  return guarded(image, [&] {
    const std::vector<KernelResources>& kernels = need(image, "image").assembly.kernels;
    if (index >= kernels.size()) {
      throw UsageError{"out-of-range", format_text("index is {}; the kernels of the image are {}",
                                                   index, kernels.size())};
    }
    const KernelResources& from = kernels[index];
    write_struct(resources,
                 ptxgen_kernel_resources{0, from.name.c_str(), from.registers, from.barriers,
                                         from.spill_stores, from.spill_loads, from.stack,
                                         from.shared, from.constant},
                 "resources");
  });
}

}  // extern "C"
