// src/optimize/tokens/block_barriers.hpp - barriers of a block, and the code between them
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/facts.hpp"

namespace ptxgen::inline v0::optimize {

/// A barrier that all threads of a block pass together: no guard, no count, a constant number, and
/// control that is uniform in the block.
struct BlockBarrier {
  std::uint32_t statement = 0;
  bool removable = false;    ///< bar.sync or barrier.sync; the others also compute something
  std::uint32_t before = 0;  ///< the segment that it ends
  std::uint32_t after = 0;   ///< the segment that begins after it
};

/// A `bar.sync` that may not be removed, and does not count as one of the block.
struct OtherBarrier {
  std::uint32_t statement = 0;
  std::string_view reason;  ///< a literal
};

/// Statements without a block barrier between them; a part of one basic block.
struct Segment {
  std::uint32_t block = 0;
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

/// A way from one segment to the next.
struct SegmentEdge {
  std::uint32_t to = 0;                    ///< or from, in `BlockBarriers::before`
  std::uint32_t barrier = ptx::kNone;      ///< the barrier on it, in `BlockBarriers::all`
  std::uint32_t loop = analysis::kNoNode;  ///< it leads from the loop's end to its header
};

/// The barriers of a function and the graph of its segments. Linear in the function. Barriers in
/// unreachable code are not looked at. Keeps no reference to its argument.
class BlockBarriers {
 public:
  explicit BlockBarriers(analysis::Facts& facts);

  [[nodiscard]] std::span<const BlockBarrier> all() const noexcept { return barriers_; }
  [[nodiscard]] std::span<const OtherBarrier> others() const noexcept { return others_; }
  [[nodiscard]] std::span<const Segment> segments() const noexcept { return segments_; }
  [[nodiscard]] std::span<const SegmentEdge> after(std::uint32_t segment) const noexcept {
    return after_[segment];
  }
  [[nodiscard]] std::span<const SegmentEdge> before(std::uint32_t segment) const noexcept {
    return before_[segment];
  }
  /// Whether the statement is one of `all()`.
  [[nodiscard]] bool is_block_barrier(std::uint32_t statement) const;

 private:
  void find_barriers(analysis::Facts& facts);
  void cut(analysis::Facts& facts);
  void connect(std::uint32_t from, SegmentEdge edge);

  std::vector<BlockBarrier> barriers_;  // by statement
  std::vector<OtherBarrier> others_;
  std::vector<Segment> segments_;
  std::vector<std::vector<SegmentEdge>> after_, before_;
};

}  // namespace ptxgen::inline v0::optimize
