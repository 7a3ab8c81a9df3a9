// ptxgen/analysis/overlap.hpp - overlap of accesses by different threads
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ptxgen/analysis/affine.hpp"

namespace ptxgen::inline v0::analysis {

/// The bytes accessed by a thread: `bytes` bytes from `address` on.
struct ThreadAccess {
  AffineForm address;
  std::uint32_t bytes = 0;
  /// Predicates (1 bit wide) that hold in every thread that performs the access. May be incomplete.
  std::vector<AffineForm> conditions;
};

enum class Overlap : std::uint8_t {
  Never,     ///< proved: no two threads access the same byte
  Possible,  ///< proved: `first` and `second` do
  Unknown,
};

struct OverlapQuestion {
  /// The block of both threads. Bounded: any block not larger in any dimension. For Unknown the
  /// answer is Unknown.
  BlockBounds block;
  /// The two threads are in the same iteration of this loop and of its enclosing loops, and in any
  /// two iterations of every other loop. kNoNode: in any iterations of all loops.
  std::uint32_t common_loop = kNoNode;
  /// Assume that addresses do not wrap around, as those within a variable do not. Then rows of 132
  /// bytes are disjoint for any number of rows.
  bool no_wrap = false;
};

struct OverlapAnswer {
  Overlap kind = Overlap::Unknown;
  std::array<std::uint32_t, 3> first{}, second{};  ///< %tid of the threads of a and b
};

/// Whether access `a` by one thread and access `b` by another thread of the same block can access a
/// common byte. Both addresses are in one state space; the times are those the question allows.
///
/// A block-uniform value that does not change in uncommon loops is the same for both threads. Any
/// other value except the thread index is arbitrary. If the assumptions of the forms do not follow
/// from the block shape, the answer is Unknown. Possible is answered only for an Exact block whose
/// conditions were all evaluated, and means: in every launch in which both threads perform their
/// accesses at such times.
///
/// Takes n log n time for n threads, and n^2 if thread indices are multiplied by unknown values.
[[nodiscard]] OverlapAnswer may_overlap(const Affine& affine, const ThreadAccess& a,
                                        const ThreadAccess& b, const OverlapQuestion& question);

}  // namespace ptxgen::inline v0::analysis
