// src/runtime/device/driver_error.cpp - failed driver calls as Error
#include "runtime/device/driver_error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

const driver::FunctionInfo& function_at(std::size_t offset) noexcept {
  return driver::functions()[offset / sizeof(void (*)())];
}

std::string FailedCall::text() const {
  return format_text("{}: {}", function->symbol, driver::result_text(result));
}

Error driver_error(Stage stage, const FailedCall& failed, std::string_view doing) {
  std::string message = failed.text();
  if (!doing.empty()) message += ", " + std::string(doing);
  Error error(stage, "driver-call", std::move(message));
  error.driver_status = failed.result;
  return std::move(error.refresh());
}

bool is_sticky(driver::CUresult result) noexcept {
  using namespace driver;
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return true;
    default:
      return false;
  }
}

}  // namespace ptxgen::inline v0
