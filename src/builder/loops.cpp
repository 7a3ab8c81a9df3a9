// src/builder/loops.cpp - counted loops without wrap-around
#include <initializer_list>
#include <limits>

#include "ptxgen/builder/kernel_builder.hpp"
#include "support/format.hpp"

// A counted loop is at most two segments. One that is not unrolled has one:
//
//     if (begin < end) { i = begin; do { body(i); i += step; } while (i < end); }
//
// With a step above 1 the sum may pass the end of the type, so the test is made before the step is
// added, against `limit`: the lowest index after which no other follows.
//
//     limit = begin + ((end - begin) - min(end - begin, step))
//     do { body(i); more = i < limit; i += step; } while (more);
//
// If end - begin <= step there is one iteration and limit = begin, else limit = end - step; neither
// wraps. An unrolled loop has a main segment over the largest multiple of factor * step, whose
// bound is hit exactly, and a second one that is not unrolled for the rest. Differences are
// unsigned, where end - begin is exact for signed types too.

namespace ptxgen::inline v0 {

using detail::Argument;
using detail::ForLoop;

namespace {

constexpr std::uint64_t kMaxCopies = 1024;

bool is_literal(const Argument& a) { return a.core == nullptr; }
std::uint64_t literal(const Argument& a) { return a.operand.value; }

std::uint64_t mask(const ForLoop& loop) {
  return loop.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << loop.bits) - 1;
}
std::uint64_t largest(const ForLoop& loop) { return loop.is_signed ? mask(loop) >> 1 : mask(loop); }
// Order of the type as order of unsigned numbers.
std::uint64_t ordered(const ForLoop& loop, std::uint64_t value) {
  return loop.is_signed ? value ^ (std::uint64_t{1} << 63) : value;
}

ptx::Modifier type_modifier(const ForLoop& loop) { return ptx::as_modifier(loop.type); }
ptx::Modifier unsigned_modifier(const ForLoop& loop) {
  return loop.bits == 64 ? ptx::Modifier::type_u64 : ptx::Modifier::type_u32;
}
ptx::Modifier bits_modifier(const ForLoop& loop) {
  return loop.bits == 64 ? ptx::Modifier::type_b64 : ptx::Modifier::type_b32;
}
// A constant of the loop's type as the type prints it.
Argument typed_constant(const ForLoop& loop, std::uint64_t value) {
  value &= mask(loop);
  ptx::Operand operand;
  if (loop.is_signed) {
    operand = ptx::Operand::integer(
        loop.bits == 32 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(value))
                        : static_cast<std::int64_t>(value));
  } else {
    operand = ptx::Operand::unsigned_integer(value);
  }
  return {nullptr, operand, loop.site};
}
Argument unsigned_constant(const ForLoop& loop, std::uint64_t value) {
  return {nullptr, ptx::Operand::unsigned_integer(value & mask(loop)), loop.site};
}

}  // namespace

ForLoop KernelBuilder::for_begin(const detail::LoopRange& range) {
  check_open(range.site);
  ForLoop loop(range);
  // The body may write a variable that the bounds were read from.
  loop.begin = stable(range.begin, range.register_class, range.type);
  loop.end = stable(range.end, range.register_class, range.type);
  loop.step = stable(range.step, range.register_class, range.type);
  if (is_literal(loop.step)) loop.constant_step = literal(loop.step);
  check_loop(loop);
  loop.scope = open_scope();
  loop.counter = new_register(loop.register_class);
  const bool constant_bounds = is_literal(loop.begin) && is_literal(loop.end);
  const std::uint64_t first = ordered(loop, literal(loop.begin));
  const std::uint64_t last = ordered(loop, literal(loop.end));
  loop.constant = constant_bounds && (first >= last || loop.constant_step != 0);
  if (loop.constant) {
    if (first < last) begin_constant_loop(loop, first, last);
    return loop;
  }

  loop.exit = new_label();
  // Guard of the entire loop.
  if (!constant_bounds) {
    const bool flip = is_literal(loop.begin);
    const ptx::Register none =
        result({loop.is_signed ? ptx::Op::setp_signed : ptx::Op::setp_unsigned,
                {flip ? ptx::Modifier::le : ptx::Modifier::ge, type_modifier(loop)}},
               detail::RegisterClass::p,
               {flip ? loop.end : loop.begin, flip ? loop.begin : loop.end}, loop.site);
    branch_to(loop.exit, {this, ptx::Operand::reg(none), loop.site}, false, loop.site);
  }
  if (loop.factor > 1) {
    begin_unrolled_loop(loop);
    return loop;
  }
  loop.segments[loop.segment_count++] = {1, true};
  for_bound(loop, loop.begin);
  into({ptx::Op::mov, {type_modifier(loop)}}, loop.counter, {loop.begin}, loop.site);
  return loop;
}

void KernelBuilder::check_loop(const ForLoop& loop) {
  if (loop.factor == 0 || loop.factor > kMaxCopies) {
    fail("bad-operand", format_text("an unroll factor is 1 to 1024, not {}", loop.factor),
         loop.site);
  }
  if (!is_literal(loop.step)) return;
  const bool above_signed = loop.bits == 64 && !loop.is_signed && loop.constant_step != 0;
  if (loop.step.operand.offset() <= 0 && !above_signed) {
    fail("bad-operand", "the step of a loop is positive: count up and compute the falling value",
         loop.site);
  }
  if (loop.constant_step > largest(loop) / loop.factor) {
    fail("bad-operand", "the step times the unroll factor does not fit the index type", loop.site);
  }
}

// Bounds and step are constants, and first < last.
void KernelBuilder::begin_constant_loop(ForLoop& loop, std::uint64_t first, std::uint64_t last) {
  const std::uint64_t iterations = (last - first - 1) / loop.constant_step + 1;
  const std::uint64_t main = iterations / loop.factor;
  loop.next_constant = literal(loop.begin);
  if (main <= 1) {  // straight copies only
    if (iterations > kMaxCopies) {
      fail("too-large",
           format_text("a loop of one iteration that emits its body {} times: choose a smaller "
                       "unroll factor",
                       iterations),
           loop.site);
    }
    loop.segments[loop.segment_count++] = {static_cast<std::uint32_t>(iterations), false};
    return;
  }
  loop.segments[loop.segment_count++] = {static_cast<std::uint32_t>(loop.factor), true};
  if (iterations % loop.factor != 0) {
    const auto copies = static_cast<std::uint32_t>(iterations % loop.factor);
    loop.segments[loop.segment_count++] = {copies, false};
  }
  const std::uint64_t beyond = main * loop.factor * loop.constant_step;
  loop.bound_is_limit = beyond > ordered(loop, largest(loop)) - first;
  loop.bound =
      typed_constant(loop, literal(loop.begin) + beyond -
                               (loop.bound_is_limit ? loop.factor * loop.constant_step : 0));
}

// Emits the bound of the main segment, and a branch around it if it has no iteration.
void KernelBuilder::begin_unrolled_loop(ForLoop& loop) {
  loop.segments[loop.segment_count++] = {static_cast<std::uint32_t>(loop.factor), true};
  loop.segments[loop.segment_count++] = {1, true};
  loop.remainder = new_label();
  const bool from_zero = is_literal(loop.begin) && literal(loop.begin) == 0;
  const Argument length = unrolled_length(loop, for_length(loop, loop.begin));
  loop.bound = length;
  if (!from_zero) {
    const ptx::Register sum = result({ptx::Op::add, {type_modifier(loop)}}, loop.register_class,
                                     {loop.begin, length}, loop.site);
    loop.bound = {this, ptx::Operand::reg(sum), loop.site};
  }
  into({ptx::Op::mov, {type_modifier(loop)}}, loop.counter, {loop.begin}, loop.site);
  const ptx::Register no_iteration =
      result({ptx::Op::setp_unsigned, {ptx::Modifier::eq, unsigned_modifier(loop)}},
             detail::RegisterClass::p, {length, unsigned_constant(loop, 0)}, loop.site);
  branch_to(loop.remainder, {this, ptx::Operand::reg(no_iteration), loop.site}, false, loop.site);
}

// Emits the largest multiple of factor * step that is not above `length`.
Argument KernelBuilder::unrolled_length(ForLoop& loop, const Argument& length) {
  const auto emit = [&](const detail::Form& form, std::initializer_list<Argument> operands) {
    return Argument{this, ptx::Operand::reg(result(form, loop.register_class, operands, loop.site)),
                    loop.site};
  };
  const ptx::Modifier type = unsigned_modifier(loop);
  if (loop.constant_step != 0) {
    const std::uint64_t span = loop.factor * loop.constant_step;
    if ((span & (span - 1)) == 0) {
      const std::uint64_t keep = ~(span - 1) & mask(loop);
      const auto bits = loop.bits == 32
                            ? static_cast<std::int32_t>(static_cast<std::uint32_t>(keep))
                            : static_cast<std::int64_t>(keep);
      const Argument keep_mask{nullptr, ptx::Operand::integer(bits), loop.site};
      return emit({ptx::Op::and_, {bits_modifier(loop)}}, {length, keep_mask});
    }
    const Argument rest = emit({ptx::Op::rem, {type}}, {length, unsigned_constant(loop, span)});
    return emit({ptx::Op::sub, {type}}, {length, rest});
  }
  // If factor * step wraps around, the main segment has no iteration.
  loop.span = emit({ptx::Op::mul, {ptx::Modifier::lo, type}},
                   {loop.step, unsigned_constant(loop, loop.factor)});
  const Argument rest = emit({ptx::Op::rem, {type}}, {length, loop.span});
  const Argument multiple = emit({ptx::Op::sub, {type}}, {length, rest});
  const ptx::Register fits =
      result({ptx::Op::setp_unsigned, {ptx::Modifier::le, type}}, detail::RegisterClass::p,
             {loop.step, unsigned_constant(loop, largest(loop) / loop.factor)}, loop.site);
  return emit({ptx::Op::selp, {bits_modifier(loop)}},
              {multiple, unsigned_constant(loop, 0), {this, ptx::Operand::reg(fits), loop.site}});
}

// end - from, for from < end.
Argument KernelBuilder::for_length(const ForLoop& loop, const Argument& from) {
  if (is_literal(from) && is_literal(loop.end)) {
    return unsigned_constant(loop, literal(loop.end) - literal(from));
  }
  if (is_literal(from) && literal(from) == 0) return loop.end;
  return {this,
          ptx::Operand::reg(result({ptx::Op::sub, {type_modifier(loop)}}, loop.register_class,
                                   {loop.end, from}, loop.site)),
          loop.site};
}

// The bound of a segment that is not unrolled and starts at `from` < end.
void KernelBuilder::for_bound(ForLoop& loop, const Argument& from) {
  const auto reg = [&](ptx::Register r) { return Argument{this, ptx::Operand::reg(r), loop.site}; };
  const bool end_fits =
      is_literal(loop.end) && loop.constant_step != 0 &&
      ordered(loop, largest(loop)) - ordered(loop, literal(loop.end)) >= loop.constant_step - 1;
  if (loop.constant_step == 1 || end_fits) {
    loop.bound = loop.end;
    loop.bound_is_limit = false;
    return;
  }
  const bool from_zero = is_literal(from) && literal(from) == 0;
  const Argument length = for_length(loop, from);
  const Argument shorter = reg(result({ptx::Op::min, {unsigned_modifier(loop)}},
                                      loop.register_class, {length, loop.step}, loop.site));
  const Argument distance = reg(result({ptx::Op::sub, {unsigned_modifier(loop)}},
                                       loop.register_class, {length, shorter}, loop.site));
  loop.bound = from_zero ? distance
                         : reg(result({ptx::Op::add, {type_modifier(loop)}}, loop.register_class,
                                      {from, distance}, loop.site));
  loop.bound_is_limit = true;
}

// Begins the current segment; the first copy of the body follows.
void KernelBuilder::for_segment(ForLoop& loop) {
  const ForLoop::Segment& segment = loop.segments[loop.segment];
  loop.copy = 0;
  if (!segment.loop) return;
  if (loop.constant) {
    into({ptx::Op::mov, {type_modifier(loop)}}, loop.counter,
         {typed_constant(loop, loop.next_constant)}, loop.site);
    loop.next_constant =
        literal(loop.bound) + (loop.bound_is_limit ? segment.copies * loop.constant_step : 0);
  } else if (loop.segment == 1) {
    place_label(loop.remainder, loop.site);
    const Argument from{this, ptx::Operand::reg(loop.counter), loop.site};
    const ptx::Register none =
        result({loop.is_signed ? ptx::Op::setp_signed : ptx::Op::setp_unsigned,
                {ptx::Modifier::ge, type_modifier(loop)}},
               detail::RegisterClass::p, {from, loop.end}, loop.site);
    branch_to(loop.exit, {this, ptx::Operand::reg(none), loop.site}, false, loop.site);
    for_bound(loop, from);
  }
  loop.top = new_label();
  place_label(loop.top, loop.site);
}

bool KernelBuilder::for_next(ForLoop& loop) {
  if (loop.body_scope != 0) {
    // A copy of the body has just been emitted.
    close_scope(loop.body_scope);
    loop.body_scope = 0;
    ++loop.copy;
  } else if (!loop.started && loop.segment_count != 0) {
    loop.started = true;
    for_segment(loop);
  }
  if (loop.segment == loop.segment_count) {
    if (!loop.constant) place_label(loop.exit, loop.site);
    close_scope(loop.scope);
    return false;
  }
  const ForLoop::Segment segment = loop.segments[loop.segment];
  if (loop.copy == segment.copies) {
    if (segment.loop) close_segment(loop, segment.copies);
    ++loop.segment;
    if (loop.segment != loop.segment_count) for_segment(loop);
    return for_next(loop);
  }
  loop.body_scope = open_scope();
  if (loop.needs_index) set_index(loop);
  return true;
}

// Emits the step and the branch back to the first of the segment's copies.
void KernelBuilder::close_segment(const ForLoop& loop, std::uint32_t copies) {
  const Argument counter{this, ptx::Operand::reg(loop.counter), loop.site};
  const detail::Form more_form{loop.is_signed ? ptx::Op::setp_signed : ptx::Op::setp_unsigned,
                               {ptx::Modifier::lt, type_modifier(loop)}};
  ptx::Register more{};
  if (loop.bound_is_limit) {
    more = result(more_form, detail::RegisterClass::p, {counter, loop.bound}, loop.site);
  }
  Argument distance = typed_constant(loop, copies * loop.constant_step);
  if (loop.constant_step == 0) distance = copies == 1 ? loop.step : loop.span;
  into({ptx::Op::add, {type_modifier(loop)}}, loop.counter, {counter, distance}, loop.site);
  if (!loop.bound_is_limit) {
    more = result(more_form, detail::RegisterClass::p, {counter, loop.bound}, loop.site);
  }
  branch_to(loop.top, {this, ptx::Operand::reg(more), loop.site}, false, loop.site);
  hint_last(loop.split_hint);
}

// The index of the next copy of the body.
void KernelBuilder::set_index(ForLoop& loop) {
  const Argument counter{this, ptx::Operand::reg(loop.counter), loop.site};
  if (!loop.segments[loop.segment].loop) {
    loop.index = result({ptx::Op::mov, {type_modifier(loop)}}, loop.register_class,
                        {typed_constant(loop, loop.next_constant)}, loop.site);
    loop.next_constant += loop.constant_step;
  } else if (loop.copy == 0) {
    loop.index = loop.counter;
  } else if (loop.constant_step != 0) {
    loop.index = result({ptx::Op::add, {type_modifier(loop)}}, loop.register_class,
                        {counter, typed_constant(loop, loop.copy * loop.constant_step)}, loop.site);
  } else {
    loop.index =
        result({ptx::Op::mad, {ptx::Modifier::lo, type_modifier(loop)}}, loop.register_class,
               {loop.step, typed_constant(loop, loop.copy), counter}, loop.site);
  }
}

}  // namespace ptxgen::inline v0
