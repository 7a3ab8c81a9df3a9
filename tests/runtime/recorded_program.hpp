// tests/runtime/recorded_program.hpp - a program of the driver, recorded and replayed
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "driver/recorder/recorder.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/runtime.hpp"
#include "ptxgen/runtime/recording/recording.hpp"
#include "runtime/recording/program_file.hpp"
#include "support/harness.hpp"
#include "support/temporary_directory.hpp"

#define REQUIRE_OK(call) REQUIRE(result_name(call) == "CUDA_SUCCESS")

namespace ptxgen::test {

using namespace driver;

// data[i] = data[i] * factor + add; counter += 1 by each block.
inline constexpr std::string_view kPtx = R"(.version 7.8
.target sm_75
.address_size 64
.const .align 4 .u32 factor = 3;
.global .align 4 .u32 counter;
.visible .entry scale(.param .u64 data, .param .u32 add)
{
  .reg .b32 %r<8>;
  .reg .b64 %d<6>;
  mov.u32 %r0, %tid.x;
  ld.param.u64 %d0, [data];
  cvta.to.global.u64 %d1, %d0;
  mul.wide.u32 %d2, %r0, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.u32 %r1, [%d1];
  ld.const.u32 %r2, [factor];
  ld.param.u32 %r3, [add];
  mad.lo.u32 %r1, %r1, %r2, %r3;
  st.global.u32 [%d1], %r1;
  atom.global.add.u32 %r4, [counter], 1;
  ret;
}
.visible .entry follow(.param .u64 slot)
{
  .reg .b32 %r<2>;
  .reg .b64 %d<3>;
  ld.param.u64 %d0, [slot];
  ld.global.u64 %d1, [%d0];
  ld.global.u32 %r0, [%d1];
  add.u32 %r0, %r0, 1;
  st.global.u32 [%d1], %r0;
  ret;
}
)";

/// A file system in which a write fails after some bytes, as on a full disk.
class FullDisk : public FileSystem {
 public:
  std::uint64_t left = ~std::uint64_t{0};
  int write(Handle handle, std::span<const std::byte> from, std::size_t& written) override {
    if (from.size() > left) return ENOSPC;
    left -= from.size();
    return FileSystem::write(handle, from, written);
  }
};

/// A program of the driver, recorded into a file of a temporary folder.
class RecordedProgram {
 public:
  explicit RecordedProgram(std::uint64_t left = ~std::uint64_t{0},
                           std::uint64_t limit = std::uint64_t{1} << 30) {
    disk_.left = left;
    FileSystem::Handle handle{};
    REQUIRE(disk_.create(path(), handle) == 0);
    file_ = std::make_unique<ProgramFile>(disk_, handle, path(), limit);
    driver = recorder::recording_table(emulated::table(), *file_);
    (void)driver.init(0);
    REQUIRE_OK(driver.ctx_create_v2(&context_, 0, 0));
  }
  RecordedProgram(const RecordedProgram&) = delete;
  RecordedProgram& operator=(const RecordedProgram&) = delete;
  ~RecordedProgram() { (void)driver.ctx_destroy(context_); }

  [[nodiscard]] std::string path() const { return folder_.path() + "/run.json"; }
  [[nodiscard]] ProgramFile& file() { return *file_; }
  [[nodiscard]] std::string text() const { return read_file(path()); }
  Recording finish() {
    file_->end({});
    return parse_recording(text(), "run.json");
  }

  void load(const std::string& ptx = std::string(kPtx), const char* kernel = "scale") {
    REQUIRE_OK(driver.module_load_data_ex(&module, ptx.c_str(), 0, nullptr, nullptr));
    REQUIRE_OK(driver.module_get_function(&function, module, kernel));
  }
  CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr address = 0;
    REQUIRE_OK(driver.mem_alloc(&address, bytes));
    return address;
  }
  void scale(CUdeviceptr data, std::uint32_t add, unsigned threads = 16,
             CUstream stream = nullptr) {
    void* arguments[] = {&data, &add};
    REQUIRE_OK(
        driver.launch_kernel(function, 1, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr));
  }
  std::vector<std::uint32_t> read(CUdeviceptr data, std::size_t count) {
    std::vector<std::uint32_t> values(count);
    REQUIRE_OK(driver.memcpy_to_host(values.data(), data, 4 * count));
    return values;
  }
  void write(CUdeviceptr data, const std::vector<std::uint32_t>& values) {
    REQUIRE_OK(driver.memcpy_to_device(data, values.data(), 4 * values.size()));
  }

  Table driver;
  CUmodule module = nullptr;
  CUfunction function = nullptr;

 private:
  const TemporaryDirectory folder_{"/tmp"};
  FullDisk disk_;
  std::unique_ptr<ProgramFile> file_;
  CUcontext context_ = nullptr;
};

inline std::vector<std::uint32_t> counted(std::size_t count) {
  std::vector<std::uint32_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint32_t>(i);
  return values;
}

inline Replay replayed_program(const Recording& recording, const ReplayOptions& options = {},
                               std::size_t moved_by = 0) {
  Settings settings;
  settings.search_usual_places = false;
  const Device device = Device::open("emulator:h200", settings);
  Replay result;
  {
    const Context context(device);
    std::optional<Buffer<u8>> other;
    if (moved_by != 0) other.emplace(context, moved_by);
    result = replay(context, recording, options);
  }
  Context::reset(device);  // after a fault
  return result;
}

template <class Kind>
std::size_t count_of(const Recording& recording) {
  return static_cast<std::size_t>(std::ranges::count_if(
      recording.steps, [](const Step& step) { return std::holds_alternative<Kind>(step); }));
}

inline const LaunchStep& launch_number(const Recording& recording, std::size_t number) {
  for (const Step& step : recording.steps) {
    const auto* const launch = std::get_if<LaunchStep>(&step);
    if (launch != nullptr && number-- == 0) return *launch;
  }
  throw std::out_of_range("no such launch");
}

/// The message of the error that a replay throws.
inline std::string refusal_of(const Recording& recording) {
  try {
    (void)replayed_program(recording);
  } catch (const Error& error) {
    return error.message;
  }
  return "accepted";
}

/// Whether a number begins in JSON.
inline bool begins_number(const std::string& line, std::size_t at) {
  const bool digit = line[at] >= '0' && line[at] <= '9';
  return digit && at > 0 && (line[at - 1] == ':' || line[at - 1] == ',' || line[at - 1] == '[');
}

/// How many of the recordings are refused that have another number in one step. Step lines have no
/// hash of their own; launches are left as they are, since another grid may take for ever. Of all
/// other numbers one in `one_in` is tried, which ones depends on the seed.
inline std::size_t refused_with_other_numbers(const std::string& good, std::uint64_t one_in = 1) {
  constexpr const char* kOthers[] = {
      "0", "1", "3", "9223372036854775808", "9223372036854775900", "18446744073709551615", "-1"};
  if (kSanitized) one_in *= 5;
  std::uint64_t tried = seed();
  std::size_t refused = 0;
  std::size_t begin = 0;
  for (std::size_t end = good.find('\n'); end != std::string::npos; end = good.find('\n', begin)) {
    const std::string line = good.substr(begin, end - begin);
    const bool changes =
        line.find("\"step\"") != std::string::npos && line.find("\"launch\"") == std::string::npos;
    for (std::size_t at = 0; changes && at < line.size(); ++at) {
      if (!begins_number(line, at)) continue;
      const std::size_t last = line.find_first_not_of("0123456789", at);
      for (const char* const other : kOthers) {
        if (tried++ % one_in != 0) continue;
        try {
          (void)replayed_program(parse_recording(good.substr(0, begin) + line.substr(0, at) +
                                                     other + line.substr(last) + good.substr(end),
                                                 "x.json"));
        } catch (const Error& error) {
          CHECK(!error.message.empty());
          ++refused;
        }
      }
    }
    begin = end + 1;
  }
  return refused;
}

}  // namespace ptxgen::test
