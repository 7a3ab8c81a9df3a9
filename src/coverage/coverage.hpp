// src/coverage/coverage.hpp - what launches executed of a kernel's code
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coverage/cells.hpp"
#include "ptxgen/emulator/report/counters.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::coverage {

/// A basic block that the entry of its function reaches.
struct Block {
  std::string function;
  std::uint32_t line = 0;  ///< of its first instruction, or of its label if it has none
  std::uint32_t last_line = 0;
  std::string text;  ///< the first instruction, as the printer prints it
};

/// An edge between two blocks of a function.
struct Edge {
  std::uint32_t from = 0;  ///< index into the blocks
  std::uint32_t to = 0;    ///< the same, or kExit
  /// False for an edge of a brx.idx to a block that has other predecessors: counters do not tell
  /// which of them was taken. Such edges are in no total.
  bool counted = true;
};
inline constexpr std::uint32_t kExit = 0xffffffffu;

/// An instruction with a guard; two outcomes.
struct Condition {
  std::uint32_t block = 0;
  std::uint32_t line = 0;
  std::string text;
  bool branch = false;  ///< of a branch: taken and not taken; else executed and skipped
};

/// Threads that executed each part of the code in the launches of one case.
struct CaseCounts {
  std::string name;  ///< "k = 16, n = 8"
  std::uint64_t launches = 0;
  std::vector<std::uint64_t> blocks;
  std::vector<std::uint64_t> edges;
  std::vector<std::uint64_t> taken;      ///< the guard held, of each condition
  std::vector<std::uint64_t> not_taken;  ///< it did not
  std::vector<CellMap> cells;            ///< of the buffers that were watched
};

/// One kernel's code and the cases that were run on it.
struct KernelCoverage {
  std::string kernel;  ///< its entry
  std::string code;    ///< hash of the PTX: 32 hexadecimal digits
  std::string of;      ///< the described kernel whose cases launched it, or empty
  std::vector<Block> blocks;
  std::vector<Edge> edges;
  std::vector<Condition> conditions;
  std::vector<CaseCounts> cases;
};

struct Coverage {
  std::vector<KernelCoverage> kernels;
};

/// How much of something was executed.
struct Share {
  std::size_t covered = 0;
  std::size_t all = 0;
  /// 100 if there is nothing.
  [[nodiscard]] double percent() const noexcept {
    return all == 0 ? 100.0 : 100.0 * static_cast<double>(covered) / static_cast<double>(all);
  }
  Share& operator+=(const Share& other) noexcept {
    covered += other.covered;
    all += other.all;
    return *this;
  }
  friend bool operator==(const Share&, const Share&) = default;
};

struct Shares {
  Share blocks, edges;
  Share branches;  ///< outcomes of conditional branches
  Share guards;    ///< outcomes of other instructions with a guard
  Share cells;     ///< of all watched buffers
  /// Outcomes of branches and guards.
  [[nodiscard]] Share outcomes() const noexcept {
    Share sum = branches;
    return sum += guards;
  }
  Shares& operator+=(const Shares& other) noexcept;
};

/// What one launch executed, with one case. `module` is the one that was launched, as parsed from
/// its text, so that its lines are those of the counters; `kernel` one of its entries. Functions
/// that the kernel can call are part of it.
[[nodiscard]] KernelCoverage of_launch(const ptx::Module& module, std::string_view kernel,
                                       const emulator::Counters& counters,
                                       std::string_view case_name);

/// Adds a kernel's cases: to the kernel of the same name, code and `of`, if there is one, and a
/// case to the case of the same name. Throws `Error` (Stage::Io, "bad-coverage") if kernels of one
/// hash have different parts, or watched buffers different shapes.
void add(Coverage& to, KernelCoverage from);
void merge(Coverage& to, const Coverage& from);

/// The sum of all cases, without a name. Cells are those of `merged_cells`.
[[nodiscard]] CaseCounts total(const KernelCoverage& kernel);
[[nodiscard]] Shares shares(const KernelCoverage& kernel, const CaseCounts& counts);
/// Of all cases: code that one of them executes, and the cells of each.
[[nodiscard]] Shares shares(const KernelCoverage& kernel);

/// Something that no case has executed.
struct Missed {
  enum class What : std::uint8_t { Block, Taken, NotTaken };
  What what = What::Block;
  std::uint32_t line = 0;  ///< of the PTX
  std::string text;        ///< "the branch is never taken: @%p1 bra $L0;"
};
/// By line. Outcomes in a block that is not executed are part of that block, and every edge follows
/// from a block or an outcome.
[[nodiscard]] std::vector<Missed> missed(const KernelCoverage& kernel, const CaseCounts& counts);

/// The file format: one JSON document.
[[nodiscard]] std::string to_json(const Coverage& coverage);
/// Throws `Error` (Stage::Io, "bad-coverage") naming `file`, the member and what is expected.
[[nodiscard]] Coverage parse(std::string_view text, std::string_view file);

}  // namespace ptxgen::coverage
