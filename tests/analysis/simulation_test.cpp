// tests/analysis/simulation_test.cpp - analyses against simulated lanes
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

// What is made of the bits of two registers, or of one and a constant.
std::string random_bits(Dice& dice, const std::string& to, const std::string& a,
                        const std::string& b) {
  const std::string small = std::to_string(dice.below(8));
  const std::string edge = std::to_string(dice.pick({0u, 1u, 2u, 8u, 31u, 32u, 63u, 64u, 96u}));
  const std::string divisor = std::to_string(dice.pick({1u, 2u, 3u, 16u, 32u, 48u, 64u, 96u}));
  const std::string mask = std::to_string(dice.pick({-64, -32, -31, -16, 31, 32, 63, 96}));
  const std::string other = dice.chance(50) ? b : edge;
  switch (dice.below(16)) {
    case 0:
      return "shr.u32 " + to + ", " + a + ", " + small;
    case 1:
      return "shr.s32 " + to + ", " + a + ", " + small;
    case 2:
      return "shl.b32 " + to + ", " + a + ", " + small;
    case 3:
      return "and.b32 " + to + ", " + a + ", " + (dice.chance(80) ? mask : b);
    case 4:
      return "or.b32 " + to + ", " + a + ", " + other;
    case 5:
      return "xor.b32 " + to + ", " + a + ", " + other;
    case 6:
      return "not.b32 " + to + ", " + a;
    case 7:
      return "sub.u32 " + to + ", " + (dice.chance(50) ? a + ", " + other : other + ", " + a);
    case 8:
      return "mul.lo.u32 " + to + ", " + a + ", " + other;
    case 9:
      return "mad.lo.u32 " + to + ", " + a + ", " + edge + ", " + b;
    case 10:
      return "div.u32 " + to + ", " + a + ", " + divisor;
    case 11:
      return "rem.u32 " + to + ", " + a + ", " + divisor;
    case 12:
      return "min.u32 " + to + ", " + a + ", " + other;
    case 13:
      return "max.s32 " + to + ", " + a + ", " + other;
    case 14:
      return "bfe.u32 " + to + ", " + a + ", " + small + ", " + small;
    default:
      return "selp.b32 " + to + ", " + a + ", " + other + ", %p0";
  }
}

// A body of moves, additions, comparisons and branches; with `bits` of much else besides.
std::string random_body(Dice& dice, bool bits) {
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
      else if (bits && dice.chance(60))
        text += guard + random_bits(dice, reg(), reg(), reg()) + ";\n";
      else
        text += guard + "add.u32 " + reg() + ", " + reg() + ", " +
                (dice.chance(50) ? std::string("1") : reg()) + ";\n";
    }
    const std::string constant = std::to_string(
        bits ? dice.pick({0u, 1u, 31u, 32u, 33u, 63u, 64u, 96u}) : 1 + dice.below(6));
    const char* const comparison = dice.pick<const char*>({"lt", "le", "gt", "ge"});
    text += std::string("setp.") + (bits ? comparison : "lt") +
            (bits && dice.chance(50) ? ".s32 %p0, " : ".u32 %p0, ");
    text += bits && dice.chance(30) ? constant + ", " + reg() + ";\n"
                                    : reg() + ", " + (dice.chance(50) ? constant : reg()) + ";\n";
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

std::uint32_t computed(const Instruction& s, std::span<const std::uint32_t> x) {
  const std::uint32_t a = x[0], b = x.size() > 1 ? x[1] : 0;
  const auto sa = static_cast<std::int32_t>(a), sb = static_cast<std::int32_t>(b);
  const bool sign = s.type() == Type::s32;
  switch (s.op) {
    case Op::mov:
      return a;
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::shr:
      return sign ? static_cast<std::uint32_t>(sa >> b) : a >> b;
    case Op::shl:
      return a << b;
    case Op::and_:
      return a & b;
    case Op::or_:
      return a | b;
    case Op::xor_:
      return a ^ b;
    case Op::not_:
      return ~a;
    case Op::mul:
      return a * b;
    case Op::mad:
      return a * b + x[2];
    case Op::div:
      return a / b;
    case Op::rem:
      return a % b;
    case Op::min:
      return std::min(a, b);
    case Op::max:
      return static_cast<std::uint32_t>(std::max(sa, sb));
    case Op::bfe:
      return a >> b & ((1u << x[2]) - 1);
    case Op::selp:
      return x[2] != 0 ? a : b;
    default:
      break;
  }
  switch (s.get(Field::Comparison)) {
    case Modifier::lt:
      return sign ? sa < sb : a < b;
    case Modifier::le:
      return sign ? sa <= sb : a <= b;
    case Modifier::gt:
      return sign ? sa > sb : a > b;
    case Modifier::ge:
      return sign ? sa >= sb : a >= b;
    default:
      FAIL("an instruction that random_body does not write");
      return 0;
  }
}

// Runs lanes through a function of random_body and checks each statement that a group executes.
struct Machine {
  Machine(const Module& m, std::vector<unsigned> lane_numbers, const UniformityOptions& options)
      : module(m),
        function(m.functions[0]),
        numbers(std::move(lane_numbers)),
        cfg(function),
        index(function),
        uniformity(m, function, cfg, index, options),
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
      if (lane.defined[place(reg)] || undefined.contains(index.find(reg))) return;
      FAIL(name_of(module, function, reg) << " is read unwritten");
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
      std::vector<std::uint32_t> sources;
      for (const Operand& source : operands.subspan(1))
        sources.push_back(value(lane, number, source));
      const std::size_t to = place(operands[0].as_register());
      lane.value[to] = computed(s, sources);
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
                            // An assertion for each would be nearly all of the time.
                            if (lanes[l].value[place(reg)] == first->value[place(reg)]) return;
                            FAIL(name_of(module, function, reg) << " in statement " << chosen);
                          });
      }
      for (unsigned l = 0; l < kLanes; ++l) {
        if (lanes[l].at == chosen) step(lanes[l], numbers[l]);
      }
    }
  }

  const Module& module;
  const Function& function;
  std::vector<unsigned> numbers;  // %tid.x of each lane
  Cfg cfg;
  RegisterIndex index;
  Uniformity uniformity;
  RegisterSet undefined;
  std::size_t agreed = 0;
};

}  // namespace

TEST_CASE("lanes that run together agree, and read nothing unwritten, as the analyses say") {
  Dice dice(test::seed());
  std::size_t agreed = 0, uniform = 0, defined = 0, by_bits = 0;
  for (int i = 0; i < test::count(6000, 100000); ++i) {
    const bool bits = i % 2 != 0;
    const std::string body = random_body(dice, bits);
    const Module module = test::kernel(body);
    std::vector<unsigned> numbers(kLanes);
    // Some lanes of one warp of a row of 96 threads.
    const unsigned warp = bits ? dice.below(3) : 0;
    for (unsigned l = 0; l < kLanes; ++l) numbers[l] = bits ? 32 * warp + l * 4 + dice.below(4) : l;
    UniformityOptions options;
    if (bits) options.block = {96, 1, 1};
    Machine machine(module, numbers, options);
    INFO(body << to_text(machine.cfg, module, machine.function)
              << to_text(machine.uniformity, machine.cfg, machine.index, module, machine.function));
    machine.run(nullptr);
    machine.run(&dice);
    agreed += machine.agreed;
    defined += machine.index.size() - machine.undefined.count();
    const Uniformity shapeless(module, machine.function, machine.cfg, machine.index);
    for (std::uint32_t r = 0; r < machine.index.size(); ++r) {
      uniform += machine.uniformity.of(r) >= Agreement::Warp;
      by_bits += machine.uniformity.of(r) > shapeless.of(r);
    }
  }
  // The checks are about something.
  CHECK(agreed > 10000);
  CHECK(uniform > 2000);
  CHECK(defined > 2000);
  CHECK(by_bits > 100);
}
