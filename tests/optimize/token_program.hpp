// tests/optimize/token_program.hpp - random token programs, and which pairs of them conflict
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/builder/token.hpp"

namespace ptxgen::test {

/// One operation of all threads of the block.
struct BlockOperation {
  enum class Kind { Load, Store, Add } kind = Kind::Load;
  enum class Where {
    Own,        ///< element tid
    Xor,        ///< tid ^ value
    Rotate,     ///< (tid + 32 * value) mod threads
    Reverse,    ///< threads - 1 - tid
    One,        ///< element `value`, by thread 0
    Broadcast,  ///< element `value`, by all threads
    OfWarp,     ///< element 32 * value + lane, by warp `warp`
  } where = Where::Own;
  unsigned value = 0;
  unsigned warp = 0;
  unsigned array = 0;  ///< 0 and 1 are shared variables, 2 is global
  TokenOrder order = TokenOrder::Weak;
  std::vector<unsigned> after;  ///< operations whose tokens it takes
};

/// Operations in the order of the program. Those from `loop_begin` to `loop_end` are a loop of
/// `kIterations` with a barrier of its own at its end; equal numbers: no loop.
struct BlockProgram {
  static constexpr unsigned kIterations = 3;
  unsigned warps = 2;
  std::vector<BlockOperation> operations;
  unsigned loop_begin = 0, loop_end = 0;

  [[nodiscard]] unsigned threads() const { return 32 * warps; }
  [[nodiscard]] bool has_loop() const { return loop_begin != loop_end; }
  /// Naive barriers: one before each operation that takes a token, one at the end of the loop.
  [[nodiscard]] unsigned barriers() const;
};

/// Whether token edges order each two operations that conflict, except atomic ones. Operations of
/// different iterations are ordered by the loop's barrier.
[[nodiscard]] BlockProgram random_block_program(std::mt19937_64& random, bool loops,
                                                unsigned max_operations);

/// The element that a thread accesses, -1 if none.
[[nodiscard]] int element_of(const BlockProgram& program, const BlockOperation& operation,
                             unsigned thread);
/// Whether `first` of one thread must stay before `second` of another, by comparing all threads.
[[nodiscard]] bool conflict(const BlockProgram& program, const BlockOperation& first,
                            const BlockOperation& second);

/// An execution of the program: operations and barriers one after another. A step is an operation
/// (its number), or a barrier (-1 - its number).
[[nodiscard]] std::vector<int> steps_of(const BlockProgram& program);
/// Whether the barriers in `kept` (a bit each) order every two conflicting operations that all of
/// them order.
[[nodiscard]] bool suffices(const BlockProgram& program, std::uint32_t kept);
/// The size of the smallest set that does, by trying all.
[[nodiscard]] unsigned fewest(const BlockProgram& program);

/// The kernel `k(p)`: p has 2 * threads elements u32, the global array and what each thread has
/// loaded, mixed.
[[nodiscard]] BuiltKernel build(const BlockProgram& program);

[[nodiscard]] std::string to_text(const BlockProgram& program);

/// Barriers that wait, in all functions.
[[nodiscard]] std::size_t syncs(const ptx::Module& module);

}  // namespace ptxgen::test
