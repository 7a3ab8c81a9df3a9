// ptxgen/builder/types.hpp - C++ names of PTX types and state spaces
#pragma once

#include <cstdint>

#include "ptxgen/ptx/types.hpp"

namespace ptxgen::inline v0 {

namespace detail {

/// Which declaration a register belongs to; one per declared type, printed with its prefix.
enum class RegisterClass : std::uint8_t { p, rs, h, r, rd, f, fd, rq };
inline constexpr unsigned kRegisterClasses = 8;

/// What a literal of a type is in C++.
enum class LiteralKind : std::uint8_t { None, Integer, Float32, Float64 };

/// Metadata of the tags below.
template <ptx::Type kType_, unsigned kBits_, ptx::TypeKind kKind_, RegisterClass kClass_,
          ptx::Type kMemoryType_ = kType_>
struct TypeTag {
  static constexpr ptx::Type kType = kType_;
  static constexpr unsigned kBits = kBits_;
  static constexpr unsigned kBytes = kBits_ / 8;  ///< 0 for predicates
  static constexpr ptx::TypeKind kKind = kKind_;
  static constexpr RegisterClass kClass = kClass_;
  static constexpr ptx::Type kMemoryType = kMemoryType_;  ///< as `ld`, `st`, `mov` call it
};

[[nodiscard]] constexpr RegisterClass integer_class(unsigned bits) noexcept {
  return bits <= 16   ? RegisterClass::rs
         : bits == 32 ? RegisterClass::r
         : bits == 64 ? RegisterClass::rd
                      : RegisterClass::rq;
}
template <ptx::Type kType, unsigned kBits>
using UnsignedTag = TypeTag<kType, kBits, ptx::TypeKind::Unsigned, integer_class(kBits)>;
template <ptx::Type kType, unsigned kBits>
using SignedTag = TypeTag<kType, kBits, ptx::TypeKind::Signed, integer_class(kBits)>;
template <ptx::Type kType, unsigned kBits>
using BitsTag = TypeTag<kType, kBits, ptx::TypeKind::Bits, integer_class(kBits)>;
template <ptx::Type kType, unsigned kBits, RegisterClass kClass, ptx::Type kMemoryType = kType>
using FloatTag = TypeTag<kType, kBits, ptx::TypeKind::Float, kClass, kMemoryType>;
template <ptx::Type kType>
using PairTag = TypeTag<kType, 32, ptx::TypeKind::Packed, RegisterClass::r, ptx::Type::b32>;

}  // namespace detail

// The element types of values, pointers and arrays: empty types, named as PTX names them. 8-bit
// values live in 16-bit registers: they can be loaded, stored and converted, not computed with.
struct u8 : detail::UnsignedTag<ptx::Type::u8, 8> {};
struct u16 : detail::UnsignedTag<ptx::Type::u16, 16> {};
struct u32 : detail::UnsignedTag<ptx::Type::u32, 32> {};
struct u64 : detail::UnsignedTag<ptx::Type::u64, 64> {};
struct s8 : detail::SignedTag<ptx::Type::s8, 8> {};
struct s16 : detail::SignedTag<ptx::Type::s16, 16> {};
struct s32 : detail::SignedTag<ptx::Type::s32, 32> {};
struct s64 : detail::SignedTag<ptx::Type::s64, 64> {};
struct b8 : detail::BitsTag<ptx::Type::b8, 8> {};
struct b16 : detail::BitsTag<ptx::Type::b16, 16> {};
struct b32 : detail::BitsTag<ptx::Type::b32, 32> {};
struct b64 : detail::BitsTag<ptx::Type::b64, 64> {};
struct b128 : detail::BitsTag<ptx::Type::b128, 128> {};
struct f16 : detail::FloatTag<ptx::Type::f16, 16, detail::RegisterClass::h, ptx::Type::b16> {};
struct bf16 : detail::FloatTag<ptx::Type::bf16, 16, detail::RegisterClass::h, ptx::Type::b16> {};
struct f16x2 : detail::PairTag<ptx::Type::f16x2> {};
struct bf16x2 : detail::PairTag<ptx::Type::bf16x2> {};
struct f32 : detail::FloatTag<ptx::Type::f32, 32, detail::RegisterClass::f> {};
struct f64 : detail::FloatTag<ptx::Type::f64, 64, detail::RegisterClass::fd> {};
/// A predicate: the result of a comparison, never a number.
struct pred
    : detail::TypeTag<ptx::Type::pred, 1, ptx::TypeKind::Predicate, detail::RegisterClass::p> {};

namespace detail {

template <ptx::Space kSpace_, bool kNarrow_, ptx::Modifier kModifier_>
struct SpaceTag {
  static constexpr ptx::Space kSpace = kSpace_;
  /// Addresses are 32-bit offsets into the window of the space instead of 64-bit addresses.
  static constexpr bool kNarrow = kNarrow_;
  static constexpr ptx::Modifier kModifier = kModifier_;
};

}  // namespace detail

// State spaces of pointers. Shared and local addresses are 32-bit window addresses, all others
// have 64 bits.
struct Global : detail::SpaceTag<ptx::Space::Global, false, ptx::Modifier::global> {};
struct Shared : detail::SpaceTag<ptx::Space::Shared, true, ptx::Modifier::shared> {};
struct Local : detail::SpaceTag<ptx::Space::Local, true, ptx::Modifier::local> {};
struct Const : detail::SpaceTag<ptx::Space::Const, false, ptx::Modifier::const_> {};
struct Generic : detail::SpaceTag<ptx::Space::Generic, false, ptx::Modifier::none> {};

namespace detail {

/// Holds for nothing: for an assertion in a template that is there to be refused.
template <class...>
inline constexpr bool kNever = false;

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

template <bool kCondition, class A, class B>
struct ChooseImpl {
  using type = A;
};
template <class A, class B>
struct ChooseImpl<false, A, B> {
  using type = B;
};
template <bool kCondition, class A, class B>
using Choose = typename ChooseImpl<kCondition, A, B>::type;

/// Whether the C++ type is a type tag of the builder.
template <class T>
concept Element = requires {
  {T::kClass};
  {T::kMemoryType};
};
template <class T>
concept AnySpace = requires {
  {T::kNarrow};
  {T::kModifier};
};

template <class T>
inline constexpr bool kIsSigned = T::kKind == ptx::TypeKind::Signed;
template <class T>
inline constexpr bool kIsInteger =
    T::kKind == ptx::TypeKind::Signed || T::kKind == ptx::TypeKind::Unsigned;
/// f16, bf16, f32, f64 and the packed pairs.
template <class T>
inline constexpr bool kIsFloat =
    T::kKind == ptx::TypeKind::Float || T::kKind == ptx::TypeKind::Packed;
template <class T>
inline constexpr bool kIsScalarFloat = T::kKind == ptx::TypeKind::Float;
/// Integers that PTX computes with.
template <class T>
inline constexpr bool kIsComputable = kIsInteger<T>&& T::kBits >= 16;

/// Integers and bits that bitwise instructions take.
template <class T>
inline constexpr bool kHasBits =
    (kIsInteger<T> || T::kKind == ptx::TypeKind::Bits) && T::kBits >= 16 && T::kBits <= 64;

template <class T>
inline constexpr LiteralKind kLiteralKind =
    kSame<T, f32>   ? LiteralKind::Float32
    : kSame<T, f64> ? LiteralKind::Float64
    : (kIsInteger<T> || T::kKind == ptx::TypeKind::Bits) && T::kBits >= 16 && T::kBits <= 64
        ? LiteralKind::Integer
        : LiteralKind::None;

/// `.bN` for the width of T.
template <unsigned kBits>
inline constexpr ptx::Type kBitsType = kBits == 8    ? ptx::Type::b8
                                       : kBits == 16 ? ptx::Type::b16
                                       : kBits == 32 ? ptx::Type::b32
                                       : kBits == 64 ? ptx::Type::b64
                                                     : ptx::Type::b128;

/// Twice the width, same kind (`mul.wide`).
template <class T>
struct WideOf {
  static_assert(!kSame<T, T>, "only u16, s16, u32 and s32 have a type twice as wide");
};
template <>
struct WideOf<u16> {
  using type = u32;
};
template <>
struct WideOf<s16> {
  using type = s32;
};
template <>
struct WideOf<u32> {
  using type = u64;
};
template <>
struct WideOf<s32> {
  using type = s64;
};
template <class T>
using Wide = typename WideOf<T>::type;

template <ptx::Type kType>
inline constexpr ptx::Modifier kModifierOf = static_cast<ptx::Modifier>(kType);

}  // namespace detail

}  // namespace ptxgen::inline v0
