// ptxgen/kernels/element_type.hpp - element types of operands, block formats included
#pragma once

#include <cstdint>
#include <string_view>

#include "ptxgen/ptx/types.hpp"

namespace ptxgen::inline v0 {

// id, values per block, bytes per block, alignment of a block in bytes, PTX type (none: a block
// format). Block formats as in GGUF: a block is a scale, possibly more, and packed integers.
#define PTXGEN_ELEMENT_TYPES(X) \
  X(f32, 1, 4, 4, f32)          \
  X(f16, 1, 2, 2, f16)          \
  X(bf16, 1, 2, 2, bf16)        \
  X(b32, 1, 4, 4, b32)          \
  X(u32, 1, 4, 4, u32)          \
  X(s32, 1, 4, 4, s32)          \
  X(u64, 1, 8, 8, u64)          \
  X(b8, 1, 1, 1, b8)            \
  X(q4_0, 32, 18, 2, none)      \
  X(q4_1, 32, 20, 2, none)      \
  X(q5_0, 32, 22, 2, none)      \
  X(q5_1, 32, 24, 2, none)      \
  X(q8_0, 32, 34, 2, none)      \
  X(q8_1, 32, 36, 2, none)      \
  X(q4_k, 256, 144, 2, none)    \
  X(q5_k, 256, 176, 2, none)    \
  X(q6_k, 256, 210, 2, none)    \
  X(e4m3, 1, 1, 1, e4m3)

/// Element types of operands in device memory. A block format packs a block of values.
enum class ElementType : std::uint8_t {
#define PTXGEN_ELEMENT_ENUMERATOR(id, values, bytes, alignment, type) id,
  PTXGEN_ELEMENT_TYPES(PTXGEN_ELEMENT_ENUMERATOR)
#undef PTXGEN_ELEMENT_ENUMERATOR
};

/// The storage of an element type.
struct ElementInfo {
  std::string_view name;           ///< "f32", "q4_k"
  std::uint16_t block_values = 1;  ///< values of a block; 1 unless a block format
  std::uint16_t block_bytes = 0;
  std::uint16_t alignment = 0;       ///< of a block, bytes
  ptx::Type type = ptx::Type::none;  ///< none: a block format
};

inline constexpr ElementInfo kElementTypes[] = {
#define PTXGEN_ELEMENT_ROW(id, values, bytes, alignment, type) \
  {#id, values, bytes, alignment, ptx::Type::type},
    PTXGEN_ELEMENT_TYPES(PTXGEN_ELEMENT_ROW)
#undef PTXGEN_ELEMENT_ROW
};

[[nodiscard]] constexpr const ElementInfo& info(ElementType type) noexcept {
  return kElementTypes[static_cast<std::size_t>(type)];
}
/// "f32", "q4_k"
[[nodiscard]] constexpr std::string_view to_string(ElementType type) noexcept {
  return info(type).name;
}
/// Bytes of an element; of a block of a block format.
[[nodiscard]] constexpr std::uint32_t bytes(ElementType type) noexcept {
  return info(type).block_bytes;
}
/// Bytes of `values` values. A block format stores whole blocks.
[[nodiscard]] constexpr std::uint64_t bytes(ElementType type, std::uint64_t values) noexcept {
  const ElementInfo& row = info(type);
  return (values / row.block_values + (values % row.block_values != 0)) * row.block_bytes;
}

}  // namespace ptxgen::inline v0
