// src/check/parity/sums.cpp - the independent sums that a kernel stores
#include <numeric>
#include <vector>

#include "check/parity/code.hpp"

namespace ptxgen::inline v0::gates {

namespace {

using namespace ptx;
using analysis::Version;

/// How a statement passes sums on.
enum class Passes : std::uint8_t { Nothing, Value, Sum };

struct Step {
  Passes passes = Passes::Nothing;
  std::size_t first = 0;  ///< operands that are followed: [first, end)
  std::size_t end = 0;
};

Step step_of(std::string_view mnemonic, std::size_t operands) {
  if (mnemonic == "mov" || mnemonic == "cvt") return {Passes::Value, 1, operands};
  if (mnemonic == "selp") return {Passes::Value, 1, 3};
  // After the value: a lane, a clamp and a mask of lanes.
  if (mnemonic == "shfl") return {Passes::Value, 1, operands - 3};
  if (mnemonic == "add" || mnemonic == "sub") return {Passes::Sum, 1, 3};
  if (mnemonic == "fma" || mnemonic == "mad" || mnemonic == "dp4a") return {Passes::Sum, 3, 4};
  return {};
}

/// Follows stored values backwards and unites stores that share a sum.
class SumFinder {
 public:
  explicit SumFinder(const ParityCode& code)
      : facts_(code.facts()),
        function_(code.function()),
        versions_(facts_.versions()),
        seen_by_(versions_.size(), kNone) {}

  void follow_store(std::uint32_t statement) {
    const std::uint32_t store = static_cast<std::uint32_t>(group_.size());
    group_.push_back(store);
    adds_.push_back(false);
    open_.clear();
    for (const Operand& operand : function_.operands_of(function_.body[statement])) {
      if (operand.kind != OperandKind::Memory) push(statement, operand);
    }
    while (!open_.empty()) {
      const std::uint32_t version = open_.back();
      open_.pop_back();
      visit(version, store);
    }
  }

  [[nodiscard]] std::uint32_t count() {
    std::vector<bool> sums(group_.size());
    for (std::uint32_t i = 0; i < group_.size(); ++i) {
      if (adds_[i]) sums[root(i)] = true;
    }
    return static_cast<std::uint32_t>(std::accumulate(sums.begin(), sums.end(), 0u));
  }

 private:
  void push(std::uint32_t statement, const Operand& operand) {
    const auto one = [&](const Operand& element) {
      if (element.kind != OperandKind::Register) return;
      const std::uint32_t reg = facts_.index().find(element.as_register());
      const std::uint32_t version = reg == kNone ? kNone : versions_.read(statement, reg);
      if (version != kNone) open_.push_back(version);
    };
    if (operand.kind != OperandKind::Vector) return one(operand);
    for (const Operand& element : function_.elements(operand)) one(element);
  }

  void visit(std::uint32_t v, std::uint32_t store) {
    const Version& version = versions_[v];
    Step step;
    if (version.kind == Version::Kind::Write) {
      const Instruction& s = function_.body[version.statement];
      step = step_of(info(s.op).mnemonic, s.operand_count);
    }
    const bool phi = version.kind == Version::Kind::Phi;
    // Loads, products and constants may be shared by independent sums.
    if (!phi && step.passes == Passes::Nothing) return;
    if (is_constant(version)) return;
    if (seen_by_[v] != kNone) return unite(store, seen_by_[v]);
    seen_by_[v] = store;
    if (step.passes == Passes::Sum) adds_[store] = true;
    if (version.previous != kNone) open_.push_back(version.previous);
    if (phi) {
      for (const std::uint32_t input : versions_.inputs(v)) {
        if (input != kNone) open_.push_back(input);
      }
      return;
    }
    const auto operands = function_.operands_of(function_.body[version.statement]);
    for (std::size_t i = step.first; i < step.end && i < operands.size(); ++i)
      push(version.statement, operands[i]);
  }

  [[nodiscard]] bool is_constant(const Version& version) const {
    if (version.kind != Version::Kind::Write || version.partial) return false;
    const Instruction& s = function_.body[version.statement];
    const auto operands = function_.operands_of(s);
    return s.is(Op::mov) && operands.size() == 2 && operands[1].kind != OperandKind::Register &&
           operands[1].kind != OperandKind::Vector;
  }

  [[nodiscard]] std::uint32_t root(std::uint32_t group) {
    while (group_[group] != group) group = group_[group] = group_[group_[group]];
    return group;
  }
  void unite(std::uint32_t a, std::uint32_t b) { group_[root(a)] = root(b); }

  analysis::Facts& facts_;
  const Function& function_;
  const analysis::Versions& versions_;
  std::vector<std::uint32_t> seen_by_;  // by version: the first store that reached it
  std::vector<std::uint32_t> group_;    // of each store: another of its group
  std::vector<bool> adds_;              // whether it was reached through an addition
  std::vector<std::uint32_t> open_;
};

}  // namespace

std::uint32_t independent_sums(const ParityCode& code, SourceSet outputs) {
  SumFinder sums(code);
  for (const GlobalAccess& access : code.accesses()) {
    const bool output =
        access.parameter != kNone && (parameter_source(access.parameter) & outputs) != 0;
    if (access.writes && output) sums.follow_store(access.statement);
  }
  return sums.count();
}

}  // namespace ptxgen::inline v0::gates
