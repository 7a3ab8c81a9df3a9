// ptxgen/analysis/liveness.hpp - which registers hold a wanted value, and how many
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

/// How many registers hold a value that is still wanted, at one place.
struct Pressure {
  std::array<std::uint32_t, kRegisterClasses> registers{};  ///< a vector register as its elements
  /// 32-bit registers of the hardware that these need at least: one for 16 or 32 bits, two for 64,
  /// four for 128. Predicates have registers of their own.
  [[nodiscard]] constexpr std::uint32_t words() const noexcept {
    return registers[1] + registers[2] + 2 * registers[3] + 4 * registers[4];
  }
  [[nodiscard]] constexpr std::uint32_t of(RegisterClass c) const noexcept {
    return registers[static_cast<std::size_t>(c)];
  }
  friend constexpr bool operator==(const Pressure&, const Pressure&) = default;
};

/// Where pressure is highest: the first such statement, ptx::kNone if nothing is live anywhere.
struct PressurePoint {
  std::uint32_t statement = ptx::kNone;
  Pressure pressure;
};

/// Liveness of a function's registers and the pressure that it makes. A register is live behind a
/// statement if some path from there reads it before it is written whole; a guarded write, or one
/// of a component, leaves the rest of the old value. Results in registers are read where the
/// function returns. A register written counts at its statement even if nobody reads it. Unknown
/// statements read and write nothing here; what control never comes to counts nothing.
///
/// The pressure is that of PTX as it is written. ptxas schedules, rematerialises and shares
/// registers anew, keeps some for addresses and calls, and may need fewer or more; the figures rise
/// and fall together, and that is all that is claimed (and tested).
///
/// Near-linear: registers are done 64 at a time, each group only where one of it is live. Keeps no
/// reference to its arguments.
class Liveness {
 public:
  Liveness() = default;
  Liveness(const ptx::Function& function, const Cfg& cfg, const RegisterIndex& index);

  /// Live behind a statement, or written by it.
  [[nodiscard]] const Pressure& at(std::uint32_t statement) const noexcept {
    return pressure_[statement];
  }
  /// Where most words are live.
  [[nodiscard]] const PressurePoint& maximum() const noexcept { return maximum_; }
  /// Where most registers of a class are live.
  [[nodiscard]] const PressurePoint& maximum(RegisterClass c) const noexcept {
    return class_maximum_[static_cast<std::size_t>(c)];
  }
  /// Where most words are live in a loop of `cfg.loops()`, inner loops included.
  [[nodiscard]] const PressurePoint& in_loop(std::uint32_t loop) const noexcept {
    return loop_maximum_[loop];
  }

 private:
  std::vector<Pressure> pressure_;
  PressurePoint maximum_;
  std::array<PressurePoint, kRegisterClasses> class_maximum_{};
  std::vector<PressurePoint> loop_maximum_;
};

/// The registers that are live behind a statement. As costly as the whole analysis.
[[nodiscard]] RegisterSet live_behind(const ptx::Function& function, const Cfg& cfg,
                                      const RegisterIndex& index, std::uint32_t statement);

/// A line for the function and one for each loop: where most is live, how much, and the lines of
/// the text.
[[nodiscard]] std::string to_text(const Liveness& liveness, const Cfg& cfg,
                                  const ptx::Module& module, const ptx::Function& function);

}  // namespace ptxgen::inline v0::analysis
