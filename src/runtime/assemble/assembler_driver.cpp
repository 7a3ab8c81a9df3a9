// src/runtime/assemble/assembler_driver.cpp - assembling with the driver's linker
#include "runtime/assemble/assembler_tools.hpp"

#include <array>
#include <charconv>
#include <cstring>

namespace ptxgen::inline v0 {

namespace {

using namespace driver;

constexpr std::size_t kFirstLogBytes = std::size_t{64} << 10;
constexpr std::size_t kLargestLogBytes = std::size_t{64} << 20;

std::size_t target_number(const std::string& target) {
  std::size_t number = 0;
  std::from_chars(target.data() + 3, target.data() + target.size(), number);
  if (target.back() == 'a') return number + kJitTargetAccelerated;
  if (target.back() == 'f') return number + kJitTargetFamily;
  return number;
}

}  // namespace

struct DriverTool::Buffers {
  std::string info;
  std::string error;
  bool full = false;
};

DriverTool::DriverTool(const Settings& settings) : libcuda_(find_libcuda(settings)) {
  constexpr std::string_view kPrefix = "cuda:";
  const std::string& name = settings.device;
  if (name.rfind(kPrefix, 0) == 0) {
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), ordinal_);
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
                        : "is the emulated driver, which runs PTX and makes no machine code";
  if (!libcuda_.where.empty()) finding.why_not = libcuda_.where + " " + finding.why_not;
  return finding;
}

std::string DriverTool::version() const { return version_; }

std::string DriverTool::status_text(const std::string& call, CUresult status) const {
  return call + ": " + result_text(*libcuda_.table, status);
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
  // The driver cuts a log that does not fit, so a full one is asked for again with more room.
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
  CUresult status = CUDA_SUCCESS;
  const auto failed = [&](const char* call) {
    if (status == CUDA_SUCCESS) return false;
    outcome.status = status;
    outcome.reason = status_text(call, status);
    return true;
  };
  const auto as_value = [](std::size_t number) { return reinterpret_cast<void*>(number); };

  CUcontext context = nullptr;
  status = driver.device_primary_ctx_retain(&context, device_);
  if (failed("cuDevicePrimaryCtxRetain")) {
    outcome.verdict = ToolVerdict::Unusable;
    return outcome;
  }
  struct Context {
    const Table& driver;
    CUdevice device;
    bool pushed;
    ~Context() {
      CUcontext popped = nullptr;
      if (pushed) (void)driver.ctx_pop_current(&popped);
      (void)driver.device_primary_ctx_release(device);
    }
  } const current{driver, device_, (status = driver.ctx_push_current(context)) == CUDA_SUCCESS};
  if (failed("cuCtxPushCurrent")) return outcome;

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
  // Left out where there is no limit.
  const std::size_t given = names.size() - (options.max_registers == 0 ? 1 : 0);
  CUlinkState link = nullptr;
  status = driver.link_create(static_cast<unsigned>(given), names.data(), values.data(), &link);
  if (failed("cuLinkCreate")) return outcome;
  void* cubin = nullptr;
  std::size_t cubin_bytes = 0;
  const char* call = "cuLinkAddData";
  // The size counts the zero byte here.
  status = driver.link_add_data(link, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()),
                                ptx.size() + 1, "ptx", 0, nullptr, nullptr);
  if (status == CUDA_SUCCESS) {
    call = "cuLinkComplete";
    status = driver.link_complete(link, &cubin, &cubin_bytes);
  }
  if (status == CUDA_SUCCESS) {
    // The image belongs to the link and goes with it.
    outcome.cubin.resize(cubin_bytes);
    std::memcpy(outcome.cubin.data(), cubin, cubin_bytes);
  }
  (void)driver.link_destroy(link);
  const auto text_of = [&buffers](std::string& buffer) {
    buffer.back() = '\0';
    const std::size_t length = std::strlen(buffer.c_str());
    // Filled to the last byte or nearly so: some drivers stop at a line that does not fit.
    buffers.full = buffers.full || length + 1024 > buffer.size();
    return buffer.substr(0, length);
  };
  outcome.log = text_of(buffers.error);
  const std::string info = text_of(buffers.info);
  if (!outcome.log.empty() && outcome.log.back() != '\n' && !info.empty()) outcome.log += '\n';
  outcome.log += info;
  if (!failed(call)) {
    outcome.verdict = ToolVerdict::Accepted;
    return outcome;
  }
  switch (status) {
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      outcome.verdict = ToolVerdict::Rejected;
      break;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      outcome.verdict = ToolVerdict::UnknownTarget;
      break;
    default:
      outcome.verdict =
          first_complaint(outcome.log).text.empty() ? ToolVerdict::Failed : ToolVerdict::Rejected;
  }
  return outcome;
}

}  // namespace ptxgen::inline v0
