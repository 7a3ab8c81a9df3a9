// src/optimize/function_facts.hpp - analyses shared by passes
#pragma once

#include <optional>
#include <string>

#include "analysis/facts.hpp"
#include "optimize/constants.hpp"
#include "optimize/scopes.hpp"

namespace ptxgen::inline v0::optimize {

/// The analyses of a function and those that only passes use, each computed on first use.
class FunctionFacts : public analysis::Facts {
 public:
  FunctionFacts(const ptx::Module& module, const ptx::Function& function)
      : Facts(module, function) {}

  /// Without `names` as Constants has it; that is the same one unless it makes a difference.
  [[nodiscard]] const Constants& constants(bool names = true);
  [[nodiscard]] const Scopes& scopes() { return result(scopes_, module(), function()); }

  /// The function has lost these statements and is otherwise as it was: what costs less to bring up
  /// to date than to make again is kept.
  void erased(std::span<const std::uint32_t> statements) {
    Facts::erased(statements);
    constants_.reset(), nameless_.reset(), scopes_.reset();
  }

  /// The first analysis that was made and says something else than one that is made now; empty if
  /// none does. For tests: it costs all of them.
  [[nodiscard]] std::string outdated();

 private:
  std::optional<Constants> constants_, nameless_;
  std::optional<Scopes> scopes_;
};

/// The facts of one function from pass to pass, as long as nothing changes it.
class SharedFacts {
 public:
  /// With `check`, facts that are handed out again are compared with new ones: std::logic_error if
  /// they differ, since a pass then has changed the function and not said so.
  explicit SharedFacts(bool check = false) : check_(check) {}
  /// Valid until the next `of` after a `forget`.
  FunctionFacts& of(const ptx::Module& module, const ptx::Function& function);
  /// The function was changed: it lost these statements, and nothing else happened to it.
  void erased(std::span<const std::uint32_t> statements) {
    if (facts_ && current_) facts_->erased(statements);
  }
  /// The function was changed.
  void forget() noexcept { current_ = false; }
  /// Gives the memory back; what was handed out is gone.
  void drop() noexcept { facts_.reset(); }

 private:
  std::optional<FunctionFacts> facts_;
  bool current_ = false, check_;
};

}  // namespace ptxgen::inline v0::optimize
