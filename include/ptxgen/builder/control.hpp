// ptxgen/builder/control.hpp - instruction-level API: control flow, barriers, warp operations
#pragma once

#include <span>

#include "ptxgen/builder/memory.hpp"

namespace ptxgen::inline v0 {

class Vec;
namespace detail {
class Control;
}

/// An operand of `KernelBuilder::emit` or `raw`: a value, variable, predicate, pointer (as
/// `[address+offset]`), C++ number, name of a label, or vector. Only ever a temporary.
class Operand {
 public:
  template <class A>
  requires detail::kIsOperand<A> Operand(const A& a, SourceLocation at = SourceLocation::current())
      : argument_(detail::argument<detail::ElementOf<A>>(a, at)),
        element_(detail::ElementOf<A>::kType) {}
  template <detail::Pointer P>
  Operand(const P& p, SourceLocation at = SourceLocation::current())
      : kind_(Kind::Memory),
        pointer_(detail::PointerTraits<P>::data(p)),
        space_(detail::SpaceOf<P>::kModifier),
        narrow_(detail::SpaceOf<P>::kNarrow) {
    argument_.site = at;
  }
  template <class L>
  requires detail::kIsCppInteger<L> Operand(L literal,
                                            SourceLocation at = SourceLocation::current())
      : argument_{nullptr,
                  detail::kIsSignedCpp<L>
                      ? ptx::Operand::integer(static_cast<std::int64_t>(literal))
                      : ptx::Operand::unsigned_integer(static_cast<std::uint64_t>(literal)),
                  at} {}
  Operand(float literal, SourceLocation at = SourceLocation::current())
      : argument_{nullptr, ptx::Operand::f32(literal), at} {}
  Operand(double literal, SourceLocation at = SourceLocation::current())
      : argument_{nullptr, ptx::Operand::f64(literal), at} {}
  Operand(const char* label, SourceLocation at = SourceLocation::current())
      : kind_(Kind::Label), label_(label) {
    argument_.site = at;
  }
  Operand(const Vec& elements);  // NOLINT(google-explicit-constructor)

  /// The sink `_`.
  [[nodiscard]] static Operand sink();
  /// Second half of `d|p`.
  [[nodiscard]] Operand joined() const {
    Operand copy = *this;
    copy.argument_.operand.joined = true;
    return copy;
  }

 private:
  Operand() = default;
  enum class Kind : std::uint8_t { Plain, Memory, Label, Vector };

  Kind kind_ = Kind::Plain;
  detail::Argument argument_;
  ptx::Type element_ = ptx::Type::none;
  detail::PointerData pointer_;
  ptx::Modifier space_ = ptx::Modifier::none;  ///< of the pointer; none: generic
  std::string_view label_;
  const Operand* elements_ = nullptr;
  std::size_t count_ = 0;
  bool narrow_ = false;
  friend class detail::Control;
};

/// Operands in braces: `{a, b, c, d}`.
class Vec {
 public:
  Vec(std::initializer_list<Operand> elements) : elements_(elements.begin(), elements.size()) {}
  explicit Vec(std::span<const Operand> elements) : elements_(elements) {}

 private:
  std::span<const Operand> elements_;
  friend class Operand;
};

namespace detail {

/// Instructions that steer threads or let them work together, and the door to every other one.
class Control : public Memory {
 public:
  using Memory::Memory;

  // Special registers.
  /// `component` 0, 1, 2 is `.x`, `.y`, `.z`; it must be 0 for a scalar.
  template <class T = u32>
  Value<T> special_reg(ptx::SpecialRegister which, unsigned component = 0,
                       Site site = Site::current()) {
    return {this, special(which, component, T::kClass, T::kType, site)};
  }
  Value<u32> tid_x(Site site = Site::current()) { return special_reg(Special::tid, 0, site); }
  Value<u32> tid_y(Site site = Site::current()) { return special_reg(Special::tid, 1, site); }
  Value<u32> tid_z(Site site = Site::current()) { return special_reg(Special::tid, 2, site); }
  Value<u32> ntid_x(Site site = Site::current()) { return special_reg(Special::ntid, 0, site); }
  Value<u32> ntid_y(Site site = Site::current()) { return special_reg(Special::ntid, 1, site); }
  Value<u32> ntid_z(Site site = Site::current()) { return special_reg(Special::ntid, 2, site); }
  Value<u32> ctaid_x(Site site = Site::current()) { return special_reg(Special::ctaid, 0, site); }
  Value<u32> ctaid_y(Site site = Site::current()) { return special_reg(Special::ctaid, 1, site); }
  Value<u32> ctaid_z(Site site = Site::current()) { return special_reg(Special::ctaid, 2, site); }
  Value<u32> nctaid_x(Site site = Site::current()) { return special_reg(Special::nctaid, 0, site); }
  Value<u32> nctaid_y(Site site = Site::current()) { return special_reg(Special::nctaid, 1, site); }
  Value<u32> nctaid_z(Site site = Site::current()) { return special_reg(Special::nctaid, 2, site); }
  Value<u32> laneid(Site site = Site::current()) { return special_reg(Special::laneid, 0, site); }

  // Labels and branches. A label's name is unique in the kernel; one that is used and never placed
  // is reported by `build()`. `if_`, `for_` and `while_` are the normal way.
  void label(Name name);
  void branch(Name to);
  void branch_if(const In<pred>& p, Name to);
  void branch_unless(const In<pred>& p, Name to);
  void ret(Site site = Site::current()) { effect({ptx::Op::ret, {}}, {}, site); }
  void exit(Site site = Site::current()) { effect({ptx::Op::exit, {}}, {}, site); }
  void trap(Site site = Site::current()) { effect({ptx::Op::trap, {}}, {}, site); }

  // Barriers and fences.
  /// All threads of the block meet at barrier `id` (0 to 15).
  void bar_sync(unsigned id = 0, Site site = Site::current());
  /// `threads` of them do: a multiple of 32.
  void bar_sync(unsigned id, unsigned threads, Site site = Site::current());
  void bar_arrive(unsigned id, unsigned threads, Site site = Site::current());
  void bar_warp_sync(const In<u32>& mask = kAllLanes, Site site = Site::current()) {
    effect({ptx::Op::bar_warp_sync, {ptx::Modifier::warp, ptx::Modifier::sync}},
           {argument<u32>(mask, site)}, site);
  }
  /// Orders the memory accesses of this thread (`membar.cta`, `.gl`, `.sys`).
  void membar(Scope scope, Site site = Site::current());
  void fence(Order order, Scope scope, Site site = Site::current());

  // Between the lanes of a warp. `mask` names the lanes that take part; 32-bit types.
  static constexpr unsigned kAllLanes = 0xffffffffu;
  template <class A>
  auto shfl_up(const A& a, const In<u32>& delta, const In<u32>& mask = kAllLanes,
               Site site = Site::current()) {
    return shfl<Common<A>>(ptx::Modifier::up, a, delta, 0u, mask, site);
  }
  template <class A>
  auto shfl_down(const A& a, const In<u32>& delta, const In<u32>& mask = kAllLanes,
                 Site site = Site::current()) {
    return shfl<Common<A>>(ptx::Modifier::down, a, delta, 31u, mask, site);
  }
  template <class A>
  auto shfl_bfly(const A& a, const In<u32>& lane_mask, const In<u32>& mask = kAllLanes,
                 Site site = Site::current()) {
    return shfl<Common<A>>(ptx::Modifier::bfly, a, lane_mask, 31u, mask, site);
  }
  template <class A>
  auto shfl_idx(const A& a, const In<u32>& lane, const In<u32>& mask = kAllLanes,
                Site site = Site::current()) {
    return shfl<Common<A>>(ptx::Modifier::idx, a, lane, 31u, mask, site);
  }
  /// `mode` is `up`, `down`, `bfly` or `idx`; `clamp` is the ISA's operand c (segment and bound);
  /// `in_range` receives whether the lane read from was in range.
  template <class A>
  auto shfl_sync(ptx::Modifier mode, const A& a, const In<u32>& b, const In<u32>& clamp,
                 const In<u32>& mask, Var<pred>& in_range, Site site = Site::current()) {
    using T = Common<A>;
    static_assert(T::kBits == 32, "shfl moves 32-bit values: unpack wider ones");
    return Value<T>(this, joined_into(shfl_form(mode), T::kClass, in_range.reg(),
                                      {argument<T>(a, site), argument<u32>(b, site),
                                       argument<u32>(clamp, site), argument<u32>(mask, site)},
                                      site));
  }
  Pred vote_all(const In<pred>& p, const In<u32>& mask = kAllLanes, Site site = Site::current()) {
    return vote(ptx::Modifier::all, p, argument<u32>(mask, site), site);
  }
  Pred vote_any(const In<pred>& p, const In<u32>& mask = kAllLanes, Site site = Site::current()) {
    return vote(ptx::Modifier::any, p, argument<u32>(mask, site), site);
  }
  Pred vote_uni(const In<pred>& p, const In<u32>& mask = kAllLanes, Site site = Site::current()) {
    return vote(ptx::Modifier::uni, p, argument<u32>(mask, site), site);
  }
  Value<u32> vote_ballot(const In<pred>& p, const In<u32>& mask = kAllLanes,
                         Site site = Site::current()) {
    return {this, result({ptx::Op::vote_sync_ballot,
                          {ptx::Modifier::sync, ptx::Modifier::ballot, ptx::Modifier::type_b32}},
                         u32::kClass, {p, argument<u32>(mask, site)}, site)};
  }
  /// The lanes that hold the same a.
  template <class A>
  Value<u32> match_any(const A& a, const In<u32>& mask = kAllLanes, Site site = Site::current()) {
    using T = Common<A>;
    return {this, result({ptx::Op::match_any,
                          {ptx::Modifier::any, ptx::Modifier::sync, kBitsModifier<T>}},
                         u32::kClass, {argument<T>(a, site), argument<u32>(mask, site)}, site)};
  }
  Value<u32> activemask(Site site = Site::current());
  template <class A>
  auto redux_add(const A& a, const In<u32>& mask = kAllLanes, Site site = Site::current()) {
    return redux<Common<A>>(ptx::Modifier::add, kTypeModifier<Common<A>>, a, mask, site);
  }
  template <class A>
  auto redux_min(const A& a, const In<u32>& mask = kAllLanes, Site site = Site::current()) {
    return redux<Common<A>>(ptx::Modifier::min, kTypeModifier<Common<A>>, a, mask, site);
  }
  template <class A>
  auto redux_max(const A& a, const In<u32>& mask = kAllLanes, Site site = Site::current()) {
    return redux<Common<A>>(ptx::Modifier::max, kTypeModifier<Common<A>>, a, mask, site);
  }
  template <class A>
  auto redux_and(const A& a, const In<u32>& mask = kAllLanes, Site site = Site::current()) {
    return redux<Common<A>>(ptx::Modifier::and_, kBitsModifier<Common<A>>, a, mask, site);
  }
  template <class A>
  auto redux_or(const A& a, const In<u32>& mask = kAllLanes, Site site = Site::current()) {
    return redux<Common<A>>(ptx::Modifier::or_, kBitsModifier<Common<A>>, a, mask, site);
  }
  template <class A>
  auto redux_xor(const A& a, const In<u32>& mask = kAllLanes, Site site = Site::current()) {
    return redux<Common<A>>(ptx::Modifier::xor_, kBitsModifier<Common<A>>, a, mask, site);
  }

  // Every other instruction.
  /// A register that is not written yet, for `emit` to write.
  template <class T>
  Value<T> undefined(Site site = Site::current()) {
    check_open(site);
    return {this, new_register(T::kClass)};
  }
  /// Emits any row of the op table: its modifiers in any order (modifiers that are always there may
  /// be left out) and its operands in the table's order. Everything is checked against the row at
  /// once: modifiers, number of operands, their types, and the state spaces of pointers
  /// ("bad-operand", "type-mismatch", "space-mismatch", "target-lacks").
  void emit(ptx::Op op, std::initializer_list<ptx::Modifier> modifiers,
            std::initializer_list<Operand> operands, Site site = Site::current()) {
    emit(op, std::span(modifiers.begin(), modifiers.size()),
         std::span(operands.begin(), operands.size()), site);
  }
  void emit(ptx::Op op, std::span<const ptx::Modifier> modifiers, std::span<const Operand> operands,
            Site site = Site::current());
  /// PTX statements as text. `$0`, `$1`, ... stand for the outputs and, counting on, the inputs.
  /// Outputs are variables; registers that the text declares live in a scope of braces.
  /// The text is parsed and checked at the call, as `emit` checks; "unknown-instruction" if it has
  /// one that the op table lacks, which `raw_unchecked` takes.
  void raw(std::string_view text, std::initializer_list<Operand> outputs = {},
           std::initializer_list<Operand> inputs = {}, Site site = Site::current()) {
    insert(text, outputs, inputs, false, site);
  }
  /// `raw` for instructions newer than the op table: they are printed as they are written, and no
  /// pass, gate or emulator knows them. Everything else in the text is checked.
  void raw_unchecked(std::string_view text, std::initializer_list<Operand> outputs = {},
                     std::initializer_list<Operand> inputs = {}, Site site = Site::current()) {
    insert(text, outputs, inputs, true, site);
  }
  /// The same with one output, which is the result.
  template <class T>
  Value<T> raw(std::string_view text, std::initializer_list<Operand> inputs,
               Site site = Site::current()) {
    Transaction transaction(*this);
    const Var<T> out(this, new_register(T::kClass));
    raw(text, {Operand(out, site)}, inputs, site);
    transaction.keep();
    return {this, out.reg()};
  }
  template <class T>
  Value<T> raw_unchecked(std::string_view text, std::initializer_list<Operand> inputs,
                         Site site = Site::current()) {
    Transaction transaction(*this);
    const Var<T> out(this, new_register(T::kClass));
    raw_unchecked(text, {Operand(out, site)}, inputs, site);
    transaction.keep();
    return {this, out.reg()};
  }

 protected:
  using Special = ptx::SpecialRegister;
  ptx::Register special(ptx::SpecialRegister which, unsigned component,
                        RegisterClass register_class, ptx::Type type, Site site);
  template <class T, class A>
  Value<T> shfl(ptx::Modifier mode, const A& a, const In<u32>& b, unsigned clamp,
                const In<u32>& mask, Site site) {
    static_assert(T::kBits == 32, "shfl moves 32-bit values: unpack wider ones");
    return {this, result(shfl_form(mode), T::kClass,
                         {argument<T>(a, site), argument<u32>(b, site), argument<u32>(clamp, site),
                          argument<u32>(mask, site)},
                         site)};
  }
  static constexpr Form shfl_form(ptx::Modifier mode) {
    return {ptx::Op::shfl_sync, {ptx::Modifier::sync, mode, ptx::Modifier::type_b32}};
  }
  ptx::Register joined_into(const Form& form, RegisterClass register_class, ptx::Register predicate,
                            std::initializer_list<Argument> arguments, Site site);
  Pred vote(ptx::Modifier mode, const In<pred>& p, const Argument& mask, Site site);
  template <class T, class A>
  Value<T> redux(ptx::Modifier what, ptx::Modifier type, const A& a, const In<u32>& mask,
                 Site site) {
    static_assert(T::kBits == 32, "redux works on 32-bit values");
    return {this, result({ptx::Op::redux, {ptx::Modifier::sync, what, type}}, T::kClass,
                         {argument<T>(a, site), argument<u32>(mask, site)}, site)};
  }

 private:
  ptx::Operand lower(const Operand& operand);
  void check_element(const Operand& operand, ptx::Type wanted, bool relaxed, std::size_t place);
  void check_space(const ptx::Instruction& statement, const ptx::OperandSpec& spec,
                   ptx::Modifier modifier, std::size_t place, Site site);

  // Text of raw(). Names of the operands, and the pointers among them.
  struct RawOperands;
  void insert(std::string_view text, std::initializer_list<Operand> outputs,
              std::initializer_list<Operand> inputs, bool unknown, Site site);
  [[nodiscard]] RawOperands raw_operands(std::initializer_list<Operand> outputs,
                                         std::initializer_list<Operand> inputs, Site site);
  [[nodiscard]] std::string replaced(std::string_view text, const RawOperands& operands, Site site);
  void check_inserted(std::size_t first, const RawOperands& operands, bool unknown, Site site);
};

}  // namespace detail

}  // namespace ptxgen::inline v0
