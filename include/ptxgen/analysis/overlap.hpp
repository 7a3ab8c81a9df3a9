// ptxgen/analysis/overlap.hpp - whether accesses of different threads can meet
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ptxgen/analysis/affine.hpp"

namespace ptxgen::inline v0::analysis {

/// Bytes that a thread touches: `bytes` of them from `address` on.
struct ThreadAccess {
  AffineForm address;
  std::uint32_t bytes = 0;
  /// Predicates (1 bit wide) that hold in a thread that makes the access. All that is known, or
  /// less.
  std::vector<AffineForm> conditions;
};

enum class Overlap : std::uint8_t {
  Never,     ///< shown: no two threads can touch the same byte
  Possible,  ///< shown: `first` and `second` do
  Unknown,
};

struct OverlapQuestion {
  /// The block that both threads are of. Bounded: any that is no larger in each direction. For
  /// Unknown the answer is Unknown.
  BlockBounds block;
  /// The two threads are in the same round of this loop and of those around it; of any other loop
  /// in any two rounds. kNoNode: of all loops in any rounds.
  std::uint32_t common_loop = kNoNode;
  /// Take for granted that addresses do not wrap around at the end of their width, as those within
  /// a variable do not: then rows of 132 bytes stay apart whatever their number is.
  bool no_wrap = false;
};

struct OverlapAnswer {
  Overlap kind = Overlap::Unknown;
  std::array<std::uint32_t, 3> first{}, second{};  ///< %tid of the thread that makes a, and b
};

/// Whether access `a` by one thread and access `b` by another thread of the same block can touch a
/// common byte, both addresses being of one state space, and at any two times that the question
/// admits.
///
/// What threads of a block agree on, and does not change in loops that are not common, has one
/// value for both. Everything else but the thread's index may have any. Assumptions of the forms
/// must follow from the shape of the block, otherwise nothing is known. Never holds for blocks of
/// that bound; Possible is only said of an Exact one, where all conditions could be followed, and
/// means: in every launch in which both threads come to make their accesses at such times.
///
/// Takes n log n time for n threads, and n^2 where threads' indices are multiplied by values that
/// are not known.
[[nodiscard]] OverlapAnswer may_overlap(const Affine& affine, const ThreadAccess& a,
                                        const ThreadAccess& b, const OverlapQuestion& question);

}  // namespace ptxgen::inline v0::analysis
