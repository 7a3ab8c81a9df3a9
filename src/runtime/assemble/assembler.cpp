// src/runtime/assemble/assembler.cpp - choice of a tool, reports of its errors
#include "ptxgen/runtime/assemble/assembler.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "ptxgen/support/error.hpp"
#include "runtime/assemble/assembler_tools.hpp"
#include "support/excerpt.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::inline v0 {

struct Assembler::Tools {
  explicit Tools(const Settings& settings)
      : nvjitlink(settings), ptxas(settings), driver(settings) {}
  NvJitLinkTool nvjitlink;
  PtxasTool ptxas;
  DriverTool driver;
};

namespace {

/// The remedy if `tool` is not found.
std::string_view cure(AssemblerTool tool) {
  switch (tool) {
    case AssemblerTool::Automatic:
    case AssemblerTool::FewestRegisters:
      break;
    case AssemblerTool::NvJitLink:
      return "install the CUDA toolkit's nvJitLink library, or set PTXGEN_NVJITLINK_PATH or "
             "PTXGEN_CUDA_PATH to its path";
    case AssemblerTool::Ptxas:
      return "install the CUDA toolkit's ptxas program, or set PTXGEN_PTXAS_PATH or "
             "PTXGEN_CUDA_PATH to its path";
    case AssemblerTool::Driver:
      return "install the NVIDIA driver, or set PTXGEN_LIBCUDA_PATH to the path of libcuda.so.1";
  }
  return "install the CUDA toolkit's nvJitLink library or its ptxas program, or set "
         "PTXGEN_NVJITLINK_PATH, PTXGEN_PTXAS_PATH or PTXGEN_CUDA_PATH to their path";
}

std::string titled(AssemblerTool tool, const std::string& version) {
  std::string title(to_string(tool));
  if (!version.empty()) title += " " + version;
  return title;
}

Error new_error(const char* code, std::string message, const AssembleOptions& options) {
  Error error(Stage::Assemble, code, std::move(message));
  error.target = options.target;
  error.file = options.file;
  return error;
}

Error rejection(const ToolOutcome& outcome, const std::string& title, std::string_view ptx,
                const AssembleOptions& options) {
  const LogError complaint = first_error(outcome.log);
  const std::string where =
      complaint.line == 0 ? "the PTX" : format_text("line {}", complaint.line);
  std::string words = complaint.text.empty() ? outcome.reason : complaint.text;
  if (words.find("Unsupported .version") != std::string::npos) {
    words += "; write an older .version or install a newer " + title.substr(0, title.find(' '));
  } else if (words.find("SM version specified by .target is higher") != std::string::npos) {
    words += "; assemble for the module's own .target or a later one";
  }
  Error error = new_error(
      "rejected", format_text("{} rejects {} for {}: {}", title, where, options.target, words),
      options);
  error.line = complaint.line;
  error.excerpt = excerpt_around(ptx, complaint.line);
  return error;
}

/// The error for a failed outcome.
Error failure(const ToolOutcome& outcome, const std::string& title, std::string_view ptx,
              const AssembleOptions& options) {
  Error error = [&] {
    switch (outcome.verdict) {
      case ToolVerdict::Rejected:
        return rejection(outcome, title, ptx, options);
      case ToolVerdict::UnknownTarget:
        return new_error("unknown-target",
                         format_text("{} does not support the target {}; choose another target or "
                                     "install a CUDA release that supports it",
                                     title, options.target),
                         options);
      case ToolVerdict::TimedOut:
        return new_error(
            "timeout",
            format_text(
                "{} was stopped after {} ms; raise timeout_ms or lower the optimization level",
                title, options.timeout_ms),
            options);
      case ToolVerdict::Unusable:
        return new_error("no-assembler",
                         format_text("{} cannot assemble here: {}", title, outcome.reason),
                         options);
      case ToolVerdict::Accepted:
      case ToolVerdict::Failed:
        break;
    }
    return new_error("tool-failed", format_text("{} failed to assemble: {}", title, outcome.reason),
                     options);
  }();
  error.driver_status = outcome.status;
  error.log = outcome.log;
  return std::move(error.refresh());
}

Error nothing_found(const std::vector<AssemblerFinding>& tools, const AssembleOptions& options) {
  const auto name_of = [](const AssemblerFinding& tool) { return to_string(tool.tool); };
  std::string log;
  for (const AssemblerFinding& tool : tools) {
    if (!log.empty()) log += '\n';
    log += format_text("{} was searched for in", name_of(tool));
    for (std::size_t begin = 0; begin < tool.why_not.size();) {
      const std::size_t end = std::min(tool.why_not.find('\n', begin), tool.why_not.size());
      log += "\n  " + tool.why_not.substr(begin, end - begin);
      begin = end + 1;
    }
  }
  Error error =
      new_error("no-assembler",
                format_text("no assembler found for {} (searched for {}); {}", options.target,
                            join_text(tools, ", ", name_of), cure(options.tool)),
                options);
  error.log = std::move(log);
  return std::move(error.refresh());
}

/// Moves an accepted result into `assembly`. False if its cubin cannot be read: the verdict is then
/// Failed.
bool read_result(ToolOutcome& outcome, Assembly& assembly) {
  assembly.cubin = std::move(outcome.cubin);
  assembly.log = std::move(outcome.log);
  try {
    read_resources(assembly);
    return true;
  } catch (const Error& unreadable) {
    outcome.log = std::move(assembly.log);
    outcome.reason = unreadable.message;
    outcome.verdict = ToolVerdict::Failed;
    return false;
  }
}

/// Rejects invalid options before a tool runs, among them text that a tool could parse as an
/// option.
void check(std::string_view ptx, const AssembleOptions& options) {
  if (!is_target_name(options.target)) {
    throw new_error("bad-target",
                    format_text("\"{}\" is not a target; write sm_ and a number, then a or f where "
                                "the architecture has such a variant, for example sm_90a",
                                options.target),
                    options)
        .refresh();
  }
  if (options.optimization > 3) {
    throw new_error("bad-option",
                    format_text("optimization level {} does not exist; levels are 0 to 3",
                                options.optimization),
                    options)
        .refresh();
  }
  // Tools stop at a zero byte and would silently assemble part of the text.
  if (const std::size_t zero = ptx.find('\0'); zero != std::string_view::npos) {
    std::uint32_t line = 1;
    for (const char c : ptx.substr(0, zero)) line += c == '\n' ? 1 : 0;
    Error error =
        new_error("rejected",
                  format_text("line {} has a zero byte, which PTX does not allow", line), options);
    error.line = line;
    throw error.refresh();
  }
}

}  // namespace

std::string_view to_string(AssemblerTool tool) noexcept {
  static constexpr std::array<std::string_view, 5> kNames = {"automatic", "nvJitLink", "ptxas",
                                                             "driver", "fewest registers"};
  const auto index = static_cast<std::size_t>(tool);
  return index < kNames.size() ? kNames[index] : "unknown";
}

Assembler::Assembler(const Settings& settings) : tools_(Hidden<Tools>::make(settings)) {}

bool Assembler::available() const noexcept {
  try {
    for (const AssemblerFinding& tool : tools()) {
      if (tool.found) return true;
    }
  } catch (...) {
    // Out of memory; assemble() reports it.
  }
  return false;
}

std::vector<AssemblerFinding> Assembler::tools() const {
  return {tools_->nvjitlink.finding(), tools_->ptxas.finding(), tools_->driver.finding()};
}

AssemblerFinding Assembler::first_tool() const {
  for (AssemblerFinding& tool : tools()) {
    if (!tool.found) continue;
    if (tool.tool == AssemblerTool::Ptxas) tool.version = tools_->ptxas.version();
    if (tool.tool == AssemblerTool::Driver) tool.version = tools_->driver.version();
    return tool;
  }
  return {};
}

Assembly Assembler::assemble_with_fewest(std::string_view ptx,
                                         const AssembleOptions& options) const {
  const auto cost = [](const Assembly& assembly) {
    return std::tuple(assembly.registers, assembly.spill_stores + assembly.spill_loads);
  };
  std::optional<Assembly> best;
  std::vector<AssemblerFigures> compared;
  std::vector<Error> refusals;
  AssembleOptions how = options;
  for (const AssemblerFinding& tool : tools()) {
    if (!tool.found || tool.tool == AssemblerTool::Driver) continue;
    how.tool = tool.tool;
    try {
      Assembly result = assemble(ptx, how);
      compared.push_back({result.tool, result.tool_version, result.registers, result.spill_stores,
                          result.spill_loads});
      if (!best || cost(result) < cost(*best)) best = std::move(result);
    } catch (Error& error) {
      refusals.push_back(std::move(error));
    }
  }
  if (best) {
    best->compared = std::move(compared);
    return std::move(*best);
  }
  // The error of a tool that rejected the PTX itself is final; otherwise try the other tools.
  for (Error& error : refusals) {
    if (error.code != "unknown-target" && error.code != "no-assembler") throw Error(error);
  }
  how.tool = AssemblerTool::Automatic;
  return assemble(ptx, how);
}

ToolOutcome Assembler::run(AssemblerTool tool, const std::string& ptx,
                           const AssembleOptions& options, std::string& version) const {
  ToolOutcome outcome;
  switch (tool) {
    case AssemblerTool::NvJitLink:
      outcome = tools_->nvjitlink.assemble(ptx, options);
      break;
    case AssemblerTool::Ptxas:
      outcome = tools_->ptxas.assemble(ptx, options);
      version = tools_->ptxas.version();
      break;
    case AssemblerTool::Driver:
    case AssemblerTool::Automatic:
    case AssemblerTool::FewestRegisters:
      outcome = tools_->driver.assemble(ptx, options);
      version = tools_->driver.version();
      break;
  }
  return outcome;
}

Assembly Assembler::assemble(std::string_view ptx, const AssembleOptions& options) const {
  check(ptx, options);
  if (options.tool == AssemblerTool::FewestRegisters) return assemble_with_fewest(ptx, options);
  std::vector<AssemblerFinding> candidates = tools();
  if (options.tool != AssemblerTool::Automatic) {
    std::erase_if(candidates,
                  [&](const AssemblerFinding& tool) { return tool.tool != options.tool; });
  }
  const std::string text(ptx);
  std::vector<Error> skipped;
  for (const AssemblerFinding& candidate : candidates) {
    if (!candidate.found) continue;
    std::string version = candidate.version;
    ToolOutcome outcome = run(candidate.tool, text, options, version);
    const std::string title = titled(candidate.tool, version);
    if (outcome.verdict == ToolVerdict::Accepted) {
      Assembly assembly;
      assembly.tool = candidate.tool;
      assembly.tool_version = std::move(version);
      if (read_result(outcome, assembly)) return assembly;
    }
    Error error = failure(outcome, title, ptx, options);
    const bool try_next =
        outcome.verdict == ToolVerdict::UnknownTarget || outcome.verdict == ToolVerdict::Unusable;
    if (!try_next) {
      for (Error& earlier : skipped) error.causes.push_back(std::move(earlier));
      throw error.refresh();
    }
    skipped.push_back(std::move(error));
  }
  if (skipped.empty()) throw nothing_found(candidates, options);
  // The first error is the main one; the others are its causes.
  Error error = std::move(skipped.front());
  for (std::size_t i = 1; i < skipped.size(); ++i) {
    error.causes.push_back(std::move(skipped[i]));
  }
  throw error.refresh();
}

}  // namespace ptxgen::inline v0
