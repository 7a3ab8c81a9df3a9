// src/check/shared_race/accesses.hpp - accesses to shared memory, and what parts them
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
  std::uint32_t operand = 0;  ///< which of its operands is the address
  bool reads = false;
  bool writes = false;
  /// Atomic, volatile, relaxed, acquire or release: such do not race with each other.
  bool strong = false;
  /// When the write has happened.
  enum class Done : std::uint8_t {
    AtOnce,
    Group,     ///< some time before the thread has waited for a group of copies
    Mbarrier,  ///< some time before the phase of an mbarrier ends that counts it
  };
  Done done = Done::AtOnce;
  /// Which bytes of memory is not known: a call, a matrix of some stride, a bulk store.
  bool anywhere = false;
  std::uint32_t bytes = 0;  ///< of each thread, from its address on
  std::uint32_t lanes = 0xffffffffu;
  [[nodiscard]] bool conflicts(const SharedAccess& other) const noexcept {
    return (writes || other.writes) && !(strong && other.strong);
  }
};

/// What the functions of a module do to shared memory. Looks at all of them once, so that asking
/// for one kernel after the other takes time in proportion to the module. Refers to its argument.
class SharedAccesses {
 public:
  explicit SharedAccesses(const ptx::Module& module);

  /// The accesses of a kernel in the order of the text. Calls count as an access to anything if the
  /// function called, or one that it calls, may touch shared memory. Of what an mbarrier counts
  /// only bulk copies from global memory are among them, and of the instructions outside the op
  /// table none.
  [[nodiscard]] std::vector<SharedAccess> of(const ptx::Function& function) const;

 private:
  [[nodiscard]] std::uint8_t touched_by(const ptx::Function& function,
                                        const ptx::Instruction& call) const;

  const ptx::Module& module_;
  bool pointers_ = false;              ///< generic addresses of shared memory are made somewhere
  std::vector<std::uint8_t> touches_;  ///< by function: what calling it may do
  std::uint8_t touched_by_any_ = 0;    ///< what any function that is no kernel may do
};

/// Which threads a statement orders, all accesses before it against all after it.
enum class Orders : std::uint8_t { Nothing, Warp, Block };

/// What each statement orders. A guarded barrier, one that counts some threads, at which some only
/// arrive, or whose number threads may not agree on, and flags in memory, order nothing as far as
/// this analysis goes. `threads`: in a block, 0 if unknown.
[[nodiscard]] std::vector<Orders> orders_of(analysis::Facts& facts, std::uint64_t threads);

/// A kernel cut into segments, in which control runs without passing what orders the threads of a
/// block (or, in the other cut, of a warp). What is between one barrier and the next is a region: a
/// segment in which it begins, and all that can be reached from there.
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
  /// Where regions begin: each a list of segments in which threads may begin together. The kernel's
  /// first statement; behind each barrier; and behind all barriers together that threads of a block
  /// may come to by different ways.
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& starts() const noexcept {
    return starts_;
  }

 private:
  std::vector<std::uint32_t> first_, end_, segment_of_, block_segment_;
  std::vector<std::uint32_t> first_successor_, successors_;
  std::vector<std::vector<std::uint32_t>> starts_;
};

}  // namespace ptxgen::inline v0::gates
