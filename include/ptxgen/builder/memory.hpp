// ptxgen/builder/memory.hpp - instruction-level API: loads, stores, atomics, copies, addresses
#pragma once

#include "ptxgen/builder/arithmetic.hpp"

namespace ptxgen::inline v0::detail {

/// What is written through a pointer: of the type of its elements.
template <Pointer P>
using Stored = SameAs<PointeeOf<P>>;

/// Instructions on memory. The pointer says the space and the type; constant offsets are folded
/// into `[base+offset]`.
class Memory : public Arithmetic {
 public:
  using Arithmetic::Arithmetic;

  // Loads.
  template <Pointer P>
  auto ld(const P& p, Load how = {}, Site site = Site::current()) {
    using T = PointeeOf<P>;
    return Value<T>(
        this, result(load_form<P>(how, ptx::Modifier::none), T::kClass, {at<P>(p, 1, site)}, site));
  }
  /// 2, 4 or 8 neighbours with one instruction; p is aligned to all of them together.
  template <unsigned kCount, Pointer P>
  auto ld(const P& p, Load how = {}, Site site = Site::current()) {
    using T = PointeeOf<P>;
    ptx::Register out[kCount];
    vector_load(load_form<P>(how, vector_word<kCount>()), T::kClass, out, at<P>(p, kCount, site),
                site);
    return values<T>(out, std::make_index_sequence<kCount>());
  }
  template <Pointer P>
  requires kSame<SpaceOf<P>, Global>
  auto ld_global(const P& p, Load how = {}, Site site = Site::current()) {
    return ld(p, how, site);
  }
  template <Pointer P>
  requires kSame<SpaceOf<P>, Shared>
  auto ld_shared(const P& p, Load how = {}, Site site = Site::current()) {
    return ld(p, how, site);
  }
  /// What is at p where `condition` holds, else `otherwise`. Memory is not touched where it does
  /// not hold: a move of the default, then a load under the predicate into the same register.
  template <Pointer P>
  auto ld_predicated(const P& p, const In<pred>& condition, const Stored<P>& otherwise,
                     Load how = {}, Site site = Site::current()) {
    using T = PointeeOf<P>;
    return Value<T>(this,
                    guarded_load(load_form<P>(how, ptx::Modifier::none), T::kClass, kMoveType<T>,
                                 at<P>(p, 1, site), condition, argument<T>(otherwise, site), site));
  }
  template <Pointer P>
  requires kSame<SpaceOf<P>, Global>
  auto ld_global_predicated(const P& p, const In<pred>& condition, const Stored<P>& otherwise,
                            Load how = {}, Site site = Site::current()) {
    return ld_predicated(p, condition, otherwise, how, site);
  }

  // Stores.
  template <Pointer P>
  void st(const P& p, const Stored<P>& value, Store how = {}, Site site = Site::current()) {
    using T = PointeeOf<P>;
    effect(store_form<P>(how, ptx::Modifier::none), {at<P>(p, 1, site), argument<T>(value, site)},
           site);
  }
  /// For `p[i] = value`.
  template <class T, class S>
  void store_argument(const Ptr<T, S>& p, const Argument& value, Site site) {
    effect(store_form<Ptr<T, S>>({}, ptx::Modifier::none), {at<Ptr<T, S>>(p, 1, site), value},
           site);
  }
  /// Neighbours with one instruction; p is aligned to all of them together.
  template <Pointer P, std::size_t kCount>
  void st(const P& p, const std::array<Value<PointeeOf<P>>, kCount>& values, Store how = {},
          Site site = Site::current()) {
    using T = PointeeOf<P>;
    st_all<T>(p, values, how, site, std::make_index_sequence<kCount>());
  }
  template <Pointer P>
  requires kSame<SpaceOf<P>, Global>
  void st_global(const P& p, const Stored<P>& value, Store how = {}, Site site = Site::current()) {
    st(p, value, how, site);
  }
  template <Pointer P>
  requires kSame<SpaceOf<P>, Shared>
  void st_shared(const P& p, const Stored<P>& value, Store how = {}, Site site = Site::current()) {
    st(p, value, how, site);
  }

  // Atomic operations: the result is what was there before. `red_...` gives none.
  template <Pointer P>
  auto atom_add(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    return atom(p, ptx::Modifier::add, value, how, site);
  }
  template <Pointer P>
  auto atom_min(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    return atom(p, ptx::Modifier::min, value, how, site);
  }
  template <Pointer P>
  auto atom_max(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    return atom(p, ptx::Modifier::max, value, how, site);
  }
  template <Pointer P>
  auto atom_and(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    return atom(p, ptx::Modifier::and_, value, how, site);
  }
  template <Pointer P>
  auto atom_or(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    return atom(p, ptx::Modifier::or_, value, how, site);
  }
  template <Pointer P>
  auto atom_xor(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    return atom(p, ptx::Modifier::xor_, value, how, site);
  }
  template <Pointer P>
  auto atom_exch(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    return atom(p, ptx::Modifier::exch, value, how, site);
  }
  /// Counts up to `limit`, then starts at 0 again.
  template <Pointer P>
  auto atom_inc(const P& p, const Stored<P>& limit, Atomic how = {}, Site site = Site::current()) {
    return atom(p, ptx::Modifier::inc, limit, how, site);
  }
  template <Pointer P>
  auto atom_dec(const P& p, const Stored<P>& limit, Atomic how = {}, Site site = Site::current()) {
    return atom(p, ptx::Modifier::dec, limit, how, site);
  }
  /// Writes `value` where memory holds `expected`.
  template <Pointer P>
  auto atom_cas(const P& p, const Stored<P>& expected, const Stored<P>& value, Atomic how = {},
                Site site = Site::current()) {
    using T = PointeeOf<P>;
    return Value<T>(
        this,
        result(atomic_form<P>(ptx::Op::atom_cas, ptx::Modifier::cas, how), T::kClass,
               {at<P>(p, 1, site), argument<T>(expected, site), argument<T>(value, site)}, site));
  }
  template <Pointer P>
  void red_add(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    red(p, ptx::Modifier::add, value, how, site);
  }
  template <Pointer P>
  void red_min(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    red(p, ptx::Modifier::min, value, how, site);
  }
  template <Pointer P>
  void red_max(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    red(p, ptx::Modifier::max, value, how, site);
  }
  template <Pointer P>
  void red_and(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    red(p, ptx::Modifier::and_, value, how, site);
  }
  template <Pointer P>
  void red_or(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    red(p, ptx::Modifier::or_, value, how, site);
  }
  template <Pointer P>
  void red_xor(const P& p, const Stored<P>& value, Atomic how = {}, Site site = Site::current()) {
    red(p, ptx::Modifier::xor_, value, how, site);
  }

  // Asynchronous copies from global to shared memory: 4, 8 or 16 bytes each.
  /// `.ca`, or `.cg` (past L1) for 16 bytes when asked.
  template <Pointer D, Pointer S>
  void cp_async(const D& to, const S& from, unsigned bytes, bool past_l1 = false,
                Site site = Site::current()) {
    static_assert(kSame<SpaceOf<D>, Shared> && kSame<SpaceOf<S>, Global>,
                  "cp_async copies from global to shared memory");
    static_assert(kSame<PointeeOf<D>, PointeeOf<S>>, "cp_async copies between equal types");
    copy_async(PointerTraits<D>::data(to), PointerTraits<S>::data(from), bytes, past_l1, site);
  }
  void cp_async_commit_group(Site site = Site::current());
  /// Waits until at most `pending` groups of this thread are on their way.
  void cp_async_wait_group(unsigned pending, Site site = Site::current());
  void cp_async_wait_all(Site site = Site::current());

  // Addresses.
  /// The 32-bit address of a shared array in the shared window; never a generic address.
  template <class T>
  Value<u32> shared_base_addr(const SharedArray<T>& array, Site site = Site::current()) {
    return {this, symbol_address(array.symbol(), site)};
  }
  /// The pointer's address as a number: u32 in shared and local memory, u64 elsewhere.
  template <Pointer P>
  auto address_of(const P& p, Site site = Site::current()) {
    using Address = Choose<SpaceOf<P>::kNarrow, u32, u64>;
    return Value<Address>(this,
                          address_value(PointerTraits<P>::data(p), SpaceOf<P>::kNarrow, site));
  }
  /// A number as an address.
  template <class T, class S = Global>
  Ptr<T, S> pointer(const In<Choose<S::kNarrow, u32, u64>>& address, Site site = Site::current()) {
    using Address = Choose<S::kNarrow, u32, u64>;
    const Argument from = stable(argument<Address>(address, site), Address::kClass, Address::kType);
    return Ptr<T, S>(PointerData{this, use(from).as_register(), 0, 0});
  }
  /// A generic pointer as one into a space (`cvta.to`); undefined if it does not point there.
  template <class S, Pointer P>
  auto cvta_to(const P& p, Site site = Site::current()) {
    static_assert(kSame<SpaceOf<P>, Generic>, "cvta_to takes a generic pointer");
    static_assert(!kSame<S, Generic>, "the pointer is generic already");
    return Ptr<PointeeOf<P>, S>(
        to_space(PointerTraits<P>::data(p), S::kModifier, S::kNarrow, site));
  }
  /// A pointer into a space as a generic one (`cvta`).
  template <Pointer P>
  auto cvta(const P& p, Site site = Site::current()) {
    static_assert(!kSame<SpaceOf<P>, Generic>, "the pointer is generic already");
    return Ptr<PointeeOf<P>, Generic>(
        to_generic(PointerTraits<P>::data(p), SpaceOf<P>::kModifier, SpaceOf<P>::kNarrow, site));
  }

 protected:
  template <class P>
  Argument at(const P& p, unsigned count, Site site) {
    return address(PointerTraits<P>::data(p), PointeeOf<P>::kBytes * count, SpaceOf<P>::kNarrow,
                   site);
  }
  template <class T, std::size_t... kIndex>
  std::array<Value<T>, sizeof...(kIndex)> values(const ptx::Register* registers,
                                                 std::index_sequence<kIndex...>) {
    return {Value<T>(this, registers[kIndex])...};
  }
  ptx::Register symbol_address(ptx::SymbolId symbol, Site site);

 private:
  template <unsigned kCount>
  static constexpr ptx::Modifier vector_word() {
    static_assert(kCount == 2 || kCount == 4 || kCount == 8, "vectors have 2, 4 or 8 elements");
    return kCount == 2 ? ptx::Modifier::v2 : kCount == 4 ? ptx::Modifier::v4 : ptx::Modifier::v8;
  }
  template <class P>
  static constexpr Form load_form(const Load& how, ptx::Modifier vector) {
    ModifierList modifiers;
    modifiers.add(how.order);
    modifiers.add(how.scope);
    modifiers.add(SpaceOf<P>::kModifier);
    modifiers.add(how.cache);
    modifiers.add_if(how.read_only, ptx::Modifier::nc);
    modifiers.add(how.l1);
    modifiers.add(how.l2);
    modifiers.add(how.prefetch);
    modifiers.add(vector);
    modifiers.add(PointeeOf<P>::kMemoryType);
    return {how.read_only ? ptx::Op::ld_nc : ptx::Op::ld, modifiers};
  }
  template <class P>
  static constexpr Form store_form(const Store& how, ptx::Modifier vector) {
    static_assert(!kSame<SpaceOf<P>, Const>, "constant memory cannot be written");
    ModifierList modifiers;
    modifiers.add(how.order);
    modifiers.add(how.scope);
    modifiers.add(SpaceOf<P>::kModifier);
    modifiers.add(how.cache);
    modifiers.add(how.l1);
    modifiers.add(how.l2);
    modifiers.add(vector);
    modifiers.add(PointeeOf<P>::kMemoryType);
    return {ptx::Op::st, modifiers};
  }
  template <class P>
  static constexpr Form atomic_form(ptx::Op op, ptx::Modifier what, const Atomic& how) {
    using T = PointeeOf<P>;
    static_assert(SpaceOf<P>::kSpace == ptx::Space::Global ||
                      SpaceOf<P>::kSpace == ptx::Space::Shared ||
                      SpaceOf<P>::kSpace == ptx::Space::Generic,
                  "atomic operations are on global and shared memory");
    const bool bits = what == ptx::Modifier::and_ || what == ptx::Modifier::or_ ||
                      what == ptx::Modifier::xor_ || what == ptx::Modifier::exch ||
                      what == ptx::Modifier::cas;
    ModifierList modifiers;
    modifiers.add(how.order);
    modifiers.add(how.scope);
    modifiers.add(SpaceOf<P>::kModifier);
    modifiers.add(what);
    modifiers.add_if(
        !bits && (kSame<T, f16> || kSame<T, bf16> || T::kKind == ptx::TypeKind::Packed),
        ptx::Modifier::noftz);
    modifiers.add(bits ? kBitsType<T::kBits> : T::kType);
    return {op, modifiers};
  }
  template <class P>
  auto atom(const P& p, ptx::Modifier what, const Stored<P>& value, const Atomic& how, Site site) {
    using T = PointeeOf<P>;
    return Value<T>(this, result(atomic_form<P>(ptx::Op::atom_add, what, how), T::kClass,
                                 {at<P>(p, 1, site), argument<T>(value, site)}, site));
  }
  template <class P>
  void red(const P& p, ptx::Modifier what, const Stored<P>& value, const Atomic& how, Site site) {
    using T = PointeeOf<P>;
    effect(atomic_form<P>(ptx::Op::red_add, what, how),
           {at<P>(p, 1, site), argument<T>(value, site)}, site);
  }
  template <class T, class P, std::size_t kCount, std::size_t... kIndex>
  void st_all(const P& p, const std::array<Value<T>, kCount>& values, const Store& how, Site site,
              std::index_sequence<kIndex...>) {
    const Argument parts[] = {argument<T>(values[kIndex], site)...};
    vector_store(store_form<P>(how, vector_word<kCount>()), at<P>(p, kCount, site), parts, site);
  }

  ptx::Register guarded_load(const Form& form, RegisterClass register_class, ptx::Type move_type,
                             const Argument& address, const Argument& condition,
                             const Argument& otherwise, Site site);
  void copy_async(const PointerData& to, const PointerData& from, unsigned bytes, bool past_l1,
                  Site site);
  PointerData to_space(const PointerData& p, ptx::Modifier space, bool narrow, Site site);
  PointerData to_generic(const PointerData& p, ptx::Modifier space, bool narrow, Site site);
};

}  // namespace ptxgen::inline v0::detail
