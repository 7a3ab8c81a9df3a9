// ptxgen/analysis/versions.hpp - static single assignment view of registers
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ptxgen/analysis/registers.hpp"

namespace ptxgen::inline v0::analysis {

/// One SSA value of a register that may be written several times.
struct Version {
  enum class Kind : std::uint8_t {
    Entry,  ///< the value at function entry (undefined, or a parameter)
    Write,  ///< written by `statement`
    Phi,    ///< at the start of `block`; `inputs()` has one version per predecessor
  };
  Kind kind = Kind::Entry;
  /// Write: part of the old value remains (guarded write, or one component of a vector register);
  /// `previous` is that old version.
  bool partial = false;
  std::uint32_t reg = 0;                 ///< number in the RegisterIndex
  std::uint32_t statement = ptx::kNone;  ///< Write
  std::uint32_t block = 0;               ///< defining block; 0 for Entry
  std::uint32_t previous = ptx::kNone;   ///< Write, partial
};

/// One reader of a version: a statement, a phi, or the caller of the function.
struct VersionUse {
  std::uint32_t statement =
      ptx::kNone;                      ///< the reading statement, or kNone for a phi or `previous`
  std::uint32_t version = ptx::kNone;  ///< the phi, or the partial write with this `previous`
  /// Neither: a register result of the function, read at the exit.
  [[nodiscard]] constexpr bool returned() const noexcept {
    return statement == ptx::kNone && version == ptx::kNone;
  }
  friend constexpr bool operator==(const VersionUse&, const VersionUse&) = default;
};

/// Definitions and uses of all registers of a function (SSA). Phis are pruned: a phi exists only if
/// its value may be read (a partial write reads the old value). Near-linear in statements, blocks
/// and the blocks in which registers with several writes are live.
///
/// If statement A dominates statement B and both read the same version of a register, B reads the
/// value that A read at its last execution.
///
/// A statement writes one version of a register, even if it names it several times. Register
/// results of the function are read at `cfg.exit()`, which may have phis. Statements of unreachable
/// blocks have no versions; Unknown statements read and write nothing. Keeps no reference to its
/// arguments.
///
/// The versions of one register are contiguous: Entry first (if it may be read), then by block, the
/// phi first, then by statement.
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
  /// The version of a register that a statement reads (guard and addresses included); ptx::kNone if
  /// it does not read the register.
  [[nodiscard]] std::uint32_t read(std::uint32_t statement, std::uint32_t reg) const noexcept;
  /// The version that the statement writes, or ptx::kNone.
  [[nodiscard]] std::uint32_t written(std::uint32_t statement, std::uint32_t reg) const noexcept;
  /// Whether it writes any.
  [[nodiscard]] bool writes(std::uint32_t statement) const noexcept {
    return first_write_[statement] != first_read_[statement + 1];
  }
  /// The inputs of a Phi: one version per predecessor in the order of `cfg.predecessors(block)`;
  /// ptx::kNone for an unreachable one. A phi of block 0 has the Entry as an additional input.
  [[nodiscard]] std::span<const std::uint32_t> inputs(std::uint32_t phi) const noexcept;
  /// All readers, each once: statements in order, then phis and `previous`.
  [[nodiscard]] std::span<const VersionUse> uses(std::uint32_t version) const noexcept {
    return slice(uses_, first_use_, version);
  }
  /// The phis of a block (or of `cfg.exit()`).
  [[nodiscard]] std::span<const std::uint32_t> phis(std::uint32_t block) const noexcept {
    return slice(phis_, first_phi_, block);
  }
  /// The versions of a register: [first, second).
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> of(std::uint32_t reg) const noexcept {
    return {first_of_reg_[reg], first_of_reg_[reg + 1]};
  }
  /// The version of a register just before a statement, or at the end of a block, whether or not it
  /// is read there. kNone if unknown: the code is unreachable, or the register has several writes
  /// and is not live there. Takes logarithmic time.
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
  // By statement: reads, then writes, both sorted by register.
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> first_read_, first_write_;
  std::vector<std::uint32_t> inputs_, first_input_;  // of each version
  std::vector<VersionUse> uses_;
  std::vector<std::uint32_t> first_use_;
  std::vector<std::uint32_t> phis_, first_phi_;
  // For before(): blocks with live-in registers, and the live version.
  struct Live {
    std::uint32_t block;
    std::uint32_t version;
  };
  std::vector<Live> live_;
  std::vector<std::uint32_t> first_live_;
  std::vector<std::uint8_t> one_block_;         // by register: all writes are in one block
  std::vector<std::uint32_t> first_statement_;  // of each block
  DominatorTree tree_;
};

/// One line per version: register, number, definition, readers.
[[nodiscard]] std::string to_text(const Versions& versions, const RegisterIndex& index,
                                  const ptx::Module& module, const ptx::Function& function);

}  // namespace ptxgen::inline v0::analysis
