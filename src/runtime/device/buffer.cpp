// src/runtime/device/buffer.cpp - device memory
#include "ptxgen/runtime/device/buffer.hpp"

#include "runtime/device/owned.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

namespace {

std::string elements(std::uint64_t count) { return count_text(count, "element"); }

}  // namespace

driver::CUdeviceptr allocate(const ContextCore& core, std::uint64_t bytes,
                             std::string_view purpose) {
  driver::CUdeviceptr address = 0;
  const driver::CUresult result = core.table().mem_alloc(&address, static_cast<std::size_t>(bytes));
  if (result == driver::CUDA_SUCCESS) return address;
  const FailedCall failed{&row_of(&Table::mem_alloc), result};
  std::string doing = "while allocating " + count_text(bytes, "byte");
  if (!purpose.empty()) doing += " " + std::string(purpose);
  if (result != driver::CUDA_ERROR_OUT_OF_MEMORY) {
    throw core.failure(Stage::Device, failed, doing);
  }
  std::size_t free = 0;
  std::size_t total = 0;
  if (core.table().mem_get_info(&free, &total) == driver::CUDA_SUCCESS) {
    doing += format_text("; {} of {} are free", free, count_text(total, "byte"));
  }
  Error error = core.failure(Stage::Device, failed, doing);
  error.code = "out-of-memory";
  throw error.refresh();
}

namespace detail {

struct DeviceMemory::Owner : Owned<driver::CUdeviceptr, Release::Memory> {
  using Owned::Owned;
};

void throw_copy_size(std::uint64_t wanted, std::uint64_t has, std::uint64_t element) {
  throw Error(Stage::Device, "copy-size",
              format_text("the copy has {}, the buffer {} of {}; the counts must be equal",
                          elements(wanted), elements(has), count_text(element, "byte")));
}

DeviceMemory::DeviceMemory(const Context& context, std::uint64_t bytes) : bytes_(bytes) {
  const ContextCore& core = context.core();
  core.alive(Stage::Device);
  if (bytes == 0) return;
  owner_ = Hidden<Owner>::make(core.shared_from_this());
  const Current current(core, Stage::Device);
  owner_->handle = allocate(core, bytes);
  address_ = owner_->handle;
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : owner_(std::move(other.owner_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}
DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  DeviceMemory old(std::move(*this));  // freed at the end
  owner_ = std::move(other.owner_);
  address_ = std::exchange(other.address_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}
DeviceMemory::~DeviceMemory() = default;

namespace {

void within(std::uint64_t at, std::uint64_t bytes, std::uint64_t has) {
  if (at > has || bytes > has - at) throw_subspan(at, bytes, has);
}

}  // namespace

void DeviceMemory::write(std::uint64_t at, const void* from, std::uint64_t bytes,
                         const Stream* stream) {
  within(at, bytes, bytes_);
  if (bytes == 0) return;
  const ContextCore& core = *owner_->core;
  Span span(core.trace(), "copy", "runtime");
  span.argument("bytes", bytes);
  const auto size = static_cast<std::size_t>(bytes);
  if (stream == nullptr) {
    core.enter_and_call(Stage::Device, &Table::memcpy_to_device, address_ + at, from, size);
    return;
  }
  core.same(Stage::Device, stream->core(), "the stream");
  core.enter_and_call(Stage::Device, &Table::memcpy_to_device_async, address_ + at, from, size,
                      stream->handle());
}

void DeviceMemory::read(std::uint64_t at, void* to, std::uint64_t bytes,
                        const Stream* stream) const {
  within(at, bytes, bytes_);
  if (bytes == 0) return;
  const ContextCore& core = *owner_->core;
  Span span(core.trace(), "copy", "runtime");
  span.argument("bytes", bytes);
  const auto size = static_cast<std::size_t>(bytes);
  if (stream == nullptr) {
    core.enter_and_call(Stage::Device, &Table::memcpy_to_host, to, address_ + at, size);
    core.waited();
    return;
  }
  core.same(Stage::Device, stream->core(), "the stream");
  core.enter_and_call(Stage::Device, &Table::memcpy_to_host_async, to, address_ + at, size,
                      stream->handle());
}

void DeviceMemory::copy(std::uint64_t at, const DeviceMemory& from, std::uint64_t from_at,
                        std::uint64_t bytes, const Stream* stream) {
  within(at, bytes, bytes_);
  within(from_at, bytes, from.bytes_);
  if (bytes == 0) return;
  const ContextCore& core = *owner_->core;
  core.same(Stage::Device, *from.owner_->core, "the buffer that is copied");
  Span span(core.trace(), "copy", "runtime");
  span.argument("bytes", bytes);
  const auto size = static_cast<std::size_t>(bytes);
  if (stream == nullptr) {
    core.alive(Stage::Device);
    const Current current(core, Stage::Device);
    core.call(Stage::Device, &Table::memcpy_within_device, address_ + at, from.address_ + from_at,
              size);
    // A copy within the device is asynchronous.
    core.call(Stage::Device, &Table::stream_synchronize, driver::CUstream{});
    return;
  }
  core.same(Stage::Device, stream->core(), "the stream");
  core.enter_and_call(Stage::Device, &Table::memcpy_within_device_async, address_ + at,
                      from.address_ + from_at, size, stream->handle());
}

void DeviceMemory::fill(std::uint64_t at, std::uint32_t value, std::uint32_t element_bytes,
                        std::uint64_t count, const Stream* stream) {
  within(at, count * element_bytes, bytes_);
  if (count == 0) return;
  const ContextCore& core = *owner_->core;
  if (stream != nullptr) core.same(Stage::Device, stream->core(), "the stream");
  const driver::CUstream queue = stream == nullptr ? nullptr : stream->handle();
  const std::uint64_t address = address_ + at;
  const auto size = static_cast<std::size_t>(count);
  core.alive(Stage::Device);
  const Current current(core, Stage::Device);
  switch (element_bytes) {
    case 1:
      core.call(Stage::Device, &Table::memset_d8_async, address, static_cast<unsigned char>(value),
                size, queue);
      break;
    case 2:
      core.call(Stage::Device, &Table::memset_d16_async, address,
                static_cast<unsigned short>(value), size, queue);
      break;
    default:
      core.call(Stage::Device, &Table::memset_d32_async, address, value, size, queue);
      break;
  }
  if (stream == nullptr) core.call(Stage::Device, &Table::stream_synchronize, queue);
}

}  // namespace detail
}  // namespace ptxgen::inline v0
