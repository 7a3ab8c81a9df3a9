// tests/analysis/uniformity_test.cpp - uniform and divergent values
#include <catch2/catch.hpp>

#include "ptxgen/analysis.hpp"
#include "ptxgen/ptx.hpp"
#include "snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using namespace ptxgen::analysis;
using ptxgen::test::kernel;

namespace {

struct Analysed {
  explicit Analysed(Module m, const UniformityOptions& options = {})
      : module(std::move(m)),
        cfg(function()),
        index(function()),
        uniformity(module, function(), cfg, index, options) {}
  explicit Analysed(std::string_view body, const UniformityOptions& options = {})
      : Analysed(kernel(body), options) {}
  [[nodiscard]] const Function& function() const { return module.functions[0]; }

  // "none", "warp", "block" or "grid" for a register by name.
  [[nodiscard]] std::string of(std::string_view name) const {
    for (std::uint32_t i = 0; i < index.size(); ++i) {
      if (name_of(module, function(), index[i]) == name)
        return std::string(to_string(uniformity.of(i)));
    }
    return "no such register";
  }
  [[nodiscard]] std::string branch(std::uint32_t block) const {
    return std::string(to_string(uniformity.of_branch(block)));
  }
  [[nodiscard]] std::string control(std::uint32_t block) const {
    return std::string(to_string(uniformity.of_control(block)));
  }
  [[nodiscard]] std::vector<DivergentBarrier> barriers() const {
    return divergent_barriers(function(), cfg, index, uniformity);
  }

  Module module;
  Cfg cfg;
  RegisterIndex index;
  Uniformity uniformity;
};

std::string of(std::string_view source, const UniformityOptions& options = {}) {
  return Analysed("mov.u32 %r1, " + std::string(source) + "; add.u32 %r2, %r1, 1;", options)
      .of("%r2");
}

}  // namespace

TEST_CASE("special registers agree as the machine makes them") {
  CHECK(of("%tid.x") == "none");
  CHECK(of("%laneid") == "none");
  CHECK(of("%lanemask_lt") == "none");
  CHECK(of("%clock") == "none");
  CHECK(of("%smid") == "none");
  CHECK(of("%warpid") == "warp");
  CHECK(of("%ctaid.x") == "block");
  CHECK(of("%cluster_ctarank") == "block");
  CHECK(of("%ntid.x") == "grid");
  CHECK(of("%nctaid.y") == "grid");
  CHECK(of("%envreg3") == "grid");
  CHECK(of("5") == "grid");
}

TEST_CASE("rows of the block agree if the shape says so") {
  CHECK(of("%tid.y") == "none");
  CHECK(of("%tid.y", {{32, 4, 1}}) == "warp");
  CHECK(of("%tid.y", {{16, 4, 1}}) == "none");
  CHECK(of("%tid.z", {{16, 4, 2}}) == "warp");
  CHECK(of("%tid.z", {{16, 3, 2}}) == "none");
  CHECK(of("%tid.y", {{256, 1, 1}}) == "grid");
  CHECK(of("%tid.x", {{1, 64, 1}}) == "grid");
  CHECK(of("%tid.x", {{64, 1, 1}}) == "none");
  CHECK(Analysed(kernel("mov.u32 %r1, %tid.y;", ".reqntid 64, 4, 1")).of("%r1") == "warp");
}

TEST_CASE("lanes that differ in low bits agree where those are gone or do not matter") {
  const UniformityOptions row{{256, 1, 1}};
  const auto after = [&](std::string_view text, std::string_view name,
                         const UniformityOptions& options) {
    return Analysed("mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n" +
                        std::string(text),
                    options)
        .of(name);
  };
  const auto in_row = [&](std::string_view text) { return after(text, "%r0", row); };
  const auto choice = [&](std::string_view text) { return after(text, "%p0", row); };
  CHECK(in_row("shr.u32 %r0, %r1, 5;") == "warp");
  CHECK(in_row("shr.u32 %r0, %r1, 4;") == "none");
  CHECK(in_row("shr.s32 %r0, %r1, 6;") == "warp");
  CHECK(in_row("shr.u32 %r0, %r1, %r2;") == "none");
  CHECK(in_row("shl.b32 %r4, %r1, 2; shr.u32 %r0, %r4, 7;") == "warp");
  CHECK(in_row("shl.b32 %r4, %r1, 2; shr.u32 %r0, %r4, 6;") == "none");
  CHECK(in_row("shl.b32 %r4, %r1, 28; shr.s32 %r0, %r4, 31;") == "none");
  CHECK(in_row("shl.b32 %r4, %r1, 27; shr.s32 %r0, %r4, 32;") == "none");
  CHECK(in_row("shl.b32 %r4, %r1, 12; cvt.s32.s16 %r5, %r4; shr.s32 %r0, %r5, 17;") == "none");
  // Beyond the width nothing is left, which is not looked at.
  CHECK(in_row("shr.u32 %r4, %r1, 4; shl.b32 %r0, %r4, 256;") == "none");
  CHECK(in_row("and.b32 %r0, %r1, -32;") == "warp");
  CHECK(in_row("and.b32 %r0, %r1, 224;") == "warp");
  CHECK(in_row("and.b32 %r0, %r1, 48;") == "none");
  CHECK(in_row("or.b32 %r4, %r1, 7; shr.u32 %r0, %r4, 5;") == "warp");
  CHECK(in_row("xor.b32 %r4, %r1, %r2; shr.u32 %r0, %r4, 5;") == "warp");
  CHECK(in_row("not.b32 %r4, %r1; shr.u32 %r0, %r4, 5;") == "warp");
  CHECK(in_row("div.u32 %r0, %r1, 64;") == "warp");
  CHECK(in_row("div.u32 %r0, %r1, 96;") == "warp");
  CHECK(in_row("div.u32 %r0, %r1, 48;") == "none");
  CHECK(in_row("div.u32 %r4, %r1, 48; shr.u32 %r0, %r4, 1;") == "warp");
  CHECK(in_row("div.u32 %r4, %r1, 24; shr.u32 %r0, %r4, 1;") == "none");
  CHECK(in_row("div.s32 %r0, %r1, 64;") == "none");  // rounds towards 0 from both sides
  CHECK(in_row("rem.u32 %r4, %r1, 96; shr.u32 %r0, %r4, 5;") == "warp");
  CHECK(in_row("rem.u32 %r4, %r1, 80; shr.u32 %r0, %r4, 5;") == "none");
  CHECK(in_row("bfe.u32 %r0, %r1, 5, 2;") == "warp");
  CHECK(in_row("bfe.u32 %r0, %r1, 4, 2;") == "none");
  CHECK(in_row("min.u32 %r4, %r1, 64; shr.u32 %r0, %r4, 5;") == "warp");
  CHECK(in_row("min.u32 %r4, %r1, 65; shr.u32 %r0, %r4, 5;") == "none");
  CHECK(in_row("cvt.u64.u32 %rd1, %r1; shr.u64 %rd2, %rd1, 5; cvt.u32.u64 %r0, %rd2;") == "warp");
  // What is added to them fills the bits that are 0, or carries.
  CHECK(in_row("mad.lo.u32 %r4, %r2, %r3, %r1; shr.u32 %r0, %r4, 5;") == "warp");
  CHECK(in_row("mad.lo.u32 %r4, %r2, 48, %r1; shr.u32 %r0, %r4, 5;") == "none");
  CHECK(in_row("shl.b32 %r4, %r2, 6; shr.u32 %r5, %r4, 2; add.u32 %r6, %r5, %r1;"
               "shr.u32 %r0, %r6, 5;") == "none");
  CHECK(in_row("shl.b32 %r4, %r2, 3; and.b32 %r5, %r4, -8; add.u32 %r6, %r5, %r1;"
               "shr.u32 %r0, %r6, 5;") == "none");
  CHECK(in_row("add.u32 %r4, %r1, 64; shr.u32 %r0, %r4, 5;") == "warp");
  CHECK(in_row("add.u32 %r4, %r1, 1; shr.u32 %r0, %r4, 5;") == "none");
  CHECK(in_row("sub.u32 %r4, %r1, 64; shr.u32 %r0, %r4, 5;") == "warp");
  CHECK(in_row("sub.u32 %r4, 64, %r1; shr.u32 %r0, %r4, 5;") == "none");
  CHECK(in_row("mul.wide.u32 %rd1, %r2, 128; cvt.u64.u32 %rd2, %r1; add.u64 %rd3, %rd1, %rd2;"
               "shr.u64 %rd4, %rd3, 5; cvt.u32.u64 %r0, %rd4;") == "warp");
  CHECK(choice("setp.lt.u32 %p0, %r1, 32;") == "warp");
  CHECK(choice("setp.lt.u32 %p0, %r1, 33;") == "none");
  CHECK(choice("setp.ge.s32 %p0, %r1, 64;") == "warp");
  CHECK(choice("setp.le.u32 %p0, %r1, 31;") == "warp");
  CHECK(choice("setp.le.u32 %p0, %r1, 32;") == "none");
  CHECK(choice("setp.gt.u32 %p0, %r1, 63;") == "warp");
  CHECK(choice("setp.gt.u32 %p0, 64, %r1;") == "warp");
  CHECK(choice("setp.lt.u32 %p0, 63, %r1;") == "warp");
  CHECK(choice("setp.lt.u32 %p0, 64, %r1;") == "none");
  CHECK(choice("setp.eq.u32 %p0, %r1, 32;") == "none");
  CHECK(choice("shl.b32 %r4, %r2, 5; setp.lt.u32 %p0, %r1, %r4;") == "warp");
  CHECK(choice("setp.lt.u32 %p0, %r1, %r2;") == "none");
  CHECK(choice("setp.lt.u32 %p1, %r1, 7; setp.lt.and.u32 %p0, %r1, 32, %p1;") == "none");
  CHECK(choice("setp.eq.u32 %p1, %r2, 7; setp.lt.and.u32 %p0, %r1, 32, %p1;") == "warp");
  // A guard that parts lanes, and writes of which some disagree.
  CHECK(in_row("setp.eq.u32 %p1, %r1, 7; mov.u32 %r0, 0; @%p1 shr.u32 %r0, %r1, 5;") == "none");
  CHECK(in_row("setp.eq.u32 %p1, %r1, 7; mov.u32 %r4, 0; @%p1 mov.u32 %r4, 64;"
               "shr.u32 %r0, %r4, 5;") == "none");
  CHECK(in_row("mov.u32 %r4, %r1; shr.u32 %r0, %r4, 5; add.u32 %r4, %r4, 1;") == "none");

  const auto warp_id = [&](const UniformityOptions& options, std::string_view shift = "5",
                           std::string_view of = "%tid.x") {
    return Analysed("mov.u32 %r1, " + std::string(of) + "; shr.u32 %r2, %r1, " +
                        std::string(shift) + ";",
                    options)
        .of("%r2");
  };
  CHECK(warp_id({}) == "none");
  CHECK(warp_id({{64, 4, 1}}) == "warp");
  CHECK(warp_id({{48, 1, 1}}) == "warp");
  CHECK(warp_id({{48, 2, 1}}) == "none");
  CHECK(warp_id({{8, 16, 1}}, "3") == "warp");
  CHECK(warp_id({{8, 16, 1}}, "2") == "none");
  CHECK(warp_id({{8, 16, 1}}, "2", "%tid.y") == "warp");
  CHECK(warp_id({{8, 16, 1}}, "1", "%tid.y") == "none");
  CHECK(warp_id({{8, 3, 4}}, "2", "%tid.y") == "none");
  CHECK(warp_id({{12, 16, 1}}, "5", "%tid.y") == "none");
  CHECK(warp_id({}, "5", "%laneid") == "warp");
  CHECK(warp_id({}, "4", "%laneid") == "none");
}

TEST_CASE("loads agree as far as address and memory allow") {
  const Analysed a(R"(
  ld.param.u32 %r1, [n];
  ld.param.u64 %rd1, [a];
  ld.const.u32 %r2, [table+4];
  mov.u32 %r20, %ctaid.x;
  mul.wide.u32 %rd2, %r20, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3];
  ld.global.nc.u32 %r4, [%rd3];
  ld.volatile.global.u32 %r5, [%rd3];
  ld.relaxed.gpu.global.u32 %r6, [%rd3];
  ld.u32 %r7, [%rd3];
  ld.shared.u32 %r8, [tile];
  mov.u32 %r21, %tid.x;
  mul.wide.u32 %rd4, %r21, 4;
  ld.global.u32 %r9, [%rd4];
  ld.const.u32 %r10, [%rd2];
  atom.global.add.u32 %r11, [%rd1], 1;
  mov.u32 %r12, tile;
)");
  CHECK(a.of("%r1") == "grid");
  CHECK(a.of("%rd1") == "grid");
  CHECK(a.of("%r2") == "grid");
  CHECK(a.of("%rd3") == "block");
  CHECK(a.of("%r3") == "warp");
  CHECK(a.of("%r4") == "warp");
  CHECK(a.of("%r5") == "none");
  CHECK(a.of("%r6") == "none");
  CHECK(a.of("%r7") == "none");
  CHECK(a.of("%r8") == "warp");
  CHECK(a.of("%r9") == "none");
  CHECK(a.of("%r10") == "block");
  CHECK(a.of("%r11") == "none");
  CHECK(a.of("%r12") == "block");
}

TEST_CASE("results of a warp agree while the warp is together") {
  const std::string votes = R"(
  vote.sync.ballot.b32 %r10, %p1, -1;
  vote.sync.any.pred %p10, %p1, -1;
  redux.sync.add.s32 %r11, %r1, -1;
  match.all.sync.b32 %r12|%p11, %r1, -1;
  match.any.sync.b32 %r13, %r1, -1;
  shfl.sync.idx.b32 %r14, %r1, 0, 31, -1;
  activemask.b32 %r15;
  elect.sync %r16|%p12, -1;
  vote.sync.ballot.b32 %r17, %p1, %r1;
  bar.red.popc.u32 %r18, 0, %p1;
  bar.red.popc.u32 %r19, 1, 64, %p1;
)";
  const std::string start = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 5;\n";
  const Analysed a(start + votes);
  for (const char* name : {"%r10", "%p10", "%r11", "%r12", "%p11", "%r19"}) {
    INFO(name);
    CHECK(a.of(name) == "warp");
  }
  for (const char* name : {"%r13", "%r14", "%r15", "%r16", "%p12", "%r17"}) {
    INFO(name);
    CHECK(a.of(name) == "none");
  }
  CHECK(a.of("%r18") == "block");

  // After a divergent branch these lanes may have reconverged or not.
  const Analysed after(start + "@%p1 bra A;\nmov.u32 %r2, 1;\nA:\n" + votes);
  for (const char* name : {"%r10", "%p10", "%r11", "%r12", "%r19"}) {
    INFO(name);
    CHECK(after.of(name) == "none");
  }
  CHECK(after.of("%r18") == "block");  // everybody reaches it, whenever
  // Lanes that end are met no more.
  const Analysed gone(start + "@%p1 ret;\n" + votes);
  CHECK(gone.of("%r10") == "warp");
  CHECK(gone.of("%r18") == "warp");
}

TEST_CASE("values are chosen where threads reconverge after a divergent branch") {
  const std::string_view diamond = R"(
  mov.u32 %r1, SOURCE;
  setp.lt.u32 %p1, %r1, 5;
  mov.u32 %r4, 1;
  @%p1 bra A;
  mov.u32 %r2, 1;
  mov.u32 %r3, 1;
  add.u32 %r5, %r3, 1;
  bra B;
A:
  mov.u32 %r2, 2;
B:
  add.u32 %r6, %r2, %r4;
)";
  const auto with = [&](std::string_view source) {
    std::string body(diamond);
    return Analysed(body.replace(body.find("SOURCE"), 6, source));
  };
  for (const auto& [source, level] : std::vector<std::pair<std::string, std::string>>{
           {"%tid.x", "none"}, {"%warpid", "warp"}, {"%ctaid.x", "block"}, {"%ntid.x", "grid"}}) {
    const Analysed a = with(source);
    INFO(source);
    CHECK(a.branch(0) == level);
    CHECK(a.of("%r2") == level);
    CHECK(a.of("%r6") == level);
    // What one side alone uses, and what was there before, agrees.
    CHECK(a.of("%r3") == "grid");
    CHECK(a.of("%r5") == "grid");
    CHECK(a.of("%r4") == "grid");
    CHECK(a.control(1) == level);
    CHECK(a.control(3) == "grid");
    CHECK(a.uniformity.may_be_split(3) == (level == "none"));
    CHECK_FALSE(a.uniformity.may_be_split(1));
  }
}

TEST_CASE("a guard chooses as a branch does") {
  const Analysed a(R"(
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 5;
  mov.u32 %r2, 1;
  @%p1 mov.u32 %r2, 2;
  setp.lt.u32 %p2, %ctaid.x, 5;
  mov.u32 %r3, 1;
  @%p2 mov.u32 %r3, 2;
  selp.u32 %r4, 1, 2, %p1;
)");
  CHECK(a.of("%r2") == "none");
  CHECK(a.of("%r3") == "block");
  CHECK(a.of("%r4") == "none");
}

TEST_CASE("an early return leaves the rest as it is") {
  const Analysed a(R"(
  mov.u32 %r1, %tid.x;
  ld.param.u32 %r2, [n];
  setp.ge.u32 %p1, %r1, %r2;
  @%p1 bra END;
  mov.u32 %r3, 0;
L:
  add.u32 %r3, %r3, 1;
  ld.shared.u32 %r4, [tile];
  setp.lt.u32 %p2, %r3, %r2;
  @%p2 bra L;
END:
  ret;
)");
  CHECK(a.branch(0) == "none");
  CHECK(a.of("%r3") == "grid");
  CHECK(a.of("%r4") == "warp");
  CHECK(a.branch(2) == "grid");
  CHECK(a.control(2) == "none");
}

TEST_CASE("values of a loop that threads leave at different times differ after it") {
  const Analysed a(R"(
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
  mov.u32 %r5, 0;
L:
  add.u32 %r2, %r2, 1;
  add.u32 %r5, %r5, 1;
  add.u32 %r6, %r5, 2;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra L;
  add.u32 %r3, %r2, 1;
  mov.u32 %r4, 3;
)");
  CHECK(a.branch(1) == "none");
  CHECK(a.of("%r2") == "none");
  CHECK(a.of("%r3") == "none");
  CHECK(a.of("%r4") == "grid");
  CHECK(a.of("%r5") == "grid");  // those that go round together agree
  CHECK(a.of("%r6") == "grid");
  CHECK(a.uniformity.may_be_split(2));
  CHECK_FALSE(a.uniformity.may_be_split(1));
}

TEST_CASE("a loop left by a uniform test out of a divergent part") {
  // break under %p1 (by thread) and by a count that agrees: both exits meet after the loop.
  const Analysed a(R"(
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
L:
  add.u32 %r2, %r2, 1;
  setp.eq.u32 %p1, %r2, %r1;
  @%p1 bra OUT;
  setp.lt.u32 %p2, %r2, 100;
  @%p2 bra L;
OUT:
  add.u32 %r3, %r2, 1;
)");
  CHECK(a.branch(1) == "none");
  CHECK(a.of("%r2") == "none");
  CHECK(a.of("%r3") == "none");
}

TEST_CASE("lanes that continue a loop early overtake those that do not") {
  // Those of %p1 go round without passing the rest of the body, and reach it in a later iteration.
  const Analysed a(R"(
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
L:
  add.u32 %r2, %r2, 1;
  and.b32 %r3, %r2, %r1;
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra L;
  add.u32 %r4, %r2, 1;
  setp.lt.u32 %p2, %r4, 100;
  @%p2 bra L;
)");
  CHECK(a.of("%r2") == "none");
  CHECK(a.of("%r4") == "none");
}

TEST_CASE("lanes that reconverge at the head of a loop first go round it first") {
  // Both ways lead back to H by themselves: those at X wait while the others overtake them.
  const Analysed a(R"(
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
H:
  add.u32 %r2, %r2, 1;
  setp.ge.u32 %p2, %r2, 100;
  @%p2 bra OUT;
  and.b32 %r3, %r2, %r1;
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra X;
  add.u32 %r4, %r2, 1;
  bra H;
X:
  add.u32 %r5, %r2, 2;
  bra H;
OUT:
  ret;
)");
  CHECK(a.of("%r2") == "none");
  CHECK(a.of("%r5") == "none");
}

TEST_CASE("a divergent if inside a uniform loop keeps the loop uniform") {
  const Analysed a(R"(
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
  mov.u32 %r4, 0;
L:
  setp.lt.u32 %p1, %r1, %r2;
  @%p1 bra SKIP;
  add.u32 %r4, %r4, 1;
SKIP:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, 100;
  @%p2 bra L;
  mov.u32 %r5, %r4;
)");
  CHECK(a.of("%r2") == "grid");
  CHECK(a.branch(3) == "grid");
  CHECK(a.of("%r4") == "none");
  CHECK(a.of("%r5") == "none");
  CHECK(a.control(3) == "grid");
  CHECK(a.uniformity.may_be_split(1));  // the second time round
}

TEST_CASE("loops with several entries agree in nothing once threads have diverged") {
  const auto with = [](std::string_view source) {
    return Analysed("mov.u32 %r1, " + std::string(source) + R"(;
  setp.lt.u32 %p1, %r1, 5;
  mov.u32 %r2, 0;
  @%p1 bra B;
A:
  add.u32 %r2, %r2, 1;
B:
  mov.u32 %r3, 1;
  setp.lt.u32 %p2, %r2, 100;
  @%p2 bra A;
)");
  };
  CHECK(with("%tid.x").of("%r3") == "none");
  CHECK(with("%tid.x").of("%r2") == "none");
  CHECK(with("%ntid.x").of("%r2") == "grid");
}

TEST_CASE("branch tables part threads by their index") {
  const Analysed a(R"(
  mov.u32 %r1, %tid.x;
T:
  .branchtargets A, B;
  brx.idx %r1, T;
A:
  mov.u32 %r2, 1;
  bra C;
B:
  mov.u32 %r2, 2;
C:
  mov.u32 %r3, %r2;
)");
  CHECK(a.branch(0) == "none");
  CHECK(a.of("%r3") == "none");
}

TEST_CASE("the carry flag carries disagreement") {
  const Analysed a(R"(
  mov.u32 %r1, %tid.x;
  add.cc.u32 %r2, %r1, 1;
  addc.u32 %r3, 0, 0;
)");
  CHECK(a.of("%r3") == "none");
  const Analysed b("add.cc.u32 %r2, 7, 1;\naddc.cc.u32 %r3, 0, 0;\naddc.u32 %r4, 0, 0;\n");
  CHECK(b.of("%r4") == "grid");
}

TEST_CASE("device functions and calls promise nothing") {
  const Analysed a(parse(R"(.version 8.7
.target sm_90
.address_size 64
.func (.param .b32 r) f(.param .b32 x, .reg .b32 y)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u32 %r1, [x];
  mov.u32 %r2, y;
  mov.u32 %r3, 5;
  st.param.b32 [r], %r3;
  ret;
}
)"));
  CHECK(a.of("%r1") == "none");
  CHECK(a.of("%r2") == "none");
  CHECK(a.of("%r3") == "grid");
  const Analysed b(parse(R"(.version 8.7
.target sm_90
.address_size 64
.extern .func (.param .b32 r) f(.param .b32 x);
.shared .b32 tile[4];
.visible .entry k(.param .u32 n)
{
  .reg .b32 %r<9>;
  ld.shared.u32 %r4, [tile];
  bra NEXT;
NEXT:
  {
  .param .b32 r0;
  .param .b32 x0;
  st.param.b32 [x0], 5;
  call.uni (r0), f, (x0);
  ld.param.b32 %r1, [r0];
  }
  ld.param.u32 %r2, [n];
  ld.shared.u32 %r3, [tile];
}
)"));
  const Function* k = b.module.find_function("k");
  const Cfg cfg(*k);
  const RegisterIndex index(*k);
  const Uniformity uniformity(b.module, *k, cfg, index);
  std::string text;
  for (std::uint32_t i = 0; i < index.size(); ++i)
    text += name_of(b.module, *k, index[i]) + "=" + std::string(to_string(uniformity.of(i))) + " ";
  CHECK(text == "%r1=none %r2=grid %r3=none %r4=warp ");
}

TEST_CASE("a register that is never written, and code that is not known, agree in nothing") {
  CHECK(Analysed("mov.u32 %r2, %r1;").of("%r2") == "none");
  const Analysed a("mov.u32 %r2, 1;\nfancy.new.op %r1;\n");
  CHECK(a.uniformity.gave_up());
  CHECK(a.of("%r2") == "none");
}

TEST_CASE("barriers that some threads may miss are found") {
  const std::string start =
      "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 5;\n"
      "setp.lt.u32 %p2, %warpid, 5;\nsetp.lt.u32 %p3, %ctaid.x, 5;\n";
  const auto barriers = [&](const std::string& body) { return Analysed(start + body).barriers(); };
  // The early exit before a barrier.
  const auto early = barriers("@%p1 ret;\nbar.sync 0;\n");
  REQUIRE(early.size() == 1);
  CHECK(early[0].statement == 5);
  CHECK(early[0].deciders == std::vector<std::uint32_t>{4});
  CHECK(early[0].agreement == Agreement::None);
  CHECK(barriers("@%p1 bra A;\nbar.sync 0;\nA:\n").size() == 1);
  CHECK(barriers("@%p1 bra A;\nmov.u32 %r2, 1;\nA:\nbar.sync 0;\n").empty());
  CHECK(barriers("@%p1 bar.sync 0;\n").size() == 1);
  CHECK(barriers("@%p1 barrier.sync 0;\n").size() == 1);
  CHECK(barriers("@%p3 bar.sync 0;\n").empty());
  // Whole warps may take part in a barrier that names a number of threads, and only there.
  CHECK(barriers("@%p2 bar.sync 0;\n").size() == 1);
  CHECK(barriers("@%p2 bar.sync 1, 64;\n").empty());
  CHECK(barriers("@%p1 bar.sync 1, 64;\n").size() == 1);
  CHECK(barriers("@%p1 bar.warp.sync -1;\n").empty());
  // A loop that goes round a different number of times.
  CHECK(barriers("mov.u32 %r2, 0;\nL:\nbar.sync 0;\nadd.u32 %r2, %r2, 1;\n"
                 "setp.lt.u32 %p4, %r2, %r1;\n@%p4 bra L;\n")
            .size() == 1);
  CHECK(barriers("mov.u32 %r2, 0;\nL:\nbar.sync 0;\nadd.u32 %r2, %r2, 1;\n"
                 "setp.lt.u32 %p4, %r2, %ntid.x;\n@%p4 bra L;\nbar.sync 0;\n")
            .empty());
  // One that all threads of the block decide together.
  CHECK(barriers("L:\nbar.red.or.pred %p5, 0, %p1;\n@%p5 bra L;\nbar.sync 0;\n").empty());
}

TEST_CASE("uniformity prints") {
  const Analysed a(
      "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 bra A;\n"
      "mov.u32 %r2, %ctaid.x;\nA:\n");
  CHECK(to_text(a.uniformity, a.cfg, a.index, a.module, a.function()) ==
        "block: %r2\nnone: %p1 %r1\nblock 0 ends in a branch that agrees in: none\n");
}

TEST_CASE("the analysis gives up on hostile functions instead of taking for ever") {
  // Every block is separated from every other by branches that each thread takes as it likes.
  std::string body = "mov.u32 %r1, %tid.x;\n.reg .b32 %x<3000>;\n.reg .pred %q<3000>;\n";
  for (int i = 0; i < 3000; ++i) {
    const std::string n = std::to_string(i);
    body += "L" + n + ":\nmov.u32 %x" + n + ", %x" + std::to_string((i * 7 + 3) % 3000) + ";\n";
    body += "setp.lt.u32 %q" + n + ", %r1, " + n + ";\n";
    body += "@%q" + n + " bra L" + std::to_string((i * 1237 + 11) % 3000) + ";\n";
  }
  const Analysed a(body);
  CHECK(a.of("%x5") == "none");
}
