// ptxgen/ptx/types.hpp - types, modifiers, fields, versions of PTX
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxgen::inline v0::ptx {

/// A PTX type, named as PTX names it (`Type::f32` is `.f32`).
enum class Type : std::uint8_t {
  none,
#define PTXGEN_TYPE(id, text, bits, kind) id,
#include "ptxgen/ptx/types.def"
};

enum class TypeKind : std::uint8_t {
  None,
  Predicate,
  Bits,  ///< untyped bits, compatible with every type of its width
  Unsigned,
  Signed,
  Float,
  Packed,  ///< held in a `.bN` register of its width (f16x2, e4m3x2, tf32, ...)
  Opaque,  ///< texture, sampler and surface references
};

/// Text without the dot, or an empty view for `Type::none`.
[[nodiscard]] std::string_view name(Type type) noexcept;
[[nodiscard]] unsigned bits(Type type) noexcept;
[[nodiscard]] TypeKind kind(Type type) noexcept;
/// Bytes of one element in memory: bits rounded up to whole bytes; 0 for `none` and `pred`.
[[nodiscard]] unsigned bytes(Type type) noexcept;

/// The untyped type of that width (`b32`), or `Type::none`.
[[nodiscard]] Type untyped(unsigned bits) noexcept;

/// A modifier of an opcode. The types come first, with the same numbers as in `Type`.
enum class Modifier : std::uint16_t {
  none,
#define PTXGEN_TYPE(id, text, bits, kind) type_##id,
#include "ptxgen/ptx/types.def"
#define PTXGEN_MODIFIER(id, text) id,
#include "ptxgen/ptx/modifiers.def"
};

/// Text without the leading dot.
[[nodiscard]] std::string_view name(Modifier modifier) noexcept;

[[nodiscard]] constexpr Modifier as_modifier(Type type) noexcept {
  return static_cast<Modifier>(type);
}
/// The type of a type modifier, or `Type::none`.
[[nodiscard]] Type as_type(Modifier modifier) noexcept;

/// The meaning of a modifier at its position in an opcode.
enum class Field : std::uint8_t {
#define PTXGEN_FIELD(id, pattern_name, modifiers) id,
#include "ptxgen/ptx/fields.def"
};

[[nodiscard]] std::string_view name(Field field) noexcept;

/// A PTX ISA version such as 7.8.
struct Version {
  std::uint8_t major = 0;
  std::uint8_t minor = 0;
  friend constexpr auto operator<=>(const Version&, const Version&) = default;
};

/// A state space of variables and addresses.
enum class Space : std::uint8_t {
  Generic,
  Register,
  Global,
  Shared,
  Local,
  Const,
  Param,
  Texture,
};

/// Text without the dot (`"global"`), empty for `Generic`.
[[nodiscard]] std::string_view name(Space space) noexcept;

/// The state space that a `.global`, `.shared::cta`, ... modifier selects; `Generic` for none.
[[nodiscard]] Space space_of(Modifier modifier) noexcept;

}  // namespace ptxgen::inline v0::ptx
