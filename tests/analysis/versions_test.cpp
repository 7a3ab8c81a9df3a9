// tests/analysis/versions_test.cpp - versions of registers, against walks through the function
#include <catch2/catch.hpp>
#include <set>

#include "ptxgen/analysis/versions.hpp"
#include "ptxgen/ptx.hpp"
#include "random_functions.hpp"
#include "snippets.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using namespace ptxgen::analysis;
using ptxgen::test::Dice;

namespace {

// Catch's own macros cost too much for millions of checks.
void must(bool holds) {
  if (!holds) FAIL("a version does not hold what the walk has");
}

struct Walk {
  const Function& function;
  const Cfg& cfg;
  const RegisterIndex& index;
  const Versions& versions;
  Dice& dice;
  std::vector<std::uint32_t> held, meant;
  std::uint32_t stamp = 0;
  std::size_t reads = 0, told = 0, phis = 0;

  Walk(const Function& f, const Cfg& c, const RegisterIndex& i, const Versions& v, Dice& d)
      : function(f), cfg(c), index(i), versions(v), dice(d), meant(v.size(), 0) {
    for (std::uint32_t r = 0; r < index.size(); ++r) held.push_back(++stamp);
    for (std::uint32_t v2 = 0; v2 < versions.size(); ++v2) {
      if (versions[v2].kind == analysis::Version::Kind::Entry) meant[v2] = held[versions[v2].reg];
    }
  }

  void enter(std::uint32_t from, std::uint32_t block) {
    const auto before = cfg.predecessors(block);
    std::size_t edge = before.size();
    for (std::size_t e = 0; e < before.size() && from != kNone; ++e) {
      if (before[e] == from) edge = e;
    }
    std::vector<std::uint32_t> values;
    for (const std::uint32_t phi : versions.phis(block)) {
      const auto inputs = versions.inputs(phi);
      must(inputs.size() == before.size() + (block == 0 ? 1 : 0));
      must(inputs[edge] != kNone);
      values.push_back(meant[inputs[edge]]);
    }
    std::size_t next = 0;
    for (const std::uint32_t phi : versions.phis(block)) {
      must(versions[phi].kind == analysis::Version::Kind::Phi);
      must(versions[phi].block == block);
      meant[phi] = values[next++];
      must(meant[phi] == held[versions[phi].reg]);
      ++phis;
    }
  }

  void statement(std::uint32_t i) {
    const Instruction& s = function.body[i];
    for (std::uint32_t r = 0; r < index.size(); ++r) {
      const std::uint32_t v = versions.before(i, r);
      if (v == kNone) continue;
      must(versions[v].reg == r);
      must(meant[v] == held[r]);
      ++told;
    }
    std::set<std::uint32_t> read, written, full;
    for_each_access(function, s, [&](const RegisterAccess& a) {
      (a.write ? written : read).insert(index.find(a.reg));
      if (a.write && a.component == 0 && !s.guard.present()) full.insert(index.find(a.reg));
    });
    for (std::uint32_t r = 0; r < index.size(); ++r) {
      const std::uint32_t v = versions.read(i, r);
      must((v != kNone) == (read.count(r) != 0));
      must((versions.written(i, r) != kNone) == (written.count(r) != 0));
      if (v == kNone) continue;
      must(meant[v] == held[r]);
      ++reads;
    }
    for (const std::uint32_t r : written) {
      const std::uint32_t v = versions.written(i, r);
      must(versions[v].statement == i);
      must(versions[v].partial == (full.count(r) == 0));
      must((versions[v].previous != kNone) == versions[v].partial);
      if (versions[v].partial) {
        must(meant[versions[v].previous] == held[r]);
        if (s.guard.present() && dice.chance(50)) {
          meant[v] = held[r];
          continue;
        }
      }
      meant[v] = held[r] = ++stamp;
    }
  }

  void run(unsigned max) {
    std::uint32_t block = 0, from = kNone;
    for (unsigned steps = 0; steps < max; ++steps) {
      enter(from, block);
      if (block == cfg.exit()) {
        for (std::uint32_t v = 0; v < versions.size(); ++v) {
          for (const VersionUse& use : versions.uses(v)) {
            if (use.returned()) must(meant[v] == held[versions[v].reg]);
          }
        }
        return;
      }
      const Block& b = cfg.blocks()[block];
      for (std::uint32_t i = b.first; i < b.end; ++i) statement(i);
      for (std::uint32_t r = 0; r < index.size(); ++r) {
        const std::uint32_t v = versions.at_end(block, r);
        if (v != kNone) must(meant[v] == held[r]);
      }
      const auto next = cfg.successors(block);
      if (next.empty()) return;
      from = block;
      block = dice.pick(next);
    }
  }
};

// The blocks where phis of a register must be, by the definitions: live at the start of the
// block, and in the iterated dominance frontier of the writes and the entry.
std::set<std::uint32_t> phi_blocks(const Function& function, const Cfg& cfg,
                                   const RegisterIndex& index, std::uint32_t reg) {
  const std::uint32_t nodes = cfg.exit() + 1;
  std::vector<bool> writes(nodes), kills(nodes), live(nodes);
  for (std::uint32_t b = 0; b < cfg.exit(); ++b) {
    for (std::uint32_t i = cfg.blocks()[b].first; i < cfg.blocks()[b].end; ++i) {
      bool read = false, write = false, full = false;
      for_each_access(function, function.body[i], [&](const RegisterAccess& a) {
        if (index.find(a.reg) != reg) return;
        (a.write ? write : read) = true;
        full |= a.write && a.component == 0 && !function.body[i].guard.present();
      });
      if ((read || (write && !full)) && !kills[b]) live[b] = true;
      if (write) writes[b] = true;
      if (full) kills[b] = true;
    }
  }
  for (const Variable& v : function.returns)
    live[cfg.exit()] = live[cfg.exit()] || index.find({v.decl, 0}) == reg;
  const DominatorTree& tree = cfg.dominators();
  std::vector<bool> frontier(nodes);
  for (bool again = true; again;) {
    again = false;
    for (std::uint32_t b = 0; b < nodes; ++b) {
      for (const std::uint32_t before : cfg.predecessors(b)) {
        if (live[b] && !kills[before] && !live[before]) again = live[before] = true;
      }
    }
    for (std::uint32_t from = 0; from < nodes; ++from) {
      if (!tree.reachable(from) || !(writes[from] || frontier[from])) continue;
      for (std::uint32_t b = 0; b < nodes; ++b) {
        if (frontier[b] || tree.strictly_dominates(from, b)) continue;
        for (const std::uint32_t before : cfg.predecessors(b)) {
          if (tree.reachable(before) && tree.dominates(from, before)) frontier[b] = true;
        }
        again |= frontier[b];
      }
    }
  }
  std::set<std::uint32_t> blocks;
  for (std::uint32_t b = 0; b < nodes; ++b) {
    if (frontier[b] && live[b] && tree.reachable(b)) blocks.insert(b);
  }
  return blocks;
}

std::string versions_text(const Module& module) {
  const Function& function = module.functions[0];
  const Cfg cfg(function);
  const RegisterIndex index(function);
  return to_text(Versions(function, cfg, index), index, module, function);
}

}  // namespace

TEST_CASE("every read sees the write that its version says, on every walk") {
  Dice dice(test::seed());
  std::size_t reads = 0, told = 0, phis = 0;
  for (int i = 0; i < test::count(3000, 100000); ++i) {
    const Module module = test::random_function(dice);
    const Function& function = module.functions[0];
    const Cfg cfg(function);
    const RegisterIndex index(function);
    const Versions versions(function, cfg, index);
    INFO(print(module) << to_text(cfg, module, function)
                       << to_text(versions, index, module, function));
    for (int n = 0; n < 4; ++n) {
      Walk walk(function, cfg, index, versions, dice);
      walk.run(60);
      reads += walk.reads, told += walk.told, phis += walk.phis;
    }
    for (std::uint32_t v = 0; v < versions.size(); ++v) {
      for (const VersionUse& use : versions.uses(v)) {
        if (use.statement != kNone) must(versions.read(use.statement, versions[v].reg) == v);
      }
      const auto [first, end] = versions.of(versions[v].reg);
      must(first <= v && v < end);
    }
  }
  CHECK(reads > 50000);
  CHECK(told > 100000);
  CHECK(phis > 20000);
}

TEST_CASE("phis are where they must be and nowhere else") {
  Dice dice(test::seed() + 1);
  std::size_t found = 0;
  for (int i = 0; i < test::count(1000, 30000); ++i) {
    const Module module = test::random_function(dice);
    const Function& function = module.functions[0];
    const Cfg cfg(function);
    const RegisterIndex index(function);
    const Versions versions(function, cfg, index);
    INFO(print(module) << to_text(cfg, module, function)
                       << to_text(versions, index, module, function));
    for (std::uint32_t reg = 0; reg < index.size(); ++reg) {
      std::set<std::uint32_t> blocks;
      for (std::uint32_t b = 0; b <= cfg.exit(); ++b) {
        for (const std::uint32_t phi : versions.phis(b)) {
          if (versions[phi].reg == reg) blocks.insert(b);
        }
      }
      REQUIRE(blocks == phi_blocks(function, cfg, index, reg));
      found += blocks.size();
    }
  }
  CHECK(found > 1000);
}

TEST_CASE("versions of a loop in words") {
  CHECK(versions_text(test::kernel(R"(
  mov.u32 %r1, 0;
L:
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 7;
  @%p1 mov.u32 %r2, %r1;
  @%p1 bra L;
  st.shared.u32 [tile], %r2;
)")) == "%p1 #0: statement 3, read by 4 5\n"
        "%r1 #1: statement 0, read by #2\n"
        "%r1 #2: phi of block 1 of #1 #3, read by 2\n"
        "%r1 #3: statement 2, read by 3 4 #2\n"
        "%r2 #4: at entry, read by #5\n"
        "%r2 #5: phi of block 1 of #4 #6, read by #6\n"
        "%r2 #6: statement 4 over #5, read by 6 #5\n");
  // Block 0 is a loop: its phi has the entry as well. A result is read by the caller.
  CHECK(versions_text(parse(R"(.version 8.7
.target sm_90
.address_size 64
.func (.reg .b32 q) f(.reg .b32 x)
{
  .reg .pred %p<2>;
L:
  add.u32 x, x, 1;
  setp.lt.u32 %p1, x, 7;
  @%p1 bra L;
  mov.u32 q, x;
  ret;
  mov.u32 q, 1;
}
)")) == "q #0: statement 4, read by the caller\n"
        "x #1: at entry, read by #2\n"
        "x #2: phi of block 0 of #3 #1, read by 1\n"
        "x #3: statement 1, read by 2 4 #2\n"
        "%p1 #4: statement 2, read by 3\n");
}

TEST_CASE("what a register holds is told where nothing reads it") {
  const Module module = test::kernel(R"(
  mov.u32 %r1, 0;
  mov.u32 %r2, 5;
  @%p1 bra L;
  mov.u32 %r2, 6;
  add.u32 %r3, %r1, %r2;
L:
  add.u32 %r4, %r1, 1;
)");
  const Function& function = module.functions[0];
  const Cfg cfg(function);
  const RegisterIndex index(function);
  const Versions versions(function, cfg, index);
  const auto held = [&](std::uint32_t statement, std::uint32_t number) {
    for (std::uint32_t r = 0; r < index.size(); ++r) {
      if (name_of(module, function, index[r]) == "%r" + std::to_string(number)) {
        const std::uint32_t v = versions.before(statement, r);
        return v == kNone ? kNone : versions[v].statement;
      }
    }
    return kNone - 1;
  };
  CHECK(held(6, 1) == 0);
  CHECK(held(4, 2) == 3);
  CHECK(held(3, 2) == kNone);  // dead there, and written elsewhere
  CHECK(held(2, 2) == 1);
  CHECK(held(6, 2) == kNone);
  CHECK(held(0, 1) == kNone);
}

TEST_CASE("versions of hostile bodies") {
  // Ten thousand loops inside each other, each with a counter that lives outside.
  std::string text;
  const auto depth = static_cast<unsigned>(test::count(3000, 10000));
  for (unsigned i = 0; i < depth; ++i)
    text += "L" + std::to_string(i) + ":\nadd.u32 %r1, %r1, 1;\n";
  for (unsigned i = depth; i-- > 0;) text += "@%p1 bra L" + std::to_string(i) + ";\n";
  const Module nested = test::kernel(text);
  const Function& f = nested.functions[0];
  const Cfg cfg(f);
  const RegisterIndex index(f);
  const Versions versions(f, cfg, index);
  CHECK(versions.size() == 2 * depth + 2);  // a phi and a write in each, two entries
  CHECK(versions_text(test::kernel("")).empty());
  CHECK(versions_text(test::kernel("ret;\nadd.u32 %r1, %r1, 1;\n")).empty());
  CHECK(versions_text(test::kernel("L: bra L;\n")).empty());
}
