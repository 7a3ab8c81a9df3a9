// tests/analysis/liveness_test.cpp - live registers and pressure, against the definition
#include <catch2/catch.hpp>

#include "ptxgen/analysis/liveness.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "random_functions.hpp"
#include "snippets.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using namespace ptxgen::analysis;
using ptxgen::test::Dice;

namespace {

struct Access {
  bool read = false, written = false, entire = false;
};
Access access(const Function& function, std::uint32_t statement, Register reg) {
  Access found;
  const Instruction& s = function.body[statement];
  for_each_access(function, s, [&](const RegisterAccess& a) {
    if (!(a.reg == reg)) return;
    found.read |= !a.write;
    found.written |= a.write;
    found.entire |= a.write && a.component == 0 && !s.guard.present();
  });
  return found;
}

// Whether a path leads from after the statement to a read, past no full write.
bool live(const Function& function, const Cfg& cfg, Register reg, std::uint32_t statement) {
  std::vector<bool> seen(cfg.exit() + std::size_t{1}, false);
  struct Place {
    std::uint32_t block, statement;
  };
  std::vector<Place> open{{cfg.block_of(statement), statement + 1}};
  while (!open.empty()) {
    const Place from = open.back();
    open.pop_back();
    if (from.block == cfg.exit()) {
      for (const Variable& variable : function.returns)
        if (variable.space == Space::Register && variable.decl == reg.decl) return true;
      continue;
    }
    bool stopped = false;
    for (std::uint32_t i = from.statement; i < cfg.blocks()[from.block].end && !stopped; ++i) {
      const Access a = access(function, i, reg);
      if (a.read) return true;
      stopped = a.entire;
    }
    if (stopped) continue;
    for (const std::uint32_t next : cfg.successors(from.block)) {
      if (seen[next]) continue;
      seen[next] = true;
      open.push_back({next, next == cfg.exit() ? 0 : cfg.blocks()[next].first});
    }
  }
  return false;
}

std::string liveness_text(const Module& module) {
  const Function& function = module.functions[0];
  const Cfg cfg(function);
  const RegisterIndex index(function);
  return to_text(Liveness(function, cfg, index), cfg, module, function);
}

// So many values loaded, then all of them stored in turn.
Module kernel_that_holds(unsigned values) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 a)\n{\n.reg .b32 %r<200>;\n.reg .b64 %rd<4>;\n"
      "ld.param.u64 %rd1, [a];\n";
  for (unsigned i = 0; i < values; ++i) {
    text += "ld.volatile.global.u32 %r" + std::to_string(i) + ", [%rd1+" + std::to_string(4 * i) +
            "];\n";
  }
  for (unsigned i = 0; i < values; ++i) {
    text += "st.volatile.global.u32 [%rd1+" + std::to_string(4 * i) + "], %r" +
            std::to_string(values - 1 - i) + ";\n";
  }
  return parse(text + "ret;\n}\n");
}

}  // namespace

TEST_CASE("what is live, and how much, is what the definition says") {
  Dice dice(test::seed() + 2);
  std::size_t alive = 0;
  for (int i = 0; i < test::count(400, 20000); ++i) {
    const Module module = test::random_function(dice);
    const Function& function = module.functions[0];
    const Cfg cfg(function);
    const RegisterIndex index(function);
    const Liveness liveness(function, cfg, index);
    std::uint32_t largest = 0, first = kNone;
    std::vector<std::uint32_t> in_loop(cfg.loops().loops().size(), 0);
    for (std::uint32_t s = 0; s < function.body.size(); ++s) {
      Pressure wanted;
      RegisterSet set(index.size());
      const bool reachable = cfg.reachable(cfg.block_of(s));
      for (std::uint32_t r = 0; r < index.size() && reachable; ++r) {
        const RegisterDecl& decl = function.registers[index[r].decl.value];
        const bool after = live(function, cfg, index[r], s);
        if (after) set.insert(r);
        if (!after && !access(function, s, index[r]).written) continue;
        wanted.registers[static_cast<std::size_t>(register_class(decl.type))] += decl.vector;
      }
      INFO(print(module) << "statement " << s);
      REQUIRE(liveness.at(s) == wanted);
      alive += set.count();
      if (wanted.words() > largest) largest = wanted.words(), first = s;
      for (std::uint32_t loop = 0; loop < in_loop.size(); ++loop) {
        if (cfg.loops().contains(loop, cfg.block_of(s)))
          in_loop[loop] = std::max(in_loop[loop], wanted.words());
      }
      if (dice.chance(80)) continue;
      const RegisterSet found = live_after(function, cfg, index, s);
      for (std::uint32_t r = 0; r < index.size(); ++r)
        REQUIRE(found.contains(r) == set.contains(r));
    }
    REQUIRE(liveness.maximum().statement == first);
    REQUIRE(liveness.maximum().pressure.words() == largest);
    for (std::uint32_t loop = 0; loop < in_loop.size(); ++loop)
      REQUIRE(liveness.in_loop(loop).pressure.words() == in_loop[loop]);
  }
  CHECK(alive > 5000);
}

TEST_CASE("live ranges begin and end where a register is live or named") {
  Dice dice(test::seed() + 3);
  std::size_t ranges = 0;
  for (int i = 0; i < test::count(100, 5000); ++i) {
    const Module module = test::random_function(dice);
    const Function& function = module.functions[0];
    const Cfg cfg(function);
    const RegisterIndex index(function);
    const std::vector<LiveRange> found = live_ranges(function, cfg, index);
    REQUIRE(found.size() == index.size());
    for (std::uint32_t r = 0; r < index.size(); ++r) {
      LiveRange wanted;
      for (std::uint32_t s = 0; s < function.body.size(); ++s) {
        const auto [read, written, full] = access(function, s, index[r]);
        const std::uint32_t block = cfg.block_of(s);
        const bool reachable = cfg.reachable(block);
        // Live before the first statement of a block: read in it, or live after it and not written.
        const bool enters = s == cfg.blocks()[block].first && reachable &&
                            (read || (live(function, cfg, index[r], s) && !full));
        const bool leaves = reachable && live(function, cfg, index[r], s);
        if (!read && !written && !enters && !leaves) continue;
        wanted.first = std::min(wanted.first, s);
        wanted.last = std::max(wanted.last, s);
      }
      INFO(print(module) << "register " << r);
      REQUIRE(found[r] == wanted);
      ranges += wanted.first < wanted.last ? 1 : 0;
    }
  }
  CHECK(ranges > 500);
}

TEST_CASE("pressure in words") {
  CHECK(liveness_text(test::kernel(R"(
  mov.u64 %rd1, 0;
  mov.u32 %r1, 0;
  mov.u32 %r2, 7;
L:
  cvt.u64.u32 %rd2, %r1;
  add.u64 %rd1, %rd1, %rd2;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, %r2;
  @%p1 bra L;
  st.shared.u64 [tile], %rd1;
)")) == "k: 6 words at statement 4 (line 19): 2 32-bit, 2 64-bit\n"
        "  loop of block 1: 6 words at statement 4 (line 19): 2 32-bit, 2 64-bit\n");
  CHECK(liveness_text(test::kernel("")) == "k: nothing is live\n");
  CHECK(liveness_text(test::kernel("ret;\nmov.u32 %r1, %r2;\n")) == "k: nothing is live\n");
}

TEST_CASE("pressure rises with the registers that ptxas takes") {
  const Assembler assembler{Settings::from_environment()};
  if (!assembler.available()) return test::skip("no assembler: registers cannot be compared");
  std::uint32_t before = 0;
  for (const unsigned values : {4u, 16u, 40u, 80u, 120u}) {
    const Module module = kernel_that_holds(values);
    const Function& function = module.functions[0];
    const Cfg cfg(function);
    const Liveness liveness(function, cfg, RegisterIndex(function));
    const std::uint32_t words = liveness.maximum().pressure.words();
    CHECK(words == values + 2);  // and the address
    AssembleOptions options;
    options.target = "sm_80";
    const std::uint32_t taken = assembler.assemble(print(module), options).registers;
    INFO(values << " values: " << words << " words, " << taken << " registers");
    CHECK(taken + 2 >= words);
    CHECK(taken <= words + 24);
    CHECK(taken >= before);
    before = taken;
  }
}

TEST_CASE("liveness of hostile bodies") {
  // Loops inside each other with registers that live through all of them.
  std::string text;
  const unsigned depth = 2000;
  for (unsigned r = 0; r < 19; ++r) text += "mov.u32 %r" + std::to_string(r) + ", 0;\n";
  for (unsigned i = 0; i < depth; ++i)
    text += "L" + std::to_string(i) + ":\nadd.u32 %r1, %r1, 1;\n";
  for (unsigned i = depth; i-- > 0;) text += "@%p1 bra L" + std::to_string(i) + ";\n";
  for (unsigned r = 0; r < 19; ++r) text += "st.shared.u32 [tile], %r" + std::to_string(r) + ";\n";
  const Module module = test::kernel(text);
  const Function& f = module.functions[0];
  const Cfg cfg(f);
  const Liveness liveness(f, cfg, RegisterIndex(f));
  CHECK(liveness.maximum().pressure.words() == 19);
  CHECK(liveness.in_loop(depth - 1).pressure.of(RegisterClass::Predicate) == 1);
}
