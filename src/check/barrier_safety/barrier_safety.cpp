// src/check/barrier_safety/barrier_safety.cpp - the gate barrier_safety
#include "check/barrier_safety/barrier_safety.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/uniformity_sources.hpp"
#include "ptxgen/ptx/target.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;
using namespace barriers;
using analysis::Agreement;

namespace {

// Work of the walks through one shape of a function (see `walk`): some milliseconds.
constexpr std::uint64_t kMaxWork = 2'000'000;
// Once walks that did not end have used this much, the others of the module get a smaller share: a
// text of endless loops takes a second, and a module whose kernels end is judged as each alone.
constexpr std::uint64_t kMaxWasted = 8 * kMaxWork;
constexpr std::uint64_t kWorkAfterWaste = kMaxWork / 32;

constexpr std::uint64_t kBlockBarriers = 16;
constexpr std::uint16_t kFirstToWaitForLive = 70;  // sm: exited threads no longer count
constexpr std::size_t kMaxDoubts = 100;

/// Facts about a function that do not depend on its callers.
struct Summary {
  CallEffect effect;
  std::uint32_t numbers = 0;    ///< of its barriers, as bits, without those of one warp alone
  std::uint32_t elsewhere = 0;  ///< the same for related functions
};

bool is_instruction(const Instruction& s) { return s.kind == StatementKind::Instruction; }

/// Constants, and registers whose only write is a move of a constant.
class Constants {
 public:
  Constants(const Function& function, const analysis::RegisterIndex& index)
      : index_(index), values_(index.size()), writes_(index.size(), 0) {
    for (const Instruction& s : function.body) {
      analysis::for_each_access(function, s, [&](const analysis::RegisterAccess& a) {
        if (!a.write) return;
        const std::uint32_t reg = index.find(a.reg);
        ++writes_[reg];
        const auto operands = function.operands_of(s);
        if (s.op == Op::mov && !s.guard.present() && operands.size() == 2 &&
            operands[1].kind == OperandKind::Integer)
          values_[reg] = operands[1].value;
      });
    }
  }
  [[nodiscard]] std::optional<std::uint64_t> of(const Operand& o) const {
    if (o.kind == OperandKind::Integer) return o.value;
    if (o.kind != OperandKind::Register) return std::nullopt;
    const std::uint32_t reg = index_.find(o.as_register());
    return reg != kNone && writes_[reg] == 1 ? values_[reg] : std::nullopt;
  }

 private:
  const analysis::RegisterIndex& index_;
  std::vector<std::optional<std::uint64_t>> values_;
  std::vector<std::uint32_t> writes_;
};

/// An aligned barrier for 32 threads: each warp that arrives completes it, unless the number has
/// other uses. At a barrier that is not aligned, lanes of two warps may complete it.
bool counts_a_warp(const Constants& constants, const Use& use) {
  return use.aligned && use.count != nullptr && constants.of(*use.count) == 32u;
}

/// The barriers of one function that uniformity alone does not show to be safe. Numbers, counts and
/// masks are read from the original function: folding keeps the equality of values, not the values.
class Suspects {
 public:
  Suspects(const Subject& subject, const Subject& written,
           const std::array<std::uint32_t, 3>& block)
      : s_(subject), block_(block), constants_(written.function, written.index) {}

  std::vector<Doubt> find() {
    mark_after_leaving_calls();
    std::vector<Doubt> found;
    for (const std::uint32_t barrier : s_.barriers) {
      const std::uint32_t block = s_.cfg.block_of(barrier);
      if (!s_.cfg.reachable(block)) continue;
      Doubt doubt;
      doubt.barrier = barrier;
      doubt.shape_known = block_[0] != 0;
      if (doubtful(doubt, barrier, block)) found.push_back(std::move(doubt));
      // Each report costs time, and more are not readable.
      if (found.size() == kMaxDoubts) break;
    }
    return found;
  }

 private:
  Agreement agreement(const Operand& o) const {
    return analysis::agreement(s_.module, s_.function, s_.index, s_.uniformity, o,
                               {.block = block_});
  }
  Agreement of_guard(const Guard& guard) const {
    return guard.present() ? agreement(Operand::reg(guard.predicate)) : Agreement::Grid;
  }

  bool doubtful(Doubt& doubt, std::uint32_t barrier, std::uint32_t block) {
    const Instruction& statement = s_.function.body[barrier];
    const Use use = use_of(s_.function, statement);
    const CallEffect call = s_.call(barrier);
    if (s_.uniformity.gave_up()) {
      doubt.why = Doubt::Why::Unknown;
      return true;
    }
    Agreement needed = Agreement::Block;
    const bool alone = each_warp_alone(use);
    if (use.kind == UseKind::Warp || (use.kind == UseKind::None && !call.barrier) || alone)
      needed = Agreement::Warp;
    if (diverges(doubt, statement, block, needed)) {
      doubt.why = use.kind == UseKind::None ? Doubt::Why::Call : Doubt::Why::Control;
      return true;
    }
    if (use.kind == UseKind::Warp) {
      doubt.why = Doubt::Why::Mask;
      const auto mask = constants_.of(*use.id);
      return !mask || static_cast<std::uint32_t>(*mask) != 0xffffffffu;
    }
    if (use.kind == UseKind::Cluster) {
      doubt.why = Doubt::Why::Cluster;
      return blocks_diverge(doubt, statement, block);
    }
    if (use.kind == UseKind::None) {
      doubt.why = Doubt::Why::Left;
      return after_leaving_call_[block];
    }
    doubt.why = Doubt::Why::Left;
    if (alone) return after_leaving_call_[block];
    doubt.why = Doubt::Why::Number;
    if (agreement(*use.id) < Agreement::Block) return true;
    if (constants_.of(*use.id).value_or(0) >= kBlockBarriers) return true;
    doubt.why = Doubt::Why::Count;
    if (use.count != nullptr && !counts_all(*use.count)) return true;
    // A thread that only arrives may run ahead and arrive twice, in place of another thread.
    if (!use.waits) return true;
    doubt.why = Doubt::Why::Left;
    return after_leaving_call_[block];
  }

  bool diverges(Doubt& doubt, const Instruction& statement, std::uint32_t block,
                Agreement needed) const {
    const Agreement guard = of_guard(statement.guard);
    if (s_.uniformity.of_control(block) >= needed && guard >= needed) return false;
    for (const std::uint32_t decider : s_.cfg.deciders(block)) {
      if (s_.uniformity.of_branch(decider) < needed)
        doubt.deciders.push_back(s_.cfg.blocks()[decider].terminator);
    }
    if (guard < needed) doubt.deciders.push_back(doubt.barrier);
    return true;
  }

  /// Blocks of a cluster may diverge if those that avoid the barrier leave for good: no barrier
  /// waits for threads that have left.
  bool blocks_diverge(Doubt& doubt, const Instruction& statement, std::uint32_t block) const {
    if (of_guard(statement.guard) < Agreement::Grid) doubt.deciders.push_back(doubt.barrier);
    for (const std::uint32_t decider : s_.cfg.deciders(block)) {
      if (s_.uniformity.of_branch(decider) >= Agreement::Grid) continue;
      const auto successors = s_.cfg.successors(decider);
      if (std::any_of(successors.begin(), successors.end(),
                      [&](std::uint32_t next) { return !reaches_cluster_barrier(next); }))
        continue;
      doubt.deciders.push_back(s_.cfg.blocks()[decider].terminator);
    }
    return !doubt.deciders.empty();
  }
  bool reaches_cluster_barrier(std::uint32_t start) const {
    if (start == s_.cfg.exit()) return false;
    std::vector<bool> targets(s_.cfg.blocks().size(), false), seen(targets);
    for (const std::uint32_t barrier : s_.barriers) {
      if (use_of(s_.function, s_.function.body[barrier]).kind != UseKind::Block)
        targets[s_.cfg.block_of(barrier)] = true;
    }
    std::vector<std::uint32_t> open{start};
    seen[start] = true;
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      if (targets[at]) return true;
      for (const std::uint32_t next : s_.cfg.successors(at)) {
        if (next == s_.cfg.exit() || seen[next]) continue;
        seen[next] = true;
        open.push_back(next);
      }
    }
    return false;
  }

  /// A barrier for 32 threads without other uses: each warp completes it alone.
  bool each_warp_alone(const Use& use) const {
    const auto number = use.kind == UseKind::Block ? constants_.of(*use.id) : std::nullopt;
    if (!number || *number >= kBlockBarriers || !counts_a_warp(constants_, use)) return false;
    if ((s_.elsewhere >> *number & 1) != 0) return false;
    return std::ranges::all_of(s_.barriers, [&](std::uint32_t barrier) {
      const Use other = use_of(s_.function, s_.function.body[barrier]);
      if (other.kind != UseKind::Block) return true;
      const auto its = constants_.of(*other.id);
      return (its && *its != *number) || counts_a_warp(constants_, other);
    });
  }
  bool counts_all(const Operand& count) const {
    const auto number = constants_.of(count);
    const std::uint64_t threads = std::uint64_t{block_[0]} * block_[1] * block_[2];
    return number && threads != 0 && (*number & 0xffffffffu) == (threads + 31) / 32 * 32;
  }

  void mark_after_leaving_calls() {
    after_leaving_call_.assign(s_.cfg.blocks().size(), false);
    std::vector<std::uint32_t> open;
    for (std::uint32_t i = 0; i < s_.calls.size(); ++i) {
      if (s_.calls[i].leaves) open.push_back(s_.cfg.block_of(i));
    }
    // Includes the whole block of the call: precise enough for a rare case.
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      if (after_leaving_call_[at]) continue;
      after_leaving_call_[at] = true;
      for (const std::uint32_t next : s_.cfg.successors(at)) {
        if (next != s_.cfg.exit()) open.push_back(next);
      }
    }
  }

  const Subject& s_;
  std::array<std::uint32_t, 3> block_;
  Constants constants_;
  std::vector<bool> after_leaving_call_;
};

class Gate {
 public:
  Gate(const Module& module, const GateOptions& options)
      : module_(module), options_(options), summaries_(module.functions.size()) {}

  std::vector<Finding> run() {
    if (!any_barrier()) return {};
    summarise();
    find_numbers();
    for (std::size_t f = 0; f < module_.functions.size(); ++f) {
      if (module_.functions[f].body.empty()) continue;
      const std::size_t before = findings_.size();
      check(module_.functions[f], summaries_[f].elsewhere);
      std::stable_sort(findings_.begin() + static_cast<std::ptrdiff_t>(before), findings_.end(),
                       [](const Finding& a, const Finding& b) { return a.line < b.line; });
    }
    return std::move(findings_);
  }

 private:
  bool any_barrier() const {
    for (const Function& function : module_.functions) {
      for (const Instruction& s : function.body) {
        if (use_of(function, s).kind != UseKind::None) return true;
      }
    }
    return false;
  }

  // Calls ----------------------------------------------------------------------------------------

  const Function* callee_of(const Function& function, const Instruction& s,
                            std::uint32_t& number) const {
    for (std::size_t i = 0; i < function.operands_of(s).size(); ++i) {
      const OperandSpec* spec = operand_spec(function, s, i);
      if (spec == nullptr || spec->role != OperandRole::Callee) continue;
      const Operand& o = function.operands_of(s)[i];
      if (o.kind != OperandKind::Symbol || o.id >= module_.symbols.size()) return nullptr;
      const Symbol& symbol = module_.symbols[o.id];
      if (symbol.kind != SymbolKind::Function || symbol.index >= module_.functions.size())
        return nullptr;
      number = symbol.index;
      return &module_.functions[symbol.index];
    }
    return nullptr;
  }

  /// What a call may do. A function without a body here is assumed to have no barriers.
  CallEffect effect_of(const Function& function, const Instruction& s) const {
    std::uint32_t number = 0;
    if (callee_of(function, s, number) != nullptr) return summaries_[number].effect;
    // An indirect call may call any function of the module.
    CallEffect all;
    for (std::size_t f = 0; f < module_.functions.size(); ++f) {
      if (module_.functions[f].entry) continue;
      all.barrier = all.barrier || summaries_[f].effect.barrier;
      all.warp = all.warp || summaries_[f].effect.warp;
      all.leaves = all.leaves || summaries_[f].effect.leaves;
    }
    return all;
  }

  // Effects only grow, so the iteration ends.
  void summarise() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (std::size_t f = 0; f < module_.functions.size(); ++f) {
        const Function& function = module_.functions[f];
        if (function.entry || function.body.empty()) continue;
        const CallEffect before = summaries_[f].effect;
        CallEffect& effect = summaries_[f].effect;
        for (const Instruction& s : function.body) {
          if (!is_instruction(s)) continue;
          const Use use = use_of(function, s);
          effect.barrier =
              effect.barrier || use.kind == UseKind::Block || use.kind == UseKind::Cluster;
          effect.warp = effect.warp || use.kind == UseKind::Warp;
          if (has(info(s.op).flags, Flag::Call)) {
            const CallEffect inner = effect_of(function, s);
            effect.barrier = effect.barrier || inner.barrier;
            effect.warp = effect.warp || inner.warp;
            effect.leaves = effect.leaves || inner.leaves;
          }
          effect.leaves = effect.leaves || s.op == Op::exit;
        }
        if (effect.barrier && !effect.always) effect.always = always_waits(function);
        changed = changed || before.barrier != effect.barrier || before.warp != effect.warp ||
                  before.leaves != effect.leaves || before.always != effect.always;
      }
    }
  }

  /// Whether every thread that enters reaches a barrier for the whole block.
  bool always_waits(const Function& function) const {
    const analysis::Cfg cfg(function);
    for (std::uint32_t i = 0; i < function.body.size(); ++i) {
      const Instruction& s = function.body[i];
      const Use use = use_of(function, s);
      const bool here = use.kind == UseKind::Block && use.waits && use.count == nullptr &&
                        use.id->kind == OperandKind::Integer;
      const bool inside =
          is_instruction(s) && has(info(s.op).flags, Flag::Call) && effect_of(function, s).always;
      if ((here || inside) && !s.guard.present() &&
          cfg.post_dominators().dominates(cfg.block_of(i), 0))
        return true;
    }
    return false;
  }

  // Numbers of barriers --------------------------------------------------------------------------

  /// Threads of one block may use one barrier number in several functions at once.
  void find_numbers() {
    const std::size_t functions = module_.functions.size();
    std::vector<std::vector<std::uint32_t>> callees(functions);
    for (std::size_t f = 0; f < functions; ++f) {
      summaries_[f].numbers = numbers_of(module_.functions[f]);
      callees[f] = callees_of(module_.functions[f]);
    }
    std::vector<std::uint32_t> reached_by(functions, kNone);
    for (std::uint32_t caller = 0; caller < functions; ++caller) {
      if (callees[caller].empty()) continue;
      const std::vector<std::uint32_t> reached = reached_from(caller, callees, reached_by);
      std::uint32_t once = 0, twice = 0;
      for (const std::uint32_t f : reached) {
        twice |= once & summaries_[f].numbers;
        once |= summaries_[f].numbers;
      }
      for (const std::uint32_t f : reached)
        summaries_[f].elsewhere |= twice | (once & ~summaries_[f].numbers);
    }
  }
  static std::uint32_t numbers_of(const Function& function) {
    std::uint32_t numbers = 0;
    std::optional<analysis::RegisterIndex> index;
    std::optional<Constants> constants;
    for (const Instruction& s : function.body) {
      const Use use = use_of(function, s);
      if (use.kind != UseKind::Block) continue;
      if (!index) constants.emplace(function, index.emplace(function));
      const auto number = constants->of(*use.id);
      if (!number)
        numbers |= (1u << kBlockBarriers) - 1;
      else if (*number < kBlockBarriers && !counts_a_warp(*constants, use))
        numbers |= 1u << *number;
    }
    return numbers;
  }
  std::vector<std::uint32_t> callees_of(const Function& function) const {
    std::vector<std::uint32_t> callees;
    bool any = false;  // an indirect call
    for (const Instruction& s : function.body) {
      if (!is_instruction(s) || !has(info(s.op).flags, Flag::Call)) continue;
      std::uint32_t number = 0;
      if (callee_of(function, s, number) != nullptr)
        callees.push_back(number);
      else
        any = true;
    }
    for (std::uint32_t f = 0; f < module_.functions.size() && any; ++f) {
      if (!module_.functions[f].entry) callees.push_back(f);
    }
    return callees;
  }
  /// The function and its direct and indirect callees. `reached_by`: by function, the last caller
  /// that reaches it.
  static std::vector<std::uint32_t> reached_from(
      std::uint32_t caller, const std::vector<std::vector<std::uint32_t>>& callees,
      std::vector<std::uint32_t>& reached_by) {
    std::vector<std::uint32_t> reached{caller};
    reached_by[caller] = caller;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const std::uint32_t f : callees[reached[i]]) {
        if (std::exchange(reached_by[f], caller) != caller) reached.push_back(f);
      }
    }
    return reached;
  }

  // A function -----------------------------------------------------------------------------------

  Subject subject_of(const Function& function, analysis::Facts& facts,
                     std::uint32_t elsewhere) const {
    Subject subject{module_, function, facts.cfg(), facts.index(), facts.uniformity(), {}, {}, {}};
    subject.elsewhere = elsewhere;
    bool any_call = false;
    for (const Instruction& s : function.body)
      any_call = any_call || (is_instruction(s) && has(info(s.op).flags, Flag::Call));
    if (any_call) subject.calls.resize(function.body.size());
    for (std::uint32_t i = 0; i < function.body.size(); ++i) {
      const Instruction& s = function.body[i];
      if (!is_instruction(s)) continue;
      if (has(info(s.op).flags, Flag::Call)) {
        subject.calls[i] = effect_of(function, s);
        if (subject.calls[i].barrier || subject.calls[i].warp) subject.barriers.push_back(i);
      } else if (use_of(function, s).kind != UseKind::None) {
        subject.barriers.push_back(i);
      }
    }
    return subject;
  }

  /// The deciders of all barriers (`Cfg::deciders`), found together.
  static void find_deciders(Subject& subject) {
    const analysis::Cfg& cfg = subject.cfg;
    const auto blocks = static_cast<std::uint32_t>(cfg.blocks().size());
    subject.decides.assign(blocks, false);
    std::vector<std::vector<std::uint32_t>> branches(blocks);  // deciders of each block
    for (std::uint32_t b = 0; b < blocks; ++b) {
      if (cfg.successors(b).size() < 2) continue;
      const std::uint32_t join = cfg.post_dominators().immediate(b);
      for (std::uint32_t next : cfg.successors(b)) {
        for (; next != join && next != analysis::kNoNode && next != cfg.exit();
             next = cfg.post_dominators().immediate(next))
          branches[next].push_back(b);
      }
    }
    std::vector<std::uint32_t> open;
    for (const std::uint32_t barrier : subject.barriers) open.push_back(cfg.block_of(barrier));
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      // Each list is visited once.
      for (const std::uint32_t branch : std::exchange(branches[at], {})) {
        if (!subject.decides[branch]) open.push_back(branch);
        subject.decides[branch] = true;
      }
    }
  }

  void check(const Function& function, std::uint32_t elsewhere) {
    bool any = false;
    for (const Instruction& s : function.body) {
      any = any || use_of(function, s).kind != UseKind::None ||
            (is_instruction(s) && has(info(s.op).flags, Flag::Call));
    }
    if (!any) return;
    const analysis::UniformityOptions uniformity{.block = options_.block};
    const std::array<std::uint32_t, 3> block = analysis::block_shape(function, uniformity);
    analysis::Facts facts(module_, function, uniformity);
    Subject subject = subject_of(function, facts, elsewhere);
    if (subject.barriers.empty()) return;
    std::vector<Doubt> doubts = Suspects(subject, subject, block).find();
    if (doubts.empty()) return;

    // Conditions on the index may be equal in all threads of the block.
    Function folded = function;
    fold_equal_values(folded, block[0] != 0 ? block : widest(function), block[0] != 0);
    analysis::Facts again(module_, folded, uniformity);
    const Subject sharper = subject_of(folded, again, elsewhere);
    doubts = Suspects(sharper, subject, block).find();
    if (doubts.empty()) return;
    if (subject.uniformity.gave_up()) return report(subject, doubts, {}, false);
    find_deciders(subject);
    Walk walked;
    if (function.entry && block[0] != 0) {
      const Launch launch{.block = block, .exact = true};
      std::uint64_t work = budget();
      walked = walk(subject, launch, work);
      note_waste(work);
      if (walked.end == Walk::End::Finished && walked.exact &&
          all_orders_finish(subject, walked, launch)) {
        Seen exits;
        add_exits(exits, subject, walked, launch, strict_about_exits());
        for (auto& [barrier, finding] : exits.findings) findings_.push_back(std::move(finding));
        return;
      }
      if (roles_agree(subject, sharper, block)) return;
    }
    for (Doubt& doubt : doubts) doubt.exits = only_exits(subject, doubt);
    report(subject, doubts, shapes(function, block), block[0] != 0,
           independent_of_parameters(walked) ? &walked : nullptr);
  }

  /// Whether threads that leave before a barrier are an error: on targets where the barrier waits
  /// for them, and in code from the builder, which does not rely on exits.
  bool strict_about_exits() const {
    TargetName target;
    const std::string_view name =
        options_.target.empty() ? std::string_view(module_.target) : options_.target;
    const bool waits = parse_target_name(name, target) && target.sm < kFirstToWaitForLive;
    return waits || options_.origin == CodeOrigin::Built;
  }

  /// Whether threads that do not reach the barrier can only leave the kernel: each branch at which
  /// they diverge has a path without barriers and without instructions that wait for the lanes of a
  /// warp. If lanes of one warp diverge, those that leave must not do anything else first.
  static bool only_exits(const Subject& subject, const Doubt& doubt) {
    if (!subject.function.entry || doubt.why != Doubt::Why::Control || doubt.deciders.empty())
      return false;
    // A mask or a number of threads may name some of those that leave.
    const Use use = use_of(subject.function, subject.function.body[doubt.barrier]);
    if (use.kind != UseKind::Block || use.count != nullptr) return false;
    return std::ranges::all_of(doubt.deciders, [&](std::uint32_t decider) {
      const bool whole_warps =
          subject.uniformity.of_branch(subject.cfg.block_of(decider)) >= Agreement::Warp;
      return leaves_before(subject, decider, doubt.barrier, whole_warps);
    });
  }

  /// A shape with the maximum of threads, along x only.
  static std::array<std::uint32_t, 3> widest(const Function& function) {
    return {max_threads(function), 1, 1};
  }
  static std::uint32_t max_threads(const Function& function) {
    std::uint64_t max = kMaxThreads;
    for (const Directive& directive : function.directives) {
      if (directive.kind != DirectiveKind::maxntid) continue;
      std::array<std::uint32_t, 3> bounds{1, 1, 1};
      for (std::size_t i = 0; i < directive.count && i < 3; ++i) bounds[i] = directive.values[i];
      const std::array<std::uint32_t, 3> block = analysis::largest_block(bounds);
      max = std::min(max, std::uint64_t{block[0]} * block[1] * block[2]);
    }
    return static_cast<std::uint32_t>(max);
  }

  /// If the shape is not known, shapes in all of which a fault must show: a kernel that is correct
  /// with some usual shape may only be launched with that one.
  static std::vector<std::array<std::uint32_t, 3>> shapes(
      const Function& function, const std::array<std::uint32_t, 3>& block) {
    if (block[0] != 0) return {block};
    const std::uint32_t max = max_threads(function);
    if (max < kMaxThreads) return {{max, 1, 1}};
    if (reads_tid_beyond_x(function)) return {{32, 4, 1}, {16, 16, 1}, {8, 8, 4}};
    return {{128, 1, 1}, {64, 1, 1}, {256, 1, 1}, {512, 1, 1}, {1024, 1, 1}};
  }
  static bool reads_tid_beyond_x(const Function& function) {
    return std::any_of(function.operands.begin(), function.operands.end(), [](const Operand& o) {
      return o.kind == OperandKind::Special &&
             o.id == static_cast<std::uint32_t>(SpecialRegister::tid) && o.component > 1;
    });
  }

  /// Findings of walks.
  struct Seen {
    std::map<std::uint32_t, Finding> findings;          ///< by barrier
    std::map<std::uint32_t, std::uint32_t> decided_at;  ///< by decider: the barrier of a finding

    std::set<std::uint32_t> barriers;  ///< reported, each by its own finding or within another

    void add(std::uint32_t barrier, std::uint32_t decider, Finding finding) {
      barriers.insert(barrier);
      findings.emplace(barrier, std::move(finding));
      if (decider != kNone) decided_at.emplace(decider, barrier);
    }
  };

  /// Findings of walks of several launches.
  struct Walked {
    Seen stops;
    Seen exits;
  };

  /// Deadlocks of walks: errors if the shape is known and branches depend on the thread's index
  /// alone, so that no launch completes. And barriers before which threads leave the kernel. If the
  /// shape is not known, a deadlock counts only if every shape has one, and exits are warnings
  /// unless every shape has one. `first`: a walk of the first shape that depends on no parameter,
  /// or null.
  Walked walk_launches(const Subject& subject,
                       const std::vector<std::array<std::uint32_t, 3>>& shapes, bool exact,
                       bool strict, const Walk* first) {
    Walked found;
    bool every_stops = true, every_exits = true;
    for (const auto& shape : shapes) {
      const bool example = &shape == &shapes.front();  // the others only confirm it
      bool stuck = false, exits = false;
      const auto see = [&](const Walk& walked, const Launch& launch) {
        if (walked.end == Walk::End::Deadlock) {
          stuck = true;
          if (example && !found.stops.findings.contains(walked.barrier))
            found.stops.add(walked.barrier, walked.decider,
                            proved(subject, walked, launch, exact && walked.exact));
        }
        if (example || !exits) add_exits(found.exits, subject, walked, launch, strict);
        exits = exits || !walked.exits.empty();
        return example || !exits || (every_stops && !stuck);
      };
      const bool ended = each_walk(subject, shape, exact, example ? first : nullptr, see);
      every_stops = every_stops && stuck;
      every_exits = every_exits && exits;
      if (ended || &shape == &shapes.back()) continue;
      every_stops = every_exits = false;  // the other shapes would not end either
      break;
    }
    if (!every_stops) found.stops = {};
    for (auto& [barrier, finding] : found.exits.findings) {
      if (!every_exits) finding.severity = Severity::Warning;
    }
    return found;
  }

  static void add_exits(Seen& seen, const Subject& subject, const Walk& walked,
                        const Launch& launch, bool strict) {
    for (const Walk& exit : walked.exits) {
      if (!seen.barriers.insert(exit.barrier).second) continue;
      const auto at = seen.decided_at.find(exit.decider);
      if (at != seen.decided_at.end())
        add_place(seen.findings.at(at->second), subject, exit.barrier);
      else
        seen.add(exit.barrier, exit.decider, proved(subject, exit, launch, strict));
    }
  }
  /// One divergent branch often affects several barriers: it is reported once.
  static void add_place(Finding& finding, const Subject& subject, std::uint32_t barrier) {
    finding.details.push_back(
        format_text("the same at: the barrier at line {}", subject.function.body[barrier].line));
  }

  /// Whether walks with other parameters would give the same result.
  static bool independent_of_parameters(const Walk& walked) {
    return walked.exact && walked.end != Walk::End::GaveUp;
  }
  /// Walks with one parameter after the other while `fn` returns true. False: ran out of work.
  template <class Fn>
  bool each_walk(const Subject& subject, const std::array<std::uint32_t, 3>& shape, bool exact,
                 const Walk* first, Fn&& fn) {
    std::uint64_t work = budget();
    for (const std::uint64_t parameter : {33u, 1u, 17u, 0u, 100u, 1000000u}) {
      const Launch launch{.block = shape, .exact = exact, .parameter = parameter};
      if (first != nullptr) {
        (void)fn(*first, launch);
        return true;
      }
      const Walk walked = walk(subject, launch, work);
      if (!fn(walked, launch) || independent_of_parameters(walked)) break;
      if (work == 0) break;
    }
    return note_waste(work);
  }

  [[nodiscard]] std::uint64_t budget() const {
    return wasted_ < kMaxWasted ? kMaxWork : kWorkAfterWaste;
  }
  /// Notes that a walk used up its budget, if nothing is left of it. Returns whether it did not.
  bool note_waste(std::uint64_t left) {
    if (left == 0) wasted_ += budget();
    return left != 0;
  }

  void report(const Subject& subject, const std::vector<Doubt>& doubts,
              const std::vector<std::array<std::uint32_t, 3>>& shapes, bool exact,
              const Walk* first = nullptr) {
    auto [stops, exits] = walk_launches(subject, shapes, exact, strict_about_exits(), first);
    std::map<std::vector<std::uint32_t>, Finding> warnings;
    const auto reported = [&](Seen& seen, const Doubt& doubt) {
      if (seen.barriers.contains(doubt.barrier)) return true;
      const auto at = std::ranges::find_if(
          doubt.deciders, [&](std::uint32_t decider) { return seen.decided_at.contains(decider); });
      if (at == doubt.deciders.end()) return false;
      add_place(seen.findings.at(seen.decided_at.at(*at)), subject, doubt.barrier);
      return true;
    };
    for (const Doubt& doubt : doubts) {
      if (reported(stops, doubt) || (doubt.exits && reported(exits, doubt))) continue;
      std::vector<std::uint32_t> key = doubt.deciders;
      if (key.empty()) key = {doubt.barrier, kNone};
      if (doubt.why == Doubt::Why::Unknown) key = {kNone};
      const auto known = warnings.find(key);
      if (known != warnings.end())
        add_place(known->second, subject, doubt.barrier);
      else
        warnings.emplace(std::move(key), doubted(subject, doubt));
    }
    for (auto& [barrier, finding] : stops.findings) findings_.push_back(std::move(finding));
    for (auto& [barrier, finding] : exits.findings) {
      if (!stops.barriers.contains(barrier)) findings_.push_back(std::move(finding));
    }
    for (auto& [deciders, finding] : warnings) findings_.push_back(std::move(finding));
  }

  const Module& module_;
  const GateOptions& options_;
  std::vector<Summary> summaries_;
  std::vector<Finding> findings_;
  std::uint64_t wasted_ = 0;  ///< work of walks that did not end
};

}  // namespace

namespace barriers {

bool leaves_before(const Subject& subject, std::uint32_t decider, std::uint32_t barrier,
                   bool whole_warps) {
  const analysis::Cfg& cfg = subject.cfg;
  const std::uint32_t home = cfg.block_of(barrier);
  const auto follows = [&](std::uint32_t statement) {
    const std::uint32_t block = cfg.block_of(statement);
    return block == home ? statement > barrier : cfg.post_dominators().dominates(block, home);
  };
  const auto stops = [&](std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t i = first; i < end; ++i) {
      const Instruction& s = subject.function.body[i];
      if (!is_instruction(s)) continue;
      const Flag flags = info(s.op).flags;
      if (has(flags, Flag::Convergent | Flag::Call | Flag::Barrier)) return true;
      if (!whole_warps && has(flags, Flag::WritesMemory) && follows(i)) return true;
    }
    return false;
  };
  const auto leads_out = [&](std::uint32_t start) {
    std::vector<bool> seen(cfg.blocks().size(), false);
    std::vector<std::uint32_t> open;
    const auto enter = [&](std::uint32_t next) {
      if (next == cfg.exit() || seen[next]) return;
      seen[next] = true;
      open.push_back(next);
    };
    enter(start);
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      if (stops(cfg.blocks()[at].first, cfg.blocks()[at].end)) return false;
      for (const std::uint32_t next : cfg.successors(at)) enter(next);
    }
    return true;
  };
  const std::uint32_t block = cfg.block_of(decider);
  const auto successors = cfg.successors(block);
  if (cfg.blocks()[block].terminator == decider) return std::ranges::any_of(successors, leads_out);
  // A guard on the barrier itself: the others continue after it.
  return !stops(decider + 1, cfg.blocks()[block].end) && std::ranges::all_of(successors, leads_out);
}

Use use_of(const Function& function, const Instruction& s) {
  Use use;
  if (!is_instruction(s)) return use;
  const OpInfo& row = info(s.op);
  // Other rows with this flag are setmaxnreg and mbarriers.
  if (!has(row.flags, Flag::Barrier) || (row.mnemonic != "bar" && row.mnemonic != "barrier"))
    return use;
  use.kind = s.get(Field::Scope) == Modifier::cluster ? UseKind::Cluster
             : s.op == Op::bar_warp_sync              ? UseKind::Warp
                                                      : UseKind::Block;
  use.aligned = use.kind != UseKind::Warp && (row.mnemonic == "bar" || s.has(Field::Aligned));
  use.waits =
      s.op != Op::bar_arrive && s.op != Op::barrier_arrive && s.op != Op::barrier_cluster_arrive;
  use.arrives = s.op != Op::barrier_cluster_wait;
  const auto operands = function.operands_of(s);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec* spec = operand_spec(function, s, i);
    if (spec == nullptr) continue;
    switch (spec->label[0]) {
      case 'a':
        use.id = &operands[i];
        break;
      case 'b':
        use.count = &operands[i];
        break;
      case 'c':
        use.vote = &operands[i];
        break;
      default:
        use.result = &operands[i];
        break;
    }
  }
  if (use.kind != UseKind::Cluster && use.id == nullptr) use.kind = UseKind::None;
  return use;
}

}  // namespace barriers

std::vector<Finding> barrier_safety(const Module& module, const GateOptions& options) {
  return Gate(module, options).run();
}

}  // namespace ptxgen::inline v0::gates
