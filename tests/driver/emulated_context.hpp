// tests/driver/emulated_context.hpp - a context of the emulated driver, and its log
#pragma once

#include <catch2/catch.hpp>
#include <mutex>
#include <string>
#include <string_view>

#include "ptxgen/driver/emulated.hpp"

namespace ptxgen::test {

/// A new context of an emulated GPU, current in this thread; what the driver logs meanwhile.
class EmulatedContext {
 public:
  explicit EmulatedContext(std::string_view gpu = "h200") {
    const int ordinal = driver::emulated::add_gpu(*ptx::find_gpu(gpu));
    REQUIRE(api.init(0) == driver::CUDA_SUCCESS);
    REQUIRE(api.logs_register_callback(&EmulatedContext::take, this, &callback_) ==
            driver::CUDA_SUCCESS);
    REQUIRE(api.ctx_create_v2(&context, 0, ordinal) == driver::CUDA_SUCCESS);
  }
  EmulatedContext(const EmulatedContext&) = delete;
  EmulatedContext& operator=(const EmulatedContext&) = delete;
  ~EmulatedContext() {
    (void)api.ctx_destroy(context);
    (void)api.logs_unregister_callback(callback_);
  }

  /// Everything logged since the last call: one message a line or more, errors begin with "E ",
  /// warnings with "W ".
  [[nodiscard]] std::string log() {
    const std::lock_guard lock(mutex_);
    return std::exchange(log_, {});
  }

  /// Loads PTX that must load.
  [[nodiscard]] driver::CUmodule load(const std::string& ptx) {
    driver::CUmodule module = nullptr;
    const driver::CUresult result = api.module_load_data(&module, ptx.c_str());
    if (result != driver::CUDA_SUCCESS) FAIL(log());
    return module;
  }
  [[nodiscard]] driver::CUfunction function(driver::CUmodule module, const char* name) {
    driver::CUfunction found = nullptr;
    REQUIRE(api.module_get_function(&found, module, name) == driver::CUDA_SUCCESS);
    return found;
  }
  [[nodiscard]] driver::CUdeviceptr allocate(std::size_t bytes) {
    driver::CUdeviceptr address = 0;
    REQUIRE(api.mem_alloc(&address, bytes) == driver::CUDA_SUCCESS);
    return address;
  }

  const driver::Table& api = driver::emulated::table();
  driver::CUcontext context = nullptr;

 private:
  static void take(void* self, driver::CUlogLevel level, char* message, std::size_t length) {
    auto& own = *static_cast<EmulatedContext*>(self);
    const std::lock_guard lock(own.mutex_);
    own.log_ += level == driver::CU_LOG_LEVEL_ERROR ? "E " : "W ";
    own.log_.append(message, length);
    own.log_ += '\n';
  }

  std::mutex mutex_;
  std::string log_;
  driver::CUlogsCallbackHandle callback_ = nullptr;
};

/// A module with the given body for each `KERNEL(PARAMETERS) { BODY }` text in it.
inline std::string ptx_module(const std::string& body, const char* target = "sm_80",
                              const char* version = "8.0") {
  return std::string(".version ") + version + "\n.target " + target + "\n.address_size 64\n" + body;
}

}  // namespace ptxgen::test
