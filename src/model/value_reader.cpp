// src/model/value_reader.cpp - metadata values from checked bytes
#include "model/value_reader.hpp"

#include "model/format.hpp"

namespace ptxgen::inline v0::gguf {

namespace {

// Of a value: a string has its length, an array the type and number of its elements.
std::uint64_t min_bytes(ValueType type) {
  if (type == ValueType::string) return 8;
  return type == ValueType::array ? 12 : info(type).bytes;
}

}  // namespace

std::string with_article(ValueType type) {
  const std::string name(to_string(type));
  // As they are spoken: "an eff 32", "an i 8", "an array".
  const bool vowel = name[0] == 'f' || name[0] == 'i' || name[0] == 'a';
  return (vowel ? "an " : "a ") + name;
}

ValueType ValueReader::type() {
  const std::uint64_t at = cursor_.offset();
  const std::uint32_t number = cursor_.u32();
  if (number >= std::size(kValueTypes)) {
    cursor_.fail("unknown-type", at,
                 format_text("value type {} is unknown; the types are 0 ({}) to {} ({})", number,
                             kValueTypes[0].name, std::size(kValueTypes) - 1,
                             std::end(kValueTypes)[-1].name));
  }
  return static_cast<ValueType>(number);
}

Value ValueReader::value(ValueType type, std::uint32_t depth) {
  if (type == ValueType::array) return array(depth);
  Value value;
  value.type_ = type;
  const std::uint64_t bytes = type == ValueType::string ? cursor_.u64() : info(type).bytes;
  value.offset_ = cursor_.offset();
  value.bytes_ = cursor_.take(bytes);
  if (type == ValueType::boolean) check_bools(value);
  return value;
}

Value ValueReader::array(std::uint32_t depth) {
  if (depth == kMaxArrayDepth) {
    cursor_.fail("too-deep", cursor_.offset(),
                 format_text("arrays are nested deeper than {}", kMaxArrayDepth));
  }
  Value value;
  value.type_ = ValueType::array;
  value.element_type_ = type();
  value.size_ = cursor_.count("element", min_bytes(value.element_type_));
  value.offset_ = cursor_.offset();
  const auto rest = cursor_.rest();
  skip_elements(value.element_type_, value.size_, depth + 1);
  value.bytes_ = rest.first(static_cast<std::size_t>(cursor_.offset() - value.offset_));
  if (value.element_type_ == ValueType::boolean) check_bools(value);
  return value;
}

void ValueReader::skip_elements(ValueType type, std::uint64_t count, std::uint32_t depth) {
  if (const std::uint64_t bytes = info(type).bytes; bytes != 0) {
    (void)cursor_.take(count * bytes);  // at most what is left: the count was checked
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    if (type == ValueType::string) {
      (void)cursor_.string();
    } else {
      (void)array(depth);
    }
  }
}

void ValueReader::check_bools(const Value& value) const {
  const auto bytes = value.bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (std::to_integer<unsigned>(bytes[i]) > 1) {
      cursor_.fail("bad-bool", value.offset() + i,
                   format_text("a bool has the value {}; expects 0 or 1",
                               std::to_integer<unsigned>(bytes[i])));
    }
  }
}

}  // namespace ptxgen::inline v0::gguf
