// src/model/value.cpp - metadata values as C++ types
#include <bit>
#include <limits>

#include "model/value_reader.hpp"

namespace ptxgen::inline v0::gguf {

std::optional<std::int64_t> Value::integer() const noexcept {
  switch (type_) {
    case ValueType::i8:
      return static_cast<std::int8_t>(load<std::uint8_t>(bytes_));
    case ValueType::i16:
      return static_cast<std::int16_t>(load<std::uint16_t>(bytes_));
    case ValueType::i32:
      return static_cast<std::int32_t>(load<std::uint32_t>(bytes_));
    case ValueType::i64:
      return static_cast<std::int64_t>(load<std::uint64_t>(bytes_));
    default:
      break;
  }
  const auto value = unsigned_integer();
  if (!value || *value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) return {};
  return static_cast<std::int64_t>(*value);
}

std::optional<std::uint64_t> Value::unsigned_integer() const noexcept {
  switch (type_) {
    case ValueType::u8:
      return load<std::uint8_t>(bytes_);
    case ValueType::u16:
      return load<std::uint16_t>(bytes_);
    case ValueType::u32:
      return load<std::uint32_t>(bytes_);
    case ValueType::u64:
      return load<std::uint64_t>(bytes_);
    case ValueType::i8:
    case ValueType::i16:
    case ValueType::i32:
    case ValueType::i64:
      break;
    default:
      return {};
  }
  const auto value = integer();
  if (!value || *value < 0) return {};
  return static_cast<std::uint64_t>(*value);
}

std::optional<double> Value::number() const noexcept {
  if (type_ == ValueType::f32) return std::bit_cast<float>(load<std::uint32_t>(bytes_));
  if (type_ == ValueType::f64) return std::bit_cast<double>(load<std::uint64_t>(bytes_));
  return {};
}

std::optional<bool> Value::boolean() const noexcept {
  if (type_ != ValueType::boolean) return {};
  return bytes_[0] != std::byte{0};
}

std::optional<std::string_view> Value::string() const noexcept {
  if (type_ != ValueType::string) return {};
  return std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
}

Value::Iterator Value::begin() const {
  Iterator first;
  first.rest_ = bytes_;
  first.offset_ = offset_;
  first.left_ = size_;
  first.type_ = element_type_;
  if (size_ != 0) first.read();
  return first;
}

Value::Iterator Value::end() const noexcept { return {}; }

Value::Iterator& Value::Iterator::operator++() {
  if (--left_ != 0) read();
  return *this;
}

void Value::Iterator::read() {
  Cursor cursor(rest_, offset_, {});
  cursor.subject.noun = "element";
  // The depth was checked when the file was opened.
  current_ = ValueReader(cursor).value(type_, 1);
  rest_ = cursor.rest();
  offset_ = cursor.offset();
}

}  // namespace ptxgen::inline v0::gguf
