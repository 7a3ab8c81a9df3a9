// src/optimize/fusion/mad_fusion.cpp - integer mul and add to mad
#include <algorithm>
#include <iterator>

#include "optimize/fusion/fusion.hpp"
#include "ptxgen/optimize/passes.hpp"

namespace ptxgen::inline v0::optimize {

namespace {

using ptx::Field;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Op;
using ptx::Type;

// Which rows of the op table belong together. The type is the multiplication's: of the low half of
// a product, and of a sum, signed and unsigned are the same bits.
struct Family {
  Op mul, add, mad;
};
constexpr Family kFamilies[] = {
    {Op::mul, Op::add, Op::mad},
    {Op::mul, Op::add_sat, Op::mad_sat},
    {Op::mul_wide, Op::add, Op::mad_wide},
    {Op::mul24, Op::add, Op::mad24},
    {Op::mul24, Op::add_sat, Op::mad24_sat},
};

bool is_product(const Instruction& statement) {
  return std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [&](const Family& f) { return statement.op == f.mul; });
}
bool uses_carry(const Instruction& statement) {
  return statement.op == Op::add_cc || statement.op == Op::addc;
}
bool is_sum(const Instruction& statement) {
  return uses_carry(statement) ||
         std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [&](const Family& f) { return statement.op == f.add; });
}
bool is_pair(const Instruction& product, const Instruction& sum) {
  return (uses_carry(sum) && is_product(product)) ||
         std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [&](const Family& f) { return product.op == f.mul && sum.op == f.add; });
}

FusionPlan plan(Fusion& fusion, std::uint32_t sum, const Product& product) {
  FusionPlan plan;
  const std::uint32_t mul = product.statement();
  const Instruction& times = fusion.at(mul);
  const Instruction& total = fusion.at(sum);
  if (uses_carry(total)) {
    plan.refusal = fusion.refuse("carry", [&] {
      return "the sum takes part in a chain of carries, which stays as it was written; use mad.cc "
             "or madc for " +
             fusion.quote(mul) + " and the sum to have one instruction";
    });
    return plan;
  }
  const Family& family =
      *std::find_if(std::begin(kFamilies), std::end(kFamilies),
                    [&](const Family& f) { return times.op == f.mul && total.op == f.add; });
  const bool saturates = total.has(Field::Saturate);
  if (saturates && (times.get(Field::MulPart) != Modifier::hi || times.type() != Type::s32)) {
    plan.refusal = fusion.refuse("saturated", [&] {
      return "the sum is clamped to the range of s32, which mad does for the high half of s32 "
             "only, "
             "not for " +
             fusion.quote(mul);
    });
    return plan;
  }
  plan.refusal = fusion.check(product, sum);
  if (plan.refusal) return plan;
  plan.op = family.mad;
  plan.modifiers = {times.get(Field::MulPart), ptx::as_modifier(times.type())};
  plan.operands = {fusion.operand(mul, 1), fusion.operand(mul, 2),
                   fusion.operand(sum, 3 - product.operand)};
  plan.refusal = fusion.check_target(plan.op, plan.modifiers);
  return plan;
}

constexpr FusionRules kRules{is_sum, is_product, is_pair, nullptr, plan};

}  // namespace

void mad_fusion(ptx::Function& function, PassContext& context) { fuse(function, context, kRules); }

}  // namespace ptxgen::inline v0::optimize
