// tests/analysis/cfg_test.cpp - basic blocks of PTX functions
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ptxgen/analysis.hpp"
#include "ptxgen/ptx.hpp"
#include "snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using namespace ptxgen::analysis;
using ptxgen::test::kernel;

namespace {

std::string shape(const Module& module) {
  const Cfg cfg(module.functions[0]);
  return to_text(cfg, module, module.functions[0]);
}

}  // namespace

TEST_CASE("guarded branches, returns and exits may run on") {
  CHECK(shape(kernel(R"(
  @%p1 bra A;
  @%p2 ret;
  @!%p3 exit;
  mov.u32 %r1, 1;
A:
  ret;
)")) == "block 0: statements 0 to 1, then 4 1, post-dominated by exit\n"
        "block 1: statements 1 to 2, then exit 2, dominated by 0, post-dominated by exit\n"
        "block 2: statements 2 to 3, then exit 3, dominated by 1, post-dominated by exit\n"
        "block 3: statements 3 to 4, then 4, dominated by 2, post-dominated by 4\n"
        "block 4 A: statements 4 to 6, then exit, dominated by 0, post-dominated by exit\n");
}

TEST_CASE("trap and calls end no block, the end of the body returns") {
  const Module module = kernel(R"(
  trap;
  mov.u32 %r1, 1;
)");
  const Cfg cfg(module.functions[0]);
  REQUIRE(cfg.blocks().size() == 1);
  CHECK(cfg.blocks()[0].terminator == kNone);
  CHECK(cfg.successors(0)[0] == cfg.exit());
}

TEST_CASE("an empty function has a block, a label without a branch begins none") {
  const Cfg empty(kernel("").functions[0]);
  CHECK(empty.blocks().size() == 1);
  CHECK(Cfg(Function{}).blocks().size() == 1);
  const Cfg labels(kernel("A:\n  mov.u32 %r1, 1;\nB:\n  mov.u32 %r1, 2;\n").functions[0]);
  CHECK(labels.blocks().size() == 1);
}

TEST_CASE("a branch table leads to each of its labels, an unknown one to any") {
  const std::string body = R"(
T:
  .branchtargets A, B, A;
  @%p1 brx.idx %r1, T;
A:
  ret;
B:
  ret;
C:
  ret;
)";
  Module module = kernel(body);
  const Cfg cfg(module.functions[0]);
  const std::uint32_t b = cfg.block_of(cfg.blocks()[0].terminator);
  CHECK(std::vector<std::uint32_t>(cfg.successors(b).begin(), cfg.successors(b).end()) ==
        std::vector<std::uint32_t>{1, 2});
  CHECK_FALSE(cfg.reachable(3));
  // Without its table: every label, C included.
  for (Instruction& s : module.functions[0].body) {
    if (s.kind != StatementKind::BranchTargets) continue;
    s.kind = StatementKind::Pragma;
    s.operand_count = 0;
  }
  const Cfg any(module.functions[0]);
  for (std::uint32_t i = 0; i < any.blocks().size(); ++i) CHECK(any.reachable(i));
}

TEST_CASE("a branch to nowhere leads to the exit") {
  Module module = kernel("  bra A;\nA:\n  ret;\n");
  for (Instruction& s : module.functions[0].body) {
    if (s.kind == StatementKind::Label) s.kind = StatementKind::Pragma;
  }
  const Cfg cfg(module.functions[0]);
  CHECK(cfg.successors(0)[0] == cfg.exit());
}

TEST_CASE("lanes that stay in a loop run before those that left it") {
  // As a compiler rotates and sinks it: the exit is before the body.
  const Module module = kernel(R"(
LOOP:
  @%p1 bra BODY;
  mov.u32 %r1, 1;
  ret;
BODY:
  mov.u32 %r2, 1;
  bra LOOP;
)");
  const Cfg cfg(module.functions[0]);
  const auto order = cfg.order();
  CHECK(std::vector<std::uint32_t>(order.begin(), order.end()) ==
        std::vector<std::uint32_t>{0, 2, 1});
  CHECK(cfg.position(2) == 1);
  CHECK(cfg.position(cfg.exit()) == 3);
  CHECK(cfg.loops().loops().size() == 1);
  CHECK(cfg.deciders(2) == std::vector<std::uint32_t>{0});
  CHECK(cfg.deciders(1).empty());
  CHECK(cfg.deciders(0) == std::vector<std::uint32_t>{0});
}

TEST_CASE("an endless loop has post-dominators") {
  const Module module = kernel(R"(
  @%p1 bra OUT;
LOOP:
  @%p2 bra SKIP;
  mov.u32 %r2, 1;
SKIP:
  bra LOOP;
OUT:
  ret;
)");
  const Cfg cfg(module.functions[0]);
  CHECK(cfg.post_dominators().immediate(1) == 3);
  CHECK(cfg.post_dominators().immediate(2) == 3);
  CHECK(cfg.post_dominators().immediate(0) == cfg.exit());
}

TEST_CASE("deciders go through other branches, and early returns count") {
  const Module module = kernel(R"(
  @%p1 ret;
  @%p2 bra SKIP;
  @%p3 bra SKIP;
  mov.u32 %r1, 1;
SKIP:
  mov.u32 %r1, 2;
)");
  const Cfg cfg(module.functions[0]);
  CHECK(cfg.deciders(3) == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(cfg.deciders(4) == std::vector<std::uint32_t>{0});
}

TEST_CASE("every function of the corpus has its blocks in order") {
  std::size_t functions = 0, loops = 0;
  for (const char* folder : {"stored", "foreign"}) {
    for (const auto& file :
         std::filesystem::directory_iterator(std::filesystem::path(PTXGEN_CORPUS) / folder)) {
      if (file.path().extension() != ".ptx") continue;
      std::ifstream in(file.path());
      std::stringstream text;
      text << in.rdbuf();
      const Module module = parse(text.str(), file.path().filename().string());
      for (const Function& function : module.functions) {
        const Cfg cfg(function);
        ++functions;
        loops += cfg.loops().loops().size();
        std::uint32_t next = 0;
        for (std::uint32_t b = 0; b < cfg.blocks().size(); ++b) {
          CHECK(cfg.blocks()[b].first == next);
          next = cfg.blocks()[b].end;
          for (std::uint32_t i = cfg.blocks()[b].first; i < next; ++i) CHECK(cfg.block_of(i) == b);
          for (const std::uint32_t to : cfg.successors(b)) {
            const bool back = cfg.position(to) <= cfg.position(b);
            const std::uint32_t loop = cfg.loops().innermost(to);
            if (back && cfg.reachable(b))
              CHECK((loop != kNoNode && cfg.loops().loops()[loop].header == to));
          }
          CHECK(cfg.post_dominators().dominates(cfg.exit(), b));
        }
        CHECK(next == function.body.size());
        const RegisterIndex index(function);
        const Uniformity uniformity(module, function, cfg, index);
        CHECK_FALSE(to_text(cfg, module, function).empty());
        for (std::uint32_t r = 0; r < index.size(); ++r) CHECK(index.find(index[r]) == r);
        CHECK(maybe_undefined(function, cfg, index).size() == index.size());
      }
    }
  }
  CHECK(functions > 30);
  CHECK(loops > 10);
}
