// tests/capi/device_test.cpp - devices, memory, streams, events, graphs, log
#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "capi/capi.hpp"
#include "support/harness.hpp"

using namespace ptxgen::test;

namespace {

void keep_message(void* user, ptxgen_log_level level, const char* message, std::size_t bytes) {
  auto& all = *static_cast<std::string*>(user);
  if (std::strlen(message) != bytes) all += "WRONG LENGTH|";
  all += std::to_string(level) + ":" + message + "|";
}

}  // namespace

TEST_CASE("the version of header and library agree", "[capi]") {
  int major = -1;
  int minor = -1;
  int patch = -1;
  ptxgen_version(&major, &minor, &patch);
  CHECK(major == PTXGEN_VERSION_MAJOR);
  CHECK(minor == PTXGEN_VERSION_MINOR);
  CHECK(patch == PTXGEN_VERSION_PATCH);
  CHECK(std::string(ptxgen_version_string()) ==
        std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch));
  CHECK(ptxgen_c_api() == PTXGEN_C_API);
  CHECK(std::string(ptxgen_status_name(PTXGEN_OK)) == "ok");
  CHECK(std::string(ptxgen_status_name(PTXGEN_ERROR_INTERNAL)) == "internal");
  CHECK(std::string(ptxgen_status_name(-1)) == "unknown");
  CHECK(std::string(ptxgen_status_name(14)) == "unknown");
}

TEST_CASE("the emulated device opens and says what it is", "[capi]") {
  OwnedDevice device;
  open_emulator(device, {{"PTXGEN_EMULATED_GPU", "rtx4090"}});
  ptxgen_device_info info{};
  info.struct_bytes = sizeof info;
  good(ptxgen_device_get_info(device, &info), device);
  CHECK(info.kind == PTXGEN_DEVICE_EMULATOR);
  CHECK(std::string(info.name).find("4090") != std::string::npos);
  CHECK(std::string(info.target) == "sm_89");
  CHECK(info.sm == 89);
  CHECK(info.threads_per_block == 1024);
  CHECK(info.memory_bytes > 0);
  CHECK(info.multiprocessors > 0);
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  good(ptxgen_device_memory(device, &free_bytes, &total_bytes), device);
  CHECK(total_bytes == info.memory_bytes);
  CHECK((free_bytes > 0 && free_bytes <= total_bytes));
  good(ptxgen_device_memory(device, nullptr, nullptr), device);
  good(ptxgen_device_synchronize(device), device);
  std::int32_t poisoned = 7;
  good(ptxgen_device_poisoned(device, &poisoned), device);
  CHECK(poisoned == 0);
  CHECK(ptxgen_device_get_info(device, nullptr) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(device) == "info is NULL");
  ptxgen_device_info unset{};
  CHECK(ptxgen_device_get_info(device, &unset) == PTXGEN_ERROR_USAGE);
  CHECK(error_code(device) == "struct-bytes");
}

TEST_CASE("devices are listed, in structures of the caller's size", "[capi]") {
  std::size_t count = 0;
  good(ptxgen_list_devices(nullptr, 0, &count));
  REQUIRE(count >= 1);
  std::vector<ptxgen_device_info> infos(count);
  infos[0].struct_bytes = sizeof infos[0];
  good(ptxgen_list_devices(infos.data(), infos.size(), &count));
  CHECK(std::any_of(infos.begin(), infos.end(), [](const ptxgen_device_info& info) {
    return info.kind == PTXGEN_DEVICE_EMULATOR && info.name[0] != '\0';
  }));
  infos[0].struct_bytes = 3;
  CHECK(ptxgen_list_devices(infos.data(), 1, &count) == PTXGEN_ERROR_USAGE);
}

TEST_CASE("a wrong device, setting or option is told", "[capi]") {
  OwnedDevice device;
  CHECK(ptxgen_device_open("toaster", nullptr, &device) == PTXGEN_ERROR_DEVICE);
  CHECK(error_code(nullptr) == "bad-device");
  ptxgen_setting setting{"PTXGEN_TOAST", "brown"};
  ptxgen_device_options options{};
  options.struct_bytes = sizeof options;
  options.settings = &setting;
  options.setting_count = 1;
  CHECK(ptxgen_device_open("emulator", &options, &device) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(nullptr).find("there is no setting 'PTXGEN_TOAST'; there are: PTXGEN_") == 0);
  setting.variable = nullptr;
  CHECK(ptxgen_device_open("emulator", &options, &device) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(nullptr) == "options.settings.variable is NULL");
  setting = {"PTXGEN_LOG", nullptr};
  CHECK(ptxgen_device_open("emulator", &options, &device) == PTXGEN_ERROR_USAGE);
  options.settings = nullptr;
  CHECK(ptxgen_device_open("emulator", &options, &device) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(nullptr) == "options.settings is NULL");
  options.setting_count = 0;
  options.set_optimization = 1;
  options.optimization = 9;
  CHECK(ptxgen_device_open("emulator", &options, &device) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(nullptr) == "options.optimization is 9; valid levels are 0 to 4");
  CHECK(ptxgen_device_reset("toaster", nullptr) == PTXGEN_ERROR_DEVICE);
  CHECK(device.handle == nullptr);
}

TEST_CASE("memory is written, read, copied and filled inside its bounds only", "[capi]") {
  OwnedDevice device;
  open_emulator(device);
  OwnedStream stream;
  good(ptxgen_stream_create(device, PTXGEN_STREAM_NON_BLOCKING, 0, &stream), device);
  std::vector<std::uint8_t> bytes(1000);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  OwnedBuffer a;
  OwnedBuffer b;
  good(ptxgen_buffer_create(device, 1000, &a), device);
  good(ptxgen_buffer_create(device, 1000, &b), device);
  CHECK(ptxgen_buffer_span(a).bytes == 1000);
  CHECK(ptxgen_buffer_span(a).address % 256 == 0);
  good(ptxgen_buffer_write(a, 0, bytes.data(), 1000, nullptr), a);
  good(ptxgen_buffer_copy(b, 100, a, 0, 900, stream), b);
  good(ptxgen_buffer_fill(b, 0, 0xab, 1, 100, stream), b);
  good(ptxgen_buffer_fill(b, 4, 0x01020304, 4, 2, stream), b);
  std::vector<std::uint8_t> back(1000);
  good(ptxgen_buffer_read(b, 0, back.data(), 1000, stream), b);
  good(ptxgen_stream_synchronize(stream), stream);
  std::vector<std::uint8_t> expected(100, 0xab);
  expected.insert(expected.end(), bytes.begin(), bytes.end() - 100);
  const std::uint8_t word[] = {4, 3, 2, 1, 4, 3, 2, 1};
  std::copy(std::begin(word), std::end(word), expected.begin() + 4);
  CHECK(back == expected);

  for (const auto& [offset, size] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 1001}, {1000, 1}, {1001, 0}, {UINT64_MAX, 2}, {2, UINT64_MAX}}) {
    INFO(offset << " " << size);
    CHECK(ptxgen_buffer_write(a, offset, bytes.data(), size, nullptr) == PTXGEN_ERROR_DEVICE);
    CHECK(error_code(a) == "out-of-bounds");
    CHECK(ptxgen_buffer_read(a, offset, back.data(), size, nullptr) == PTXGEN_ERROR_DEVICE);
    CHECK(ptxgen_buffer_copy(b, offset, a, 0, size, nullptr) == PTXGEN_ERROR_DEVICE);
    CHECK(ptxgen_buffer_copy(b, 0, a, offset, size, nullptr) == PTXGEN_ERROR_DEVICE);
    CHECK(ptxgen_buffer_fill(b, offset, 0, 1, size, nullptr) == PTXGEN_ERROR_DEVICE);
  }
  CHECK(error_message(b).find("exceed its 1000 bytes") != std::string::npos);
  CHECK(ptxgen_buffer_fill(b, 0, 0, 3, 1, nullptr) == PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_buffer_fill(b, 2, 0, 4, 1, nullptr) == PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_buffer_fill(b, 0, 0, 4, UINT64_MAX / 2, nullptr) == PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_buffer_write(a, 0, nullptr, 1, nullptr) == PTXGEN_ERROR_USAGE);
  CHECK(ptxgen_buffer_read(a, 0, nullptr, 1, nullptr) == PTXGEN_ERROR_USAGE);
  good(ptxgen_buffer_write(a, 1000, nullptr, 0, nullptr), a);
  OwnedBuffer huge;
  CHECK(ptxgen_buffer_create(device, UINT64_MAX, &huge) == PTXGEN_ERROR_DEVICE);
  CHECK(error_code(device) == "out-of-memory");
  OwnedBuffer empty;
  good(ptxgen_buffer_create(device, 0, &empty), device);
  CHECK(ptxgen_buffer_span(empty).bytes == 0);
}

TEST_CASE("streams and events order work and tell time", "[capi]") {
  OwnedDevice device;
  open_emulator(device);
  OwnedStream first;
  OwnedStream second;
  good(ptxgen_stream_create(device, PTXGEN_STREAM_BLOCKING, 0, &first), device);
  good(ptxgen_stream_create(device, PTXGEN_STREAM_NON_BLOCKING, 0, &second), device);
  CHECK(ptxgen_stream_cuda(first) != nullptr);
  OwnedEvent start;
  OwnedEvent end;
  good(ptxgen_event_create(device, 1, &start), device);
  good(ptxgen_event_create(device, 1, &end), device);
  good(ptxgen_stream_record(first, start), first);
  good(ptxgen_stream_wait(second, start), second);
  good(ptxgen_stream_record(second, end), second);
  good(ptxgen_event_synchronize(end), end);
  std::int32_t done = 0;
  good(ptxgen_event_done(end, &done), end);
  CHECK(done == 1);
  good(ptxgen_stream_synchronize(second), second);
  done = 0;
  good(ptxgen_stream_done(second, &done), second);
  CHECK(done == 1);
  float milliseconds = -1;
  good(ptxgen_event_milliseconds(start, end, &milliseconds), start);
  CHECK(milliseconds >= 0);
  OwnedEvent unrecorded;
  good(ptxgen_event_create(device, 1, &unrecorded), device);
  CHECK(ptxgen_event_milliseconds(unrecorded, end, &milliseconds) == PTXGEN_ERROR_DEVICE);
  OwnedStream refused;
  CHECK(ptxgen_stream_create(device, 5, 0, &refused) == PTXGEN_ERROR_USAGE);
  OwnedStream borrowed;
  good(ptxgen_stream_borrow(device, ptxgen_stream_cuda(first), &borrowed), device);
  CHECK(ptxgen_stream_cuda(borrowed) == ptxgen_stream_cuda(first));
  OwnedStream legacy;
  good(ptxgen_stream_borrow(device, nullptr, &legacy), device);
  CHECK(ptxgen_stream_cuda(legacy) == nullptr);
  good(ptxgen_stream_synchronize(legacy), legacy);
}

TEST_CASE("messages of a device reach the callback it was opened with", "[capi]") {
  std::string told;
  good(ptxgen_set_log(PTXGEN_LOG_WARN, keep_message, &told));
  CHECK(ptxgen_set_log(9, keep_message, &told) == PTXGEN_ERROR_USAGE);
  {
    OwnedDevice device;
    open_emulator(device, {{"PTXGEN_LOG", "loud"}});
    CHECK(told.find("2:PTXGEN_LOG=loud: no such level") != std::string::npos);
    CHECK(told.find("WRONG") == std::string::npos);
  }
  good(ptxgen_set_log(PTXGEN_LOG_WARN, nullptr, nullptr));
}

TEST_CASE("handles are freed in any order", "[capi]") {
  const auto free_memory = [] {
    OwnedDevice device;
    open_emulator(device);
    std::uint64_t bytes = 0;
    good(ptxgen_device_memory(device, &bytes, nullptr), device);
    return bytes;
  };
  const std::uint64_t before = free_memory();
  std::mt19937 random(static_cast<std::uint32_t>(ptxgen::test::seed()));
  for (int round = 0; round < count(8, 60); ++round) {
    OwnedDevice device;
    open_emulator(device);
    ptxgen_buffer* a = nullptr;
    ptxgen_buffer* b = nullptr;
    ptxgen_stream* stream = nullptr;
    ptxgen_event* event = nullptr;
    ptxgen_program* program = nullptr;
    ptxgen_module* module = nullptr;
    ptxgen_function* function = nullptr;
    ptxgen_function* loaded = nullptr;
    ptxgen_plan* plan = nullptr;
    good(ptxgen_buffer_create(device, 64, &a), device);
    good(ptxgen_buffer_create(device, 64, &b), device);
    good(ptxgen_buffer_fill(a, 0, 0, 4, 16, nullptr), a);
    good(ptxgen_stream_create(device, PTXGEN_STREAM_NON_BLOCKING, 0, &stream), device);
    good(ptxgen_event_create(device, 1, &event), device);
    good(ptxgen_program_parse(kSaxpy, std::strlen(kSaxpy), nullptr, &program));
    good(ptxgen_module_load(device, program, &module), device);
    good(ptxgen_module_function(module, "saxpy", &function), module);
    good(ptxgen_function_load(device, program, "saxpy", &loaded), device);
    good(plan_vadd(device, ptxgen_buffer_span(b), ptxgen_buffer_span(a), ptxgen_buffer_span(a), 16,
                   stream, &plan),
         device);
    good(ptxgen_plan_launch(plan, nullptr), plan);
    good(ptxgen_stream_record(stream, event), stream);
    good(ptxgen_event_synchronize(event), event);
    std::vector<std::function<void()>> frees = {
        [&] { ptxgen_buffer_free(a); },          [&] { ptxgen_buffer_free(b); },
        [&] { ptxgen_stream_free(stream); },     [&] { ptxgen_event_free(event); },
        [&] { ptxgen_program_free(program); },   [&] { ptxgen_module_free(module); },
        [&] { ptxgen_function_free(function); }, [&] { ptxgen_function_free(loaded); },
        [&] { ptxgen_plan_free(plan); },         [&] { ptxgen_device_free(device); }};
    std::shuffle(frees.begin(), frees.end(), random);
    for (const auto& free_one : frees) free_one();
    device.handle = nullptr;
    CHECK(free_memory() == before);
  }
}

TEST_CASE("threads use one device, each call's status is its own", "[capi]") {
  OwnedDevice device;
  open_emulator(device);
  std::vector<std::thread> threads;
  std::vector<int> wrong(6, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        ptxgen_buffer* buffer = nullptr;
        if (t % 2 == 0) {
          wrong[t] += ptxgen_buffer_create(device, 256, &buffer) != PTXGEN_OK;
          ptxgen_buffer_free(buffer);
        } else {
          wrong[t] += ptxgen_buffer_create(device, UINT64_MAX, &buffer) != PTXGEN_ERROR_DEVICE;
          wrong[t] += ptxgen_buffer_create(device, 1, nullptr) != PTXGEN_ERROR_USAGE;
          // Several threads report errors on one handle: either may be the last.
          const std::string code = error_code(device);
          wrong[t] += code != "out-of-memory" && code != "null";
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(wrong.size(), 0));
}
