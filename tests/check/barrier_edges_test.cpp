// tests/check/barrier_edges_test.cpp - what the corpus of barriers cannot say
#include <catch2/catch.hpp>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;

TEST_CASE(
    "an instruction that is not known leaves a barrier unproved, and is named as the reason") {
  const ptx::Module module = ptx::parse(
      ".version 8.4\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
      "  .reg .b32 %r<4>;\n  frobnicate.u32 %r1, %r2;\n  bar.sync 0;\n  ret;\n}\n",
      "k.ptx");
  const std::vector<Finding> findings = gates::barrier_safety(module, {});
  REQUIRE(findings.size() == 1);
  CHECK(to_text(findings[0]) ==
        "k.ptx:8: warning: bar.sync 0 waits for all threads of the block, and this function "
        "cannot be analyzed: it has an unknown instruction or is too large "
        "[barrier-divergence]\n"
        "    in: bar.sync 0");
}
