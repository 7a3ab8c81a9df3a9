// tests/litmus/token_litmus.hpp - litmus tests as token programs, by orders and scopes
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lowered.hpp"
#include "memory_model.hpp"
#include "ptxgen/builder/token.hpp"
#include "ptxgen/emulator.hpp"

namespace ptxgen::litmus {

/// The order and the scope of an operation.
struct Use {
  Order order = Order::Weak;
  Scope scope = Scope::None;
};
[[nodiscard]] std::string to_text(const Use& use);  ///< "release gpu", "weak"

enum class Kind : std::uint8_t { Load, Store, Add, Fence };

/// All orders and scopes that an operation may have.
[[nodiscard]] std::vector<Use> uses_of(Kind kind);

/// One step of a thread. Memory operations take the token of the step before them.
struct Step {
  Kind kind = Kind::Load;
  std::uint32_t location = 0;
  std::uint32_t value = 0;  ///< stored or added
  Use use;
  bool linked = true;    ///< false: takes no token
  bool guarded = false;  ///< this and the later steps only where the step before has read 1
};

using Steps = std::vector<Step>;

/// A litmus test. What loads and atomic operations read is stored in further words, in the order of
/// the threads and of their steps: `result_index(0)` is the first.
struct TokenTest {
  std::vector<Steps> threads;
};
inline constexpr std::uint32_t kLocations = 2;
inline constexpr std::uint32_t kWords = 8;
[[nodiscard]] constexpr std::uint32_t result_index(std::uint32_t number) noexcept {
  return kLocations + number;
}

/// Which block each thread is in; a thread is the first lane of a warp of its own.
struct Placement {
  std::string_view name;
  std::vector<std::uint32_t> block;
  std::uint32_t cluster = 1;  ///< blocks of a cluster
  /// Whether the scope of every thread has all the others.
  [[nodiscard]] bool reaches(Scope scope) const noexcept;
};
/// In one block, between blocks, in a cluster.
[[nodiscard]] std::vector<Placement> placements(std::size_t threads);

[[nodiscard]] Launch launch_of(const Placement& placement);
/// The kernel, by the token API. Fences are placed between the operations; a weak one is left out.
[[nodiscard]] BuiltKernel build(const TokenTest& test, const Placement& placement);
/// The model's program of the lowered kernel.
[[nodiscard]] Program lowered(const BuiltKernel& kernel, const Placement& placement);
/// The model's program of the tokens: steps of a thread are ordered by their tokens, by fences
/// between them, and not by the order in which they are written.
[[nodiscard]] Program by_tokens(const TokenTest& test, const Placement& placement);

/// A family of tests by the orders and scopes of two operations (or pairs of operations), with the
/// outcome that no sequential execution has.
struct Shape {
  std::string_view name;
  Kind first;
  Kind second;
  TokenTest (*make)(Use first, Use second);
  /// Words and their values; words that are not named may have any.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> outcome;
  /// Whether the model forbids it, given that both scopes reach the other threads.
  bool (*forbids)(Order first, Order second);
};
[[nodiscard]] const std::vector<Shape>& shapes();
[[nodiscard]] bool has_outcome(const Shape& shape, const Allowed& outcomes);

/// A kernel on the emulated device.
class EmulatedTest {
 public:
  EmulatedTest(const BuiltKernel& kernel, const Placement& placement);
  /// Final memory of the schedule of a seed.
  [[nodiscard]] Outcome run(std::uint64_t seed);
  /// Of the last run.
  [[nodiscard]] const emulator::Result& result() const noexcept { return result_; }

 private:
  emulator::Device device_;
  emulator::Program program_;
  emulator::Launch launch_;
  std::string name_;
  std::uint64_t memory_;
  emulator::Result result_;
};

}  // namespace ptxgen::litmus
