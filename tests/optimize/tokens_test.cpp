// tests/optimize/tokens_test.cpp - which barriers the pass `tokens` removes, and why
#include <catch2/catch.hpp>
#include <string>

#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;

namespace {

constexpr const char* kHead =
    ".version 9.0\n.target sm_90\n.address_size 64\n"
    ".extern .shared .align 16 .b8 d0[];\n.extern .shared .align 16 .b8 d1[];\n"
    ".func other() { ret; }\n"
    ".visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n)\n";

// %r1 is 4*tid.x, %r2 the same of the neighbour 32 threads on; %p1 is tid.x == 0. s and t are
// shared, [%rd2] and [%rd3] are element tid.x and its neighbour of the global array p, [%rd4]
// element tid.x of q. %p2 is n != 0, %p3 is tid.x < 32.
constexpr const char* kBegin =
    "{\n.reg .b32 %r<30>;\n.reg .b64 %rd<8>;\n.reg .pred %p<6>;\n"
    ".shared .align 16 .b8 s[1024];\n.shared .align 16 .b8 t[1024];\n.shared .b64 m;\n"
    "ld.param.u64 %rd0, [p];\nld.param.u64 %rd1, [q];\nld.param.u32 %r0, [n];\n"
    "mov.u32 %r9, %tid.x;\nshl.b32 %r1, %r9, 2;\nxor.b32 %r8, %r9, 32;\nshl.b32 %r2, %r8, 2;\n"
    "mul.wide.u32 %rd5, %r9, 4;\nadd.u64 %rd2, %rd0, %rd5;\nmul.wide.u32 %rd6, %r8, 4;\n"
    "add.u64 %rd3, %rd0, %rd6;\nadd.u64 %rd4, %rd1, %rd5;\nmov.u32 %r10, s;\nmov.u32 %r11, t;\n"
    "add.u32 %r3, %r10, %r1;\nadd.u32 %r4, %r10, %r2;\nadd.u32 %r5, %r11, %r1;\n"
    "setp.eq.u32 %p1, %r9, 0;\nsetp.ne.u32 %p2, %r0, 0;\nsetp.lt.u32 %p3, %r9, 32;\n";

std::string text_of(const std::string& body, const char* block = ".reqntid 64\n") {
  return kHead + std::string(block) + kBegin + body + "ret;\n}\n";
}

struct Outcome {
  std::string reasons;  ///< of each barrier in the order of the report, those that stay in brackets
  std::string text;     ///< the decisions
  std::size_t barriers = 0;  ///< bar.sync that are left
};

Outcome outcome_of(const std::string& ptx) {
  ptx::Module module = ptx::parse(ptx);
  for (const Finding& finding : ptx::verify(module)) {
    if (finding.severity == Severity::Error) FAIL(finding.message);
  }
  optimize::PassOptions options{.passes = {"tokens"}};
  options.explain = true;
  const optimize::PipelineReport report = optimize::run_passes(module, options);
  Outcome out;
  for (const optimize::Decision& decision : report.passes[0].decisions) {
    const std::string reason(decision.reason);
    out.reasons +=
        (out.reasons.empty() ? "" : " ") + (decision.fired ? reason : "[" + reason + "]");
    out.text += decision.message + "\n";
  }
  out.barriers = syncs(module);
  // A second run changes nothing.
  const std::string once = ptx::print(module);
  CHECK_FALSE(optimize::run_passes(module, options).changed());
  CHECK(ptx::print(module) == once);
  return out;
}

std::string reasons(const std::string& body, const char* block = ".reqntid 64\n") {
  return outcome_of(text_of(body, block)).reasons;
}

/// A barrier between two statements.
std::string between(const std::string& first, const std::string& second) {
  return reasons(first + "\nbar.sync 0;\n" + second + "\n");
}

const std::string kOwn = "st.shared.u32 [%r3], %r9;";
const std::string kNext = "ld.shared.u32 %r20, [%r4];";
const std::string kOwnLoad = "ld.shared.u32 %r20, [%r3];";

}  // namespace

TEST_CASE("a barrier stays where two threads access the same bytes and one writes") {
  CHECK(between(kOwn, kNext) == "[conflict]");
  CHECK(between(kNext, kOwn) == "[conflict]");
  CHECK(between(kOwn, "st.shared.u32 [%r4], %r9;") == "[conflict]");
  CHECK(between("st.global.u32 [%rd2], %r9;", "ld.global.u32 %r20, [%rd3];") == "[conflict]");
  // A variable by its name.
  CHECK(between(kOwn, "ld.shared.u32 %r20, [s];") == "[conflict]");
  CHECK(between(kOwn, "ld.shared.u32 %r20, [s+256];") == "orders-nothing");
  // One byte of the four.
  CHECK(between(kOwn, "ld.shared.u8 %r20, [%r4+3];") == "[conflict]");
  CHECK(between("st.shared.v2.u32 [%r10], {%r9, %r9};", "ld.shared.u32 %r20, [%r10+4];") ==
        "[conflict]");
  // Atomic operations keep their order too.
  CHECK(between("red.relaxed.cta.shared.add.u32 [%r10], 1;",
                "ld.relaxed.cta.shared.u32 %r20, [%r10];") == "[conflict]");
}

TEST_CASE("a barrier goes where no two threads conflict") {
  CHECK(between(kOwn, kOwnLoad) == "orders-nothing");                       // one thread
  CHECK(between(kOwnLoad, kNext) == "orders-nothing");                      // two reads
  CHECK(between(kOwn, "ld.shared.u32 %r20, [%r11];") == "orders-nothing");  // two variables
  CHECK(between(kOwn, "ld.global.u32 %r20, [%rd3];") == "orders-nothing");  // two spaces
  CHECK(between(kOwn, "ld.shared.u32 %r20, [%r4+256];") == "orders-nothing");
  CHECK(between("st.global.u32 [%rd2], %r9;", "ld.global.u32 %r20, [%rd2];") == "orders-nothing");
  CHECK(between("mov.u32 %r20, 1;", kNext) == "orders-nothing");
  CHECK(between(kOwn, "") == "orders-nothing");
  // Guards and branches of the thread index.
  CHECK(between("@%p1 st.shared.u32 [%r10], %r9;", "@%p1 ld.shared.u32 %r20, [%r10];") ==
        "orders-nothing");
  CHECK(between("@%p1 st.shared.u32 [%r10], %r9;", "@!%p1 ld.shared.u32 %r20, [%r10];") ==
        "[conflict]");
  CHECK(between("@!%p1 bra A;\nst.shared.u32 [%r10], %r9;\nA:",
                "@%p1 bra B;\nbra C;\nB:\nld.shared.u32 %r20, [%r10];\nC:") == "orders-nothing");
  CHECK(between("@%p1 bra A;\nmov.u32 %r20, 1;\nA:\n" + kOwn, kNext) == "[conflict]");
  CHECK(between("@%p1 bra A;\nst.shared.u32 [%r10], %r9;\nA:",
                "@%p1 bra B;\nbra C;\nB:\nld.shared.u32 %r20, [%r10];\nC:") == "[conflict]");
}

TEST_CASE("what is not known conflicts") {
  CHECK(between("st.global.u32 [%rd2], %r9;", "ld.global.u32 %r20, [%rd4];") == "[may-conflict]");
  CHECK(between("ld.shared.u32 %r21, [%r3];\nand.b32 %r21, %r21, 252;\nadd.u32 %r21, %r21, %r10;",
                "st.shared.u32 [%r21], %r9;") == "[may-conflict]");
  // Dynamic shared memory begins at one place, whatever its name.
  CHECK(between("mov.u32 %r21, d0;\nst.shared.u32 [%r21], %r9;",
                "mov.u32 %r22, d1;\nld.shared.u32 %r20, [%r22];") == "[may-conflict]");
  // A generic address.
  CHECK(between("cvta.shared.u64 %rd7, %rd0;\nst.u32 [%rd7], %r9;", kNext) == "[may-conflict]");
  // Rows of matrices.
  CHECK(between(kOwn, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r3];") ==
        "[may-conflict]");
  // Without the shape of a block.
  CHECK(reasons(kOwn + "\nbar.sync 0;\n" + kOwnLoad + "\n", "") == "[may-conflict]");
  CHECK(reasons(kOwn + "\nbar.sync 0;\nld.shared.u32 %r20, [%r11];\n", "") == "orders-nothing");
  // Up to a shape.
  CHECK(reasons(kOwn + "\nbar.sync 0;\n" + kOwnLoad + "\n", ".maxntid 64, 1, 1\n") ==
        "orders-nothing");
  CHECK(reasons(kOwn + "\nbar.sync 0;\n" + kNext + "\n", ".maxntid 64, 1, 1\n") ==
        "[may-conflict]");
}

TEST_CASE("acquires and releases are ordered with accesses of any address") {
  const std::string acquire = "ld.acquire.gpu.global.u32 %r21, [%rd0];";
  const std::string release = "st.release.gpu.global.u32 [%rd0], %r9;";
  CHECK(between(kOwn, release) == "[release]");
  CHECK(between(kOwnLoad, release) == "[release]");
  CHECK(between(acquire, kOwnLoad) == "[acquire]");
  CHECK(between(acquire, kOwn) == "[acquire]");
  // In the other direction they order nothing.
  CHECK(between(release, kOwn) == "orders-nothing");
  CHECK(between(kOwn, acquire) == "orders-nothing");
  CHECK(between("atom.acq_rel.gpu.global.add.u32 %r21, [%rd0], 1;", kOwn) == "[acquire]");
  CHECK(between(kOwn, "atom.acq_rel.gpu.global.add.u32 %r21, [%rd0], 1;") == "[release]");
  // By one thread program order is enough.
  CHECK(between("@%p1 st.global.u32 [%rd1], %r9;", "@%p1 " + release) == "orders-nothing");
  CHECK(between("@%p1 " + acquire, "@%p1 ld.global.u32 %r20, [%rd1];") == "orders-nothing");
  CHECK(between(kOwn, "@%p1 " + release) == "[release]");
  // Relaxed accesses of a block order nothing else.
  CHECK(between(kOwn, "st.relaxed.cta.global.u32 [%rd0], %r9;") == "orders-nothing");
  CHECK(between("ld.relaxed.cta.global.u32 %r21, [%rd0];", kOwn) == "orders-nothing");
  CHECK(between(kOwn, "atom.shared.add.u32 %r21, [%r11], 1;") == "orders-nothing");
}

TEST_CASE("relaxed accesses that other blocks see are kept in order with all accesses") {
  // As in code that polls or counts by relaxed atomics, without fences.
  const std::string load = "ld.relaxed.gpu.global.u32 %r21, [%rd0];";
  const std::string add = "atom.global.add.u32 %r21, [%rd0], 1;";
  CHECK(between(load, kOwn) == "[other-blocks]");
  CHECK(between(add, kOwnLoad) == "[other-blocks]");
  CHECK(between(kOwn, add) == "[other-blocks]");
  CHECK(between(kOwn, "red.relaxed.sys.global.add.u32 [%rd0], 1;") == "[other-blocks]");
  CHECK(between(kOwn, load) == "orders-nothing");
  CHECK(between("@%p1 " + load, "@%p1 st.shared.u32 [%r10], %r9;") == "orders-nothing");
  // Two strong reads of one place: the later does not see an older value.
  const std::string strong = "ld.relaxed.cta.shared.u32 %r21, [%r10];";
  CHECK(between(strong, strong) == "[conflict]");
  CHECK(between(strong, "ld.shared.u32 %r21, [%r10];") == "orders-nothing");
}

TEST_CASE("what is ordered with everything keeps the barriers around it") {
  for (const std::string opaque :
       {"fence.acq_rel.gpu;", "membar.gl;", "call other;", "ld.volatile.global.u32 %r21, [%rd0];",
        "st.volatile.shared.u32 [%r3], %r9;", "cp.async.ca.shared.global [%r3], [%rd2], 4;",
        "cp.async.wait_all;", "mbarrier.init.shared.b64 [m], 64;", "bar.arrive 3, 64;",
        "mov.u32 %r21, %clock;", "mov.u64 %rd7, %globaltimer;", "barrier.cluster.arrive;",
        "nanosleep.u32 20;", "fence.proxy.async;", "griddepcontrol.wait;"}) {
    INFO(opaque);
    CHECK(between(opaque, kOwnLoad) == "[opaque]");
    CHECK(between(kOwnLoad, opaque) == "[opaque]");
  }
  // With an instruction outside the op table nothing is known to be uniform.
  CHECK(between("mystery.u32 %r21, %r9;", kOwnLoad) == "[divergent]");
  CHECK(between("bar.warp.sync -1;", kOwnLoad) == "orders-nothing");
  CHECK(between("trap;", kOwnLoad) == "orders-nothing");
  CHECK(between("ld.local.u32 %r21, [%r3];", "st.local.u32 [%r4], %r9;") == "orders-nothing");
}

TEST_CASE("barriers that the block may not pass together stay, by reason") {
  CHECK(reasons("@%p2 bar.sync 0;\n") == "[guarded]");
  CHECK(reasons("bar.sync 0, 64;\n") == "[counted]");
  CHECK(reasons("and.b32 %r20, %r0, 7;\nbar.sync %r20;\n") == "[number-unknown]");
  CHECK(reasons("@%p1 bra A;\nbar.sync 0;\nA:\n") == "[divergent]");
  CHECK(reasons("@%p3 bra A;\nbar.sync 0;\nA:\n") == "[divergent]");  // whole warps
  CHECK(reasons("@%p2 bra A;\nbar.sync 0;\nA:\n") == "orders-nothing");
  CHECK(reasons("@%p1 ret;\nbar.sync 0;\n") == "[divergent]");
  // One that threads may wait at instead.
  CHECK(reasons("bar.sync 0;\nbar.arrive 0, 64;\n") == "[shared-number]");
  CHECK(reasons("bar.sync 0;\n@%p1 bra A;\nbar.sync 0;\nA:\n") == "[shared-number] [divergent]");
  CHECK(reasons(kOwn + "\nbar.sync 1;\n@%p1 bra A;\nbar.sync 2;\nA:\n") == "[divergent] [opaque]");
  CHECK(reasons("bar.sync 1;\nand.b32 %r20, %r0, 7;\nbar.sync %r20;\n") ==
        "[shared-number] [number-unknown]");
  const std::string device =
      ".version 9.0\n.target sm_90\n.address_size 64\n.func f() {\nbar.sync 0;\nret;\n}\n";
  CHECK(outcome_of(device).reasons == "[device-function]");
  CHECK(outcome_of(device).text == "'bar.sync 0' stays: what its callers access is not known\n");
}

TEST_CASE("a barrier goes where another orders what it orders") {
  const std::string two = kOwn + "\nbar.sync 0;\nmov.u32 %r20, 1;\nbar.sync 0;\n" + kNext + "\n";
  CHECK(reasons(two) == "ordered-elsewhere [conflict]");
  // The barrier between two intervals serves both.
  const std::string other_own = "st.shared.u32 [%r5], %r9;";
  const std::string other_next = "add.u32 %r21, %r11, %r2;\nld.shared.u32 %r22, [%r21];";
  CHECK(reasons(kOwn + "\nbar.sync 0;\n" + other_own + "\nbar.sync 0;\n" + kNext +
                "\nbar.sync 0;\n" + other_next + "\n") ==
        "ordered-elsewhere [conflict] ordered-elsewhere");
  CHECK(reasons(kOwn + "\nbar.sync 0;\n" + kNext + "\nbar.sync 0;\n" + other_own +
                "\nbar.sync 0;\n" + other_next + "\n") == "[conflict] orders-nothing [conflict]");
  // A reduction over the block orders as bar.sync does, and stays for its result.
  CHECK(reasons(kOwn + "\nbar.sync 0;\nbar.red.popc.u32 %r20, 1, %p1;\n" + kNext + "\n") ==
        "ordered-elsewhere");
  // Not one of some threads.
  CHECK(reasons(kOwn + "\nbar.sync 0;\nbar.sync 1, 32;\n" + kNext + "\n") == "[counted] [opaque]");
}

TEST_CASE("loops: pairs of one iteration and of several") {
  const auto loop = [](const std::string& body) {
    return "mov.u32 %r12, 0;\nL:\n" + body +
           "add.u32 %r12, %r12, 1;\nsetp.lt.u32 %p4, %r12, 8;\n@%p4 bra L;\n";
  };
  // Both: the write before the reads, and the reads before the next write.
  CHECK(reasons(loop(kOwn + "\nbar.sync 0;\n" + kNext + "\nbar.sync 0;\n")) ==
        "[conflict] [conflict]");
  // Only from one iteration to the next.
  CHECK(reasons(loop("bar.sync 0;\n" + kOwn + "\nld.shared.u32 %r20, [%r11];\n")) ==
        "orders-nothing");
  CHECK(reasons(loop(kNext + "\nadd.u32 %r21, %r20, 1;\n") + "bar.sync 0;\n" + kOwn + "\n") ==
        "[may-conflict]");
  // An address that moves on: threads overlap in different iterations, not in one. The second
  // barrier is the one between iterations.
  const std::string moving = "shl.b32 %r13, %r12, 2;\nadd.u32 %r14, %r3, %r13;\n";
  CHECK(reasons(loop(moving + "st.shared.u32 [%r14], %r9;\nbar.sync 0;\nld.shared.u32 %r20, "
                              "[%r14];\nbar.sync 0;\n")) == "ordered-elsewhere [may-conflict]");
  CHECK(reasons(loop(moving + "st.shared.u32 [%r14], %r9;\nbar.sync 0;\nld.shared.u32 %r20, "
                              "[%r14];\n")) == "[may-conflict]");
}

TEST_CASE("loops with two entries: pairs of any iterations") {
  CHECK(reasons("mov.u32 %r12, 0;\n@%p2 bra M;\nL:\nshl.b32 %r13, %r12, 2;\n"
                "add.u32 %r14, %r3, %r13;\nst.shared.u32 [%r14], %r9;\nbar.sync 0;\n"
                "ld.shared.u32 %r20, [%r14];\nM:\nbar.sync 0;\nadd.u32 %r12, %r12, 1;\n"
                "setp.lt.u32 %p4, %r12, 8;\n@%p4 bra L;\n") == "[may-conflict] [may-conflict]");
}

TEST_CASE("a barrier between too many accesses to compare stays") {
  std::string stores, loads;
  for (int i = 0; i < 320; ++i) {
    stores += kOwn + "\n";
    loads += "ld.shared.u32 %r20, [%r5];\n";
  }
  CHECK(reasons(stores + "bar.sync 0;\n" + loads) == "[may-conflict]");
  CHECK(reasons(stores + "bar.sync 0;\nld.shared.u32 %r20, [%r5];\n") == "orders-nothing");
}

TEST_CASE("branches: the smaller of two sets stays") {
  // The barrier before the branch orders both ways; in the order of the code it would go first.
  const std::string then =
      "@%p2 bra E;\nbar.sync 0;\n" + kNext + "\nbra D;\nE:\nbar.sync 0;\n" + kNext + "\nD:\n";
  CHECK(reasons(kOwn + "\nbar.sync 0;\n" + then) ==
        "[may-conflict] ordered-elsewhere ordered-elsewhere");
  CHECK(reasons(kOwn + "\n" + then) == "[may-conflict] [may-conflict]");
  // One after the branch instead of one in each way.
  CHECK(reasons(kOwn + "\n@%p2 bra E;\nbar.sync 0;\nbra D;\nE:\nbar.sync 0;\nD:\nbar.sync 0;\n" +
                kNext + "\n") == "ordered-elsewhere ordered-elsewhere [conflict]");
  // A way without a barrier orders nothing.
  CHECK(reasons(kOwn + "\nbar.sync 0;\n@%p2 bra D;\nbar.sync 0;\nD:\n" + kNext + "\n") ==
        "[conflict] ordered-elsewhere");
}

TEST_CASE("falsification 66: the fixtures have fewer barriers, by text") {
  const Outcome outcome = outcome_of(text_of(kOwn + "\nbar.sync 0;\nst.shared.u32 [%r5], %r9;\n" +
                                             "bar.sync 0;\n" + kNext + "\nbar.sync 0;\n"));
  CHECK(outcome.barriers == 1);
  CHECK(outcome.text ==
        "'bar.sync 0' is removed: what it orders is ordered without it; 'st.shared.u32 [%r3], %r9' "
        "in line 36 stays before 'ld.shared.u32 %r20, [%r4]' in line 40 by 'bar.sync 0' in line "
        "39\n"
        "'bar.sync 0' stays: it orders 'st.shared.u32 [%r3], %r9' in line 36 before "
        "'ld.shared.u32 %r20, [%r4]' in line 40: threads (0,0,0) and (32,0,0) access the same "
        "bytes\n"
        "'bar.sync 0' is removed: no two threads access before and after it what conflicts\n");
}

TEST_CASE("falsification 70: a product and a sum with a token's barrier between them are fused") {
  // Fusion follows registers: the barrier neither hinders it nor makes it possible.
  for (const std::string passes : {"fma_fusion", "tokens,fma_fusion", "fma_fusion,tokens"}) {
    ptx::Module module = ptx::parse(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n"
        ".reqntid 64\n{\n.reg .f32 %f<4>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd0, [p];\n"
        "ld.global.f32 %f0, [%rd0];\nmul.rn.f32 %f1, %f0, %f0;\nbar.sync 0;\n"
        "ld.global.f32 %f2, [%rd0+4];\nadd.rn.f32 %f3, %f1, %f2;\n"
        "st.global.f32 [%rd0+8], %f3;\nret;\n}\n");
    optimize::PassOptions options{.passes = {}};
    for (std::size_t at = 0; at < passes.size();) {
      const std::size_t end = std::min(passes.find(',', at), passes.size());
      options.passes.push_back(passes.substr(at, end - at));
      at = end + 1;
    }
    std::uint64_t fused = 0, removed = 0;
    for (const optimize::PassReport& pass : optimize::run_passes(module, options).passes)
      (pass.name == "tokens" ? removed : fused) += pass.fired();
    CHECK(fused == 1);
    CHECK(removed == options.passes.size() - 1);
  }
}
