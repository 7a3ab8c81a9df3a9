// ptxgen/builder/functions.hpp - free functions on values, and build_kernel
#pragma once

#include "ptxgen/builder/kernel_builder.hpp"

namespace ptxgen::inline v0 {

namespace detail {

template <class A, class... Rest>
[[nodiscard]] KernelBuilder& builder_of_any(const A& a, const Rest&... rest) {
  if constexpr (kIsOperand<A>) {
    if constexpr (kSame<A, In<ElementOf<A>>> || kSame<A, SameAs<ElementOf<A>>>) {
      if (a.core != nullptr) return *static_cast<KernelBuilder*>(a.core);
      return builder_of_any(rest...);
    } else if constexpr (kIsRef<A>) {
      return *static_cast<KernelBuilder*>(a.core());
    } else {
      return *static_cast<KernelBuilder*>(a.core());
    }
  } else {
    return builder_of_any(rest...);
  }
}
template <class... A>
concept SomeOperand = (kIsOperand<A> || ...);

}  // namespace detail

// The methods of the builder as functions: `max(a, b)` is `k.max(a, b)`.
template <detail::Typed A>
auto min(const A& a, const SameAs<detail::ElementOf<A>>& b, MinMax how = {},
         SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a, b).min(a, b, how, at);
}
template <detail::AnyLiteral A, detail::Typed B>
auto min(A a, const B& b, MinMax how = {}, SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(b).min(a, b, how, at);
}
template <detail::Typed A>
auto max(const A& a, const SameAs<detail::ElementOf<A>>& b, MinMax how = {},
         SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a, b).max(a, b, how, at);
}
template <detail::AnyLiteral A, detail::Typed B>
auto max(A a, const B& b, MinMax how = {}, SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(b).max(a, b, how, at);
}
template <detail::Typed A>
auto fma(const A& a, const SameAs<detail::ElementOf<A>>& b, const SameAs<detail::ElementOf<A>>& c,
         Float how = {}, SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a, b, c).fma(a, b, c, how, at);
}
template <detail::AnyLiteral A, detail::Typed B>
auto fma(A a, const B& b, const SameAs<detail::ElementOf<B>>& c, Float how = {},
         SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(b, c).fma(a, b, c, how, at);
}
template <detail::AnyLiteral A, detail::AnyLiteral B, detail::Typed C>
auto fma(A a, B b, const C& c, Float how = {}, SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(c).fma(a, b, c, how, at);
}
template <class A>
requires detail::SomeOperand<A>
auto abs(const A& a, SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a).abs(a, false, at);
}
template <class A>
requires detail::SomeOperand<A>
auto sqrt(const A& a, Float how = {}, SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a).sqrt(a, how, at);
}
template <class A>
requires detail::SomeOperand<A>
auto rcp(const A& a, Float how = {}, SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a).rcp(a, how, at);
}
template <class A>
requires detail::SomeOperand<A>
auto rsqrt(const A& a, SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a).rsqrt(a, false, at);
}
/// 2 to the power of a, approximately.
template <class A>
requires detail::SomeOperand<A>
auto ex2(const A& a, SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a).ex2(a, false, at);
}
/// Logarithm to the base 2, approximately.
template <class A>
requires detail::SomeOperand<A>
auto lg2(const A& a, SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a).lg2(a, false, at);
}
/// a where p holds, else b.
template <detail::Typed A>
auto select(const In<pred>& p, const A& a, const SameAs<detail::ElementOf<A>>& b,
            SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a, b).selp(a, b, p, at);
}
template <detail::AnyLiteral A, detail::Typed B>
auto select(const In<pred>& p, A a, const B& b, SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(b).selp(a, b, p, at);
}
template <class To, class A>
requires detail::SomeOperand<A> Value<To> convert(const A& a,
                                                  SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a).template convert<To>(a, at);
}
template <class To, class A>
requires detail::SomeOperand<A> Value<To> bitcast(const A& a,
                                                  SourceLocation at = SourceLocation::current()) {
  return detail::builder_of_any(a).template bitcast<To>(a, at);
}
template <detail::Pointer P>
auto load(const P& p, Load how = {}, SourceLocation at = SourceLocation::current()) {
  return static_cast<KernelBuilder*>(detail::PointerTraits<P>::data(p).core)->ld(p, how, at);
}
/// `load<4>(p)`: 2, 4 or 8 neighbours with one instruction.
template <unsigned kCount, detail::Pointer P>
auto load(const P& p, Load how = {}, SourceLocation at = SourceLocation::current()) {
  return static_cast<KernelBuilder*>(detail::PointerTraits<P>::data(p).core)
      ->template ld<kCount>(p, how, at);
}
template <detail::Pointer P>
void store(const P& p, const detail::Stored<P>& value, Store how = {},
           SourceLocation at = SourceLocation::current()) {
  static_cast<KernelBuilder*>(detail::PointerTraits<P>::data(p).core)->st(p, value, how, at);
}

namespace detail {

template <class F, std::size_t... kIndex>
auto generate(F& make, std::index_sequence<kIndex...>) {
  using T = decltype(make(0u));
  return std::array<T, sizeof...(kIndex)>{make(static_cast<unsigned>(kIndex))...};
}

}  // namespace detail

/// `{make(0), make(1), ...}`: kCount values or variables, which an array cannot be filled with
/// later.
template <unsigned kCount, class F>
auto generate(F&& make) {
  return detail::generate(make, std::make_index_sequence<kCount>());
}

/// A parameter of `build_kernel`.
template <class T>
struct Param {
  Name name;
};
template <class T>
[[nodiscard]] Param<T> param(Name name) {
  return {name};
}
template <class... Args>
struct Params {
  std::array<Name, sizeof...(Args)> names;
};
template <class... Args>
[[nodiscard]] Params<Args...> params(const Param<Args>&... list) {
  return {{list.name...}};
}

namespace detail {

template <class... Args, std::size_t... kIndex>
void declare_params(KernelBuilder& k, const Params<Args...>& list, std::index_sequence<kIndex...>) {
  (k.template declare_param<Args>(list.names[kIndex]), ...);
}

template <class Body, class... Args>
struct BodyCall {
  BodyCall(Body& body, KernelBuilder& k, typename ParamOf<Args>::type... arguments) {
    body(k, arguments...);
  }
};
template <class... Args, class Body, std::size_t... kIndex>
void run_body(KernelBuilder& k, const Params<Args...>& list, Body& body,
              std::index_sequence<kIndex...>) {
  // Braces, unlike parentheses, fix the order in which the parameters are read.
  (void)BodyCall<Body, Args...>{body, k, k.template load_param<Args>(list.names[kIndex])...};
}

}  // namespace detail

/// Builds a kernel whose C++ type carries its signature:
///
///   auto kernel = build_kernel("scale", "sm_89",
///       params(param<Ptr<f32>>("x"), param<f32>("a"), param<u32>("n")),
///       [](KernelBuilder& k, Ptr<f32> x, Value<f32> a, Value<u32> n) { ... });
///   kernel.pack(DeviceAddress<f32>{...}, 2.0f, std::uint32_t{1000});
template <class... Args, class Body>
[[nodiscard]] Kernel<Args...> build_kernel(Name name, std::string_view target,
                                           const Params<Args...>& parameters, Body&& body) {
  KernelBuilder k(name, target);
  detail::declare_params(k, parameters, std::index_sequence_for<Args...>());
  detail::run_body(k, parameters, body, std::index_sequence_for<Args...>());
  return Kernel<Args...>(k.build(name.site));
}

namespace detail {

/// The parameters of a body: `Ptr<T, S>` as it is, `Value<T>` as T.
template <class A>
struct ParameterOf {
  static_assert(kNever<A>, "a kernel's body takes Ptr<T> and Value<T> after the builder");
};
template <class T>
struct ParameterOf<Value<T>> {
  using type = T;
};
template <class T, class S>
struct ParameterOf<Ptr<T, S>> {
  using type = Ptr<T, S>;
};
template <class A>
struct ParameterOf<const A&> : ParameterOf<A> {};
template <class A>
struct ParameterOf<const A> : ParameterOf<A> {};

template <class Signature>
struct BodyParameters;
template <class C, class R, class... A>
struct BodyParameters<R (C::*)(KernelBuilder&, A...) const> {
  static constexpr std::size_t kCount = sizeof...(A);
  static Params<typename ParameterOf<A>::type...> with(const Name* names) {
    return with(names, std::make_index_sequence<kCount>());
  }

 private:
  template <std::size_t... kIndex>
  static Params<typename ParameterOf<A>::type...> with(const Name* names,
                                                       std::index_sequence<kIndex...>) {
    return {{names[kIndex]...}};
  }
};

}  // namespace detail

/// The same with the parameters' names alone; their types are those of the body's parameters:
///
///   auto kernel = build_kernel("scale", "sm_89", {"x", "a", "n"},
///       [](KernelBuilder& k, Ptr<f32> x, Value<f32> a, Value<u32> n) { ... });
template <class Body, std::size_t kCount>
[[nodiscard]] auto build_kernel(Name name, std::string_view target, const Name (&names)[kCount],
                                const Body& body) {
  using Parameters = detail::BodyParameters<decltype(&Body::operator())>;
  static_assert(kCount == Parameters::kCount,
                "the list has another number of names than the body has parameters");
  return build_kernel(name, target, Parameters::with(names), body);
}

}  // namespace ptxgen::inline v0
