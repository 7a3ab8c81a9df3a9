// ptxgen/model/gguf.hpp - GGUF files: metadata and tensors, memory-mapped
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/model/gguf_types.hpp"
#include "ptxgen/support/hidden.hpp"

namespace ptxgen::inline v0::gguf {

/// Arrays in arrays: an array of numbers has depth 1.
inline constexpr std::uint32_t kMaxArrayDepth = 4;
/// The alignment of tensors in a file that does not state one, in bytes.
inline constexpr std::uint64_t kDefaultAlignment = 32;

/// A metadata value: a view of the file's bytes, valid as long as the `File`. Cheap to copy.
class Value {
 public:
  class Iterator;

  /// An empty string.
  Value() = default;

  [[nodiscard]] ValueType type() const noexcept { return type_; }
  /// Byte offset in the file, of a string or an array after its length.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  /// As stored: a number's bytes, a string's characters, an array's elements.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// The value of any integer type; empty for other types and where it does not fit.
  [[nodiscard]] std::optional<std::int64_t> integer() const noexcept;
  [[nodiscard]] std::optional<std::uint64_t> unsigned_integer() const noexcept;
  /// The value of an f32 or f64; empty for other types.
  [[nodiscard]] std::optional<double> number() const noexcept;
  /// The value of a bool; empty for other types.
  [[nodiscard]] std::optional<bool> boolean() const noexcept;
  /// The characters of a string, which need not be UTF-8; empty for other types.
  [[nodiscard]] std::optional<std::string_view> string() const noexcept;

  /// Of an array; u8 for other types.
  [[nodiscard]] ValueType element_type() const noexcept { return element_type_; }
  /// Elements of an array; 0 for other types.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// The elements of an array, from the first to the last; none for other types. A step over an
  /// array of arrays takes time in proportion to its bytes.
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const noexcept;

 private:
  friend class ValueReader;

  std::span<const std::byte> bytes_;
  std::uint64_t offset_ = 0;
  std::uint64_t size_ = 0;
  ValueType type_ = ValueType::string;
  ValueType element_type_ = ValueType::u8;
};

/// Goes through the elements of an array. Throws `Error` as `File` only if the file was changed
/// after it was opened.
class Value::Iterator {
 public:
  Iterator() = default;

  [[nodiscard]] const Value& operator*() const noexcept { return current_; }
  [[nodiscard]] const Value* operator->() const noexcept { return &current_; }
  Iterator& operator++();
  /// Of iterators over one array.
  [[nodiscard]] bool operator==(const Iterator& other) const noexcept {
    return left_ == other.left_;
  }

 private:
  friend class Value;
  void read();

  std::span<const std::byte> rest_;  // after `current_`
  std::uint64_t offset_ = 0;         // of `rest_` in the file
  std::uint64_t left_ = 0;           // elements from `current_` on
  ValueType type_ = ValueType::u8;
  Value current_;
};

/// A key and its value.
struct Entry {
  std::string_view key;
  Value value;
  std::uint64_t offset = 0;  ///< of the key's length, in the file
};

/// A tensor: a view of the file's bytes, valid as long as the `File`.
struct Tensor {
  std::string_view name;
  const TensorType* type = nullptr;      ///< never null in a `File`
  std::array<std::uint64_t, 4> shape{};  ///< 1 after the last dim
  std::uint32_t dim_count = 0;           ///< 1 to 4
  std::uint64_t offset = 0;              ///< of the data, in the data section
  std::uint64_t values = 0;              ///< the product of the dims
  std::uint64_t bytes = 0;               ///< of the data
  std::uint64_t info_offset = 0;         ///< of its description, in the file
  std::span<const std::byte> data;       ///< aligned to `File::alignment` from the file's start

  /// dims[0] is contiguous, and a multiple of the type's `block_values`. A weight of a linear layer
  /// has the dims [k, n]: n rows of k values, row-major.
  [[nodiscard]] std::span<const std::uint64_t> dims() const noexcept {
    return {shape.data(), dim_count};
  }
};

/// An open GGUF file of version 2 or 3, little endian. Metadata and the descriptions of tensors are
/// checked when it is opened, in one walk that reads no tensor; strings, arrays and tensors are
/// views. Format: docs/gguf.md in ggml's repository.
///
/// Errors: `Error` (Stage::Io) with `file`; the message has the key or tensor and the byte offset.
///   "read"                 the file cannot be opened or mapped
///   "not-gguf", "big-endian", "unsupported-version"
///   "truncated"            the file ends within the header, a key or a description
///   "bad-count"            more keys, tensors or elements than the rest of the file can hold
///   "bad-name"             a key or name without characters
///   "duplicate-name"       two keys or two tensors of one name
///   "unknown-type"         of a value or a tensor
///   "too-deep"             arrays nested beyond `kMaxArrayDepth`
///   "bad-bool"             a bool other than 0 and 1
///   "bad-alignment"        `general.alignment` is no power of two of 8 or more, or no u32
///   "bad-dims"             none or more than 4, a dim of 0, dims[0] with a partial block
///   "misaligned", "out-of-file", "overlap"    the data of a tensor
///   "not-found", "type-mismatch", "out-of-range"    the getters below
///
/// Threads: const functions may be called at the same time. The file must not be changed or made
/// shorter while it is open: on Linux, reading bytes that are gone is a SIGBUS.
class File {
 public:
  /// Maps a file. Nothing is copied.
  explicit File(const std::string& path);
  /// Reads bytes in memory, which must outlive the object; `name` is what errors call them. Data of
  /// tensors is as aligned as `bytes`.
  [[nodiscard]] static File view(std::span<const std::byte> bytes, std::string name);

  /// The path, or the name of the view.
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] std::uint32_t version() const noexcept;
  /// Of tensors, in bytes: `general.alignment`, or the default.
  [[nodiscard]] std::uint64_t alignment() const noexcept;
  /// Of the data section, from the start of the file.
  [[nodiscard]] std::uint64_t data_offset() const noexcept;
  /// Bytes of the file.
  [[nodiscard]] std::uint64_t size() const noexcept;

  /// Lets the system drop the memory that the pages of these bytes of the file take, as far as they
  /// are whole; reading them again brings them back. No effect on a view.
  void release(std::span<const std::byte> bytes) const noexcept;
  /// The same of all bytes of the file.
  void release() const noexcept;

  /// In the order of the file.
  [[nodiscard]] std::span<const Entry> metadata() const noexcept;
  [[nodiscard]] std::span<const Tensor> tensors() const noexcept;

  /// Null if there is none; O(log n).
  [[nodiscard]] const Value* find(std::string_view key) const noexcept;
  [[nodiscard]] const Tensor* find_tensor(std::string_view name) const noexcept;
  /// Throws `Error` "not-found".
  [[nodiscard]] const Tensor& tensor(std::string_view name) const;

  /// Values by key. An integer of any type is accepted if it fits, a float of either type (f64 is
  /// rounded to f32). Throws `Error` "not-found", "type-mismatch" or "out-of-range".
  [[nodiscard]] std::uint32_t u32(std::string_view key) const;
  [[nodiscard]] std::uint64_t u64(std::string_view key) const;
  [[nodiscard]] std::int32_t i32(std::string_view key) const;
  [[nodiscard]] float f32(std::string_view key) const;
  [[nodiscard]] bool boolean(std::string_view key) const;
  [[nodiscard]] std::string_view string(std::string_view key) const;
  /// The same, or `otherwise` where there is no such key.
  [[nodiscard]] std::uint32_t u32(std::string_view key, std::uint32_t otherwise) const;
  [[nodiscard]] std::uint64_t u64(std::string_view key, std::uint64_t otherwise) const;
  [[nodiscard]] std::int32_t i32(std::string_view key, std::int32_t otherwise) const;
  [[nodiscard]] float f32(std::string_view key, float otherwise) const;
  [[nodiscard]] bool boolean(std::string_view key, bool otherwise) const;
  [[nodiscard]] std::string_view string(std::string_view key, std::string_view otherwise) const;
  /// An array with elements of that type. Throws `Error` "not-found" or "type-mismatch".
  [[nodiscard]] const Value& array(std::string_view key, ValueType element) const;

 private:
  struct State;
  explicit File(Hidden<State> state);
  [[nodiscard]] const Entry* entry(std::string_view key) const noexcept;
  Hidden<State> state_;
};

}  // namespace ptxgen::inline v0::gguf
