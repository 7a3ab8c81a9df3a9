// tests/driver/driver_fixture.hpp - the emulated table and a context for each test
#pragma once

#include <future>
#include <string>
#include <vector>

#include "ptxgen/driver.hpp"

namespace ptxgen::test {

using namespace ptxgen::driver;  // NOLINT: the tests speak of nothing else
namespace emulator = ptxgen::emulator;

/// "CUDA_SUCCESS": what Catch prints when two differ.
inline std::string name_of(CUresult result) { return result_name(result); }

#define PTXGEN_CHECK_RESULT(call, expected) CHECK(name_of(call) == name_of(expected))
#define PTXGEN_OK(call) REQUIRE(name_of(call) == name_of(CUDA_SUCCESS))

/// A created context, current in this thread, and the driver's log since then.
class DriverFixture {
 public:
  DriverFixture() {
    static_cast<void>(driver.init(0));
    static_cast<void>(driver.logs_register_callback(
        [](void* user, CUlogLevel, char* text, std::size_t length) {
          auto& lines = *static_cast<std::string*>(user);
          lines.append(text, length).append("\n");
        },
        &log, &log_handle_));
    static_cast<void>(driver.ctx_create_v2(&context, 0, 0));
  }
  DriverFixture(const DriverFixture&) = delete;
  DriverFixture& operator=(const DriverFixture&) = delete;
  ~DriverFixture() {
    static_cast<void>(driver.ctx_destroy(context));
    static_cast<void>(driver.logs_unregister_callback(log_handle_));
  }

  CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr address = 0;
    return driver.mem_alloc(&address, bytes) == CUDA_SUCCESS ? address : 0;
  }
  CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    return driver.stream_create(&stream, flags) == CUDA_SUCCESS ? stream : nullptr;
  }
  CUevent make_event(unsigned flags = 0) {
    CUevent event = nullptr;
    return driver.event_create(&event, flags) == CUDA_SUCCESS ? event : nullptr;
  }
  /// All bytes of device memory.
  std::vector<unsigned char> bytes_of(CUdeviceptr address, std::size_t bytes) {
    std::vector<unsigned char> host(bytes, 0xee);
    if (driver.memcpy_to_host(host.data(), address, bytes) != CUDA_SUCCESS) host.clear();
    return host;
  }

  const Table& driver = emulated::table();
  CUcontext context = nullptr;
  std::string log;

 private:
  CUlogsCallbackHandle log_handle_ = nullptr;
};

/// Holds a stream up until it is opened.
class Gate {
 public:
  Gate(const Table& driver, CUstream stream) {
    result = driver.launch_host_func(
        stream, [](void* user) { static_cast<Gate*>(user)->opened_.get_future().wait(); }, this);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() { opened_.set_value(); }

  CUresult result = CUDA_SUCCESS;

 private:
  std::promise<void> opened_;
};

}  // namespace ptxgen::test
