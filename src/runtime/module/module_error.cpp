// src/runtime/module/module_error.cpp - what is said about PTX that was refused
#include "runtime/assemble/assembler_tools.hpp"
#include "runtime/module/loaded_module.hpp"
#include "support/excerpt.hpp"

namespace ptxgen::inline v0 {

namespace {

/// More complaints than anybody reads; the log has them all.
constexpr std::size_t kMaxComplaints = 16;

std::string dotted(int version) {
  return std::to_string(version / 10) + "." + std::to_string(version % 10);
}

/// Excerpt, kernel and C++ call of a line of the PTX.
void explain_line(const PtxSource& source, std::uint32_t line, Error& error) {
  error.file = source.file;
  error.line = line;
  error.excerpt = excerpt_around(source.text, line);
  if (source.module == nullptr) return;
  for (const ptx::Function& function : source.module->functions) {
    for (const ptx::Instruction& statement : function.body) {
      if (line_of(source, function, statement) != line) continue;
      error.kernel = source.module->text(function.name);
      error.site = source.module->site_of(statement);
      return;
    }
  }
}

std::string code_of(driver::CUresult result) {
  switch (result) {
    case driver::CUDA_ERROR_INVALID_PTX:
    case driver::CUDA_ERROR_INVALID_IMAGE:
    case driver::CUDA_ERROR_INVALID_SOURCE:
      return "rejected";
    case driver::CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "wrong-target";
    case driver::CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "ptx-too-new";
    default:
      return {};
  }
}

std::string joined(std::string_view first, std::string_view second) {
  std::string text(first);
  if (!text.empty() && text.back() != '\n' && !second.empty()) text += '\n';
  return text += second;
}

}  // namespace

Error finished(const ContextCore& core, const PtxSource& source, Error error) {
  const DeviceInfo& device = core.device().info();
  if (source.module != nullptr) {
    error.target = source.module->target + ", PTX " + std::to_string(source.module->version.major) +
                   "." + std::to_string(source.module->version.minor) + "; ";
  }
  error.target += "device sm_" + std::to_string(device.sm) + ", driver " +
                  driver::version_text(device.driver_version);
  if (device.newest_ptx != 0) error.target += " with PTX up to " + dotted(device.newest_ptx);
  if (!source.text.empty()) {
    error.file = source.file;
    if (error.line != 0 && error.excerpt.empty()) {
      error.excerpt = excerpt_around(source.text, error.line);
    }
    error.message += "; " + dump_ptx(core.device().dump_folder(), source.text);
  }
  return std::move(error.refresh());
}

Error jit_error(const ContextCore& core, const PtxSource& source, JitOutcome outcome) {
  Error error = core.failure(Stage::Load, outcome.failed);
  error.log = joined(joined(outcome.error, outcome.info), error.log);
  const std::string code = code_of(outcome.failed.result);
  // Memory, a lost context and so on are not the fault of the PTX.
  if (code.empty()) return std::move(error.refresh());
  error.code = code;
  if (code == "ptx-too-new" && !source.text.empty()) {
    error.message += "; " + too_new(core, source, error);
    return finished(core, source, std::move(error));
  }
  const std::vector<LogComplaint> complaints = all_complaints(outcome.error);
  for (std::size_t i = 0; i < complaints.size() && i < kMaxComplaints; ++i) {
    const LogComplaint& complaint = complaints[i];
    if (i == 0) {
      error.message += "; " + complaint.text;
      explain_line(source, complaint.line, error);
      continue;
    }
    Error& further = error.causes.emplace_back(Stage::Load, code, complaint.text);
    explain_line(source, complaint.line, further);
    further.refresh();
  }
  return finished(core, source, std::move(error));
}

}  // namespace ptxgen::inline v0
