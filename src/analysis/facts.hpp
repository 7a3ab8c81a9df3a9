// src/analysis/facts.hpp - the analyses of one function, computed on demand
#pragma once

#include <optional>
#include <span>

#include "ptxgen/analysis/affine.hpp"
#include "ptxgen/analysis/cfg.hpp"
#include "ptxgen/analysis/induction.hpp"
#include "ptxgen/analysis/registers.hpp"
#include "ptxgen/analysis/uniformity.hpp"
#include "ptxgen/analysis/versions.hpp"

namespace ptxgen::inline v0::analysis {

/// For code that needs several analyses of one function, and may not need all. Refers to module and
/// function, which must not change while it lives. Not for several threads.
class Facts {
 public:
  Facts(const ptx::Module& module, const ptx::Function& function,
        const UniformityOptions& options = {})
      : module_(&module), function_(&function), options_(options) {}
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  [[nodiscard]] const ptx::Module& module() const noexcept { return *module_; }
  [[nodiscard]] const ptx::Function& function() const noexcept { return *function_; }
  [[nodiscard]] const UniformityOptions& options() const noexcept { return options_; }

  [[nodiscard]] const Cfg& cfg() { return result(cfg_, *function_); }
  [[nodiscard]] const RegisterIndex& index() { return result(index_, *function_); }
  [[nodiscard]] const Versions& versions() { return result(versions_, *function_, cfg(), index()); }
  [[nodiscard]] const Inductions& inductions() {
    return result(inductions_, *function_, cfg(), index(), versions());
  }
  [[nodiscard]] const Uniformity& uniformity() {
    return result(uniformity_, *module_, *function_, cfg(), index(), options_);
  }
  [[nodiscard]] const Affine& affine() {
    return result(affine_, *module_, *function_, cfg(), index(), versions(), uniformity(),
                  options_);
  }

 protected:
  /// The function has lost these statements and is otherwise as it was.
  void erased(std::span<const std::uint32_t> statements) {
    if (index_) index_->erase(*function_, statements);
    cfg_.reset(), versions_.reset(), inductions_.reset(), uniformity_.reset(), affine_.reset();
  }
  [[nodiscard]] bool has_index() const noexcept { return index_.has_value(); }
  [[nodiscard]] bool has_cfg() const noexcept { return cfg_.has_value(); }
  [[nodiscard]] bool has_versions() const noexcept { return versions_.has_value(); }
  [[nodiscard]] bool has_inductions() const noexcept { return inductions_.has_value(); }
  [[nodiscard]] bool has_uniformity() const noexcept { return uniformity_.has_value(); }
  template <class T, class... Arguments>
  static const T& result(std::optional<T>& slot, Arguments&&... arguments) {
    if (!slot) slot.emplace(std::forward<Arguments>(arguments)...);
    return *slot;
  }

 private:
  const ptx::Module* module_;
  const ptx::Function* function_;
  UniformityOptions options_;
  std::optional<Cfg> cfg_;
  std::optional<RegisterIndex> index_;
  std::optional<Versions> versions_;
  std::optional<Inductions> inductions_;
  std::optional<Uniformity> uniformity_;
  std::optional<Affine> affine_;
};

}  // namespace ptxgen::inline v0::analysis
