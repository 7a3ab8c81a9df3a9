// src/analysis/induction.cpp - induction variables and exit tests of loops
#include "ptxgen/analysis/induction.hpp"

#include <algorithm>

#include "analysis/ordinal.hpp"

namespace ptxgen::inline v0::analysis {

using ptx::Instruction;
using ptx::kNone;
using ptx::Modifier;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;

namespace {

// Limits on chains of copies and additions, and on branches above a loop: enough for the code of
// compilers, and a bound on the work for hostile code.
constexpr int kLongestChain = 24;
constexpr int kMaxGuards = 24;

std::uint64_t mask_of(unsigned bits) { return Ordinal{bits, false, false}.mask(); }

Relation relation_of(const Instruction& setp) {
  switch (setp.get(ptx::Field::Comparison)) {
    case Modifier::lt:
    case Modifier::lo:
      return Relation::Lt;
    case Modifier::le:
    case Modifier::ls:
      return Relation::Le;
    case Modifier::gt:
    case Modifier::hi:
      return Relation::Gt;
    case Modifier::ge:
    case Modifier::hs:
      return Relation::Ge;
    case Modifier::eq:
      return Relation::Eq;
    default:
      return Relation::Ne;
  }
}

}  // namespace

std::string_view to_string(Relation relation) noexcept {
  constexpr std::string_view kTexts[] = {"<", "<=", ">", ">=", "==", "!="};
  return kTexts[static_cast<unsigned>(relation)];
}

Relation mirrored(Relation relation) noexcept {
  constexpr Relation kMirrored[] = {Relation::Gt, Relation::Ge, Relation::Lt,
                                    Relation::Le, Relation::Eq, Relation::Ne};
  return kMirrored[static_cast<unsigned>(relation)];
}

Relation opposite(Relation relation) noexcept {
  constexpr Relation kOpposite[] = {Relation::Ge, Relation::Gt, Relation::Le,
                                    Relation::Lt, Relation::Ne, Relation::Eq};
  return kOpposite[static_cast<unsigned>(relation)];
}

std::optional<std::uint64_t> iteration_count(std::uint64_t first, std::uint64_t step,
                                             Relation relation, std::uint64_t bound, bool is_signed,
                                             unsigned bits) noexcept {
  Ordinal order{bits, is_signed, false};
  const std::uint64_t mask = order.mask();
  step &= mask;
  if ((step >> (bits - 1) & 1) != 0) {
    order.down = true;
    step = (0 - step) & mask;
    if (relation != Relation::Eq && relation != Relation::Ne) relation = mirrored(relation);
  }
  const std::uint64_t a = order(first), b = order(bound);
  std::uint64_t more = 0;  // how often it goes on
  switch (relation) {
    case Relation::Lt:
      if (a < b && step == 0) return std::nullopt;
      more = a < b ? (b - a - 1) / step + 1 : 0;
      break;
    case Relation::Le:
      if (a <= b && step == 0) return std::nullopt;
      more = a <= b ? (b - a) / step + 1 : 0;
      break;
    case Relation::Ne:
      if (a == b) break;
      if (step == 0 || b < a || (b - a) % step != 0) return std::nullopt;
      more = (b - a) / step;
      break;
    case Relation::Eq:
      if (a == b && step == 0) return std::nullopt;
      more = a == b ? 1 : 0;
      break;
    case Relation::Gt:
      if (a > b) return std::nullopt;
      break;
    case Relation::Ge:
      if (a >= b) return std::nullopt;
      break;
  }
  // The last value that is tested must not have passed the end of the type.
  if (more != 0 && (mask - a) / step < more) return std::nullopt;
  return more + 1;
}

const Instruction* Inductions::definition(std::uint32_t version) const {
  if (version == kNone) return nullptr;
  const Version& v = (*versions_)[version];
  if (v.kind != Version::Kind::Write || v.partial) return nullptr;
  return &function_->body[v.statement];
}

// The version that an operand of the version's definition reads, kNone if it is no register.
std::uint32_t Inductions::source(std::uint32_t version, std::size_t operand) const {
  const std::uint32_t statement = (*versions_)[version].statement;
  const Instruction& instruction = function_->body[statement];
  const auto operands = function_->operands_of(instruction);
  if (operand >= operands.size()) return kNone;
  const Operand& o = operands[operand];
  if (o.kind != OperandKind::Register || o.component != 0 || o.negated) return kNone;
  const std::uint32_t reg = index_->find(o.as_register());
  return reg == kNone ? kNone : versions_->read(statement, reg);
}

// What the version is a copy of, or kNone.
std::uint32_t Inductions::copied(std::uint32_t version) const {
  const Instruction* write = definition(version);
  if (write == nullptr || !write->is(Op::mov)) return kNone;
  const std::uint32_t from = source(version, 1);
  if (from == kNone) return kNone;
  const auto bits = [&](std::uint32_t v) {
    return ptx::bits(function_->type_of((*index_)[(*versions_)[v].reg]));
  };
  return bits(from) == bits(version) ? from : kNone;
}

std::uint32_t Inductions::root(std::uint32_t version) const {
  for (int i = 0; i < kLongestChain; ++i) {
    const std::uint32_t from = copied(version);
    if (from == kNone) break;
    version = from;
  }
  return version;
}

bool Inductions::invariant(std::uint32_t loop, std::uint32_t version) const noexcept {
  if (version == kNone) return false;
  const Version& v = (*versions_)[version];
  const LoopForest& forest = cfg_->loops();
  if (v.kind == Version::Kind::Entry || !forest.contains(loop, v.block)) return true;
  if (v.kind != Version::Kind::Phi || v.block != forest.loops()[loop].header) return false;
  // Merges the entries of the loop; the loop does not write it.
  const auto inputs = versions_->inputs(version);
  const auto predecessors = cfg_->predecessors(v.block);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (forest.contains(loop, predecessors[i]) && inputs[i] != version && inputs[i] != kNone) {
      return false;
    }
  }
  return true;
}

LoopTerm Inductions::term(std::uint32_t loop, std::uint32_t version) const {
  if (version == kNone) return {};
  if (const Instruction* write = definition(root(version)); write != nullptr) {
    if (write->is(Op::mov)) {
      const Operand& from = function_->operands_of(*write)[1];
      if (from.kind == OperandKind::Integer) {
        const unsigned bits = ptx::bits(function_->type_of((*index_)[(*versions_)[version].reg]));
        return {LoopTerm::Kind::Constant, kNone, from.value & mask_of(bits)};
      }
    }
  }
  for (int i = 0; i < kLongestChain && version != kNone; ++i) {
    if (loop == kNone || invariant(loop, version)) return {LoopTerm::Kind::Version, version, 0};
    version = copied(version);
  }
  return {};
}

std::optional<InductionValue> Inductions::value(std::uint32_t loop, std::uint32_t version) const {
  const auto& variables = loops_[loop].variables;
  const LoopForest& forest = cfg_->loops();
  InductionValue result;
  for (int i = 0; i < kLongestChain && version != kNone; ++i) {
    const Version& v = (*versions_)[version];
    if (!forest.contains(loop, v.block)) return std::nullopt;
    const std::uint32_t n = variable_of_[version];
    if (n < variables.size()) {
      const Induction& variable = variables[n];
      const bool stepped = !variable.step.constant() && v.kind == Version::Kind::Write &&
                           v.statement == variable.increment;
      if (version == variable.phi || stepped) {
        result.variable = n;
        result.offset &= mask_of(variable.bits);
        result.is_next = stepped || (variable.step.constant() && variable.step.value != 0 &&
                                     result.offset == variable.step.value);
        return result;
      }
    }
    const Instruction* write = definition(version);
    if (write == nullptr) return std::nullopt;
    if (write->is(Op::mov)) {
      version = copied(version);
      continue;
    }
    if (!write->is(Op::add) && !write->is(Op::sub)) return std::nullopt;
    const std::uint32_t sources[2] = {source(version, 1), source(version, 2)};
    const auto operands = function_->operands_of(*write);
    const auto constant = [&](std::size_t number) -> std::optional<std::uint64_t> {
      if (operands[number].kind == OperandKind::Integer) return operands[number].value;
      const LoopTerm t = term(loop, sources[number - 1]);
      if (t.constant()) return t.value;
      return std::nullopt;
    };
    if (const auto c = constant(2)) {
      result.offset += write->is(Op::add) ? *c : 0 - *c;
      version = sources[0];
    } else if (const auto d = constant(1); d && write->is(Op::add)) {
      result.offset += *d;
      version = sources[1];
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<LoopComparison> Inductions::comparison(std::uint32_t loop,
                                                     std::uint32_t statement) const {
  const Instruction& setp = function_->body[statement];
  if (!setp.is(Op::setp_unsigned) && !setp.is(Op::setp_signed) && !setp.is(Op::setp_bits)) {
    return std::nullopt;
  }
  const auto operands = function_->operands_of(setp);
  const auto second = static_cast<std::uint32_t>(operands.size() - 1);
  const unsigned bits = ptx::bits(setp.type());
  const auto version_at = [&](std::uint32_t operand) {
    const Operand& o = operands[operand];
    if (o.kind != OperandKind::Register || o.component != 0) return kNone;
    const std::uint32_t reg = index_->find(o.as_register());
    if (reg == kNone || ptx::bits(function_->type_of(o.as_register())) != bits) return kNone;
    return versions_->read(statement, reg);
  };
  LoopComparison result;
  result.statement = statement;
  result.is_signed = setp.is(Op::setp_signed);
  for (const std::uint32_t operand : {second - 1, second}) {
    const std::uint32_t version = version_at(operand);
    if (version == kNone) continue;
    const auto value = this->value(loop, version);
    if (!value || loops_[loop].variables[value->variable].bits != bits) continue;
    result.operand = operand;
    result.value = *value;
    const std::uint32_t other = operand == second ? second - 1 : second;
    if (operands[other].kind == OperandKind::Integer) {
      result.bound = {LoopTerm::Kind::Constant, kNone, operands[other].value & mask_of(bits)};
    } else {
      result.bound = term(loop, version_at(other));
    }
    result.relation = relation_of(setp);
    if (operand == second) result.relation = mirrored(result.relation);
    return result;
  }
  return std::nullopt;
}

// Computes the variables and tests of each loop.
class InductionReader {
 public:
  explicit InductionReader(Inductions& result)
      : result_(result),
        function_(*result.function_),
        cfg_(*result.cfg_),
        index_(*result.index_),
        versions_(*result.versions_),
        forest_(cfg_.loops()) {}

  void read() {
    result_.loops_.resize(forest_.loops().size());
    result_.variable_of_.assign(versions_.size(), kNone);
    for (std::uint32_t loop = 0; loop < forest_.loops().size(); ++loop) {
      if (forest_.loops()[loop].irreducible) continue;
      entries(loop);
      variables(loop);
      tests(loop);
    }
  }

 private:
  void entries(std::uint32_t loop) {
    const std::uint32_t header = forest_.loops()[loop].header;
    const auto predecessors = cfg_.predecessors(header);
    for (std::uint32_t i = 0; i < predecessors.size(); ++i) {
      const std::uint32_t from = predecessors[i];
      if (forest_.contains(loop, from) || !cfg_.reachable(from)) continue;
      Inductions::Entry entry;
      entry.input = i;
      fact(entry.facts, from, header);
      std::uint32_t below = from;
      for (int n = 0; n < kMaxGuards; ++n) {
        const std::uint32_t above = cfg_.dominators().immediate(below);
        if (above == kNoNode) break;
        // The branch has decided only if there is no other way to the block below it.
        if (cfg_.predecessors(below).size() == 1) fact(entry.facts, above, below);
        below = above;
      }
      result_.loops_[loop].entries.push_back(std::move(entry));
    }
  }

  // The facts that hold on the edge from one block to the other.
  void fact(std::vector<Inductions::Fact>& facts, std::uint32_t from, std::uint32_t to) {
    bool negated = false;
    const std::uint32_t setp = condition(from, to, negated);
    if (setp == kNone) return;
    const Instruction& compare = function_.body[setp];
    const auto operands = function_.operands_of(compare);
    const unsigned bits = ptx::bits(compare.type());
    Inductions::Fact fact;
    fact.is_signed = compare.is(Op::setp_signed);
    const auto term = [&](const Operand& o) -> LoopTerm {
      if (o.kind == OperandKind::Integer) {
        return {LoopTerm::Kind::Constant, kNone, o.value & mask_of(bits)};
      }
      if (o.kind != OperandKind::Register || o.component != 0) return {};
      const std::uint32_t reg = index_.find(o.as_register());
      if (reg == kNone) return {};
      const std::uint32_t version = versions_.read(setp, reg);
      return version == kNone ? LoopTerm{} : result_.term(kNone, result_.root(version));
    };
    fact.a = term(operands[operands.size() - 2]);
    fact.b = term(operands[operands.size() - 1]);
    fact.relation = relation_of(compare);
    if (negated) fact.relation = opposite(fact.relation);
    if (fact.a.known() && fact.b.known()) facts.push_back(fact);
  }

  // The setp that decides about the edge from a block to that successor.
  std::uint32_t condition(std::uint32_t from, std::uint32_t to, bool& negated) {
    const std::uint32_t branch = cfg_.blocks()[from].terminator;
    if (branch == kNone || !function_.body[branch].is(Op::bra)) return kNone;
    const Instruction& bra = function_.body[branch];
    const auto successors = cfg_.successors(from);
    if (!bra.guard.present() || successors.size() != 2) return kNone;
    if (to != successors[0] && to != successors[1]) return kNone;
    negated = bra.guard.negated;
    if (to == successors[1]) negated = !negated;  // the fall through comes second
    return setp_of(branch, bra.guard.predicate, negated);
  }

  // Looks through copies and negations of a predicate.
  std::uint32_t setp_of(std::uint32_t statement, ptx::Register predicate, bool& negated) {
    const std::uint32_t reg = index_.find(predicate);
    std::uint32_t version = reg == kNone ? kNone : versions_.read(statement, reg);
    for (int i = 0; i < kLongestChain && version != kNone; ++i) {
      const Instruction* write = result_.definition(version);
      if (write == nullptr) return kNone;
      if (write->is(Op::setp_unsigned) || write->is(Op::setp_signed) || write->is(Op::setp_bits)) {
        const auto operands = function_.operands_of(*write);
        const ptx::Register first = operands[0].as_register();
        const bool second =
            operands[0].kind != OperandKind::Register || !(first == index_[versions_[version].reg]);
        if (second) negated = !negated;
        return versions_[version].statement;
      }
      if (write->is(Op::not_)) {
        negated = !negated;
      } else if (!write->is(Op::mov)) {
        return kNone;
      }
      version = result_.source(version, 1);
    }
    return kNone;
  }

  void variables(std::uint32_t loop) {
    const std::uint32_t header = forest_.loops()[loop].header;
    const auto predecessors = cfg_.predecessors(header);
    for (const std::uint32_t phi : versions_.phis(header)) {
      const auto inputs = versions_.inputs(phi);
      std::uint32_t next = kNone;
      bool one = true;
      for (std::size_t i = 0; i < inputs.size() && one; ++i) {
        if (!forest_.contains(loop, predecessors[i]) || inputs[i] == kNone) continue;
        one = next == kNone || next == inputs[i];
        next = inputs[i];
      }
      if (!one || next == kNone || next == phi) continue;
      Induction variable;
      variable.phi = phi;
      variable.next = next;
      if (step(loop, variable)) {
        variable.start = start(loop, variable);
        auto& variables = result_.loops_[loop].variables;
        const auto number = static_cast<std::uint32_t>(variables.size());
        result_.variable_of_[phi] = number;
        // The increment of an inner loop's variable is none of an outer one's.
        result_.variable_of_[result_.root(next)] = number;
        variables.push_back(variable);
      }
    }
  }

  // Whether next is phi plus something that the loop does not change.
  bool step(std::uint32_t loop, Induction& variable) {
    const std::uint32_t last = result_.root(variable.next);
    const Instruction* write = result_.definition(last);
    if (write == nullptr || (!write->is(Op::add) && !write->is(Op::sub))) return false;
    if (!forest_.contains(loop, versions_[last].block)) return false;
    variable.bits = ptx::bits(write->type());
    variable.increment = versions_[last].statement;
    const auto bits = ptx::bits(function_.type_of(index_[versions_[variable.phi].reg]));
    if (bits != variable.bits) return false;
    const auto operands = function_.operands_of(*write);
    for (const std::size_t operand : {std::size_t{1}, std::size_t{2}}) {
      const std::uint32_t version = result_.source(last, operand);
      if (version == kNone || result_.root(version) != variable.phi) continue;
      if (operand == 2 && write->is(Op::sub)) return false;
      const std::size_t other = 3 - operand;
      if (operands[other].kind == OperandKind::Integer) {
        variable.step = {LoopTerm::Kind::Constant, kNone, operands[other].value};
      } else {
        variable.step = result_.term(loop, result_.source(last, other));
      }
      if (!variable.step.known()) return false;
      if (variable.step.constant()) {
        if (write->is(Op::sub)) variable.step.value = 0 - variable.step.value;
        variable.step.value &= mask_of(variable.bits);
      } else {
        variable.subtracts = write->is(Op::sub);
      }
      return true;
    }
    return false;
  }

  LoopTerm start(std::uint32_t loop, const Induction& variable) {
    const auto inputs = versions_.inputs(variable.phi);
    LoopTerm found;
    for (const Inductions::Entry& entry : result_.loops_[loop].entries) {
      const std::uint32_t version = inputs[entry.input];
      if (version == kNone) return {};
      const LoopTerm here = result_.term(kNone, version);
      if (found.known() && !(found == here)) return {};
      found = here;
    }
    return found;
  }

  void tests(std::uint32_t loop) {
    const std::uint32_t header = forest_.loops()[loop].header;
    for (const std::uint32_t block : forest_.nodes(loop)) {
      const std::uint32_t branch = cfg_.blocks()[block].terminator;
      if (branch == kNone || !function_.body[branch].is(Op::bra)) continue;
      const auto successors = cfg_.successors(block);
      if (!function_.body[branch].guard.present() || successors.size() != 2) continue;
      const bool first = forest_.contains(loop, successors[0]);
      if (first == forest_.contains(loop, successors[1])) continue;
      LoopTest test;
      test.block = block;
      test.branch = branch;
      test.stays = successors[first ? 0 : 1];
      test.leaves = successors[first ? 1 : 0];
      test.top = block == header && test.stays != header;
      test.every_iteration = true;
      for (const std::uint32_t from : cfg_.predecessors(header)) {
        if (forest_.contains(loop, from) && !cfg_.dominators().dominates(block, from)) {
          test.every_iteration = false;
        }
      }
      bool negated = false;
      const std::uint32_t setp = condition(block, test.stays, negated);
      if (setp != kNone && forest_.contains(loop, cfg_.block_of(setp))) {
        test.goes_on = result_.comparison(loop, setp);
        if (test.goes_on && negated) test.goes_on->relation = opposite(test.goes_on->relation);
        if (test.goes_on && !test.goes_on->bound.known()) test.goes_on.reset();
      }
      result_.loops_[loop].tests.push_back(test);
    }
  }

  Inductions& result_;
  const ptx::Function& function_;
  const Cfg& cfg_;
  const RegisterIndex& index_;
  const Versions& versions_;
  const LoopForest& forest_;
};

Inductions::Inductions(const ptx::Function& function, const Cfg& cfg, const RegisterIndex& index,
                       const Versions& versions)
    : function_(&function), cfg_(&cfg), index_(&index), versions_(&versions) {
  InductionReader(*this).read();
}

}  // namespace ptxgen::inline v0::analysis
