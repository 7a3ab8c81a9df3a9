// src/optimize/tokens/memory_uses.hpp - statements that a barrier may order, and their conflicts
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/facts.hpp"
#include "ptxgen/analysis/overlap.hpp"

namespace ptxgen::inline v0::optimize {

/// An access of memory that several threads see, or a statement that is ordered with all of them.
struct MemoryUse {
  std::uint32_t statement = 0;
  bool reads = false;
  bool writes = false;
  bool acquires = false;  ///< what follows in any thread of the block stays after it
  bool releases = false;  ///< what precedes in any thread of the block stays before it
  bool strong = false;    ///< relaxed, acquire, release, atomic
  /// Strong, of memory and with a scope that other blocks share. Code without fences is known to
  /// order blocks by such accesses and bar.sync: reads count as acquires, writes as releases.
  bool wide = false;
  /// A call, a fence, a volatile access, a copy that completes later, a barrier of some threads, a
  /// clock, an instruction outside the op table.
  bool opaque = false;
  bool anywhere = false;                   ///< the bytes are not known
  ptx::Space space = ptx::Space::Generic;  ///< Global, Shared, or Generic for either
  std::uint32_t operand = 0;               ///< number of the address
  std::uint32_t bytes = 0;                 ///< of each thread
};

/// What the statement does that a barrier may order; nothing for arithmetic, for memory of one
/// thread and for constants.
[[nodiscard]] std::optional<MemoryUse> memory_use(const ptx::Function& function,
                                                  std::uint32_t statement);

/// Why a statement must stay before another of another thread.
struct Conflict {
  /// A literal: "conflict" (proved), "may-conflict", "acquire", "release", "other-blocks",
  /// "opaque"; empty: none.
  std::string_view reason;
  std::array<std::uint32_t, 3> first{}, second{};  ///< threads of a proved conflict
  [[nodiscard]] explicit operator bool() const noexcept { return !reason.empty(); }
};

/// Compares uses by different threads of one block. Answers are kept. Refers to its argument.
///
/// An address derived from a variable is taken to be in that variable. Without a known shape
/// of the block (`.reqntid`, `.maxntid`) all accesses of one space conflict, unless they are of
/// different variables.
class Conflicts {
 public:
  explicit Conflicts(analysis::Facts& facts);

  /// Whether `first` of one thread must stay before `second` of another. `loop`: both are in the
  /// same iteration of it and of all loops around it; kNoNode: in any iterations.
  Conflict of(const MemoryUse& first, const MemoryUse& second, std::uint32_t loop);

 private:
  bool by_one_thread(const MemoryUse& first, const MemoryUse& second, std::uint32_t loop);
  analysis::OverlapAnswer overlap(const analysis::AffineForm& first, std::uint32_t first_bytes,
                                  const MemoryUse& a, const analysis::AffineForm& second,
                                  std::uint32_t second_bytes, const MemoryUse& b,
                                  std::uint32_t loop);
  std::vector<analysis::AffineForm> conditions(std::uint32_t statement);
  void find_conditions(std::uint32_t block, std::vector<analysis::AffineForm>& out) const;
  [[nodiscard]] analysis::AffineForm address(const MemoryUse& use) const;
  [[nodiscard]] const ptx::Variable* variable(const analysis::AffineForm& address) const;

  analysis::Facts& facts_;
  analysis::BlockBounds block_;
  std::uint64_t threads_ = 0;
  std::uint64_t work_ = 0;
  std::map<std::uint32_t, std::vector<analysis::AffineForm>> of_blocks_;
};

}  // namespace ptxgen::inline v0::optimize
