// src/ptx/semantics/logic.cpp - logic, shifts, moves and permutation
#include <algorithm>

#include "ptx/semantics/scalar.hpp"

namespace ptxgen::inline v0::ptx {
namespace {

using u64 = std::uint64_t;
using u32 = std::uint32_t;

/// The bits that a register of that type has; of a predicate the lowest.
u64 mask_of(Type type) {
  const unsigned width = bits(type);
  return width >= 64 ? ~u64{0} : (u64{1} << width) - 1;
}

void and_bits(const ScalarOp&, const u64* s, u64* d) { d[0] = s[0] & s[1]; }
void or_bits(const ScalarOp&, const u64* s, u64* d) { d[0] = s[0] | s[1]; }
void xor_bits(const ScalarOp&, const u64* s, u64* d) { d[0] = s[0] ^ s[1]; }
void not_bits(const ScalarOp& op, const u64* s, u64* d) { d[0] = ~s[0] & mask_of(op.type); }
void cnot(const ScalarOp&, const u64* s, u64* d) { d[0] = s[0] == 0 ? 1 : 0; }

/// Bit number (a:b:c) of the table, for each bit of a, b and c: the sum of the table's minterms.
u64 table_lookup(u64 a, u64 b, u64 c, u64 table) {
  u64 result = 0;
  for (unsigned row = 0; row < 8; ++row) {
    if ((table >> row & 1) == 0) continue;
    result |= ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
  }
  return static_cast<u32>(result);
}

void lop3(const ScalarOp&, const u64* s, u64* d) { d[0] = table_lookup(s[0], s[1], s[2], s[3]); }

void lop3_bool(const ScalarOp& op, const u64* s, u64* d) {
  d[0] = table_lookup(s[0], s[1], s[2], s[3]);
  const u64 any = d[0] != 0 ? 1 : 0;
  d[1] = op.boolean == Modifier::and_ ? any & s[4] : any | s[4];
}

void shf(const ScalarOp& op, const u64* s, u64* d) {
  const u64 both = static_cast<u64>(static_cast<u32>(s[1])) << 32 | static_cast<u32>(s[0]);
  const u64 count = op.clamp ? std::min<u64>(static_cast<u32>(s[2]), 32) : s[2] & 31;
  d[0] = static_cast<u32>(op.mode == Modifier::l ? both << count >> 32 : both >> count);
}

void shl(const ScalarOp& op, const u64* s, u64* d) {
  const u64 count = static_cast<u32>(s[1]);
  d[0] = count >= bits(op.type) ? 0 : s[0] << count & mask_of(op.type);
}

void shr(const ScalarOp& op, const u64* s, u64* d) {
  const u64 width = bits(op.type);
  const u64 count = static_cast<u32>(s[1]);
  const bool fills = kind(op.type) == TypeKind::Signed && (s[0] >> (width - 1) & 1) != 0;
  const u64 sign = fills ? mask_of(op.type) : 0;
  if (count >= width) {
    d[0] = sign;
  } else {
    d[0] = s[0] >> count | (sign & ~(mask_of(op.type) >> count));
  }
}

/// One word, two of 128 bits, or the elements of a vector.
void mov(const ScalarOp& op, const u64* s, u64* d) {
  std::copy_n(s, op.type == Type::b128 ? 2 : op.source_count, d);
}

/// Parts of kWidth bits put together, as many as fill the type; a b128 fills two words.
template <unsigned kWidth, unsigned kParts>
void pack(const ScalarOp&, const u64* s, u64* d) {
  constexpr unsigned kPerWord = std::min(kParts, 64 / kWidth);
  for (unsigned word = 0; word < kParts / kPerWord; ++word) {
    u64 bits = 0;
    for (unsigned i = 0; i < kPerWord; ++i) {
      const u64 part = s[word * kPerWord + i];
      bits |= (kWidth == 64 ? part : part & ((u64{1} << kWidth % 64) - 1)) << i * kWidth;
    }
    d[word] = bits;
  }
}

template <unsigned kWidth, unsigned kParts>
void unpack(const ScalarOp&, const u64* s, u64* d) {
  constexpr unsigned kPerWord = std::min(kParts, 64 / kWidth);
  for (unsigned i = 0; i < kParts; ++i) {
    const u64 part = s[i / kPerWord] >> i % kPerWord * kWidth;
    d[i] = kWidth == 64 ? part : part & ((u64{1} << kWidth % 64) - 1);
  }
}

/// Which of the eight bytes of b:a goes to byte `i` of the result in a mode with a name.
unsigned picked_byte(Modifier mode, unsigned control, unsigned i) {
  switch (mode) {
    case Modifier::f4e:
      return control + i;
    case Modifier::b4e:
      return (control - i) & 7;
    case Modifier::rc8:
      return control;
    case Modifier::ecl:
      return std::max(control, i);
    case Modifier::ecr:
      return std::min(control, i);
    default:  // rc16
      return (control & 1) * 2 + (i & 1);
  }
}

void prmt(const ScalarOp& op, const u64* s, u64* d) {
  const u64 both = static_cast<u64>(static_cast<u32>(s[1])) << 32 | static_cast<u32>(s[0]);
  u64 result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    u64 byte = 0;
    if (op.mode == Modifier::none) {
      const unsigned selector = static_cast<unsigned>(s[2] >> 4 * i & 15);
      byte = both >> 8 * (selector & 7) & 0xff;
      if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    } else {
      byte = both >> 8 * picked_byte(op.mode, static_cast<unsigned>(s[2] & 3), i) & 0xff;
    }
    result |= byte << 8 * i;
  }
  d[0] = result;
}

}  // namespace

ScalarFunction logic_function(const ScalarOp& op) noexcept {
  switch (op.op) {
    case Op::and_:
      return &and_bits;
    case Op::or_:
      return &or_bits;
    case Op::xor_:
      return &xor_bits;
    case Op::not_:
      return &not_bits;
    case Op::cnot:
      return &cnot;
    case Op::lop3:
      return &lop3;
    case Op::lop3_bool:
      return &lop3_bool;
    case Op::shf:
      return &shf;
    case Op::shl:
      return &shl;
    case Op::shr:
      return &shr;
    case Op::mov:
      return &mov;
    case Op::mov_pack_b16_2:
      return &pack<8, 2>;
    case Op::mov_unpack_b16_2:
      return &unpack<8, 2>;
    case Op::mov_pack_b32_2:
      return &pack<16, 2>;
    case Op::mov_unpack_b32_2:
      return &unpack<16, 2>;
    case Op::mov_pack_b32_4:
      return &pack<8, 4>;
    case Op::mov_unpack_b32_4:
      return &unpack<8, 4>;
    case Op::mov_pack_b64_2:
      return &pack<32, 2>;
    case Op::mov_unpack_b64_2:
      return &unpack<32, 2>;
    case Op::mov_pack_b64_4:
      return &pack<16, 4>;
    case Op::mov_unpack_b64_4:
      return &unpack<16, 4>;
    case Op::mov_pack_b128_2:
      return &pack<64, 2>;
    case Op::mov_unpack_b128_2:
      return &unpack<64, 2>;
    case Op::mov_pack_b128_4:
      return &pack<32, 4>;
    case Op::mov_unpack_b128_4:
      return &unpack<32, 4>;
    case Op::prmt:
      return &prmt;
    default:
      return nullptr;
  }
}

}  // namespace ptxgen::inline v0::ptx
