// src/optimize/pass.cpp - runs pass pipelines, with the verifier after each
#include "ptxgen/optimize/pass.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <iterator>
#include <set>
#include <utility>

#include "optimize/function_facts.hpp"
#include "optimize/pass_list.hpp"
#include "ptx/verify_functions.hpp"
#include "ptxgen/optimize/passes.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::optimize {

namespace {

// The passes, in the order of the default pipeline after its first look for dead code; at the end
// those that are not part of it.
constexpr PassInfo kPasses[] = {
    {"fma_fusion", "floating-point mul and add become fma", fma_fusion},
    {"mad_fusion", "integer mul and add become mad", mad_fusion},
    {"loop_split", "a loop that tests its own index becomes two", loop_split},
    {"fold_constants", "instructions on constants become moves", fold_constants},
    {"copy_propagation", "reads of a copy read what was copied", copy_propagation},
    {"dead_code", "what nothing reads or reaches goes", dead_code},
    {"branch_simplify", "decided guards and branches go", branch_simplify},
    {"tokens", "barriers that order nothing more go", tokens},
};
constexpr std::size_t kByNameAlone = 1;

// Dead code first: it saves the other passes work.
constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kPasses) + 1 - kByNameAlone> names{"dead_code"};
  for (std::size_t i = 1; i < names.size(); ++i) names[i] = kPasses[i - 1].name;
  return names;
}();
constexpr std::span<const std::string_view> kDefault = kNames;
constexpr std::span<const std::string_view> kCleanup = kDefault.last(4);
static_assert(kCleanup.front() == "fold_constants");
constexpr PassGroup kGroups[] = {
    {"cleanup", "these again and again until none changes anything", kCleanup},
    {"default", "all passes but tokens, again and again until none changes anything", kDefault},
    {"none", "no pass", {}},
};

// Passes shorten a function or settle something for good; this bounds what a mistake costs.
constexpr int kMaxIterations = 64;

const PassInfo* find_pass(std::span<const PassInfo> passes, std::string_view name) {
  const auto found = std::find_if(passes.begin(), passes.end(),
                                  [&](const PassInfo& pass) { return pass.name == name; });
  return found == passes.end() ? nullptr : &*found;
}
const PassGroup* find_group(std::string_view name) {
  const auto found = std::find_if(std::begin(kGroups), std::end(kGroups),
                                  [&](const PassGroup& group) { return group.name == name; });
  return found == std::end(kGroups) ? nullptr : found;
}

using Clock = std::chrono::steady_clock;
double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::size_t statements_of(const ptx::Module& module) {
  std::size_t count = 0;
  for (const ptx::Function& function : module.functions) count += function.body.size();
  return count;
}

class Pipeline {
 public:
  /// `original` is a copy of the module.
  Pipeline(ptx::Module& module, const ptx::Module& original, const PassOptions& options,
           std::span<const PassInfo> passes, bool check_facts)
      : module_(module), original_(original), options_(options), passes_(passes) {
    for (const Finding& finding : ptx::verify(module_)) {
      if (finding.severity == Severity::Error) refused_.insert(finding.kernel);
    }
    for (const ptx::Function& function : module_.functions) {
      const bool left_alone = function.declaration || is_refused(module_.text(function.name));
      settled_.push_back(left_alone ? kAll : 0);
      facts_.emplace_back(check_facts);
    }
  }

  void run(std::string_view name) {
    if (const PassInfo* pass = find_pass(passes_, name)) {
      run(*pass);
    } else {
      to_fixed_point(*find_group(name));
    }
  }
  PipelineReport report;

 private:
  /// A set of passes, by their places in the list.
  using PassSet = std::uint32_t;
  static constexpr PassSet kAll = ~PassSet{0};

  [[nodiscard]] PassSet bit(const PassInfo& pass) const {
    return PassSet{1} << static_cast<unsigned>(&pass - passes_.data());
  }
  [[nodiscard]] bool is_settled(const PassInfo& pass) const {
    return std::all_of(settled_.begin(), settled_.end(),
                       [&](PassSet set) { return (set & bit(pass)) != 0; });
  }

  void to_fixed_point(const PassGroup& group) {
    PassSet reported = 0;
    report.passes.reserve(report.passes.size() + group.passes.size());
    for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
      bool changed = false;
      for (const std::string_view member : group.passes) {
        const PassInfo& pass = *find_pass(passes_, member);
        const bool first = (std::exchange(reported, reported | bit(pass)) & bit(pass)) == 0;
        if (first || !is_settled(pass)) changed |= run(pass);
      }
      if (!changed) return;
    }
  }

  bool run(const PassInfo& pass) {
    PassReport& entry = report.passes.emplace_back();
    entry.name = pass.name;
    entry.statements_before = statements_of(module_);
    if (options_.dump) entry.before = ptx::print(module_);
    const auto start = Clock::now();
    changed_.assign(module_.functions.size(), false);
    for (std::size_t i = 0; i < module_.functions.size(); ++i) {
      if ((settled_[i] & bit(pass)) == 0) entry.changed |= run(pass, i, entry);
    }
    entry.microseconds = microseconds_since(start);
    entry.statements_after = statements_of(module_);
    if (!entry.changed) {
      entry.before.clear();
      return false;
    }
    if (options_.dump) entry.after = ptx::print(module_);
    if (options_.verify) verify(entry);
    return true;
  }

  bool run(const PassInfo& pass, std::size_t function, PassReport& entry) {
    const bool others_changed = std::exchange(entry.changed, false);
    PassContext context(module_, options_, entry, facts_[function]);
    pass.run(module_.functions[function], context);
    const bool changed = std::exchange(entry.changed, others_changed);
    settled_[function] = (changed ? 0 : settled_[function]) | bit(pass);
    changed_[function] = changed;
    if (context.outdated()) facts_[function].drop();
    return changed;
  }

  void verify(PassReport& entry) {
    const auto start = Clock::now();
    const std::vector<Finding> findings = ptx::verify_functions(module_, changed_, original_);
    entry.verify_microseconds = microseconds_since(start);
    for (const Finding& finding : findings) {
      if (finding.severity != Severity::Error || is_refused(finding.kernel)) continue;
      Error error(Stage::Optimize, finding.rule,
                  "the pass " + std::string(entry.name) +
                      " left PTX that the verifier refuses: " + finding.message +
                      "; this is a fault of the library: leave the pass out and report it");
      error.kernel = finding.kernel;
      error.target = module_.target;
      error.file = finding.file;
      error.line = finding.line;
      error.site = finding.cpp;
      throw error.refresh();
    }
  }

  [[nodiscard]] bool is_refused(std::string_view kernel) const {
    return refused_.find(kernel) != refused_.end();
  }

  ptx::Module& module_;
  const ptx::Module& original_;
  const PassOptions& options_;
  std::span<const PassInfo> passes_;
  /// Functions that the verifier refused before any pass ran; an empty name: the module itself.
  std::set<std::string, std::less<>> refused_;
  /// Of each function the passes that have nothing to do there: since they ran no other pass has
  /// changed it, and a second run of a pass changes nothing.
  std::vector<PassSet> settled_;
  std::deque<SharedFacts> facts_;  // of each function
  std::vector<bool> changed_;      // by the last pass, of each function
};

}  // namespace

std::uint64_t PassReport::fired() const noexcept {
  std::uint64_t sum = 0;
  for (const ReasonCount& reason : counts) sum += reason.fired ? reason.count : 0;
  return sum;
}
std::uint64_t PassReport::refused() const noexcept {
  std::uint64_t sum = 0;
  for (const ReasonCount& reason : counts) sum += reason.fired ? 0 : reason.count;
  return sum;
}

bool PipelineReport::changed() const noexcept {
  return std::any_of(passes.begin(), passes.end(),
                     [](const PassReport& pass) { return pass.changed; });
}

FunctionFacts& PassContext::facts(const ptx::Function& function) {
  if (std::exchange(outdated_, false)) facts_->forget();
  return facts_->of(*module_, function);
}

void PassContext::erased(std::span<const std::uint32_t> statements) {
  report_->changed = true;
  if (!outdated_) facts_->erased(statements);
}

void PassContext::decide(const ptx::Function& function, std::uint32_t statement, bool fired,
                         std::string_view reason, std::string message, std::uint32_t other) {
  auto& counts = report_->counts;
  auto found = std::find_if(counts.begin(), counts.end(), [&](const ReasonCount& count) {
    return count.reason == reason && count.fired == fired;
  });
  if (found == counts.end()) {
    counts.push_back({reason, fired, 0});
    found = std::prev(counts.end());
  }
  ++found->count;
  if (!explains()) return;
  const ptx::Instruction& instruction = function.body[statement];
  report_->decisions.push_back({fired, reason, std::move(message),
                                std::string(module_->text(function.name)), instruction.line,
                                statement, other, module_->site_of(instruction)});
}

std::span<const PassInfo> all_passes() noexcept { return kPasses; }
std::span<const PassGroup> pass_groups() noexcept { return kGroups; }

void check_pass_names(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (find_pass(kPasses, name) != nullptr || find_group(name) != nullptr) continue;
    std::string known;
    for (const PassInfo& pass : kPasses) known += " " + std::string(pass.name);
    known += "; groups:";
    for (const PassGroup& group : kGroups) known += " " + std::string(group.name);
    throw Error(Stage::Optimize, "unknown-pass",
                "there is no pass '" + name + "'; passes:" + known);
  }
}

PipelineReport run_passes(ptx::Module& module, const PassOptions& options) {
  return run_passes(module, options, kPasses);
}

PipelineReport run_passes(ptx::Module& module, const PassOptions& options,
                          std::span<const PassInfo> passes, bool check_facts) {
  check_pass_names(options.passes);
  // A pass that throws must not leave half of its work; most runs change little, and copying a
  // module costs less than printing it.
  ptx::Module original = module;
  try {
    Pipeline pipeline(module, original, options, passes, check_facts);
    for (const std::string& name : options.passes) pipeline.run(name);
    return std::move(pipeline.report);
  } catch (...) {
    module = std::move(original);
    throw;
  }
}

}  // namespace ptxgen::inline v0::optimize
