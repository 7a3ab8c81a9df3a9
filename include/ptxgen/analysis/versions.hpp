// ptxgen/analysis/versions.hpp - which write of a register a read sees
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
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

/// One reader of a version: a statement, a phi, or the caller of the function.
struct VersionUse {
  std::uint32_t statement =
      ptx::kNone;                      ///< the reading statement, or kNone for a phi or `previous`
  std::uint32_t version = ptx::kNone;  ///< the phi, or the partial write that keeps it
  /// Neither: it is a result of the function in a register, read where control leaves.
  [[nodiscard]] constexpr bool returned() const noexcept {
    return statement == ptx::kNone && version == ptx::kNone;
  }
  friend constexpr bool operator==(const VersionUse&, const VersionUse&) = default;
};

/// Definitions and uses of all registers of a function, flow-sensitive. Phis are pruned: one exists
/// only where its value may be read (a partial write counts as a reader of what remains).
/// Near-linear in statements, blocks and the blocks in which registers with several writes are
/// live.
///
/// If a statement A dominates a statement B and both read a register in the same version, B finds
/// the value that A found when it was last executed.
///
/// A statement writes one version of a register, however often it names it. Registers in which a
/// function returns results are read at `cfg.exit()`, where phis may stand too. Statements of
/// unreachable blocks have no versions, and Unknown ones read and write nothing. Keeps no reference
/// to its arguments.
///
/// The versions of one register stand together: Entry first (if it may be read), then by block, the
/// phi first, and by statement.
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
  /// Whether it writes any.
  [[nodiscard]] bool writes(std::uint32_t statement) const noexcept {
    return first_write_[statement] != first_read_[statement + 1];
  }
  /// Of a Phi: one version for each of `cfg.predecessors(block)`, in that order; ptx::kNone for an
  /// unreachable predecessor. A phi of block 0 has one more, the Entry.
  [[nodiscard]] std::span<const std::uint32_t> inputs(std::uint32_t phi) const noexcept;
  /// Everything that reads it, in the order of statements, phis and `previous` last, each once.
  [[nodiscard]] std::span<const VersionUse> uses(std::uint32_t version) const noexcept {
    return slice(uses_, first_use_, version);
  }
  /// The phis that stand at the start of a block (or of `cfg.exit()`).
  [[nodiscard]] std::span<const std::uint32_t> phis(std::uint32_t block) const noexcept {
    return slice(phis_, first_phi_, block);
  }
  /// The versions of a register: [first, second).
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> of(std::uint32_t reg) const noexcept {
    return {first_of_reg_[reg], first_of_reg_[reg + 1]};
  }
  /// The version that a register has just before a statement, or at the end of a block, whether it
  /// is read there or not. kNone where that cannot be told: unreachable; or nothing behind reads it
  /// and there are other writes. Exact otherwise. Takes logarithmic time.
  [[nodiscard]] std::uint32_t before(std::uint32_t statement, std::uint32_t reg) const noexcept;
  [[nodiscard]] std::uint32_t at_end(std::uint32_t block, std::uint32_t reg) const noexcept;

 private:
  friend class VersionsBuilder;
  struct Access {
    std::uint32_t reg;
    std::uint32_t version;
  };
  template <class T>
  static std::span<const T> slice(const std::vector<T>& all,
                                  const std::vector<std::uint32_t>& first,
                                  std::uint32_t at) noexcept {
    return {all.data() + first[at], first[at + 1] - first[at]};
  }
  [[nodiscard]] std::uint32_t find(std::uint32_t begin, std::uint32_t end,
                                   std::uint32_t reg) const noexcept;
  [[nodiscard]] std::uint32_t last_in(std::uint32_t block, std::uint32_t before,
                                      std::uint32_t reg) const noexcept;
  [[nodiscard]] std::uint32_t at_start(std::uint32_t block, std::uint32_t reg) const noexcept;

  std::vector<Version> versions_;
  std::vector<std::uint32_t> first_of_reg_;
  // Of each statement: what it reads, then what it writes, both by register.
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> first_read_, first_write_;
  std::vector<std::uint32_t> inputs_, first_input_;  // of each version
  std::vector<VersionUse> uses_;
  std::vector<std::uint32_t> first_use_;
  std::vector<std::uint32_t> phis_, first_phi_;
  // For before(): the blocks at whose start registers are live, where that says something, and the
  // version that is.
  struct Live {
    std::uint32_t block;
    std::uint32_t version;
  };
  std::vector<Live> live_;
  std::vector<std::uint32_t> first_live_;
  std::vector<std::uint8_t> one_block_;         // of a register: all writes are there
  std::vector<std::uint32_t> first_statement_;  // of each block
  DominatorTree tree_;
};

/// One line for each version: register, number, where from, read where.
[[nodiscard]] std::string to_text(const Versions& versions, const RegisterIndex& index,
                                  const ptx::Module& module, const ptx::Function& function);

}  // namespace ptxgen::inline v0::analysis
