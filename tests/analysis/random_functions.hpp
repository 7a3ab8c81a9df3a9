// tests/analysis/random_functions.hpp - functions with any control flow, to be walked
#pragma once

#include <algorithm>
#include <string>

#include "ptx/dice.hpp"
#include "ptxgen/ptx.hpp"

namespace ptxgen::test {

// A device function of moves, additions and branches that lead anywhere; results and a parameter
// in registers, a vector register, guards.
[[nodiscard]] inline ptx::Module random_function(Dice& dice) {
  const unsigned blocks = 1 + dice.below(dice.chance(10) ? 30 : 9);
  const unsigned registers = 1 + dice.below(5);
  const unsigned guarded = dice.pick({0u, 15u, 50u});
  const unsigned wild = dice.pick({0u, 20u, 100u});
  const auto reg = [&]() -> std::string {
    if (dice.chance(8)) return "q";
    if (dice.chance(8)) return "x";
    if (dice.chance(10)) return "v." + std::string(1, "xyzw"[dice.below(4)]);
    return "%r" + std::to_string(dice.below(registers));
  };
  const auto label = [&](unsigned b) {
    const unsigned to = dice.chance(wild) ? dice.below(blocks)
                        : dice.chance(30) ? dice.below(b + 1)
                                          : std::min(blocks - 1, b + 1 + dice.below(3));
    return "L" + std::to_string(to);
  };
  std::string text =
      ".version 8.7\n.target sm_90\n.address_size 64\n"
      ".func (.reg .b32 q) f(.reg .b32 x)\n{\n.reg .b32 %r<5>;\n.reg .pred %p<3>;\n"
      ".reg .v4 .b32 v;\n";
  for (unsigned b = 0; b < blocks; ++b) {
    text += "L" + std::to_string(b) + ":\n";
    for (unsigned n = dice.below(4); n > 0; --n) {
      const std::string guard = dice.chance(guarded) ? "@%p" + std::to_string(dice.below(2)) : "";
      const std::string head = guard + " ";
      switch (dice.below(4)) {
        case 0:
          text += head + "mov.b32 " + reg() + ", 1;\n";
          break;
        case 1:
          text += head + "add.s32 " + reg() + ", " + reg() + ", " + reg() + ";\n";
          break;
        case 2:
          text += head + "setp.lt.u32 %p" + std::to_string(dice.below(2)) + ", " + reg() + ", 3;\n";
          break;
        default:
          text += head + "add.s32 %r0, %r0, " + reg() + ";\n";
          break;
      }
    }
    switch (dice.below(12)) {
      case 0:
        text += "ret;\n";
        break;
      case 1:
        text += "@%p0 ret;\n";
        break;
      case 2:
        text += "T" + std::to_string(b) + ": .branchtargets " + label(b) + ", " + label(b) + ", " +
                label(b) + ";\nbrx.idx " + "%r0, T" + std::to_string(b) + ";\n";
        break;
      case 3:
      case 4:
        text += "bra " + label(b) + ";\n";
        break;
      case 5:
        break;
      default:
        text += "@%p" + std::to_string(dice.below(2)) + " bra " + label(b) + ";\n";
    }
  }
  return ptx::parse(text + "}\n");
}

// A walk along random edges. Each write gives its register a new stamp; every version remembers
// what its register held when it was made.
}  // namespace ptxgen::test
