// ptxgen/builder/value.hpp - values, variables, predicates and operands of a kernel
#pragma once

#include <cstdint>

#include "ptxgen/builder/options.hpp"
#include "ptxgen/builder/types.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/support/source_location.hpp"

namespace ptxgen::inline v0 {

class KernelBuilder;
template <class T>
class Value;
template <class T>
class Var;
template <class T, class S>
class Ptr;
template <class T, class S>
class Ref;
template <class T>
struct In;
template <class T>
struct SameAs;

/// The result of a comparison. `!p` costs nothing: it is negated where it is used.
using Pred = Value<pred>;

namespace detail {

class Core;

/// An operand on its way into an instruction, with the C++ call that passed it.
struct Argument {
  Core* core = nullptr;  ///< null for literals
  ptx::Operand operand;
  SourceLocation site;
  bool variable = false;  ///< a Var read in place: its register may be written later
};

/// What `mov` and `selp` call a register of type T.
template <class T>
inline constexpr ptx::Type kMoveType = T::kBits == 8 ? ptx::Type::b16 : T::kMemoryType;

/// Emits `mov` into a new register.
[[nodiscard]] ptx::Register move_to_new(Core* core, RegisterClass register_class, ptx::Type type,
                                        const Argument& from);
/// Emits `mov` into a register that exists.
void move_into(Core* core, ptx::Register to, ptx::Type type, const Argument& from);

/// The builder that the operands belong to.
template <class T>
[[nodiscard]] KernelBuilder& builder_of(const In<T>& a);
template <class T, class U>
[[nodiscard]] KernelBuilder& builder_of(const In<T>& a, const In<U>& b);

// What a C++ literal may be for a type. An integer type takes any C++ integer, and the call that
// uses one out of range fails; f32 takes float, f64 takes double, nothing is converted silently.
template <class L>
inline constexpr bool kIsCppInteger =
    kSame<L, int> || kSame<L, unsigned> || kSame<L, long> || kSame<L, unsigned long> ||
    kSame<L, long long> || kSame<L, unsigned long long> || kSame<L, short> ||
    kSame<L, unsigned short> || kSame<L, signed char> || kSame<L, unsigned char>;
template <class L>
inline constexpr bool kIsSignedCpp = static_cast<L>(-1) < static_cast<L>(1);
/// A C++ number. Operands that are numbers are taken by value, so that a local constexpr can be
/// named in a lambda without captures.
template <class L>
concept AnyLiteral =
    kIsCppInteger<L> || kSame<L, float> || kSame<L, double> || kSame<L, bool> || kSame<L, char>;
template <class L, class T>
concept LiteralOf = (kLiteralKind<T> == LiteralKind::Integer && kIsCppInteger<L>) ||
                    (kLiteralKind<T> == LiteralKind::Float32 && kSame<L, float>) ||
                    (kLiteralKind<T> == LiteralKind::Float64 && kSame<L, double>) ||
                    (kSame<T, pred> && kSame<L, bool>);

/// A C++ number that is no literal of T. Operands admit it so that the cure can be named.
template <class L, class T>
concept OtherLiteral = AnyLiteral<L> && !LiteralOf<L, T>;

/// Refuses a literal, naming what to write.
template <class T>
constexpr void refuse_literal() {
  constexpr LiteralKind kKind = kLiteralKind<T>;
  static_assert(kKind != LiteralKind::Float32,
                "f32 takes float literals only: write 2.0f, not 2 or 2.0");
  static_assert(kKind != LiteralKind::Float64,
                "f64 takes double literals only: write 2.0, not 2 or 2.0f");
  static_assert(kKind != LiteralKind::Integer,
                "integers take integer literals only: write 2, or convert<f32>() the value");
  static_assert(!kSame<T, pred>,
                "a predicate takes true or false only: compare the number, as in n != 0");
  static_assert(kKind != LiteralKind::None || kSame<T, pred>,
                "f16, bf16, pairs and 8-bit types have no literals: "
                "convert<f16>(k.constant<f32>(2.0f)), or compute in f32 or u32");
}

/// The literal as an operand; kind None (reported by the call that uses it) if it is out of range.
template <class T, class L>
[[nodiscard]] inline ptx::Operand literal(L value) noexcept {
  if constexpr (kSame<L, float>) {
    return ptx::Operand::f32(value);
  } else if constexpr (kSame<L, double>) {
    return ptx::Operand::f64(value);
  } else if constexpr (kSame<L, bool>) {
    return ptx::Operand::integer(value ? -1 : 0);
  } else {
    constexpr bool kBitPattern = T::kKind == ptx::TypeKind::Bits;
    ptx::Operand operand = kIsSignedCpp<L>
                               ? ptx::Operand::integer(static_cast<std::int64_t>(value))
                               : ptx::Operand::unsigned_integer(static_cast<std::uint64_t>(value));
    bool fits = true;
    if constexpr (kIsSignedCpp<L>) {
      if (value < 0) {
        const auto lowest = -static_cast<std::int64_t>(std::uint64_t{1} << (T::kBits - 2)) * 2;
        fits = (kBitPattern || kIsSigned<T>)&&static_cast<std::int64_t>(value) >= lowest;
      }
    }
    if (value > 0) {
      const std::uint64_t all = ~std::uint64_t{0} >> (64 - T::kBits);
      fits = static_cast<std::uint64_t>(value) <= (kIsSigned<T> ? all >> 1 : all);
    }
    if (!fits) {
      operand.kind = ptx::OperandKind::None;
      operand.component = static_cast<std::uint8_t>(T::kType);  // for the message
    }
    return operand;
  }
}

/// Refuses `auto x = p[i];`, whose x would be read anew at each use.
template <class S>
constexpr void refuse_held_element() {
  static_assert(kNever<S>,
                "an element p[i] was kept with auto, which holds no value: "
                "write Value<f32> x = p[i]; (with the element's type), or use p[i] in place");
}

/// The element type of a value, variable or operand; void of anything else.
template <class A>
struct ElementOfImpl {
  using type = void;
};
template <class T>
struct ElementOfImpl<Value<T>> {
  using type = T;
};
template <class T>
struct ElementOfImpl<Var<T>> {
  using type = T;
};
// A pointer moves by any index.
template <class T, class S>
struct ElementOfImpl<Var<Ptr<T, S>>> {
  using type = void;
};
template <class T>
struct ElementOfImpl<In<T>> {
  using type = T;
};
template <class T, class S>
struct ElementOfImpl<Ref<T, S>> {
  using type = T;
};
template <class T>
struct ElementOfImpl<SameAs<T>> {
  using type = T;
};
template <class A>
using ElementOf = typename ElementOfImpl<A>::type;

/// What says the type of an operation: everything but a number.
template <class A>
concept Typed = !kSame<ElementOf<A>, void>;
template <class A>
inline constexpr bool kIsOperand = Typed<A>;

template <class A>
inline constexpr bool kIsRef = false;
template <class T, class S>
inline constexpr bool kIsRef<Ref<T, S>> = true;

}  // namespace detail

/// What an operation takes: a value, a variable (read on the spot), or a literal of the same type.
/// Remembers the C++ line of the call. Only ever a temporary.
template <class T>
struct In : detail::Argument {
  using Element = T;

  In(const Value<T>& value, SourceLocation at = SourceLocation::current()) noexcept;
  In(const Var<T>& variable, SourceLocation at = SourceLocation::current()) noexcept;
  template <class S>
  In(Ref<T, S>&& element, SourceLocation at = SourceLocation::current()) noexcept;
  template <detail::LiteralOf<T> L>
  In(L literal, SourceLocation at = SourceLocation::current()) noexcept
      : Argument{nullptr, detail::literal<T>(literal), at} {}
  /// Refused: a literal of another type.
  template <detail::OtherLiteral<T> L>
  In(L, SourceLocation = SourceLocation::current()) noexcept {
    detail::refuse_literal<T>();
  }
  /// Refused: an element that C++ keeps a name for.
  template <class S>
  In(const Ref<T, S>&, SourceLocation = SourceLocation::current()) noexcept {
    detail::refuse_held_element<S>();
  }
  In(const In& other) noexcept = default;
  /// For the builder: an operand that is loaded.
  explicit In(const detail::Argument& from) noexcept : Argument(from) {}
  In& operator=(const In&) = delete;

  /// The operand itself. An element `p[i]` is loaded here and not before, so that `x[i] + y[i]`
  /// loads from left to right whatever order the C++ compiler evaluates operands in.
  [[nodiscard]] detail::Argument resolved() const {
    return load_ == nullptr ? static_cast<const detail::Argument&>(*this) : load_(element_, site);
  }

 private:
  const void* element_ = nullptr;
  detail::Argument (*load_)(const void* element, SourceLocation at) = nullptr;
};

/// An operand of the type of another one of its operation.
template <class T>
struct SameAs : In<T> {
  SameAs(const Value<T>& value, SourceLocation at = SourceLocation::current()) noexcept
      : In<T>(value, at) {}
  SameAs(const Var<T>& var, SourceLocation at = SourceLocation::current()) noexcept
      : In<T>(var, at) {}
  template <class S>
  SameAs(Ref<T, S>&& element, SourceLocation at = SourceLocation::current()) noexcept
      : In<T>(static_cast<Ref<T, S>&&>(element), at) {}
  template <class S>
  SameAs(const Ref<T, S>& element, SourceLocation at = SourceLocation::current()) noexcept
      : In<T>(element, at) {}
  template <detail::AnyLiteral L>
  SameAs(L literal, SourceLocation at = SourceLocation::current()) noexcept : In<T>(literal, at) {}
  SameAs(const In<T>& from) noexcept : In<T>(from) {}
  explicit SameAs(const detail::Argument& from) noexcept : In<T>(from) {}
  /// Refused: an operand of another type.
  template <detail::Typed A>
  requires(!detail::kSame<detail::ElementOf<A>, T>)
      SameAs(const A&, SourceLocation = SourceLocation::current())
  noexcept : In<T>(detail::Argument{}) {
    static_assert(detail::kNever<A>,
                  "operands have different types: convert one of them with convert<To>(); what is "
                  "stored has the type of the pointer's elements");
  }
};

namespace detail {

// Value<pred>, which is not complete yet where the operators are declared.
template <class T>
struct PredicateFor {
  using type = Value<pred>;
};
template <class T>
using PredFor = typename PredicateFor<T>::type;

/// Refuses `<` and the like on bits.
template <class T>
constexpr void check_ordered() {
  static_assert(T::kKind != ptx::TypeKind::Bits,
                "bits have no order: say how to read them with bitcast<u32>() (s32, f32)");
}

/// Operators of values, variables and elements; found through them only.
template <class T>
struct Operators {
  // Integers wrap around; `/` and `%` round towards zero. Floats round to nearest even (`.rn`,
  // `div.rn`), see `KernelBuilder::add` and so on for other roundings.
  friend Value<T> operator+(const In<T>& a, const In<T>& b) {
    return builder_of(a, b).add(a, b, Float{}, a.site);
  }
  friend Value<T> operator-(const In<T>& a, const In<T>& b) {
    return builder_of(a, b).sub(a, b, Float{}, a.site);
  }
  friend Value<T> operator*(const In<T>& a, const In<T>& b) {
    return builder_of(a, b).mul(a, b, Float{}, a.site);
  }
  friend Value<T> operator/(const In<T>& a, const In<T>& b) {
    return builder_of(a, b).div(a, b, Float{}, a.site);
  }
  friend Value<T> operator%(const In<T>& a, const In<T>& b) {
    return builder_of(a, b).rem(a, b, a.site);
  }
  friend Value<T> operator-(const In<T>& a) { return builder_of(a).neg(a, false, a.site); }

  friend Value<T> operator&(const In<T>& a, const In<T>& b) {
    return builder_of(a, b).and_(a, b, a.site);
  }
  friend Value<T> operator|(const In<T>& a, const In<T>& b) {
    return builder_of(a, b).or_(a, b, a.site);
  }
  friend Value<T> operator^(const In<T>& a, const In<T>& b) {
    return builder_of(a, b).xor_(a, b, a.site);
  }
  friend Value<T> operator~(const In<T>& a) { return builder_of(a).not_(a, a.site); }
  /// Shifting by the width or more gives 0 (or the sign, for `>>` of signed values).
  friend Value<T> operator<<(const In<T>& a, const In<u32>& b) {
    return builder_of(a, b).shl(a, b, a.site);
  }
  friend Value<T> operator>>(const In<T>& a, const In<u32>& b) {
    return builder_of(a, b).shr(a, b, a.site);
  }

  // Floats: as in C++, a NaN compares unequal to everything and is neither less nor greater.
  friend PredFor<T> operator==(const In<T>& a, const In<T>& b) {
    return builder_of(a, b).setp(Comparison::eq, a, b, false, a.site);
  }
  friend PredFor<T> operator!=(const In<T>& a, const In<T>& b) {
    return builder_of(a, b).setp(kIsFloat<T> ? Comparison::neu : Comparison::ne, a, b, false,
                                 a.site);
  }
  friend PredFor<T> operator<(const In<T>& a, const In<T>& b) {
    check_ordered<T>();
    return builder_of(a, b).setp(Comparison::lt, a, b, false, a.site);
  }
  friend PredFor<T> operator<=(const In<T>& a, const In<T>& b) {
    check_ordered<T>();
    return builder_of(a, b).setp(Comparison::le, a, b, false, a.site);
  }
  friend PredFor<T> operator>(const In<T>& a, const In<T>& b) {
    check_ordered<T>();
    return builder_of(a, b).setp(Comparison::gt, a, b, false, a.site);
  }
  friend PredFor<T> operator>=(const In<T>& a, const In<T>& b) {
    check_ordered<T>();
    return builder_of(a, b).setp(Comparison::ge, a, b, false, a.site);
  }
};

/// Predicates are combined, not computed with. Both sides are always evaluated.
template <>
struct Operators<pred> {
  friend Pred operator&(const In<pred>& a, const In<pred>& b);
  friend Pred operator|(const In<pred>& a, const In<pred>& b);
  friend Pred operator^(const In<pred>& a, const In<pred>& b);
  friend Pred operator&&(const In<pred>& a, const In<pred>& b);
  friend Pred operator||(const In<pred>& a, const In<pred>& b);
  // Exact matches of an operand, which C++'s own operators for bool do not win against.
  template <class P>
  requires kSame<P, Pred>
  friend P operator&&(const P& a, const In<pred>& b) { return combine_and(a, b, b.site); }
  template <class P>
  requires kSame<P, Pred>
  friend P operator||(const P& a, const In<pred>& b) { return combine_or(a, b, b.site); }
  template <class P>
  requires kSame<P, Pred>
  friend P operator&&(const P& a, bool b) { return combine_and(a, b, {}); }
  template <class P>
  requires kSame<P, Pred>
  friend P operator||(const P& a, bool b) { return combine_or(a, b, {}); }
  template <class P>
  requires kSame<P, Pred>
  friend P operator&&(bool a, const P& b) { return combine_and(b, a, {}); }
  template <class P>
  requires kSame<P, Pred>
  friend P operator||(bool a, const P& b) { return combine_or(b, a, {}); }

 private:
  static Pred combine_and(const Pred& a, const In<pred>& b, SourceLocation site);
  static Pred combine_or(const Pred& a, const In<pred>& b, SourceLocation site);
};

// Operands of different types are refused by name: `a + b` with an f32 and a u32 selects one of
// these deleted functions, and the compiler shows its return type.
template <bool kDifferent>
struct Refused {};
template <>
struct Refused<true> {
  using type = void;
};
template <class A, class B>
using operands_differ_use_convert =
    typename Refused<!kSame<ElementOf<A>, void> && !kSame<ElementOf<B>, void> &&
                     !kSame<ElementOf<A>, ElementOf<B>>>::type;

// `a << b` and `a <<= b` with a count that is no u32, whatever a is.
template <class A, class B>
using shift_count_is_u32_use_convert =
    typename Refused<!kSame<ElementOf<A>, void> && !kSame<ElementOf<B>, void> &&
                     !kSame<ElementOf<B>, u32>>::type;

}  // namespace detail

template <class A, class B>
detail::operands_differ_use_convert<A, B> operator+(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator-(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator*(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator/(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator%(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator&(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator|(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator^(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator<(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator<=(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator>(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator>=(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator==(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator!=(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator+=(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator-=(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator*=(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator/=(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator%=(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator&=(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator|=(const A&, const B&) = delete;
template <class A, class B>
detail::operands_differ_use_convert<A, B> operator^=(const A&, const B&) = delete;
template <class A, class B>
detail::shift_count_is_u32_use_convert<A, B> operator<<(const A&, const B&) = delete;
template <class A, class B>
detail::shift_count_is_u32_use_convert<A, B> operator>>(const A&, const B&) = delete;
template <class A, class B>
detail::shift_count_is_u32_use_convert<A, B> operator<<=(const A&, const B&) = delete;
template <class A, class B>
detail::shift_count_is_u32_use_convert<A, B> operator>>=(const A&, const B&) = delete;

/// A value of a kernel: computed once, by one instruction, and never changed. A small handle to
/// copy around; copying it emits nothing. It cannot be assigned to: what changes is a `Var`.
///
/// Using it where it may not have been computed (outside the `if_` or loop that it was made in, or
/// in another kernel) throws at the call.
template <class T>
class Value : public detail::Operators<T> {
 public:
  using Element = T;

  Value(const Value&) noexcept = default;
  Value& operator=(const Value&) = delete;
  /// A copy of what the variable holds now (`mov`); later writes to it do not matter.
  Value(const Var<T>& variable, SourceLocation at = SourceLocation::current());
  /// For the builder: register `r` of `core`.
  Value(detail::Core* core, ptx::Register r) noexcept : core_(core), register_(r) {}

  /// Makes this C++ name stand for another value; emits nothing. In the body of a kernel's loop
  /// this is not an update: use a Var for what is carried from one iteration to the next.
  void rebind(const Value& other) noexcept {
    core_ = other.core_;
    register_ = other.register_;
  }

  [[nodiscard]] ptx::Register reg() const noexcept { return register_; }
  [[nodiscard]] detail::Core* core() const noexcept { return core_; }

 private:
  detail::Core* core_;
  ptx::Register register_;
};

template <>
class Value<pred> : public detail::Operators<pred> {
 public:
  using Element = pred;

  Value(const Value&) noexcept = default;
  Value& operator=(const Value&) = delete;
  Value(const Var<pred>& variable, SourceLocation at = SourceLocation::current());
  Value(detail::Core* core, ptx::Register r, bool negated = false) noexcept
      : core_(core), register_(r), negated_(negated) {}

  void rebind(const Value& other) noexcept {
    core_ = other.core_;
    register_ = other.register_;
    negated_ = other.negated_;
  }
  [[nodiscard]] Value operator!() const noexcept { return {core_, register_, !negated_}; }
  /// Refused: C++ decides while the kernel is built, the predicate is known when it runs.
  template <class T = pred>
  explicit operator bool() const {
    static_assert(detail::kNever<T>,
                  "C++ cannot branch on a predicate, which is known when the kernel runs: "
                  "use k.if_(p, [&] {...}), k.while_, or k.selp(a, b, p) in place of p ? a : b");
    return false;
  }

  [[nodiscard]] ptx::Register reg() const noexcept { return register_; }
  [[nodiscard]] bool negated() const noexcept { return negated_; }
  [[nodiscard]] detail::Core* core() const noexcept { return core_; }

 private:
  detail::Core* core_;
  ptx::Register register_;
  bool negated_ = false;
};

/// A variable of a kernel: one register that is written again and again. Every write is visible in
/// C++ (`=`, `+=`, `set`), and every use reads what it holds at that point of the kernel.
///
/// It cannot be copied, so `auto old = max;` does not compile; `Value<f32> old = max;` keeps what
/// it holds now. Assign one variable to another with `a.set(b)`.
template <class T>
class Var : public detail::Operators<T> {
 public:
  using Element = T;

  Var(Var&& other) noexcept : core_(other.core_), register_(other.register_) {
    other.core_ = nullptr;
  }
  Var(const Var&) = delete;
  Var& operator=(const Var&) = delete;
  /// For the builder: register `r` of `core`. See `KernelBuilder::var`.
  Var(detail::Core* core, ptx::Register r) noexcept : core_(core), register_(r) {}

  /// Writes the variable (`mov`).
  void set(const In<T>& value) {
    detail::move_into(core_, register_, detail::kMoveType<T>, value.resolved());
  }
  Var& operator=(const In<T>& value) {
    set(value);
    return *this;
  }
  /// A copy of what it holds now.
  [[nodiscard]] Value<T> read(SourceLocation at = SourceLocation::current()) const {
    return Value<T>(*this, at);
  }

  // One instruction each, which reads and writes the variable's register.
  Var& operator+=(const In<T>& b) {
    detail::builder_of(b, In<T>(*this, b.site)).add_inplace(*this, b, Float{}, b.site);
    return *this;
  }
  Var& operator-=(const In<T>& b) {
    detail::builder_of(b, In<T>(*this, b.site)).sub_inplace(*this, b, Float{}, b.site);
    return *this;
  }
  Var& operator*=(const In<T>& b) {
    detail::builder_of(b, In<T>(*this, b.site)).mul_inplace(*this, b, Float{}, b.site);
    return *this;
  }
  Var& operator/=(const In<T>& b) {
    detail::builder_of(b, In<T>(*this, b.site)).div_inplace(*this, b, Float{}, b.site);
    return *this;
  }
  Var& operator%=(const In<T>& b) {
    detail::builder_of(b, In<T>(*this, b.site)).rem_inplace(*this, b, b.site);
    return *this;
  }
  Var& operator&=(const In<T>& b) {
    detail::builder_of(b, In<T>(*this, b.site)).and_inplace(*this, b, b.site);
    return *this;
  }
  Var& operator|=(const In<T>& b) {
    detail::builder_of(b, In<T>(*this, b.site)).or_inplace(*this, b, b.site);
    return *this;
  }
  Var& operator^=(const In<T>& b) {
    detail::builder_of(b, In<T>(*this, b.site)).xor_inplace(*this, b, b.site);
    return *this;
  }
  Var& operator<<=(const In<u32>& b) {
    detail::builder_of(b, In<T>(*this, b.site)).shl_inplace(*this, b, b.site);
    return *this;
  }
  Var& operator>>=(const In<u32>& b) {
    detail::builder_of(b, In<T>(*this, b.site)).shr_inplace(*this, b, b.site);
    return *this;
  }

  [[nodiscard]] ptx::Register reg() const noexcept { return register_; }
  [[nodiscard]] detail::Core* core() const noexcept { return core_; }

 private:
  detail::Core* core_;
  ptx::Register register_;
};

/// What the variable holds now, negated.
[[nodiscard]] inline Pred operator!(const In<pred>& p);

template <class T>
In<T>::In(const Value<T>& value, SourceLocation at) noexcept
    : Argument{value.core(), ptx::Operand::reg(value.reg()), at} {
  if constexpr (detail::kSame<T, pred>) operand.negated = value.negated();
}
template <class T>
In<T>::In(const Var<T>& var, SourceLocation at) noexcept
    : Argument{var.core(), ptx::Operand::reg(var.reg()), at, true} {}

template <class T>
Value<T>::Value(const Var<T>& variable, SourceLocation at)
    : core_(variable.core()),
      register_(detail::move_to_new(variable.core(), T::kClass, detail::kMoveType<T>,
                                    In<T>(variable, at))) {}
inline Value<pred>::Value(const Var<pred>& variable, SourceLocation at)
    : core_(variable.core()),
      register_(detail::move_to_new(variable.core(), pred::kClass, ptx::Type::pred,
                                    In<pred>(variable, at))) {}

inline Pred operator!(const In<pred>& p) {
  return {p.core, detail::move_to_new(p.core, pred::kClass, ptx::Type::pred, p),
          !p.operand.negated};
}

}  // namespace ptxgen::inline v0
