// tests/analysis/lane_stride_test.cpp - distances between neighbouring lanes
#include <catch2/catch.hpp>

#include "ptxgen/analysis.hpp"
#include "ptxgen/ptx.hpp"
#include "snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using namespace ptxgen::analysis;
using ptxgen::test::kernel;

namespace {

// Of the address of the last store, or "unknown".
std::string stride(std::string_view body) {
  const Module module = kernel(body);
  const Function& function = module.functions[0];
  const Cfg cfg(function);
  const RegisterIndex index(function);
  const Uniformity uniformity(module, function, cfg, index);
  const LaneStrides strides(function, index, uniformity);
  std::string found = "no store";
  for (const Instruction& s : function.body) {
    if (!s.is(Op::st)) continue;
    const auto value = strides.of(function.operands_of(s)[0]);
    found = value ? std::to_string(*value) : "unknown";
  }
  return found;
}

}  // namespace

TEST_CASE("strides follow address arithmetic") {
  const std::string start =
      "mov.u32 %r1, %tid.x;\nld.param.u64 %rd1, [a];\n"
      "ld.param.u32 %r2, [n];\n";
  CHECK(stride(start + "st.global.u32 [%rd1], 1;") == "0");
  CHECK(stride(start + "mad.wide.u32 %rd2, %r1, 4, %rd1;\nst.global.u32 [%rd2], 1;") == "4");
  CHECK(stride(start + "mad.lo.u32 %r3, %ctaid.x, %ntid.x, %r1;\nshl.b32 %r4, %r3, 3;\n"
                       "st.shared.u32 [%r4], 1;") == "8");
  CHECK(stride(start + "sub.u32 %r3, %r2, %r1;\nst.shared.u32 [%r3], 1;") == "-1");
  CHECK(stride(start + "mul.lo.u32 %r3, %r1, %r2;\nst.shared.u32 [%r3], 1;") == "unknown");
  CHECK(stride(start + "and.b32 %r3, %r1, 3;\nst.shared.u32 [%r3], 1;") == "unknown");
  CHECK(stride(start + "and.b32 %r3, %r2, 3;\nst.shared.u32 [%r3], 1;") == "0");
  CHECK(stride("st.shared.u32 [tile], 1;") == "0");
  CHECK(stride("mov.u32 %r1, %laneid;\nst.shared.u32 [%r1], 1;") == "unknown");
  CHECK(stride(start + "ld.shared.u32 %r3, [%r1];\nst.shared.u32 [%r3], 1;") == "unknown");
}

TEST_CASE("a pointer that walks in a loop keeps its stride, a chosen one does not") {
  const std::string start = "mov.u32 %r1, %tid.x;\nld.param.u32 %r2, [n];\nshl.b32 %r3, %r1, 2;\n";
  CHECK(stride(start + "L:\nst.shared.u32 [%r3], 1;\nadd.u32 %r3, %r3, 128;\n"
                       "setp.lt.u32 %p1, %r3, %r2;\n@%p1 bra L;\n") == "4");
  CHECK(stride(start + "setp.lt.u32 %p1, %r1, 7;\n@%p1 bra A;\nadd.u32 %r3, %r3, 128;\nA:\n"
                       "st.shared.u32 [%r3], 1;\n") == "unknown");
}
