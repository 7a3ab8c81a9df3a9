// ptxgen/optimize/pass.hpp - the pass manager and what passes report
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/support/source_location.hpp"

namespace ptxgen::inline v0::optimize {

/// What the passes are told. Plain data: it is part of a module's cache key.
struct PassOptions {
  /// Names of passes and groups in the order in which they run: `fma_fusion` `mad_fusion`
  /// `loop_split` `fold_constants` `copy_propagation` `dead_code` `branch_simplify`; `cleanup` (the
  /// last four) and `default` (all), each until none changes anything; `none`. A pass is not run
  /// again on a function that no other pass has changed since.
  std::vector<std::string> passes{"default"};
  /// For mul, add and sub that neither say it themselves nor have it from their function.
  bool contract = true;
  /// For loops and conditions without a hint: 0 never, 1 always, otherwise a region must have that
  /// many instructions or hold one that is worth a split by itself.
  std::int16_t split_threshold = 1;
  /// Loop splits may write a statement so many times: each condition of the loops around it doubles
  /// it. Of a nest of loops beyond that no condition is taken.
  std::uint32_t growth_limit = 4;
  /// The verifier after each pass that changed something.
  bool verify = true;
  /// Write down a Decision for each candidate; counts are kept in any case.
  bool explain = false;
  /// Keep the PTX before and after each pass that changed something.
  bool dump = false;
};

/// What a pass decided about one candidate.
struct Decision {
  bool fired = false;
  std::string_view reason;      ///< stable: "fused", "rounding-differs", ...; a literal
  std::string message;          ///< a sentence: what was done, or which condition stood against it
  std::string kernel;           ///< the function
  std::uint32_t line = 0;       ///< of the text before the pipeline ran, 0 for built statements
  std::uint32_t statement = 0;  ///< number in the body as the pass found it
  /// Of a pair the other statement, ptx::kNone if there is none: fma_fusion and mad_fusion give the
  /// addition as `statement` and the multiplication here.
  std::uint32_t other = ptx::kNone;
  SourceLocation cpp;  ///< the builder call
};

/// How often a reason was met.
struct ReasonCount {
  std::string_view reason;
  bool fired = false;
  std::uint64_t count = 0;
};

/// What one run of one pass did.
struct PassReport {
  std::string_view name;
  bool changed = false;
  std::vector<ReasonCount> counts;  ///< in the order in which they were first met
  std::vector<Decision> decisions;  ///< with PassOptions::explain
  std::uint64_t visits = 0;         ///< statements looked at: a measure of work
  std::size_t statements_before = 0;
  std::size_t statements_after = 0;
  double microseconds = 0;         ///< the pass itself, its analyses included
  double verify_microseconds = 0;  ///< the verifier behind it
  std::string before, after;       ///< PTX, with PassOptions::dump
  [[nodiscard]] std::uint64_t fired() const noexcept;
  [[nodiscard]] std::uint64_t refused() const noexcept;
};

struct PipelineReport {
  std::vector<PassReport> passes;  ///< in the order in which they ran; rounds of groups one by one
  [[nodiscard]] bool changed() const noexcept;
};

class FunctionFacts;
class SharedFacts;

/// What a pass works with, besides the function. One for each run of a pass on a function.
class PassContext {
 public:
  PassContext(ptx::Module& module, const PassOptions& options, PassReport& report,
              SharedFacts& facts) noexcept
      : module_(&module), options_(&options), report_(&report), facts_(&facts) {}
  [[nodiscard]] ptx::Module& module() const noexcept { return *module_; }
  [[nodiscard]] const PassOptions& options() const noexcept { return *options_; }
  /// Adds to the measure of work.
  void visit(std::uint64_t statements = 1) noexcept { report_->visits += statements; }
  /// The function was changed; to be called for every change.
  void changed() noexcept { report_->changed = outdated_ = true; }
  /// Instead of `changed`, when these statements, in their order, were erased and nothing else was
  /// changed since the facts were asked for: they are brought up to date.
  void erased(std::span<const std::uint32_t> statements);
  /// The analyses of the function as it is now, those of earlier passes if none has changed it
  /// since (src/optimize/function_facts.hpp). They stay as they are, and are valid, until this is
  /// called again behind `changed`: when all changes that were announced have been made.
  [[nodiscard]] FunctionFacts& facts(const ptx::Function& function);
  /// Whether it was changed since its facts were asked for.
  [[nodiscard]] bool outdated() const noexcept { return outdated_; }
  /// Whether decisions are wanted in words. Counting goes on without.
  [[nodiscard]] bool explains() const noexcept { return options_->explain; }
  /// Counts a candidate. `reason` must be a literal. The message is only kept if `explains()`.
  void decide(const ptx::Function& function, std::uint32_t statement, bool fired,
              std::string_view reason, std::string message = {}, std::uint32_t other = ptx::kNone);

 private:
  ptx::Module* module_;
  const PassOptions* options_;
  PassReport* report_;
  SharedFacts* facts_;
  bool outdated_ = false;
};

/// A row of the list of passes.
struct PassInfo {
  std::string_view name;
  std::string_view doc;  ///< one line
  void (*run)(ptx::Function&, PassContext&) = nullptr;
};

/// Every pass, in the order of the default pipeline.
[[nodiscard]] std::span<const PassInfo> all_passes() noexcept;
/// A group of passes by name (`default`, `cleanup`, `none`), for help texts.
struct PassGroup {
  std::string_view name;
  std::string_view doc;
  std::span<const std::string_view> passes;
};
[[nodiscard]] std::span<const PassGroup> pass_groups() noexcept;

/// Throws `Error` (Stage::Optimize, code "unknown-pass") that lists what there is.
void check_pass_names(std::span<const std::string> names);

/// Runs `options.passes` on every function with a body, the verifier behind each that changed
/// something. Throws `Error` (Stage::Optimize): "unknown-pass", or the rule that the verifier found
/// broken, with the name of the pass; then the module is as it was before the call.
/// Instructions outside the op table are left alone, and so are functions that the verifier
/// refuses.
PipelineReport run_passes(ptx::Module& module, const PassOptions& options = {});

/// `explain` in words: a line for each pass, and an indented one for each decision.
[[nodiscard]] std::string to_text(const PipelineReport& report, const ptx::Module& module);

}  // namespace ptxgen::inline v0::optimize
