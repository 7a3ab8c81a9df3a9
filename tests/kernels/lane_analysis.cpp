// tests/kernels/lane_analysis.cpp - what depends on the lane, for structure tests
#include "lane_analysis.hpp"

#include <algorithm>

namespace ptxgen::test {

using namespace ptxgen::ptx;

namespace {

bool is_branch(const Instruction& s) {
  return s.kind == StatementKind::Instruction && has(info(s.op).flags, Flag::Branch);
}
bool ends(const Instruction& s) {
  return s.kind == StatementKind::Instruction && has(info(s.op).flags, Flag::Terminator) &&
         !is_branch(s);
}

bool is_lane_register(const Operand& o) {
  if (o.kind != OperandKind::Special) return false;
  const auto reg = static_cast<SpecialRegister>(o.id);
  return reg == SpecialRegister::tid || reg == SpecialRegister::laneid ||
         reg == SpecialRegister::warpid || reg == SpecialRegister::lanemask_lt;
}

}  // namespace

LaneAnalysis::LaneAnalysis(const Function& function) : function_(function) {
  build_graph();
  build_post_dominators();
  spread_variation();
  spread_strides();
}

void LaneAnalysis::build_graph() {
  const std::size_t exit = function_.body.size();
  successors_.resize(exit + 1);
  const auto place = [&](const Operand& label) {
    for (std::size_t i = 0; i < exit; ++i) {
      const Instruction& s = function_.body[i];
      if (s.kind == StatementKind::Label && function_.operands_of(s)[0].id == label.id) return i;
    }
    return exit;
  };
  for (std::size_t i = 0; i < exit; ++i) {
    const Instruction& s = function_.body[i];
    const bool conditional = s.guard.present();
    if (is_branch(s)) {
      for (const Operand& o : function_.operands_of(s)) {
        if (o.kind == OperandKind::Label) successors_[i].push_back(place(o));
      }
    } else if (ends(s)) {
      successors_[i].push_back(exit);
    }
    if (successors_[i].empty() || conditional) successors_[i].push_back(i + 1);
  }
}

void LaneAnalysis::build_post_dominators() {
  const std::size_t nodes = successors_.size();
  post_dominators_.assign(nodes, std::vector<bool>(nodes, true));
  post_dominators_[nodes - 1].assign(nodes, false);
  post_dominators_[nodes - 1][nodes - 1] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = nodes - 1; i-- > 0;) {
      std::vector<bool> common(nodes, true);
      for (const std::size_t next : successors_[i]) {
        for (std::size_t k = 0; k < nodes; ++k) common[k] = common[k] && post_dominators_[next][k];
      }
      common[i] = true;
      if (common != post_dominators_[i]) {
        post_dominators_[i] = std::move(common);
        changed = true;
      }
    }
  }
}

bool LaneAnalysis::post_dominates(std::size_t later, std::size_t earlier) const {
  return post_dominators_[earlier][later];
}

std::set<std::size_t> LaneAnalysis::deciders(std::size_t statement) const {
  std::set<std::size_t> found;
  std::vector<std::size_t> open{statement};
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    for (std::size_t branch = 0; branch + 1 < successors_.size(); ++branch) {
      if (successors_[branch].size() < 2) continue;
      const bool somewhere =
          std::any_of(successors_[branch].begin(), successors_[branch].end(),
                      [&](std::size_t next) { return post_dominates(node, next); });
      // A statement may decide about itself: the test of a loop does.
      const bool everywhere = node != branch && post_dominates(node, branch);
      if (somewhere && !everywhere && found.insert(branch).second) open.push_back(branch);
    }
  }
  return found;
}

bool LaneAnalysis::is_written(const Instruction& s, std::size_t operand) const {
  const OperandSpec* spec = operand_spec(function_, s, operand);
  return spec != nullptr && spec->role == OperandRole::Destination;
}

bool LaneAnalysis::varies(const Operand& o) const {
  switch (o.kind) {
    case OperandKind::Register:
      return varying_.count({o.id, o.index}) != 0;
    case OperandKind::Memory:
      return o.base == OperandKind::Register && varying_.count({o.id, o.index}) != 0;
    case OperandKind::Special:
      return is_lane_register(o);
    case OperandKind::Vector: {
      const auto elements = function_.elements(o);
      return std::any_of(elements.begin(), elements.end(),
                         [&](const Operand& e) { return varies(e); });
    }
    default:
      return false;
  }
}

bool LaneAnalysis::decided_by_lane(std::size_t statement) const {
  const auto guard_varies = [&](const Instruction& s) {
    return s.guard.present() && varies(Operand::reg(s.guard.predicate));
  };
  if (guard_varies(function_.body[statement])) return true;
  const auto branches = deciders(statement);
  return std::any_of(branches.begin(), branches.end(),
                     [&](std::size_t branch) { return guard_varies(function_.body[branch]); });
}

void LaneAnalysis::spread_variation() {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < function_.body.size(); ++i) {
      const Instruction& s = function_.body[i];
      if (s.kind != StatementKind::Instruction) continue;
      const auto operands = function_.operands_of(s);
      bool source = decided_by_lane(i);
      // Loads other than of parameters may give each thread something else.
      if (has(info(s.op).flags, Flag::ReadsMemory) &&
          space_of(s.get(Field::Space)) != Space::Param) {
        source = true;
      }
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (!is_written(s, k)) source = source || varies(operands[k]);
      }
      if (!source) continue;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (is_written(s, k) && operands[k].kind == OperandKind::Register) {
          changed = varying_.insert({operands[k].id, operands[k].index}).second || changed;
        }
      }
    }
  }
}

LaneAnalysis::Stride LaneAnalysis::stride_of(const Operand& o) const {
  switch (o.kind) {
    case OperandKind::Register:
    case OperandKind::Memory:
      if (o.kind == OperandKind::Memory && o.base != OperandKind::Register)
        return {Stride::Constant, 0};
      for (const auto& [key, stride] : strides_) {
        if (key == Key{o.id, o.index}) return stride;
      }
      return {};
    case OperandKind::Special:
      return {
          Stride::Constant,
          static_cast<SpecialRegister>(o.id) == SpecialRegister::tid && o.component == 1 ? 1 : 0};
    default:
      return {Stride::Constant, 0};
  }
}

LaneAnalysis::Stride LaneAnalysis::result_of(const Instruction& s) const {
  const auto operands = function_.operands_of(s);
  const std::string_view mnemonic = info(s.op).mnemonic;
  const auto at = [&](std::size_t i) { return stride_of(operands[i]); };
  const auto plus = [](Stride a, Stride b) -> Stride {
    if (a.kind == Stride::Unset || b.kind == Stride::Unset) return {};
    if (a.kind == Stride::Unknown || b.kind == Stride::Unknown) return {Stride::Unknown, 0};
    return {Stride::Constant, a.value + b.value};
  };
  const auto times = [&](std::size_t x, std::size_t y) -> Stride {
    const Stride a = at(x);
    const Stride b = at(y);
    if (a.kind == Stride::Unset || b.kind == Stride::Unset) return {};
    if (a.kind == Stride::Unknown || b.kind == Stride::Unknown) return {Stride::Unknown, 0};
    if (a.value == 0 && b.value == 0) return {Stride::Constant, 0};
    if (operands[y].kind == OperandKind::Integer)
      return {Stride::Constant, a.value * operands[y].offset()};
    if (operands[x].kind == OperandKind::Integer)
      return {Stride::Constant, b.value * operands[x].offset()};
    return {Stride::Unknown, 0};
  };
  if (mnemonic == "mov" || mnemonic == "cvta" || mnemonic == "cvt") return at(1);
  if (mnemonic == "add") return plus(at(1), at(2));
  if (mnemonic == "mul") return times(1, 2);
  if (mnemonic == "mad") return plus(times(1, 2), at(3));
  if (mnemonic == "shl" && operands[2].kind == OperandKind::Integer) {
    const Stride a = at(1);
    return a.kind == Stride::Constant ? Stride{Stride::Constant, a.value << operands[2].value} : a;
  }
  // Anything else keeps no lane offset only if it has none to begin with.
  for (std::size_t i = 1; i < operands.size(); ++i) {
    if (varies(operands[i])) return {Stride::Unknown, 0};
  }
  const bool varying_load =
      has(info(s.op).flags, Flag::ReadsMemory) && space_of(s.get(Field::Space)) != Space::Param;
  return varying_load ? Stride{Stride::Unknown, 0} : Stride{Stride::Constant, 0};
}

void LaneAnalysis::spread_strides() {
  const auto merge = [&](Key key, Stride next) {
    if (next.kind == Stride::Unset) return false;
    for (auto& [known, stride] : strides_) {
      if (known != key) continue;
      const bool same = stride.kind == next.kind && stride.value == next.value;
      if (same || stride.kind == Stride::Unknown) return false;
      stride = {Stride::Unknown, 0};
      return true;
    }
    strides_.push_back({key, next});
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction& s : function_.body) {
      if (s.kind != StatementKind::Instruction) continue;
      const auto operands = function_.operands_of(s);
      if (operands.empty() || !is_written(s, 0) || operands[0].kind != OperandKind::Register)
        continue;
      changed = merge({operands[0].id, operands[0].index}, result_of(s)) || changed;
    }
  }
}

std::optional<std::int64_t> LaneAnalysis::lane_stride(const Operand& o) const {
  const Stride stride = stride_of(o);
  if (stride.kind != Stride::Constant) return std::nullopt;
  return stride.value;
}

std::vector<std::vector<std::size_t>> LaneAnalysis::innermost_loops() const {
  std::vector<std::pair<std::size_t, std::size_t>> loops;
  for (std::size_t i = 0; i + 1 < successors_.size(); ++i) {
    for (const std::size_t next : successors_[i]) {
      if (next <= i) loops.emplace_back(next, i);
    }
  }
  std::vector<std::vector<std::size_t>> innermost;
  for (const auto& loop : loops) {
    const bool has_inner = std::any_of(loops.begin(), loops.end(), [&](const auto& other) {
      return other != loop && other.first >= loop.first && other.second <= loop.second;
    });
    if (has_inner) continue;
    std::vector<std::size_t>& statements = innermost.emplace_back();
    for (std::size_t i = loop.first; i <= loop.second; ++i) statements.push_back(i);
  }
  return innermost;
}

}  // namespace ptxgen::test
