// src/driver/emulated/jit.cpp - reading JIT options, writing JIT logs
#include "driver/emulated/jit.hpp"

#include <algorithm>
#include <cstring>

#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

/// Options of later CUDA releases that api.hpp has no name for; values of cuda.h 13.0.
enum : int {
  kGlobalSymbolNames = 17,
  kGlobalSymbolCount = 19,
  kLast = 34,  // CU_JIT_SPLIT_COMPILE
};
constexpr unsigned kHighestOptimization = 4;

/// Numbers are passed as pointers; only the low 32 bits are significant.
unsigned number_in(void* const* value) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(*value));
}

void put_number(void** value, std::size_t number) noexcept {
  *value = reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
}

std::optional<ptx::TargetName> target_of(unsigned number) {
  ptx::TargetName target;
  if ((number & kJitTargetAccelerated) != 0) target.variant = ptx::Variant::Architecture;
  if ((number & kJitTargetFamily) != 0) target.variant = ptx::Variant::Family;
  target.sm = static_cast<std::uint16_t>(number & 0xffff);
  if (target.sm < 30 || target.sm >= 1000 || number >= 0x30000) return std::nullopt;
  return target;
}

}  // namespace

CUresult JitOptions::read(unsigned count, const CUjit_option* options, void** values,
                          std::string& why) {
  start_ = std::chrono::steady_clock::now();
  if (count == 0) return CUDA_SUCCESS;
  if (options == nullptr || values == nullptr) {
    why = format_text("{} JIT options, but the array of {} is null", count,
                      options == nullptr ? "options" : "values");
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (unsigned i = 0; i < count; ++i) {
    if (const CUresult result = take(options[i], values + i, why)) return result;
  }
  // Clear logs of an earlier call.
  for (const Log& log : {info_buffer_, error_buffer_}) {
    if (log.buffer != nullptr && log.bytes != 0) log.buffer[0] = '\0';
  }
  return CUDA_SUCCESS;
}

CUresult JitOptions::take(CUjit_option option, void** value, std::string& why) {
  switch (option) {
    case CU_JIT_INFO_LOG_BUFFER:
      info_buffer_.buffer = static_cast<char*>(*value);
      return CUDA_SUCCESS;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
      info_buffer_.bytes = number_in(value);
      info_buffer_.size = value;
      return CUDA_SUCCESS;
    case CU_JIT_ERROR_LOG_BUFFER:
      error_buffer_.buffer = static_cast<char*>(*value);
      return CUDA_SUCCESS;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
      error_buffer_.bytes = number_in(value);
      error_buffer_.size = value;
      return CUDA_SUCCESS;
    case CU_JIT_WALL_TIME:
      wall_time_ = value;
      return CUDA_SUCCESS;
    case CU_JIT_LOG_VERBOSE:
      verbose = number_in(value) != 0;
      return CUDA_SUCCESS;
    case CU_JIT_MAX_REGISTERS:
      max_registers = number_in(value);
      return CUDA_SUCCESS;
    case CU_JIT_THREADS_PER_BLOCK:
      threads_per_block = number_in(value);
      threads_out_ = value;
      return CUDA_SUCCESS;
    case CU_JIT_TARGET_FROM_CUCONTEXT:
      target.reset();
      return CUDA_SUCCESS;
    case CU_JIT_OPTIMIZATION_LEVEL:
      if (number_in(value) <= kHighestOptimization) return CUDA_SUCCESS;
      why =
          format_text("CU_JIT_OPTIMIZATION_LEVEL is {}; valid levels are 0 to 4", number_in(value));
      return CUDA_ERROR_INVALID_VALUE;
    case CU_JIT_TARGET:
      target = target_of(number_in(value));
      if (target) return CUDA_SUCCESS;
      why = format_text(
          "CU_JIT_TARGET is {}, which is no target; write 90 for sm_90, 0x10000 + 90 "
          "for sm_90a, 0x20000 + 100 for sm_100f",
          number_in(value));
      return CUDA_ERROR_INVALID_VALUE;
    default:
      break;
  }
  const int number = option;
  if (number >= kGlobalSymbolNames && number <= kGlobalSymbolCount) {
    why = format_text(
        "CU_JIT_GLOBAL_SYMBOL_* ({}) binds symbols to host addresses, which the emulated driver "
        "cannot do",
        number);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (number >= 0 && number <= kLast) return CUDA_SUCCESS;
  why = format_text("there is no JIT option {}", number);
  return CUDA_ERROR_INVALID_VALUE;
}

JitOptions JitOptions::without_buffers() const {
  JitOptions copy;
  copy.target = target;
  copy.max_registers = max_registers;
  copy.threads_per_block = threads_per_block;
  return copy;
}

void JitOptions::add(std::string& log, std::string_view line) {
  log += line;
  if (!line.ends_with('\n')) log += '\n';
}

void JitOptions::write(const Log& log, const std::string& text) noexcept {
  std::size_t written = 0;
  if (log.buffer != nullptr && log.bytes != 0) {
    written = std::min(text.size(), log.bytes - 1);
    std::memcpy(log.buffer, text.data(), written);
    log.buffer[written] = '\0';
  }
  if (log.size != nullptr) put_number(log.size, written);
}

void JitOptions::finish() noexcept {
  write(info_buffer_, info_);
  write(error_buffer_, error_);
  if (wall_time_ != nullptr) {
    const std::chrono::duration<float, std::milli> spent =
        std::chrono::steady_clock::now() - start_;
    const float milliseconds = spent.count();
    // As float, in the first bytes of the value.
    std::memcpy(wall_time_, &milliseconds, sizeof milliseconds);
  }
  if (threads_out_ != nullptr) put_number(threads_out_, threads_per_block);
}

}  // namespace ptxgen::inline v0::driver::emulated
