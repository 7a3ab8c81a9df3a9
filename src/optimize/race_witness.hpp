// src/optimize/race_witness.hpp - two threads run by hand, to prove a race
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "optimize/race_accesses.hpp"

namespace ptxgen::inline v0::optimize {

/// What a thread did at one access.
struct Event {
  std::uint32_t access = 0;            ///< number among the accesses
  std::uint32_t interval = 0;          ///< how many barriers of the block the thread had passed
  std::uint32_t barrier = ptx::kNone;  ///< the last of them
  std::uint32_t warp_interval = 0;     ///< and of the warp
  std::uint32_t warp_barrier = ptx::kNone;  ///< likewise
  std::uint64_t address = 0;                ///< in a layout of the kernel's shared variables
  std::optional<std::uint64_t> value;       ///< that was written, if it is known
  /// Since the last barrier nothing else may have ordered it behind another thread's accesses:
  /// acquire patterns, mbarriers, calls, or in one warp a bar.warp.sync of some lanes.
  bool unordered = true;
  bool unordered_in_warp = true;
};

/// A launch in which two accesses race.
struct Witness {
  std::uint32_t first_thread = 0, second_thread = 0;
  std::uint32_t first_access = 0, second_access = 0;
  std::uint64_t first_address = 0, second_address = 0;
  std::uint32_t variable = ptx::kNone;  ///< symbol of the variable that the first lies in
  std::uint64_t variable_base = 0;
  std::uint64_t parameter = 0;  ///< what all integer parameters were taken to be
};

/// Runs threads of block 0 alone, with one value for every parameter, as far as the way does not
/// depend on memory. Refers to its arguments.
class Witnesses {
 public:
  Witnesses(analysis::Facts& facts, const std::vector<SharedAccess>& accesses,
            const std::vector<Orders>& orders, std::array<std::uint32_t, 3> shape);

  /// A launch in which two threads that make the accesses race at them; looks at the pair of
  /// threads given. Nothing if none was found, which says nothing.
  [[nodiscard]] std::optional<Witness> find(std::uint32_t first_access, std::uint32_t first_thread,
                                            std::uint32_t second_access,
                                            std::uint32_t second_thread);

 private:
  using Bits = std::optional<std::uint64_t>;
  struct Run;
  [[nodiscard]] std::vector<Event> run(std::uint32_t thread, std::uint64_t parameter);
  [[nodiscard]] const std::vector<Event>& events(std::uint32_t thread, std::uint64_t parameter);
  [[nodiscard]] Bits source(const Run& run, const ptx::Instruction& s,
                            const ptx::Operand& operand) const;
  void pass(Run& run, std::uint32_t statement) const;
  [[nodiscard]] static bool acquires(const ptx::Instruction& instruction);
  void execute(Run& run, std::uint32_t statement);
  void record(Run& run, std::uint32_t statement, std::vector<Event>& events);
  [[nodiscard]] Bits address(const Run& run, const ptx::Operand& operand) const;
  [[nodiscard]] bool race(const Event& a, const Event& b, bool same_warp) const;
  void lay_out();
  void find_relevant();

  analysis::Facts& facts_;
  const std::vector<SharedAccess>& accesses_;
  std::array<std::uint32_t, 3> shape_;
  std::vector<Bits> bases_;                  ///< by symbol
  std::vector<std::uint32_t> first_access_;  ///< by statement, and one more
  const std::vector<Orders>& orders_;        ///< by statement
  /// Statements that addresses, guards and stored values hang on.
  std::vector<bool> relevant_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<Event>> events_;
  std::uint64_t budget_ = 40'000;  ///< statements that may still be run
};

}  // namespace ptxgen::inline v0::optimize
