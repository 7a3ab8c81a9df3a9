// src/check/shared_race/witness.hpp - executes two threads to prove a race
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

/// One access that a thread executed.
struct Event {
  std::uint32_t access = 0;                 ///< number among the accesses
  std::uint32_t interval = 0;               ///< number of block barriers passed before
  std::uint32_t barrier = ptx::kNone;       ///< the last one
  std::uint32_t warp_interval = 0;          ///< the same for warp barriers
  std::uint32_t warp_barrier = ptx::kNone;  ///< the last one
  std::uint64_t address = 0;                ///< in a layout of the kernel's shared variables
  std::optional<std::uint64_t> value;       ///< that was written, if it is known
  /// Since the last barrier nothing else may have ordered it after another thread's accesses: no
  /// acquire pattern, mbarrier or call, or in one warp no bar.warp.sync of some lanes.
  bool unordered = true;
  bool unordered_in_warp = true;
};

/// A launch in which two accesses race.
struct Witness {
  /// They race in every launch with blocks of that shape in which the block reaches the accesses,
  /// for any parameters and grid.
  bool every_launch = false;
  std::uint32_t first_thread = 0, second_thread = 0;
  std::uint32_t first_access = 0, second_access = 0;
  std::uint64_t first_address = 0, second_address = 0;
  std::uint32_t variable = ptx::kNone;  ///< symbol of the variable of the first access
  std::uint64_t variable_base = 0;
  std::uint64_t parameter = 0;  ///< assumed value of all integer parameters
  /// A value for which these two threads finish without a race, if one was found.
  std::optional<std::uint64_t> harmless_parameter;
};

/// Executes single threads of block 0 while control does not depend on memory: first with unknown
/// parameters, then with one value for every parameter. Refers to its arguments.
class Witnesses {
 public:
  Witnesses(analysis::Facts& facts, const std::vector<SharedAccess>& accesses,
            const std::vector<Orders>& orders, ThreadValueClasses& values,
            std::array<std::uint32_t, 3> shape);

  /// A launch in which these two threads race at these accesses. Nothing if none was found; a race
  /// is still possible then.
  [[nodiscard]] std::optional<Witness> find(std::uint32_t first_access, std::uint32_t first_thread,
                                            std::uint32_t second_access,
                                            std::uint32_t second_thread);

 private:
  using Bits = std::optional<std::uint64_t>;
  struct Run;
  struct Trace {
    std::vector<Event> events;
    bool complete = false;  ///< the thread finished the kernel
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
