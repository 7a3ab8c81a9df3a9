// src/capi/ptx_run.cpp - one launch on memory of the caller
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/host_windows.hpp"
#include "capi/objects.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/support/observe.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

using namespace ptxgen;
using namespace ptxgen::capi;

namespace {

constexpr std::uint64_t kFirstReach = std::uint64_t{1} << 20;
constexpr std::uint64_t kLastReach = std::uint64_t{4} << 30;
constexpr std::uint64_t kReachFactor = 16;

struct Request {
  std::string_view source;
  std::vector<std::uint64_t> arguments;
  emulator::Dim3 grid;
  emulator::Dim3 block;
  std::uint32_t shared_bytes = 0;
};

/// A number that may be an address. Without sizes and types only the parameter's width says so.
bool may_be_pointer(const emulator::Program::Kernel::Parameter& parameter) noexcept {
  return parameter.bytes == sizeof(std::uint64_t) && parameter.type != ptx::Type::f64;
}

emulator::Dim3 size_of(const char* name, const int (&sizes)[3]) {
  for (const int each : sizes) {
    if (each < 1) {
      throw UsageError{"out-of-range", format_text("{} is {} x {} x {}; each is at least 1", name,
                                                   sizes[0], sizes[1], sizes[2])};
    }
  }
  const auto number = [](int value) { return static_cast<std::uint32_t>(value); };
  return {number(sizes[0]), number(sizes[1]), number(sizes[2])};
}

/// One try, with windows of that reach.
struct Attempt {
  emulator::Result result;
  bool too_short = false;  ///< an access left a window that memory goes on after
};

void check_count(const emulator::Program::Kernel& kernel, std::size_t count) {
  if (count == kernel.parameters.size()) return;
  Error error(Stage::Launch, "arguments",
              format_text("nargs is {}; the kernel has {}", count,
                          count_text(kernel.parameters.size(), "parameter")));
  error.kernel = kernel.name;
  throw std::move(error.refresh());
}

/// The parameter block, with host addresses replaced by those of the windows.
std::vector<std::byte> block_of(const emulator::Program::Kernel& kernel,
                                std::span<const std::uint64_t> arguments,
                                const HostWindows& windows) {
  std::vector<std::byte> block(kernel.parameter_bytes);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& parameter = kernel.parameters[i];
    if (parameter.bytes > sizeof(std::uint64_t)) {
      Error error(Stage::Launch, "arguments",
                  format_text("argument {} (parameter {}) has {}; ptx_run passes at most 8", i + 1,
                              parameter.name, count_text(parameter.bytes, "byte")));
      error.kernel = kernel.name;
      throw std::move(error.refresh());
    }
    const std::uint64_t value =
        may_be_pointer(parameter) ? windows.device_address(arguments[i]) : arguments[i];
    std::memcpy(block.data() + parameter.offset, &value, parameter.bytes);
  }
  return block;
}

Attempt attempt(const Request& request, const ptx::Module& module, std::uint64_t reach) {
  emulator::Device device(HostWindows::with_addresses(emulator::default_gpu(module.target)));
  emulator::Program program = emulator::Program::load(device, request.source, "ptx_run");
  const emulator::Program::Kernel& kernel =
      *program.find_kernel(module.text(entry_of(module, "").name));
  check_count(kernel, request.arguments.size());
  std::vector<std::uint64_t> pointers;
  for (std::size_t i = 0; i < request.arguments.size(); ++i) {
    if (may_be_pointer(kernel.parameters[i])) pointers.push_back(request.arguments[i]);
  }
  HostWindows windows(pointers, reach);
  windows.mirror(device);
  const std::vector<std::byte> block = block_of(kernel, request.arguments, windows);
  emulator::Launch launch;
  launch.kernel = kernel.name;
  launch.grid = request.grid;
  launch.block = request.block;
  launch.dynamic_shared_bytes = request.shared_bytes;
  launch.parameters = block;
  emulator::Options options;
  options.max_launch_instructions = 0;
  Attempt tried{emulator::run(program, launch, options), false};
  const bool outside =
      std::ranges::any_of(tried.result.findings, [](const emulator::RunFinding& each) {
        return each.rule == emulator::Rule::OutOfBounds ||
               each.rule == emulator::Rule::InvalidAddress;
      });
  tried.too_short = outside && windows.cut() && reach < kLastReach;
  if (!tried.too_short && tried.result.status != emulator::Status::Fault) windows.copy_back(device);
  return tried;
}

LogLevel level_of(Severity severity) noexcept {
  if (severity == Severity::Error) return LogLevel::Error;
  return severity == Severity::Warning ? LogLevel::Warn : LogLevel::Info;
}

/// Prints and logs what a launch has to say; throws its first error.
void tell(const emulator::Result& result, const Log& log) {
  std::fwrite(result.printed.data(), 1, result.printed.size(), stdout);
  const emulator::RunFinding* first = nullptr;
  std::string texts;
  for (const emulator::RunFinding& finding : result.findings) {
    const std::string text = emulator::to_text(finding);
    log.write(level_of(finding.finding.severity), std::string_view(text));
    if (finding.finding.severity != Severity::Error) continue;
    if (first == nullptr) first = &finding;
    texts += (texts.empty() ? "" : "\n") + text;
  }
  if (first == nullptr) return;
  Error error(Stage::Launch, first->finding.rule, first->finding.message);
  error.kernel = first->finding.kernel;
  error.file = first->finding.file;
  error.line = first->finding.line;
  error.log = std::move(texts);
  throw std::move(error.refresh());
}

/// Findings are logged one by one; other failures here.
void run_logged(const Request& request, const Log& log) {
  emulator::Result result;
  try {
    const ptx::Module module = ptx::parse(request.source, "ptx_run");
    for (std::uint64_t reach = kFirstReach;; reach *= kReachFactor) {
      Attempt tried = attempt(request, module, reach);
      if (tried.too_short) continue;  // nothing was copied back
      result = std::move(tried.result);
      break;
    }
  } catch (const Error& error) {
    log.error(std::string_view(error.what()));
    throw;
  }
  tell(result, log);
}

}  // namespace

extern "C" {

void ptx_run(const char* ptx, int nargs, void* const* args, int lx, int ly, int lz, int gx, int gy,
             int gz, int smem) noexcept {
  const ptxgen_status status = guarded(nullptr, [&] {
    const Log log = open_log(Settings::from_environment());
    Request request;
    try {
      request.source = need_text(ptx, "ptx");
      if (nargs < 0 || smem < 0) {
        throw UsageError{"out-of-range",
                         format_text("nargs is {} and smem {}; both are at least 0", nargs, smem)};
      }
      for (const void* value : need_array(args, static_cast<std::size_t>(nargs), "args")) {
        request.arguments.push_back(reinterpret_cast<std::uintptr_t>(value));
      }
      request.block = size_of("the block", {lx, ly, lz});
      request.grid = size_of("the grid", {gx, gy, gz});
    } catch (const UsageError& error) {
      log.error(std::string_view("ptx_run: " + error.message));
      throw;
    }
    request.shared_bytes = static_cast<std::uint32_t>(smem);
    run_logged(request, log);
  });
  // Without a result the caller asks ptxgen_last_error(NULL).
  static_cast<void>(status);
}

}  // extern "C"
