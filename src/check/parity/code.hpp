// src/check/parity/code.hpp - a kernel as the parity checks see it
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check/module_facts.hpp"
#include "check/parity/sources.hpp"
#include "check/rule_findings.hpp"

namespace ptxgen::inline v0::gates {

/// One access to global memory, or to memory of unknown space.
struct GlobalAccess {
  std::uint32_t statement = 0;
  std::uint32_t parameter = ptx::kNone;  ///< that holds the address of the operand; kNone: unknown
  SourceSet address = 0;
  bool writes = false;
};

/// The entry of a module with its analyses and accesses. Refers to the facts.
class ParityCode {
 public:
  /// `module` has one entry with a body.
  explicit ParityCode(ModuleFacts& module);
  ParityCode(const ParityCode&) = delete;
  ParityCode& operator=(const ParityCode&) = delete;

  [[nodiscard]] analysis::Facts& facts() const noexcept { return *facts_; }
  [[nodiscard]] const ptx::Module& module() const noexcept { return facts_->module(); }
  [[nodiscard]] const ptx::Function& function() const noexcept { return facts_->function(); }
  [[nodiscard]] const Sources& sources() const noexcept { return sources_; }
  [[nodiscard]] std::span<const GlobalAccess> accesses() const noexcept { return accesses_; }

  [[nodiscard]] std::string_view parameter_name(std::uint32_t parameter) const;
  /// kNone if there is none of that name.
  [[nodiscard]] std::uint32_t parameter(std::string_view name) const;
  /// The first statement that loads the parameter; kNone if none does.
  [[nodiscard]] std::uint32_t load_of(std::uint32_t parameter) const;
  /// Sources of the guards and branches that decide whether the statement executes.
  [[nodiscard]] SourceSet deciding(std::uint32_t statement) const;
  /// "line 12: st.global.f32 [%rd1], %f1;"
  [[nodiscard]] std::string place(std::uint32_t statement) const;
  [[nodiscard]] Finding finding(std::uint32_t statement, std::string message,
                                std::string_view reason, std::string_view cure) const;

 private:
  void look(std::uint32_t statement);
  void add(std::uint32_t statement, const ptx::Operand& address, bool writes);
  [[nodiscard]] std::uint32_t pointer_of(const analysis::AffineForm& form, SourceSet sources) const;

  std::shared_ptr<analysis::Facts> facts_;
  Sources sources_;
  std::vector<GlobalAccess> accesses_;
};

/// The entry with a body, or nullptr unless there is exactly one.
[[nodiscard]] const ptx::Function* only_entry(const ptx::Module& module) noexcept;

/// Independent sums that the stores through the parameters `outputs` write: stores whose values
/// share an addition count as one, values without an addition do not count. A value is followed
/// through moves, conversions, selections, shuffles and additions, and in a fused multiply-add
/// through its summand.
[[nodiscard]] std::uint32_t independent_sums(const ParityCode& code, SourceSet outputs);

/// A loop that runs up to a parameter, as a number of rows.
[[nodiscard]] std::optional<std::uint64_t> step_of_loop_to(const ParityCode& code,
                                                           SourceSet parameter);

/// The loops of a kernel: "(())()" is a loop with one inside it, then another one. Loops up to a
/// parameter of the set `omitted` are left out, but not those inside them.
[[nodiscard]] std::string loop_text(const ParityCode& code, SourceSet omitted = 0);

}  // namespace ptxgen::inline v0::gates
