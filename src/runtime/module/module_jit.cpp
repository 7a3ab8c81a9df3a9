// src/runtime/module/module_jit.cpp - the driver's JIT and what is known before it
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include "ptx/requirements.hpp"
#include "runtime/module/loaded_module.hpp"
#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

namespace {

constexpr std::size_t kFirstLogBytes = std::size_t{16} << 10;
constexpr std::size_t kLargestLogBytes = std::size_t{64} << 20;
/// A log that comes this close to its buffer's end may have been cut before a line.
constexpr std::size_t kLogMargin = 1024;

void* as_value(std::size_t number) noexcept { return reinterpret_cast<void*>(number); }

struct JitBuffers {
  explicit JitBuffers(std::size_t bytes) : info(bytes, '\0'), error(bytes, '\0') {}
  std::string info;
  std::string error;

  /// Cuts both to what was written; whether one was full.
  bool finish() {
    bool full = false;
    for (std::string* log : {&info, &error}) {
      const std::size_t room = log->size();
      log->back() = '\0';
      log->resize(std::strlen(log->c_str()));
      full = full || log->size() + kLogMargin > room;
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

std::string dotted(int version) {
  return std::to_string(version / 10) + "." + std::to_string(version % 10);
}

int number(ptx::Version version) { return version.major * 10 + version.minor; }

/// The `.version` of a text that could not be parsed, 0 if there is none.
int version_of(std::string_view text) {
  constexpr std::string_view kDirective = "\n.version ";
  std::size_t at =
      text.starts_with(kDirective.substr(1)) ? kDirective.size() - 1 : text.find(kDirective);
  if (at == std::string_view::npos) return 0;
  if (text[at] == '\n') at += kDirective.size();
  int major = 0;
  int minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, first] = std::from_chars(text.data() + at, end, major);
  if (first != std::errc{} || dot == end || *dot != '.') return 0;
  const auto [rest, second] = std::from_chars(dot + 1, end, minor);
  return second == std::errc{} ? major * 10 + minor : 0;
}

/// Something in a module that needs a PTX version.
struct Demand {
  ptx::Version version;
  std::string words;  ///< "'ld.global.v8.f32' needs PTX 8.8"
  const ptx::Function* function = nullptr;
  const ptx::Instruction* statement = nullptr;
};

/// The first thing that needs the most.
Demand greatest_demand(const ptx::Module& module) {
  ptx::TargetName target;
  Demand greatest;
  if (!ptx::parse_target_name(module.target, target)) return greatest;
  if (const ptx::Target* row = ptx::find_target(module.target)) {
    greatest.version = row->version;
    greatest.words = "target " + module.target + " needs PTX " + ptx::text(row->version);
  }
  for (const ptx::Function& function : module.functions) {
    for (const ptx::Instruction& statement : function.body) {
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      const ptx::TargetFault needs = ptx::judge(function, statement, target, {255, 255});
      if (!(greatest.version < needs.lowest)) continue;
      greatest.version = needs.lowest;
      greatest.function = &function;
      greatest.statement = &statement;
      // The judge's own words name the part of the instruction that is new.
      greatest.words = ptx::judge(function, statement, target, {1, 0}).message;
      greatest.words.resize(std::min(greatest.words.find(", .version"), greatest.words.size()));
    }
  }
  return greatest;
}

}  // namespace

JitOutcome run_jit(const ContextCore& core, const void* image, const ModuleOptions& options,
                   driver::CUmodule& handle) {
  for (std::size_t bytes = kFirstLogBytes;; bytes *= 8) {
    JitBuffers buffers(bytes);
    const FailedCall failed = attempt(core, image, options, buffers, handle);
    const bool again = buffers.finish() && bytes < kLargestLogBytes;
    if (failed) handle = nullptr;
    if (!again) return {failed, std::move(buffers.info), std::move(buffers.error)};
    if (handle != nullptr) core.let_go(Release::Module, std::exchange(handle, nullptr));
  }
}

std::string too_new(const ContextCore& core, const PtxSource& source, Error& error) {
  const DeviceInfo& device = core.device().info();
  const int newest = device.newest_ptx;
  const int version =
      source.module != nullptr ? number(source.module->version) : version_of(source.text);
  const std::string supports = "driver " + driver::version_text(device.driver_version) +
                               " supports up to " + (newest == 0 ? "less" : dotted(newest));
  std::string says = version == 0 ? std::string() : "; the PTX says .version " + dotted(version);
  if (source.module == nullptr) {
    return "the PTX is too new: " + supports + says;
  }
  const Demand demand = greatest_demand(*source.module);
  if (number(demand.version) <= newest || demand.words.empty()) {
    return supports + says + ", though nothing in it needs more than " + ptx::text(demand.version) +
           ": build it for a lower version";
  }
  if (demand.statement != nullptr) {
    error.kernel = source.module->text(demand.function->name);
    error.site = source.module->site_of(*demand.statement);
    error.line = line_of(source, *demand.function, *demand.statement);
  }
  return demand.words + ", " + supports + says;
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
  // A driver beyond the end of the table may compile more than the table's last row says.
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
  const std::string own = "sm_" + std::to_string(device.sm);
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
              "the PTX is for " + source.module->target + ", which " + why + "; " + device.name +
                  " is " + own + ": build for " + device.target);
  throw finished(core, source, std::move(error));
}

}  // namespace ptxgen::inline v0
