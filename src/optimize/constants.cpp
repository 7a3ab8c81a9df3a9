// src/optimize/constants.cpp - sparse conditional constant propagation
#include "optimize/constants.hpp"

#include <algorithm>

#include "ptxgen/ptx/operand_specs.hpp"

namespace ptxgen::inline v0::optimize {

using namespace ptx;
using analysis::Outcome;
using analysis::VersionUse;
using Version = analysis::Version;

Constants::Constants(const Function& function, const analysis::Cfg& cfg,
                     const analysis::RegisterIndex& index, const analysis::Versions& versions,
                     bool names)
    : function_(function),
      cfg_(cfg),
      index_(index),
      versions_(versions),
      cells_(versions.size()),
      ways_(cfg.exit() + std::size_t{1}, 0),
      settled_(function.body.size(), false),
      nothing_known_(function.body.size(), false),
      names_(names) {
  number_edges();
  find_tables();
  solve();
}

// The number that each edge has among the predecessors of the block it leads to: predecessors are
// in the order of the blocks that they are.
void Constants::number_edges() {
  std::vector<std::uint32_t> next(cfg_.exit() + std::size_t{1}, 0);
  first_edge_.reserve(cfg_.exit() + std::size_t{1});
  edge_.reserve(cfg_.exit() * std::size_t{2});
  first_edge_.push_back(0);
  for (std::uint32_t b = 0; b < cfg_.exit(); ++b) {
    for (const std::uint32_t to : cfg_.successors(b)) edge_.push_back(next[to]++);
    first_edge_.push_back(static_cast<std::uint32_t>(edge_.size()));
  }
}

void Constants::find_tables() {
  const auto& body = function_.body;
  if (std::none_of(body.begin(), body.end(),
                   [](const Instruction& s) { return s.is(Op::brx_idx); }))
    return;
  one_target_.assign(cfg_.exit(), kNone);
  label_block_.assign(function_.labels.size(), kNone);
  table_.assign(function_.labels.size(), kNone);
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    if (body[i].operand_count == 0) continue;
    const Operand& name = function_.operands_of(body[i])[0];
    if (name.kind != OperandKind::Label || name.id >= table_.size()) continue;
    if (body[i].kind == StatementKind::Label) label_block_[name.id] = cfg_.block_of(i);
    if (body[i].kind == StatementKind::BranchTargets) table_[name.id] = i;
  }
}

// The target block of a brx.idx with that index; kNone if unknown.
std::uint32_t Constants::only_target(std::uint32_t statement, std::uint64_t index) const {
  const auto operands = function_.operands_of(function_.body[statement]);
  if (operands.size() < 2 || operands[1].kind != OperandKind::Label) return kNone;
  const std::uint32_t table = operands[1].id < table_.size() ? table_[operands[1].id] : kNone;
  if (table == kNone) return kNone;
  const auto labels = function_.operands_of(function_.body[table]).subspan(1);
  if (index >= labels.size() || labels[index].kind != OperandKind::Label) return kNone;
  return labels[index].id < label_block_.size() ? label_block_[labels[index].id] : kNone;
}

void Constants::solve() {
  for (std::uint32_t v = 0; v < versions_.size(); ++v) {
    if (versions_[v].kind == Version::Kind::Entry) cells_[v].state = State::Varies;
  }
  enter(0, kNone);
  while (!open_blocks_.empty() || !open_versions_.empty()) {
    if (!open_versions_.empty()) {
      const std::uint32_t version = open_versions_.back();
      open_versions_.pop_back();
      for (const VersionUse& use : versions_.uses(version)) {
        if (use.returned()) continue;
        std::uint32_t reader = use.statement;
        if (reader == kNone && versions_[use.version].kind == Version::Kind::Phi) {
          const std::uint32_t block = versions_[use.version].block;
          const auto inputs = versions_.inputs(use.version);
          const auto before = cfg_.predecessors(block);
          if (ways_[block] == 0 || cells_[use.version].state == State::Varies) continue;
          for (std::size_t i = 0; i < inputs.size(); ++i) {
            const bool open = i == before.size() || leads(before[i], block);
            if (inputs[i] == version && open) lower(use.version, cells_[version]);
          }
          continue;
        }
        if (reader == kNone) reader = versions_[use.version].statement;
        const std::uint32_t block = cfg_.block_of(reader);
        if (ways_[block] == 0 || (ways_[block] & kWaits) != 0) continue;
        visit_statement(reader);
        if (cfg_.blocks()[block].terminator == reader) visit_end(block);
      }
      continue;
    }
    const std::uint32_t block = open_blocks_.back();
    open_blocks_.pop_back();
    ways_[block] = static_cast<std::uint8_t>(ways_[block] & ~kWaits);
    for (std::uint32_t i = cfg_.blocks()[block].first; i < cfg_.blocks()[block].end; ++i)
      visit_statement(i);
    visit_end(block);
  }
}

// Marks the edge from a predecessor (its number) as executable, or the entry of the function.
void Constants::enter(std::uint32_t block, std::uint32_t predecessor) {
  for (const std::uint32_t phi : versions_.phis(block)) {
    const auto inputs = versions_.inputs(phi);
    const std::uint32_t input = predecessor == kNone ? inputs.back() : inputs[predecessor];
    if (input != kNone) lower(phi, cells_[input]);
  }
  if (ways_[block] != 0) return;
  ways_[block] = kExecuted;
  if (block == cfg_.exit()) return;
  ways_[block] |= kWaits;
  open_blocks_.push_back(block);
}

bool Constants::leads(std::uint32_t from, std::uint32_t to) const {
  const std::uint8_t ways = ways_[from];
  if ((ways & kFallsThrough) != 0 && to == from + 1) return true;
  if ((ways & kOneTarget) != 0 && one_target_[from] == to) return true;
  if ((ways & kTaken) == 0) return false;
  const std::uint32_t end = cfg_.blocks()[from].terminator;
  return function_.body[end].op == Op::brx_idx || cfg_.successors(from).front() == to;
}

void Constants::open(std::uint32_t block, std::uint8_t way) {
  if ((ways_[block] & way) != 0) return;
  const auto successors = cfg_.successors(block);
  for (std::size_t k = 0; k < successors.size(); ++k) {
    const bool before = leads(block, successors[k]);
    ways_[block] |= way;
    const bool opened = !before && leads(block, successors[k]);
    ways_[block] = static_cast<std::uint8_t>(ways_[block] & ~way);
    if (opened) enter(successors[k], edge_[first_edge_[block] + k]);
  }
  ways_[block] |= way;
}

void Constants::visit_end(std::uint32_t block) {
  const std::uint32_t end = cfg_.blocks()[block].terminator;
  if (end == kNone) {
    open(block, kFallsThrough);
    return;
  }
  const Cell guard = guard_cell(end);
  if (guard.state == State::Undecided) return;
  const bool varies = guard.state == State::Varies;
  if (varies || guard.bits != 0) {
    Cell index{State::Varies, 0};
    if (function_.body[end].op == Op::brx_idx)
      index = operand(end, 0, operand_spec(function_, function_.body[end], 0));
    if (index.state == State::Constant) one_target_[block] = only_target(end, index.bits);
    const bool one = index.state == State::Constant && one_target_[block] != kNone;
    if (index.state != State::Undecided) open(block, one ? kOneTarget : kTaken);
  }
  if (varies || guard.bits == 0) open(block, kFallsThrough);
}

unsigned Constants::width(Register reg) const {
  const RegisterDecl& decl = function_.registers[reg.decl.value];
  return decl.vector == 1 ? bits(decl.type) : 0;
}

Constants::Cell Constants::cell(std::uint32_t statement, Register reg) const {
  const std::uint32_t number = index_.find(reg);
  const std::uint32_t version = number == kNone ? kNone : versions_.read(statement, number);
  return version == kNone ? Cell{State::Varies, 0} : cells_[version];
}

// 1 where the guard holds, and where there is none.
Constants::Cell Constants::guard_cell(std::uint32_t statement) const {
  const Guard& guard = function_.body[statement].guard;
  if (!guard.present()) return {State::Constant, 1};
  Cell found = cell(statement, guard.predicate);
  if (guard.negated) found.bits ^= 1;
  return found;
}

GuardState Constants::guard(std::uint32_t statement) const {
  const Cell found = guard_cell(statement);
  if (found.state != State::Constant) return GuardState::Unknown;
  return found.bits != 0 ? GuardState::Always : GuardState::Never;
}

// A source operand in its type.
Constants::Cell Constants::operand(std::uint32_t statement, std::size_t i,
                                   const OperandSpec* spec) const {
  const Instruction& s = function_.body[statement];
  const Operand& o = function_.operands_of(s)[i];
  if (spec == nullptr || spec->role == OperandRole::Destination) return {State::Varies, 0};
  Cell found{State::Varies, 0};
  if (o.kind == OperandKind::Register) {
    found = cell(statement, o.as_register());
    if (found.state == State::Varies) return found;
  }
  if (operand_elements(s, *spec) != 0) return {State::Varies, 0};
  const Type type = operand_type(s, *spec);
  const unsigned wanted = bits(type);
  if (wanted == 0 || wanted > 64) return {State::Varies, 0};
  if (o.kind != OperandKind::Register) {
    const auto constant = analysis::constant_bits(o, type);
    return constant ? Cell{State::Constant, *constant} : Cell{State::Varies, 0};
  }
  const unsigned own = width(o.as_register());
  if (o.component != 0 || own < wanted || own > 64) return {State::Varies, 0};
  found.bits = analysis::low_bits(found.bits, wanted);
  if (o.negated) found.bits ^= 1;
  return found;
}

std::optional<std::uint64_t> Constants::source(std::uint32_t statement, std::size_t i) const {
  const Cell found = operand(statement, i, operand_spec(function_, function_.body[statement], i));
  return found.state == State::Constant ? std::optional(found.bits) : std::nullopt;
}

std::optional<std::uint64_t> Constants::source(std::uint32_t statement, std::size_t i,
                                               const OperandSpec& spec) const {
  const Cell found = operand(statement, i, &spec);
  return found.state == State::Constant ? std::optional(found.bits) : std::nullopt;
}

Outcome Constants::outcome(std::uint32_t statement, bool names) const {
  const Instruction& s = function_.body[statement];
  const std::size_t operands = function_.operands_of(s).size();
  // No operand can have become known since. The solver does not look at copies of what varies.
  if (nothing_known_[statement] && s.op != Op::mov && s.op != Op::cvt_int) return {};
  const OperandSpecs specs(function_, s);
  known_.assign(operands, std::nullopt);
  for (std::size_t i = 0; i < operands; ++i) {
    const Cell found = operand(statement, i, specs[i]);
    if (found.state == State::Constant) known_[i] = found.bits;
  }
  return analysis::evaluate(function_, s, specs, known_, names);
}

void Constants::lower(std::uint32_t version, Cell to) {
  Cell& own = cells_[version];
  if (own.state == State::Varies || to.state == State::Undecided) return;
  if (own.state == State::Constant) {
    if (to.state == State::Constant && to.bits == own.bits) return;
    own.state = State::Varies;
  } else {
    own = to;
  }
  open_versions_.push_back(version);
}

// long because evaluation and writing share what is known of the statement
void Constants::visit_statement(std::uint32_t statement) {
  const Instruction& s = function_.body[statement];
  if (s.kind != StatementKind::Instruction || settled_[statement]) return;
  const auto operands = function_.operands_of(s);
  const OperandSpecs specs(function_, s);
  const Cell guard = guard_cell(statement);
  if (guard.state == State::Undecided) return;
  Outcome outcome;
  const unsigned flags = static_cast<unsigned>(info(s.op).flags);
  if ((flags & ~static_cast<unsigned>(Flag::Commutative)) == 0) {
    bool undecided = false;
    known_.assign(operands.size(), std::nullopt);
    bool any_known = false, twice = false;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Cell found = operand(statement, i, specs[i]);
      undecided = undecided || found.state == State::Undecided;
      if (found.state == State::Constant) known_[i] = found.bits;
      any_known = any_known || found.state == State::Constant;
      twice = twice || (i > 1 && operands[i].kind == OperandKind::Register &&
                        operands[i] == operands[i - 1]);
    }
    if (undecided) return;
    rests_on_names_ = rests_on_names_ || (twice && names_);
    // Values follow from values, or from a register used twice; and what does not follow
    // now does not either when less is known.
    if (any_known || twice) outcome = analysis::evaluate(function_, s, specs, known_, names_);
    nothing_known_[statement] = outcome.kind == Outcome::Kind::Unknown && (names_ || !twice);
  }
  std::size_t destination = 0;
  bool all_vary = true;
  const auto write = [&](const Operand& o, std::size_t i, std::size_t which) {
    if (o.kind != OperandKind::Register) return;
    const std::uint32_t reg = index_.find(o.as_register());
    const std::uint32_t version = reg == kNone ? kNone : versions_.written(statement, reg);
    if (version == kNone) return;
    Cell result{State::Varies, 0};
    const unsigned own = width(o.as_register());
    if (outcome.kind == Outcome::Kind::Values && which < 2 && o.component == 0 && own != 0 &&
        own <= 64) {
      const Type type = operand_type(s, *specs[i]);
      result = {State::Constant,
                analysis::low_bits(analysis::extended(outcome.values[which], type), own)};
    }
    const std::uint32_t previous = versions_[version].previous;
    if (previous != kNone && o.component == 0 && guard.state == State::Constant) {
      lower(version, guard.bits != 0 ? result : cells_[previous]);
    } else {
      lower(version, result);
      if (previous != kNone) lower(version, cells_[previous]);
    }
    all_vary = all_vary && cells_[version].state == State::Varies;
  };
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec* spec = specs[i];
    if (spec == nullptr ||
        (spec->role != OperandRole::Destination && spec->role != OperandRole::Returns))
      continue;
    if (operands[i].kind == OperandKind::Vector || operands[i].kind == OperandKind::List) {
      for (const Operand& element : function_.elements(operands[i])) write(element, i, 2);
    } else {
      write(operands[i], i, destination++);
    }
  }
  settled_[statement] = all_vary;
}

}  // namespace ptxgen::inline v0::optimize
