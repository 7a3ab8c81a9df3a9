// ptxgen/builder/kernel_builder.hpp - high-level API: parameters, arrays, control structure
#pragma once

#include "ptxgen/builder/control.hpp"
#include "ptxgen/builder/kernel.hpp"

namespace ptxgen::inline v0 {

namespace detail {

/// What a parameter is in the kernel.
template <class T>
struct ParamOf {
  using type = Value<T>;
  static constexpr bool kPointer = false;
  using Element = T;
  using Space = Generic;
};
template <class T, class S>
struct ParamOf<Ptr<T, S>> {
  using type = Ptr<T, S>;
  static constexpr bool kPointer = true;
  using Element = T;
  using Space = S;
};

/// The index type, bounds, step and unroll factor of a counted loop.
struct LoopRange {
  ptx::Type type{};
  RegisterClass register_class{};
  unsigned bits = 0;
  bool is_signed = false;
  Argument begin, end, step;
  std::uint64_t factor = 1;
  SourceLocation site;
};

/// What adds nothing: -0.0 for floats, since -0.0 + 0.0 is 0.0.
template <class T>
[[nodiscard]] constexpr auto nothing_added() noexcept {
  if constexpr (kSame<T, f32>) {
    return -0.0f;
  } else if constexpr (kSame<T, f64>) {
    return -0.0;
  } else {
    return 0;
  }
}

/// The state of a loop; between two calls of `for_next` the caller emits one copy of the body.
struct ForLoop : LoopRange {
  explicit ForLoop(const LoopRange& range) : LoopRange(range) {}
  struct Segment {
    std::uint32_t copies = 1;  ///< of the body, one after the other
    bool loop = false;
  };
  std::array<Segment, 2> segments{};
  std::uint32_t segment_count = 0, segment = 0, copy = 0;
  Argument span;                    ///< factor * step where the step is a value
  std::uint64_t constant_step = 0;  ///< 0 if it is a value
  ptx::Register counter;            ///< the loop counter of the current segment
  ptx::Register index;              ///< of the copy to be emitted
  Argument bound;                   ///< of the current segment
  bool bound_is_limit = false;      ///< compared before the step is added
  std::uint64_t next_constant = 0;  ///< straight copies: the next index
  ptx::LabelId top, exit, remainder;
  std::uint32_t scope = 0, body_scope = 0;
  std::int16_t split_hint = ptx::kNoSplitHint;
  bool constant = false, started = false, needs_index = true;
};

}  // namespace detail

/// How `warp_reduce`, `block_reduce` and `block_scan` combine.
enum class Reduce : std::uint8_t { Add, Min, Max };

/// A kernel under construction. A call of the instruction-level API (methods named after PTX
/// instructions, inherited from detail::Arithmetic, Memory and Control) emits one statement. The
/// high-level API is declared here and by the operators of values.
///
/// Every mistake throws `Error` (Stage::Build) with the C++ line of the call, and leaves the kernel
/// as it was before that call; `build()` then reports the first mistake again instead of
/// succeeding. Not for use by several threads at once.
class KernelBuilder : public detail::Control {
 public:
  /// `name` is the entry; `target` a name of the target table. Throws for an unknown target.
  explicit KernelBuilder(Name name, std::string_view target = "sm_89");
  ~KernelBuilder();

  // Parameters, in the order of their declaration.
  /// Declares a parameter and reads it: a value, or for `Ptr<T, S>` a pointer into space S
  /// (launches pass generic addresses, `cvta.to` makes them addresses of the space).
  template <class T>
  typename detail::ParamOf<T>::type param(Name name) {
    declare_param<T>(name);
    return load_param<T>(name);
  }
  template <class T>
  void declare_param(Name name) {
    using P = detail::ParamOf<T>;
    static_assert(sizeof(detail::Host<T>) != 0);
    declare(name, P::kPointer ? ptx::Type::u64 : P::Element::kMemoryType, P::kPointer,
            P::Space::kSpace, P::Element::kType);
  }
  /// Reads a parameter. It must have been declared, with this type.
  template <class T>
  typename detail::ParamOf<T>::type load_param(Name name) {
    using P = detail::ParamOf<T>;
    if constexpr (P::kPointer) {
      return T(pointer_param(name, P::Space::kSpace, P::Space::kModifier, P::Element::kType));
    } else {
      return {this, value_param(name, P::Element::kMemoryType, P::Element::kType, T::kClass)};
    }
  }

  /// Declares a parameter of 128 bytes, aligned to 64, and gives its generic address. See
  /// `tensor_map_param`.
  Value<u64> tensor_map_address(const Name& name);

  // Memory of the block and of the thread.
  /// A static shared array of `count` elements, aligned to 16 bytes or more.
  template <class T>
  SharedArray<T> shared(std::uint64_t count, std::string_view name = {},
                        std::uint32_t alignment = 16, Site site = Site::current()) {
    return array<T, Shared>(count, name, alignment, site);
  }
  /// The dynamic shared memory that the launch gives, as elements T; every call gives its start. It
  /// is aligned to `alignment` bytes, a power of two, or the largest of several calls: 128 for bulk
  /// copies; the 128-byte swizzle of tensor copies needs 1024.
  template <class T>
  SharedArray<T> dynamic_shared(std::uint32_t alignment = 128, Site site = Site::current()) {
    const detail::PointerData base = dynamic_base(T::kBytes, alignment, site);
    return {Ptr<T, Shared>(base), {dynamic_shared_}, 0};
  }
  /// An array of each thread's own, in local memory.
  template <class T>
  Array<T, Local> local(std::uint64_t count, std::string_view name = {},
                        std::uint32_t alignment = 16, Site site = Site::current()) {
    return array<T, Local>(count, name, alignment, site);
  }

  // Directives.
  /// `.maxntid`: the maximum number of threads of a block.
  void max_threads(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1,
                   Site site = Site::current()) {
    directive(ptx::DirectiveKind::maxntid, {x, y, z}, 3, site);
  }
  /// `.reqntid`: exactly the threads a block has.
  void required_threads(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1,
                        Site site = Site::current()) {
    directive(ptx::DirectiveKind::reqntid, {x, y, z}, 3, site);
  }
  /// `.minnctapersm`: blocks that should fit on an SM together.
  void min_blocks_per_sm(std::uint32_t blocks, Site site = Site::current()) {
    directive(ptx::DirectiveKind::minnctapersm, {blocks, 0, 0}, 1, site);
  }
  /// `.maxnreg`: registers per thread.
  void max_registers(std::uint32_t registers, Site site = Site::current()) {
    directive(ptx::DirectiveKind::maxnreg, {registers, 0, 0}, 1, site);
  }
  /// `.reqnctapercluster`: blocks per cluster (sm_90 and later).
  void cluster(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1,
               Site site = Site::current()) {
    directive(ptx::DirectiveKind::reqnctapercluster, {x, y, z}, 3, site);
  }
  /// Whether the passes may fuse this kernel's multiplications and additions where the operations
  /// do not say it themselves (Float::contract). Sums with compensation and other code that needs
  /// each rounding want Contract::Forbid. Counts for the whole kernel, wherever it is called.
  void contract(Contract how, Site site = Site::current());
  /// The default for the conditions of all loops without a hint of their own.
  void loop_split(Split split) { function().split_hint = split.threshold; }
  /// `.pragma` of the kernel.
  void pragma(std::string_view text, Site site = Site::current());
  /// From here on, writes `.loc` with the C++ line of each statement, so that profilers and
  /// disassemblers show it. Names the C++ files as the compiler was given them.
  void line_info(bool on = true) noexcept { line_info_ = on; }

  // Variables.
  template <class T, detail::Typed A>
  Var<T> var(const A& initial, Site site = Site::current()) {
    return Var<T>(this, detail::move_to_new(this, T::kClass, detail::kMoveType<T>,
                                            detail::argument<T>(initial, site)));
  }
  template <class T, detail::AnyLiteral L>
  Var<T> var(L initial, Site site = Site::current()) {
    return Var<T>(this,
                  detail::move_to_new(this, T::kClass, detail::kMoveType<T>, In<T>(initial, site)));
  }
  template <class A>
  requires detail::kIsOperand<A>
  auto var(const A& initial, Site site = Site::current()) {
    return var<detail::ElementOf<A>>(initial, site);
  }
  template <class T, class S>
  Var<Ptr<T, S>> var(const Ptr<T, S>& initial, Site site = Site::current()) {
    const auto base = new_address(S::kNarrow, site);
    Var<Ptr<T, S>> variable(this, base);
    variable.set(initial, site);
    return variable;
  }

  // Structure. What a body computes as a Value cannot be used after it: use a Var.
  /// Emits what `then` emits, executed where p holds.
  template <class Then>
  void if_(const In<pred>& p, Then&& then) {
    if_(p, then, Split{});
  }
  template <class Then>
  void if_(const In<pred>& p, Then&& then, Split split) {
    detail::Transaction transaction(*this);
    const ptx::LabelId end = new_label();
    branch_to(end, p, true, p.site);
    hint_last(split.threshold);
    scoped(then);
    place_label(end, p.site);
    transaction.keep();
  }
  template <class Then, class Else>
  void if_(const In<pred>& p, Then&& then, Else&& otherwise, Split split = {}) {
    detail::Transaction transaction(*this);
    const ptx::LabelId other = new_label();
    const ptx::LabelId end = new_label();
    branch_to(other, p, true, p.site);
    hint_last(split.threshold);
    scoped(then);
    if (!ends_with_terminator()) branch_to(end, p.site);
    place_label(other, p.site);
    scoped(otherwise);
    place_label(end, p.site);
    transaction.keep();
  }
  /// Every instruction of the body under `@p`, without a branch. Guards do not nest.
  template <class Body>
  void guarded(const In<pred>& p, Body&& body) {
    detail::Transaction transaction(*this);
    set_guard(p);
    scoped(body);
    guard_ = {};
    transaction.keep();
  }

  /// `body(i)` for i = begin, begin + step, ... while i < end. The index is u32, s32, u64 or s64 as
  /// the bounds are (u32 for literals only); the step is positive. Right for all bounds, however
  /// near the end of the index type. The loop is guarded and tested at its bottom.
  /// With `Unroll{n}` the body is emitted n times per iteration, and a second loop runs the
  /// remainder. A body without parameter is called as `body()`.
  template <detail::Typed E, class Body>
  void for_(const SameAs<detail::ElementOf<E>>& begin, const E& end,
            const SameAs<detail::ElementOf<E>>& step, Body&& body, Unroll unroll = {},
            Split split = {}, Site site = Site::current()) {
    loop<detail::ElementOf<E>>(begin, detail::same_as<detail::ElementOf<E>>(end, site), step, body,
                               unroll, split, site);
  }
  template <detail::Typed B, detail::AnyLiteral E, class Body>
  void for_(const B& begin, E end, const SameAs<detail::ElementOf<B>>& step, Body&& body,
            Unroll unroll = {}, Split split = {}, Site site = Site::current()) {
    using T = detail::ElementOf<B>;
    loop<T>(detail::same_as<T>(begin, site), SameAs<T>(end, site), step, body, unroll, split, site);
  }
  template <detail::AnyLiteral B, detail::AnyLiteral E, detail::Typed S, class Body>
  void for_(B begin, E end, const S& step, Body&& body, Unroll unroll = {}, Split split = {},
            Site site = Site::current()) {
    using T = detail::ElementOf<S>;
    loop<T>(SameAs<T>(begin, site), SameAs<T>(end, site), detail::same_as<T>(step, site), body,
            unroll, split, site);
  }
  template <detail::AnyLiteral B, detail::AnyLiteral E, detail::AnyLiteral S, class Body>
  void for_(B begin, E end, S step, Body&& body, Unroll unroll = {}, Split split = {},
            Site site = Site::current()) {
    loop<u32>(In<u32>(begin, site), In<u32>(end, site), In<u32>(step, site), body, unroll, split,
              site);
  }
  /// `body` as long as `condition()` holds. The condition is emitted twice, before the loop and at
  /// its bottom.
  template <class Condition, class Body>
  void while_(Condition&& condition, Body&& body, Site site = Site::current()) {
    detail::Transaction transaction(*this);
    const ptx::LabelId top = new_label();
    const ptx::LabelId exit = new_label();
    {
      const Pred p = condition();
      branch_to(exit, In<pred>(p, site), true, site);
    }
    repeat(top, condition, body, site);
    place_label(exit, site);
    transaction.keep();
  }
  /// `body` once, and again as long as `condition()` holds.
  template <class Body, class Condition>
  void do_while(Body&& body, Condition&& condition, Site site = Site::current()) {
    detail::Transaction transaction(*this);
    repeat(new_label(), condition, body, site);
    transaction.keep();
  }

  /// x, of 32 or 64 bits, combined over the 32 lanes of the warp, which all execute it; every lane
  /// gets the result.
  /// Adds in the order of the butterfly: lanes 16 apart first.
  template <class A>
  auto warp_reduce(const A& x, Reduce how = Reduce::Add, Site site = Site::current()) {
    return warp_reduce(
        x, [&](const auto& a, const auto& b) { return combined(how, a, b, site); }, site);
  }
  template <class A, class Combine>
  requires(!detail::kSame<Combine, Reduce>) auto warp_reduce(const A& x, Combine&& combine,
                                                             Site site = Site::current()) {
    using T = detail::Common<A>;
    detail::Transaction transaction(*this);
    Value<T> sum = value_of<T>(x, site);
    for (unsigned distance = 16; distance != 0; distance /= 2) {
      const Value<T> other = from_lanes(
          sum, [&](const auto& v) { return shfl_bfly(v, distance, kAllLanes, site); }, site);
      sum.rebind(combine(sum, other));
    }
    transaction.keep();
    return sum;
  }

  /// x combined over the `threads` threads of the block, which all execute it; every thread gets
  /// the result. `threads` is the size of the block, which has one dimension: a multiple of 32 up
  /// to 1024 ("block-size").
  ///
  /// The tree is fixed: the butterfly of `warp_reduce` in each warp, the warps' results through
  /// shared memory (4 or 8 bytes a warp), then the same butterfly over them in every warp. With
  /// more than one warp there are two barriers, before and after the results are read, so that it
  /// may be repeated, in a loop too; with one warp there is none.
  template <class A>
  auto block_reduce(const A& x, std::uint32_t threads, Reduce how = Reduce::Add,
                    Site site = Site::current()) {
    using T = detail::Common<A>;
    const std::uint32_t warps = check_block_size("block_reduce", threads, site);
    detail::Transaction transaction(*this);
    Value<T> result = warp_reduce(value_of<T>(x, site), how, site);
    if (warps > 1) {
      const SharedArray<T> results = shared<T>(warps, {}, 16, site);
      const Value<u32> thread = tid_x(site);
      const Value<u32> lane = and_(thread, 31u, site);
      const Value<u32> warp = shr(thread, 5u, site);
      if_(setp(Comparison::eq, lane, 0u, false, site), [&] { st(results.base() + warp, result); });
      bar_sync(0u, site);
      // Lanes without a warp repeat the last one, and add nothing.
      const Value<u32> from = min(lane, warps - 1, {}, site);
      Value<T> part = ld(results.base() + from, {}, site);
      if (how == Reduce::Add && warps < 32) {
        part.rebind(selp(part, detail::nothing_added<T>(),
                         setp(Comparison::lt, lane, warps, false, site), site));
      }
      result.rebind(warp_reduce(part, how, site));
      bar_sync(0u, site);
    }
    transaction.keep();
    return result;
  }

  /// Thread t gets x combined over the threads 0 to t of the block: the inclusive scan. Threads,
  /// types and barriers as for `block_reduce`.
  ///
  /// The tree is fixed: in each warp thread t is combined with t - 1, then with t - 2, t - 4, ...
  /// (Hillis and Steele); the warps' totals go through shared memory, and every warp scans them.
  template <class A>
  auto block_scan(const A& x, std::uint32_t threads, Reduce how = Reduce::Add,
                  Site site = Site::current()) {
    using T = detail::Common<A>;
    const std::uint32_t warps = check_block_size("block_scan", threads, site);
    detail::Transaction transaction(*this);
    const Value<u32> thread = tid_x(site);
    const Value<u32> lane = and_(thread, 31u, site);
    Value<T> result = warp_scan(value_of<T>(x, site), lane, how, site);
    if (warps > 1) {
      const SharedArray<T> totals = shared<T>(warps, {}, 16, site);
      const Value<u32> warp = shr(thread, 5u, site);
      if_(setp(Comparison::eq, lane, 31u, false, site), [&] { st(totals.base() + warp, result); });
      bar_sync(0u, site);
      const Value<u32> from = min(lane, warps - 1, {}, site);
      const Value<T> total = ld(totals.base() + from, {}, site);
      const Value<T> scanned = warp_scan(total, lane, how, site);
      const Value<u32> previous = sub(max(warp, 1u, {}, site), 1u, {}, site);
      const Value<T> before = from_lanes(
          scanned, [&](const auto& v) { return shfl_idx(v, previous, kAllLanes, site); }, site);
      const Pred first = setp(Comparison::eq, warp, 0u, false, site);
      result.rebind(selp(result, combined(how, before, result, site), first, site));
      bar_sync(0u, site);
    }
    transaction.keep();
    return result;
  }

  /// Conversion by value as C++ does it: towards integers by truncation (clamped), else to nearest.
  template <class To, class A>
  Value<To> convert(const A& a, Site site = Site::current()) {
    using From = detail::Common<A>;
    constexpr bool kFromFloat = detail::kIsScalarFloat<From>;
    constexpr bool kToFloat = detail::kIsScalarFloat<To>;
    static_assert((kFromFloat || detail::kIsInteger<From>)&&(kToFloat || detail::kIsInteger<To>),
                  "convert is between integers and floats; use bitcast or cvt for other types");
    if constexpr (detail::kSame<From, To>) {
      return mov(a, site);
    } else {
      constexpr bool kWidens = kFromFloat && kToFloat && To::kBits > From::kBits;
      return cvt<To>(a,
                     kFromFloat && !kToFloat ? Rounding::rzi
                     : !kToFloat || kWidens  ? Rounding::none
                                             : Rounding::rn,
                     site);
    }
  }

  /// ctaid.x * ntid.x + tid.x, and so on.
  Value<u32> global_thread_x(Site site = Site::current()) {
    const Value<u32> block = ctaid_x(site);
    const Value<u32> size = ntid_x(site);
    return mad_lo(block, size, tid_x(site), site);
  }
  Value<u32> global_thread_y(Site site = Site::current()) {
    const Value<u32> block = ctaid_y(site);
    const Value<u32> size = ntid_y(site);
    return mad_lo(block, size, tid_y(site), site);
  }
  Value<u32> global_thread_z(Site site = Site::current()) {
    const Value<u32> block = ctaid_z(site);
    const Value<u32> size = ntid_z(site);
    return mad_lo(block, size, tid_z(site), site);
  }

  /// Throws `Error` (Stage::Build) as every method does that finds a mistake: for functions that
  /// build on this class. The kernel cannot be built any more.
  [[noreturn]] void refuse(std::string_view code, std::string message,
                           Site site = Site::current()) {
    fail(code, std::move(message), site);
  }

  /// Ends the kernel: adds `ret` where control can reach the end, verifies everything, and sets
  /// the lowest PTX version that will do. Throws the first mistake if there was one. Once only.
  [[nodiscard]] BuiltKernel build(Site site = Site::current());

 private:
  template <class T, class S>
  Array<T, S> array(std::uint64_t count, std::string_view name, std::uint32_t alignment,
                    Site site) {
    ptx::SymbolId symbol;
    const detail::PointerData base =
        declare_array(S::kSpace, T::kMemoryType, T::kBytes, count, name, alignment, symbol, site);
    return {Ptr<T, S>(base), symbol, count};
  }
  template <class T, class Body>
  void loop(const In<T>& begin, const In<T>& end, const In<T>& step, Body&& body, Unroll unroll,
            Split split, Site site) {
    static_assert(detail::kIsInteger<T> && T::kBits >= 32,
                  "a loop counts with u32, s32, u64 or s64");
    detail::Transaction transaction(*this);
    detail::ForLoop loop = for_begin({.type = T::kType,
                                      .register_class = T::kClass,
                                      .bits = T::kBits,
                                      .is_signed = detail::kIsSigned<T>,
                                      .begin = begin.resolved(),
                                      .end = end.resolved(),
                                      .step = step.resolved(),
                                      .factor = unroll.factor,
                                      .site = site});
    loop.split_hint = split.threshold;
    if constexpr (requires { body(); }) {
      loop.needs_index = false;
      while (for_next(loop)) body();
    } else {
      while (for_next(loop)) body(Value<T>(this, loop.index));
    }
    transaction.keep();
  }
  template <class Body>
  void scoped(Body&& body) {
    const std::uint32_t scope = open_scope();
    body();
    close_scope(scope);
  }
  template <class Condition, class Body>
  void repeat(ptx::LabelId top, Condition&& condition, Body&& body, Site site) {
    place_label(top, site);
    const std::uint32_t scope = open_scope();
    body();
    const Pred again = condition();
    branch_to(top, In<pred>(again, site), false, site);
    close_scope(scope);
  }

  /// The number of warps.
  std::uint32_t check_block_size(std::string_view method, std::uint32_t threads, Site site);
  template <class T>
  Value<T> combined(Reduce how, const Value<T>& a, const Value<T>& b, Site site) {
    switch (how) {
      case Reduce::Min:
        return min(a, b, MinMax{}, site);
      case Reduce::Max:
        return max(a, b, MinMax{}, site);
      case Reduce::Add:
        break;
    }
    return add(a, b, Float{}, site);
  }
  /// `shuffle(x)`; 64 bits in two halves.
  template <class T, class Shuffle>
  Value<T> from_lanes(const Value<T>& x, const Shuffle& shuffle, Site site) {
    if constexpr (T::kBits == 64) {
      const auto halves = unpack<u32>(x, site);
      const Value<u32> low = shuffle(halves[0]);
      const Value<u32> high = shuffle(halves[1]);
      return pack<T>(low, high, site);
    } else {
      return shuffle(x);
    }
  }
  template <class T>
  Value<T> warp_scan(Value<T> sum, const Value<u32>& lane, Reduce how, Site site) {
    for (unsigned distance = 1; distance != 32; distance *= 2) {
      const Value<T> other = from_lanes(
          sum, [&](const auto& v) { return shfl_up(v, distance, kAllLanes, site); }, site);
      const Value<T> longer = combined(how, other, sum, site);
      sum.rebind(selp(longer, sum, setp(Comparison::ge, lane, distance, false, site), site));
    }
    return sum;
  }
  void declare(const Name& name, ptx::Type type, bool pointer, ptx::Space space, ptx::Type element);
  ptx::Register value_param(const Name& name, ptx::Type type, ptx::Type element,
                            detail::RegisterClass register_class);
  detail::PointerData pointer_param(const Name& name, ptx::Space space, ptx::Modifier modifier,
                                    ptx::Type element);
  std::size_t find_param(const Name& name);
  detail::PointerData declare_array(ptx::Space space, ptx::Type type, unsigned bytes,
                                    std::uint64_t count, std::string_view name,
                                    std::uint32_t alignment, ptx::SymbolId& symbol, Site site);
  detail::PointerData dynamic_base(std::uint32_t bytes, std::uint32_t alignment, Site site);
  void check_alignment(std::uint32_t alignment, std::uint32_t bytes, Site site);
  void directive(ptx::DirectiveKind kind, std::array<std::uint32_t, 3> values, std::uint8_t count,
                 Site site);
  void set_guard(const In<pred>& p);
  ptx::Register new_address(bool narrow, Site site);
  detail::ForLoop for_begin(const detail::LoopRange& range);
  void check_loop(const detail::ForLoop& loop);
  void begin_constant_loop(detail::ForLoop& loop, std::uint64_t first, std::uint64_t last);
  void begin_unrolled_loop(detail::ForLoop& loop);
  detail::Argument unrolled_length(detail::ForLoop& loop, const detail::Argument& length);
  bool for_next(detail::ForLoop& loop);
  void close_segment(const detail::ForLoop& loop, std::uint32_t copies);
  void set_index(detail::ForLoop& loop);
  void hint_last(std::int16_t threshold) { function().body.back().split_hint = threshold; }
  void for_segment(detail::ForLoop& loop);
  detail::Argument for_length(const detail::ForLoop& loop, const detail::Argument& from);
  void for_bound(detail::ForLoop& loop, const detail::Argument& from);

  std::vector<Parameter> parameters_;  ///< as long as the function's
};

namespace detail {

template <class T>
KernelBuilder& builder_of(const In<T>& a) {
  return *static_cast<KernelBuilder*>(a.core);
}
template <class T, class U>
KernelBuilder& builder_of(const In<T>& a, const In<U>& b) {
  return *static_cast<KernelBuilder*>(a.core != nullptr ? a.core : b.core);
}
template <class T, class S>
KernelBuilder& builder_of(const Ptr<T, S>& p) {
  return *static_cast<KernelBuilder*>(p.data().core);
}

inline Pred combine(ptx::Op op, const In<pred>& a, const In<pred>& b) {
  KernelBuilder& k = builder_of(a, b);
  return op == ptx::Op::and_  ? k.and_(a, b, a.site)
         : op == ptx::Op::or_ ? k.or_(a, b, a.site)
                              : k.xor_(a, b, a.site);
}
inline Pred operator&(const In<pred>& a, const In<pred>& b) { return combine(ptx::Op::and_, a, b); }
inline Pred operator|(const In<pred>& a, const In<pred>& b) { return combine(ptx::Op::or_, a, b); }
inline Pred operator^(const In<pred>& a, const In<pred>& b) { return combine(ptx::Op::xor_, a, b); }
inline Pred operator&&(const In<pred>& a, const In<pred>& b) {
  return combine(ptx::Op::and_, a, b);
}
inline Pred operator||(const In<pred>& a, const In<pred>& b) { return combine(ptx::Op::or_, a, b); }
inline Pred Operators<pred>::combine_and(const Pred& a, const In<pred>& b, SourceLocation site) {
  return combine(ptx::Op::and_, {a, site}, b);
}
inline Pred Operators<pred>::combine_or(const Pred& a, const In<pred>& b, SourceLocation site) {
  return combine(ptx::Op::or_, {a, site}, b);
}

}  // namespace detail

template <class T>
template <class S>
In<T>::In(Ref<T, S>&& element, SourceLocation at) noexcept
    : Argument{element.core(), {}, at},
      element_(&element),
      load_([](const void* e, SourceLocation l) {
        return static_cast<const Ref<T, S>*>(e)->load(l);
      }) {}

template <class T, class S>
detail::Argument Ref<T, S>::load(SourceLocation at) const {
  return In<T>(detail::builder_of(base_).ld(pointer(), Load{}, at), at);
}
template <class T, class S>
Ref<T, S>::operator Value<T>() && {
  return detail::builder_of(base_).ld(pointer(), Load{}, site());
}
template <class T, class S>
void Ref<T, S>::operator=(const In<T>& value) && {
  const detail::Argument stored = value.resolved();
  detail::builder_of(base_).store_argument(pointer(), stored, site());
}
template <class T, class S>
void Ref<T, S>::operator=(Ref&& other) && {
  const detail::Argument stored = other.load(site());
  detail::builder_of(base_).store_argument(pointer(), stored, site());
}
template <class T, class S>
template <class B, class Operation>
void Ref<T, S>::update(const B& b, const Operation& operation) {
  auto& k = detail::builder_of(base_);
  const Ptr<T, S> p = pointer();
  const Value<T> old = k.ld(p, Load{}, site());
  k.st(p, operation(k, old, b, site()), Store{}, site());
}

}  // namespace ptxgen::inline v0
