// src/analysis/diff/code_graph.cpp - a function as a graph without names and order
#include "analysis/diff/code_graph.hpp"

#include <algorithm>

#include "ptx/vector_elements.hpp"
#include "ptxgen/analysis/memory_order.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

std::uint64_t mix(std::uint64_t seed, std::uint64_t value) noexcept {
  const std::uint64_t both[] = {seed, value};
  return hash64(both, sizeof both);
}

namespace {

std::uint64_t hash_of(std::string_view text) { return hash64(text.data(), text.size()); }

// Parameters are the same if they have the same place, whatever their names.
std::uint64_t hash_of_symbol(const Module& module, std::uint32_t id) {
  if (id >= module.symbols.size()) return id;
  const Symbol& symbol = module.symbols[id];
  const auto kind = static_cast<std::uint64_t>(symbol.kind);
  if (symbol.kind == SymbolKind::Parameter || symbol.kind == SymbolKind::Return) {
    return mix(kind, symbol.index);
  }
  return mix(kind, hash_of(module.text(symbol.name)));
}

std::uint64_t shape_of(const Module& module, const Function& function, const Operand& operand) {
  std::uint64_t shape =
      mix(static_cast<std::uint64_t>(operand.kind),
          static_cast<std::uint64_t>(operand.base) << 16 | std::uint64_t{operand.component} << 8 |
              std::uint64_t{operand.negated} << 1 | std::uint64_t{operand.joined});
  const auto of = operand.kind == OperandKind::Memory ? operand.base : operand.kind;
  switch (of) {
    case OperandKind::Register: {
      const Register reg = operand.as_register();
      shape = mix(shape, static_cast<std::uint64_t>(function.type_of(reg)));
      break;
    }
    case OperandKind::Special:
      shape = mix(shape, operand.id);
      break;
    case OperandKind::Symbol:
      shape = mix(shape, hash_of_symbol(module, operand.id));
      break;
    case OperandKind::Vector:
    case OperandKind::List:
      for (const Operand& element : function.elements(operand)) {
        shape = mix(shape, shape_of(module, function, element));
      }
      return shape;
    case OperandKind::Label:
      return shape;
    default:
      break;
  }
  return mix(shape, operand.value);
}

bool has_node(const Instruction& s) noexcept {
  return s.kind == StatementKind::Instruction || s.kind == StatementKind::Unknown ||
         s.kind == StatementKind::Pragma;
}

// The memory operand of a plain load or store, or nullptr.
const Operand* plain_address(const Function& function, const Instruction& s) {
  const OpInfo& row = info(s.op);
  if (row.mnemonic != "ld" && row.mnemonic != "st") return nullptr;
  for (const Operand& operand : function.operands_of(s)) {
    if (operand.kind == OperandKind::Memory) return &operand;
  }
  return nullptr;
}

bool is_weak(const Instruction& s) noexcept {
  const Modifier order = memory_order(s).order;
  return order == Modifier::none || order == Modifier::weak;
}

// Whether memory of the two spaces can be the same.
bool may_share(Space a, Space b) noexcept {
  const auto generic = [](Space space) { return space == Space::Generic; };
  const auto apart = [](Space space) { return space == Space::Param || space == Space::Const; };
  if (generic(a)) return !apart(b);
  if (generic(b)) return !apart(a);
  return a == b;
}

}  // namespace

std::uint64_t shape_of(const Module& module, const Function& function, const Instruction& s) {
  std::uint64_t shape = static_cast<std::uint64_t>(s.kind);
  if (s.kind != StatementKind::Instruction) return mix(shape, hash_of(module.text(s.text)));
  shape = mix(shape, static_cast<std::uint64_t>(s.op));
  for (const Modifier modifier : s.modifiers) shape = mix(shape, static_cast<unsigned>(modifier));
  shape = mix(shape, s.guard.present() ? 1u + s.guard.negated : 0u);
  for (const Operand& operand : function.operands_of(s)) {
    shape = mix(shape, shape_of(module, function, operand));
  }
  return shape;
}

CodeGraph::CodeGraph(const Module& module, const Function& function) : facts_(module, function) {
  add_nodes();
  connect_blocks();
  for (std::uint32_t s = 0; s < statements_.size(); ++s) {
    if (statements_[s] != kNone) connect_values(statements_[s]);
  }
  for (std::uint32_t v = 0; v < facts_.versions().size(); ++v) {
    if (facts_.versions()[v].kind == Version::Kind::Phi) connect_phi(v);
  }
  for (const Block& block : facts_.cfg().blocks()) connect_order(block);
}

std::uint32_t CodeGraph::add(CodeNode::Kind kind, std::uint32_t id, std::uint64_t shape) {
  nodes_.push_back({kind, id, mix(static_cast<std::uint64_t>(kind), shape), {}});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

void CodeGraph::add_nodes() {
  const Cfg& control = facts_.cfg();
  statements_.assign(function().body.size(), kNone);
  blocks_.assign(control.blocks().size(), kNone);
  versions_.assign(facts_.versions().size(), kNone);
  for (std::uint32_t b = 0; b < control.blocks().size(); ++b) {
    if (!control.reachable(b)) continue;
    blocks_[b] = add(CodeNode::Kind::Block, b, b == 0);
    for (std::uint32_t s = control.blocks()[b].first; s < control.blocks()[b].end; ++s) {
      const Instruction& statement = function().body[s];
      if (!has_node(statement)) continue;
      statements_[s] = add(CodeNode::Kind::Statement, s,
                           shape_of(facts_.module(), facts_.function(), statement));
      nodes_.back().inputs.push_back(
          {blocks_[b], static_cast<std::uint32_t>(Dependence::Block), Dependence::Block, 0});
    }
  }
  for (std::uint32_t v = 0; v < versions_.size(); ++v) {
    const Version& version = facts_.versions()[v];
    if (version.kind == Version::Kind::Phi && version.block < blocks_.size()) {
      versions_[v] = add(CodeNode::Kind::Phi, v, 0);
    }
  }
}

CodeEdge CodeGraph::edge_from(std::uint32_t block, std::uint32_t to, Dependence kind) {
  const Block& from = facts_.cfg().blocks()[block];
  const auto successors = facts_.cfg().successors(block);
  const auto at = std::find(successors.begin(), successors.end(), to) - successors.begin();
  const std::uint32_t node =
      from.terminator != kNone ? statements_[from.terminator] : blocks_[block];
  return {node, static_cast<std::uint32_t>(kind) + 16u * static_cast<std::uint32_t>(at), kind, 0};
}

void CodeGraph::connect_blocks() {
  for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b] == kNone) continue;
    for (const std::uint32_t from : facts_.cfg().predecessors(b)) {
      if (blocks_[from] == kNone) continue;
      nodes_[blocks_[b]].inputs.push_back(edge_from(from, b, Dependence::Edge));
    }
  }
}

std::uint32_t CodeGraph::entry_of(std::uint32_t version) {
  if (versions_[version] != kNone) return versions_[version];
  // A parameter in a register by its place; undefined registers by their type.
  const Register reg = facts_.index()[facts_.versions()[version].reg];
  std::uint64_t shape = mix(static_cast<std::uint64_t>(function().type_of(reg)), 0);
  for (std::uint32_t i = 0; i < function().parameters.size(); ++i) {
    if (function().parameters[i].decl == reg.decl) shape = mix(shape, i + 1);
  }
  return versions_[version] = add(CodeNode::Kind::Entry, version, shape);
}

void CodeGraph::connect_to_version(std::uint32_t node, std::uint32_t version, Dependence kind,
                                   std::uint32_t position) {
  const Version& read = facts_.versions()[version];
  auto role = static_cast<std::uint32_t>(kind) + 16 * position;
  std::uint32_t from = kNone;
  if (read.kind == Version::Kind::Write) {
    from = statements_[read.statement];
    // Which of the statement's results it is.
    std::uint32_t result = 0;
    for (const NumberedAccess& access : facts_.index().accesses(read.statement)) {
      if (!access.write) continue;
      if (access.reg == read.reg) break;
      ++result;
    }
    role += result << 20;
  } else {
    from = read.kind == Version::Kind::Phi ? versions_[version] : entry_of(version);
  }
  if (from != kNone) nodes_[node].inputs.push_back({from, role, kind, position});
}

void CodeGraph::connect_values(std::uint32_t node) {
  const std::uint32_t statement = nodes_[node].id;
  std::uint32_t position = 0;
  for (const NumberedAccess& access : facts_.index().accesses(statement)) {
    if (!access.write) {
      const std::uint32_t version = facts_.versions().read(statement, access.reg);
      if (version != kNone) connect_to_version(node, version, Dependence::Value, position);
      ++position;
      continue;
    }
    const std::uint32_t version = facts_.versions().written(statement, access.reg);
    if (version == kNone || !facts_.versions()[version].partial) continue;
    const std::uint32_t previous = facts_.versions()[version].previous;
    if (previous != kNone) connect_to_version(node, previous, Dependence::Previous, position);
  }
}

void CodeGraph::connect_phi(std::uint32_t version) {
  const std::uint32_t phi = versions_[version];
  const std::uint32_t block = facts_.versions()[version].block;
  if (phi == kNone || block >= blocks_.size()) return;
  nodes_[phi].inputs.push_back(
      {blocks_[block], static_cast<std::uint32_t>(Dependence::Block), Dependence::Block, 0});
  const auto predecessors = facts_.cfg().predecessors(block);
  const auto inputs = facts_.versions().inputs(version);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNone) continue;
    const std::uint32_t input = add(CodeNode::Kind::PhiInput, version, 0);
    connect_to_version(input, inputs[i], Dependence::PhiValue, 0);
    if (i < predecessors.size()) {
      nodes_[input].inputs.push_back(edge_from(predecessors[i], block, Dependence::PhiEdge));
    }
    nodes_[phi].inputs.push_back(
        {input, static_cast<std::uint32_t>(Dependence::PhiValue), Dependence::PhiValue, 0});
  }
}

bool CodeGraph::must_keep_order(std::uint32_t first, std::uint32_t second) {
  const Instruction& a = function().body[first];
  const Instruction& b = function().body[second];
  if (a.kind != StatementKind::Instruction || b.kind != StatementKind::Instruction) return true;
  if (may_swap(a, b)) return false;
  const Operand* const to_a = plain_address(function(), a);
  const Operand* const to_b = plain_address(function(), b);
  if (to_a == nullptr || to_b == nullptr || !is_weak(a) || !is_weak(b)) return true;
  if (!may_share(space_of(a.get(Field::Space)), space_of(b.get(Field::Space)))) return false;
  if (to_a->base != to_b->base) return true;
  if (to_a->base == OperandKind::Symbol && to_a->id != to_b->id) return false;
  if (to_a->base == OperandKind::Register) {
    const auto version = [&](std::uint32_t statement, const Operand& address) {
      return facts_.versions().read(statement, facts_.index().find(address.as_register()));
    };
    if (version(first, *to_a) != version(second, *to_b)) return true;
  }
  const auto bytes = [](const Instruction& s) {
    return std::int64_t{ptx::bytes(s.type())} * vector_elements(s);
  };
  return to_a->offset() < to_b->offset() + bytes(b) && to_b->offset() < to_a->offset() + bytes(a);
}

void CodeGraph::connect_order(const Block& block) {
  std::vector<std::uint32_t> ordered;
  for (std::uint32_t s = block.first; s < block.end; ++s) {
    const std::uint32_t node = statements_[s];
    if (node == kNone) continue;
    const Instruction& statement = function().body[s];
    if (statement.kind == StatementKind::Instruction) {
      const MemoryOrder order = memory_order(statement);
      if (!order.touches_memory() && !order.fixed) continue;
    }
    for (const std::uint32_t earlier : ordered) {
      if (!must_keep_order(earlier, s)) continue;
      nodes_[node].inputs.push_back({statements_[earlier],
                                     static_cast<std::uint32_t>(Dependence::Order),
                                     Dependence::Order, 0});
    }
    ordered.push_back(s);
  }
}

}  // namespace ptxgen::inline v0::analysis
