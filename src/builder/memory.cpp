// src/builder/memory.cpp - addresses, pointer arithmetic, asynchronous copies
#include "ptxgen/builder/memory.hpp"
#include "support/count.hpp"

#include <limits>
#include <utility>

#include "support/format.hpp"

namespace ptxgen::inline v0::detail {

namespace {

constexpr RegisterClass address_class(bool narrow) {
  return narrow ? RegisterClass::r : RegisterClass::rd;
}
constexpr ptx::Type address_type(bool narrow) { return narrow ? ptx::Type::u32 : ptx::Type::u64; }
constexpr ptx::Modifier address_modifier(bool narrow) {
  return ptx::as_modifier(address_type(narrow));
}

bool fits_immediate(std::int64_t offset) {
  return offset >= std::numeric_limits<std::int32_t>::min() &&
         offset <= std::numeric_limits<std::int32_t>::max();
}

Argument literal_argument(std::int64_t value, SourceLocation site) {
  return {nullptr, ptx::Operand::integer(value), site};
}

// Largest power of two that divides both, where 0 is unknown.
std::uint32_t common_alignment(std::uint32_t alignment, std::uint64_t bytes) {
  const std::uint64_t both = alignment | bytes;
  return alignment == 0 ? 0 : static_cast<std::uint32_t>(both & (~both + 1));
}

}  // namespace

Argument Core::address(const PointerData& pointer, unsigned bytes, bool narrow,
                       SourceLocation site) {
  const ptx::Operand base = use({pointer.core, ptx::Operand::reg(pointer.base), site});
  if (pointer.alignment % bytes == 0 && pointer.alignment != 0 &&
      pointer.offset % static_cast<std::int64_t>(bytes) != 0) {
    fail("misaligned",
         format_text("an access of {} at offset {} of an array aligned to {}: its address must be "
                     "a multiple of {}",
                     count_text(bytes, "byte"), pointer.offset, pointer.alignment, bytes),
         site);
  }
  if (fits_immediate(pointer.offset)) {
    return {this, ptx::Operand::memory(base.as_register(), pointer.offset), site};
  }
  return {this, ptx::Operand::memory(address_value(pointer, narrow, site)), site};
}

ptx::Register Core::address_value(const PointerData& pointer, bool narrow, SourceLocation site) {
  const Argument base{pointer.core, ptx::Operand::reg(pointer.base), site};
  if (pointer.offset == 0) return use(base).as_register();
  return result({ptx::Op::add, {narrow ? ptx::Modifier::type_s32 : ptx::Modifier::type_s64}},
                address_class(narrow), {base, literal_argument(pointer.offset, site)}, site);
}

PointerData advance(const PointerData& pointer, const Index& index, int sign, unsigned bytes,
                    bool narrow) {
  Core& core = *pointer.core;
  core.use({pointer.core, ptx::Operand::reg(pointer.base), index.site});
  PointerData moved = pointer;
  if (index.type == ptx::Type::none) {
    std::int64_t distance = 0;
    if (__builtin_mul_overflow(static_cast<std::int64_t>(index.operand.value),
                               static_cast<std::int64_t>(bytes) * sign, &distance) ||
        __builtin_add_overflow(pointer.offset, distance, &moved.offset) ||
        (narrow && !fits_immediate(moved.offset))) {
      core.fail("bad-operand", "a pointer is moved beyond its address space", index.site);
    }
    return moved;
  }
  const bool wide_index = ptx::bits(index.type) == 64;
  if (narrow && wide_index) {
    core.fail("bad-operand",
              "a 64-bit index into shared or local memory, whose addresses have 32 bits: "
              "convert it to u32 or s32",
              index.site);
  }
  const bool is_signed = ptx::kind(index.type) == ptx::TypeKind::Signed;
  const Argument base{pointer.core, ptx::Operand::reg(pointer.base), index.site};
  const Argument scale = literal_argument(static_cast<std::int64_t>(bytes) * sign, index.site);
  moved.alignment = common_alignment(pointer.alignment, bytes);
  if (bytes == 1 && sign == 1 && wide_index == !narrow) {
    moved.base = core.result({ptx::Op::add, {address_modifier(narrow)}}, address_class(narrow),
                             {base, index}, index.site);
  } else if (wide_index || narrow) {
    moved.base = core.result(
        {ptx::Op::mad,
         {ptx::Modifier::lo, narrow ? ptx::Modifier::type_s32 : ptx::Modifier::type_s64}},
        address_class(narrow), {index, scale, base}, index.site);
  } else if (is_signed || sign > 0) {
    moved.base =
        core.result({ptx::Op::mad_wide, {ptx::Modifier::wide, ptx::as_modifier(index.type)}},
                    address_class(narrow), {index, scale, base}, index.site);
  } else {
    // u32 backwards: the factor of mad.wide.u32 cannot be negative.
    Transaction transaction(core);
    const Argument distance{
        &core,
        ptx::Operand::reg(core.result(
            {ptx::Op::mul_wide, {ptx::Modifier::wide, ptx::as_modifier(index.type)}},
            address_class(narrow), {index, literal_argument(bytes, index.site)}, index.site)),
        index.site};
    moved.base = core.result({ptx::Op::sub, {address_modifier(narrow)}}, address_class(narrow),
                             {base, distance}, index.site);
    transaction.keep();
  }
  return moved;
}

PointerData advance_bytes(const PointerData& pointer, const Index& index, bool narrow) {
  PointerData moved = advance(pointer, index, 1, 1, narrow);
  if (index.type != ptx::Type::none) moved.alignment = 0;
  return moved;
}

PointerData copy_base(Core* core, ptx::Register base, bool narrow, SourceLocation site) {
  return {core,
          move_to_new(core, address_class(narrow), address_type(narrow),
                      {core, ptx::Operand::reg(base), site, true}),
          0, 0};
}

void set_base(Core* core, ptx::Register base, const PointerData& value, bool narrow,
              SourceLocation site) {
  const Argument from{value.core, ptx::Operand::reg(value.base), site};
  if (value.offset == 0) {
    move_into(core, base, address_type(narrow), from);
  } else {
    core->into({ptx::Op::add, {narrow ? ptx::Modifier::type_s32 : ptx::Modifier::type_s64}}, base,
               {from, literal_argument(value.offset, site)}, site);
  }
}

void advance_base(Core* core, ptx::Register base, const Index& index, int sign, unsigned bytes,
                  bool narrow) {
  Transaction transaction(*core);
  const PointerData moved = advance({core, base, 0, 0}, index, sign, bytes, narrow);
  if (moved.base == base) {
    set_base(core, base, moved, narrow, index.site);
  } else {
    // The sum has a register of its own: write it to the variable's register instead.
    core->redirect_result(address_class(narrow), base);
  }
  transaction.keep();
}

ptx::Register Memory::symbol_address(ptx::SymbolId symbol, Site site) {
  return result({ptx::Op::mov, {ptx::Modifier::type_u32}}, RegisterClass::r,
                {{this, ptx::Operand::symbol(symbol), site}}, site);
}

ptx::Register Memory::guarded_load(const Form& form, RegisterClass register_class,
                                   ptx::Type move_type, const Argument& from,
                                   const Argument& condition, const Argument& otherwise,
                                   Site site) {
  const ptx::Operand source = use(from);
  const ptx::Operand p = use(condition);
  Transaction transaction(*this);
  if (guard_.present()) {
    fail("bad-operand", "a predicated load is not allowed in guarded(): guards do not nest", site);
  }
  if (p.kind != ptx::OperandKind::Register) {
    fail("bad-operand", "the condition of a load is a constant: decide it in C++", site);
  }
  const ptx::Register d =
      result({ptx::Op::mov, {ptx::as_modifier(move_type)}}, register_class, {otherwise}, site);
  guard_ = {p.as_register(), p.negated};
  const ptx::Operand operands[] = {ptx::Operand::reg(d), source};
  append(form, operands, site);
  guard_ = {};
  transaction.keep();
  return d;
}

void Memory::copy_async(const PointerData& to, const PointerData& from, unsigned bytes,
                        bool past_l1, Site site) {
  if ((bytes != 4 && bytes != 8 && bytes != 16) || (past_l1 && bytes != 16)) {
    fail("bad-operand",
         format_text("cp_async copies 4, 8 or 16 bytes, past L1 only 16; not {}", bytes), site);
  }
  Transaction transaction(*this);
  const Argument destination = address(to, bytes, true, site);
  const Argument source = address(from, bytes, false, site);
  effect({ptx::Op::cp_async,
          {ptx::Modifier::async, past_l1 ? ptx::Modifier::cg : ptx::Modifier::ca,
           ptx::Modifier::shared, ptx::Modifier::global}},
         {destination, source, literal_argument(bytes, site)}, site);
  transaction.keep();
}

void Memory::cp_async_commit_group(Site site) {
  effect({ptx::Op::cp_async_commit_group, {ptx::Modifier::async, ptx::Modifier::commit_group}}, {},
         site);
}
void Memory::cp_async_wait_group(unsigned pending, Site site) {
  effect({ptx::Op::cp_async_wait_group, {ptx::Modifier::async, ptx::Modifier::wait_group}},
         {literal_argument(pending, site)}, site);
}
void Memory::cp_async_wait_all(Site site) {
  effect({ptx::Op::cp_async_wait_all, {ptx::Modifier::async, ptx::Modifier::wait_all}}, {}, site);
}

PointerData Memory::to_space(const PointerData& p, ptx::Modifier space, bool narrow, Site site) {
  Transaction transaction(*this);
  const Argument address{this, ptx::Operand::reg(address_value(p, false, site)), site};
  // cvta works on 64-bit addresses; the window address is the low half.
  ptx::Register d = result({ptx::Op::cvta_to, {ptx::Modifier::to, space, ptx::Modifier::type_u64}},
                           RegisterClass::rd, {address}, site);
  if (narrow) {
    d = result({ptx::Op::cvt_int, {ptx::Modifier::type_u32, ptx::Modifier::type_u64}},
               RegisterClass::r, {{this, ptx::Operand::reg(d), site}}, site);
  }
  transaction.keep();
  return {this, d, 0, p.alignment != 0 && p.offset == 0 ? p.alignment : 0};
}

PointerData Memory::to_generic(const PointerData& p, ptx::Modifier space, bool narrow, Site site) {
  Transaction transaction(*this);
  Argument address{this, ptx::Operand::reg(address_value(p, narrow, site)), site};
  if (narrow) {
    address.operand = ptx::Operand::reg(
        result({ptx::Op::cvt_int, {ptx::Modifier::type_u64, ptx::Modifier::type_u32}},
               RegisterClass::rd, {address}, site));
  }
  const ptx::Register d =
      result({ptx::Op::cvta, {space, ptx::Modifier::type_u64}}, RegisterClass::rd, {address}, site);
  transaction.keep();
  return {this, d, 0, 0};
}

}  // namespace ptxgen::inline v0::detail
