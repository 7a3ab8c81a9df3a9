// src/emulator/vector/alu.cpp - which rows have a whole-warp handler
#include "emulator/vector/alu.hpp"

#include <algorithm>

#include "emulator/vector/isa.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Modifier;
using ptx::Op;
using ptx::Type;

bool is_64(Type type) { return ptx::bits(type) == 64; }
bool is_signed(Type type) { return ptx::kind(type) == ptx::TypeKind::Signed; }

/// `on32` or `on64` by the width of the type; None for others.
Alu by_width(Type type, Alu on32, Alu on64) {
  switch (ptx::bits(type)) {
    case 32:
      return on32;
    case 64:
      return on64;
    default:
      return Alu::None;
  }
}

bool rounds_to_nearest(const LaneOp& op) {
  return (op.rounding == Modifier::none || op.rounding == Modifier::rn) && !op.ftz && !op.sat &&
         !op.relu;
}

Alu integer(const LaneOp& op) {
  const Type type = op.type;
  switch (op.op) {
    case Op::add:
      return by_width(type, Alu::Add32, Alu::Add64);
    case Op::sub:
      return by_width(type, Alu::Sub32, Alu::Sub64);
    case Op::mul:
      return op.mode == Modifier::lo ? by_width(type, Alu::Mul32, Alu::Mul64) : Alu::None;
    case Op::mad:
      return op.mode == Modifier::lo ? by_width(type, Alu::Mad32, Alu::Mad64) : Alu::None;
    case Op::mul_wide:
      if (ptx::bits(type) != 32) return Alu::None;
      return is_signed(type) ? Alu::MulWideS32 : Alu::MulWideU32;
    case Op::mad_wide:
      if (ptx::bits(type) != 32) return Alu::None;
      return is_signed(type) ? Alu::MadWideS32 : Alu::MadWideU32;
    case Op::neg:
      return by_width(type, Alu::Neg32, Alu::Neg64);
    case Op::min:
      if (ptx::bits(type) != 32) return Alu::None;
      return is_signed(type) ? Alu::MinS32 : Alu::MinU32;
    case Op::max:
      if (ptx::bits(type) != 32) return Alu::None;
      return is_signed(type) ? Alu::MaxS32 : Alu::MaxU32;
    case Op::bfe:
      if (ptx::bits(type) != 32) return Alu::None;
      return is_signed(type) ? Alu::BfeS32 : Alu::BfeU32;
    case Op::dp4a:
      if (is_signed(type)) return is_signed(op.type2) ? Alu::Dp4aSS : Alu::Dp4aSU;
      return is_signed(op.type2) ? Alu::Dp4aUS : Alu::Dp4aUU;
    default:
      return Alu::None;
  }
}

Alu logic(const LaneOp& op) {
  const Type type = op.type;
  switch (op.op) {
    case Op::mov:
      return by_width(type, Alu::Mov32, Alu::Mov64);
    case Op::and_:
      return by_width(type, Alu::And32, Alu::And64);
    case Op::or_:
      return by_width(type, Alu::Or32, Alu::Or64);
    case Op::xor_:
      return by_width(type, Alu::Xor32, Alu::Xor64);
    case Op::not_:
      return by_width(type, Alu::Not32, Alu::Not64);
    case Op::prmt:
      return op.mode == Modifier::none ? Alu::Prmt : Alu::None;
    case Op::shl:
      return by_width(type, Alu::Shl32, Alu::Shl64);
    case Op::shr:
      return is_signed(type) ? by_width(type, Alu::ShrS32, Alu::ShrS64)
                             : by_width(type, Alu::ShrU32, Alu::ShrU64);
    default:
      return Alu::None;
  }
}

Alu floating(const LaneOp& op) {
  switch (op.op) {
    case Op::add_f32:
      return rounds_to_nearest(op) ? Alu::AddF32 : Alu::None;
    case Op::sub_f32:
      return rounds_to_nearest(op) ? Alu::SubF32 : Alu::None;
    case Op::mul_f32:
      return rounds_to_nearest(op) ? Alu::MulF32 : Alu::None;
    case Op::fma_f32:
    case Op::mad_f32:
      return rounds_to_nearest(op) ? Alu::FmaF32 : Alu::None;
    case Op::add_f64:
      return rounds_to_nearest(op) ? Alu::AddF64 : Alu::None;
    case Op::sub_f64:
      return rounds_to_nearest(op) ? Alu::SubF64 : Alu::None;
    case Op::mul_f64:
      return rounds_to_nearest(op) ? Alu::MulF64 : Alu::None;
    case Op::fma_f64:
    case Op::mad_f64:
      return rounds_to_nearest(op) ? Alu::FmaF64 : Alu::None;
    case Op::neg_f32:
      return op.ftz ? Alu::None : Alu::NegF32;
    case Op::abs_f32:
      return op.ftz ? Alu::None : Alu::AbsF32;
    default:
      return Alu::None;
  }
}

/// cvt between integers of 32 and 64 bits, between them and f32, and from f16 to f32.
Alu conversion(const LaneOp& op) {
  if (ptx::info(op.op).mnemonic != "cvt" || op.sat) return Alu::None;
  if (op.op == Op::cvt_f32_f16) return op.ftz ? Alu::None : Alu::F32FromF16;
  const auto integer32 = [](Type t) { return t == Type::u32 || t == Type::s32; };
  const auto integer64 = [](Type t) { return t == Type::u64 || t == Type::s64; };
  if (integer64(op.type) && integer32(op.type2)) {
    return is_signed(op.type2) ? Alu::WidenS32 : Alu::WidenU32;
  }
  if (integer32(op.type) && integer64(op.type2)) return Alu::Narrow64;
  if (op.type == Type::f32 && integer32(op.type2) && op.rounding == Modifier::rn) {
    return is_signed(op.type2) ? Alu::F32FromS32 : Alu::F32FromU32;
  }
  if (op.type == Type::s32 && op.type2 == Type::f32 && !op.ftz) {
    if (op.rounding == Modifier::rni) return Alu::S32FromF32Nearest;
    if (op.rounding == Modifier::rzi) return Alu::S32FromF32Zero;
  }
  return Alu::None;
}

bool comparison(const LaneOp& op, Compare& out, CompareType& type) {
  const bool bits = op.op == Op::setp_bits;
  const bool is_unsigned = op.op == Op::setp_unsigned;
  const bool with_sign = op.op == Op::setp_signed;
  const bool f32 = op.op == Op::setp_f32 && !op.ftz;
  if (!bits && !is_unsigned && !with_sign && !f32) return false;
  if (ptx::bits(op.type) != 32 && ptx::bits(op.type) != 64) return false;
  if (f32) {
    type = CompareType::F32;
  } else if (with_sign) {
    type = is_64(op.type) ? CompareType::S64 : CompareType::S32;
  } else {
    type = is_64(op.type) ? CompareType::U64 : CompareType::U32;
  }
  switch (op.comparison) {
    case Modifier::eq:
      out = Compare::Eq;
      return true;
    case Modifier::ne:
      out = Compare::Ne;
      return true;
    case Modifier::lt:
    case Modifier::lo:
      out = Compare::Lt;
      return true;
    case Modifier::le:
    case Modifier::ls:
      out = Compare::Le;
      return true;
    case Modifier::gt:
    case Modifier::hi:
      out = Compare::Gt;
      return true;
    case Modifier::ge:
    case Modifier::hs:
      out = Compare::Ge;
      return true;
    case Modifier::equ:
      out = Compare::EqU;
      return true;
    case Modifier::neu:
      out = Compare::NeU;
      return true;
    case Modifier::ltu:
      out = Compare::LtU;
      return true;
    case Modifier::leu:
      out = Compare::LeU;
      return true;
    case Modifier::gtu:
      out = Compare::GtU;
      return true;
    case Modifier::geu:
      out = Compare::GeU;
      return true;
    default:
      return false;  // num, nan
  }
}

/// Whether a handler may use the slot: it is a whole register, not a part of one.
bool full_register(const Slot& slot) {
  return slot.present() && slot.lane_bytes != 0 && slot.lane_bytes != 16 && !slot.negated &&
         slot.bits == slot.register_bits && slot.bits == slot.lane_bytes * 8;
}

/// A register of 16 bits, of which a lane has 32 with zeros above.
bool half_register(const Slot& slot) {
  return slot.present() && slot.lane_bytes == 4 && !slot.negated && slot.bits == 16 &&
         slot.register_bits == 16;
}

/// Whether the handler of `which` may use the slot as a source.
bool fits_source(Alu which, const Slot& slot) {
  return which == Alu::F32FromF16 ? half_register(slot) : full_register(slot);
}

}  // namespace

Handler vector_handler(const LaneDetail& detail, Step& step) {
  const LaneOp& op = detail.op;
  const IsaHandlers& isa = handlers(best_isa());
  Compare compare{};
  CompareType type{};
  if (comparison(op, compare, type)) {
    if (!full_register(detail.sources[0]) || !full_register(detail.sources[1])) return nullptr;
    step.source[0] = detail.sources[0].offset;
    step.source[1] = detail.sources[1].offset;
    step.result = detail.results[0].offset;
    step.source[2] = detail.results.size() > 1 ? detail.results[1].offset : kNoIndex;
    return isa.compare(compare, type);
  }
  if (op.op == Op::selp) {
    const Slot& chooser = detail.sources[2];
    if (!full_register(detail.results[0]) || !full_register(detail.sources[0]) ||
        !full_register(detail.sources[1]) || chooser.lane_bytes != 0 ||
        detail.results[0].lane_bytes != detail.sources[0].lane_bytes ||
        detail.results[0].lane_bytes != detail.sources[1].lane_bytes) {
      return nullptr;
    }
    step.result = detail.results[0].offset;
    step.source = {detail.sources[0].offset, detail.sources[1].offset, chooser.offset};
    step.immediate = chooser.negated ? 0xffffffffu : 0;
    return isa.select(detail.results[0].lane_bytes);
  }
  if (op.op == Op::lop3) {
    if (detail.sources.size() != 4 || !full_register(detail.results[0])) return nullptr;
    for (const Slot& slot : detail.sources) {
      if (!full_register(slot)) return nullptr;
    }
    step.result = detail.results[0].offset;
    for (std::size_t i = 0; i < 3; ++i) step.source[i] = detail.sources[i].offset;
    step.immediate = detail.sources[3].offset;
    return isa.lookup();
  }
  Alu which = integer(op);
  if (which == Alu::None) which = logic(op);
  if (which == Alu::None) which = floating(op);
  if (which == Alu::None) which = conversion(op);
  if (op.op == Op::mov && detail.results.size() == 1 && detail.sources.size() == 1 &&
      half_register(detail.results[0]) && half_register(detail.sources[0])) {
    step.result = detail.results[0].offset;
    step.source = {detail.sources[0].offset, detail.sources[0].offset, detail.sources[0].offset};
    return handlers(best_isa()).alu(Alu::Mov32);
  }
  if (which == Alu::None || detail.results.size() != 1 || !full_register(detail.results[0]) ||
      detail.sources.empty() || detail.sources.size() > 3) {
    return nullptr;
  }
  for (const Slot& slot : detail.sources) {
    if (!fits_source(which, slot)) return nullptr;
  }
  step.result = detail.results[0].offset;
  for (std::size_t i = 0; i < 3; ++i) {
    step.source[i] = detail.sources[std::min(i, detail.sources.size() - 1)].offset;
  }
  return isa.alu(which);
}

std::string_view vector_isa() noexcept { return name(best_isa()); }

}  // namespace ptxgen::inline v0::emulator
