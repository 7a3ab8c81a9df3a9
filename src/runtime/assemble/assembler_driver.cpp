// src/runtime/assemble/assembler_driver.cpp - assembling with the driver's linker
#include "runtime/assemble/assembler_tools.hpp"

#include <array>
#include <cstring>

#include "support/format.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0 {

namespace {

using namespace driver;

constexpr std::size_t kFirstLogBytes = std::size_t{64} << 10;
constexpr std::size_t kLargestLogBytes = std::size_t{64} << 20;

std::size_t target_number(const std::string& target) {
  std::string_view digits = std::string_view(target).substr(3);
  const std::size_t number = take_number<std::size_t>(digits).value_or(0);
  if (target.back() == 'a') return number + kJitTargetAccelerated;
  if (target.back() == 'f') return number + kJitTargetFamily;
  return number;
}

/// Pops and releases a retained primary context.
struct CurrentContext {
  const Table& driver;
  CUdevice device;
  bool pushed = false;
  CUresult push(CUcontext context) {
    const CUresult status = driver.ctx_push_current(context);
    pushed = status == CUDA_SUCCESS;
    return status;
  }
  ~CurrentContext() {
    CUcontext popped = nullptr;
    if (pushed) (void)driver.ctx_pop_current(&popped);
    (void)driver.device_primary_ctx_release(device);
  }
};

ToolVerdict verdict_of(CUresult status, const std::string& log) {
  switch (status) {
    case CUDA_SUCCESS:
      return ToolVerdict::Accepted;
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return ToolVerdict::Rejected;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return ToolVerdict::UnknownTarget;
    default:
      return first_error(log).text.empty() ? ToolVerdict::Failed : ToolVerdict::Rejected;
  }
}

}  // namespace

struct DriverTool::Buffers {
  std::string info;
  std::string error;
  bool full = false;

  /// The error log, then the info log. Sets `full`.
  [[nodiscard]] std::string text() {
    const auto text_of = [this](std::string& buffer) {
      buffer.back() = '\0';
      const std::size_t length = std::strlen(buffer.c_str());
      // Nearly full counts as full: some drivers stop before a line that does not fit.
      full = full || length + 1024 > buffer.size();
      return buffer.substr(0, length);
    };
    std::string log = text_of(error);
    const std::string more = text_of(info);
    if (!log.empty() && log.back() != '\n' && !more.empty()) log += '\n';
    return log + more;
  }
};

CUresult DriverTool::create_link(const Table& driver, const AssembleOptions& options,
                                 Buffers& buffers, CUlinkState& link) {
  const auto as_value = [](std::size_t number) { return reinterpret_cast<void*>(number); };
  std::array<CUjit_option, 9> names = {
      CU_JIT_INFO_LOG_BUFFER,    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
      CU_JIT_ERROR_LOG_BUFFER,   CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
      CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_TARGET,
      CU_JIT_LOG_VERBOSE,        CU_JIT_GENERATE_LINE_INFO,
      CU_JIT_MAX_REGISTERS};
  std::array<void*, 9> values = {buffers.info.data(),
                                 as_value(buffers.info.size()),
                                 buffers.error.data(),
                                 as_value(buffers.error.size()),
                                 as_value(options.optimization),
                                 as_value(target_number(options.target)),
                                 as_value(1),
                                 as_value(options.line_info ? 1 : 0),
                                 as_value(options.max_registers)};
  // The last option is omitted if there is no limit.
  const std::size_t count = names.size() - (options.max_registers == 0 ? 1 : 0);
  return driver.link_create(static_cast<unsigned>(count), names.data(), values.data(), &link);
}

DriverTool::DriverTool(const Settings& settings) : libcuda_(find_libcuda(settings)) {
  constexpr std::string_view kPrefix = "cuda:";
  const std::string& name = settings.device;
  if (name.starts_with(kPrefix)) {
    ordinal_ = parse_number<int>(std::string_view(name).substr(kPrefix.size())).value_or(0);
  }
}

AssemblerFinding DriverTool::finding() const {
  AssemblerFinding finding;
  finding.tool = AssemblerTool::Driver;
  finding.found = libcuda_.table != nullptr && !libcuda_.emulated;
  finding.where = libcuda_.where;
  if (finding.found) return finding;
  finding.why_not = libcuda_.table == nullptr
                        ? libcuda_.problem
                        : "is the emulated driver, which does not generate machine code";
  if (!libcuda_.where.empty())
    finding.why_not = format_text("{} {}", libcuda_.where, finding.why_not);
  return finding;
}

std::string DriverTool::version() const { return version_; }

std::string DriverTool::status_text(const std::string& call, CUresult status) const {
  return format_text("{}: {}", call, result_text(*libcuda_.table, status));
}

void DriverTool::start() const {
  const AssemblerFinding found = finding();
  if (!found.found) {
    problem_ = found.why_not;
    return;
  }
  const Table& driver = *libcuda_.table;
  const auto good = [&](const char* call, CUresult status) {
    if (status != CUDA_SUCCESS) {
      problem_ = status_text(call, status);
      problem_status_ = status;
    }
    return status == CUDA_SUCCESS;
  };
  int version = 0;
  if (!good("cuInit", driver.init(0)) ||
      !good("cuDriverGetVersion", driver.driver_get_version(&version)) ||
      !good("cuDeviceGet", driver.device_get(&device_, ordinal_))) {
    return;
  }
  version_ = version_text(version);
}

ToolOutcome DriverTool::assemble(const std::string& ptx, const AssembleOptions& options) const {
  std::call_once(started_, [this] { start(); });
  ToolOutcome outcome;
  if (!problem_.empty()) {
    outcome.verdict = ToolVerdict::Unusable;
    outcome.reason = problem_;
    outcome.status = problem_status_;
    return outcome;
  }
  // The driver truncates a log that does not fit: try again with larger buffers.
  for (std::size_t bytes = kFirstLogBytes;; bytes *= 4) {
    Buffers buffers{std::string(bytes, '\0'), std::string(bytes, '\0')};
    outcome = attempt(ptx, options, buffers);
    if (!buffers.full || bytes >= kLargestLogBytes) return outcome;
  }
}

ToolOutcome DriverTool::attempt(const std::string& ptx, const AssembleOptions& options,
                                Buffers& buffers) const {
  const Table& driver = *libcuda_.table;
  ToolOutcome outcome;
  const auto failed = [&](const char* call, CUresult status) {
    outcome.status = status;
    if (status != CUDA_SUCCESS) outcome.reason = status_text(call, status);
    return status != CUDA_SUCCESS;
  };
  CUcontext handle = nullptr;
  if (failed("cuDevicePrimaryCtxRetain", driver.device_primary_ctx_retain(&handle, device_))) {
    outcome.verdict = ToolVerdict::Unusable;
    return outcome;
  }
  CurrentContext context{driver, device_};
  if (failed("cuCtxPushCurrent", context.push(handle))) return outcome;
  CUlinkState link = nullptr;
  if (failed("cuLinkCreate", create_link(driver, options, buffers, link))) return outcome;

  void* cubin = nullptr;
  std::size_t cubin_bytes = 0;
  // The size counts the final zero byte.
  if (!failed("cuLinkAddData",
              driver.link_add_data(link, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()),
                                   ptx.size() + 1, "ptx", 0, nullptr, nullptr)) &&
      !failed("cuLinkComplete", driver.link_complete(link, &cubin, &cubin_bytes))) {
    // The image belongs to the link.
    outcome.cubin.resize(cubin_bytes);
    std::memcpy(outcome.cubin.data(), cubin, cubin_bytes);
  }
  (void)driver.link_destroy(link);
  outcome.log = buffers.text();
  outcome.verdict = verdict_of(static_cast<CUresult>(outcome.status), outcome.log);
  return outcome;
}

}  // namespace ptxgen::inline v0
