// tests/analysis/simulation_test.cpp - what the analyses say, against lanes that run
#include <array>
#include <catch2/catch.hpp>

#include "ptx/dice.hpp"
#include "ptxgen/analysis.hpp"
#include "ptxgen/ptx.hpp"
#include "snippets.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using namespace ptxgen::analysis;
using ptxgen::test::Dice;

namespace {

constexpr unsigned kLanes = 8;
constexpr unsigned kRegisters = 8;

// A body of moves, additions, comparisons and branches.
std::string random_body(Dice& dice) {
  const unsigned blocks = 2 + dice.below(9);
  const unsigned wild = dice.pick({0u, 15u, 100u});
  const unsigned thread = dice.pick({3u, 10u, 25u});
  const auto reg = [&] { return "%r" + std::to_string(dice.below(kRegisters)); };
  std::string text;
  for (unsigned r = 0; r < kRegisters; ++r) {
    if (!dice.chance(80)) continue;
    text += "mov.u32 %r" + std::to_string(r) + ", " + std::to_string(dice.below(4)) + ";\n";
  }
  if (dice.chance(80)) text += "mov.u32 %r0, %tid.x;\n";
  for (unsigned b = 0; b < blocks; ++b) {
    text += "L" + std::to_string(b) + ":\n";
    for (unsigned n = dice.below(4); n > 0; --n) {
      const std::string guard = dice.chance(10) ? "@%p0 " : "";
      if (dice.chance(thread))
        text += guard + "mov.u32 " + reg() + ", %tid.x;\n";
      else if (dice.chance(30))
        text += guard + "mov.u32 " + reg() + ", " + std::to_string(dice.below(5)) + ";\n";
      else
        text += guard + "add.u32 " + reg() + ", " + reg() + ", " +
                (dice.chance(50) ? std::string("1") : reg()) + ";\n";
    }
    text += "setp.lt.u32 %p0, " + reg() + ", " +
            (dice.chance(50) ? std::to_string(1 + dice.below(6)) : reg()) + ";\n";
    if (dice.chance(8)) {
      text += "@%p0 ret;\n";
      continue;
    }
    const unsigned to = dice.chance(wild) ? dice.below(blocks)
                        : dice.chance(30) ? dice.below(b + 1)
                                          : std::min(blocks - 1, b + 1 + dice.below(3));
    text += (dice.chance(90) ? "@%p0 " : "") + std::string("bra L") + std::to_string(to) + ";\n";
  }
  return text + "add.u32 %r1, %r1, %r2;\nadd.u32 %r3, %r3, %r4;\nadd.u32 %r5, %r6, %r7;\n";
}

struct Lane {
  std::uint32_t at = 0;  // statement; the number of statements when it is done
  std::array<std::uint32_t, kRegisters + 1> value{};  // the last one is %p0
  std::array<bool, kRegisters + 1> defined{};
};

// Runs lanes through a function of random_body and checks each statement that a group executes.
struct Machine {
  explicit Machine(const Module& m)
      : module(m),
        function(m.functions[0]),
        cfg(function),
        index(function),
        uniformity(m, function, cfg, index),
        undefined(maybe_undefined(function, cfg, index)) {}

  std::size_t place(Register reg) const {
    return function.type_of(reg) == Type::pred ? kRegisters : reg.index;
  }
  std::uint32_t value(const Lane& lane, unsigned number, const Operand& o) const {
    if (o.kind == OperandKind::Special) return number;
    return o.kind == OperandKind::Register ? lane.value[place(o.as_register())]
                                           : static_cast<std::uint32_t>(o.value);
  }

  void step(Lane& lane, unsigned number) const {
    const Instruction& s = function.body[lane.at];
    const auto operands = function.operands_of(s);
    ++lane.at;
    if (s.kind != StatementKind::Instruction) return;
    for_each_register(function, s, [&](Register reg, bool write, std::size_t) {
      if (write) return;
      if (!lane.defined[place(reg)]) REQUIRE(undefined.contains(index.find(reg)));
    });
    if (s.guard.present() && lane.value[kRegisters] == 0) return;
    if (s.is(Op::ret)) {
      lane.at = static_cast<std::uint32_t>(function.body.size());
    } else if (s.is(Op::bra)) {
      for (std::uint32_t i = 0; i < function.body.size(); ++i) {
        if (function.body[i].kind == StatementKind::Label &&
            function.operands_of(function.body[i])[0].id == operands[0].id)
          lane.at = i;
      }
    } else {
      const std::uint32_t a = value(lane, number, operands[1]);
      std::uint32_t result = a;
      if (operands.size() == 3) {
        const std::uint32_t b = value(lane, number, operands[2]);
        result = function.type_of(operands[0].as_register()) != Type::pred
                     ? a + b
                     : static_cast<std::uint32_t>(a < b);
      }
      const std::size_t to = place(operands[0].as_register());
      lane.value[to] = result;
      // A value made of undefined ones is undefined.
      bool known = true;
      for_each_register(function, s, [&](Register reg, bool write, std::size_t operand) {
        if (!write && operand != kGuardPosition) known = known && lane.defined[place(reg)];
      });
      lane.defined[to] = known;
    }
  }

  // `dice`: which group runs is chosen by it, else the lowest in the order of blocks does.
  void run(Dice* dice) {
    std::vector<Lane> lanes(kLanes);
    const auto end = static_cast<std::uint32_t>(function.body.size());
    for (unsigned steps = 0; steps < 400; ++steps) {
      std::uint32_t chosen = end;
      if (dice != nullptr) {
        chosen = lanes[dice->below(kLanes)].at;
      } else {
        for (const Lane& lane : lanes) {
          if (lane.at == end) continue;
          const auto rank = [&](std::uint32_t at) {
            return std::pair(cfg.position(cfg.block_of(at)), at);
          };
          if (chosen == end || rank(lane.at) < rank(chosen)) chosen = lane.at;
        }
        if (chosen == end) return;
      }
      if (chosen == end) continue;
      const std::uint32_t block = cfg.block_of(chosen);
      const Lane* first = nullptr;
      for (unsigned l = 0; l < kLanes; ++l) {
        if (lanes[l].at != chosen) continue;
        if (first == nullptr) first = &lanes[l];
        for_each_register(function, function.body[chosen],
                          [&](Register reg, bool write, std::size_t) {
                            const std::uint32_t number = index.find(reg);
                            if (write || uniformity.of(number) < Agreement::Warp) return;
                            if (dice != nullptr && uniformity.may_be_split(block)) return;
                            ++agreed;
                            INFO(name_of(module, function, reg) << " in statement " << chosen);
                            REQUIRE(lanes[l].value[place(reg)] == first->value[place(reg)]);
                          });
      }
      for (unsigned l = 0; l < kLanes; ++l) {
        if (lanes[l].at == chosen) step(lanes[l], l);
      }
    }
  }

  const Module& module;
  const Function& function;
  Cfg cfg;
  RegisterIndex index;
  Uniformity uniformity;
  RegisterSet undefined;
  std::size_t agreed = 0;
};

}  // namespace

TEST_CASE("lanes that run together agree, and read nothing unwritten, as the analyses say") {
  Dice dice(test::seed());
  std::size_t agreed = 0, uniform = 0, defined = 0;
  for (int i = 0; i < test::count(3000, 100000); ++i) {
    const std::string body = random_body(dice);
    const Module module = test::kernel(body);
    Machine machine(module);
    INFO(body << to_text(machine.cfg, module, machine.function)
              << to_text(machine.uniformity, machine.cfg, machine.index, module, machine.function));
    machine.run(nullptr);
    machine.run(&dice);
    agreed += machine.agreed;
    defined += machine.index.size() - machine.undefined.count();
    for (std::uint32_t r = 0; r < machine.index.size(); ++r)
      uniform += machine.uniformity.of(r) >= Agreement::Warp;
  }
  // The checks are about something.
  CHECK(agreed > 10000);
  CHECK(uniform > 2000);
  CHECK(defined > 2000);
}
