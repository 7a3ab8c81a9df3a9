// ptxgen/support/text_buffer.hpp - the growing text that PTX is printed into
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ptxgen::inline v0 {

/// An append-only text. Printing PTX is on the library's critical path (a kernel is generated in
/// tens of microseconds), so numbers are formatted here instead of by fmt. `bench_codegen` compares
/// the two; this class is removed if it is no longer at least twice as fast.
///
/// Owned by one emission, never shared between threads.
class TextBuffer {
 public:
  explicit TextBuffer(std::size_t reserve_bytes = 4096) { text_.resize(reserve_bytes); }

  TextBuffer& operator<<(std::string_view piece) {
    char* at = grow(piece.size());
    std::memcpy(at, piece.data(), piece.size());
    size_ += piece.size();
    return *this;
  }
  TextBuffer& operator<<(char piece) {
    *grow(1) = piece;
    ++size_;
    return *this;
  }

  TextBuffer& decimal(std::uint64_t value);
  TextBuffer& decimal_signed(std::int64_t value);
  /// Upper-case hexadecimal with exactly `digits` digits (at most 16), no prefix.
  TextBuffer& hex(std::uint64_t value, unsigned digits);

  [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), size_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void clear() noexcept { size_ = 0; }

  /// The text as a string; the buffer is empty afterwards.
  [[nodiscard]] std::string take();

 private:
  char* grow(std::size_t more) {
    if (text_.size() - size_ < more) text_.resize((size_ + more) * 2);
    return text_.data() + size_;
  }

  std::string text_;
  std::size_t size_ = 0;
};

}  // namespace ptxgen::inline v0
