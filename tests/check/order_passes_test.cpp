// tests/check/order_passes_test.cpp - passes leave ordered accesses and fences where they are
#include <catch2/catch.hpp>

#include "ptxgen/analysis/memory_order.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;

namespace {

// Everything that memory and other threads can see of the function, in the order of the text.
std::vector<std::string> visible(const ptx::Module& module, bool weak_loads) {
  std::vector<std::string> all;
  const ptx::Function& function = module.functions[0];
  for (const ptx::Instruction& s : function.body) {
    const analysis::MemoryOrder order = analysis::memory_order(s);
    const bool orders = order.holds_later || order.holds_earlier;
    const bool parameter = s.get(ptx::Field::Space) == ptx::Modifier::param;
    if ((!order.touches_memory() && !orders) || parameter) continue;
    if (!weak_loads && !order.fixed) continue;
    all.push_back(ptx::print(module, function, s));
  }
  return all;
}

// An access between others that could tempt a pass: a product and a sum around it, a load of which
// nothing needs the value, a loop with a condition to split, constants to fold.
std::string kernel(const std::string& access) {
  return ".version 9.0\n.target sm_90\n.address_size 64\n"
         ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
         ".reg .b64 %rd<4>; .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .pred %p<4>;\n"
         "ld.param.u64 %rd0, [p];\nld.param.u32 %r9, [n];\nmov.u32 %r1, 1;\n"
         "ld.global.f32 %f1, [%rd0+64];\n"
         "mul.rn.f32 %f2, %f1, %f1;\n" +
         access + "\nadd.rn.f32 %f3, %f2, %f1;\nst.global.f32 [%rd0+128], %f3;\n" +
         "ld.global.u32 %r2, [%rd0+32];\n" + access +
         "\nmov.u32 %r3, 0;\nsetp.eq.u32 %p2, %r9, 0;\n@%p2 bra DONE;\n"
         "LOOP:\nsetp.lt.u32 %p1, %r3, 5;\n@!%p1 bra ELSE;\nst.global.u32 [%rd0+8], %r3;\nbra "
         "NEXT;\nELSE:\n" +
         access +
         "\nst.global.u32 [%rd0+12], %r3;\nNEXT:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p3, %r3, "
         "%r9;\n@%p3 bra LOOP;\nDONE:\nmov.u32 %r4, %r1;\nadd.u32 %r5, %r4, 2;\n"
         "st.global.u32 [%rd0+16], %r5;\nret;\n}\n";
}

std::vector<std::string> accesses() {
  std::vector<std::string> all = {"ld.volatile.global.u32 %r0, [%rd0];",
                                  "st.volatile.global.u32 [%rd0], %r1;", "membar.gl;",
                                  "bar.sync 0;", "bar.warp.sync -1;"};
  for (const std::string scope : {".cta", ".cluster", ".gpu", ".sys"}) {
    for (const std::string order : {".relaxed", ".acquire"})
      all.push_back("ld" + order + scope + ".global.u32 %r0, [%rd0];");
    for (const std::string order : {".relaxed", ".release"}) {
      all.push_back("st" + order + scope + ".global.u32 [%rd0], %r1;");
      all.push_back("red" + order + scope + ".global.add.u32 [%rd0], %r1;");
    }
    for (const std::string order : {"", ".relaxed", ".acquire", ".release", ".acq_rel"})
      all.push_back("atom" + order + scope + ".global.add.u32 %r0, [%rd0], %r1;");
    for (const std::string order : {"", ".sc", ".acq_rel", ".acquire", ".release"})
      all.push_back("fence" + order + scope + ";");
  }
  return all;
}

// Without the numbers of registers, which copies and constants replace.
std::string skeleton(const std::string& statement) {
  return statement.substr(0, statement.find(' '));
}
std::vector<std::string> skeletons(const std::vector<std::string>& statements) {
  std::vector<std::string> all;
  for (const std::string& statement : statements) all.push_back(skeleton(statement));
  return all;
}

}  // namespace

TEST_CASE("no pass moves or removes what is ordered, whatever the order and the scope") {
  for (const std::string& access : accesses()) {
    for (const optimize::PassInfo& pass : optimize::all_passes()) {
      if (pass.name == "loop_split") continue;  // writes statements twice: below
      // Removes barriers: tests/optimize/tokens_test.cpp.
      if (pass.name == "tokens" && access == "bar.sync 0;") continue;
      INFO(access << " under " << pass.name);
      ptx::Module module = ptx::parse(kernel(access));
      REQUIRE(ptx::verify(module).empty());
      const auto before = skeletons(visible(module, false));
      optimize::run_passes(module, {.passes = {std::string(pass.name)}});
      CHECK(skeletons(visible(module, false)) == before);
    }
  }
}

TEST_CASE("weak loads of which nothing needs the value go, and no other") {
  for (const std::string& access : accesses()) {
    INFO(access);
    ptx::Module module = ptx::parse(kernel(access));
    const std::size_t all = visible(module, true).size();
    optimize::run_passes(module, {.passes = {"dead_code"}});
    CHECK(visible(module, true).size() == all - 1);
  }
  ptx::Module module = ptx::parse(kernel("ld.weak.global.u32 %r0, [%rd0];"));
  const std::size_t all = visible(module, true).size();
  optimize::run_passes(module, {.passes = {"dead_code"}});
  CHECK(visible(module, true).size() == all - 4);
}

TEST_CASE("a split loop keeps the order of what is ordered on every path") {
  std::size_t split = 0;
  for (const std::string& access : accesses()) {
    INFO(access);
    ptx::Module module = ptx::parse(kernel(access));
    const auto before = skeletons(visible(module, false));
    const optimize::PipelineReport report =
        optimize::run_passes(module, {.passes = {"loop_split", "cleanup"}});
    if (!report.passes.front().changed) continue;
    ++split;
    // Each half of the loop has one side of the condition, as it was there; what is outside of
    // the loop is there once.
    const auto after = skeletons(visible(module, false));
    std::vector<std::string> expected(before.begin(), before.begin() + 3);
    expected.push_back("st.global.u32");  // the half with the condition true
    expected.push_back(before[4]);        // the other half: the access,
    expected.push_back(before[5]);        // and the store after it
    expected.push_back(before.back());
    CHECK(after == expected);
  }
  CHECK(split > 0);
}
