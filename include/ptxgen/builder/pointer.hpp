// ptxgen/builder/pointer.hpp - typed pointers, elements and arrays of a kernel
#pragma once

#include "ptxgen/builder/value.hpp"

namespace ptxgen::inline v0 {

namespace detail {

struct PointerData {
  Core* core = nullptr;
  ptx::Register base;
  std::int64_t offset = 0;      ///< bytes after `base`, folded into the instructions that use it
  std::uint32_t alignment = 0;  ///< of `base` in bytes, 0 if unknown
};

/// A number of elements to move a pointer by: a u32, s32, u64 or s64, or a C++ integer.
struct Index : Argument {
  ptx::Type type = ptx::Type::none;  ///< none for a C++ integer, which is in `operand.value`

  template <class A>
  requires(!kIsRef<A> && (kSame<ElementOf<A>, u32> || kSame<ElementOf<A>, s32> ||
                          kSame<ElementOf<A>, u64> || kSame<ElementOf<A>, s64>))
      Index(const A& i, SourceLocation at = SourceLocation::current())
  noexcept : Argument(In<ElementOf<A>>(i, at)), type(ElementOf<A>::kType) {}
  /// Refused: the order of the two loads would be the C++ compiler's.
  template <class T, class S>
  Index(const Ref<T, S>&, SourceLocation = SourceLocation::current()) noexcept {
    static_assert(kNever<T>,
                  "an index is itself an element of memory: read it first, "
                  "Value<u32> i = indices[n]; then x[i]");
  }
  template <class L>
  requires kIsCppInteger<L> Index(L i, SourceLocation at = SourceLocation::current())
  noexcept : Argument{nullptr, ptx::Operand::integer(static_cast<std::int64_t>(i)), at} {}
};

/// `pointer + sign * index` elements of `bytes` bytes. Constants are folded into the offset; a
/// variable index is one `mad` with a 64-bit sum (32-bit in shared and local memory).
[[nodiscard]] PointerData advance(const PointerData& pointer, const Index& index, int sign,
                                  unsigned bytes, bool narrow);
/// `pointer + index` bytes.
[[nodiscard]] PointerData advance_bytes(const PointerData& pointer, const Index& index,
                                        bool narrow);
/// The pointer's base as a register of its own (`mov`), if the variable is written later.
[[nodiscard]] PointerData copy_base(Core* core, ptx::Register base, bool narrow, SourceLocation at);
void set_base(Core* core, ptx::Register base, const PointerData& value, bool narrow,
              SourceLocation at);
void advance_base(Core* core, ptx::Register base, const Index& index, int sign, unsigned bytes,
                  bool narrow);

}  // namespace detail

/// A pointer to elements T in state space S: 64 bits, or a 32-bit window address for Shared and
/// Local. Immutable; copying it emits nothing. Arithmetic counts elements, as in C++: adding a C++
/// integer is folded into the loads and stores, adding a value is one instruction, exact for every
/// index. Pointers of different spaces or elements do not mix.
template <class T, class S = Global>
class Ptr {
  static_assert(detail::Element<T> && detail::AnySpace<S>,
                "Ptr<T, S>: T is an element type such as f32, S a space such as Global or Shared");
  static_assert(!detail::kSame<T, pred>, "predicates have no place in memory");

 public:
  using Element = T;
  using Space = S;
  /// The type of its address as a value.
  using Address = detail::Choose<S::kNarrow, u32, u64>;

  Ptr(const Ptr&) noexcept = default;
  Ptr& operator=(const Ptr&) = delete;
  /// A copy of where the variable points now.
  Ptr(const Var<Ptr>& variable, SourceLocation at = SourceLocation::current());
  /// For the builder.
  explicit Ptr(const detail::PointerData& data) noexcept : data_(data) {}

  void rebind(const Ptr& other) noexcept { data_ = other.data_; }

  /// Element `i`, to read (`Value<f32> v = x[i];`) or to write (`x[i] = v;`).
  [[nodiscard]] Ref<T, S> operator[](const detail::Index& i) const;

  friend Ptr operator+(const Ptr& p, const detail::Index& i) {
    return Ptr(detail::advance(p.data_, i, 1, T::kBytes, S::kNarrow));
  }
  friend Ptr operator-(const Ptr& p, const detail::Index& i) {
    return Ptr(detail::advance(p.data_, i, -1, T::kBytes, S::kNarrow));
  }
  /// The pointer moved by bytes; the caller answers for its alignment.
  [[nodiscard]] Ptr offset_bytes(const detail::Index& bytes) const {
    return Ptr(detail::advance_bytes(data_, bytes, S::kNarrow));
  }
  /// The same address with another element type.
  template <class U>
  [[nodiscard]] Ptr<U, S> cast() const noexcept {
    return Ptr<U, S>(data_);
  }

  [[nodiscard]] const detail::PointerData& data() const noexcept { return data_; }

 private:
  detail::PointerData data_;
};

/// A pointer that is moved along. Copy it into a `Ptr` to index it or to add to it.
template <class T, class S>
class Var<Ptr<T, S>> {
 public:
  Var(Var&& other) noexcept : core_(other.core_), base_(other.base_) { other.core_ = nullptr; }
  Var(const Var&) = delete;
  Var& operator=(const Var&) = delete;
  Var(detail::Core* core, ptx::Register base) noexcept : core_(core), base_(base) {}

  /// Points it elsewhere.
  void set(const Ptr<T, S>& p, SourceLocation at = SourceLocation::current()) {
    detail::set_base(core_, base_, p.data(), S::kNarrow, at);
  }
  /// Moves it by elements, in place.
  Var& operator+=(const detail::Index& i) {
    detail::advance_base(core_, base_, i, 1, T::kBytes, S::kNarrow);
    return *this;
  }
  Var& operator-=(const detail::Index& i) {
    detail::advance_base(core_, base_, i, -1, T::kBytes, S::kNarrow);
    return *this;
  }
  [[nodiscard]] Ptr<T, S> read(SourceLocation at = SourceLocation::current()) const {
    return Ptr<T, S>(*this, at);
  }
  /// Where it points now, without a copy: emits nothing, and is valid until the variable changes.
  [[nodiscard]] Ptr<T, S> view() const noexcept {
    return Ptr<T, S>(detail::PointerData{core_, base_, 0, 0});
  }
  [[nodiscard]] ptx::Register reg() const noexcept { return base_; }
  [[nodiscard]] detail::Core* core() const noexcept { return core_; }

 private:
  detail::Core* core_;
  ptx::Register base_;
};

template <class T, class S>
Ptr<T, S>::Ptr(const Var<Ptr>& variable, SourceLocation at)
    : data_(detail::copy_base(variable.core(), variable.reg(), S::kNarrow, at)) {}

/// An element of memory, as `p[i]` gives it. It is read where an instruction uses it or where it is
/// converted to a value, and written by `=`. It is not to be kept: `auto x = p[i]` holds no value.
template <class T, class S>
class Ref : public detail::Operators<T> {
  using Site = SourceLocation;

 public:
  using Element = T;

  Ref(const Ptr<T, S>& base, const detail::Index& index) noexcept : base_(base), index_(index) {}
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;

  /// Loads the element.
  operator Value<T>() &&;
  /// Stores to the element.
  void operator=(const In<T>& value) &&;
  /// Loads one element and stores it to the other.
  void operator=(Ref&& other) &&;
  // Load, combine, store; not atomic.
  void operator+=(const In<T>& b) && {
    update(b, [](auto& k, const auto& a, const auto& x, Site s) { return k.add(a, x, {}, s); });
  }
  void operator-=(const In<T>& b) && {
    update(b, [](auto& k, const auto& a, const auto& x, Site s) { return k.sub(a, x, {}, s); });
  }
  void operator*=(const In<T>& b) && {
    update(b, [](auto& k, const auto& a, const auto& x, Site s) { return k.mul(a, x, {}, s); });
  }
  void operator/=(const In<T>& b) && {
    update(b, [](auto& k, const auto& a, const auto& x, Site s) { return k.div(a, x, {}, s); });
  }
  void operator%=(const In<T>& b) && {
    update(b, [](auto& k, const auto& a, const auto& x, Site s) { return k.rem(a, x, s); });
  }
  void operator&=(const In<T>& b) && {
    update(b, [](auto& k, const auto& a, const auto& x, Site s) { return k.and_(a, x, s); });
  }
  void operator|=(const In<T>& b) && {
    update(b, [](auto& k, const auto& a, const auto& x, Site s) { return k.or_(a, x, s); });
  }
  void operator^=(const In<T>& b) && {
    update(b, [](auto& k, const auto& a, const auto& x, Site s) { return k.xor_(a, x, s); });
  }
  void operator<<=(const In<u32>& b) && {
    update(b, [](auto& k, const auto& a, const auto& x, Site s) { return k.shl(a, x, s); });
  }
  void operator>>=(const In<u32>& b) && {
    update(b, [](auto& k, const auto& a, const auto& x, Site s) { return k.shr(a, x, s); });
  }

  // Refused: an element that C++ keeps a name for.
  operator Value<T>() const& {
    detail::refuse_held_element<S>();
    return {base_.data().core, ptx::Register{}};
  }
  template <class A>
  void operator=(const A&) & {
    detail::refuse_held_element<S>();
  }
  template <class A>
  void operator+=(const A&) & {
    detail::refuse_held_element<S>();
  }
  template <class A>
  void operator-=(const A&) & {
    detail::refuse_held_element<S>();
  }
  template <class A>
  void operator*=(const A&) & {
    detail::refuse_held_element<S>();
  }
  template <class A>
  void operator/=(const A&) & {
    detail::refuse_held_element<S>();
  }
  template <class A>
  void operator%=(const A&) & {
    detail::refuse_held_element<S>();
  }
  template <class A>
  void operator&=(const A&) & {
    detail::refuse_held_element<S>();
  }
  template <class A>
  void operator|=(const A&) & {
    detail::refuse_held_element<S>();
  }
  template <class A>
  void operator^=(const A&) & {
    detail::refuse_held_element<S>();
  }
  template <class A>
  void operator<<=(const A&) & {
    detail::refuse_held_element<S>();
  }
  template <class A>
  void operator>>=(const A&) & {
    detail::refuse_held_element<S>();
  }

  /// Its address; emits the sum of pointer and index.
  [[nodiscard]] Ptr<T, S> pointer() const { return base_ + index_; }
  [[nodiscard]] SourceLocation site() const noexcept { return index_.site; }
  [[nodiscard]] detail::Core* core() const noexcept { return base_.data().core; }
  /// For the builder: the loaded element as an operand.
  [[nodiscard]] detail::Argument load(SourceLocation at) const;

 private:
  template <class B, class Operation>
  void update(const B& b, const Operation& operation);

  Ptr<T, S> base_;
  detail::Index index_;
};

template <class T, class S>
Ref<T, S> Ptr<T, S>::operator[](const detail::Index& i) const {
  return Ref<T, S>(*this, i);
}

/// An array in shared or local memory. Converts to the pointer to its first element.
template <class T, class S>
class Array {
 public:
  Array(const Ptr<T, S>& base, ptx::SymbolId symbol, std::uint64_t count) noexcept
      : base_(base), symbol_(symbol), count_(count) {}

  operator Ptr<T, S>() const noexcept { return base_; }
  [[nodiscard]] const Ptr<T, S>& base() const noexcept { return base_; }
  [[nodiscard]] Ref<T, S> operator[](const detail::Index& i) const { return base_[i]; }
  friend Ptr<T, S> operator+(const Array& a, const detail::Index& i) { return a.base_ + i; }
  /// Elements; 0 for dynamic shared memory.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] ptx::SymbolId symbol() const noexcept { return symbol_; }

 private:
  Ptr<T, S> base_;
  ptx::SymbolId symbol_;
  std::uint64_t count_;
};
template <class T>
using SharedArray = Array<T, Shared>;

namespace detail {

template <class T, class S>
struct ElementOfImpl<Ptr<T, S>> {
  using type = void;
};

/// What loads and stores take for a pointer: Ptr, Var<Ptr>, Array.
template <class P>
struct PointerTraits {
  static constexpr bool kIsPointer = false;
};
template <class T, class S>
struct PointerTraits<Ptr<T, S>> {
  static constexpr bool kIsPointer = true;
  using Element = T;
  using Space = S;
  static PointerData data(const Ptr<T, S>& p) noexcept { return p.data(); }
};
template <class T, class S>
struct PointerTraits<Var<Ptr<T, S>>> {
  static constexpr bool kIsPointer = true;
  using Element = T;
  using Space = S;
  static PointerData data(const Var<Ptr<T, S>>& p) noexcept { return {p.core(), p.reg(), 0, 0}; }
};
template <class T, class S>
struct PointerTraits<Array<T, S>> {
  static constexpr bool kIsPointer = true;
  using Element = T;
  using Space = S;
  static PointerData data(const Array<T, S>& p) noexcept { return p.base().data(); }
};
template <class P>
concept Pointer = PointerTraits<P>::kIsPointer;
template <class P>
using PointeeOf = typename PointerTraits<P>::Element;
template <class P>
using SpaceOf = typename PointerTraits<P>::Space;

}  // namespace detail

}  // namespace ptxgen::inline v0
