// src/runtime/recording/failed_launches.cpp - launches that fail on the emulated device, recorded
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>

#include "ptxgen/runtime/recording/recording.hpp"
#include "ptxgen/version.hpp"
#include "runtime/device/failed_launch_sink.hpp"
#include "runtime/recording/outputs.hpp"
#include "support/file_system.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

using driver::emulated::FailedLaunch;
using driver::emulated::MemoryBefore;
using driver::emulated::ReportedFinding;

/// Larger memory is not recorded: twice as many characters in one file.
constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;
constexpr int kMaxNames = 99;

Dim3 dim3_of(const emulator::Dim3& size) noexcept { return {size.x, size.y, size.z}; }

// As `Frames::run` has it, which a replay compares.
std::string failure_of(const driver::emulated::LaunchReport& report) {
  std::set<std::string> rules;
  for (const ReportedFinding& reported : report.findings) {
    if (reported.fault) return "device-fault: " + reported.text;
    if (reported.found.finding.severity != Severity::Note)
      rules.insert(reported.found.finding.rule);
  }
  if (report.fault != driver::CUDA_SUCCESS) {
    return "device-fault: " + driver::result_name(report.fault);
  }
  std::string text;
  for (const std::string& rule : rules) text += (text.empty() ? "findings: " : ", ") + rule;
  return text;
}

// A 64-bit integer that is a device address by chance would become another one in a replay.
std::vector<RecordedPointer> take_pointers(std::vector<std::byte>& block,
                                           std::span<const MemoryBefore> memory) {
  std::vector<RecordedPointer> pointers;
  for (std::size_t at = 0; at + 8 <= block.size(); at += 8) {
    std::uint64_t address = 0;
    std::memcpy(&address, block.data() + at, sizeof address);
    const auto holds = std::ranges::find_if(memory, [&](const MemoryBefore& before) {
      return address - before.address < before.bytes.size();
    });
    if (holds == memory.end()) continue;
    pointers.push_back({static_cast<std::uint32_t>(at),
                        static_cast<std::size_t>(holds - memory.begin()),
                        address - holds->address});
    std::memset(block.data() + at, 0, sizeof address);
  }
  return pointers;
}

// The errno of the last attempt, 0 if `path` was written: `stem`.json, `stem`-2.json, ...
int write_new_file(const std::string& stem, std::string_view text, std::string& path) {
  FileSystem files;
  FileSystem::Handle handle{};
  int status = EEXIST;
  for (int i = 1; i <= kMaxNames && status == EEXIST; ++i) {
    path = stem + (i == 1 ? ".json" : format_text("-{}.json", i));
    status = files.create(path, handle);
  }
  if (status != 0) return status;
  auto rest = std::as_bytes(std::span(text));
  while (status == 0 && !rest.empty()) {
    std::size_t written = 0;
    status = files.write(handle, rest, written);
    rest = rest.subspan(written);
  }
  const int closed = files.close(handle);
  if (status == 0) status = closed;
  if (status != 0) (void)files.remove(path);
  return status;
}

// Kernels of C++ have names of any length.
std::string file_name(std::string_view kernel) {
  constexpr std::size_t kMaxName = 100;
  return "launch-" + std::string(kernel.substr(0, kMaxName));
}

/// One frame that fails as `launch` did: buffers are the memory that its arguments point into.
Recording recording_of(const FailedLaunch& launch, const DeviceInfo& info) {
  Recording recording;
  recording.made_by = format_text("ptxgen {}, {}", kVersion, info.name);
  const ptx::Gpu gpu = gpu_of(info);
  if (ptx::find_gpu(gpu.name) != nullptr) recording.gpu = std::string(gpu.name);
  recording.modules.emplace_back(launch.ptx);
  for (std::size_t i = 0; i < launch.memory.size(); ++i) {
    const MemoryBefore& before = launch.memory[i];
    RecordedBuffer buffer;
    buffer.name = format_text("memory{}", i);
    buffer.bytes = before.bytes.size();
    buffer.content.kind = RecordedContent::Kind::Bytes;
    buffer.content.bytes = before.bytes;
    buffer.content.unwritten = before.unwritten;
    buffer.output = true;
    recording.buffers.push_back(std::move(buffer));
  }
  RecordedLaunch recorded;
  recorded.kernel = std::string(launch.report.kernel);
  recorded.geometry.grid = dim3_of(launch.report.grid);
  recorded.geometry.block = dim3_of(launch.report.block);
  recorded.geometry.cluster = dim3_of(launch.cluster);
  recorded.geometry.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  recorded.geometry.cooperative = launch.cooperative;
  recorded.block.assign(launch.arguments.begin(), launch.arguments.end());
  recorded.pointers = take_pointers(recorded.block, launch.memory);
  recording.launches.push_back(std::move(recorded));
  recording.hash = hash_of(recording.frame_hashes);
  recording.failure = failure_of(launch.report);
  return recording;
}

class FailedLaunches : public FailedLaunchSink {
 public:
  FailedLaunches(std::string folder, DeviceInfo info, Log log)
      : folder_(std::move(folder)), info_(std::move(info)), log_(std::move(log)) {}
  void write(const FailedLaunch& launch) override;

 private:
  const std::string folder_;
  const DeviceInfo info_;
  const Log log_;
  std::mutex mutex_;
  std::set<std::string> written_;  // kernel and rules
};

void FailedLaunches::write(const FailedLaunch& launch) {
  {
    std::set<std::string> rules;
    for (const ReportedFinding& reported : launch.report.findings) {
      rules.insert(reported.found.finding.rule);
    }
    std::string key(launch.report.kernel);
    for (const std::string& rule : rules) key += '\n' + rule;
    const std::lock_guard lock(mutex_);
    if (!written_.insert(std::move(key)).second) return;
  }
  std::uint64_t bytes = 0;
  for (const MemoryBefore& before : launch.memory) bytes += before.bytes.size();
  if (bytes > kMaxBytes) {
    log_.warn([&] {
      return format_text("not recorded (PTXGEN_REPRO={}): kernel '{}' reaches {} bytes, at most {}",
                         folder_, launch.report.kernel, bytes, kMaxBytes);
    });
    return;
  }
  std::string path;
  const int status = write_new_file(folder_ + "/" + file_name(launch.report.kernel),
                                    to_json(recording_of(launch, info_)), path);
  log_.warn([&] {
    return status == 0 ? "recorded: ptxgen replay " + path
                       : format_text("not recorded (PTXGEN_REPRO={}): {}: {}", folder_, path,
                                     errno_text(status));
  });
}

}  // namespace

std::unique_ptr<FailedLaunchSink> record_failed_launches(std::string folder, DeviceInfo info,
                                                         Log log) {
  return std::make_unique<FailedLaunches>(std::move(folder), std::move(info), std::move(log));
}

}  // namespace ptxgen::inline v0
