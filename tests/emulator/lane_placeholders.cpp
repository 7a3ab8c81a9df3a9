// tests/emulator/lane_placeholders.cpp - stand-ins for rows that are not there yet
#include "emulator/lane.hpp"

namespace ptxgen::inline v0::emulator {

LaneFunction comparison_function(const LaneOp&) { return nullptr; }
LaneFunction float_function(const LaneOp&) { return nullptr; }
LaneFunction conversion_function(const LaneOp&) { return nullptr; }

}  // namespace ptxgen::inline v0::emulator
