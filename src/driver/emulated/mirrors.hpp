// src/driver/emulated/mirrors.hpp - device memory that mirrors registered host memory
#pragma once

#include "driver/emulated/state.hpp"

/// Emulated kernels reach nothing but device memory, and host memory that a program registers stays
/// where it is. Registered memory whose device pointer is asked for gets device memory of the same
/// size: before each operation on memory the host's bytes are copied there, and what the operation
/// changed is copied back. Bytes that the host changes meanwhile are seen by the next operation.
namespace ptxgen::inline v0::driver::emulated {

/// Mirrors `host` at `device` from now on.
void add_mirror(CUctx_st& context, std::byte* host, CUdeviceptr device, std::uint64_t bytes);
/// False if the memory has no mirror.
bool remove_mirror(CUctx_st& context, const std::byte* host);

/// Around one operation, on the thread that does it.
class Mirroring {
 public:
  explicit Mirroring(CUctx_st& context);
  Mirroring(const Mirroring&) = delete;
  Mirroring& operator=(const Mirroring&) = delete;
  ~Mirroring();

 private:
  CUctx_st& context_;
  const bool any_;
};

}  // namespace ptxgen::inline v0::driver::emulated
