// src/check/shared_race/witness.hpp - two threads run by hand, to prove a race
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "check/known_values.hpp"
#include "check/shared_race/accesses.hpp"
#include "check/shared_race/values.hpp"

namespace ptxgen::inline v0::gates {

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
  /// They do in every launch with blocks of that shape in which the block comes to the accesses at
  /// all, whatever the parameters and the grid are.
  bool every_launch = false;
  std::uint32_t first_thread = 0, second_thread = 0;
  std::uint32_t first_access = 0, second_access = 0;
  std::uint64_t first_address = 0, second_address = 0;
  std::uint32_t variable = ptx::kNone;  ///< symbol of the variable that the first lies in
  std::uint64_t variable_base = 0;
  std::uint64_t parameter = 0;  ///< what all integer parameters were taken to be
  /// The same where these two threads come to their end and do not race, if such was seen.
  std::optional<std::uint64_t> harmless_parameter;
};

/// Runs threads of block 0 alone, as far as the way does not depend on memory: first with
/// parameters that may be anything, then with one value for every parameter. Refers to its
/// arguments.
class Witnesses {
 public:
  Witnesses(analysis::Facts& facts, const std::vector<SharedAccess>& accesses,
            const std::vector<Orders>& orders, ThreadValueClasses& values,
            std::array<std::uint32_t, 3> shape);

  /// A launch in which two threads that make the accesses race at them; looks at the pair of
  /// threads given. Nothing if none was found, which says nothing.
  [[nodiscard]] std::optional<Witness> find(std::uint32_t first_access, std::uint32_t first_thread,
                                            std::uint32_t second_access,
                                            std::uint32_t second_thread);

 private:
  using Bits = std::optional<std::uint64_t>;
  struct Run;
  struct Trace {
    std::vector<Event> events;
    bool complete = false;  ///< the thread came to the end of the kernel
  };
  [[nodiscard]] Trace run(std::uint32_t thread, Bits parameter);
  [[nodiscard]] const Trace& trace(std::uint32_t thread, Bits parameter);
  [[nodiscard]] std::vector<std::uint32_t> blocks_before(std::uint32_t start,
                                                         std::uint32_t end) const;
  [[nodiscard]] bool has_events(const std::vector<std::uint32_t>& blocks) const;
  bool decide(Run& run, std::uint32_t branch, std::uint32_t& at);
  bool jump_over(Run& run, const std::vector<std::uint32_t>& blocks) const;
  [[nodiscard]] std::optional<Witness> find_in(std::uint32_t first_access,
                                               std::uint32_t first_thread,
                                               std::uint32_t second_access,
                                               std::uint32_t second_thread, Bits parameter);
  [[nodiscard]] static Bits stored(const Run& run, const ptx::Instruction& s,
                                   const ptx::Operand& operand);
  void pass(Run& run, std::uint32_t statement) const;
  [[nodiscard]] static bool acquires(const ptx::Instruction& instruction);
  void record(Run& run, std::uint32_t statement, std::vector<Event>& events);
  [[nodiscard]] Bits address(const Run& run, const ptx::Operand& operand) const;
  [[nodiscard]] bool race(const Event& a, std::uint32_t first, const Event& b,
                          std::uint32_t second) const;
  void lay_out();
  [[nodiscard]] std::optional<std::uint64_t> base_of(std::uint32_t symbol) const;
  [[nodiscard]] std::vector<std::uint32_t> roots() const;

  analysis::Facts& facts_;
  const std::vector<SharedAccess>& accesses_;
  std::array<std::uint32_t, 3> shape_;
  std::map<std::uint32_t, std::uint64_t> bases_;  ///< by symbol: shared variables of the function
  std::vector<std::uint32_t> first_access_;       ///< by statement, and one more
  const std::vector<Orders>& orders_;             ///< by statement
  NeededRegisters needed_;                        ///< for addresses, guards and stored values
  ThreadValueClasses& values_;
  std::map<std::pair<std::uint32_t, Bits>, Trace> traces_;
  std::uint64_t budget_ = 60'000;  ///< statements that may still be run
};

}  // namespace ptxgen::inline v0::gates
