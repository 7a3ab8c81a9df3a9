// tests/analysis/diff_test.cpp - known differences are found, exactly, and equal modules are equal
#include "ptxgen/analysis/diff.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "ptxgen/analysis/memory_order.hpp"
#include "ptxgen/analysis/registers.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "support/harness.hpp"
#include "support/served_target.hpp"

using namespace ptxgen;
using analysis::Change;
using analysis::ChangeKind;

namespace {

// Sums blocks of 128 values by threads, passes them through shared memory, stores the neighbour's.
constexpr std::string_view kBase = R"(.version 7.8
.target sm_80
.address_size 64

.visible .entry sums(.param .u64 y, .param .u64 x, .param .u32 n)
.maxntid 128, 1, 1
{
	.reg .pred %p<3>;
	.reg .b32 %r<10>;
	.reg .b64 %rd<8>;
	.reg .f32 %f<8>;
	.shared .align 16 .b8 buffer[512];
	ld.param.u64 %rd1, [y];
	ld.param.u64 %rd2, [x];
	ld.param.u32 %r1, [n];
	cvta.to.global.u64 %rd3, %rd1;
	cvta.to.global.u64 %rd4, %rd2;
	mov.u32 %r2, %tid.x;
	mov.u32 %r3, %r2;
	mov.f32 %f1, 0f00000000;
	setp.ge.u32 %p1, %r2, %r1;
	@%p1 bra STORE;
LOOP:
	mul.wide.u32 %rd5, %r3, 4;
	add.s64 %rd6, %rd4, %rd5;
	ld.global.f32 %f2, [%rd6];
	fma.rn.f32 %f1, %f2, %f2, %f1;
	add.u32 %r3, %r3, 128;
	setp.lt.u32 %p2, %r3, %r1;
	@%p2 bra LOOP;
STORE:
	shl.b32 %r4, %r2, 2;
	mov.u32 %r5, buffer;
	add.u32 %r6, %r5, %r4;
	st.shared.f32 [%r6], %f1;
	bar.sync 0;
	xor.b32 %r7, %r4, 4;
	add.u32 %r8, %r5, %r7;
	ld.shared.f32 %f3, [%r8];
	add.f32 %f4, %f1, %f3;
	mul.wide.u32 %rd7, %r2, 4;
	add.s64 %rd7, %rd3, %rd7;
	st.global.f32 [%rd7], %f4;
	ret;
}
)";

struct Edit {
  std::string_view from, to;
};

std::string edited(std::initializer_list<Edit> edits) {
  std::string text(kBase);
  for (const Edit& edit : edits) {
    const std::size_t at = text.find(edit.from);
    INFO(edit.from);
    REQUIRE(at != std::string::npos);
    REQUIRE(text.find(edit.from, at + 1) == std::string::npos);
    text.replace(at, edit.from.size(), edit.to);
  }
  return text;
}

// "barrier - bar.sync 0; +": kinds and texts, without the mix.
std::vector<std::string> changes(std::string_view a, std::string_view b) {
  std::vector<std::string> all;
  for (const Change& change : analysis::diff(ptx::parse(a, "a"), ptx::parse(b, "b"))) {
    if (change.kind == ChangeKind::Mix) continue;
    all.push_back(std::string(analysis::name(change.kind)) + " - " + change.a + " + " + change.b);
  }
  return all;
}
std::vector<std::string> changes(std::initializer_list<Edit> edits) {
  return changes(kBase, edited(edits));
}
using Expected = std::vector<std::string>;

}  // namespace

TEST_CASE("diff: names and independent order do not count") {
  CHECK(changes({}).empty());
  // Labels and comments.
  CHECK(changes({{"@%p1 bra STORE", "@%p1 bra END"}, {"STORE:", "END: // here"}}).empty());
  // Independent arithmetic and loads of parameters.
  CHECK(changes({{"\tmov.u32 %r5, buffer;\n", ""}, {"STORE:", "STORE:\n\tmov.u32 %r5, buffer;"}})
            .empty());
  CHECK(changes({{"\tld.param.u64 %rd1, [y];\n", ""},
                 {"ld.param.u32 %r1, [n];", "ld.param.u32 %r1, [n];\n\tld.param.u64 %rd1, [y];"}})
            .empty());
  // Another register, where the value is the same.
  CHECK(changes({{"add.s64 %rd7, %rd3, %rd7", "add.s64 %rd5, %rd3, %rd7"},
                 {"st.global.f32 [%rd7]", "st.global.f32 [%rd5]"}})
            .empty());
  // Code that is never reached, and where lines come from.
  CHECK(changes({{"\tret;", "\tret;\n\tbar.sync 1;"}}).empty());
  // Two stores to pieces of one address that do not overlap, in the other order.
  const std::string two =
      edited({{"\tst.global.f32 [%rd7], %f4;",
               "\tst.global.f32 [%rd7], %f4;\n\tst.global.f32 [%rd7+4], %f3;"}});
  const std::string swapped =
      edited({{"\tst.global.f32 [%rd7], %f4;",
               "\tst.global.f32 [%rd7+4], %f3;\n\tst.global.f32 [%rd7], %f4;"}});
  CHECK(changes(two, swapped).empty());
}

TEST_CASE("diff: instructions") {
  CHECK(changes({{"\tbar.sync 0;\n", ""}}) == Expected{"barrier - bar.sync 0; + "});
  CHECK(changes({{"bar.sync 0;", "bar.sync 1;"}}) ==
        Expected{"barrier - bar.sync 0; + bar.sync 1;"});
  CHECK(changes({{"bar.sync 0;", "bar.warp.sync -1;"}}) ==
        Expected{"barrier - bar.sync 0; + bar.warp.sync -1;"});
  CHECK(changes({{"bar.sync 0;", "bar.sync 0;\n\tmembar.gl;"}}) ==
        Expected{"barrier -  + membar.gl;"});
  CHECK(changes({{"fma.rn.f32", "fma.rz.f32"}}) ==
        Expected{"rounding - fma.rn.f32 %f1, %f2, %f2, %f1; + fma.rz.f32 %f1, %f2, %f2, %f1;"});
  CHECK(changes({{"fma.rn.f32", "fma.rn.ftz.f32"}}) ==
        Expected{"rounding - fma.rn.f32 %f1, %f2, %f2, %f1; + fma.rn.ftz.f32 %f1, %f2, %f2, %f1;"});
  CHECK(changes({{"add.f32 %f4", "add.rn.f32 %f4"}}) ==
        Expected{"rounding - add.f32 %f4, %f1, %f3; + add.rn.f32 %f4, %f1, %f3;"});
  CHECK(changes({{"add.f32 %f4", "sub.f32 %f4"}}).size() == 2);  // one went, one came
  CHECK(changes({{"mov.f32 %f1, 0f00000000", "mov.f32 %f1, 0f3F800000"}}) ==
        Expected{"instruction - mov.f32 %f1, 0f00000000; + mov.f32 %f1, 0f3F800000;"});
  CHECK(changes({{"setp.ge.u32", "setp.gt.u32"}}) ==
        Expected{"instruction - setp.ge.u32 %p1, %r2, %r1; + setp.gt.u32 %p1, %r2, %r1;"});
  CHECK(changes({{"setp.ge.u32", "setp.ge.s32"}}) ==
        Expected{"instruction - setp.ge.u32 %p1, %r2, %r1; + setp.ge.s32 %p1, %r2, %r1;"});
  CHECK(changes({{"mov.u32 %r2, %tid.x", "mov.u32 %r2, %tid.y"}}) ==
        Expected{"instruction - mov.u32 %r2, %tid.x; + mov.u32 %r2, %tid.y;"});
  CHECK(changes({{"@%p1 bra STORE", "@!%p1 bra STORE"}}) ==
        Expected{"instruction - @%p1 bra STORE; + @!%p1 bra STORE;"});
  CHECK(changes({{"add.u32 %r3, %r3, 128;", "add.u32 %r3, %r3, 64;"}}) ==
        Expected{"instruction - add.u32 %r3, %r3, 128; + add.u32 %r3, %r3, 64;"});
  CHECK(changes({{"ld.param.u64 %rd1, [y];", "ld.param.u64 %rd1, [x];"}}) ==
        Expected{"instruction - ld.param.u64 %rd1, [y]; + ld.param.u64 %rd1, [x];"});
}

TEST_CASE("diff: memory") {
  CHECK(changes({{"ld.global.f32 %f2", "ld.global.cv.f32 %f2"}}) ==
        Expected{"instruction - ld.global.f32 %f2, [%rd6]; + ld.global.cv.f32 %f2, [%rd6];"});
  CHECK(changes({{"ld.global.f32 %f2, [%rd6]", "ld.global.v2.f32 {%f2, %f5}, [%rd6]"}}) ==
        Expected{"access_width - ld.global.f32 %f2, [%rd6]; + ld.global.v2.f32 {%f2, %f5}, "
                 "[%rd6];"});
  CHECK(changes({{"st.shared.f32 [%r6], %f1", "st.shared.f32 [%r6+4], %f1"}}) ==
        Expected{"instruction - st.shared.f32 [%r6], %f1; + st.shared.f32 [%r6+4], %f1;"});
  // The address as 64 bits: what computes it, and the access itself.
  const auto wide = changes({{"st.shared.f32 [%r6], %f1",
                              "cvt.u64.u32 %rd5, %r6;\n\tst.shared.f32 "
                              "[%rd5], %f1"}});
  CHECK(wide == Expected{"address_width - st.shared.f32 [%r6], %f1; + st.shared.f32 [%rd5], %f1;",
                         "instruction -  + cvt.u64.u32 %rd5, %r6;"});
  // The load of the neighbour in front of the store, and of the barrier.
  const auto early = changes({{"\tld.shared.f32 %f3, [%r8];\n", ""},
                              {"\tmov.u32 %r5, buffer;\n", ""},
                              {"\txor.b32 %r7, %r4, 4;\n\tadd.u32 %r8, %r5, %r7;\n", ""},
                              {"\tadd.u32 %r6, %r5, %r4;",
                               "\tmov.u32 %r5, buffer;\n\tadd.u32 %r6, %r5, %r4;\n\txor.b32 %r7, "
                               "%r4, 4;\n\tadd.u32 %r8, %r5, %r7;\n\tld.shared.f32 %f3, [%r8];"}});
  CHECK(early == Expected{"order - ld.shared.f32 %f3, [%r8]; + ld.shared.f32 %f3, [%r8];",
                          "order - ld.shared.f32 %f3, [%r8]; + ld.shared.f32 %f3, [%r8];"});
}

TEST_CASE("diff: values and control flow") {
  CHECK(changes({{"add.f32 %f4, %f1, %f3", "add.f32 %f4, %f1, %f1"}}) ==
        Expected{"operand - add.f32 %f4, %f1, %f3; + add.f32 %f4, %f1, %f1;"});
  CHECK(changes({{"st.global.f32 [%rd7], %f4", "st.global.f32 [%rd7], %f3"}}) ==
        Expected{"operand - st.global.f32 [%rd7], %f4; + st.global.f32 [%rd7], %f3;"});
  // The defect of a loop that begins anew each time.
  CHECK(changes({{"fma.rn.f32 %f1, %f2, %f2, %f1", "fma.rn.f32 %f1, %f2, %f2, %f5"}}) ==
        Expected{"operand - fma.rn.f32 %f1, %f2, %f2, %f1; + fma.rn.f32 %f1, %f2, %f2, %f5;"});
  // The branch that leaves the loop instead of closing it.
  CHECK(changes({{"@%p2 bra LOOP", "@%p2 bra STORE"}}) ==
        Expected{"control_flow - @%p2 bra LOOP; + @%p2 bra STORE;"});
  // A guarded write merges two values: one of them is another one.
  const std::string merge = edited({{"\tmul.wide.u32 %rd7, %r2, 4;\n",
                                     "\tmov.f32 %f5, %f1;\n\t@%p1 mov.f32 %f5, %f3;\n\tadd.f32 "
                                     "%f4, %f4, %f5;\n\tmul.wide.u32 %rd7, %r2, 4;\n"}});
  std::string other = merge;
  other.replace(other.find("mov.f32 %f5, %f3"), 16, "mov.f32 %f5, %f4");
  CHECK(changes(merge, merge).empty());
  CHECK(changes(merge, other) ==
        Expected{"operand - @%p1 mov.f32 %f5, %f3; + @%p1 mov.f32 %f5, %f4;"});
  // The value that a loop begins with is another one of the same instructions.
  const std::string begin = edited({{"\tmov.f32 %f1, 0f00000000;\n",
                                     "\tcvt.rn.f32.u32 %f6, %r1;\n\tcvt.rn.f32.u32 %f7, "
                                     "%r2;\n\tmov.f32 %f1, %f6;\n"}});
  std::string changed = begin;
  changed.replace(changed.find("mov.f32 %f1, %f6"), 16, "mov.f32 %f1, %f7");
  CHECK(changes(begin, changed) == Expected{"operand - mov.f32 %f1, %f6; + mov.f32 %f1, %f7;"});
  // A barrier where not all threads come.
  CHECK(changes({{"\tbar.sync 0;\n", ""}, {"LOOP:", "\tbar.sync 0;\nLOOP:"}}) ==
        Expected{"control_flow - bar.sync 0; + bar.sync 0;"});
}

TEST_CASE("diff: declarations") {
  CHECK(changes({{".version 7.8", ".version 8.0"}}) ==
        Expected{"module - .version 7.8 + .version 8.0"});
  CHECK(changes({{".target sm_80", ".target sm_90"}}) ==
        Expected{"module - .target sm_80 + .target sm_90"});
  CHECK(changes({{".entry sums(", ".entry total("}}) ==
        Expected{"function - .entry sums + .entry total"});
  CHECK(changes({{".maxntid 128, 1, 1", ".maxntid 256, 1, 1"}}) ==
        Expected{"resources - .maxntid 128, 1, 1 + .maxntid 256, 1, 1"});
  CHECK(changes({{"buffer[512]", "buffer[1024]"}}) ==
        Expected{"resources - .shared .align 16 .b8 buffer[512] + .shared .align 16 .b8 "
                 "buffer[1024]"});
  CHECK(changes({{".param .u32 n)", ".param .s32 n)"}}) ==
        Expected{"parameters - .param .align 4 .u32 n + .param .align 4 .s32 n"});
  CHECK(changes({{".param .u32 n)", ".param .u32 n, .param .u32 m)"}}) ==
        Expected{"parameters -  + .param .align 4 .u32 m"});
  const std::string none = ".version 7.8\n.target sm_80\n.address_size 64\n";
  CHECK(changes(none, kBase) == Expected{"function -  + .entry sums"});
  CHECK(changes(kBase, none) == Expected{"function - .entry sums + "});
}

TEST_CASE("diff: the mix of instructions, and texts") {
  const auto all =
      analysis::diff(ptx::parse(kBase, "a"), ptx::parse(edited({{"\tbar.sync 0;\n", ""}}), "b"));
  REQUIRE(all.size() == 2);
  CHECK(analysis::to_text(all[0]) == "sums: line 36: barrier removed\n  - bar.sync 0;");
  CHECK(analysis::to_text(all[1]) == "sums: bar.sync 0 instead of 1 times");
  const auto operand =
      analysis::diff(ptx::parse(kBase, "a"),
                     ptx::parse(edited({{"add.f32 %f4, %f1, %f3", "add.f32 %f4, %f1, %f1"}}), "b"));
  REQUIRE(operand.size() == 1);
  CHECK(operand[0].what ==
        "reads a value of several paths instead of line 39 (ld.shared.f32 %f3, [%r8];)");
}

namespace {

// Registers of each declaration get other numbers.
void rename(ptx::Function& function, std::mt19937_64& random) {
  std::vector<std::vector<std::uint32_t>> numbers;
  for (const ptx::RegisterDecl& decl : function.registers) {
    std::vector<std::uint32_t> order(decl.count);
    for (std::uint32_t i = 0; i < decl.count; ++i) order[i] = i;
    if (decl.numbered) std::shuffle(order.begin(), order.end(), random);
    numbers.push_back(std::move(order));
  }
  for (ptx::Operand& operand : function.operands) {
    const bool memory =
        operand.kind == ptx::OperandKind::Memory && operand.base == ptx::OperandKind::Register;
    if (memory || operand.kind == ptx::OperandKind::Register) {
      operand.index = numbers[operand.id][operand.index];
    }
  }
  for (ptx::Instruction& s : function.body) {
    if (!s.guard.present()) continue;
    ptx::Register& predicate = s.guard.predicate;
    predicate.index = numbers[predicate.decl.value][predicate.index];
  }
}

bool independent(const ptx::Function& function, const ptx::Instruction& a,
                 const ptx::Instruction& b) {
  for (const ptx::Instruction* const one : {&a, &b}) {
    if (one->kind != ptx::StatementKind::Instruction) return false;
    const ptx::Flag flags = ptx::info(one->op).flags;
    if (has(flags, ptx::Flag::Branch) || has(flags, ptx::Flag::Terminator)) return false;
  }
  bool apart = analysis::may_swap(a, b);
  analysis::for_each_register(function, a, [&](ptx::Register x, bool writes_x, std::size_t) {
    analysis::for_each_register(function, b, [&](ptx::Register y, bool writes_y, std::size_t) {
      if (x == y && (writes_x || writes_y)) apart = false;
    });
  });
  return apart;
}

std::size_t reorder(ptx::Function& function, std::mt19937_64& random) {
  std::size_t swaps = 0;
  if (function.body.size() < 2) return 0;
  for (std::size_t tries = 0; tries < 20 * function.body.size(); ++tries) {
    const std::size_t at = random() % (function.body.size() - 1);
    if (!independent(function, function.body[at], function.body[at + 1])) continue;
    std::swap(function.body[at], function.body[at + 1]);
    ++swaps;
  }
  return swaps;
}

}  // namespace

TEST_CASE(
    "diff: kernels of the library, renamed and reordered, are equal; a lost barrier is found") {
  std::mt19937_64 random(test::seed());
  std::size_t kernels = 0, swaps = 0, barriers = 0;
  for (const KernelDescription& kernel : catalog()) {
    INFO(kernel.name);
    if (!test::full() && ++kernels % 3 != test::seed() % 3) continue;
    const ptx::Module module =
        kernel.build(kernel.default_values(), test::served_target(kernel, "sm_90"));
    ptx::Module other = module;
    for (ptx::Function& function : other.functions) {
      swaps += reorder(function, random);
      rename(function, random);
    }
    const auto changed = analysis::diff(module, other);
    for (const Change& change : changed) UNSCOPED_INFO(analysis::to_text(change));
    CHECK(changed.empty());

    ptx::Function& function = other.functions.back();
    const auto barrier =
        std::find_if(function.body.begin(), function.body.end(),
                     [](const ptx::Instruction& s) { return s.is(ptx::Op::bar_sync); });
    if (barrier == function.body.end() || barrier->guard.present()) continue;
    function.body.erase(barrier);
    ++barriers;
    const auto lost = analysis::diff(module, other);
    REQUIRE_FALSE(lost.empty());
    CHECK(lost[0].kind == ChangeKind::Barrier);
    CHECK(lost[0].what == "barrier removed");
    CHECK(lost.size() == 2);  // and the mix
  }
  CHECK(swaps > 100);
  CHECK(barriers > 0);
}
