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

/// Options of the passes. Plain data, part of a module's cache key.
struct PassOptions {
  /// Names of passes and groups in the order in which they run: `fma_fusion` `mad_fusion`
  /// `loop_split` `fold_constants` `copy_propagation` `dead_code` `branch_simplify` `tokens`;
  /// `cleanup` (the four before `tokens`) and `default` (all but `tokens`), each repeated until
  /// nothing changes; `none`. A pass does not run again on a function that no other pass has
  /// changed since.
  std::vector<std::string> passes{"default"};
  /// Default contraction of mul, add and sub, unless the instruction or its function sets it.
  bool contract = true;
  /// Default for loops and conditions without a hint: 0 never, 1 always, otherwise a region must
  /// have that many instructions or contain one that justifies a split by itself.
  std::int16_t split_threshold = 1;
  /// Maximum copies of a statement by loop splits: each split condition of the enclosing loops
  /// doubles it. A loop nest beyond this limit is not split.
  std::uint32_t growth_limit = 4;
  /// Run the verifier after each pass that changed something.
  bool verify = true;
  /// Record a Decision for each candidate; counts are always recorded.
  bool explain = false;
  /// Keep the PTX before and after each pass that changed something.
  bool dump = false;
};

/// What a pass decided about one candidate.
struct Decision {
  bool fired = false;
  std::string_view reason;      ///< stable: "fused", "rounding-differs", ...; a literal
  std::string message;          ///< a sentence: what was done, or which condition failed
  std::string kernel;           ///< the function
  std::uint32_t line = 0;       ///< of the text before the pipeline, 0 for built statements
  std::uint32_t statement = 0;  ///< index in the body before the pass
  /// The second statement of a pair, or ptx::kNone: for fma_fusion and mad_fusion `statement` is
  /// the addition and this is the multiplication.
  std::uint32_t other = ptx::kNone;
  SourceLocation cpp;  ///< the builder call
};

/// The number of occurrences of a reason.
struct ReasonCount {
  std::string_view reason;
  bool fired = false;
  std::uint64_t count = 0;
};

/// What one run of one pass did.
struct PassReport {
  std::string_view name;
  bool changed = false;
  std::vector<ReasonCount> counts;  ///< in order of first occurrence
  std::vector<Decision> decisions;  ///< with PassOptions::explain
  std::uint64_t visits = 0;         ///< statements visited, a measure of work
  std::size_t statements_before = 0;
  std::size_t statements_after = 0;
  double microseconds = 0;         ///< the pass itself, its analyses included
  double verify_microseconds = 0;  ///< the verifier after it
  std::string before, after;       ///< PTX, with PassOptions::dump
  [[nodiscard]] std::uint64_t fired() const noexcept;
  [[nodiscard]] std::uint64_t refused() const noexcept;
};

struct PipelineReport {
  std::vector<PassReport> passes;  ///< in execution order; iterations of groups one by one
  [[nodiscard]] bool changed() const noexcept;
};

class FunctionFacts;
class SharedFacts;

/// The context of one run of a pass on a function.
class PassContext {
 public:
  PassContext(ptx::Module& module, const PassOptions& options, PassReport& report,
              SharedFacts& facts) noexcept
      : module_(&module), options_(&options), report_(&report), facts_(&facts) {}
  [[nodiscard]] ptx::Module& module() const noexcept { return *module_; }
  [[nodiscard]] const PassOptions& options() const noexcept { return *options_; }
  /// Adds to the measure of work.
  void visit(std::uint64_t statements = 1) noexcept { report_->visits += statements; }
  /// Call for every change of the function.
  void changed() noexcept { report_->changed = outdated_ = true; }
  /// Call instead of `changed` if these statements (in order) were erased and nothing else has
  /// changed since `facts` was called. Updates the facts.
  void erased(std::span<const std::uint32_t> statements);
  /// The analyses of the current function (src/optimize/function_facts.hpp), shared with earlier
  /// passes if the function has not changed since. Valid until the next call after `changed`; call
  /// it again only when all announced changes are complete.
  [[nodiscard]] FunctionFacts& facts(const ptx::Function& function);
  /// Whether the function has changed since `facts` was called.
  [[nodiscard]] bool outdated() const noexcept { return outdated_; }
  /// Whether messages of decisions are recorded. Counts are recorded in any case.
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

/// Every pass, in the order of the default pipeline; then those that are run by name alone.
[[nodiscard]] std::span<const PassInfo> all_passes() noexcept;
/// A group of passes by name (`default`, `cleanup`, `none`), for help texts.
struct PassGroup {
  std::string_view name;
  std::string_view doc;
  std::span<const std::string_view> passes;
};
[[nodiscard]] std::span<const PassGroup> pass_groups() noexcept;

/// Throws `Error` (Stage::Optimize, code "unknown-pass") with a list of the passes.
void check_pass_names(std::span<const std::string> names);

/// Runs `options.passes` on every function with a body, and the verifier after each pass that
/// changed something. Throws `Error` (Stage::Optimize): "unknown-pass", or the rule of the verifier
/// with the name of the pass. The module is then unchanged. Instructions outside the op table and
/// functions that the verifier refuses are not changed.
PipelineReport run_passes(ptx::Module& module, const PassOptions& options = {});

/// A line for each pass, and an indented line for each decision.
[[nodiscard]] std::string to_text(const PipelineReport& report, const ptx::Module& module);

}  // namespace ptxgen::inline v0::optimize
