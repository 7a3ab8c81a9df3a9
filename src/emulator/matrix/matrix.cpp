// src/emulator/matrix/matrix.cpp - matrix products of a warp, and movmatrix
//
// PTX does not specify the rounding of sums, except for f64. mma of f16, bf16 and tf32 rounds as
// the modelled GPU does (tensor_core.hpp). wmma and m8n8k4 multiply exactly, add the products and c
// in double, k ascending, c last, and round once to the type of d, to nearest even; NaN is the
// canonical one. Integer sums are exact, then truncated or, with
// .satfinite, clamped. f64 is a chain of fused multiply-adds, k ascending, as PTX says. All this
// needs the host's default floating-point state (numerics::HostFloatState).
#include "emulator/matrix/matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

#include "emulator/matrix/half.hpp"
#include "emulator/matrix/tensor_core.hpp"
#include "emulator/matrix/tensor_product.hpp"
#include "emulator/state/support_table.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Modifier;
using ptx::Op;
using ptx::Type;
using u64 = std::uint64_t;
using u32 = std::uint32_t;
using Words = const u64 (*)[32];
using Results = u64 (*)[32];

constexpr unsigned kLanes = 32;
constexpr unsigned kMaxRows = 32;
constexpr unsigned kMaxColumns = 32;
constexpr unsigned kMaxFloatDepth = 32;
constexpr unsigned kMaxIntegerDepth = 64;
constexpr unsigned kMaxBitWords = 256 / 32;

// LaneOp::extra: m, n, k, then the type of d; `type`, `type2`, `type3` those of a, b, c.
u32 packed(const MatrixShape& shape, Type d) {
  return shape.m | shape.n << 6 | shape.k << 12 | static_cast<u32>(d) << 24;
}
MatrixShape shape_of(const LaneOp& op) {
  return {op.extra & 63, op.extra >> 6 & 63, op.extra >> 12 & 1023};
}
Type result_type(const LaneOp& op) { return static_cast<Type>(op.extra >> 24); }

/// In registers: the words of a, where b and c begin.
struct Fragments {
  unsigned per_register;
  unsigned registers_of_a;
  unsigned registers_of_b;
  unsigned first_b;
  unsigned first_c;
};

Fragments fragments_of(const LaneOp& op, const MatrixShape& shape) {
  Fragments f{};
  f.per_register = elements_per_register(ptx::bits(op.type));
  f.registers_of_a = shape.registers_of_a(f.per_register);
  f.registers_of_b = shape.registers_of_b(f.per_register);
  const bool repeated = op.type == Type::f16 && op.op >= Op::wmma_mma_f16_f16;
  f.first_b = repeated ? kHalfFragmentRegisters : f.registers_of_a;
  f.first_c = f.first_b + (repeated ? kHalfFragmentRegisters : f.registers_of_b);
  return f;
}

double from_float(u32 bits) { return static_cast<double>(std::bit_cast<float>(bits)); }

u64 to_float(double value) {
  return std::isnan(value) ? 0x7fffffff : std::bit_cast<u32>(static_cast<float>(value));
}

u64 to_double_bits(double value) {
  return std::isnan(value) ? 0x7fff'ffff'ffff'ffff : std::bit_cast<u64>(value);
}

double element_of(Type type, u32 bits) {
  switch (type) {
    case Type::f16:
      return from_half(bits & 0xffff);
    case Type::bf16:
      return from_float(bits << 16);
    case Type::tf32:
      return from_float(bits & 0xffffe000);
    case Type::e4m3:
    case Type::e5m2:
      return TensorElement::of(type, bits & 0xff).value;
    default:
      return from_float(bits);
  }
}

/// Element `index` of a lane's c of floats: two f16 or one f32 in a register.
double float_of_c(Type type, Words c, unsigned lane, unsigned index) {
  if (type == Type::f16) return from_half(c[index / 2][lane] >> index % 2 * 16 & 0xffff);
  return from_float(static_cast<u32>(c[index][lane]));
}

void set_float_of_d(Type type, Results d, unsigned lane, unsigned index, double value) {
  if (type == Type::f16) {
    u64& word = d[index / 2][lane];
    word = index % 2 == 0 ? to_half(value) : word | to_half(value) << 16;
  } else {
    d[index][lane] = to_float(value);
  }
}

/// sum = a * b, for eight columns at a time: as many as a few vector registers hold.
template <class Number, unsigned kDepth>
void multiply(const MatrixShape& shape, const Number (&a)[kMaxRows][kDepth],
              const Number (&b)[kDepth][kMaxColumns], Number (&sum)[kMaxRows][kMaxColumns]) {
  for (unsigned first = 0; first < shape.n; first += 8) {
    for (unsigned row = 0; row < shape.m; ++row) {
      Number part[8] = {};
      for (unsigned i = 0; i < shape.k; ++i) {
        for (unsigned column = 0; column < 8; ++column) {
          part[column] += a[row][i] * b[i][first + column];
        }
      }
      std::copy_n(part, 8, &sum[row][first]);
    }
  }
}

void mma_float(const LaneOp& op, Words s, Results d) {
  const MatrixShape shape = shape_of(op);
  const Fragments f = fragments_of(op, shape);
  const unsigned width = 32 / f.per_register;
  double a[kMaxRows][kMaxFloatDepth];
  double b[kMaxFloatDepth][kMaxColumns];
  for (unsigned r = 0; r < f.registers_of_a; ++r) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const Place at = shape.place_in_a(f.per_register, lane, r);
      for (unsigned e = 0; e < f.per_register; ++e) {
        a[at.row][at.column + e] = element_of(op.type, static_cast<u32>(s[r][lane] >> e * width));
      }
    }
  }
  for (unsigned r = 0; r < f.registers_of_b; ++r) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const Place at = shape.place_in_b(f.per_register, lane, r);
      for (unsigned e = 0; e < f.per_register; ++e) {
        b[at.row + e][at.column] =
            element_of(op.type2, static_cast<u32>(s[f.first_b + r][lane] >> e * width));
      }
    }
  }
  double sum[kMaxRows][kMaxColumns];
  multiply(shape, a, b, sum);
  for (unsigned i = 0; i < shape.elements_of_c(); ++i) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const Place at = shape.place_in_c(lane, i);
      const double c = float_of_c(op.type3, s + f.first_c, lane, i);
      set_float_of_d(result_type(op), d, lane, i, sum[at.row][at.column] + c);
    }
  }
}

// LaneOp::extra of tensor-core sums: which GPUs add so, above the shape.
constexpr u32 kTensorCore90 = u32{1} << 22;

// Every shape of mma.sync of these types but m8n8k4 has kTensorRows rows.
void mma_tensor(const LaneOp& op, Words s, Results d) {
  const MatrixShape shape = shape_of(op);
  const Fragments f = fragments_of(op, shape);
  const unsigned width = 32 / f.per_register;
  const u32 mask = ~u32{0} >> (32 - width);
  const Type result = result_type(op);
  TensorProduct product;
  product.core = tensor_core((op.extra & kTensorCore90) != 0 ? 90 : 80);
  product.a = op.type;
  product.b = op.type2;
  product.d = result;
  product.depth = shape.k;
  u32 a[kMaxFloatDepth * kTensorRows];
  u32 b[kMaxColumns * kMaxFloatDepth];
  // The places of lane 0; those of the others are beside it.
  for (unsigned r = 0; r < f.registers_of_a; ++r) {
    const Place at = shape.place_in_a(f.per_register, 0, r);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const unsigned column = at.column + lane % 4 * f.per_register;
      u32* const out = a + column * kTensorRows + at.row + lane / 4;
      const auto word = static_cast<u32>(s[r][lane]);
      for (unsigned e = 0; e < f.per_register; ++e) out[e * kTensorRows] = word >> e * width & mask;
    }
  }
  for (unsigned r = 0; r < f.registers_of_b; ++r) {
    const Place at = shape.place_in_b(f.per_register, 0, r);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const unsigned row = at.row + lane % 4 * f.per_register;
      u32* const out = b + (at.column + lane / 4) * shape.k + row;
      const auto word = static_cast<u32>(s[f.first_b + r][lane]);
      for (unsigned e = 0; e < f.per_register; ++e) out[e] = word >> e * width & mask;
    }
  }
  u32 sums[kMaxColumns * kTensorRows];
  const unsigned per_word = result == Type::f16 ? 2 : 1;
  const auto for_each_sum = [&](auto&& work) {
    for (unsigned i = 0; i < shape.elements_of_c(); ++i) {
      const Place at = shape.place_in_c(0, i);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const unsigned column = at.column + lane % 4 * 2;
        work(sums[column * kTensorRows + at.row + lane / 4], i / per_word, lane, i % per_word * 16);
      }
    }
  };
  for_each_sum([&](u32& sum, unsigned word, unsigned lane, unsigned shift) {
    const auto c = static_cast<u32>(s[f.first_c + word][lane]);
    sum = result == Type::f16 ? c >> shift & 0xffff : c;
  });
  std::int32_t storage_a[2 * std::size(a)];
  std::int32_t storage_b[2 * std::size(b)];
  multiply_add(product, decode_a(product, {a, shape.k * kTensorRows}, storage_a),
               decode_b(product, {b, shape.n * shape.k}, storage_b), {sums, shape.n * kTensorRows});
  for_each_sum([&](u32 sum, unsigned word, unsigned lane, unsigned shift) {
    u64& to = d[word][lane];
    to = shift == 0 ? sum : to | u64{sum} << shift;
  });
}

/// m8n8k4 of f16: four products, each of eight lanes (0-3 and 16-19, 4-7 and 20-23, ...).
Place place_in_quads(Type type, unsigned lane, unsigned index) {
  const unsigned lower = lane < 16 ? 0 : 4;
  if (type == Type::f16) return {lane % 4 + lower, index};
  return {(lane & 1) + (index & 2) + lower, (index & 4) + (lane & 2) + (index & 1)};
}

void mma_quads(const LaneOp& op, Words s, Results d) {
  const bool column_a = (op.extra >> 22 & 1) != 0;
  const bool column_b = (op.extra >> 23 & 1) != 0;
  double a[4][8][4];
  double b[4][4][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned quad = lane / 4 % 4;
    const unsigned lower = lane < 16 ? 0 : 4;
    for (unsigned i = 0; i < 4; ++i) {
      const double of_a = from_half(s[i / 2][lane] >> i % 2 * 16 & 0xffff);
      const double of_b = from_half(s[2 + i / 2][lane] >> i % 2 * 16 & 0xffff);
      if (column_a) {
        a[quad][i + lower][lane % 4] = of_a;
      } else {
        a[quad][lane % 4 + lower][i] = of_a;
      }
      if (column_b) {
        b[quad][i][lane % 4 + lower] = of_b;
      } else {
        b[quad][lane % 4][i + lower] = of_b;
      }
    }
  }
  double c[4][8][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < 8; ++i) {
      const Place at = place_in_quads(op.type3, lane, i);
      c[lane / 4 % 4][at.row][at.column] = float_of_c(op.type3, s + 4, lane, i);
    }
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned quad = lane / 4 % 4;
    for (unsigned i = 0; i < 8; ++i) {
      const Place at = place_in_quads(result_type(op), lane, i);
      double sum = 0;
      for (unsigned j = 0; j < 4; ++j) sum += a[quad][at.row][j] * b[quad][j][at.column];
      set_float_of_d(result_type(op), d, lane, i, sum + c[quad][at.row][at.column]);
    }
  }
}

void mma_double(const LaneOp& op, Words s, Results d) {
  const MatrixShape shape = shape_of(op);
  const Fragments f = fragments_of(op, shape);
  u64 a[kMaxRows][kMaxFloatDepth];
  u64 b[kMaxFloatDepth][kMaxColumns];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned r = 0; r < f.registers_of_a; ++r) {
      const Place at = shape.place_in_a(1, lane, r);
      a[at.row][at.column] = s[r][lane];
    }
    for (unsigned r = 0; r < f.registers_of_b; ++r) {
      const Place at = shape.place_in_b(1, lane, r);
      b[at.row][at.column] = s[f.first_b + r][lane];
    }
  }
  // The lane's fma has the other roundings.
  LaneOp lane_op;
  lane_op.op = Op::fma_f64;
  lane_op.type = Type::f64;
  lane_op.rounding = op.rounding;
  const bool nearest = op.rounding == Modifier::none || op.rounding == Modifier::rn;
  const LaneFunction rounded = nearest ? nullptr : float_function(lane_op);
  for (unsigned i = 0; i < shape.elements_of_c(); ++i) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const Place at = shape.place_in_c(lane, i);
      u64 sum = s[f.first_c + i][lane];
      for (unsigned j = 0; j < shape.k; ++j) {
        const u64 sources[3] = {a[at.row][j], b[j][at.column], sum};
        if (rounded != nullptr) {
          rounded(lane_op, sources, &sum);
        } else {
          sum = to_double_bits(std::fma(std::bit_cast<double>(sources[0]),
                                        std::bit_cast<double>(sources[1]),
                                        std::bit_cast<double>(sources[2])));
        }
      }
      d[i][lane] = sum;
    }
  }
}

std::int32_t integer_of(Type type, u32 bits) {
  switch (type) {
    case Type::u8:
      return static_cast<std::uint8_t>(bits);
    case Type::s8:
      return static_cast<std::int8_t>(bits);
    case Type::u4:
      return static_cast<std::int32_t>(bits & 15);
    default:  // s4
      return static_cast<std::int32_t>((bits & 15) ^ 8) - 8;
  }
}

u64 result_of(const LaneOp& op, std::int64_t sum) {
  if (op.satfinite) {
    sum = std::clamp<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min(),
                                   std::numeric_limits<std::int32_t>::max());
  }
  return static_cast<u32>(sum);
}

void mma_integer(const LaneOp& op, Words s, Results d) {
  const MatrixShape shape = shape_of(op);
  const Fragments f = fragments_of(op, shape);
  const unsigned width = 32 / f.per_register;
  std::int32_t a[kMaxRows][kMaxIntegerDepth];
  std::int32_t b[kMaxIntegerDepth][kMaxColumns];
  for (unsigned r = 0; r < f.registers_of_a; ++r) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const Place at = shape.place_in_a(f.per_register, lane, r);
      for (unsigned e = 0; e < f.per_register; ++e) {
        a[at.row][at.column + e] = integer_of(op.type, static_cast<u32>(s[r][lane] >> e * width));
      }
    }
  }
  for (unsigned r = 0; r < f.registers_of_b; ++r) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const Place at = shape.place_in_b(f.per_register, lane, r);
      for (unsigned e = 0; e < f.per_register; ++e) {
        b[at.row + e][at.column] =
            integer_of(op.type2, static_cast<u32>(s[f.first_b + r][lane] >> e * width));
      }
    }
  }
  // 64 products of two bytes are far from the ends of 32 bits.
  std::int32_t sum[kMaxRows][kMaxColumns];
  multiply(shape, a, b, sum);
  for (unsigned i = 0; i < shape.elements_of_c(); ++i) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const Place at = shape.place_in_c(lane, i);
      const auto c = static_cast<std::int32_t>(s[f.first_c + i][lane]);
      d[i][lane] = result_of(op, std::int64_t{sum[at.row][at.column]} + c);
    }
  }
}

void mma_bits(const LaneOp& op, Words s, Results d) {
  const MatrixShape shape = shape_of(op);
  const Fragments f = fragments_of(op, shape);
  u32 a[kMaxRows][kMaxBitWords];
  u32 b[kMaxColumns][kMaxBitWords];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned r = 0; r < f.registers_of_a; ++r) {
      const Place at = shape.place_in_a(32, lane, r);
      a[at.row][at.column / 32] = static_cast<u32>(s[r][lane]);
    }
    for (unsigned r = 0; r < f.registers_of_b; ++r) {
      const Place at = shape.place_in_b(32, lane, r);
      b[at.column][at.row / 32] = static_cast<u32>(s[f.first_b + r][lane]);
    }
  }
  const bool both = op.boolean == Modifier::and_;
  for (unsigned i = 0; i < shape.elements_of_c(); ++i) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const Place at = shape.place_in_c(lane, i);
      std::int64_t sum = static_cast<std::int32_t>(s[f.first_c + i][lane]);
      for (unsigned word = 0; word < shape.k / 32; ++word) {
        const u32 left = a[at.row][word];
        const u32 right = b[at.column][word];
        sum += std::popcount(both ? left & right : left ^ right);
      }
      d[i][lane] = result_of(op, sum);
    }
  }
}

void movmatrix(const LaneOp&, Words s, Results d) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    u64 word = 0;
    for (unsigned half = 0; half < 2; ++half) {
      // Row lane / 4 of the result is that column of the source.
      const unsigned row = lane % 4 * 2 + half;
      const unsigned column = lane / 4;
      word |= (s[0][row * 4 + column / 2] >> column % 2 * 16 & 0xffff) << half * 16;
    }
    d[0][lane] = word;
  }
}

}  // namespace

MatrixShape matrix_shape(const ptx::Instruction& instruction) {
  std::string_view text = ptx::name(instruction.get(ptx::Field::MatrixShape));
  MatrixShape shape;
  for (unsigned* const size : {&shape.m, &shape.n, &shape.k}) {
    if (text.empty()) break;
    text.remove_prefix(1);  // m, n, k
    *size = take_number<unsigned>(text).value_or(0);
  }
  return shape;
}

MatrixFunction matrix_function(const ptx::Instruction& instruction, LaneOp& op, std::uint16_t sm) {
  if (instruction.kind != ptx::StatementKind::Instruction ||
      execution_of(instruction.op) != Execution::Matrix) {
    return nullptr;
  }
  op = ptx::scalar_op(instruction);
  if (instruction.op == Op::movmatrix) return &movmatrix;

  // Types as written: d a b c, or d c where a and b are f16.
  Type types[4] = {};
  unsigned count = 0;
  for (const Modifier word : instruction.modifiers) {
    if (const Type type = ptx::as_type(word); type != Type::none && count < 4)
      types[count++] = type;
  }
  const Type d = types[0];
  op.type = count == 2 ? Type::f16 : types[1];
  op.type2 = count == 2 ? Type::f16 : types[2];
  op.type3 = types[count - 1];
  op.extra = packed(matrix_shape(instruction), d);
  const bool known = sm >= 75 && instruction.op < Op::wmma_mma_f16_f16;
  const auto float_product = [&]() -> MatrixFunction {
    if (!known) return &mma_float;
    if (sm >= 90) op.extra |= kTensorCore90;
    return &mma_tensor;
  };
  switch (op.type) {
    case Type::f16:
      if (instruction.get(ptx::Field::MatrixShape) != Modifier::m8n8k4) return float_product();
      if (instruction.get(ptx::Field::LayoutA) == Modifier::col) op.extra |= u32{1} << 22;
      if (instruction.get(ptx::Field::LayoutB) == Modifier::col) op.extra |= u32{1} << 23;
      return &mma_quads;
    case Type::bf16:
    case Type::tf32:
    case Type::e4m3:
    case Type::e5m2:
      return float_product();
    case Type::f64:
      return &mma_double;
    case Type::b1:
      return &mma_bits;
    default:
      return &mma_integer;
  }
}

}  // namespace ptxgen::inline v0::emulator
