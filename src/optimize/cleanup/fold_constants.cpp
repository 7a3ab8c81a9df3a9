// src/optimize/cleanup/fold_constants.cpp - replaces constant computations by moves
#include <algorithm>

#include "optimize/cleanup/cleanup.hpp"
#include "ptxgen/optimize/passes.hpp"
#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::inline v0::optimize {

using namespace ptx;
using analysis::Outcome;

namespace {

// The form of a comparison without a predicate after it.
struct PlainForm {
  Op combined, plain;
};
constexpr PlainForm kPlainForms[] = {
    {Op::setp_bits_bool, Op::setp_bits},     {Op::setp_unsigned_bool, Op::setp_unsigned},
    {Op::setp_signed_bool, Op::setp_signed}, {Op::setp_f32_bool, Op::setp_f32},
    {Op::setp_f64_bool, Op::setp_f64},       {Op::setp_f16_bool, Op::setp_f16},
    {Op::setp_f16x2_bool, Op::setp_f16x2},   {Op::setp_bf16_bool, Op::setp_bf16},
    {Op::setp_bf16x2_bool, Op::setp_bf16x2},
};

class Folder {
 public:
  Folder(Function& function, PassContext& context)
      : function_(function),
        context_(context),
        facts_(context.facts(function)),
        edits_(context.module(), function) {}

  void run() {
    const auto statements = static_cast<std::uint32_t>(function_.body.size());
    for (std::uint32_t i = 0; i < statements; ++i) {
      context_.visit();
      if (!only_computes(function_.body[i])) continue;
      // What is never executed is left to dead_code.
      if (!facts_.constants.executable(facts_.cfg.block_of(i))) continue;
      const Outcome outcome = facts_.constants.outcome(i);
      switch (outcome.kind) {
        case Outcome::Kind::Values:
          to_constants(i, outcome);
          break;
        case Outcome::Kind::Source:
        case Outcome::Kind::Opposite:
          to_move(i, outcome);
          break;
        case Outcome::Kind::Unknown:
          shorten(i);
          break;
      }
    }
    if (edits_.empty()) return;
    edits_.apply();
    context_.changed();
  }

 private:
  [[nodiscard]] std::vector<Operand> operands(std::uint32_t i) const {
    const auto all = function_.operands_of(function_.body[i]);
    return {all.begin(), all.end()};
  }
  [[nodiscard]] bool is_register(const Operand& o) const {
    return o.kind == OperandKind::Register && o.component == 0 &&
           function_.registers[o.id].vector == 1;
  }
  [[nodiscard]] static bool is_constant(const Operand& o) {
    return o.kind == OperandKind::Integer || o.kind == OperandKind::Float32 ||
           o.kind == OperandKind::Float64;
  }

  // Takes the statement's place if the verifier accepts it.
  bool put(std::uint32_t i, Instruction result, bool in_front, std::string_view reason) {
    const Instruction& old = function_.body[i];
    result.guard = old.guard;
    if (!check_operands(context_.module(), function_, result).rule.empty()) return false;
    if (context_.explains()) {
      context_.decide(
          function_, i, true, reason,
          quoted(context_, function_, old) + " became " + quoted(context_, function_, result));
    } else {
      context_.decide(function_, i, true, reason);
    }
    if (in_front) {
      edits_.insert_before(i, result);
    } else {
      edits_.replace(i, result);
    }
    return true;
  }

  void to_constants(std::uint32_t i, const Outcome& outcome) {
    const Instruction& s = function_.body[i];
    const std::vector<Operand> all = operands(i);
    if (s.op == Op::mov && is_constant(all[1])) return;
    struct Result {
      Operand to;
      std::uint64_t value;
    };
    std::vector<Result> results;
    for (std::size_t d = 0; d < outcome.count; ++d) {
      if (all[d].kind == OperandKind::Sink) continue;
      if (!is_register(all[d])) return;
      const Type type = operand_type(s, *operand_spec(function_, s, d));
      Operand to = all[d];
      to.joined = false;
      results.push_back({to, analysis::extended(outcome.values[d], type)});
    }
    if (results.empty()) return;
    // It is unspecified which of two results one register gets.
    if (results.size() == 2 && results[0].to == results[1].to) return;
    // The move that changes the guard comes last.
    const auto is_guard = [&](const Result& r) {
      return s.guard.present() && r.to.as_register() == s.guard.predicate;
    };
    std::stable_partition(results.begin(), results.end(),
                          [&](const Result& r) { return !is_guard(r); });
    for (const Result& r : results) {
      if (move_type(function_.type_of(r.to.as_register())) == Type::none) return;
    }
    for (const Result& r : results) {
      const Type type = move_type(function_.type_of(r.to.as_register()));
      const Operand value = constant_operand(type, analysis::low_bits(r.value, bits(type)));
      put(i, edits_.make(Op::mov, {as_modifier(type)}, {r.to, value}, i), &r != &results.back(),
          "constant");
    }
  }

  void to_move(std::uint32_t i, const Outcome& outcome) {
    const Instruction& s = function_.body[i];
    const std::vector<Operand> all = operands(i);
    if (outcome.count != 1 || !is_register(all[0])) return;
    Operand from = all[outcome.source];
    if (!is_register(from)) return;
    const Type to_type = function_.type_of(all[0].as_register());
    const Type from_type = function_.type_of(from.as_register());
    if (bits(to_type) != bits(from_type)) return;
    // A conversion between registers that are wider than its types cuts and extends.
    if (s.op == Op::cvt_int && bits(s.type(0)) != bits(to_type)) return;
    if (from == all[0] && outcome.kind == Outcome::Kind::Source) {
      context_.decide(
          function_, i, true, "self-copy",
          context_.explains() ? quoted(context_, function_, s) + " does nothing" : std::string());
      edits_.erase(i);
      return;
    }
    if (s.op == Op::mov) return;
    const bool inverted = (outcome.kind == Outcome::Kind::Opposite) != from.negated;
    from.negated = false;
    if (inverted) {
      if (s.op == Op::not_) return;
      put(i, edits_.make(Op::not_, {Modifier::type_pred}, {all[0], from}, i), false, "identity");
      return;
    }
    const Type type = move_type(to_type);
    if (type == Type::none) return;
    if (put(i, edits_.make(Op::mov, {as_modifier(type)}, {all[0], from}, i), false, "identity"))
      return;
    put(i, edits_.make(Op::mov, {as_modifier(untyped(bits(type)))}, {all[0], from}, i), false,
        "identity");
  }

  // A shorter instruction that is no move.
  void shorten(std::uint32_t i) {
    const Instruction& s = function_.body[i];
    if (s.op == Op::div || s.op == Op::rem) {
      if (facts_.constants.source(i, 2) == std::uint64_t{0}) by_zero(i);
      return;
    }
    if (s.op == Op::mad && s.get(Field::MulPart) == Modifier::lo) {
      for (const std::size_t one : {std::size_t{1}, std::size_t{2}}) {
        if (facts_.constants.source(i, one) != std::uint64_t{1}) continue;
        const std::vector<Operand> all = operands(i);
        put(i, edits_.make(Op::add, {as_modifier(s.type(0))}, {all[0], all[3 - one], all[3]}, i),
            false, "identity");
        return;
      }
    }
    const auto* form = std::find_if(std::begin(kPlainForms), std::end(kPlainForms),
                                    [&](const PlainForm& f) { return f.combined == s.op; });
    if (form == std::end(kPlainForms)) return;
    const std::vector<Operand> all = operands(i);
    const auto with = facts_.constants.source(i, all.size() - 1);
    if (!with) return;
    // Where the predicate decides alone, evaluate() has said so; `xor` with true turns the result.
    const bool neutral = (s.get(Field::BoolOp) == Modifier::and_) == (*with != 0);
    if (!neutral) return;
    const Modifier chosen[] = {s.get(Field::Comparison), s.get(Field::FlushToZero),
                               as_modifier(s.type(0))};
    put(i, edits_.make(form->plain, chosen, std::span(all).first(all.size() - 1), i), false,
        "identity");
  }

  void by_zero(std::uint32_t i) {
    context_.decide(function_, i, false, "division-by-zero",
                    context_.explains()
                        ? quoted(context_, function_, function_.body[i]) +
                              " divides by zero, and PTX does not say what that gives, so it stays"
                        : std::string());
  }

  Function& function_;
  PassContext& context_;
  CleanupFacts facts_;
  Edits edits_;
};

}  // namespace

void fold_constants(Function& function, PassContext& context) {
  if (understood(function, context)) Folder(function, context).run();
}

}  // namespace ptxgen::inline v0::optimize
