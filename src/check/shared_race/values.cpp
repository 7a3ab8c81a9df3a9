// src/check/shared_race/values.cpp - threads of a block that store the same value
#include "check/shared_race/values.hpp"

#include <algorithm>
#include <set>

#include "analysis/uniformity_sources.hpp"
#include "check/known_values.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;
using analysis::Agreement;
using analysis::ResultKind;
using analysis::Version;

namespace {

// Iterations until the classes of loops must be stable; code that needs more is not followed.
constexpr int kMaxIterations = 12;
constexpr std::size_t kMaxVersions = 4000;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The opcode with its modifiers.
std::uint64_t number_of(const Instruction& s) {
  std::uint64_t number = mix(1, static_cast<std::uint64_t>(s.op));
  for (const Modifier modifier : s.modifiers)
    number = mix(number, static_cast<std::uint64_t>(modifier));
  return number;
}

bool is_ordered(const Instruction& s) {
  const Modifier order = s.get(Field::Order);
  return order != Modifier::none && order != Modifier::weak;
}

/// The source lane of `shfl.sync`, as in the PTX manual.
std::uint32_t source_lane(Modifier mode, std::uint32_t lane, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t segment = c >> 8 & 31u, clamp = c & 31u;
  const std::uint32_t last = (lane & segment) | (clamp & ~segment), first = lane & segment;
  b &= 31u;
  switch (mode) {
    case Modifier::up:
      return static_cast<std::int32_t>(lane) - static_cast<std::int32_t>(b) >=
                     static_cast<std::int32_t>(last)
                 ? lane - b
                 : lane;
    case Modifier::down:
      return lane + b <= last ? lane + b : lane;
    case Modifier::bfly:
      return (lane ^ b) <= last ? lane ^ b : lane;
    default: {
      const std::uint32_t from = first | (b & ~segment);
      return from <= last ? from : lane;
    }
  }
}

/// Renumbers classes with small numbers.
std::size_t renumber(std::vector<std::uint64_t>& column) {
  std::map<std::uint64_t, std::uint64_t> numbers;
  for (std::uint64_t& value : column) value = numbers.emplace(value, numbers.size()).first->second;
  return numbers.size();
}

}  // namespace

ThreadValueClasses::ThreadValueClasses(analysis::Facts& facts, const analysis::Affine& affine,
                                       std::array<std::uint32_t, 3> shape)
    : facts_(facts),
      affine_(affine),
      shape_(shape),
      forms_(facts, affine, shape),
      threads_(forms_.threads()) {}

const ThreadClasses& ThreadValueClasses::of(std::uint32_t statement, std::uint32_t operand) {
  const auto [at, inserted] = classes_.try_emplace({statement, operand});
  ThreadClasses& classes = at->second;
  if (!inserted) return classes;
  const Function& function = facts_.function();
  const Operand& value = function.operands_of(function.body[statement])[operand];
  std::vector<std::uint32_t> versions;
  const auto add = [&](const Operand& o) {
    if (o.kind != OperandKind::Register) return;
    const std::uint32_t reg = facts_.index().find(o.as_register());
    const std::uint32_t version = reg == kNone ? kNone : facts_.versions().read(statement, reg);
    if (version != kNone) versions.push_back(version);
  };
  add(value);
  if (value.kind == OperandKind::Vector || value.kind == OperandKind::List) {
    for (const Operand& element : function.elements(value)) add(element);
  }
  bool followed = true;
  for (const std::uint32_t version : versions) {
    followed = followed && follow(version);
    const auto crosses = crosses_.find(version);
    classes.crosses_lanes |= crosses != crosses_.end() && crosses->second;
  }
  if (followed) {
    classes.of = of_operand(statement, value);
  } else {
    classes.of = constant(0);
    separate(classes.of, Agreement::None);
    classes.crosses_lanes = true;
  }
  return classes;
}

// Sources of a value ------------------------------------------------------------------------------

/// Values that depend on the thread index alone, or that all threads share.
bool ThreadValueClasses::known_at_once(std::uint32_t version) {
  if (columns_.contains(version)) return true;
  const Version& v = facts_.versions()[version];
  if (facts_.uniformity().of(v.reg) >= Agreement::Block) {
    columns_[version] = constant(mix(2, version));
    return true;
  }
  if (v.kind == Version::Kind::Entry) {
    Column column = constant(mix(3, version));
    separate(column, Agreement::None);
    columns_[version] = std::move(column);
    return true;
  }
  const auto values = forms_.values(affine_.of_version(version, v.block));
  if (!values) return false;
  Column& column = columns_[version];
  for (const std::int64_t value : *values)
    column.push_back(mix(4, static_cast<std::uint64_t>(value)));
  return true;
}

void ThreadValueClasses::add_inputs(std::uint32_t version, std::vector<std::uint32_t>& inputs) {
  const analysis::Versions& versions = facts_.versions();
  const Version& v = versions[version];
  if (v.kind == Version::Kind::Phi) {
    for (const std::uint32_t input : versions.inputs(version)) {
      if (input != kNone) inputs.push_back(input);
    }
    return;
  }
  if (v.previous != kNone) inputs.push_back(v.previous);
  const Function& function = facts_.function();
  analysis::for_each_access(
      function, function.body[v.statement], [&](const analysis::RegisterAccess& access) {
        const std::uint32_t reg = access.write ? kNone : facts_.index().find(access.reg);
        const std::uint32_t input = reg == kNone ? kNone : versions.read(v.statement, reg);
        if (input != kNone) inputs.push_back(input);
      });
}

/// Computes the columns of a version and of its sources. False if that is too much work.
bool ThreadValueClasses::follow(std::uint32_t version) {
  if (known_at_once(version)) return true;
  struct Open {
    std::uint32_t version;
    std::vector<std::uint32_t> inputs;
  };
  std::vector<std::uint32_t> order;
  std::set<std::uint32_t> seen{version};
  std::vector<Open> open{{version, {}}};
  add_inputs(version, open.back().inputs);
  bool crosses = false;
  while (!open.empty()) {
    if (open.back().inputs.empty()) {
      const Version& v = facts_.versions()[open.back().version];
      crosses |= v.kind == Version::Kind::Write &&
                 has(info(facts_.function().body[v.statement].op).flags, Flag::Convergent);
      order.push_back(open.back().version);
      open.pop_back();
      continue;
    }
    const std::uint32_t input = open.back().inputs.back();
    open.back().inputs.pop_back();
    const auto earlier = crosses_.find(input);
    crosses |= earlier != crosses_.end() && earlier->second;
    if (!seen.insert(input).second || known_at_once(input)) continue;
    if (seen.size() > kMaxVersions) return false;
    open.push_back({input, {}});
    add_inputs(input, open.back().inputs);
  }
  solve(order);
  for (const std::uint32_t one : order) crosses_[one] = crosses;
  return true;
}

/// `order`: inputs first, except in loops. Values carried by loops start with one class for all
/// threads, which is split like the classes of their inputs until nothing changes.
void ThreadValueClasses::solve(const std::vector<std::uint32_t>& order) {
  std::map<std::uint32_t, std::size_t> classes;  // of each phi
  for (const std::uint32_t version : order) {
    if (facts_.versions()[version].kind != Version::Kind::Phi) continue;
    columns_[version] = constant(mix(5, version));
    classes[version] = 1;
  }
  bool changed = true;
  for (int i = 0; changed && i < kMaxIterations; ++i) {
    // In the first pass inputs of phis may be missing.
    changed = i == 0 && !classes.empty();
    const std::uint64_t results = order.size() * std::uint64_t{threads_};
    if (work_ < results) break;
    work_ -= results;
    for (const std::uint32_t version : order) {
      Column column = evaluated(version);
      const auto phi = classes.find(version);
      if (phi != classes.end()) {
        const std::size_t count = renumber(column);
        for (std::uint64_t& value : column) value = mix(mix(5, version), value);
        changed |= count != phi->second;
        phi->second = count;
      }
      columns_[version] = std::move(column);
    }
  }
  if (!changed) return;
  // No fixed point: all threads differ.
  for (const std::uint32_t version : order) {
    Column column = constant(mix(6, version));
    separate(column, Agreement::None);
    columns_[version] = std::move(column);
  }
}

ThreadValueClasses::Column ThreadValueClasses::evaluated(std::uint32_t version) {
  return facts_.versions()[version].kind == Version::Kind::Phi ? of_phi(version)
                                                               : of_write(version);
}

ThreadValueClasses::Column ThreadValueClasses::of_phi(std::uint32_t version) {
  const Version& v = facts_.versions()[version];
  const analysis::Cfg& cfg = facts_.cfg();
  Column result = constant(0);
  Agreement agreed = Agreement::Grid;
  for (const std::uint32_t from : cfg.predecessors(v.block)) {
    agreed = analysis::weaker(agreed, facts_.uniformity().of_control(from));
    if (cfg.successors(from).size() > 1)
      agreed = analysis::weaker(agreed, facts_.uniformity().of_branch(from));
  }
  if (v.block == 0) agreed = Agreement::None;
  for (const std::uint32_t input : facts_.versions().inputs(version)) {
    if (input == kNone) continue;
    const auto column = columns_.find(input);
    // A loop input in the first pass: one class, like the phi itself.
    for (std::uint32_t t = 0; t < threads_; ++t)
      result[t] = mix(result[t], column == columns_.end() ? 0 : column->second[t]);
  }
  separate(result, agreed);
  return result;
}

ThreadValueClasses::Column ThreadValueClasses::of_write(std::uint32_t version) {
  const Version& v = facts_.versions()[version];
  const Function& function = facts_.function();
  const Instruction& s = function.body[v.statement];
  // The number of the result: an instruction may write several registers.
  std::uint64_t result = 0, place = 0;
  analysis::for_each_access(function, s, [&](const analysis::RegisterAccess& access) {
    if (!access.write) return;
    if (facts_.index().find(access.reg) == v.reg) place = result;
    ++result;
  });
  Column computed = constant(mix(number_of(s), place));
  const Agreement control = facts_.uniformity().of_control(v.block);
  switch (analysis::result_kind(facts_.module(), function, s)) {
    case ResultKind::Computed:
    case ResultKind::Capped:
      of_sources(s, v.statement, computed);
      if (analysis::reads_carry(s) || analysis::writes_carry(s))
        separate(computed, Agreement::None);
      break;
    case ResultKind::Immutable:
    case ResultKind::Loaded:
      computed = constant(mix(computed[0], v.statement));
      of_sources(s, v.statement, computed);
      separate(computed, is_ordered(s) ? Agreement::None : control);
      break;
    default:
      exchange(s, v.statement, version, computed);
      break;
  }
  if (!s.guard.present() && !v.partial) return computed;
  const Column guard =
      s.guard.present() ? of_operand(v.statement, Operand::reg(s.guard.predicate)) : constant(7);
  for (std::uint32_t t = 0; t < threads_; ++t) {
    computed[t] = mix(computed[t], guard[t]);
    const auto previous = columns_.find(v.previous);
    if (previous != columns_.end()) computed[t] = mix(computed[t], previous->second[t]);
  }
  return computed;
}

// Instructions --------------------------------------------------------------------------------

void ThreadValueClasses::of_sources(const Instruction& s, std::uint32_t statement, Column& result) {
  const Function& function = facts_.function();
  const auto operands = function.operands_of(s);
  std::vector<Column> sources;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec* spec = operand_spec(function, s, i);
    if (spec != nullptr && spec->role == OperandRole::Destination) continue;
    sources.push_back(of_operand(statement, operands[i]));
  }
  // A copy of all bits is the value itself.
  const bool copies = s.is(Op::mov) && operands.size() == 2 && sources.size() == 1 &&
                      operands[0].kind == OperandKind::Register && operands[0].component == 0 &&
                      operands[1].kind == OperandKind::Register && operands[1].component == 0;
  if (copies) {
    result = std::move(sources[0]);
    return;
  }
  const bool commutes = has(info(s.op).flags, Flag::Commutative) && sources.size() >= 2;
  for (std::uint32_t t = 0; t < threads_; ++t) {
    if (commutes && sources[0][t] > sources[1][t]) std::swap(sources[0][t], sources[1][t]);
    for (const Column& source : sources) result[t] = mix(result[t], source[t]);
  }
}

/// Exchanges between lanes of a warp; results of other instructions differ in all threads.
void ThreadValueClasses::exchange(const Instruction& s, std::uint32_t statement,
                                  std::uint32_t version, Column& result) {
  const Function& function = facts_.function();
  const auto operands = function.operands_of(s);
  const Agreement control = facts_.uniformity().of_control(facts_.cfg().block_of(statement));
  const bool together = control >= Agreement::Warp && !s.guard.present() && threads_ % 32 == 0 &&
                        operands.size() >= 3 &&
                        constant_of(statement, operands.back()) == 0xffffffffu;
  const bool reduces =
      analysis::result_kind(facts_.module(), function, s) == ResultKind::Collective;
  if (together && s.op == Op::shfl_sync) return shuffle(s, statement, version, result);
  if (!together || !reduces) {
    result = constant(mix(result[0], version));
    return separate(
        result, reduces ? facts_.uniformity().of(facts_.versions()[version].reg) : Agreement::None);
  }
  Column values = of_operand(statement, operands[operands.size() - 2]);
  for (std::uint32_t first = 0; first < threads_; first += 32) {
    const auto warp = values.begin() + first;
    // The result of a vote depends on the order of lanes, that of a reduction does not.
    if (s.op != Op::vote_sync_ballot && s.op != Op::match_all) std::sort(warp, warp + 32);
    std::uint64_t all = result[first];
    for (std::uint32_t lane = 0; lane < 32; ++lane) all = mix(all, values[first + lane]);
    std::fill_n(result.begin() + first, 32, all);
  }
  separate(result, control);
}

void ThreadValueClasses::shuffle(const Instruction& s, std::uint32_t statement,
                                 std::uint32_t version, Column& result) {
  const Function& function = facts_.function();
  const auto operands = function.operands_of(s);
  if (operands.size() < 5) return separate(result, Agreement::None);
  const auto b = constant_of(statement, operands[operands.size() - 3]);
  const auto c = constant_of(statement, operands[operands.size() - 2]);
  // The predicate that the source lane was in range is not followed.
  const bool value =
      operands[0].kind == OperandKind::Register &&
      facts_.index().find(operands[0].as_register()) == facts_.versions()[version].reg;
  if (!value || !b || !c) return separate(result, Agreement::None);
  const Column values = of_operand(statement, operands[operands.size() - 4]);
  for (std::uint32_t t = 0; t < threads_; ++t) {
    const std::uint32_t from = source_lane(s.get(Field::ShuffleMode), t % 32, *b, *c);
    result[t] = values[t / 32 * 32 + from];
  }
}

/// A constant, or a register written by a move of one, as nvcc prints masks and distances.
std::optional<std::uint32_t> ThreadValueClasses::constant_of(std::uint32_t statement,
                                                             const Operand& operand) {
  if (operand.kind == OperandKind::Integer) return static_cast<std::uint32_t>(operand.value);
  if (operand.kind != OperandKind::Register) return {};
  const std::uint32_t reg = facts_.index().find(operand.as_register());
  const std::uint32_t version = reg == kNone ? kNone : facts_.versions().read(statement, reg);
  if (version == kNone) return {};
  const Version& v = facts_.versions()[version];
  if (v.kind != Version::Kind::Write || v.partial) return {};
  const Function& function = facts_.function();
  const Instruction& s = function.body[v.statement];
  const auto operands = function.operands_of(s);
  if (!s.is(Op::mov) || operands.size() != 2 || operands[1].kind != OperandKind::Integer) return {};
  return static_cast<std::uint32_t>(operands[1].value);
}

ThreadValueClasses::Column ThreadValueClasses::of_operand(std::uint32_t statement,
                                                          const Operand& operand) {
  const Function& function = facts_.function();
  const OperandKind kind = operand.kind == OperandKind::Memory ? operand.base : operand.kind;
  const std::uint64_t offset = operand.kind == OperandKind::Memory ? operand.value : 0;
  switch (kind) {
    case OperandKind::Register: {
      const std::uint32_t reg = facts_.index().find(operand.as_register());
      const std::uint32_t version = reg == kNone ? kNone : facts_.versions().read(statement, reg);
      const auto at = columns_.find(version);
      if (version == kNone || at == columns_.end()) break;
      if (offset == 0 && operand.component == 0 && !operand.negated) return at->second;
      Column result = at->second;
      for (std::uint64_t& value : result)
        value = mix(mix(value, offset), operand.component * 2u + (operand.negated ? 1u : 0u));
      return result;
    }
    case OperandKind::Special: {
      Column result = constant(mix(8, operand.id * 8u + operand.component));
      const auto reg = static_cast<SpecialRegister>(operand.id);
      for (std::uint32_t t = 0; t < threads_; ++t) {
        const auto known = index_value(reg, operand.component, t, shape_, true);
        if (!known) {
          separate(result, analysis::of_special(reg, operand.component, shape_));
          return result;
        }
        result[t] = mix(4, *known);
      }
      return result;
    }
    case OperandKind::Vector:
    case OperandKind::List: {
      Column result = constant(9);
      for (const Operand& element : function.elements(operand)) {
        const Column column = of_operand(statement, element);
        for (std::uint32_t t = 0; t < threads_; ++t) result[t] = mix(result[t], column[t]);
      }
      return result;
    }
    case OperandKind::Symbol:
      return constant(mix(mix(10, operand.id), operand.value));
    default:
      return constant(mix(4, operand.value));
  }
  Column result = constant(11);
  separate(result, Agreement::None);
  return result;
}

void ThreadValueClasses::separate(Column& column, Agreement agreed) const {
  if (agreed >= Agreement::Block) return;
  for (std::uint32_t t = 0; t < threads_; ++t)
    column[t] = mix(column[t], agreed == Agreement::Warp ? 2 * (t / 32) : 2 * t + 1);
}

}  // namespace ptxgen::inline v0::gates
