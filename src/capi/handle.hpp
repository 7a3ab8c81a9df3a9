// src/capi/handle.hpp - handles, and the boundary of calls
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/ptxgen.h"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::capi {

/// The error of a failed call. Immutable.
struct Failure {
  ptxgen_status status = PTXGEN_ERROR_INTERNAL;
  std::string code;
  std::string message;
  std::string text;
  std::string kernel;
  std::string target;
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string excerpt;
  int driver_status = 0;
  std::string log;
};

/// An invalid call. Becomes PTXGEN_ERROR_USAGE.
struct UsageError {
  std::string code;
  std::string message;
};

enum class Kind : std::uint32_t {
  Device = 1,
  Buffer,
  Stream,
  Event,
  Graph,
  Program,
  Module,
  Function,
  Plan,
  Image,
  Findings,
  Model,
  Session,
};
[[nodiscard]] std::string_view to_string(Kind kind) noexcept;

/// The first base of every handle, so a `const void*` of the C API points to it.
class Handle {
 public:
  explicit Handle(Kind kind) noexcept : mark_(kMark | static_cast<std::uint32_t>(kind)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  /// Not virtual: an object with a vtable would not begin with this base.
  ~Handle() { mark_.store(0, std::memory_order_relaxed); }

  /// Whether its first bytes are those of a handle, and of one of that kind.
  [[nodiscard]] bool valid() const noexcept { return (mark() & kMarkBits) == kMark; }
  [[nodiscard]] bool is(Kind kind) const noexcept {
    return mark() == (kMark | static_cast<std::uint32_t>(kind));
  }
  [[nodiscard]] Kind kind() const noexcept { return static_cast<Kind>(mark() & 0xffu); }

  void keep(std::shared_ptr<const Failure> failure) const noexcept;
  [[nodiscard]] std::shared_ptr<const Failure> failure() const noexcept;

 private:
  static constexpr std::uint64_t kMark = 0x70747867656e0000;  // "ptxgen"
  static constexpr std::uint64_t kMarkBits = 0xffffffffffffff00;
  [[nodiscard]] std::uint64_t mark() const noexcept {
    return mark_.load(std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> mark_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Failure> failure_;
};

/// The handle that stores a call's failure; null: the thread.
[[nodiscard]] const Handle* slot(const void* handle) noexcept;

/// Stores the exception being handled on `handle` or in the thread; returns its status.
[[nodiscard]] ptxgen_status keep_current_exception(const Handle* handle) noexcept;

/// Runs a call's body and catches all exceptions.
template <class Body>
[[nodiscard]] ptxgen_status guarded(const void* first_handle, const Body& body) noexcept {
  try {
    body();
    return PTXGEN_OK;
  } catch (...) {
    return keep_current_exception(slot(first_handle));
  }
}

[[noreturn]] void throw_wrong_handle(const Handle* handle, Kind wanted, std::string_view name);
[[noreturn]] void throw_null(std::string_view name);

/// `handle`, which must be one of its kind. `name`: of the parameter.
template <class T>
[[nodiscard]] T& need(T* handle, std::string_view name) {
  if (handle == nullptr || !handle->is(T::kKind)) throw_wrong_handle(handle, T::kKind, name);
  return *handle;
}

/// A pointer to a result or to a text that may not be null.
template <class T>
[[nodiscard]] T& need_place(T* place, std::string_view name) {
  if (place == nullptr) throw_null(name);
  return *place;
}
[[nodiscard]] std::string_view need_text(const char* text, std::string_view name);
/// An array of `count` elements: null only if that is 0.
template <class T>
[[nodiscard]] std::span<const T> need_array(const T* first, std::size_t count,
                                            std::string_view name) {
  if (first == nullptr && count != 0) throw_null(name);
  return {first, count};
}

/// Output parameter of a new handle: null until it exists.
template <class T>
[[nodiscard]] T*& need_result(T** place, std::string_view name) {
  T*& result = need_place(place, name);
  result = nullptr;
  return result;
}

[[noreturn]] void throw_struct_bytes(std::size_t bytes, std::string_view name);
[[noreturn]] void throw_newer_struct(std::size_t bytes, std::size_t known, std::string_view name);

/// The caller's structure of any version: missing fields are zero, and fields unknown to this
/// library must be zero.
template <class T>
[[nodiscard]] T read_struct(const T* from, std::string_view name) {
  T value{};
  if (from == nullptr) return value;
  std::size_t bytes = 0;
  std::memcpy(&bytes, from, sizeof bytes);
  if (bytes < sizeof bytes || bytes > 65536) throw_struct_bytes(bytes, name);
  const auto* raw = reinterpret_cast<const unsigned char*>(from);
  for (std::size_t i = sizeof(T); i < bytes; ++i) {
    if (raw[i] != 0) throw_newer_struct(bytes, sizeof(T), name);
  }
  std::memcpy(&value, from, bytes < sizeof(T) ? bytes : sizeof(T));
  value.struct_bytes = sizeof(T);
  return value;
}

/// Fills the fields that the caller's structure has; `struct_bytes` stays.
template <class T>
void write_struct(T* to, T value, std::string_view name) {
  std::size_t bytes = 0;
  std::memcpy(&bytes, &need_place(to, name), sizeof bytes);
  if (bytes < sizeof bytes || bytes > 65536) throw_struct_bytes(bytes, name);
  value.struct_bytes = bytes;
  std::memcpy(static_cast<void*>(to), &value, bytes < sizeof(T) ? bytes : sizeof(T));
  if (bytes > sizeof(T)) {
    std::memset(reinterpret_cast<unsigned char*>(to) + sizeof(T), 0, bytes - sizeof(T));
  }
}

/// `text`, truncated, with a final 0.
template <std::size_t kBytes>
void write_text(char (&to)[kBytes], std::string_view text) noexcept {
  const std::size_t bytes = text.size() < kBytes - 1 ? text.size() : kBytes - 1;
  // An empty view may have no address, which memcpy must not get.
  if (bytes != 0) std::memcpy(to, text.data(), bytes);
  std::memset(to + bytes, 0, kBytes - bytes);
}

}  // namespace ptxgen::inline v0::capi
