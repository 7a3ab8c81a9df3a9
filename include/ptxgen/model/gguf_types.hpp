// ptxgen/model/gguf_types.hpp - types of metadata values and tensors in GGUF
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::inline v0::gguf {

// id, name, bytes (0: variable), in the order of their numbers in the file
#define PTXGEN_GGUF_VALUE_TYPES(X) \
  X(u8, "u8", 1)                   \
  X(i8, "i8", 1)                   \
  X(u16, "u16", 2)                 \
  X(i16, "i16", 2)                 \
  X(u32, "u32", 4)                 \
  X(i32, "i32", 4)                 \
  X(f32, "f32", 4)                 \
  X(boolean, "bool", 1)            \
  X(string, "string", 0)           \
  X(array, "array", 0)             \
  X(u64, "u64", 8)                 \
  X(i64, "i64", 8)                 \
  X(f64, "f64", 8)

/// Types of metadata values. The enumerators have the numbers of the format.
enum class ValueType : std::uint32_t {
#define PTXGEN_GGUF_ENUMERATOR(id, name, bytes) id,
  PTXGEN_GGUF_VALUE_TYPES(PTXGEN_GGUF_ENUMERATOR)
#undef PTXGEN_GGUF_ENUMERATOR
};

/// A row of the table of value types.
struct ValueTypeInfo {
  std::string_view name;    ///< "u32", "bool"
  std::uint32_t bytes = 0;  ///< of a value; 0 for strings and arrays
};

inline constexpr ValueTypeInfo kValueTypes[] = {
#define PTXGEN_GGUF_ROW(id, name, bytes) {name, bytes},
    PTXGEN_GGUF_VALUE_TYPES(PTXGEN_GGUF_ROW)
#undef PTXGEN_GGUF_ROW
};

[[nodiscard]] constexpr const ValueTypeInfo& info(ValueType type) noexcept {
  return kValueTypes[static_cast<std::size_t>(type)];
}
/// "u32", "bool"
[[nodiscard]] constexpr std::string_view to_string(ValueType type) noexcept {
  return info(type).name;
}

/// How the values of a tensor are stored.
struct TensorType {
  std::uint32_t id = 0;                ///< number in the file, as `ggml_type`
  std::string_view name;               ///< as in ggml: "F32", "Q4_K"
  std::uint16_t block_values = 1;      ///< values of a block; 1 unless a block format
  std::uint16_t block_bytes = 0;       ///< bytes of a block
  std::optional<ElementType> element;  ///< for kernels; empty where there is none
};

/// The supported types, by number.
[[nodiscard]] std::span<const TensorType> tensor_types() noexcept;
/// Null for a type that is not supported.
[[nodiscard]] const TensorType* find_tensor_type(std::uint32_t id) noexcept;
/// Null for an unknown name. Names are in capitals.
[[nodiscard]] const TensorType* find_tensor_type(std::string_view name) noexcept;
/// The name that ggml has for a number, also for types that are not supported; empty if none.
[[nodiscard]] std::string_view tensor_type_name(std::uint32_t id) noexcept;

}  // namespace ptxgen::inline v0::gguf
