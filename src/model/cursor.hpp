// src/model/cursor.hpp - checked reads of little-endian bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace ptxgen::inline v0::gguf {

/// The little-endian number in bytes; `T` is an unsigned type of as many.
template <class T>
[[nodiscard]] T load(std::span<const std::byte> bytes) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(bytes[i]) << (8 * i)));
  }
  return value;
}

/// What errors are about: "key 'general.name'", "tensor number 3", "header".
struct Subject {
  std::string_view noun = "header";
  std::string_view name;     // empty: not known yet
  std::uint64_t number = 0;  // 1-based; 0: there is only one
};

/// "key 'general.name' at byte 24". Names are shown as `printable`.
[[nodiscard]] std::string place_text(const Subject& subject, std::uint64_t offset);

/// Reads bytes of a file in order. Every read is checked before it: no read passes the end.
class Cursor {
 public:
  /// `offset`: of the first byte in the file; `file`: its name in errors, may be empty.
  Cursor(std::span<const std::byte> bytes, std::uint64_t offset, std::string_view file) noexcept
      : bytes_(bytes), offset_(offset), file_(file) {}

  /// Of the next byte, in the file.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_ + at_; }
  [[nodiscard]] std::uint64_t left() const noexcept { return bytes_.size() - at_; }
  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return bytes_.subspan(at_); }

  [[nodiscard]] std::span<const std::byte> take(std::uint64_t count) {
    if (count > left()) truncated(count);
    const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return taken;
  }
  [[nodiscard]] std::uint32_t u32() { return load<std::uint32_t>(take(4)); }
  [[nodiscard]] std::uint64_t u64() { return load<std::uint64_t>(take(8)); }
  /// Characters after their u64 count.
  [[nodiscard]] std::string_view string() {
    const auto characters = take(u64());
    return {reinterpret_cast<const char*>(characters.data()), characters.size()};
  }
  /// A u64 count of things that take `min_bytes` or more each. Throws "bad-count" if the rest of
  /// the file cannot hold them.
  [[nodiscard]] std::uint64_t count(std::string_view noun, std::uint64_t min_bytes);

  [[noreturn]] void fail(std::string_view code, std::uint64_t offset, std::string_view text) const;

  Subject subject;

 private:
  [[noreturn]] void truncated(std::uint64_t count) const;

  std::span<const std::byte> bytes_;
  std::uint64_t offset_ = 0;
  std::size_t at_ = 0;
  std::string_view file_;
};

/// Throws `Error` (Stage::Io) with a message that begins with the place.
[[noreturn]] void fail(std::string_view file, std::string_view code, const Subject& subject,
                       std::uint64_t offset, std::string_view text);

}  // namespace ptxgen::inline v0::gguf
