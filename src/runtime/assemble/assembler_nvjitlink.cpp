// src/runtime/assemble/assembler_nvjitlink.cpp - assembling in process with nvJitLink
#include "runtime/assemble/assembler_tools.hpp"

#include <array>
#include <cstring>

#include "support/foreign_leaks.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

// Values of nvJitLink's result and input enumerations (CUDA 12.0 to 13.0).
constexpr int kSuccess = 0;
constexpr int kInputPtx = 2;
constexpr int kUnrecognizedOption = 1;
constexpr int kUnrecognizedArch = 16;
constexpr int kUnsupportedArch = 17;
constexpr std::array<const char*, 19> kStatusNames = {"success",
                                                      "unrecognized option",
                                                      "missing arch",
                                                      "invalid input",
                                                      "ptx compile",
                                                      "nvvm compile",
                                                      "internal",
                                                      "thread pool",
                                                      "unrecognized input",
                                                      "finalize",
                                                      "null input",
                                                      "incompatible options",
                                                      "incorrect input type",
                                                      "arch mismatch",
                                                      "outdated library",
                                                      "missing fatbin",
                                                      "unrecognized arch",
                                                      "unsupported arch",
                                                      "lto not enabled"};

std::string status_name(int status) {
  const auto index = static_cast<std::size_t>(status);
  return format_text("{} (status {})",
                     index < kStatusNames.size() ? kStatusNames[index] : "unknown", status);
}

std::vector<std::string> link_options(const AssembleOptions& options) {
  std::vector<std::string> texts = {"-arch=" + options.target, "-verbose"};
  // nvJitLink 13.0 itself accepts -O0 and -O3 only; its ptxas accepts all four.
  if (options.optimization != 3) {
    texts.push_back(format_text("-Xptxas=-O{}", options.optimization));
  }
  if (options.line_info) texts.emplace_back("-lineinfo");
  if (options.max_registers != 0) {
    texts.push_back(format_text("-maxrregcount={}", options.max_registers));
  }
  return texts;
}

}  // namespace

NvJitLinkTool::NvJitLinkTool(const Settings& settings)
    : library_(DynamicLibrary::find(nvjitlink_search(settings))) {
  if (library_ && !resolve_all()) library_ = DynamicLibrary();
}

bool NvJitLinkTool::resolve_all() {
  int (*version)(unsigned*, unsigned*) = nullptr;
  unsigned major = 0;
  unsigned minor = 0;
  if (library_.resolve("nvJitLinkVersion", version) && version(&major, &minor) == kSuccess) {
    version_ = format_text("{}.{}", major, minor);
  }
  // The header's functions are inline wrappers around versioned symbols. Every library has those of
  // its own version, newer ones also the plain names, which are tried first. Any version works: the
  // interface has not changed since 12.0.
  const auto resolve = [&](const std::string& name, auto*& function) {
    if (library_.resolve(("nvJitLink" + name).c_str(), function)) return true;
    const auto versioned = [&](unsigned a, unsigned b) {
      const std::string symbol = format_text("__nvJitLink{}_{}_{}", name, a, b);
      return library_.resolve(symbol.c_str(), function);
    };
    if (versioned(major, minor)) return true;
    for (unsigned a = 15; a >= 12; --a) {
      for (unsigned b = 16; b-- > 0;) {
        if (versioned(a, b)) return true;
      }
    }
    problem_ = format_text("{}: has no function nvJitLink{}", library_.path(), name);
    return false;
  };
  return resolve("Create", create_) && resolve("Destroy", destroy_) &&
         resolve("AddData", add_data_) && resolve("Complete", complete_) &&
         resolve("GetLinkedCubinSize", cubin_size_) && resolve("GetLinkedCubin", cubin_) &&
         resolve("GetErrorLogSize", error_size_) && resolve("GetErrorLog", error_) &&
         resolve("GetInfoLogSize", info_size_) && resolve("GetInfoLog", info_);
}

AssemblerFinding NvJitLinkTool::finding() const {
  AssemblerFinding finding;
  finding.tool = AssemblerTool::NvJitLink;
  finding.found = static_cast<bool>(library_);
  if (finding.found) {
    finding.where = library_.path();
    finding.version = version_;
  } else {
    finding.why_not = problem_.empty() ? to_text(library_.attempts()) : problem_;
  }
  return finding;
}

std::string NvJitLinkTool::read_log(Handle handle, int (*size)(Handle, std::size_t*),
                                    int (*read)(Handle, char*)) const {
  std::size_t bytes = 0;
  if (size(handle, &bytes) != kSuccess || bytes == 0) return {};
  // One byte more: whether the size counts the final zero differs between releases.
  std::string log(bytes + 1, '\0');
  if (read(handle, log.data()) != kSuccess) return {};
  log.resize(std::strlen(log.c_str()));
  return log;
}

ToolOutcome NvJitLinkTool::assemble(const std::string& ptx, const AssembleOptions& options) const {
  const std::vector<std::string> texts = link_options(options);
  std::vector<const char*> arguments;
  for (const std::string& text : texts) arguments.push_back(text.c_str());

  ToolOutcome outcome;
  bool created = false;
  struct Link {
    const NvJitLinkTool& tool;
    Handle handle = nullptr;
    ~Link() {
      if (handle != nullptr) tool.destroy_(&handle);
    }
  } link{*this};
  {
    // nvJitLink 13.0 leaks a few kilobytes with texts that it rejects.
    const ForeignLeaks scope;
    outcome.status =
        create_(&link.handle, static_cast<std::uint32_t>(arguments.size()), arguments.data());
    created = outcome.status == kSuccess;
    if (created) {
      // The size without the zero byte that follows the text.
      outcome.status = add_data_(link.handle, kInputPtx, ptx.c_str(), ptx.size(), "ptx");
    }
    if (outcome.status == kSuccess) outcome.status = complete_(link.handle);
  }
  std::string errors;
  if (link.handle != nullptr) {
    errors = read_log(link.handle, error_size_, error_);
    outcome.log = errors + read_log(link.handle, info_size_, info_);
  }
  if (outcome.status == kUnrecognizedArch || outcome.status == kUnsupportedArch) {
    outcome.verdict = ToolVerdict::UnknownTarget;
    return outcome;
  }
  if (outcome.status != kSuccess) {
    outcome.reason = status_name(outcome.status);
    outcome.verdict = created && outcome.status != kUnrecognizedOption ? ToolVerdict::Rejected
                                                                       : ToolVerdict::Failed;
    return outcome;
  }
  // After 13.0 has rejected a text for its .version, it returns success for later texts that call
  // an undefined function; only the log has the error.
  if (!first_error(errors).text.empty()) {
    outcome.verdict = ToolVerdict::Rejected;
    return outcome;
  }
  std::size_t bytes = 0;
  outcome.status = cubin_size_(link.handle, &bytes);
  if (outcome.status == kSuccess) {
    outcome.cubin.resize(bytes);
    outcome.status = cubin_(link.handle, outcome.cubin.data());
  }
  outcome.verdict = outcome.status == kSuccess ? ToolVerdict::Accepted : ToolVerdict::Failed;
  if (outcome.status != kSuccess) outcome.reason = status_name(outcome.status);
  return outcome;
}

}  // namespace ptxgen::inline v0
