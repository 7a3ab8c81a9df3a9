// src/optimize/cleanup/branch_simplify.cpp - removes constant guards and redundant branches
#include <algorithm>
#include <optional>
#include <utility>

#include "optimize/cleanup/cleanup.hpp"
#include "optimize/scopes.hpp"
#include "ptxgen/optimize/passes.hpp"

namespace ptxgen::inline v0::optimize {

using namespace ptx;

namespace {

// Positions of labels and tables, and number of uses.
struct Places {
  std::vector<std::uint32_t> label, table, named;
  std::vector<std::uint32_t> code;  // the first instruction from each statement on

  explicit Places(const Function& function)
      : label(function.labels.size(), kNone),
        table(function.labels.size(), kNone),
        named(function.labels.size(), 0),
        code(function.body.size() + 1) {
    const auto statements = static_cast<std::uint32_t>(function.body.size());
    code[statements] = statements;
    for (std::uint32_t i = statements; i-- > 0;) {
      const Instruction& s = function.body[i];
      code[i] = s.kind == StatementKind::Instruction ? i : code[i + 1];
      const auto operands = function.operands_of(s);
      const bool defines =
          s.kind == StatementKind::Label || s.kind == StatementKind::BranchTargets ||
          s.kind == StatementKind::CallTargets || s.kind == StatementKind::CallPrototype;
      for (std::size_t o = 0; o < operands.size(); ++o) {
        if (operands[o].kind != OperandKind::Label || operands[o].id >= label.size()) continue;
        if (!defines || o != 0) {
          ++named[operands[o].id];
        } else if (s.kind == StatementKind::Label) {
          label[operands[o].id] = i;
        } else if (s.kind == StatementKind::BranchTargets) {
          table[operands[o].id] = i;
        }
      }
    }
  }
};

class Simplifier {
 public:
  Simplifier(Function& function, PassContext& context)
      : function_(function), context_(context), edits_(context.module(), function) {}

  void run() {
    settle();
    // Removals of one iteration may let another branch skip more.
    do {
      context_.visit(function_.body.size());
      changed_ = false;
      thread();
      shorten();
      sweep_names();
      apply();
      first_iteration_ = false;
    } while (changed_);
  }

 private:
  void fired(std::uint32_t i, std::string_view reason, std::string_view modifiers) {
    changed_ = moved_ = true;
    context_.changed();
    decide(i, true, reason, modifiers);
  }
  void decide(std::uint32_t i, bool fired, std::string_view reason, std::string_view modifiers) {
    context_.decide(function_, i, fired, reason,
                    context_.explains()
                        ? quoted(context_, function_, function_.body[i]) + std::string(modifiers)
                        : std::string());
  }

  void apply() {
    moved_ = moved_ || !edits_.empty();
    edits_.apply();
  }
  // Valid until the next call. Usually nothing moves, and one computation suffices.
  Places& places() {
    if (!places_ || std::exchange(moved_, false)) places_.emplace(function_);
    return *places_;
  }

  // Guards and tables that constants decide.
  void settle() {
    const CleanupFacts facts(context_.facts(function_));
    const Places& places = this->places();
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      context_.visit();
      if (function_.body[i].kind != StatementKind::Instruction) continue;
      if (!facts.constants.executable(facts.cfg.block_of(i))) continue;
      if (settle_guard(i, facts.constants.guard(i))) settle_table(i, facts, places);
    }
    apply();
  }

  // Whether the instruction is still there.
  bool settle_guard(std::uint32_t i, GuardState guard) {
    Instruction& s = function_.body[i];
    if (!s.guard.present() || guard == GuardState::Unknown) return true;
    if (guard == GuardState::Always) {
      fired(i, "guard-true", " had a guard that always holds");
      s.guard = {};
      return true;
    }
    // Other instructions that are never executed are dead code.
    if (!has(info(s.op).flags, Flag::Branch | Flag::Terminator)) return true;
    fired(i, "never-taken", " had a guard that never holds, and went");
    edits_.erase(i);
    return false;
  }

  void settle_table(std::uint32_t i, const CleanupFacts& facts, const Places& places) {
    const Instruction& s = function_.body[i];
    if (s.op != Op::brx_idx || s.operand_count != 2) return;
    const auto index = facts.constants.source(i, 0);
    const Operand named = function_.operands_of(s)[1];
    if (!index || named.kind != OperandKind::Label || named.id >= places.table.size()) return;
    const std::uint32_t table = places.table[named.id];
    if (table == kNone) return;
    const auto labels = function_.operands_of(function_.body[table]).subspan(1);
    if (*index >= labels.size()) {
      decide(i, false, "index-beyond-table",
             " has an index beyond its table, and PTX does not say where that leads");
      return;
    }
    const Operand to = labels[*index];
    Instruction branch = edits_.make(Op::bra, {}, {to}, i);
    branch.guard = s.guard;
    fired(i, "index-known", " has an index that is known, and became a plain branch");
    edits_.replace(i, branch);
  }

  [[nodiscard]] bool is_branch(std::uint32_t i) const {
    return i < function_.body.size() && function_.body[i].is(Op::bra) &&
           function_.body[i].operand_count == 1 &&
           function_.operands_of(function_.body[i])[0].kind == OperandKind::Label;
  }
  [[nodiscard]] bool is_jump(std::uint32_t i) const {
    return is_branch(i) && !function_.body[i].guard.present();
  }
  [[nodiscard]] std::uint32_t target(std::uint32_t i) const {
    return function_.operands_of(function_.body[i])[0].id;
  }

  // Branches to branches lead where those do.
  void thread() {
    const Places& places = this->places();
    const std::vector<std::uint32_t> last = ends_of_chains(places);
    bool any = false;
    for (std::uint32_t i = 0; i < function_.body.size(); ++i)
      any = any || (is_branch(i) && last[target(i)] != target(i));
    if (!any) return;
    const analysis::Cfg& cfg = context_.facts(function_).cfg();
    const Scopes scopes(context_.module(), function_);
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      if (!is_branch(i)) continue;
      const std::uint32_t to = last[target(i)];
      if (to == target(i)) continue;
      if (!scopes.visible(LabelId{to}, i)) {
        if (first_iteration_)
          decide(i, false, "out-of-scope", " leads to a branch whose label cannot be named here");
        continue;
      }
      // A second back edge lets lanes reach the header separately.
      const std::uint32_t head = cfg.block_of(places.label[to]);
      const std::uint32_t from = cfg.block_of(i);
      if (cfg.reachable(from) && cfg.position(head) <= cfg.position(from)) {
        if (first_iteration_)
          decide(i, false, "loop-latch",
                 " leads to the branch that closes its loop, and lanes may meet there");
        continue;
      }
      fired(i, "threaded", " leads to a branch, and now to where that leads");
      function_.operands_of(function_.body[i])[0].id = to;
    }
  }

  // For each label the one at which a chain of jumps from there ends; in a circle, itself.
  [[nodiscard]] std::vector<std::uint32_t> ends_of_chains(const Places& places) const {
    const auto labels = static_cast<std::uint32_t>(function_.labels.size());
    std::vector<std::uint32_t> last(labels, kNone), path;
    std::vector<bool> on_path(labels, false);
    for (std::uint32_t from = 0; from < labels; ++from) {
      path.clear();
      std::uint32_t at = from;
      while (last[at] == kNone && !on_path[at]) {
        on_path[at] = true;
        path.push_back(at);
        const std::uint32_t code =
            places.label[at] == kNone ? kNone : places.code[places.label[at]];
        if (code == kNone || !is_jump(code) || places.label[target(code)] == kNone) break;
        at = target(code);
      }
      // Either the chain ended at `at`, or it is known from there on, or it runs into itself.
      const bool circle = last[at] == kNone && path.back() != at;
      const std::uint32_t end = last[at] == kNone ? at : last[at];
      for (const std::uint32_t label : path) {
        last[label] = circle ? label : end;
        on_path[label] = false;
      }
    }
    return last;
  }

  // Branches to the next statement. From the end: a removed branch no longer separates earlier
  // ones from their targets.
  void shorten() {
    Places& places = this->places();
    const Scopes scopes(context_.module(), function_);
    for (std::uint32_t i = static_cast<std::uint32_t>(function_.body.size()); i-- > 0;) {
      places.code[i] =
          function_.body[i].kind == StatementKind::Instruction ? i : places.code[i + 1];
      if (!is_branch(i) || places.label[target(i)] == kNone) continue;
      if (leads_on(places, i, i)) {
        fired(i, "to-next", " leads to what comes next");
        edits_.erase(i);
        places.code[i] = places.code[i + 1];
        continue;
      }
      const std::uint32_t next = places.code[i + 1];
      if (!function_.body[i].guard.present() || !is_jump(next)) continue;
      if (target(next) == target(i)) {
        fired(i, "same-target", " leads where the next branch leads");
        edits_.erase(i);
        places.code[i] = next;
      } else if (leads_on(places, i, next) && alone(i, next) && scopes.of(i) == scopes.of(next)) {
        fired(i, "inverted", " skipped a branch, and replaced it with the guard negated");
        reverse_branch(i, next);
        places.code[i + 1] = places.code[next + 1];
      }
    }
  }

  // Whether the target of branch `i` is the first instruction after `after`.
  [[nodiscard]] bool leads_on(const Places& places, std::uint32_t i, std::uint32_t after) const {
    const std::uint32_t place = places.label[target(i)];
    return place > after && places.code[place] == places.code[after + 1];
  }
  // Whether `next` is reached only by falling through from `i`.
  [[nodiscard]] bool alone(std::uint32_t i, std::uint32_t next) const {
    for (std::uint32_t k = i + 1; k < next; ++k) {
      if (function_.body[k].kind == StatementKind::Label) return false;
    }
    return true;
  }
  void reverse_branch(std::uint32_t i, std::uint32_t next) {
    Instruction& branch = function_.body[i];
    branch.guard.negated = !branch.guard.negated;
    if (branch.split_hint == kNoSplitHint) branch.split_hint = function_.body[next].split_hint;
    function_.operands_of(branch)[0].id = target(next);
    edits_.erase(next);
  }

  // Labels that nothing names, and tables that no branch uses.
  void sweep_names() {
    // Debug sections name labels in their text.
    const auto& items = context_.module().items;
    if (std::any_of(items.begin(), items.end(),
                    [](const Item& item) { return item.kind == Item::Kind::Section; }))
      return;
    const Places& places = this->places();
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      const Instruction& s = function_.body[i];
      if (s.kind != StatementKind::Label && s.kind != StatementKind::BranchTargets) continue;
      if (s.operand_count == 0) continue;
      const Operand name = function_.operands_of(s)[0];
      if (name.kind != OperandKind::Label || name.id >= places.named.size()) continue;
      if (places.named[name.id] != 0) continue;
      fired(i, "unnamed", " is named by no branch");
      function_.labels[name.id].defined = false;
      edits_.erase(i);
    }
  }

  Function& function_;
  PassContext& context_;
  Edits edits_;
  std::optional<Places> places_;
  bool changed_ = false, moved_ = false, first_iteration_ = true;
};

}  // namespace

void branch_simplify(Function& function, PassContext& context) {
  if (understood(function, context)) Simplifier(function, context).run();
}

}  // namespace ptxgen::inline v0::optimize
