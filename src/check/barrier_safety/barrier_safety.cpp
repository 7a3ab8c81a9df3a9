// src/check/barrier_safety/barrier_safety.cpp - the gate barrier_safety
#include "check/barrier_safety/barrier_safety.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/uniformity_sources.hpp"
#include "check/barrier_safety/calls.hpp"
#include "check/barrier_safety/suspects.hpp"
#include "check/module_facts.hpp"
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

constexpr std::uint16_t kFirstToWaitForLive = 70;  // sm: exited threads no longer count

class Gate {
 public:
  explicit Gate(ModuleFacts& facts)
      : module_facts_(facts), module_(facts.module()), options_(facts.options()) {}

  std::vector<Finding> run() {
    if (!any_barrier()) return {};
    const Calls calls(module_);
    for (std::size_t f = 0; f < module_.functions.size(); ++f) {
      if (module_.functions[f].body.empty()) continue;
      const std::size_t before = findings_.size();
      check(module_.functions[f], calls, f);
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

  void check(const Function& function, const Calls& calls, std::size_t number) {
    bool any = false;
    for (const Instruction& s : function.body) {
      any = any || use_of(function, s).kind != UseKind::None ||
            (is_instruction(s) && has(info(s.op).flags, Flag::Call));
    }
    if (!any) return;
    const analysis::UniformityOptions uniformity{.block = options_.block};
    const std::array<std::uint32_t, 3> block = analysis::block_shape(function, uniformity);
    const std::shared_ptr<analysis::Facts> facts = module_facts_.of(function);
    Subject subject = calls.subject_of(*facts, number);
    if (subject.barriers.empty()) return;
    std::vector<Doubt> doubts = suspects(subject, subject, block);
    if (doubts.empty()) return;

    // Conditions on the index may be equal in all threads of the block.
    Function folded = function;
    fold_equal_values(folded, block[0] != 0 ? block : widest(function), block[0] != 0);
    analysis::Facts again(module_, folded, uniformity);
    const Subject sharper = calls.subject_of(again, number);
    doubts = suspects(sharper, subject, block);
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

  ModuleFacts& module_facts_;
  const Module& module_;
  const GateOptions& options_;
  std::vector<Finding> findings_;
  std::uint64_t wasted_ = 0;  ///< work of walks that did not end
};

}  // namespace

std::vector<Finding> barrier_safety(ModuleFacts& facts) { return Gate(facts).run(); }

std::vector<Finding> barrier_safety(const Module& module, const GateOptions& options) {
  ModuleFacts facts(module, options);
  return barrier_safety(facts);
}

}  // namespace ptxgen::inline v0::gates
