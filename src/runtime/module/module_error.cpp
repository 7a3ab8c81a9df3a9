// src/runtime/module/module_error.cpp - errors of PTX that the driver rejected
#include "runtime/assemble/assembler_tools.hpp"

#include "runtime/module/loaded_module.hpp"
#include "support/excerpt.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0 {

namespace {

/// Errors beyond this number are only in the log.
constexpr std::size_t kMaxErrors = 16;

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
    error.target = format_text("{}, PTX {}.{}; ", source.module->target,
                               source.module->version.major, source.module->version.minor);
  }
  error.target += format_text("device sm_{}, driver {}", device.sm,
                              driver::version_text(device.driver_version));
  if (device.newest_ptx != 0)
    error.target += " with PTX up to " + dotted_version(device.newest_ptx);
  if (!source.text.empty()) {
    error.file = source.file;
    if (error.line != 0 && error.excerpt.empty()) {
      error.excerpt = excerpt_around(source.text, error.line);
    }
    error.message += "; " + dump_ptx(core.device().dump_folder(), source.text);
  }
  return std::move(error.refresh());
}

Error jit_error(const ContextCore& core, const PtxSource& source, JitResult outcome) {
  Error error = core.failure(Stage::Load, outcome.failed);
  error.log = joined(joined(outcome.error, outcome.info), error.log);
  const std::string code = code_of(outcome.failed.result);
  // Out of memory, a lost context and so on are not caused by the PTX.
  if (code.empty()) return std::move(error.refresh());
  error.code = code;
  if (code == "ptx-too-new" && !source.text.empty()) {
    error.message += "; " + too_new(core, source, error);
    return finished(core, source, std::move(error));
  }
  const std::vector<LogError> complaints = all_errors(outcome.error);
  for (std::size_t i = 0; i < complaints.size() && i < kMaxErrors; ++i) {
    const LogError& complaint = complaints[i];
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
