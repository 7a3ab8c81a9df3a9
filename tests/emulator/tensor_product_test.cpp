// tests/emulator/tensor_product_test.cpp - products of tensor cores against the sums one by one
//
// `multiply_add` in every instruction set that this processor offers: the same bits as `tensor_sum`
// for each element, for random, special and cancelling values of all types.
#include "emulator/matrix/tensor_product.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <vector>

#include "ptx/dice.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using emulator::kTensorRows;
using emulator::TensorElement;
using emulator::TensorProduct;
using ptx::Type;

namespace {

using u32 = std::uint32_t;
using s32 = std::int32_t;

// How the elements of a case are drawn.
enum class Draw { Bits, Near, Finite, Subnormal, Cancelling, Large };
constexpr Draw kDraws[] = {Draw::Bits,      Draw::Near,       Draw::Finite,
                           Draw::Subnormal, Draw::Cancelling, Draw::Large};

struct Layout {
  unsigned bits;      // of the type
  unsigned fraction;  // bits of it that are stored
  u32 special;        // the biased exponent of infinities and NaN
};

Layout layout_of(Type type) {
  switch (type) {
    case Type::f16:
      return {16, 10, 31};
    case Type::bf16:
      return {16, 7, 255};
    case Type::e5m2:
      return {8, 2, 31};
    case Type::e4m3:  // its largest exponent has numbers too
      return {8, 3, 15};
    default:
      return {32, 23, 255};
  }
}

u32 element(test::Dice& dice, Type type, Draw draw) {
  const Layout at = layout_of(type);
  const auto word = static_cast<u32>(dice.bits()) & ~u32{0} >> (32 - at.bits);
  const u32 kept = word & ~(at.special << at.fraction);
  const u32 bias = at.special / 2;
  const auto with = [&](u32 exponent) { return kept | exponent << at.fraction; };
  switch (draw) {
    case Draw::Bits:
      return word;
    case Draw::Near:
      return with(bias - 2 + static_cast<u32>(dice.bits() % 4));
    case Draw::Finite:
      if (dice.bits() % 8 == 0) return word & u32{1} << (at.bits - 1);  // a zero of either sign
      return with(static_cast<u32>(dice.bits() % at.special));
    case Draw::Subnormal:
      return with(static_cast<u32>(dice.bits() % 2));
    case Draw::Cancelling:  // 1, -1, and now and then a small number
      if (dice.bits() % 8 == 0) return with(static_cast<u32>(1 + dice.bits() % bias));
      return bias << at.fraction | (word & u32{1} << (at.bits - 1));
    case Draw::Large:
      return with(at.special - 1);
  }
  return word;
}

std::vector<u32> elements(test::Dice& dice, Type type, Draw draw, std::size_t count) {
  std::vector<u32> all(count);
  for (u32& one : all) one = element(dice, type, draw);
  return all;
}

std::vector<u32> one_by_one(const TensorProduct& product, const std::vector<u32>& a,
                            const std::vector<u32>& b, std::vector<u32> d) {
  std::vector<TensorElement> left(product.depth), right(product.depth);
  for (std::size_t at = 0; at < d.size(); ++at) {
    for (unsigned i = 0; i < product.depth; ++i) {
      left[i] = TensorElement::of(product.a, a[i * kTensorRows + at % kTensorRows]);
      right[i] = TensorElement::of(product.b, b[at / kTensorRows * product.depth + i]);
    }
    d[at] = emulator::tensor_sum(product.core, product.a, product.d, left, right, d[at]);
  }
  return d;
}

std::vector<u32> at_once(const TensorProduct& product, const std::vector<u32>& a,
                         const std::vector<u32>& b, std::vector<u32> d, emulator::Isa isa) {
  std::vector<s32> storage_a(2 * a.size()), storage_b(2 * b.size());
  multiply_add(product, decode_a(product, a, storage_a, isa), decode_b(product, b, storage_b, isa),
               d, isa);
  return d;
}

struct Row {
  Type a, b, d;
  unsigned depth;
};
constexpr Row kRows[] = {
    {Type::f16, Type::f16, Type::f32, 16},   {Type::f16, Type::f16, Type::f16, 16},
    {Type::f16, Type::f16, Type::f32, 8},    {Type::bf16, Type::bf16, Type::f32, 16},
    {Type::tf32, Type::tf32, Type::f32, 8},  {Type::tf32, Type::tf32, Type::f32, 4},
    {Type::e4m3, Type::e4m3, Type::f32, 32}, {Type::e5m2, Type::e4m3, Type::f16, 32},
    {Type::e4m3, Type::e5m2, Type::f32, 16}, {Type::e5m2, Type::e5m2, Type::f32, 32},
};

}  // namespace

TEST_CASE("products at once have the bits of their sums one by one, in every instruction set") {
  const emulator::TensorCore cores[] = {emulator::tensor_core(80), emulator::tensor_core(90),
                                        emulator::warpgroup_core()};
  test::Dice dice(test::seed());
  std::size_t elements_compared = 0;
  std::size_t not_finite = 0;
  const int rounds = test::count(6, 400);
  for (int round = 0; round < rounds; ++round) {
    for (const Row& row : kRows) {
      for (std::size_t core = 0; core < std::size(cores); ++core) {
        for (const Draw draw : kDraws) {
          const TensorProduct product = {cores[core], row.a, row.b, row.d, row.depth};
          const std::size_t columns = 1 + dice.bits() % 9;
          const Draw other = dice.bits() % 2 == 0 ? draw : Draw::Finite;
          const auto a = elements(dice, row.a, draw, std::size_t{row.depth} * kTensorRows);
          const auto b = elements(dice, row.b, draw, columns * row.depth);
          const auto c = elements(dice, row.d, other, columns * kTensorRows);
          const std::vector<u32> expected = one_by_one(product, a, b, c);
          for (const emulator::Isa isa : emulator::kIsas) {
            if (!emulator::offers(isa)) continue;
            INFO(name(isa) << ", row " << &row - kRows << ", core " << core << ", draw "
                           << static_cast<int>(draw) << ", seed " << test::seed());
            REQUIRE(at_once(product, a, b, c, isa) == expected);
          }
          const Layout d = layout_of(row.d);
          for (const u32 bits : expected) {
            not_finite += (bits >> d.fraction & d.special) == d.special ? 1 : 0;
          }
          elements_compared += expected.size();
        }
      }
    }
  }
  // Both paths were taken.
  CHECK(not_finite > elements_compared / 20);
  CHECK(not_finite < elements_compared / 2);
}

TEST_CASE("more columns than a block, and one whose c is not finite") {
  test::Dice dice(test::seed());
  const TensorProduct product = {emulator::warpgroup_core(), Type::bf16, Type::bf16, Type::f32, 16};
  constexpr std::size_t kColumns = 256;
  const auto a = elements(dice, Type::bf16, Draw::Near, std::size_t{16} * kTensorRows);
  const auto b = elements(dice, Type::bf16, Draw::Near, kColumns * 16);
  auto c = elements(dice, Type::f32, Draw::Near, kColumns * kTensorRows);
  constexpr u32 kMinusInfinity = 0xff800000;
  c[200 * kTensorRows + 5] = kMinusInfinity;
  const std::vector<u32> expected = one_by_one(product, a, b, c);
  CHECK(expected[200 * kTensorRows + 5] == kMinusInfinity);
  for (const emulator::Isa isa : emulator::kIsas) {
    if (emulator::offers(isa)) CHECK(at_once(product, a, b, c, isa) == expected);
  }
}
