// src/optimize/fusion/fma_fusion.cpp - floating-point mul and add, sub or neg to fma
#include <algorithm>
#include <iterator>

#include "optimize/fusion/fusion.hpp"
#include "ptxgen/optimize/passes.hpp"

namespace ptxgen::inline v0::optimize {

namespace {

using ptx::Field;
using ptx::Instruction;
using ptx::kNone;
using ptx::Modifier;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;

// Which rows of the op table belong together. A row of sums says which modifiers the fma may
// have: each fma row here has those of its add and sub rows.
struct Family {
  Op mul, add, sub, fma;
  Op neg;
  bool has_neg = true;
};
constexpr Family kFamilies[] = {
    {Op::mul_f32, Op::add_f32, Op::sub_f32, Op::fma_f32, Op::neg_f32},
    {Op::mul_f64, Op::add_f64, Op::sub_f64, Op::fma_f64, Op::neg_f64},
    {Op::mul_f16, Op::add_f16, Op::sub_f16, Op::fma_f16, Op::neg_f16},
    {Op::mul_bf16, Op::add_bf16, Op::sub_bf16, Op::fma_bf16, Op::neg_bf16},
    {Op::mul_f32x2, Op::add_f32x2, Op::sub_f32x2, Op::fma_f32x2, Op{}, false},
};

const Family* family_of(const Instruction& statement) {
  const auto found = std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const Family& f) {
    return statement.op == f.mul || statement.op == f.add || statement.op == f.sub ||
           (f.has_neg && statement.op == f.neg);
  });
  return found == std::end(kFamilies) ? nullptr : found;
}

bool is_sum(const Instruction& statement) {
  const Family* family = family_of(statement);
  return family != nullptr && (statement.op == family->add || statement.op == family->sub);
}
bool is_product(const Instruction& statement) {
  const Family* family = family_of(statement);
  return family != nullptr && statement.op == family->mul;
}
// The types of one row have registers of different widths: what a sum reads has its type.
bool is_pair(const Instruction& product, const Instruction& sum) {
  return product.op == family_of(sum)->mul;
}
// A negation that flushes what the sum would not flush is none.
bool is_negation(const Instruction& link, const Instruction& sum) {
  const Family& family = *family_of(sum);
  if (!family.has_neg || link.op != family.neg) return false;
  return !link.has(Field::FlushToZero) || sum.has(Field::FlushToZero);
}

Modifier rounding_of(const Instruction& statement) {
  const Modifier modifier = statement.get(Field::Rounding);
  return modifier == Modifier::none ? Modifier::rn : modifier;
}

// What forbids the contraction of a statement; empty if it is allowed.
std::string_view forbidden_by(const Fusion& fusion, const Instruction& statement) {
  if (statement.contract != ptx::Contract::Default)
    return statement.contract == ptx::Contract::Forbid ? "the operation itself" : "";
  const ptx::Contract of_function = fusion.function().contract;
  if (of_function != ptx::Contract::Default)
    return of_function == ptx::Contract::Forbid ? "the function" : "";
  return fusion.options().contract ? "" : "the options of the passes";
}

Refusal check_modifiers(const Fusion& fusion, std::uint32_t sum, std::uint32_t mul) {
  const Instruction& product = fusion.at(mul);
  const Instruction& total = fusion.at(sum);
  for (const std::uint32_t statement : {mul, sum}) {
    const std::string_view who = forbidden_by(fusion, fusion.at(statement));
    if (!who.empty()) {
      return fusion.refuse("contract-forbidden", [&] {
        return std::string(who) + " forbids to contract " + fusion.quote(statement) +
               ": product and sum are rounded one after the other";
      });
    }
  }
  if (product.has(Field::Saturate)) {
    return fusion.refuse("saturated", [&] {
      return fusion.quote(mul) +
             " clamps the product to [0, 1], a fused operation only the sum; leave .sat out of it "
             "to have them fused";
    });
  }
  if (rounding_of(product) != rounding_of(total)) {
    return fusion.refuse("rounding-differs", [&] {
      return fusion.quote(mul) + " rounds by ." + std::string(ptx::name(rounding_of(product))) +
             " and the sum by ." + std::string(ptx::name(rounding_of(total))) +
             ", a fused operation rounds once; give both the same rounding to have them fused";
    });
  }
  if (product.has(Field::FlushToZero) != total.has(Field::FlushToZero)) {
    return fusion.refuse("ftz-differs", [&] {
      return fusion.quote(mul) +
             (product.has(Field::FlushToZero) ? " flushes subnormals to zero and the sum does not"
                                              : " keeps subnormals and the sum flushes them") +
             "; give both .ftz or neither to have them fused";
    });
  }
  return {};
}

// -x, without a new instruction if possible: a constant is negated directly; a negation is replaced
// by its operand; a negation made for another sum is reused; otherwise an instruction is needed.
struct Negated {
  Operand operand;
  std::uint32_t value = kNone;  // what an instruction must negate
  std::size_t readers = 0;      // how many read that
  std::uint32_t spare = kNone;  // a negation that nothing reads any more
};
Negated negate(const Fusion& fusion, std::uint32_t reader, std::size_t place, std::uint32_t sum) {
  Negated result{fusion.operand(reader, place)};
  Operand& operand = result.operand;
  if (operand.kind == OperandKind::Float32) {
    operand.value ^= std::uint64_t{1} << 31;
    return result;
  }
  if (operand.kind == OperandKind::Float64) {
    operand.value ^= std::uint64_t{1} << 63;
    return result;
  }
  if (const std::uint32_t negation = fusion.negation(reader, operand, sum); negation != kNone) {
    const bool twice = fusion.operand(reader, 1) == fusion.operand(reader, 2);
    if (!twice && fusion.read_only_by(negation, reader)) result.spare = negation;
    operand = fusion.operand(negation, 1);
    return result;
  }
  const std::uint32_t value = fusion.value(reader, operand);
  const Operand negative = fusion.negative(value, operand, sum);
  if (negative.kind == OperandKind::Register) {
    operand = negative;
    return result;
  }
  result.value = value;
  result.readers = fusion.readers(value);
  return result;
}

// a * b + c, c - a * b and so on. What must be negated, the product or c, follows from the signs;
// negation is exact: the fused operation still rounds the sum of the same numbers, and
// zeros have the signs they had: x - y and x + (-y) are one operation. In PTX neg and fma are no
// fewer than mul and sub, unless negations are shared; ptxas 13.0 makes the neg a sign of the fma's
// operand, so that one instruction is left of two.
FusionPlan plan(Fusion& fusion, std::uint32_t sum, const Product& product) {
  FusionPlan plan;
  const Instruction& total = fusion.at(sum);
  const Family& family = *family_of(total);
  const std::uint32_t mul = product.statement();
  plan.refusal = check_modifiers(fusion, sum, mul);
  if (plan.refusal) return plan;
  plan.refusal = fusion.check(product, sum);
  if (plan.refusal) return plan;

  const std::uint32_t other = 3 - product.operand;
  const bool subtracts = total.op == family.sub;
  const bool negate_c = subtracts && other == 2;
  const bool negate_product = (subtracts && product.operand == 2) != product.negated;
  plan.op = family.fma;
  plan.negation = family.neg;
  plan.modifiers = {rounding_of(total), total.get(Field::FlushToZero), total.get(Field::Saturate),
                    ptx::as_modifier(total.type())};
  plan.operands = {fusion.operand(mul, 1), fusion.operand(mul, 2), fusion.operand(sum, other)};
  if (negate_product) {
    std::size_t place = 0;
    Negated best = negate(fusion, mul, 1, sum);
    if (best.value != kNone) {
      const Negated second = negate(fusion, mul, 2, sum);
      if (second.value == kNone || second.readers > best.readers) {
        best = second;
        place = 1;
      }
    }
    plan.operands[place] = best.operand;
    plan.negate[place] = best.value;
    plan.spare[0] = best.spare;
    plan.readers += best.readers;
  }
  if (negate_c) {
    const Negated c = negate(fusion, sum, other, sum);
    plan.operands[2] = c.operand;
    plan.negate[2] = c.value;
    plan.spare[1] = c.spare;
    plan.readers += c.readers;
  }
  if (plan.cost() != 0 && !family.has_neg) {
    plan.refusal = fusion.refuse("no-negation", [&] {
      return "PTX has no neg." + std::string(ptx::name(total.type())) + " for the sign of " +
             (negate_c ? "what is subtracted" : "the product") +
             "; write the difference as a sum to have it fused";
    });
    return plan;
  }
  plan.refusal = fusion.check_target(plan.op, plan.modifiers);
  if (!plan.refusal && plan.cost() != 0)
    plan.refusal = fusion.check_target(plan.negation, {&plan.modifiers[3], 1});
  return plan;
}

constexpr FusionRules kRules{is_sum, is_product, is_pair, is_negation, plan};

}  // namespace

void fma_fusion(ptx::Function& function, PassContext& context) { fuse(function, context, kRules); }

}  // namespace ptxgen::inline v0::optimize
