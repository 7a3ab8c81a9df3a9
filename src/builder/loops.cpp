// src/builder/loops.cpp - the counted loop, which never wraps around
#include <limits>

#include "ptxgen/builder/kernel_builder.hpp"

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
// If end - begin <= step there is one turn and limit = begin, else limit = end - step; neither
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

ptx::Modifier type_word(const ForLoop& loop) { return ptx::as_modifier(loop.type); }
ptx::Modifier unsigned_word(const ForLoop& loop) {
  return loop.bits == 64 ? ptx::Modifier::type_u64 : ptx::Modifier::type_u32;
}
ptx::Modifier bits_word(const ForLoop& loop) {
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

ForLoop KernelBuilder::for_begin(ptx::Type type, detail::RegisterClass register_class,
                                 unsigned bits, bool is_signed, const Argument& begin,
                                 const Argument& end, const Argument& step, unsigned factor,
                                 Site site) {
  check_open(site);
  ForLoop loop;
  loop.type = type;
  loop.register_class = register_class;
  loop.bits = bits;
  loop.is_signed = is_signed;
  loop.factor = factor;
  loop.site = site;
  // The body may write a variable that the bounds were read from.
  loop.begin = stable(begin, register_class, type);
  loop.end = stable(end, register_class, type);
  loop.step = stable(step, register_class, type);
  if (factor == 0 || factor > kMaxCopies) {
    fail("bad-operand", "an unroll factor is 1 to 1024, not " + std::to_string(factor), site);
  }
  if (is_literal(loop.step)) {
    loop.constant_step = literal(loop.step);
    if (loop.step.operand.offset() <= 0 && !(bits == 64 && !is_signed && loop.constant_step != 0)) {
      fail("bad-operand", "the step of a loop is positive: count up and compute what goes down",
           site);
    }
    if (loop.constant_step > largest(loop) / factor) {
      fail("bad-operand", "the step times the unroll factor does not fit the index type", site);
    }
  }
  loop.scope = open_scope();
  loop.counter = new_register(register_class);
  const bool constant_bounds = is_literal(loop.begin) && is_literal(loop.end);
  const std::uint64_t first = ordered(loop, literal(loop.begin));
  const std::uint64_t last = ordered(loop, literal(loop.end));
  if (constant_bounds && first >= last) {
    loop.constant = true;
    return loop;
  }

  if (constant_bounds && loop.constant_step != 0) {
    const std::uint64_t turns = (last - first - 1) / loop.constant_step + 1;
    const std::uint64_t main = turns / factor;
    loop.constant = true;
    loop.next_constant = literal(loop.begin);
    if (main <= 1) {  // straight copies only
      if (turns > kMaxCopies) {
        fail("too-large",
             "a loop of one turn that emits its body " + std::to_string(turns) +
                 " times: choose a smaller unroll factor",
             site);
      }
      loop.segments[loop.segment_count++] = {static_cast<std::uint32_t>(turns), false};
      return loop;
    }
    loop.segments[loop.segment_count++] = {factor, true};
    if (turns % factor != 0) {
      loop.segments[loop.segment_count++] = {static_cast<std::uint32_t>(turns % factor), false};
    }
    const std::uint64_t beyond = main * factor * loop.constant_step;
    loop.bound_is_limit = beyond > ordered(loop, largest(loop)) - first;
    loop.bound = typed_constant(loop, literal(loop.begin) + beyond -
                                          (loop.bound_is_limit ? factor * loop.constant_step : 0));
    return loop;
  }

  loop.exit = new_label();
  // Guard of the whole loop.
  if (!constant_bounds) {
    const bool flip = is_literal(loop.begin);
    const ptx::Register none =
        result({is_signed ? ptx::Op::setp_signed : ptx::Op::setp_unsigned,
                {flip ? ptx::Modifier::le : ptx::Modifier::ge, type_word(loop)}},
               detail::RegisterClass::p,
               {flip ? loop.end : loop.begin, flip ? loop.begin : loop.end}, site);
    branch_to(loop.exit, {this, ptx::Operand::reg(none), site}, false, site);
  }

  if (factor == 1) {
    loop.segments[loop.segment_count++] = {1, true};
    for_bound(loop, loop.begin);
    into({ptx::Op::mov, {type_word(loop)}}, loop.counter, {loop.begin}, site);
    return loop;
  }

  loop.segments[loop.segment_count++] = {factor, true};
  loop.segments[loop.segment_count++] = {1, true};
  loop.remainder = new_label();
  const auto reg = [&](ptx::Register r) { return Argument{this, ptx::Operand::reg(r), site}; };
  const bool from_zero = is_literal(loop.begin) && literal(loop.begin) == 0;
  const Argument length = for_length(loop, loop.begin);
  Argument whole;
  if (loop.constant_step != 0) {
    const std::uint64_t span = factor * loop.constant_step;
    if ((span & (span - 1)) == 0) {
      const std::uint64_t keep = ~(span - 1) & mask(loop);
      const Argument keep_mask{
          nullptr,
          ptx::Operand::integer(loop.bits == 32
                                    ? static_cast<std::int32_t>(static_cast<std::uint32_t>(keep))
                                    : static_cast<std::int64_t>(keep)),
          site};
      whole = reg(
          result({ptx::Op::and_, {bits_word(loop)}}, register_class, {length, keep_mask}, site));
    } else {
      const Argument rest = reg(result({ptx::Op::rem, {unsigned_word(loop)}}, register_class,
                                       {length, unsigned_constant(loop, span)}, site));
      whole =
          reg(result({ptx::Op::sub, {unsigned_word(loop)}}, register_class, {length, rest}, site));
    }
  } else {
    // A step so large that factor * step wraps takes no whole turn.
    loop.span = reg(result({ptx::Op::mul, {ptx::Modifier::lo, unsigned_word(loop)}}, register_class,
                           {loop.step, unsigned_constant(loop, factor)}, site));
    const Argument rest = reg(
        result({ptx::Op::rem, {unsigned_word(loop)}}, register_class, {length, loop.span}, site));
    const Argument turns =
        reg(result({ptx::Op::sub, {unsigned_word(loop)}}, register_class, {length, rest}, site));
    const Argument fits =
        reg(result({ptx::Op::setp_unsigned, {ptx::Modifier::le, unsigned_word(loop)}},
                   detail::RegisterClass::p,
                   {loop.step, unsigned_constant(loop, largest(loop) / factor)}, site));
    whole = reg(result({ptx::Op::selp, {bits_word(loop)}}, register_class,
                       {turns, unsigned_constant(loop, 0), fits}, site));
  }
  loop.bound = from_zero ? whole
                         : reg(result({ptx::Op::add, {type_word(loop)}}, register_class,
                                      {loop.begin, whole}, site));
  into({ptx::Op::mov, {type_word(loop)}}, loop.counter, {loop.begin}, site);
  const ptx::Register no_turn =
      result({ptx::Op::setp_unsigned, {ptx::Modifier::eq, unsigned_word(loop)}},
             detail::RegisterClass::p, {whole, unsigned_constant(loop, 0)}, site);
  branch_to(loop.remainder, reg(no_turn), false, site);
  return loop;
}

// end - from, for from < end.
Argument KernelBuilder::for_length(const ForLoop& loop, const Argument& from) {
  if (is_literal(from) && is_literal(loop.end)) {
    return unsigned_constant(loop, literal(loop.end) - literal(from));
  }
  if (is_literal(from) && literal(from) == 0) return loop.end;
  return {this,
          ptx::Operand::reg(result({ptx::Op::sub, {type_word(loop)}}, loop.register_class,
                                   {loop.end, from}, loop.site)),
          loop.site};
}

// The bound of a segment that is not unrolled and starts at `from` < end.
void KernelBuilder::for_bound(ForLoop& loop, const Argument& from) {
  const auto reg = [&](ptx::Register r) { return Argument{this, ptx::Operand::reg(r), loop.site}; };
  const bool end_leaves_room =
      is_literal(loop.end) && loop.constant_step != 0 &&
      ordered(loop, largest(loop)) - ordered(loop, literal(loop.end)) >= loop.constant_step - 1;
  if (loop.constant_step == 1 || end_leaves_room) {
    loop.bound = loop.end;
    loop.bound_is_limit = false;
    return;
  }
  const bool from_zero = is_literal(from) && literal(from) == 0;
  const Argument length = for_length(loop, from);
  const Argument least = reg(result({ptx::Op::min, {unsigned_word(loop)}}, loop.register_class,
                                    {length, loop.step}, loop.site));
  const Argument distance = reg(result({ptx::Op::sub, {unsigned_word(loop)}}, loop.register_class,
                                       {length, least}, loop.site));
  loop.bound = from_zero ? distance
                         : reg(result({ptx::Op::add, {type_word(loop)}}, loop.register_class,
                                      {from, distance}, loop.site));
  loop.bound_is_limit = true;
}

// Begins the running segment: its first copy of the body comes next.
void KernelBuilder::for_segment(ForLoop& loop) {
  const ForLoop::Segment& segment = loop.segments[loop.segment];
  loop.copy = 0;
  if (!segment.loop) return;
  if (loop.constant) {
    into({ptx::Op::mov, {type_word(loop)}}, loop.counter,
         {typed_constant(loop, loop.next_constant)}, loop.site);
    loop.next_constant =
        literal(loop.bound) + (loop.bound_is_limit ? segment.copies * loop.constant_step : 0);
  } else if (loop.segment == 1) {
    place_label(loop.remainder, loop.site);
    const Argument from{this, ptx::Operand::reg(loop.counter), loop.site};
    const ptx::Register none =
        result({loop.is_signed ? ptx::Op::setp_signed : ptx::Op::setp_unsigned,
                {ptx::Modifier::ge, type_word(loop)}},
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
    if (segment.loop) {
      const Argument counter{this, ptx::Operand::reg(loop.counter), loop.site};
      const detail::Form more_form{loop.is_signed ? ptx::Op::setp_signed : ptx::Op::setp_unsigned,
                                   {ptx::Modifier::lt, type_word(loop)}};
      ptx::Register more{};
      if (loop.bound_is_limit) {
        more = result(more_form, detail::RegisterClass::p, {counter, loop.bound}, loop.site);
      }
      Argument distance = typed_constant(loop, segment.copies * loop.constant_step);
      if (loop.constant_step == 0) distance = segment.copies == 1 ? loop.step : loop.span;
      into({ptx::Op::add, {type_word(loop)}}, loop.counter, {counter, distance}, loop.site);
      if (!loop.bound_is_limit) {
        more = result(more_form, detail::RegisterClass::p, {counter, loop.bound}, loop.site);
      }
      branch_to(loop.top, {this, ptx::Operand::reg(more), loop.site}, false, loop.site);
      hint_last(loop.split_hint);
    }
    ++loop.segment;
    if (loop.segment == loop.segment_count) return for_next(loop);
    for_segment(loop);
    return for_next(loop);
  }
  loop.body_scope = open_scope();
  const std::uint32_t copy = loop.copy;
  if (!loop.wants_index) return true;
  if (!segment.loop) {
    loop.index = result({ptx::Op::mov, {type_word(loop)}}, loop.register_class,
                        {typed_constant(loop, loop.next_constant)}, loop.site);
    loop.next_constant += loop.constant_step;
  } else if (copy == 0) {
    loop.index = loop.counter;
  } else if (loop.constant_step != 0) {
    loop.index = result({ptx::Op::add, {type_word(loop)}}, loop.register_class,
                        {{this, ptx::Operand::reg(loop.counter), loop.site},
                         typed_constant(loop, copy * loop.constant_step)},
                        loop.site);
  } else {
    loop.index = result(
        {ptx::Op::mad, {ptx::Modifier::lo, type_word(loop)}}, loop.register_class,
        {loop.step, typed_constant(loop, copy), {this, ptx::Operand::reg(loop.counter), loop.site}},
        loop.site);
  }
  return true;
}

}  // namespace ptxgen::inline v0
