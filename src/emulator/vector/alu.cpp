// src/emulator/vector/alu.cpp - placeholder
#include "emulator/vector/alu.hpp"
namespace ptxgen::inline v0::emulator {
Handler vector_handler(const LaneDetail&, Step&) { return nullptr; }
std::string_view vector_isa() noexcept { return "baseline"; }
}  // namespace ptxgen::inline v0::emulator
