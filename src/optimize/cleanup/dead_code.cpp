// src/optimize/cleanup/dead_code.cpp - removes dead and unreachable code
#include <algorithm>

#include "optimize/cleanup/cleanup.hpp"
#include "ptxgen/optimize/passes.hpp"

namespace ptxgen::inline v0::optimize {

using namespace ptx;
using analysis::NumberedAccess;
using Version = analysis::Version;

namespace {

// Guarded branches ahead, by what they skip: if nothing of that stays, neither need they.
class Skips {
 public:
  void add(std::uint32_t branch, std::uint32_t target) { all_.push_back({branch, target}); }
  void build() {
    for (leaves_ = 1; leaves_ <= all_.size(); leaves_ *= 2) {
    }
    furthest_.assign(2 * leaves_, 0);
    for (std::size_t i = 0; i < all_.size(); ++i) furthest_[leaves_ + i] = all_[i].target;
    for (std::size_t i = leaves_; i-- > 1;)
      furthest_[i] = std::max(furthest_[2 * i], furthest_[2 * i + 1]);
  }
  // A branch that skips the statement, taken out; kNone if there is none.
  std::uint32_t take(std::uint32_t statement) {
    if (furthest_[1] <= statement) return ptx::kNone;
    const auto after = std::partition_point(all_.begin(), all_.end(),
                                            [&](const Skip& s) { return s.branch < statement; });
    std::size_t node = leaves_ + static_cast<std::size_t>(after - all_.begin());
    // The nearest subtree in front of that place that reaches beyond the statement.
    for (;; node /= 2) {
      while (node > 1 && node % 2 == 0) node /= 2;
      if (node <= 1) return ptx::kNone;
      if (furthest_[node - 1] > statement) break;
    }
    for (--node; node < leaves_;)
      node = furthest_[2 * node + 1] > statement ? 2 * node + 1 : 2 * node;
    const std::uint32_t branch = all_[node - leaves_].branch;
    furthest_[node] = 0;
    for (node /= 2; node > 0; node /= 2)
      furthest_[node] = std::max(furthest_[2 * node], furthest_[2 * node + 1]);
    return branch;
  }

 private:
  struct Skip {
    std::uint32_t branch, target;
  };
  std::vector<Skip> all_;
  std::size_t leaves_ = 1;
  std::vector<std::uint32_t> furthest_;
};

// Marks what has effects, and what that reads, through versions and phis; the rest goes. So chains
// that only feed themselves go too.
class Sweeper {
 public:
  Sweeper(Function& function, PassContext& context)
      : function_(function),
        context_(context),
        facts_(context.facts(function)),
        edits_(context.module(), function),
        kept_(function.body.size(), false),
        wanted_(facts_.versions.size(), false) {}

  void run() {
    const auto statements = static_cast<std::uint32_t>(function_.body.size());
    find_skips();
    for (std::uint32_t i = 0; i < statements; ++i) {
      context_.visit();
      const Instruction& s = function_.body[i];
      if (s.kind != StatementKind::Instruction || !executed(i)) continue;
      if (has_effect(s) && skipped_to(i) == kNone) keep(i);
    }
    for (std::uint32_t v = 0; !function_.returns.empty() && v < facts_.versions.size(); ++v) {
      for (const analysis::VersionUse& use : facts_.versions.uses(v)) {
        if (use.returned()) want(v);
      }
    }
    while (!open_.empty() || !kept_open_.empty()) {
      if (!kept_open_.empty()) {
        const std::uint32_t statement = kept_open_.back();
        kept_open_.pop_back();
        for (std::uint32_t skip = skips_.take(statement); skip != kNone;
             skip = skips_.take(statement))
          keep(skip);
        continue;
      }
      const std::uint32_t version = open_.back();
      open_.pop_back();
      follow(version);
    }
    for (std::uint32_t i = 0; i < statements; ++i) {
      if (function_.body[i].kind == StatementKind::Instruction) sweep(i);
    }
    if (edits_.empty()) return;
    edits_.apply();
    context_.changed();
  }

 private:
  void find_skips() {
    places_.assign(function_.labels.size(), kNone);
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      const Instruction& s = function_.body[i];
      if (s.kind == StatementKind::Label && s.operand_count != 0 &&
          function_.operands_of(s)[0].id < places_.size())
        places_[function_.operands_of(s)[0].id] = i;
    }
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      const std::uint32_t to = skipped_to(i);
      if (to != kNone && executed(i)) skips_.add(i, to);
    }
    skips_.build();
  }
  // The target of a guarded forward branch.
  [[nodiscard]] std::uint32_t skipped_to(std::uint32_t i) const {
    const Instruction& s = function_.body[i];
    if (!s.is(Op::bra) || !s.guard.present() || s.operand_count != 1) return kNone;
    const Operand& label = function_.operands_of(s)[0];
    if (label.kind != OperandKind::Label || label.id >= places_.size()) return kNone;
    const std::uint32_t place = places_[label.id];
    return place == kNone || place < i ? kNone : place;
  }

  [[nodiscard]] bool executed(std::uint32_t i) const {
    return facts_.constants.executable(facts_.cfg.block_of(i)) &&
           facts_.constants.guard(i) != GuardState::Never;
  }

  [[nodiscard]] bool writes_register(const Instruction& s) const {
    return facts_.versions.writes(static_cast<std::uint32_t>(&s - function_.body.data()));
  }

  // Why an instruction with unused results must remain; empty if it can be removed.
  struct Effect {
    std::string_view reason;
    std::string_view modifiers;
  };
  [[nodiscard]] static Effect effect(const Instruction& s) {
    const Flag flags = info(s.op).flags;
    if (has(flags, Flag::Call)) return {"call", "the function that it calls may do more"};
    if (has(flags, Flag::Barrier)) return {"barrier", "other threads wait for it"};
    if (has(flags, Flag::Fence)) return {"ordered", "it orders memory accesses"};
    if (has(flags, Flag::WritesMemory)) return {"writes-memory", "it writes memory"};
    if (has(flags, Flag::Asynchronous)) return {"asynchronous", "it goes on after it has retired"};
    if (has(flags, Flag::Volatile))
      return {"volatile", "it does more than its operands show, or must happen as written"};
    if (has(flags, Flag::Convergent))
      return {"convergent", "lanes execute it together and the others may need this one"};
    if (has(flags, Flag::ReadsMemory) && s.get(Field::CacheOperator) == Modifier::cv)
      return {"fetched-again", "`.cv` asks for the memory to be read"};
    if (has(flags, Flag::Branch | Flag::Terminator)) return {"control", "control depends on it"};
    return {};
  }
  [[nodiscard]] bool has_effect(const Instruction& s) const {
    return !effect(s).reason.empty() || !writes_register(s);
  }

  void keep(std::uint32_t i) {
    if (kept_[i]) return;
    kept_[i] = true;
    kept_open_.push_back(i);
    context_.visit();
    for (const NumberedAccess& a : facts_.index.accesses(i)) {
      if (!a.write) want(facts_.versions.read(i, a.reg));
    }
  }

  void want(std::uint32_t version) {
    if (version == kNone || wanted_[version]) return;
    wanted_[version] = true;
    open_.push_back(version);
  }

  void follow(std::uint32_t version) {
    const Version& v = facts_.versions[version];
    if (v.kind == Version::Kind::Phi) {
      // Inputs along edges that are never executed are not live.
      const auto inputs = facts_.versions.inputs(version);
      const auto from = facts_.cfg.predecessors(v.block);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (i == from.size() || facts_.constants.executable(from[i], v.block)) want(inputs[i]);
      }
    } else if (v.kind == Version::Kind::Write) {
      want(v.previous);
      if (executed(v.statement)) keep(v.statement);
    }
  }

  void sweep(std::uint32_t i) {
    if (kept_[i]) {
      explain_kept(i);
      return;
    }
    const bool reached = facts_.constants.executable(facts_.cfg.block_of(i));
    const bool never = reached && facts_.constants.guard(i) == GuardState::Never;
    const bool skip = skipped_to(i) != kNone;
    const std::string_view reason = !reached ? "unreachable"
                                    : never  ? "guard-false"
                                    : skip   ? "skips-nothing"
                                             : "unread";
    const std::string_view modifiers = !reached ? "control never reaches "
                                       : never  ? "the guard never holds of "
                                       : skip   ? "nothing stays of what is skipped by "
                                                : "nothing reads what is written by ";
    context_.decide(function_, i, true, reason,
                    context_.explains()
                        ? std::string(modifiers) + quoted(context_, function_, function_.body[i])
                        : std::string());
    edits_.erase(i);
  }

  // Reports only remaining instructions with unused results.
  void explain_kept(std::uint32_t i) {
    const Instruction& s = function_.body[i];
    const Effect why = effect(s);
    if (why.reason.empty()) return;
    bool writes = false, read = false;
    for (const NumberedAccess& a : facts_.index.accesses(i)) {
      if (!a.write) continue;
      writes = true;
      const std::uint32_t version = facts_.versions.written(i, a.reg);
      read = read || version == kNone || wanted_[version];
    }
    if (!writes || read) return;
    context_.decide(function_, i, false, why.reason,
                    context_.explains()
                        ? "nothing reads what is written by " + quoted(context_, function_, s) +
                              ", but " + std::string(why.modifiers)
                        : std::string());
  }

  Function& function_;
  PassContext& context_;
  CleanupFacts facts_;
  Edits edits_;
  std::vector<bool> kept_, wanted_;
  std::vector<std::uint32_t> open_, kept_open_, places_;
  Skips skips_;
};

// Removes statements that write only registers without any readers, and chains of them if readers
// follow writers. Needs no analysis. The Sweeper would remove the same, but the analyses would have
// to be computed before and again after.
void sweep_unnamed(Function& function, PassContext& context) {
  const auto statements = static_cast<std::uint32_t>(function.body.size());
  context.visit(statements);
  const analysis::RegisterIndex& index = context.facts(function).index();
  std::vector<std::uint32_t> readers(index.size(), 0);
  for (const Variable& variable : function.returns) {
    const std::uint32_t reg =
        variable.space == Space::Register ? index.find({variable.decl, 0}) : kNone;
    if (reg != kNone) ++readers[reg];
  }
  for (std::uint32_t i = 0; i < statements; ++i) {
    for (const NumberedAccess& a : index.accesses(i)) readers[a.reg] += a.write ? 0 : 1;
  }
  Edits edits(context.module(), function);
  std::vector<std::uint32_t> erased;
  for (std::uint32_t i = statements; i-- > 0;) {
    if (!only_computes(function.body[i])) continue;
    const auto accesses = index.accesses(i);
    bool writes = false, read = false;
    for (const NumberedAccess& a : accesses) {
      writes = writes || a.write;
      read = read || (a.write && readers[a.reg] != 0);
    }
    if (!writes || read) continue;
    context.decide(function, i, true, "unread");
    edits.erase(i);
    erased.push_back(i);
    for (const NumberedAccess& a : accesses) readers[a.reg] -= a.write ? 0 : 1;
  }
  if (edits.empty()) return;
  edits.apply();
  std::reverse(erased.begin(), erased.end());
  context.erased(erased);
}

}  // namespace

void dead_code(Function& function, PassContext& context) {
  if (!understood(function, context)) return;
  // Decisions have the statement numbers of the original body.
  if (!context.explains()) sweep_unnamed(function, context);
  Sweeper(function, context).run();
}

}  // namespace ptxgen::inline v0::optimize
