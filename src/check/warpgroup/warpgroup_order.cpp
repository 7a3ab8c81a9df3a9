// src/check/warpgroup/warpgroup_order.cpp - the gate warpgroup_order
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "check/module_facts.hpp"
#include "check/rule_findings.hpp"
#include "ptxgen/analysis/registers.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

namespace {

using namespace ptx;

constexpr std::string_view kRule = "warpgroup-order";
constexpr std::string_view kFenceReason =
    "wgmma.fence orders ordinary accesses to the accumulators and to fragments of a before the "
    "wgmma that has them";
constexpr std::string_view kFenceCure =
    "put wgmma.fence.sync.aligned between the access and the wgmma, on every path";
constexpr std::string_view kWaitReason =
    "the registers of a wgmma belong to it until wgmma.wait_group has waited for its group";
constexpr std::string_view kWaitCure =
    "put wgmma.commit_group after the wgmma, and wgmma.wait_group before the access, on every path";

bool is_product(const Instruction& s) {
  return s.kind == StatementKind::Instruction && s.op >= Op::wgmma_f16_f16_shared &&
         s.op <= Op::wgmma_s8_registers;
}

/// What may, and what must, be true of a register at a point.
struct RegisterState {
  static constexpr std::uint8_t kNever = 0xff;
  /// Groups committed since the last wgmma that has it; 0: that one is in no group yet; kNever: no
  /// wgmma that has it is pending. The lowest of all paths.
  std::uint8_t age = kNever;
  bool must = false;              ///< pending on every path
  bool fragment = false;          ///< pending as a fragment of a, else as accumulator
  bool touched = false;           ///< accessed since the last fence on some path
  bool must_touched = false;      ///< on every path
  std::uint32_t product = kNone;  ///< statement of the wgmma
  std::uint32_t access = kNone;   ///< statement of the access
  friend bool operator==(const RegisterState&, const RegisterState&) = default;
};

struct State {
  bool reached = false;
  bool fenced = false;        ///< a fence on every path
  bool maybe_fenced = false;  ///< on some path
  std::vector<RegisterState> registers;
  friend bool operator==(const State&, const State&) = default;
};

/// Joins `from` into `into`. True if that changed.
bool join(State& into, const State& from) {
  if (!from.reached) return false;
  if (!into.reached) {
    into = from;
    return true;
  }
  const State before = into;
  into.fenced = into.fenced && from.fenced;
  into.maybe_fenced = into.maybe_fenced || from.maybe_fenced;
  for (std::size_t i = 0; i < into.registers.size(); ++i) {
    RegisterState& a = into.registers[i];
    const RegisterState& b = from.registers[i];
    if (b.age < a.age) {
      a.age = b.age;
      a.product = b.product;
      a.fragment = b.fragment;
    }
    a.must = a.must && b.must;
    if (b.touched && !a.touched) a.access = b.access;
    a.touched = a.touched || b.touched;
    a.must_touched = a.must_touched && b.must_touched;
  }
  return !(into == before);
}

class WarpgroupOrder {
 public:
  WarpgroupOrder(RuleFindings& findings)
      : findings_(findings),
        function_(findings.function()),
        cfg_(findings.facts().cfg()),
        index_(findings.facts().index()) {}

  void run() {
    find_registers();
    if (tracked_.empty()) return;
    std::vector<State> in(cfg_.blocks().size());
    in[0].reached = true;
    in[0].registers.resize(tracked_.size());
    // A finite lattice of small height: few rounds over the blocks in reverse post-order.
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::uint32_t block : cfg_.order()) {
        if (!in[block].reached) continue;
        State state = in[block];
        step(block, state, false);
        for (const std::uint32_t next : cfg_.successors(block)) {
          if (next < in.size()) changed = join(in[next], state) || changed;
        }
      }
    }
    for (const std::uint32_t block : cfg_.order()) {
      if (in[block].reached) step(block, in[block], true);
    }
  }

 private:
  /// Registers that a wgmma has, densely.
  void find_registers() {
    place_.assign(index_.size(), kNone);
    for (const Instruction& s : function_.body) {
      if (!is_product(s)) continue;
      for_each_of_product(s, [&](std::uint32_t number, bool) {
        if (place_[number] != kNone) return;
        place_[number] = static_cast<std::uint32_t>(tracked_.size());
        tracked_.push_back(number);
      });
    }
  }

  /// Calls `fn(register, is fragment of a)`.
  template <class Fn>
  void for_each_of_product(const Instruction& s, Fn&& fn) {
    const auto operands = function_.operands_of(s);
    for (std::size_t i = 0; i < 2 && i < operands.size(); ++i) {
      if (operands[i].kind != OperandKind::Vector) continue;
      for (const Operand& element : function_.elements(operands[i])) {
        if (element.kind != OperandKind::Register) continue;
        const std::uint32_t number = index_.find(element.as_register());
        if (number != kNone) fn(number, i == 1);
      }
    }
  }

  void step(std::uint32_t block, State& state, bool report) {
    const analysis::Block& code = cfg_.blocks()[block];
    for (std::uint32_t statement = code.first; statement < code.end; ++statement) {
      const Instruction& s = function_.body[statement];
      if (s.kind != StatementKind::Instruction) continue;
      if (is_product(s)) {
        product(statement, s, state, report);
      } else if (s.op == Op::wgmma_fence) {
        fence(state);
      } else if (s.op == Op::wgmma_commit_group) {
        for (RegisterState& at : state.registers) {
          if (at.age < RegisterState::kNever - 1) ++at.age;
        }
      } else if (s.op == Op::wgmma_wait_group) {
        wait(s, state);
      } else {
        access(statement, s, state, report);
      }
    }
  }

  static void fence(State& state) {
    state.fenced = state.maybe_fenced = true;
    for (RegisterState& at : state.registers) at.touched = at.must_touched = false;
  }

  void wait(const Instruction& s, State& state) const {
    const std::uint64_t newest = function_.operands_of(s)[0].value;
    for (RegisterState& at : state.registers) {
      // Age 0 is in no group, and is not waited for.
      if (at.age == 0 || at.age == RegisterState::kNever || at.age <= newest) continue;
      at.age = RegisterState::kNever;
      at.must = false;
    }
  }

  std::string name(std::size_t place) const {
    return name_of(findings_.module(), function_, index_[tracked_[place]]);
  }

  void product(std::uint32_t statement, const Instruction& s, State& state, bool report) {
    if (report && !state.fenced) {
      findings_.report(state.maybe_fenced ? Severity::Warning : Severity::Error, kRule, statement,
                       state.maybe_fenced ? "a path leads to this wgmma without a wgmma.fence"
                                          : "no wgmma.fence comes before this wgmma",
                       kFenceReason,
                       "put wgmma.fence.sync.aligned before the first wgmma, on every path");
    }
    state.fenced = state.maybe_fenced = true;
    bool reported = !report;
    for_each_of_product(s, [&](std::uint32_t number, bool fragment) {
      RegisterState& at = state.registers[place_[number]];
      if (at.touched && !reported) {
        findings_.report(
            at.must_touched ? Severity::Error : Severity::Warning, kRule, statement,
            format_text("{} {} is accessed in {}, with no wgmma.fence between that and this wgmma",
                        fragment ? "the fragment" : "the accumulator", name(place_[number]),
                        findings_.place(at.access)),
            kFenceReason, kFenceCure);
        reported = true;
      }
      if (at.age != RegisterState::kNever && at.fragment != fragment && !reported) {
        findings_.report(
            at.must ? Severity::Error : Severity::Warning, kRule, statement,
            format_text("{} is {} of this wgmma while it is {} of the one in {}, "
                        "which no wgmma.wait_group has waited for",
                        name(place_[number]), fragment ? "a fragment of a" : "an accumulator",
                        at.fragment ? "a fragment of a" : "an accumulator",
                        findings_.place(at.product)),
            kWaitReason, kWaitCure);
        reported = true;
      }
      at.age = 0;
      at.must = !s.guard.present();
      at.fragment = fragment;
      at.product = statement;
      at.touched = at.must_touched = false;
    });
  }

  /// Of any other instruction.
  void access(std::uint32_t statement, const Instruction& s, State& state, bool report) {
    bool reported = !report;
    analysis::for_each_access(function_, s, [&](const analysis::RegisterAccess& one) {
      const std::uint32_t number = index_.find(one.reg);
      if (number == kNone || place_[number] == kNone) return;
      RegisterState& at = state.registers[place_[number]];
      if (at.age != RegisterState::kNever && !reported) {
        const bool sure = at.must && !s.guard.present();
        findings_.report(
            sure ? Severity::Error : Severity::Warning, kRule, statement,
            format_text("{} {}, {} of the wgmma in {}, {}", one.write ? "writes" : "reads",
                        name(place_[number]), at.fragment ? "a fragment of a" : "an accumulator",
                        findings_.place(at.product),
                        sure ? "which no wgmma.wait_group has waited for"
                             : "for which a path has no wgmma.wait_group"),
            kWaitReason, kWaitCure);
        reported = true;
      }
      at.must_touched = at.must_touched || !s.guard.present();
      at.touched = true;
      at.access = statement;
    });
  }

  RuleFindings& findings_;
  const Function& function_;
  const analysis::Cfg& cfg_;
  const analysis::RegisterIndex& index_;
  std::vector<std::uint32_t> tracked_;  ///< registers of wgmma, by place
  std::vector<std::uint32_t> place_;    ///< of a register of the index, or kNone
};

}  // namespace

std::vector<Finding> warpgroup_order(ModuleFacts& facts) {
  std::vector<Finding> all;
  for (const Function& function : facts.module().functions) {
    if (!std::any_of(function.body.begin(), function.body.end(), is_product)) continue;
    const auto of = facts.of(function);
    RuleFindings findings(*of);
    WarpgroupOrder(findings).run();
    findings.take(all);
  }
  return all;
}

std::vector<Finding> warpgroup_order(const Module& module, const GateOptions& options) {
  ModuleFacts facts(module, options);
  return warpgroup_order(facts);
}

}  // namespace ptxgen::inline v0::gates
