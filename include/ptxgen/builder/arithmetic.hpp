// ptxgen/builder/arithmetic.hpp - instructions on numbers; long because each has its methods here
#pragma once

#include "ptxgen/builder/core.hpp"

namespace ptxgen::inline v0::detail {

template <class T>
inline constexpr bool kHasFtz = kSame<T, f32> || kSame<T, f16> || kSame<T, f16x2>;

template <class T>
[[nodiscard]] constexpr ModifierList float_modifiers(const Float& how) {
  ModifierList modifiers;
  if (how.approx) {
    modifiers.add(ptx::Modifier::approx);
  } else {
    modifiers.add(how.rounding);
  }
  modifiers.add_if(how.ftz, ptx::Modifier::ftz);
  modifiers.add_if(how.sat, ptx::Modifier::sat);
  modifiers.add_if(how.relu, ptx::Modifier::relu);
  modifiers.add(T::kType);
  return modifiers;
}

/// `op.type` for integers, `op.rn.type` with its options for floats.
template <class T>
[[nodiscard]] constexpr Form arithmetic_form(ptx::Op integer_op, ptx::Op float_op,
                                             const Float& how) {
  static_assert(kIsComputable<T> || kIsFloat<T>,
                "PTX computes with integers of 16 to 64 bits and with floats; "
                "convert 8-bit values and give bits a type with bitcast<To>()");
  if constexpr (kIsFloat<T>) {
    return {float_op, float_modifiers<T>(how), how.contract};
  } else {
    ModifierList modifiers{ptx::as_modifier(T::kType)};
    modifiers.add_if(how.sat, ptx::Modifier::sat);
    return {integer_op, modifiers};
  }
}

template <class T>
inline constexpr ptx::Modifier kBitsModifier =
    ptx::as_modifier(kSame<T, pred> ? ptx::Type::pred : kBitsType<T::kBits == 1 ? 8 : T::kBits>);

template <class T>
inline constexpr ptx::Modifier kTypeModifier = ptx::as_modifier(T::kType);

/// One method for each PTX instruction, named as PTX names it, over typed operands: values,
/// variables, and literals beside them. All operands have one type unless it is said otherwise.
/// A method emits one instruction and gives its result; `..._inplace` writes a variable instead.
/// `site` is filled in by the compiler.
class Arithmetic : public Core {
 public:
  using Core::Core;
  using Site = SourceLocation;

  /// A constant in a register (`mov`); floats are exact.
  template <class T, class L>
  requires LiteralOf<L, T> Value<T> constant(L literal, Site site = Site::current()) {
    return {this, result({ptx::Op::mov, {ptx::as_modifier(kMoveType<T>)}}, T::kClass,
                         {argument<T>(literal, site)}, site)};
  }
  /// Refused: a literal of another type.
  template <class T, OtherLiteral<T> L>
  Value<T> constant(L, Site = Site::current()) {
    refuse_literal<T>();
    return {this, ptx::Register{}};
  }
  /// A copy in a register of its own.
  template <class A>
  Value<ElementOf<A>> mov(const A& a, Site site = Site::current()) {
    using T = Common<A>;
    return {this, move_to_new(this, T::kClass, kMoveType<T>, argument<T>(a, site))};
  }

  // Integers and floats. `how` applies to floats (and `sat` to s32).
  template <Typed A>
  auto add(const A& a, const SameAs<ElementOf<A>>& b, Float how = {}, Site site = Site::current()) {
    using T = ElementOf<A>;
    return binary<T>(arithmetic_form<T>(ptx::Op::add, ptx::Op::add_f32, how), a, b, site);
  }
  template <AnyLiteral A, class B>
  auto add(A a, const B& b, Float how = {}, Site site = Site::current()) {
    using T = Common<A, B>;
    return add(SameAs<T>(a, site), same_as<T>(b, site), how, site);
  }
  template <Typed A>
  auto sub(const A& a, const SameAs<ElementOf<A>>& b, Float how = {}, Site site = Site::current()) {
    using T = ElementOf<A>;
    return binary<T>(arithmetic_form<T>(ptx::Op::sub, ptx::Op::sub_f32, how), a, b, site);
  }
  template <AnyLiteral A, class B>
  auto sub(A a, const B& b, Float how = {}, Site site = Site::current()) {
    using T = Common<A, B>;
    return sub(SameAs<T>(a, site), same_as<T>(b, site), how, site);
  }
  /// Floats, or the low half of an integer product (`mul_lo`).
  template <Typed A>
  auto mul(const A& a, const SameAs<ElementOf<A>>& b, Float how = {}, Site site = Site::current()) {
    using T = ElementOf<A>;
    return binary<T>(mul_form<T>(how), a, b, site);
  }
  template <AnyLiteral A, class B>
  auto mul(A a, const B& b, Float how = {}, Site site = Site::current()) {
    using T = Common<A, B>;
    return mul(SameAs<T>(a, site), same_as<T>(b, site), how, site);
  }
  /// Integers round towards zero. f32 by default `div.rn`; `.approx = true` for the fast one.
  template <Typed A>
  auto div(const A& a, const SameAs<ElementOf<A>>& b, Float how = {}, Site site = Site::current()) {
    using T = ElementOf<A>;
    return binary<T>(arithmetic_form<T>(ptx::Op::div, ptx::Op::div_f32, how), a, b, site);
  }
  template <AnyLiteral A, class B>
  auto div(A a, const B& b, Float how = {}, Site site = Site::current()) {
    using T = Common<A, B>;
    return div(SameAs<T>(a, site), same_as<T>(b, site), how, site);
  }
  template <Typed A>
  auto rem(const A& a, const SameAs<ElementOf<A>>& b, Site site = Site::current()) {
    using T = ElementOf<A>;
    check_remainder<T>();
    return binary<T>({ptx::Op::rem, {kTypeModifier<T>}}, a, b, site);
  }
  template <AnyLiteral A, class B>
  auto rem(A a, const B& b, Site site = Site::current()) {
    using T = Common<A, B>;
    return rem(SameAs<T>(a, site), same_as<T>(b, site), site);
  }
  template <Typed A>
  auto min(const A& a, const SameAs<ElementOf<A>>& b, MinMax how = {},
           Site site = Site::current()) {
    using T = ElementOf<A>;
    return binary<T>(min_max_form<T>(ptx::Op::min, ptx::Op::min_f32, how), a, b, site);
  }
  template <AnyLiteral A, class B>
  auto min(A a, const B& b, MinMax how = {}, Site site = Site::current()) {
    using T = Common<A, B>;
    return min(SameAs<T>(a, site), same_as<T>(b, site), how, site);
  }
  template <Typed A>
  auto max(const A& a, const SameAs<ElementOf<A>>& b, MinMax how = {},
           Site site = Site::current()) {
    using T = ElementOf<A>;
    return binary<T>(min_max_form<T>(ptx::Op::max, ptx::Op::max_f32, how), a, b, site);
  }
  template <AnyLiteral A, class B>
  auto max(A a, const B& b, MinMax how = {}, Site site = Site::current()) {
    using T = Common<A, B>;
    return max(SameAs<T>(a, site), same_as<T>(b, site), how, site);
  }
  template <class A>
  auto abs(const A& a, bool ftz = false, Site site = Site::current()) {
    using T = Common<A>;
    static_assert(kIsSigned<T> || kIsFloat<T>, "abs is for signed integers and floats");
    return unary<T>(sign_form<T>(ptx::Op::abs, ptx::Op::abs_f32, ftz), a, site);
  }
  template <class A>
  auto neg(const A& a, bool ftz = false, Site site = Site::current()) {
    using T = Common<A>;
    static_assert(kIsSigned<T> || kIsFloat<T>,
                  "neg is for signed integers and floats; for unsigned ones subtract from 0");
    return unary<T>(sign_form<T>(ptx::Op::neg, ptx::Op::neg_f32, ftz), a, site);
  }

  // Integer products: the low half, the high half, or all of it (twice as wide).
  template <Typed A>
  auto mul_lo(const A& a, const SameAs<ElementOf<A>>& b, Site site = Site::current()) {
    return binary<ElementOf<A>>(part_form<ElementOf<A>>(ptx::Op::mul, ptx::Modifier::lo), a, b,
                                site);
  }
  template <AnyLiteral A, class B>
  auto mul_lo(A a, const B& b, Site site = Site::current()) {
    using T = Common<A, B>;
    return mul_lo(SameAs<T>(a, site), same_as<T>(b, site), site);
  }
  template <Typed A>
  auto mul_hi(const A& a, const SameAs<ElementOf<A>>& b, Site site = Site::current()) {
    return binary<ElementOf<A>>(part_form<ElementOf<A>>(ptx::Op::mul, ptx::Modifier::hi), a, b,
                                site);
  }
  template <AnyLiteral A, class B>
  auto mul_hi(A a, const B& b, Site site = Site::current()) {
    using T = Common<A, B>;
    return mul_hi(SameAs<T>(a, site), same_as<T>(b, site), site);
  }
  template <Typed A>
  auto mul_wide(const A& a, const SameAs<ElementOf<A>>& b, Site site = Site::current()) {
    using T = ElementOf<A>;
    return Value<Wide<T>>(
        this, result(part_form<T>(ptx::Op::mul_wide, ptx::Modifier::wide), Wide<T>::kClass,
                     {argument<T>(a, site), argument<T>(b, site)}, site));
  }
  template <AnyLiteral A, class B>
  auto mul_wide(A a, const B& b, Site site = Site::current()) {
    using T = Common<A, B>;
    return mul_wide(SameAs<T>(a, site), same_as<T>(b, site), site);
  }
  template <Typed A>
  auto mad_lo(const A& a, const SameAs<ElementOf<A>>& b, const SameAs<ElementOf<A>>& c,
              Site site = Site::current()) {
    using T = ElementOf<A>;
    return ternary<T>(part_form<T>(ptx::Op::mad, ptx::Modifier::lo), a, b, c, site);
  }
  template <AnyLiteral A, Typed B>
  auto mad_lo(A a, const B& b, const SameAs<ElementOf<B>>& c, Site site = Site::current()) {
    using T = ElementOf<B>;
    return mad_lo(SameAs<T>(a, site), same_as<T>(b, site), c, site);
  }
  template <AnyLiteral A, AnyLiteral B, class C>
  auto mad_lo(A a, B b, const C& c, Site site = Site::current()) {
    using T = Common<A, C>;
    return mad_lo(SameAs<T>(a, site), SameAs<T>(b, site), same_as<T>(c, site), site);
  }
  template <Typed A>
  auto mad_hi(const A& a, const SameAs<ElementOf<A>>& b, const SameAs<ElementOf<A>>& c,
              Site site = Site::current()) {
    using T = ElementOf<A>;
    return ternary<T>(part_form<T>(ptx::Op::mad, ptx::Modifier::hi), a, b, c, site);
  }
  template <AnyLiteral A, Typed B>
  auto mad_hi(A a, const B& b, const SameAs<ElementOf<B>>& c, Site site = Site::current()) {
    using T = ElementOf<B>;
    return mad_hi(SameAs<T>(a, site), same_as<T>(b, site), c, site);
  }
  template <AnyLiteral A, AnyLiteral B, class C>
  auto mad_hi(A a, B b, const C& c, Site site = Site::current()) {
    using T = Common<A, C>;
    return mad_hi(SameAs<T>(a, site), SameAs<T>(b, site), same_as<T>(c, site), site);
  }
  /// `a * b + c`, where c and the result are twice as wide as a and b.
  template <Typed A, Typed C>
  auto mad_wide(const A& a, const SameAs<ElementOf<A>>& b, const C& c,
                Site site = Site::current()) {
    using T = ElementOf<A>;
    using W = Wide<T>;
    static_assert(kSame<ElementOf<C>, W>,
                  "the third operand of mad_wide is twice as wide as the first two");
    return Value<W>(
        this, result(part_form<T>(ptx::Op::mad_wide, ptx::Modifier::wide), W::kClass,
                     {argument<T>(a, site), argument<T>(b, site), argument<W>(c, site)}, site));
  }
  template <Typed A, AnyLiteral C>
  auto mad_wide(const A& a, const SameAs<ElementOf<A>>& b, C c, Site site = Site::current()) {
    return mad_wide(a, b, In<Wide<ElementOf<A>>>(c, site), site);
  }
  template <AnyLiteral A, class B, Typed C>
  auto mad_wide(A a, const B& b, const C& c, Site site = Site::current()) {
    using T = Common<A, B>;
    return mad_wide(SameAs<T>(a, site), same_as<T>(b, site), c, site);
  }
  template <AnyLiteral A, class B, AnyLiteral C>
  auto mad_wide(A a, const B& b, C c, Site site = Site::current()) {
    using T = Common<A, B>;
    return mad_wide(SameAs<T>(a, site), same_as<T>(b, site), c, site);
  }

  /// `a * b + c` with one rounding.
  template <Typed A>
  auto fma(const A& a, const SameAs<ElementOf<A>>& b, const SameAs<ElementOf<A>>& c, Float how = {},
           Site site = Site::current()) {
    using T = ElementOf<A>;
    return ternary<T>(fma_form<T>(how), a, b, c, site);
  }
  template <AnyLiteral A, Typed B>
  auto fma(A a, const B& b, const SameAs<ElementOf<B>>& c, Float how = {},
           Site site = Site::current()) {
    using T = ElementOf<B>;
    return fma(SameAs<T>(a, site), same_as<T>(b, site), c, how, site);
  }
  template <AnyLiteral A, AnyLiteral B, class C>
  auto fma(A a, B b, const C& c, Float how = {}, Site site = Site::current()) {
    using T = Common<A, C>;
    return fma(SameAs<T>(a, site), SameAs<T>(b, site), same_as<T>(c, site), how, site);
  }

  // In place, on a variable: `d += b` and so on; `fma_inplace`: d = a * b + d.
  template <class T>
  void add_inplace(Var<T>& d, const SameAs<ElementOf<Var<T>>>& b, Float how = {},
                   Site site = Site::current()) {
    inplace<T>(arithmetic_form<T>(ptx::Op::add, ptx::Op::add_f32, how), d, b, site);
  }
  template <class T>
  void sub_inplace(Var<T>& d, const SameAs<ElementOf<Var<T>>>& b, Float how = {},
                   Site site = Site::current()) {
    inplace<T>(arithmetic_form<T>(ptx::Op::sub, ptx::Op::sub_f32, how), d, b, site);
  }
  template <class T>
  void mul_inplace(Var<T>& d, const SameAs<ElementOf<Var<T>>>& b, Float how = {},
                   Site site = Site::current()) {
    inplace<T>(mul_form<T>(how), d, b, site);
  }
  template <class T>
  void div_inplace(Var<T>& d, const SameAs<ElementOf<Var<T>>>& b, Float how = {},
                   Site site = Site::current()) {
    inplace<T>(arithmetic_form<T>(ptx::Op::div, ptx::Op::div_f32, how), d, b, site);
  }
  template <class T>
  void rem_inplace(Var<T>& d, const SameAs<ElementOf<Var<T>>>& b, Site site = Site::current()) {
    check_remainder<T>();
    inplace<T>({ptx::Op::rem, {kTypeModifier<T>}}, d, b, site);
  }
  template <class T>
  void min_inplace(Var<T>& d, const SameAs<ElementOf<Var<T>>>& b, MinMax how = {},
                   Site site = Site::current()) {
    inplace<T>(min_max_form<T>(ptx::Op::min, ptx::Op::min_f32, how), d, b, site);
  }
  template <class T>
  void max_inplace(Var<T>& d, const SameAs<ElementOf<Var<T>>>& b, MinMax how = {},
                   Site site = Site::current()) {
    inplace<T>(min_max_form<T>(ptx::Op::max, ptx::Op::max_f32, how), d, b, site);
  }
  template <class T>
  void fma_inplace(Var<T>& d, const SameAs<ElementOf<Var<T>>>& a,
                   const SameAs<ElementOf<Var<T>>>& b, Float how = {},
                   Site site = Site::current()) {
    into(fma_form<T>(how), d.reg(),
         {argument<T>(a, site), argument<T>(b, site), argument<T>(d, site)}, site);
  }
  template <class T>
  void and_inplace(Var<T>& d, const SameAs<ElementOf<Var<T>>>& b, Site site = Site::current()) {
    check_logic<T>();
    inplace<T>({ptx::Op::and_, {kBitsModifier<T>}}, d, b, site);
  }
  template <class T>
  void or_inplace(Var<T>& d, const SameAs<ElementOf<Var<T>>>& b, Site site = Site::current()) {
    check_logic<T>();
    inplace<T>({ptx::Op::or_, {kBitsModifier<T>}}, d, b, site);
  }
  template <class T>
  void xor_inplace(Var<T>& d, const SameAs<ElementOf<Var<T>>>& b, Site site = Site::current()) {
    check_logic<T>();
    inplace<T>({ptx::Op::xor_, {kBitsModifier<T>}}, d, b, site);
  }
  template <class T>
  void shl_inplace(Var<T>& d, const In<u32>& b, Site site = Site::current()) {
    check_bits<T>();
    into({ptx::Op::shl, {kBitsModifier<T>}}, d.reg(),
         {argument<T>(d, site), argument<u32>(b, site)}, site);
  }
  template <class T>
  void shr_inplace(Var<T>& d, const In<u32>& b, Site site = Site::current()) {
    check_bits<T>();
    into({ptx::Op::shr, {kTypeModifier<T>}}, d.reg(),
         {argument<T>(d, site), argument<u32>(b, site)}, site);
  }

  // Special functions.
  template <class A>
  auto rcp(const A& a, Float how = {}, Site site = Site::current()) {
    check_float<Common<A>>();
    return unary<Common<A>>({ptx::Op::rcp_f32, float_modifiers<Common<A>>(how)}, a, site);
  }
  template <class A>
  auto sqrt(const A& a, Float how = {}, Site site = Site::current()) {
    check_float<Common<A>>();
    return unary<Common<A>>({ptx::Op::sqrt_f32, float_modifiers<Common<A>>(how)}, a, site);
  }
  // `.approx` is the only form that PTX has of these; errors are in the ISA's description.
  template <class A>
  auto rsqrt(const A& a, bool ftz = false, Site site = Site::current()) {
    return unary<Common<A>>(approx_form<Common<A>>(ptx::Op::rsqrt_f32, ftz), a, site);
  }
  template <class A>
  auto ex2(const A& a, bool ftz = false, Site site = Site::current()) {
    return unary<Common<A>>(approx_form<Common<A>>(ptx::Op::ex2_f32, ftz), a, site);
  }
  template <class A>
  auto lg2(const A& a, bool ftz = false, Site site = Site::current()) {
    return unary<Common<A>>(approx_form<Common<A>>(ptx::Op::lg2, ftz), a, site);
  }
  template <class A>
  auto sin(const A& a, bool ftz = false, Site site = Site::current()) {
    return unary<Common<A>>(approx_form<Common<A>>(ptx::Op::sin, ftz), a, site);
  }
  template <class A>
  auto cos(const A& a, bool ftz = false, Site site = Site::current()) {
    return unary<Common<A>>(approx_form<Common<A>>(ptx::Op::cos, ftz), a, site);
  }
  template <class A>
  auto tanh(const A& a, Site site = Site::current()) {
    return unary<Common<A>>(approx_form<Common<A>>(ptx::Op::tanh_f32, false), a, site);
  }
  template <Typed A>
  auto copysign(const A& sign, const SameAs<ElementOf<A>>& magnitude, Site site = Site::current()) {
    using T = ElementOf<A>;
    check_float<T>();
    return binary<T>({ptx::Op::copysign, {kTypeModifier<T>}}, sign, magnitude, site);
  }
  template <AnyLiteral A, class B>
  auto copysign(A sign, const B& magnitude, Site site = Site::current()) {
    using T = Common<A, B>;
    return copysign(SameAs<T>(sign, site), same_as<T>(magnitude, site), site);
  }

  // Bits: integers and bits of 16, 32 or 64, and predicates for the first four.
  template <Typed A>
  auto and_(const A& a, const SameAs<ElementOf<A>>& b, Site site = Site::current()) {
    return logic<ElementOf<A>>(ptx::Op::and_, a, b, site);
  }
  template <AnyLiteral A, class B>
  auto and_(A a, const B& b, Site site = Site::current()) {
    using T = Common<A, B>;
    return and_(SameAs<T>(a, site), same_as<T>(b, site), site);
  }
  template <Typed A>
  auto or_(const A& a, const SameAs<ElementOf<A>>& b, Site site = Site::current()) {
    return logic<ElementOf<A>>(ptx::Op::or_, a, b, site);
  }
  template <AnyLiteral A, class B>
  auto or_(A a, const B& b, Site site = Site::current()) {
    using T = Common<A, B>;
    return or_(SameAs<T>(a, site), same_as<T>(b, site), site);
  }
  template <Typed A>
  auto xor_(const A& a, const SameAs<ElementOf<A>>& b, Site site = Site::current()) {
    return logic<ElementOf<A>>(ptx::Op::xor_, a, b, site);
  }
  template <AnyLiteral A, class B>
  auto xor_(A a, const B& b, Site site = Site::current()) {
    using T = Common<A, B>;
    return xor_(SameAs<T>(a, site), same_as<T>(b, site), site);
  }
  template <class A>
  auto not_(const A& a, Site site = Site::current()) {
    using T = Common<A>;
    check_logic<T>();
    Argument operand = argument<T>(a, site);
    if constexpr (kSame<T, pred>) operand = plain(operand);
    return Value<T>(this, result({ptx::Op::not_, {kBitsModifier<T>}}, T::kClass, {operand}, site));
  }
  /// Amounts are u32; the width or more gives 0.
  template <class A>
  auto shl(const A& a, const In<u32>& amount, Site site = Site::current()) {
    using T = Common<A>;
    check_bits<T>();
    return Value<T>(this, result({ptx::Op::shl, {kBitsModifier<T>}}, T::kClass,
                                 {argument<T>(a, site), argument<u32>(amount, site)}, site));
  }
  /// Signed types keep their sign.
  template <class A>
  auto shr(const A& a, const In<u32>& amount, Site site = Site::current()) {
    using T = Common<A>;
    check_bits<T>();
    return Value<T>(this, result({ptx::Op::shr, {kTypeModifier<T>}}, T::kClass,
                                 {argument<T>(a, site), argument<u32>(amount, site)}, site));
  }
  /// `length` bits of `a` from bit `position` on, extended by the type's sign.
  template <class A>
  auto bfe(const A& a, const In<u32>& position, const In<u32>& length,
           Site site = Site::current()) {
    using T = Common<A>;
    check_bits<T, 32>();
    static_assert(kIsInteger<T>, "bfe extends by the sign: bitcast<u32>() (s32, u64, s64) first");
    return Value<T>(this, result({ptx::Op::bfe, {kTypeModifier<T>}}, T::kClass,
                                 {argument<T>(a, site), argument<u32>(position, site),
                                  argument<u32>(length, site)},
                                 site));
  }
  /// `b` with the low `length` bits of `a` at `position`.
  template <Typed A>
  auto bfi(const A& a, const SameAs<ElementOf<A>>& b, const In<u32>& position,
           const In<u32>& length, Site site = Site::current()) {
    using T = ElementOf<A>;
    check_bits<T, 32>();
    return Value<T>(this, result({ptx::Op::bfi, {kBitsModifier<T>}}, T::kClass,
                                 {argument<T>(a, site), argument<T>(b, site),
                                  argument<u32>(position, site), argument<u32>(length, site)},
                                 site));
  }
  template <AnyLiteral A, class B>
  auto bfi(A a, const B& b, const In<u32>& position, const In<u32>& length,
           Site site = Site::current()) {
    using T = Common<A, B>;
    return bfi(SameAs<T>(a, site), same_as<T>(b, site), position, length, site);
  }
  template <class A>
  Value<u32> popc(const A& a, Site site = Site::current()) {
    check_bits<Common<A>, 32>();
    return counted<Common<A>>(ptx::Op::popc, kBitsModifier<Common<A>>, a, site);
  }
  template <class A>
  Value<u32> clz(const A& a, Site site = Site::current()) {
    check_bits<Common<A>, 32>();
    return counted<Common<A>>(ptx::Op::clz, kBitsModifier<Common<A>>, a, site);
  }
  template <class A>
  Value<u32> bfind(const A& a, Site site = Site::current()) {
    check_bits<Common<A>, 32>();
    static_assert(kIsInteger<Common<A>>,
                  "bfind looks for the sign: bitcast<u32>() (s32, u64, s64) first");
    return counted<Common<A>>(ptx::Op::bfind, kTypeModifier<Common<A>>, a, site);
  }
  template <class A>
  auto brev(const A& a, Site site = Site::current()) {
    using T = Common<A>;
    check_bits<T, 32>();
    return unary<T>({ptx::Op::brev, {kBitsModifier<T>}}, a, site);
  }
  /// Four bytes of b:a, picked by the four nibbles of `selector`. 32-bit types.
  template <Typed A>
  auto prmt(const A& a, const SameAs<ElementOf<A>>& b, const In<u32>& selector,
            Site site = Site::current()) {
    using T = ElementOf<A>;
    check_bits<T, 32, 32>();
    return Value<T>(
        this,
        result({ptx::Op::prmt, {kBitsModifier<T>}}, T::kClass,
               {argument<T>(a, site), argument<T>(b, site), argument<u32>(selector, site)}, site));
  }
  template <AnyLiteral A, class B>
  auto prmt(A a, const B& b, const In<u32>& selector, Site site = Site::current()) {
    using T = Common<A, B>;
    return prmt(SameAs<T>(a, site), same_as<T>(b, site), selector, site);
  }
  /// Any bitwise function of three operands; `table` is f(0xf0, 0xcc, 0xaa).
  template <Typed A>
  auto lop3(const A& a, const SameAs<ElementOf<A>>& b, const SameAs<ElementOf<A>>& c,
            std::uint8_t table, Site site = Site::current()) {
    using T = ElementOf<A>;
    check_bits<T, 32, 32>();
    return Value<T>(this, result({ptx::Op::lop3, {kBitsModifier<T>}}, T::kClass,
                                 {argument<T>(a, site), argument<T>(b, site), argument<T>(c, site),
                                  argument<u32>(static_cast<unsigned>(table), site)},
                                 site));
  }
  template <AnyLiteral A, Typed B>
  auto lop3(A a, const B& b, const SameAs<ElementOf<B>>& c, std::uint8_t table,
            Site site = Site::current()) {
    using T = ElementOf<B>;
    return lop3(SameAs<T>(a, site), same_as<T>(b, site), c, table, site);
  }
  template <AnyLiteral A, AnyLiteral B, class C>
  auto lop3(A a, B b, const C& c, std::uint8_t table, Site site = Site::current()) {
    using T = Common<A, C>;
    return lop3(SameAs<T>(a, site), SameAs<T>(b, site), same_as<T>(c, site), table, site);
  }
  /// Funnel shifts of hi:lo; the amount wraps at 32.
  template <Typed A>
  auto shf_l(const A& lo, const SameAs<ElementOf<A>>& hi, const In<u32>& amount,
             Site site = Site::current()) {
    return funnel<ElementOf<A>>(ptx::Modifier::l, lo, hi, amount, site);
  }
  template <AnyLiteral A, class B>
  auto shf_l(A lo, const B& hi, const In<u32>& amount, Site site = Site::current()) {
    using T = Common<A, B>;
    return funnel<T>(ptx::Modifier::l, SameAs<T>(lo, site), hi, amount, site);
  }
  template <Typed A>
  auto shf_r(const A& lo, const SameAs<ElementOf<A>>& hi, const In<u32>& amount,
             Site site = Site::current()) {
    return funnel<ElementOf<A>>(ptx::Modifier::r, lo, hi, amount, site);
  }
  template <AnyLiteral A, class B>
  auto shf_r(A lo, const B& hi, const In<u32>& amount, Site site = Site::current()) {
    using T = Common<A, B>;
    return funnel<T>(ptx::Modifier::r, SameAs<T>(lo, site), hi, amount, site);
  }
  /// c plus the dot product of four bytes of a and of b; u32 or s32 says how each is read. The
  /// result has the type of c.
  template <class A, class B, class C>
  auto dp4a(const A& a, const B& b, const C& c, Site site = Site::current()) {
    using T = Common<C>;
    return Value<T>(
        this,
        result({ptx::Op::dp4a, {kTypeModifier<Common<A>>, kTypeModifier<Common<B>>}}, T::kClass,
               {argument<Common<A>>(a, site), argument<Common<B>>(b, site), argument<T>(c, site)},
               site));
  }

  // Comparison and choice.
  template <Typed A>
  Pred setp(Comparison comparison, const A& a, const SameAs<ElementOf<A>>& b, bool ftz = false,
            Site site = Site::current()) {
    using T = ElementOf<A>;
    return {this, result(setp_form<T>(comparison, ftz), pred::kClass,
                         {argument<T>(a, site), argument<T>(b, site)}, site)};
  }
  template <AnyLiteral A, class B>
  Pred setp(Comparison comparison, A a, const B& b, bool ftz = false, Site site = Site::current()) {
    using T = Common<A, B>;
    return setp(comparison, SameAs<T>(a, site), same_as<T>(b, site), ftz, site);
  }
  /// `(a comparison b) op c`, op one of Modifier::and_, or_, xor_.
  template <Typed A>
  Pred setp(Comparison comparison, ptx::Modifier op, const A& a, const SameAs<ElementOf<A>>& b,
            const Pred& c, Site site = Site::current()) {
    using T = ElementOf<A>;
    Form form = setp_form<T>(comparison, false);
    form.modifiers.add(op);
    return {this,
            result(form, pred::kClass,
                   {argument<T>(a, site), argument<T>(b, site), argument<pred>(c, site)}, site)};
  }
  template <AnyLiteral A, class B>
  Pred setp(Comparison comparison, ptx::Modifier op, A a, const B& b, const Pred& c,
            Site site = Site::current()) {
    using T = Common<A, B>;
    return setp(comparison, op, SameAs<T>(a, site), same_as<T>(b, site), c, site);
  }
  /// a where p holds, else b.
  template <Typed A>
  auto selp(const A& a, const SameAs<ElementOf<A>>& b, const In<pred>& p,
            Site site = Site::current()) {
    using T = ElementOf<A>;
    static_assert(!kSame<T, pred>, "selp picks numbers: combine predicates with &, | and !");
    return Value<T>(this, result({ptx::Op::selp, {ptx::as_modifier(kMoveType<T>)}}, T::kClass,
                                 {argument<T>(a, site), argument<T>(b, site), p}, site));
  }
  template <AnyLiteral A, class B>
  auto selp(A a, const B& b, const In<pred>& p, Site site = Site::current()) {
    using T = Common<A, B>;
    return selp(SameAs<T>(a, site), same_as<T>(b, site), p, site);
  }

  // Conversion.
  template <class To, class A>
  Value<To> cvt(const A& a, Convert how = {}, Site site = Site::current()) {
    using From = Common<A>;
    ModifierList modifiers;
    modifiers.add(how.rounding);
    modifiers.add_if(how.ftz, ptx::Modifier::ftz);
    modifiers.add_if(how.sat, ptx::Modifier::sat);
    modifiers.add_if(how.relu, ptx::Modifier::relu);
    modifiers.add_if(how.satfinite, ptx::Modifier::satfinite);
    modifiers.add(To::kType);
    modifiers.add(From::kType);
    return {this,
            result({ptx::Op::cvt_int, modifiers}, To::kClass, {argument<From>(a, site)}, site)};
  }
  template <class To, class A>
  Value<To> cvt(const A& a, Rounding rounding, Site site = Site::current()) {
    return cvt<To>(a, Convert{rounding}, site);
  }
  /// Two f32 as an f16x2 or bf16x2: `high` in the upper half.
  template <class To>
  Value<To> cvt2(const In<f32>& high, const In<f32>& low, Convert how = {Rounding::rn},
                 Site site = Site::current()) {
    ModifierList modifiers;
    modifiers.add(how.rounding);
    modifiers.add_if(how.relu, ptx::Modifier::relu);
    modifiers.add_if(how.satfinite, ptx::Modifier::satfinite);
    modifiers.add(To::kType);
    modifiers.add(ptx::Type::f32);
    return {this, result({ptx::Op::cvt_half2_f32, modifiers}, To::kClass,
                         {argument<f32>(high, site), argument<f32>(low, site)}, site)};
  }
  /// The same bits as another type of the same width. Emits `mov` where the registers differ.
  template <class To, class A>
  Value<To> bitcast(const A& a, Site site = Site::current()) {
    using From = Common<A>;
    static_assert(To::kBits == From::kBits, "bitcast keeps the width: use cvt to change it");
    const Argument from = argument<From>(a, site);
    if constexpr (To::kClass == From::kClass) {
      if (!from.variable && from.core != nullptr) return {this, use(from).as_register()};
    }
    return {this, result({ptx::Op::mov, {kBitsModifier<To>}}, To::kClass, {from}, site)};
  }

  // Words put together and taken apart (`mov.b32 d, {lo, hi}`); the first part is the lowest.
  template <class To, Typed A>
  Value<To> pack(const A& low, const SameAs<ElementOf<A>>& high, Site site = Site::current()) {
    using T = ElementOf<A>;
    static_assert(To::kBits == 2 * T::kBits, "pack makes a value twice as wide as its parts");
    const Argument parts[] = {argument<T>(low, site), argument<T>(high, site)};
    return {this, Core::pack({ptx::Op::mov, {kBitsModifier<To>}}, To::kClass, parts, site)};
  }
  template <class To, AnyLiteral A, class B>
  Value<To> pack(A low, const B& high, Site site = Site::current()) {
    using T = Common<A, B>;
    return pack<To>(SameAs<T>(low, site), same_as<T>(high, site), site);
  }
  template <class To, class A>
  std::array<Value<To>, 2> unpack(const A& a, Site site = Site::current()) {
    using T = Common<A>;
    static_assert(T::kBits == 2 * To::kBits, "unpack gives parts half as wide");
    ptx::Register parts[2];
    vector_load({ptx::Op::mov, {kBitsModifier<T>}}, To::kClass, parts, argument<T>(a, site), site);
    return {Value<To>(this, parts[0]), Value<To>(this, parts[1])};
  }

 protected:
  /// The operand as a value: a variable is copied, an element loaded.
  template <class T, class A>
  Value<T> value_of(const A& a, Site site) {
    const Argument from = argument<T>(a, site);
    if (from.core == nullptr || from.variable) {
      return {this, move_to_new(this, T::kClass, kMoveType<T>, from)};
    }
    return {this, use(from).as_register()};
  }
  template <class T, class A>
  Value<T> unary(const Form& form, const A& a, Site site) {
    return {this, result(form, T::kClass, {argument<T>(a, site)}, site)};
  }
  template <class T, class A, class B>
  Value<T> binary(const Form& form, const A& a, const B& b, Site site) {
    return {this, result(form, T::kClass, {argument<T>(a, site), argument<T>(b, site)}, site)};
  }
  template <class T, class A, class B, class C>
  Value<T> ternary(const Form& form, const A& a, const B& b, const C& c, Site site) {
    return {this, result(form, T::kClass,
                         {argument<T>(a, site), argument<T>(b, site), argument<T>(c, site)}, site)};
  }
  template <class T>
  void inplace(const Form& form, Var<T>& d, const SameAs<T>& b, Site site) {
    into(form, d.reg(), {argument<T>(d, site), argument<T>(b, site)}, site);
  }
  template <class T, class A, class B>
  Value<T> logic(ptx::Op op, const A& a, const B& b, Site site) {
    check_logic<T>();
    Argument left = argument<T>(a, site);
    Argument right = argument<T>(b, site);
    if constexpr (kSame<T, pred>) {
      use(right);
      left = plain(left);
      right = plain(right);
    }
    return {this, result({op, {kBitsModifier<T>}}, T::kClass, {left, right}, site)};
  }
  template <class T, class A>
  Value<u32> counted(ptx::Op op, ptx::Modifier type, const A& a, Site site) {
    return {this, result({op, {type}}, u32::kClass, {argument<T>(a, site)}, site)};
  }
  template <class T, class A, class B, class C>
  Value<T> funnel(ptx::Modifier direction, const A& lo, const B& hi, const C& amount, Site site) {
    check_bits<T, 32, 32>();
    return {
        this,
        result({ptx::Op::shf, {direction, ptx::Modifier::wrap, kBitsModifier<T>}}, T::kClass,
               {argument<T>(lo, site), argument<T>(hi, site), argument<u32>(amount, site)}, site)};
  }

 private:
  /// Refuses types that bitwise instructions do not take.
  template <class T, unsigned kMin = 16, unsigned kMax = 64>
  static constexpr void check_bits() {
    static_assert(!kIsFloat<T>,
                  "floats have no bitwise operations: bitcast<b32>() (b16, b64) gives their bits, "
                  "convert<u32>() the number");
    static_assert(!kSame<T, pred>, "predicates are combined with &, |, ^ and !");
    static_assert(
        kIsFloat<T> || kSame<T, pred> || (kHasBits<T> && T::kBits >= kMin && T::kBits <= kMax),
        "PTX has no such operation for integers of this width: convert<u32>() first");
  }
  template <class T>
  static constexpr void check_logic() {
    if constexpr (!kSame<T, pred>) check_bits<T>();
  }
  template <class T>
  static constexpr void check_remainder() {
    static_assert(kIsComputable<T>,
                  "rem (%) is for integers of 16 to 64 bits: for floats subtract the multiple, "
                  "a - trunc(a / b) * b");
  }
  template <class T>
  static constexpr void check_float() {
    static_assert(kIsFloat<T>, "this operation is for floats: convert<f32>() the integer first");
  }
  template <class T>
  static constexpr Form part_form(ptx::Op op, ptx::Modifier part) {
    static_assert(kIsComputable<T>,
                  "mul_lo, mul_hi, mul_wide and mad are for integers of 16 to 64 bits: use mul and "
                  "fma for floats, convert<u32>() 8-bit values, bitcast<u32>() bits");
    return {op, {part, kTypeModifier<T>}};
  }
  template <class T>
  static constexpr Form mul_form(const Float& how) {
    if constexpr (kIsFloat<T>) {
      return {ptx::Op::mul_f32, float_modifiers<T>(how), how.contract};
    } else {
      return part_form<T>(ptx::Op::mul, ptx::Modifier::lo);
    }
  }
  template <class T>
  static constexpr Form fma_form(const Float& how) {
    static_assert(kIsFloat<T>, "fma is for floats; mad_lo, mad_hi and mad_wide for integers");
    return {ptx::Op::fma_f32, float_modifiers<T>(how)};
  }
  template <class T>
  static constexpr Form min_max_form(ptx::Op integer_op, ptx::Op float_op, const MinMax& how) {
    static_assert(kIsComputable<T> || kIsFloat<T>,
                  "min and max are for integers of 16 to 64 bits and for floats");
    ModifierList modifiers{kTypeModifier<T>};
    modifiers.add_if(how.ftz, ptx::Modifier::ftz);
    modifiers.add_if(how.nan, ptx::Modifier::NaN);
    return {kIsFloat<T> ? float_op : integer_op, modifiers};
  }
  template <class T>
  static constexpr Form sign_form(ptx::Op integer_op, ptx::Op float_op, bool ftz) {
    ModifierList modifiers{kTypeModifier<T>};
    modifiers.add_if(ftz, ptx::Modifier::ftz);
    return {kIsFloat<T> ? float_op : integer_op, modifiers};
  }
  template <class T>
  static constexpr Form approx_form(ptx::Op op, bool ftz) {
    check_float<T>();
    ModifierList modifiers{ptx::Modifier::approx, kTypeModifier<T>};
    modifiers.add_if(ftz, ptx::Modifier::ftz);
    return {op, modifiers};
  }
  template <class T>
  static constexpr Form setp_form(Comparison comparison, bool ftz) {
    static_assert(!kSame<T, pred>, "predicates are combined with &, |, ^ and !, not compared");
    static_assert(T::kBits != 8, "8-bit values are not compared: convert<u32>() them first");
    static_assert(T::kKind != ptx::TypeKind::Packed,
                  "pairs are compared half by half: unpack<f16>() them first");
    ModifierList modifiers{static_cast<ptx::Modifier>(comparison), kTypeModifier<T>};
    modifiers.add_if(ftz, ptx::Modifier::ftz);
    return {kIsFloat<T>                       ? ptx::Op::setp_f32
            : kIsSigned<T>                    ? ptx::Op::setp_signed
            : T::kKind == ptx::TypeKind::Bits ? ptx::Op::setp_bits
                                              : ptx::Op::setp_unsigned,
            modifiers};
  }
};

}  // namespace ptxgen::inline v0::detail
