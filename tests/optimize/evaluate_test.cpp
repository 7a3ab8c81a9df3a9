// tests/optimize/evaluate_test.cpp - evaluation of scalar rows against the emulator's lanes
#include <catch2/catch.hpp>
#include <set>

#include "analysis/evaluate.hpp"
#include "emulator/lane_runner.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/ptx.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using analysis::Outcome;
using ptxgen::test::Dice;

namespace {

// Forms of the table without effects, each with registers of the types that it expects.
class Forms {
 public:
  Forms() : module_(test::kernel_with("")), function_(module_.functions.back()) {}

  const Function& function() const { return function_; }
  const Module& module() const { return module_; }

  template <class Fn>
  void for_each(Fn&& fn) {
    for (const OpInfo& row : op_table()) {
      const unsigned flags = static_cast<unsigned>(row.flags);
      if ((flags & ~static_cast<unsigned>(Flag::Commutative)) != 0) continue;
      std::vector<std::size_t> choice(row.slot_count, 0);
      for (unsigned tried = 0; tried < 20000; ++tried) {
        Instruction s;
        s.op = row.op;
        for (std::size_t i = 0; i < row.slot_count; ++i) {
          const auto words = ptx::allowed_modifiers(row.slots[i]);
          if (choice[i] < words.size()) s.modifiers[i] = words[choice[i]];
        }
        if (operands(row, s) && check_operands(module_, function_, s).rule.empty()) fn(s);
        if (!next(row, choice)) break;
      }
    }
  }

 private:
  // Counts up through the words of the slots; an optional one may be left out.
  static bool next(const OpInfo& row, std::vector<std::size_t>& choice) {
    for (std::size_t i = 0; i < row.slot_count; ++i) {
      const std::size_t max =
          ptx::allowed_modifiers(row.slots[i]).size() + (row.slots[i].optional ? 1 : 0);
      if (++choice[i] < max) return true;
      choice[i] = 0;
    }
    return false;
  }

  bool operands(const OpInfo& row, Instruction& s) {
    std::vector<Operand> all;
    for (const OperandSpec& spec : row.operand_specs()) {
      if (operand_elements(s, spec) != 0) return false;
      if (spec.role == OperandRole::Immediate) {
        all.push_back(Operand::integer(0));
        continue;
      }
      const Type type = operand_type(s, spec);
      std::uint32_t decl = kNone;
      for (std::uint32_t d = 0; d < function_.registers.size(); ++d) {
        const Type own = function_.registers[d].type;
        const bool fits = type == own || (untyped(bits(type)) == own && type != Type::f32 &&
                                          type != Type::f64 && type != Type::pred);
        if (fits) decl = d;
      }
      if (decl == kNone) return false;
      all.push_back(Operand::reg({{decl}, static_cast<std::uint32_t>(all.size() + 1)}));
      all.back().joined = spec.joined;
    }
    s.first_operand = static_cast<std::uint32_t>(function_.operands.size());
    s.operand_count = static_cast<std::uint16_t>(all.size());
    function_.operands.insert(function_.operands.end(), all.begin(), all.end());
    return true;
  }

  Module module_;
  Function& function_;
};

// Results of evaluate(), checked against the words that the lane computed.
struct Checker {
  const Forms& forms;
  const Instruction& s;
  const test::LaneRunner& lane;
  std::vector<std::size_t> sources = {};
  std::size_t values = 0, copies = 0;

  Checker(const Forms& f, const Instruction& i, const test::LaneRunner& l)
      : forms(f), s(i), lane(l) {
    for (std::size_t o = 0; o < s.operand_count; ++o) {
      if (operand_spec(forms.function(), s, o)->role != OperandRole::Destination)
        sources.push_back(o);
    }
  }

  void operator()(const std::vector<std::uint64_t>& bits, unsigned known_mask) {
    std::vector<std::optional<std::uint64_t>> known(s.operand_count);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if ((known_mask >> i & 1) != 0) known[sources[i]] = bits[i];
    }
    const Outcome outcome = analysis::evaluate(forms.function(), s, known);
    if (outcome.kind == Outcome::Kind::Unknown) return;
    const std::vector<std::uint64_t> results = lane.run(bits);
    bool right = true;
    if (outcome.kind == Outcome::Kind::Values) {
      ++values;
      for (std::size_t d = 0; d < outcome.count; ++d) right &= outcome.values[d] == results[d];
    } else {
      ++copies;
      right = outcome.count == 1;
      for (std::size_t i = 0; i < sources.size(); ++i) {
        if (sources[i] != outcome.source) continue;
        const std::uint64_t wanted =
            outcome.kind == Outcome::Kind::Opposite ? bits[i] ^ 1 : bits[i];
        right &= wanted == results[0];
      }
    }
    if (right) return;
    CAPTURE(lane.text(), bits, known_mask, static_cast<int>(outcome.kind), outcome.values[0],
            outcome.source, results);
    FAIL("evaluate() says otherwise than the lane");
  }
};

}  // namespace

TEST_CASE("evaluation of an instruction is what a lane computes") {
  Forms forms;
  Dice dice(test::seed());
  std::set<std::string_view> mnemonics;
  std::set<Op> rows;
  std::size_t values = 0, copies = 0;
  forms.for_each([&](const Instruction& s) {
    // Every row of the scalar semantics is evaluated.
    if (ptx::scalar_function(ptx::scalar_op(s)) == nullptr || bits(s.type()) > 64) return;
    std::vector<std::optional<std::uint64_t>> ones(s.operand_count, 1);
    INFO(print(forms.module(), forms.function(), s));
    REQUIRE(analysis::evaluate(forms.function(), s, ones).kind == Outcome::Kind::Values);
    const test::LaneRunner lane(print(forms.module(), forms.function(), s));
    Checker check(forms, s, lane);
    if (lane.source_widths().size() != check.sources.size()) return;
    mnemonics.insert(info(s.op).mnemonic);
    rows.insert(s.op);
    test::for_sources(lane, test::count(60, 2000), [&](std::vector<std::uint64_t> bits) {
      check(bits, ~0u);
      check(bits, dice.below(16));
      // The values at which identities hold.
      const std::size_t at = dice.below(bits.size());
      const std::uint64_t all = lane.source_widths()[at] >= 64
                                    ? ~std::uint64_t{0}
                                    : (std::uint64_t{1} << lane.source_widths()[at]) - 1;
      const std::uint64_t tops[] = {0, 1, all, all >> 1, (all >> 1) + 1, lane.source_widths()[0]};
      bits[at] = dice.pick(tops) & all;
      check(bits, 1u << at);
    });
    values += check.values, copies += check.copies;
  });
  CHECK(rows.size() > 75);
  CHECK(values > 100000);
  CHECK(copies > 2000);
  for (const char* name :
       {"add",  "sub",  "mul", "mad",   "sad",   "div",  "rem",  "abs",   "neg",  "min",
        "max",  "popc", "clz", "bfind", "brev",  "bfe",  "bfi",  "setp",  "set",  "selp",
        "slct", "and",  "or",  "xor",   "not",   "cnot", "lop3", "shf",   "shl",  "shr",
        "prmt", "mov",  "cvt", "mul24", "mad24", "fns",  "bmsk", "szext", "dp4a", "dp2a"})
    CHECK(mnemonics.count(name) == 1);
}

TEST_CASE("registers that are written twice in an instruction hold the same") {
  const auto outcome = [](const char* text, std::optional<std::uint64_t> first = {}) {
    const Module module = test::kernel_with(text);
    const Function& f = module.functions.back();
    const Instruction& s = *test::instructions_of(module)[0];
    std::vector<std::optional<std::uint64_t>> known(s.operand_count);
    if (first) known[1] = first;
    return analysis::evaluate(f, s, known);
  };
  const auto value = [&](const char* text) {
    const Outcome o = outcome(text);
    return o.kind == Outcome::Kind::Values ? static_cast<int>(o.values[0]) : -1;
  };
  CHECK(value("sub.s32 %r1, %r2, %r2;") == 0);
  CHECK(value("xor.b64 %rd1, %rd2, %rd2;") == 0);
  CHECK(value("setp.eq.u32 %p1, %r2, %r2;") == 1);
  CHECK(value("setp.lt.s32 %p1, %r2, %r2;") == 0);
  CHECK(value("setp.ge.s32 %p1|%p2, %r2, %r2;") == 1);
  CHECK(value("sub.s32 %r1, %r2, %r3;") == -1);
  CHECK(value("sub.f32 %f1, %f2, %f2;") == -1);      // NaN - NaN
  CHECK(value("setp.eq.f32 %p1, %f2, %f2;") == -1);  // NaN is not equal to itself
  CHECK(value("div.u32 %r1, %r2, %r2;") == -1);      // 0 / 0
  CHECK(value("setp.lt.u32 %p1, %r2, %r3;") == -1);
  CHECK(outcome("min.s32 %r1, %r2, %r2;").kind == Outcome::Kind::Source);
  CHECK(outcome("and.b32 %r1, %r2, %r2;").source == 1);
  CHECK(outcome("selp.b32 %r1, %r2, %r2, %p1;").kind == Outcome::Kind::Source);
  // Nothing with effects, and nothing that PTX leaves open.
  CHECK(outcome("add.cc.u32 %r1, 1, 2;", 1).kind == Outcome::Kind::Unknown);
  CHECK(outcome("ld.shared.u32 %r1, [s];").kind == Outcome::Kind::Unknown);
}
