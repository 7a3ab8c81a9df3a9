// src/runtime/assembler_driver.cpp - assembling with the driver's linker
#include "runtime/assembler_tools.hpp"

#include <array>
#include <charconv>
#include <cstring>

#include "runtime/driver_calls.hpp"

namespace ptxgen::inline v0 {

namespace {

// Values of the driver's CUjit_option, CUjitInputType and CUjit_target enumerations.
constexpr int kInfoLog = 3;
constexpr int kInfoLogBytes = 4;
constexpr int kErrorLog = 5;
constexpr int kErrorLogBytes = 6;
constexpr int kOptimizationLevel = 7;
constexpr int kTarget = 9;
constexpr int kLogVerbose = 12;
constexpr int kLineInfo = 13;
constexpr int kInputPtx = 1;
constexpr std::size_t kAcceleratedTarget = 0x10000;
constexpr std::size_t kFamilyTarget = 0x20000;

constexpr std::size_t kFirstLogBytes = std::size_t{64} << 10;
constexpr std::size_t kLargestLogBytes = std::size_t{64} << 20;

std::size_t target_number(const std::string& target) {
  std::size_t number = 0;
  std::from_chars(target.data() + 3, target.data() + target.size(), number);
  if (target.back() == 'a') return number + kAcceleratedTarget;
  if (target.back() == 'f') return number + kFamilyTarget;
  return number;
}

}  // namespace

struct DriverTool::Functions {
  DriverCalls calls;
  int (*retain)(void**, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*push)(void*) = nullptr;
  int (*pop)(void**) = nullptr;
  int (*create)(unsigned, int*, void**, void**) = nullptr;
  int (*add_data)(void*, int, void*, std::size_t, const char*, unsigned, int*, void**) = nullptr;
  int (*complete)(void*, void**, std::size_t*) = nullptr;
  int (*destroy)(void*) = nullptr;
  int device = 0;
};

struct DriverTool::Buffers {
  std::string info;
  std::string error;
  bool full = false;
};

DriverTool::DriverTool(const Settings& settings)
    : library_(DynamicLibrary::find(libcuda_search(settings))) {
  constexpr std::string_view kPrefix = "cuda:";
  const std::string& name = settings.device;
  if (name.rfind(kPrefix, 0) == 0) {
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), ordinal_);
  }
}

AssemblerFinding DriverTool::finding() const {
  AssemblerFinding finding;
  finding.tool = AssemblerTool::Driver;
  finding.found = static_cast<bool>(library_);
  finding.where = library_.path();
  if (!finding.found) finding.why_not = to_text(library_.attempts());
  return finding;
}

std::string DriverTool::version() const { return version_; }

std::string DriverTool::status_text(const std::string& call, int status) const {
  return call + ": " + functions_->calls.status_text(status);
}

void DriverTool::start() const {
  functions_ = Hidden<Functions>::make();
  Functions& f = *functions_;
  const char* missing = f.calls.resolve(library_);
  const auto need = [&](const char* name, auto*& function) {
    if (missing == nullptr && !library_.resolve(name, function)) missing = name;
  };
  need("cuDevicePrimaryCtxRetain", f.retain);
  need("cuDevicePrimaryCtxRelease_v2", f.release);
  need("cuCtxPushCurrent_v2", f.push);
  need("cuCtxPopCurrent_v2", f.pop);
  need("cuLinkCreate_v2", f.create);
  need("cuLinkAddData_v2", f.add_data);
  need("cuLinkComplete", f.complete);
  need("cuLinkDestroy", f.destroy);
  if (missing != nullptr) {
    problem_ = library_.path() + " has no function " + missing;
    return;
  }
  const auto good = [&](const char* call, int status) {
    if (status != kDriverSuccess) {
      problem_ = status_text(call, status);
      problem_status_ = status;
    }
    return status == kDriverSuccess;
  };
  int version = 0;
  if (!good("cuInit", f.calls.init(0)) ||
      !good("cuDriverGetVersion", f.calls.driver_version(&version)) ||
      !good("cuDeviceGet", f.calls.device_get(&f.device, ordinal_))) {
    return;
  }
  version_ = driver_version_text(version);
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
  const Functions& f = *functions_;
  ToolOutcome outcome;
  const auto failed = [&](const char* call) {
    outcome.reason = status_text(call, outcome.status);
    return outcome.status != kDriverSuccess;
  };
  const auto as_value = [](std::size_t number) { return reinterpret_cast<void*>(number); };

  void* context = nullptr;
  outcome.status = f.retain(&context, f.device);
  if (outcome.status != kDriverSuccess) {
    outcome.verdict = ToolVerdict::Unusable;
    outcome.reason = status_text("cuDevicePrimaryCtxRetain", outcome.status);
    return outcome;
  }
  struct Context {
    const Functions& functions;
    bool pushed;
    ~Context() {
      void* popped = nullptr;
      if (pushed) (void)functions.pop(&popped);
      (void)functions.release(functions.device);
    }
  } const current{f, (outcome.status = f.push(context)) == kDriverSuccess};
  if (failed("cuCtxPushCurrent")) return outcome;

  std::array<int, 8> names = {kInfoLog,           kInfoLogBytes, kErrorLog,   kErrorLogBytes,
                              kOptimizationLevel, kTarget,       kLogVerbose, kLineInfo};
  std::array<void*, 8> values = {buffers.info.data(),
                                 as_value(buffers.info.size()),
                                 buffers.error.data(),
                                 as_value(buffers.error.size()),
                                 as_value(options.optimization),
                                 as_value(target_number(options.target)),
                                 as_value(1),
                                 as_value(options.line_info ? 1 : 0)};
  void* link = nullptr;
  outcome.status =
      f.create(static_cast<unsigned>(names.size()), names.data(), values.data(), &link);
  if (failed("cuLinkCreate")) return outcome;
  void* cubin = nullptr;
  std::size_t cubin_bytes = 0;
  const char* call = "cuLinkAddData";
  // The size counts the zero byte here.
  outcome.status = f.add_data(link, kInputPtx, const_cast<char*>(ptx.c_str()), ptx.size() + 1,
                              "ptx", 0, nullptr, nullptr);
  if (outcome.status == kDriverSuccess) {
    call = "cuLinkComplete";
    outcome.status = f.complete(link, &cubin, &cubin_bytes);
  }
  if (outcome.status == kDriverSuccess) {
    // The image belongs to the link and goes with it.
    outcome.cubin.resize(cubin_bytes);
    std::memcpy(outcome.cubin.data(), cubin, cubin_bytes);
  }
  (void)f.destroy(link);
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
  if (outcome.status == kDriverSuccess) {
    outcome.verdict = ToolVerdict::Accepted;
    return outcome;
  }
  outcome.reason = status_text(call, outcome.status);
  switch (outcome.status) {
    case kDriverInvalidPtx:
    case kDriverInvalidImage:
    case kDriverUnsupportedPtxVersion:
      outcome.verdict = ToolVerdict::Rejected;
      break;
    case kDriverNoBinaryForGpu:
      outcome.verdict = ToolVerdict::UnknownTarget;
      break;
    default:
      outcome.verdict =
          first_complaint(outcome.log).text.empty() ? ToolVerdict::Failed : ToolVerdict::Rejected;
  }
  return outcome;
}

}  // namespace ptxgen::inline v0
