// src/runtime/launch/launcher_blas.cpp - the launcher's cuBLAS
#include "runtime/launch/launcher_blas.hpp"

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

LazyCublas::~LazyCublas() {
  if (library_ == nullptr) return;
  const Current current(core_);  // cuBLAS frees its resources in the current context
  library_.reset();
}

void LazyCublas::refuse_emulated() const {
  if (core_.device().info().kind != DeviceKind::Emulator) return;
  throw Error(Stage::Launch, "no-cublas",
              "cuBLAS needs a GPU, and this device is emulated; choose the GEMV auto");
}

const std::shared_ptr<const Cublas>& LazyCublas::get() {
  if (ready()) return library_;
  refuse_emulated();
  const std::lock_guard lock(mutex_);
  if (library_ == nullptr) {
    const Current current(core_, Stage::Launch);
    library_ = std::make_shared<const Cublas>(settings_);
    ready_.store(true, std::memory_order_release);
    core_.log().info(
        format_text("gemv: cuBLAS {} from {}", library_->version(), library_->where()));
  }
  return library_;
}

void gemv_by_blas(const ContextCore& core, const Cublas& library, driver::CUstream stream,
                  std::array<std::uint64_t, 3> yax, std::uint32_t k, std::uint32_t n) {
  const Current current(core, Stage::Launch);
  if (k == 0) {
    // BLAS returns at once when a dimension is 0 and leaves y as it was.
    core.call(Stage::Launch, &driver::Table::memset_d32_async, yax[0], 0u, std::size_t{n}, stream);
  } else {
    library.sgemv(stream, yax[0], yax[1], yax[2], k, n);
  }
}

}  // namespace ptxgen::inline v0
