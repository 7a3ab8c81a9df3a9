// ptxgen/emulator/profile.hpp - the counters of a launch as text
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/emulator/counters.hpp"

namespace ptxgen::inline v0::emulator {

/// The lines of `ptx` as they are, behind a margin with the counters of each line: executions by
/// warps, lanes active on average, executions that parted their lanes, sectors and ideal sectors of
/// global or local memory, wavefronts and ideal wavefronts of shared memory. Lines without an
/// instruction have an empty margin, a column that does not apply to a line is empty.
/// Two lines of head; ends with a newline. `ptx` is the text that was loaded.
[[nodiscard]] std::string annotate(std::string_view ptx, const Counters& counters);

/// The counters of the launch as a table for people, a line each; ends with a newline. Groups of
/// memory accesses that did not occur are left out.
[[nodiscard]] std::string to_text(const Counters& counters);

}  // namespace ptxgen::inline v0::emulator
