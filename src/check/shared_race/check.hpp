// src/check/shared_race/check.hpp - pairs of accesses to shared memory that may race
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/shared_race/accesses.hpp"
#include "check/shared_race/overlap.hpp"
#include "check/shared_race/witness.hpp"
#include "ptxgen/check/gates.hpp"

namespace ptxgen::inline v0::gates {

/// Two accesses that no barrier separates and that may touch the same bytes.
struct RacePair {
  std::uint32_t first = 0;   ///< number among the accesses: the write, or the first of two
  std::uint32_t second = 0;  ///< the same as `first` for two threads at one instruction
  std::array<std::uint32_t, 3> shape{};     ///< a block in which they may race
  std::optional<Witness> witness;           ///< a launch in which they race
  bool every_launch = false;                ///< they race in every launch
  std::array<std::uint32_t, 3> harmless{};  ///< a block without this race, zeros if none is known
  std::string not_known;                    ///< no witness: what the addresses depend on, or empty
  bool in_warp = false;                     ///< bar.warp.sync would suffice
  bool same_value = false;                  ///< both write one value
  bool unlikely = false;                    ///< more than half of the tried shapes have no race
  bool follows = false;                     ///< the second may follow the first
  std::uint32_t variable = ptx::kNone;      ///< symbol of the variable that is accessed, if known
  bool copying = false;                     ///< the first is a copy without a wait
};

struct RaceCheck {
  std::vector<SharedAccess> accesses;
  std::vector<RacePair> pairs;  ///< by the first access, then by the second
  bool shape_known = true;      ///< otherwise several were tried
  bool incomplete = false;      ///< too much to compare
};

/// Checks one kernel, of which `facts` are for the block of the options. If the shape of a block is
/// not known, tries several, each by itself; such a race is never one of every launch, since a
/// block of one thread has none.
///
/// Assumes that addresses do not wrap around, that an address derived from a variable is within it,
/// and that values on which threads agree are below 2^31.
[[nodiscard]] RaceCheck check_races(analysis::Facts& facts, const SharedAccesses& accesses,
                                    const GateOptions& options);

}  // namespace ptxgen::inline v0::gates
