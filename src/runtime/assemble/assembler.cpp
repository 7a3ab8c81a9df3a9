// src/runtime/assemble/assembler.cpp - choosing a tool and reporting what it said
#include "ptxgen/runtime/assemble/assembler.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "ptxgen/support/error.hpp"
#include "runtime/assemble/assembler_tools.hpp"
#include "support/excerpt.hpp"

namespace ptxgen::inline v0 {

struct Assembler::Tools {
  explicit Tools(const Settings& settings)
      : nvjitlink(settings), ptxas(settings), driver(settings) {}
  NvJitLinkTool nvjitlink;
  PtxasTool ptxas;
  DriverTool driver;
};

namespace {

/// What to do when `tool` is not there.
std::string_view cure(AssemblerTool tool) {
  switch (tool) {
    case AssemblerTool::Automatic:
    case AssemblerTool::FewestRegisters:
      break;
    case AssemblerTool::NvJitLink:
      return "install the CUDA toolkit's nvJitLink library, or set PTXGEN_NVJITLINK_PATH or "
             "PTXGEN_CUDA_PATH to where it is";
    case AssemblerTool::Ptxas:
      return "install the CUDA toolkit's ptxas program, or set PTXGEN_PTXAS_PATH or "
             "PTXGEN_CUDA_PATH to where it is";
    case AssemblerTool::Driver:
      return "install the NVIDIA driver, or set PTXGEN_LIBCUDA_PATH to where its libcuda.so.1 is";
  }
  return "install the CUDA toolkit's nvJitLink library or its ptxas program, or set "
         "PTXGEN_NVJITLINK_PATH, PTXGEN_PTXAS_PATH or PTXGEN_CUDA_PATH to where they are";
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
  const LogComplaint complaint = first_complaint(outcome.log);
  const std::string where =
      complaint.line == 0 ? "the PTX" : "line " + std::to_string(complaint.line);
  std::string words = complaint.text.empty() ? outcome.reason : complaint.text;
  if (words.find("Unsupported .version") != std::string::npos) {
    words += "; write an older .version or install a newer " + title.substr(0, title.find(' '));
  } else if (words.find("SM version specified by .target is higher") != std::string::npos) {
    words += "; assemble for the module's own .target or a later one";
  }
  Error error = new_error(
      "rejected", title + " rejects " + where + " for " + options.target + ": " + words, options);
  error.line = complaint.line;
  error.excerpt = excerpt_around(ptx, complaint.line);
  return error;
}

/// The error for an outcome that is not an assembly.
Error failure(const ToolOutcome& outcome, const std::string& title, std::string_view ptx,
              const AssembleOptions& options) {
  Error error = [&] {
    switch (outcome.verdict) {
      case ToolVerdict::Rejected:
        return rejection(outcome, title, ptx, options);
      case ToolVerdict::UnknownTarget:
        return new_error("unknown-target",
                         title + " does not know the target " + options.target +
                             "; choose a target it knows or install a CUDA release that has it",
                         options);
      case ToolVerdict::TimedOut:
        return new_error("timeout",
                         title + " was stopped after " + std::to_string(options.timeout_ms) +
                             " ms; raise timeout_ms or lower the optimization level",
                         options);
      case ToolVerdict::Unusable:
        return new_error("no-assembler", title + " cannot assemble here: " + outcome.reason,
                         options);
      case ToolVerdict::Accepted:
      case ToolVerdict::Failed:
        break;
    }
    return new_error("tool-failed", title + " broke while assembling: " + outcome.reason, options);
  }();
  error.driver_status = outcome.status;
  error.log = outcome.log;
  return std::move(error.refresh());
}

Error nothing_found(const std::vector<AssemblerFinding>& tools, const AssembleOptions& options) {
  std::string names;
  std::string log;
  for (const AssemblerFinding& tool : tools) {
    const std::string name(to_string(tool.tool));
    names += (names.empty() ? "" : ", ") + name;
    if (!log.empty()) log += '\n';
    log += name + " was looked for in";
    for (std::size_t begin = 0; begin < tool.why_not.size();) {
      const std::size_t end = std::min(tool.why_not.find('\n', begin), tool.why_not.size());
      log += "\n  " + tool.why_not.substr(begin, end - begin);
      begin = end + 1;
    }
  }
  Error error = new_error("no-assembler",
                          "no assembler found for " + options.target + " (looked for " + names +
                              "); " + std::string(cure(options.tool)),
                          options);
  error.log = std::move(log);
  return std::move(error.refresh());
}

/// Mistakes that no tool needs to see, among them whatever could be read as another option.
void check(std::string_view ptx, const AssembleOptions& options) {
  if (!is_target_name(options.target)) {
    throw new_error("bad-target",
                    "\"" + options.target +
                        "\" is not a target; write sm_ and a number, then a or f where the "
                        "architecture has such a variant, for example sm_90a",
                    options)
        .refresh();
  }
  if (options.optimization > 3) {
    throw new_error("bad-option",
                    "optimization level " + std::to_string(options.optimization) +
                        " does not exist; levels are 0 to 3",
                    options)
        .refresh();
  }
  // Tools stop reading at a zero byte and would assemble half a text without a word.
  if (const std::size_t zero = ptx.find('\0'); zero != std::string_view::npos) {
    std::uint32_t line = 1;
    for (const char c : ptx.substr(0, zero)) line += c == '\n' ? 1 : 0;
    Error error =
        new_error("rejected",
                  "line " + std::to_string(line) + " holds a zero byte, which PTX cannot", options);
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
    // Out of memory for a few strings; assemble() will say so.
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
      Assembly made = assemble(ptx, how);
      compared.push_back(
          {made.tool, made.tool_version, made.registers, made.spill_stores, made.spill_loads});
      if (!best || cost(made) < cost(*best)) best = std::move(made);
    } catch (Error& error) {
      refusals.push_back(std::move(error));
    }
  }
  if (best) {
    best->compared = std::move(compared);
    return std::move(*best);
  }
  // A tool that understood the PTX and refused it says what is wrong; else others are tried.
  for (Error& error : refusals) {
    if (error.code != "unknown-target" && error.code != "no-assembler") throw Error(error);
  }
  how.tool = AssemblerTool::Automatic;
  return assemble(ptx, how);
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
  std::vector<Error> passed_over;
  for (const AssemblerFinding& candidate : candidates) {
    if (!candidate.found) continue;
    ToolOutcome outcome;
    std::string version = candidate.version;
    switch (candidate.tool) {
      case AssemblerTool::NvJitLink:
        outcome = tools_->nvjitlink.assemble(text, options);
        break;
      case AssemblerTool::Ptxas:
        outcome = tools_->ptxas.assemble(text, options);
        version = tools_->ptxas.version();
        break;
      case AssemblerTool::Driver:
      case AssemblerTool::Automatic:
      case AssemblerTool::FewestRegisters:
        outcome = tools_->driver.assemble(text, options);
        version = tools_->driver.version();
        break;
    }
    if (outcome.verdict == ToolVerdict::Accepted) {
      Assembly assembly;
      assembly.cubin = std::move(outcome.cubin);
      assembly.log = std::move(outcome.log);
      assembly.tool = candidate.tool;
      assembly.tool_version = std::move(version);
      try {
        read_resources(assembly);
      } catch (const Error& unreadable) {
        outcome.log = std::move(assembly.log);
        outcome.reason = unreadable.message;
        outcome.verdict = ToolVerdict::Failed;
        throw failure(outcome, titled(candidate.tool, assembly.tool_version), ptx, options);
      }
      return assembly;
    }
    Error error = failure(outcome, titled(candidate.tool, version), ptx, options);
    const bool next_may_do =
        outcome.verdict == ToolVerdict::UnknownTarget || outcome.verdict == ToolVerdict::Unusable;
    if (!next_may_do) {
      for (Error& earlier : passed_over) error.causes.push_back(std::move(earlier));
      throw error.refresh();
    }
    passed_over.push_back(std::move(error));
  }
  if (passed_over.empty()) throw nothing_found(candidates, options);
  // The first refusal is the one to read; the others are told with it.
  Error error = std::move(passed_over.front());
  for (std::size_t i = 1; i < passed_over.size(); ++i) {
    error.causes.push_back(std::move(passed_over[i]));
  }
  throw error.refresh();
}

}  // namespace ptxgen::inline v0
