// tests/model/gguf_writer.hpp - writes GGUF files in memory, also with faults
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptxgen/model/gguf_types.hpp"

namespace ptxgen::test {

using gguf::ValueType;

inline void append_number(std::string& bytes, std::uint64_t number, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    bytes += static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
  }
}
inline void append_text(std::string& bytes, std::string_view text) {
  append_number(bytes, text.size(), 8);
  bytes += text;
}

/// A metadata value to be written.
struct WrittenValue {
  ValueType type = ValueType::u8;
  std::uint64_t bits = 0;  ///< of a number or a bool
  std::string text = {};   ///< of a string
  ValueType element_type = ValueType::u8;
  std::vector<WrittenValue> elements = {};
};

inline WrittenValue written(ValueType type, std::uint64_t bits) {
  WrittenValue value;
  value.type = type;
  value.bits = bits;
  return value;
}
inline WrittenValue written(float number) {
  return written(ValueType::f32, std::bit_cast<std::uint32_t>(number));
}
inline WrittenValue written(double number) {
  return written(ValueType::f64, std::bit_cast<std::uint64_t>(number));
}
inline WrittenValue written(std::string text) {
  WrittenValue value;
  value.type = ValueType::string;
  value.text = std::move(text);
  return value;
}
inline WrittenValue written(const char* text) { return written(std::string(text)); }
inline WrittenValue written_array(ValueType element, std::vector<WrittenValue> elements) {
  WrittenValue value;
  value.type = ValueType::array;
  value.element_type = element;
  value.elements = std::move(elements);
  return value;
}

inline void append_value(std::string& bytes, const WrittenValue& value) {
  if (value.type == ValueType::string) return append_text(bytes, value.text);
  if (value.type != ValueType::array)
    return append_number(bytes, value.bits, info(value.type).bytes);
  append_number(bytes, static_cast<std::uint32_t>(value.element_type), 4);
  append_number(bytes, value.elements.size(), 8);
  for (const WrittenValue& element : value.elements) append_value(bytes, element);
}

/// A tensor to be written.
struct WrittenTensor {
  std::string name;
  std::vector<std::uint64_t> dims;
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};

/// Collects keys and tensors; `bytes()` is the file. Tests put faults into
/// the public fields, or into the bytes.
class GgufWriter {
 public:
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;    ///< that the writer keeps; the key is the caller's
  std::uint64_t more_tensors = 0;  ///< that the header promises
  std::uint64_t more_keys = 0;
  std::string metadata;  ///< the keys as written
  std::vector<WrittenTensor> tensors;
  std::string data;  ///< the data section

  GgufWriter& key(std::string_view name, const WrittenValue& value) {
    append_text(metadata, name);
    append_number(metadata, static_cast<std::uint32_t>(value.type), 4);
    append_value(metadata, value);
    ++keys_;
    return *this;
  }
  /// A key with bytes of any kind after its type.
  GgufWriter& raw_key(std::string_view name, std::uint32_t type, std::string_view value) {
    append_text(metadata, name);
    append_number(metadata, type, 4);
    metadata += value;
    ++keys_;
    return *this;
  }
  /// Appends the tensor's data at the next multiple of the alignment.
  GgufWriter& tensor(std::string name, std::vector<std::uint64_t> dims, std::uint32_t type,
                     std::string_view values) {
    data.resize((data.size() + alignment - 1) / alignment * alignment, '\0');
    tensors.push_back({std::move(name), std::move(dims), type, data.size()});
    data += values;
    return *this;
  }
  /// A tensor of a supported type with bytes that count up.
  GgufWriter& tensor(std::string name, std::vector<std::uint64_t> dims, std::string_view type) {
    const gguf::TensorType& row = *gguf::find_tensor_type(type);
    std::uint64_t bytes = row.block_bytes;
    for (std::size_t i = 0; i < dims.size(); ++i)
      bytes *= i == 0 ? dims[0] / row.block_values : dims[i];
    std::string values(bytes, '\0');
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<char>(static_cast<unsigned char>(i + row.id));
    }
    return tensor(std::move(name), std::move(dims), row.id, values);
  }

  [[nodiscard]] std::string bytes() const {
    std::string file = magic;
    append_number(file, version, 4);
    append_number(file, tensors.size() + more_tensors, 8);
    append_number(file, keys_ + more_keys, 8);
    file += metadata;
    for (const WrittenTensor& tensor : tensors) {
      append_text(file, tensor.name);
      append_number(file, tensor.dims.size(), 4);
      for (const std::uint64_t dim : tensor.dims) append_number(file, dim, 8);
      append_number(file, tensor.type, 4);
      append_number(file, tensor.offset, 8);
    }
    if (tensors.empty()) return file;
    file.resize((file.size() + alignment - 1) / alignment * alignment, '\0');
    return file + data;
  }

 private:
  std::uint64_t keys_ = 0;
};

/// The bytes as `gguf::File::view` takes them.
inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// A file with every type of value and tensor.
inline GgufWriter everything() {
  GgufWriter writer;
  writer.key("general.architecture", written("llama"))
      .key("general.name", written("a model \xe2\x96\x81 \"of\" tests\n"))
      .key("test.u8", written(ValueType::u8, 0xff))
      .key("test.i8", written(ValueType::i8, 0x80))
      .key("test.u16", written(ValueType::u16, 0xffff))
      .key("test.i16", written(ValueType::i16, 0x8000))
      .key("test.u32", written(ValueType::u32, 0xffffffff))
      .key("test.i32", written(ValueType::i32, 0x80000000))
      .key("test.u64", written(ValueType::u64, ~std::uint64_t{0}))
      .key("test.i64", written(ValueType::i64, std::uint64_t{1} << 63))
      .key("test.f32", written(1e-5F))
      .key("test.f64", written(0.1))
      .key("test.false", written(ValueType::boolean, 0))
      .key("test.true", written(ValueType::boolean, 1))
      .key("test.empty", written_array(ValueType::f64, {}))
      .key("test.bools", written_array(ValueType::boolean, {written(ValueType::boolean, 1),
                                                            written(ValueType::boolean, 0)}))
      .key("test.scores", written_array(ValueType::f32, {written(-1.5F), written(0.0F)}))
      .key("test.tokens",
           written_array(ValueType::string, {written("<s>"), written(""), written("\xff")}));
  WrittenValue nested = written_array(ValueType::i16, {written(ValueType::i16, 0xfffe)});
  for (int depth = 2; depth <= 4; ++depth)
    nested = written_array(ValueType::array, {nested, nested});
  writer.key("test.nested", nested);
  for (const gguf::TensorType& type : gguf::tensor_types()) {
    const std::string name(type.name);
    writer.tensor(name + ".weight", {type.block_values * std::uint64_t{2}, 3}, type.name);
  }
  writer.tensor("one", {1}, "F32").tensor("four", {2, 3, 1, 2}, "I8");
  return writer;
}

}  // namespace ptxgen::test
