// ptxgen/model/gguf_types.hpp - types of values and tensors in GGUF files
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::inline v0::gguf {

// name of the enumerator, name in texts, bytes in the file (0: it stores its own length). The id in
// the file is the row's number. Source: ggml's docs/gguf.md, `gguf_metadata_value_type`.
#define PTXGEN_GGUF_VALUE_TYPES(X) \
  X(U8, "u8", 1)                   \
  X(I8, "i8", 1)                   \
  X(U16, "u16", 2)                 \
  X(I16, "i16", 2)                 \
  X(U32, "u32", 4)                 \
  X(I32, "i32", 4)                 \
  X(F32, "f32", 4)                 \
  X(Bool, "bool", 1)               \
  X(String, "string", 0)           \
  X(Array, "array", 0)             \
  X(U64, "u64", 8)                 \
  X(I64, "i64", 8)                 \
  X(F64, "f64", 8)

/// The type of a metadata value. The numbers are those of the file.
enum class ValueType : std::uint32_t {
#define PTXGEN_GGUF_ENUMERATOR(id, name, bytes) id,
  PTXGEN_GGUF_VALUE_TYPES(PTXGEN_GGUF_ENUMERATOR)
#undef PTXGEN_GGUF_ENUMERATOR
};

struct ValueTypeInfo {
  std::string_view name;    ///< "u32", "string"
  std::uint32_t bytes = 0;  ///< of a value; 0: a string or an array
};

inline constexpr ValueTypeInfo kValueTypes[] = {
#define PTXGEN_GGUF_ROW(id, name, bytes) {name, bytes},
    PTXGEN_GGUF_VALUE_TYPES(PTXGEN_GGUF_ROW)
#undef PTXGEN_GGUF_ROW
};

[[nodiscard]] constexpr const ValueTypeInfo& info(ValueType type) noexcept {
  return kValueTypes[static_cast<std::size_t>(type)];
}
/// "u32", "string"
[[nodiscard]] constexpr std::string_view to_string(ValueType type) noexcept {
  return info(type).name;
}

// name, id in the file, values of a block, bytes of a block, element type or none.
// Source: ggml.h, `ggml_type`; ggml-common.h, the `block_*` structures.
#define PTXGEN_GGUF_TENSOR_TYPES(X)     \
  X(F32, 0, 1, 4, ElementType::f32)     \
  X(F16, 1, 1, 2, ElementType::f16)     \
  X(Q4_0, 2, 32, 18, ElementType::q4_0) \
  X(Q4_1, 3, 32, 20, ElementType::q4_1) \
  X(Q5_0, 6, 32, 22, ElementType::q5_0) \
  X(Q5_1, 7, 32, 24, ElementType::q5_1) \
  X(Q8_0, 8, 32, 34, ElementType::q8_0) \
  X(Q8_1, 9, 32, 36, ElementType::q8_1) \
  X(Q2_K, 10, 256, 84, std::nullopt)    \
  X(Q3_K, 11, 256, 110, std::nullopt)   \
  X(Q4_K, 12, 256, 144, ElementType::q4_k) \
  X(Q5_K, 13, 256, 176, ElementType::q5_k) \
  X(Q6_K, 14, 256, 210, ElementType::q6_k) \
  X(Q8_K, 15, 256, 292, std::nullopt)   \
  X(I8, 24, 1, 1, std::nullopt)         \
  X(I16, 25, 1, 2, std::nullopt)        \
  X(I32, 26, 1, 4, ElementType::s32)    \
  X(I64, 27, 1, 8, std::nullopt)        \
  X(F64, 28, 1, 8, std::nullopt)        \
  X(BF16, 30, 1, 2, ElementType::bf16)

/// The type of a tensor's data. The numbers are those of the file.
enum class TensorType : std::uint32_t {
#define PTXGEN_GGUF_ENUMERATOR(name, id, values, bytes, element) name = id,
  PTXGEN_GGUF_TENSOR_TYPES(PTXGEN_GGUF_ENUMERATOR)
#undef PTXGEN_GGUF_ENUMERATOR
};

/// How a tensor type is stored. Blocks are contiguous along dimension 0.
struct TensorTypeInfo {
  TensorType type = TensorType::F32;
  std::string_view name;           ///< "F32", "Q4_K"
  std::uint16_t block_values = 1;  ///< 1 unless a block format
  std::uint16_t block_bytes = 0;
  std::optional<ElementType> element;  ///< what kernels call it; empty: no kernel reads it
};

inline constexpr TensorTypeInfo kTensorTypes[] = {
#define PTXGEN_GGUF_ROW(name, id, values, bytes, element) \
  {TensorType::name, #name, values, bytes, element},
    PTXGEN_GGUF_TENSOR_TYPES(PTXGEN_GGUF_ROW)
#undef PTXGEN_GGUF_ROW
};

/// The row of an id in a file; null if tensors of that type are refused.
[[nodiscard]] constexpr const TensorTypeInfo* find_tensor_type(std::uint32_t id) noexcept {
  for (const TensorTypeInfo& row : kTensorTypes) {
    if (static_cast<std::uint32_t>(row.type) == id) return &row;
  }
  return nullptr;
}
[[nodiscard]] constexpr const TensorTypeInfo& info(TensorType type) noexcept {
  return *find_tensor_type(static_cast<std::uint32_t>(type));
}
/// "F32", "Q4_K"
[[nodiscard]] constexpr std::string_view to_string(TensorType type) noexcept {
  return info(type).name;
}

}  // namespace ptxgen::inline v0::gguf
