// ptxgen/model/gguf_metadata.hpp - metadata of a GGUF file as typed values
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/model/gguf_types.hpp"

namespace ptxgen::inline v0::gguf {

class Array;

/// A value of the metadata: a view into the file, valid as long as the `File` (or the bytes that
/// were parsed). Values and arrays are not aligned in the file.
class Value {
 public:
  Value(ValueType type, const std::byte* data, std::uint64_t offset) noexcept
      : type_(type), data_(data), offset_(offset) {}

  [[nodiscard]] ValueType type() const noexcept { return type_; }
  /// The first byte of the value in the file, after its type.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  /// The number as T (std::int8_t to std::uint64_t, float, double). Integers of any type whose
  /// value T holds; floating-point values of either type, as float rounded to nearest. Empty for
  /// all else, also for an integer as float, a float as integer, a bool as number.
  template <class T>
  [[nodiscard]] std::optional<T> number() const noexcept;
  [[nodiscard]] std::optional<bool> boolean() const noexcept;
  /// The bytes of a string, UTF-8 by convention but not checked. Empty optional for other types.
  [[nodiscard]] std::optional<std::string_view> string() const noexcept;
  [[nodiscard]] std::optional<Array> array() const noexcept;

 private:
  ValueType type_;
  const std::byte* data_;
  std::uint64_t offset_;
};

/// An array of the metadata: a view, as `Value`. Elements have one type; arrays of arrays are at
/// most 4 deep. Nothing is indexed: iterating over strings reads their lengths one after another.
class Array {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Value;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Value;

    [[nodiscard]] Value operator*() const noexcept { return {type_, data_, offset_}; }
    Iterator& operator++() noexcept;
    void operator++(int) noexcept { ++*this; }
    friend bool operator==(const Iterator& a, const Iterator& b) noexcept {
      return a.left_ == b.left_;
    }

   private:
    friend class Array;
    Iterator(ValueType type, const std::byte* data, std::uint64_t offset,
             std::uint64_t left) noexcept
        : type_(type), data_(data), offset_(offset), left_(left) {}
    ValueType type_;
    const std::byte* data_;
    std::uint64_t offset_;
    std::uint64_t left_;
  };

  Array(ValueType element_type, std::uint64_t size, const std::byte* data,
        std::uint64_t offset) noexcept
      : element_type_(element_type), size_(size), data_(data), offset_(offset) {}

  [[nodiscard]] ValueType element_type() const noexcept { return element_type_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] Iterator begin() const noexcept { return {element_type_, data_, offset_, size_}; }
  [[nodiscard]] Iterator end() const noexcept { return {element_type_, data_, offset_, 0}; }
  /// The elements as stored, little endian, not aligned; empty for strings and arrays.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;

 private:
  ValueType element_type_;
  std::uint64_t size_;
  const std::byte* data_;
  std::uint64_t offset_;
};

/// A key and its value.
struct Entry {
  std::string_view key;      ///< a view into the file
  std::uint64_t offset = 0;  ///< of the key's length in the file
  Value value;
};

/// The key-value pairs of a file. Each getter throws `Error` (stage io) that names the file, the
/// key and the byte: "not-found" for a missing key, "type-mismatch" for a value that is not of the
/// type or does not fit it (the rules of `Value::number`). Getters with a `fallback` return it for
/// a missing key only.
///
/// Threads: const members from any thread at once.
class Metadata {
 public:
  Metadata() = default;
  /// Keys must be unique.
  Metadata(std::vector<Entry> entries, std::string file);

  /// In the order of the file.
  [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }
  /// Null if there is no such key.
  [[nodiscard]] const Value* find(std::string_view key) const noexcept;
  [[nodiscard]] const Value& at(std::string_view key) const;

  [[nodiscard]] std::uint32_t u32(std::string_view key) const;
  [[nodiscard]] std::uint32_t u32(std::string_view key, std::uint32_t fallback) const;
  [[nodiscard]] std::uint64_t u64(std::string_view key) const;
  [[nodiscard]] std::uint64_t u64(std::string_view key, std::uint64_t fallback) const;
  [[nodiscard]] std::int32_t i32(std::string_view key) const;
  [[nodiscard]] std::int32_t i32(std::string_view key, std::int32_t fallback) const;
  [[nodiscard]] std::int64_t i64(std::string_view key) const;
  [[nodiscard]] std::int64_t i64(std::string_view key, std::int64_t fallback) const;
  [[nodiscard]] float f32(std::string_view key) const;
  [[nodiscard]] float f32(std::string_view key, float fallback) const;
  [[nodiscard]] double f64(std::string_view key) const;
  [[nodiscard]] double f64(std::string_view key, double fallback) const;
  [[nodiscard]] bool boolean(std::string_view key) const;
  [[nodiscard]] bool boolean(std::string_view key, bool fallback) const;
  [[nodiscard]] std::string_view string(std::string_view key) const;
  [[nodiscard]] std::string_view string(std::string_view key, std::string_view fallback) const;
  [[nodiscard]] Array array(std::string_view key) const;

  /// All elements of an array of strings: views into the file, 16 bytes each. For access by index.
  [[nodiscard]] std::vector<std::string_view> strings(std::string_view key) const;
  /// All elements of an array of numbers, copied. T as for `Value::number`.
  template <class T>
  [[nodiscard]] std::vector<T> numbers(std::string_view key) const;

 private:
  std::vector<Entry> entries_;
  std::vector<std::size_t> by_key_;  // positions in entries_
  std::string file_;
};

}  // namespace ptxgen::inline v0::gguf
