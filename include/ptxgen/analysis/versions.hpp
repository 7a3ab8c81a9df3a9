// ptxgen/analysis/versions.hpp - which write of a register a read sees
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/analysis/registers.hpp"

namespace ptxgen::inline v0::analysis {

/// One value that a register holds for a while: static single assignment laid over a function
/// whose registers are written more than once.
struct Version {
  enum class Kind : std::uint8_t {
    Entry,  ///< what the register holds when the function begins (undefined, or a parameter)
    Write,  ///< written by `statement`
    Phi,    ///< paths meet at the start of `block`; `inputs()` has one for each predecessor
  };
  Kind kind = Kind::Entry;
  /// Write: the old value remains in part or in some threads (a guard, one component of a vector
  /// register); `previous` is the version that remains.
  bool partial = false;
  std::uint32_t reg = 0;                 ///< number in the RegisterIndex
  std::uint32_t statement = ptx::kNone;  ///< Write
  std::uint32_t block = 0;               ///< where it comes to be; of Entry: 0
  std::uint32_t previous = ptx::kNone;   ///< Write, partial
};

/// One reader of a version: a statement, or a phi.
struct VersionUse {
  std::uint32_t statement =
      ptx::kNone;                      ///< the reading statement, or kNone for a phi or `previous`
  std::uint32_t version = ptx::kNone;  ///< the phi, or the partial write that keeps it
  friend constexpr bool operator==(const VersionUse&, const VersionUse&) = default;
};

/// Definitions and uses of all registers of a function, flow-sensitive. Phis are pruned: one exists
/// only where its value may be read. Near-linear in statements, blocks and phis.
///
/// If a statement A dominates a statement B and both read a register in the same version, B finds
/// the value that A found when it was last executed.
///
/// Statements of unreachable blocks have no versions. Keeps no reference to its arguments.
class Versions {
 public:
  Versions() = default;
  Versions(const ptx::Function& function, const Cfg& cfg, const RegisterIndex& index);

  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(versions_.size());
  }
  [[nodiscard]] const Version& operator[](std::uint32_t version) const noexcept {
    return versions_[version];
  }
  /// The version that a statement reads of a register (guard and addresses included); ptx::kNone if
  /// it does not read it.
  [[nodiscard]] std::uint32_t read(std::uint32_t statement, std::uint32_t reg) const noexcept;
  /// The version that it writes, or ptx::kNone.
  [[nodiscard]] std::uint32_t written(std::uint32_t statement, std::uint32_t reg) const noexcept;
  /// Of a Phi: one version for each of `cfg.predecessors(block)`, in that order; ptx::kNone for an
  /// unreachable predecessor.
  [[nodiscard]] std::span<const std::uint32_t> inputs(std::uint32_t phi) const noexcept;
  /// Everything that reads it, in the order of statements, phis last.
  [[nodiscard]] std::span<const VersionUse> uses(std::uint32_t version) const noexcept;
  /// The phis that stand at the start of a block.
  [[nodiscard]] std::span<const std::uint32_t> phis(std::uint32_t block) const noexcept;
  /// The version that a register has at the end of a block or just before a statement, whether it
  /// is read there or not; kNone where pruning leaves none because nothing behind reads it. Walks
  /// up the dominator tree: not for inner loops.
  [[nodiscard]] std::uint32_t before(std::uint32_t statement, std::uint32_t reg) const;

 private:
  friend class VersionsBuilder;
  std::vector<Version> versions_;
};

/// One line for each version: register, number, where from, read where.
[[nodiscard]] std::string to_text(const Versions& versions, const RegisterIndex& index,
                                  const ptx::Module& module, const ptx::Function& function);

}  // namespace ptxgen::inline v0::analysis
