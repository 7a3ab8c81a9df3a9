// src/check/shared_race/accesses.hpp - accesses to shared memory, and barriers between them
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/facts.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::gates {

/// One instruction that reads or writes the shared memory of its block.
struct SharedAccess {
  std::uint32_t statement = 0;
  std::uint32_t operand = 0;  ///< number of the address operand
  bool reads = false;
  bool writes = false;
  /// Atomic, volatile, relaxed, acquire or release: these do not race with each other.
  bool strong = false;
  /// When the write is complete.
  enum class Done : std::uint8_t {
    AtOnce,
    Group,     ///< at the latest when the thread has waited for a group of copies
    Mbarrier,  ///< at the latest when a phase of its mbarrier ends
  };
  Done done = Done::AtOnce;
  /// The bytes are not known: a call, a matrix with a stride, a bulk store.
  bool anywhere = false;
  std::uint32_t bytes = 0;  ///< of each thread, from its address on
  std::uint32_t lanes = 0xffffffffu;
  /// Of wmma.load and wmma.store: adjacent elements, `bytes` each, `pitch` bytes apart; 0: no such
  /// matrix. Which lane accesses which element is not specified. The rows are dealt to the lanes of
  /// the warp from `first_lane` on, which is another one for each matrix of the function: no lane
  /// has the same row of two matrices, which would hide that the warp accesses it twice.
  std::uint32_t rows = 0;
  std::uint32_t pitch = 0;
  std::uint32_t first_lane = 0;
  /// What is added to the address in a thread.
  [[nodiscard]] std::int64_t offset(std::uint32_t thread) const noexcept {
    return std::int64_t{(thread - first_lane) % 32} * pitch;
  }
  [[nodiscard]] bool conflicts(const SharedAccess& other) const noexcept {
    return (writes || other.writes) && !(strong && other.strong);
  }
};

/// Shared memory accesses of the functions of a module. Scans all functions once, so queries for
/// all kernels take linear time. Refers to its argument.
class SharedAccesses {
 public:
  explicit SharedAccesses(const ptx::Module& module);

  /// The accesses of a kernel in the order of the text. A call is an access to unknown bytes if the
  /// called function, or one that it calls, may access shared memory. Asynchronous accesses that an
  /// mbarrier counts are omitted except bulk copies from global memory, as are instructions outside
  /// the op table.
  [[nodiscard]] std::vector<SharedAccess> of(const ptx::Function& function) const;

 private:
  [[nodiscard]] std::uint8_t touched_by(const ptx::Function& function,
                                        const ptx::Instruction& call) const;

  const ptx::Module& module_;
  bool pointers_ = false;              ///< the module has generic addresses of shared memory
  std::vector<std::uint8_t> touches_;  ///< by function: the effect of a call
  std::uint8_t touched_by_any_ = 0;    ///< the effect of an indirect call
};

/// The threads whose earlier accesses a statement orders before their later ones.
enum class Orders : std::uint8_t { Nothing, Warp, Block };

/// What each statement orders. Nothing: guarded barriers, barriers for some threads, barriers with
/// arrivals that do not wait or with a number on which threads may not agree, and flags in memory.
/// `threads`: of a block, 0 if unknown.
[[nodiscard]] std::vector<Orders> orders_of(analysis::Facts& facts, std::uint64_t threads);

/// A kernel cut into segments at the barriers of a block (or also of a warp). The code between two
/// barriers is a region: a segment in which it begins, and all segments reachable from there.
class Segments {
 public:
  /// Cuts at statements that order a block, and if `warps`, a warp too.
  Segments(analysis::Facts& facts, const std::vector<Orders>& orders, bool warps);

  [[nodiscard]] std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(first_.size());
  }
  [[nodiscard]] std::uint32_t of(std::uint32_t statement) const noexcept {
    return segment_of_[statement];
  }
  /// The segment that a block begins with.
  [[nodiscard]] std::uint32_t of_block(std::uint32_t block) const noexcept {
    return block_segment_[block];
  }
  [[nodiscard]] std::span<const std::uint32_t> successors(std::uint32_t segment) const noexcept {
    return {successors_.data() + first_successor_[segment],
            first_successor_[segment + 1] - first_successor_[segment]};
  }
  [[nodiscard]] std::uint32_t first(std::uint32_t segment) const noexcept {
    return first_[segment];
  }
  [[nodiscard]] std::uint32_t end(std::uint32_t segment) const noexcept { return end_[segment]; }
  /// The starts of regions, each a list of segments in which threads may start together: the
  /// kernel's first statement; after each barrier; and after all barriers together that threads of
  /// a block may reach on different paths.
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& starts() const noexcept {
    return starts_;
  }

 private:
  std::vector<std::uint32_t> first_, end_, segment_of_, block_segment_;
  std::vector<std::uint32_t> first_successor_, successors_;
  std::vector<std::vector<std::uint32_t>> starts_;
};

}  // namespace ptxgen::inline v0::gates
