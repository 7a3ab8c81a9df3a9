// ptxgen/runtime/device/buffer.hpp - device memory with a type and a size
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "ptxgen/kernels/operand.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/device/stream.hpp"

namespace ptxgen::inline v0 {

namespace detail {

/// Untyped device memory; the base of Buffer<T>.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// Not initialised. Throws `Error` (Stage::Device): "out-of-memory" with the
  /// free and total bytes, "driver-call".
  DeviceMemory(const Context& context, std::uint64_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  [[nodiscard]] std::uint64_t address() const noexcept { return address_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  void write(std::uint64_t at, const void* from, std::uint64_t bytes, const Stream* stream);
  void read(std::uint64_t at, void* to, std::uint64_t bytes, const Stream* stream) const;
  void copy(std::uint64_t at, const DeviceMemory& from, std::uint64_t from_at, std::uint64_t bytes,
            const Stream* stream);
  /// `count` elements of 1, 2 or 4 bytes.
  void fill(std::uint64_t at, std::uint32_t value, std::uint32_t element_bytes, std::uint64_t count,
            const Stream* stream);

 private:
  struct Owner;
  Hidden<Owner> owner_;
  std::uint64_t address_ = 0;
  std::uint64_t bytes_ = 0;
};

[[noreturn]] void throw_copy_size(std::uint64_t wanted, std::uint64_t has, std::uint64_t element);

}  // namespace detail

/// `size` elements of type T on the device, at least 256-byte aligned, not initialised. The
/// destructor frees them after the work that was queued before. Movable, not copyable.
///
/// Copies throw `Error` (Stage::Device, "copy-size") unless both sizes are equal. Without a stream
/// a copy is synchronous; with one it is queued, and the host memory must live until the copy has
/// run.
///
/// Threads: one thread at a time; const members from several.
template <class T>
class Buffer {
 public:
  using Host = detail::Host<T>;

  Buffer() = default;
  /// `size` elements, 0 allowed (no memory then). Throws as the class `Context` and
  /// "out-of-memory".
  Buffer(const Context& context, std::uint64_t size)
      : memory_(context, size * sizeof(Host)), size_(size) {}
  /// With the elements of `values`.
  Buffer(const Context& context, std::span<const Host> values) : Buffer(context, values.size()) {
    write(values);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return memory_.bytes(); }
  [[nodiscard]] DeviceAddress<T> address() const noexcept { return {memory_.address()}; }
  [[nodiscard]] operator DeviceSpan<T>() const noexcept { return {address(), size_}; }
  [[nodiscard]] operator DeviceRange() const noexcept { return DeviceSpan<T>(*this); }

  /// All elements, from the host.
  void write(std::span<const Host> values, const Stream* stream = nullptr) {
    check(values.size());
    memory_.write(0, values.data(), values.size_bytes(), stream);
  }
  /// All elements, to the host.
  void read(std::span<Host> values, const Stream* stream = nullptr) const {
    check(values.size());
    memory_.read(0, values.data(), values.size_bytes(), stream);
  }
  /// As many elements as `values` has, from `first` on. Throw `Error` (Stage::Device,
  /// "out-of-bounds") beyond the end.
  void write_part(std::uint64_t first, std::span<const Host> values,
                  const Stream* stream = nullptr) {
    check_part(first, values.size());
    memory_.write(first * sizeof(Host), values.data(), values.size_bytes(), stream);
  }
  void read_part(std::uint64_t first, std::span<Host> values,
                 const Stream* stream = nullptr) const {
    check_part(first, values.size());
    memory_.read(first * sizeof(Host), values.data(), values.size_bytes(), stream);
  }
  /// All elements of another buffer of the same size.
  void copy(const Buffer& from, const Stream* stream = nullptr) {
    check(from.size());
    memory_.copy(0, from.memory_, 0, bytes(), stream);
  }
  /// Every byte.
  void fill_bytes(std::uint8_t value, const Stream* stream = nullptr) {
    memory_.fill(0, value, 1, bytes(), stream);
  }

 private:
  void check(std::uint64_t count) const {
    if (count != size_) detail::throw_copy_size(count, size_, sizeof(Host));
  }
  void check_part(std::uint64_t first, std::uint64_t count) const {
    if (first > size_ || count > size_ - first) detail::throw_subspan(first, count, size_);
  }
  detail::DeviceMemory memory_;
  std::uint64_t size_ = 0;
};

}  // namespace ptxgen::inline v0
