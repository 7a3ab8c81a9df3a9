// ptxgen/analysis/liveness.hpp - live registers and register pressure
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/analysis/registers.hpp"

namespace ptxgen::inline v0::analysis {

/// Registers by their width; 8 bits count as 16.
enum class RegisterClass : std::uint8_t { Predicate, Bits16, Bits32, Bits64, Bits128 };
inline constexpr std::size_t kRegisterClasses = 5;
/// "predicate", "16-bit", ...
[[nodiscard]] std::string_view name(RegisterClass of) noexcept;
[[nodiscard]] RegisterClass register_class(ptx::Type type) noexcept;

/// The number of live registers at one statement.
struct Pressure {
  std::array<std::uint32_t, kRegisterClasses> registers{};  ///< a vector register as its elements
  /// 32-bit hardware registers that these need at least: one for 16 or 32 bits, two for 64, four
  /// for 128. Predicates have a register file of their own.
  [[nodiscard]] constexpr std::uint32_t words() const noexcept {
    return registers[1] + registers[2] + 2 * registers[3] + 4 * registers[4];
  }
  [[nodiscard]] constexpr std::uint32_t of(RegisterClass c) const noexcept {
    return registers[static_cast<std::size_t>(c)];
  }
  friend constexpr bool operator==(const Pressure&, const Pressure&) = default;
};

/// The first statement of maximum pressure, ptx::kNone if nothing is live.
struct PressurePoint {
  std::uint32_t statement = ptx::kNone;
  Pressure pressure;
};

/// Liveness and register pressure of a function. A register is live after a statement if some path
/// from there reads it before it is fully written; a guarded write, or a write of one component,
/// keeps the rest of the old value. Result registers are read where the function returns. A written
/// register counts at its statement even if it is never read. Unknown statements read and write
/// nothing. Unreachable code has no pressure.
///
/// The pressure is that of the PTX text. ptxas reschedules, rematerialises and reallocates, and may
/// need fewer or more registers. Tests claim only that both figures rise and fall together.
///
/// Near-linear: 64 registers are processed at a time, each group only in the blocks where one of it
/// is live. Keeps no reference to its arguments.
class Liveness {
 public:
  Liveness() = default;
  Liveness(const ptx::Function& function, const Cfg& cfg, const RegisterIndex& index);

  /// Live after a statement, or written by it.
  [[nodiscard]] const Pressure& at(std::uint32_t statement) const noexcept {
    return pressure_[statement];
  }
  /// The maximum of `Pressure::words()`.
  [[nodiscard]] const PressurePoint& maximum() const noexcept { return maximum_; }
  /// The maximum of one class.
  [[nodiscard]] const PressurePoint& maximum(RegisterClass c) const noexcept {
    return class_maximum_[static_cast<std::size_t>(c)];
  }
  /// The maximum of `Pressure::words()` in a loop of `cfg.loops()`, inner loops included.
  [[nodiscard]] const PressurePoint& in_loop(std::uint32_t loop) const noexcept {
    return loop_maximum_[loop];
  }

 private:
  std::vector<Pressure> pressure_;
  PressurePoint maximum_;
  std::array<PressurePoint, kRegisterClasses> class_maximum_{};
  std::vector<PressurePoint> loop_maximum_;
};

/// The registers that are live after a statement. Costs as much as the full analysis.
[[nodiscard]] RegisterSet live_after(const ptx::Function& function, const Cfg& cfg,
                                     const RegisterIndex& index, std::uint32_t statement);

/// The first and the last statement at which a register is live or named; in between it may be
/// dead. Of a register that is neither anywhere: `first` after `last`.
struct LiveRange {
  std::uint32_t first = ptx::kNone;
  std::uint32_t last = 0;
  friend constexpr bool operator==(const LiveRange&, const LiveRange&) = default;
};
/// By number in the index. Registers with disjoint ranges never hold values at the same time. Costs
/// as much as the full analysis.
[[nodiscard]] std::vector<LiveRange> live_ranges(const ptx::Function& function, const Cfg& cfg,
                                                 const RegisterIndex& index);

/// One line for the function and one per loop: the maximum pressure and its PTX line.
[[nodiscard]] std::string to_text(const Liveness& liveness, const Cfg& cfg,
                                  const ptx::Module& module, const ptx::Function& function);

}  // namespace ptxgen::inline v0::analysis
