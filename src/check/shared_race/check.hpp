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

/// Two accesses that no barrier parts and that may touch the same bytes.
struct RacePair {
  std::uint32_t first = 0;   ///< number among the accesses: the write, or the first of two
  std::uint32_t second = 0;  ///< the same as `first` for two threads at one instruction
  std::array<std::uint32_t, 3> shape{};     ///< a block in which they may
  std::optional<Witness> witness;           ///< a launch in which they do
  bool every_launch = false;                ///< and they do in every launch that may be
  std::array<std::uint32_t, 3> harmless{};  ///< a block that is free of it, zeros if none is known
  std::string not_known;                    ///< without: what would have to be known, or empty
  bool in_warp = false;                     ///< bar.warp.sync would do
  bool same_value = false;                  ///< both write one value
  bool unlikely = false;                    ///< most of the shapes that were tried are free of it
  bool follows = false;                     ///< control may go from the first to the second
  std::uint32_t variable = ptx::kNone;      ///< symbol of the variable that is accessed, if known
  bool copying = false;                     ///< the first is a cp.async that nobody has waited for
};

struct RaceCheck {
  std::vector<SharedAccess> accesses;
  std::vector<RacePair> pairs;  ///< by the first access, then by the second
  bool shape_known = true;      ///< otherwise several were tried
  bool incomplete = false;      ///< there was too much to compare
};

/// Looks at one kernel. Where the shape of a block is not known, tries some, each by itself: what
/// is found then is never of every launch, as a block of one thread is free of races.
///
/// Assumes that addresses do not wrap around, that what is addressed from a variable lies in it,
/// and that threads agree on no number from 2^31 on.
[[nodiscard]] RaceCheck check_races(const ptx::Module& module, const ptx::Function& function,
                                    const SharedAccesses& accesses, const GateOptions& options);

}  // namespace ptxgen::inline v0::gates
