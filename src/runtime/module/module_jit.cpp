// src/runtime/module/module_jit.cpp - the driver's JIT and checks before it
#include <array>
#include <cstring>
#include <limits>

#include "ptx/requirements.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "runtime/module/loaded_module.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

namespace {

constexpr std::size_t kFirstLogBytes = std::size_t{16} << 10;
constexpr std::size_t kLargestLogBytes = std::size_t{64} << 20;
/// A log this close to its buffer's end may have been truncated before a line.
constexpr std::size_t kLogMargin = 1024;

void* as_value(std::size_t number) noexcept { return reinterpret_cast<void*>(number); }

struct JitBuffers {
  explicit JitBuffers(std::size_t bytes) : info(bytes, '\0'), error(bytes, '\0') {}
  std::string info;
  std::string error;

  /// Truncates both to their length. Returns whether one was full.
  bool finish() {
    bool full = false;
    for (std::string* log : {&info, &error}) {
      const std::size_t capacity = log->size();
      log->back() = '\0';
      log->resize(std::strlen(log->c_str()));
      full = full || log->size() + kLogMargin > capacity;
    }
    return full;
  }
};

FailedCall attempt(const ContextCore& core, const void* image, const ModuleOptions& options,
                   JitBuffers& buffers, driver::CUmodule& handle) {
  std::array<driver::CUjit_option, 8> names{};
  std::array<void*, 8> values{};
  unsigned count = 0;
  const auto option = [&](driver::CUjit_option name, void* value) {
    names[count] = name;
    values[count++] = value;
  };
  option(driver::CU_JIT_INFO_LOG_BUFFER, buffers.info.data());
  option(driver::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, as_value(buffers.info.size()));
  option(driver::CU_JIT_ERROR_LOG_BUFFER, buffers.error.data());
  option(driver::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, as_value(buffers.error.size()));
  option(driver::CU_JIT_LOG_VERBOSE, as_value(1));
  option(driver::CU_JIT_OPTIMIZATION_LEVEL, as_value(options.optimization));
  if (options.max_registers != 0) {
    option(driver::CU_JIT_MAX_REGISTERS, as_value(options.max_registers));
  }
  if (options.line_info) option(driver::CU_JIT_GENERATE_LINE_INFO, as_value(1));
  return {&row_of(&Table::module_load_data_ex),
          core.table().module_load_data_ex(&handle, image, count, names.data(), values.data())};
}

// What is too new ---------------------------------------------------------------------------------

int number(ptx::Version version) { return version.major * 10 + version.minor; }

/// The `.version` of a text that could not be parsed, 0 if there is none.
int version_of(std::string_view text) {
  constexpr std::string_view kDirective = "\n.version ";
  std::size_t at =
      text.starts_with(kDirective.substr(1)) ? kDirective.size() - 1 : text.find(kDirective);
  if (at == std::string_view::npos) return 0;
  if (text[at] == '\n') at += kDirective.size();
  const std::size_t end = text.find_first_not_of(".0123456789", at);
  return parse_version(text.substr(at, end == std::string_view::npos ? end : end - at)).value_or(0);
}

/// An element of a module that needs a PTX version.
struct Demand {
  ptx::Version version;
  std::string words;  ///< "'ld.global.v8.f32' needs PTX 8.8"
  const ptx::Function* function = nullptr;
  const ptx::Instruction* statement = nullptr;
};

/// The first element with the highest version.
Demand greatest_demand(const ptx::Module& module) {
  ptx::TargetName target;
  Demand greatest;
  if (!ptx::parse_target_name(module.target, target)) return greatest;
  if (const ptx::Target* row = ptx::find_target(module.target)) {
    greatest.version = row->version;
    greatest.words = format_text("target {} needs PTX {}", module.target, ptx::text(row->version));
  }
  for (const ptx::Function& function : module.functions) {
    for (const ptx::Instruction& statement : function.body) {
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      const ptx::TargetFault needs = ptx::judge(function, statement, target, {255, 255});
      if (!(greatest.version < needs.lowest)) continue;
      greatest.version = needs.lowest;
      greatest.function = &function;
      greatest.statement = &statement;
      // The message of `judge` names the new part of the instruction.
      greatest.words = ptx::judge(function, statement, target, {1, 0}).message;
      greatest.words.resize(std::min(greatest.words.find(", .version"), greatest.words.size()));
    }
  }
  return greatest;
}

}  // namespace

JitResult run_jit(const ContextCore& core, const void* image, const ModuleOptions& options,
                  driver::CUmodule& handle) {
  for (std::size_t bytes = kFirstLogBytes;; bytes *= 8) {
    JitBuffers buffers(bytes);
    const FailedCall failed = attempt(core, image, options, buffers, handle);
    const bool again = buffers.finish() && bytes < kLargestLogBytes;
    if (failed) handle = nullptr;
    if (!again) return {failed, std::move(buffers.info), std::move(buffers.error)};
    if (handle != nullptr) core.release(Release::Module, std::exchange(handle, nullptr));
  }
}

std::string too_new(const ContextCore& core, const PtxSource& source, Error& error) {
  const DeviceInfo& device = core.device().info();
  const int newest = device.newest_ptx;
  const int version =
      source.module != nullptr ? number(source.module->version) : version_of(source.text);
  const std::string supports =
      format_text("driver {} supports up to {}", driver::version_text(device.driver_version),
                  newest == 0 ? "less" : dotted_version(newest));
  std::string says =
      version == 0 ? std::string() : "; the PTX has .version " + dotted_version(version);
  if (source.module == nullptr) {
    return format_text("the PTX is too new: {}{}", supports, says);
  }
  const Demand demand = greatest_demand(*source.module);
  if (number(demand.version) <= newest || demand.words.empty()) {
    return format_text("{}{}, but nothing in it needs more than {}: build it for a lower version",
                       supports, says, ptx::text(demand.version));
  }
  if (demand.statement != nullptr) {
    error.kernel = source.module->text(demand.function->name);
    error.site = source.module->site_of(*demand.statement);
    error.line = line_of(source, *demand.function, *demand.statement);
  }
  return format_text("{}, {}{}", demand.words, supports, says);
}

std::uint32_t line_of(const PtxSource& source, const ptx::Function& function,
                      const ptx::Instruction& statement) {
  if (source.lines == nullptr) return statement.line;
  const auto f = static_cast<std::size_t>(&function - source.module->functions.data());
  const auto i = static_cast<std::size_t>(&statement - function.body.data());
  return f < source.lines->lines.size() && i < source.lines->lines[f].size()
             ? source.lines->lines[f][i]
             : 0;
}

bool surely_too_new(const DeviceInfo& device, int version) noexcept {
  // A driver newer than the table may compile more than the table's last row.
  const bool beyond = device.newest_ptx == driver::newest_ptx(std::numeric_limits<int>::max());
  return device.newest_ptx != 0 && !beyond && version > device.newest_ptx;
}

void check_before_jit(const ContextCore& core, const PtxSource& source) {
  const DeviceInfo& device = core.device().info();
  const int version =
      source.module != nullptr ? number(source.module->version) : version_of(source.text);
  if (surely_too_new(device, version)) {
    Error error(Stage::Load, "ptx-too-new", "");
    error.message = too_new(core, source, error);
    throw finished(core, source, std::move(error));
  }
  ptx::TargetName target;
  if (source.module == nullptr || !ptx::parse_target_name(source.module->target, target)) return;
  const std::string own = format_text("sm_{}", device.sm);
  const bool same_family = target.sm / 10 == device.sm / 10;
  std::string why;
  if (target.sm > device.sm) {
    why = "runs on that and newer GPUs";
  } else if (target.variant == ptx::Variant::Architecture && target.sm != device.sm) {
    why = "runs on that GPU only";
  } else if (target.variant == ptx::Variant::Family && !same_family) {
    why = "runs on that family of GPUs only";
  } else {
    return;
  }
  Error error(Stage::Load, "wrong-target",
              format_text("the PTX is for {}, which {}; {} is {}: build for {}",
                          source.module->target, why, device.name, own, device.target));
  throw finished(core, source, std::move(error));
}

}  // namespace ptxgen::inline v0
