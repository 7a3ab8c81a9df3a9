// tests/ptx/verifier_test.cpp - each rule of the verifier and its message
#include "ptxgen/ptx/verifier.hpp"

#include <catch2/catch.hpp>

#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/unknown.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;

namespace {

struct Case {
  std::string rule;
  std::string statements;  ///< in the body of a kernel of sm_80, PTX 7.8
  std::string expected;    ///< to_text of the only finding
};

// The statements are on line 12 of the text and further down.
std::string kernel(const std::string& statements) {
  return ".version 7.8\n.target sm_80\n.address_size 64\n"
         ".global .align 16 .b8 g[64];\n.shared .align 16 .b8 s[64];\n"
         ".visible .entry k(\n    .param .u64 p\n)\n{\n"
         "    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .u32 %u<4>; .reg .b64 "
         "%rd<4>; .reg .f32 %f<4>; "
         ".reg .f64 %fd<4>;\n\n" +
         statements + "\n    ret;\n}\n";
}

std::string findings_of(const Module& module, const VerifyOptions& options = {}) {
  std::string text;
  for (const Finding& finding : verify(module, options)) text += to_text(finding) + "\n";
  return text;
}

std::string findings_of(const std::string& text, const VerifyOptions& options = {}) {
  return findings_of(parse(text, "a.ptx"), options);
}

constexpr std::string_view kTypeCure =
    "    cure: use a register of that type or an untyped .bN of its width, or convert with cvt\n";
constexpr std::string_view kOperandCure =
    "    cure: see the instruction's operands in docs/isa.md\n";

std::string with_cure(const std::string& text, std::string_view cure) {
  return text + std::string(cure);
}

}  // namespace

TEST_CASE("a legal kernel has no findings") {
  CHECK(findings_of(kernel("add.u32 %r1, %u2, 5;\n@%p1 ld.global.f32 %f1, [g+4];\n")) == "");
}

TEST_CASE("type-mismatch says what is wanted and what is there") {
  CHECK(findings_of(kernel("add.u32 %r1, %r2, %f3;")) ==
        with_cure("a.ptx:12: error: 'add.u32' expects .u32 as operand 3, but '%f3' is .f32 "
                  "[type-mismatch]\n"
                  "    in: add.u32 %r1, %r2, %f3;\n",
                  kTypeCure));
  CHECK(findings_of(kernel("add.f64 %fd1, %f2, %fd3;")) ==
        with_cure("a.ptx:12: error: 'add.f64' expects .f64 as operand 2, but '%f2' is .f32 "
                  "[type-mismatch]\n"
                  "    in: add.f64 %fd1, %f2, %fd3;\n",
                  kTypeCure));
  CHECK(findings_of(kernel("mul.wide.u32 %r1, %r2, %r3;")) ==
        with_cure("a.ptx:12: error: 'mul.wide.u32' expects .u64 as operand 1, but '%r1' is .b32 "
                  "[type-mismatch]\n"
                  "    in: mul.wide.u32 %r1, %r2, %r3;\n",
                  kTypeCure));
  CHECK(findings_of(kernel("add.u32 %r1, %r2, 0f3F800000;")) ==
        with_cure(
            "a.ptx:12: error: 'add.u32' expects .u32 as operand 3, not a floating-point constant "
            "[type-mismatch]\n    in: add.u32 %r1, %r2, 0f3F800000;\n",
            kTypeCure));
  CHECK(
      findings_of(kernel("@%r1 add.u32 %r1, %r2, 1;")) ==
      with_cure("a.ptx:12: error: the guard of 'add.u32' must be a .pred register [type-mismatch]\n"
                "    in: @%r1 add.u32 %r1, %r2, 1;\n",
                kTypeCure));
  CHECK(findings_of(kernel("ld.global.u32 %r1, [%h1];")) ==
        with_cure("a.ptx:12: error: 'ld.global.u32' expects a 32- or 64-bit integer address as "
                  "operand 2, but "
                  "'%h1' is .b16 [type-mismatch]\n    in: ld.global.u32 %r1, [%h1];\n",
                  kTypeCure));
  CHECK(findings_of(kernel("ld.shared.u32 %r1, [g];")) ==
        with_cure(
            "a.ptx:12: error: 'ld.shared.u32' accesses .shared, but 'g' of operand 2 is in .global "
            "[type-mismatch]\n    in: ld.shared.u32 %r1, [g];\n",
            kTypeCure));
  CHECK(findings_of(kernel("ld.global.v2.b32 {%f1, %u1}, [g];")) ==
        with_cure("a.ptx:12: error: 'ld.global.v2.b32' expects registers of one type in the braces "
                  "of operand 1, "
                  "but '%f1' is .f32 and '%u1' is .u32 [type-mismatch]\n"
                  "    in: ld.global.v2.b32 {%f1, %u1}, [g];\n",
                  kTypeCure));
  CHECK(findings_of(kernel("ld.global.v2.b32 {%f1, %r1}, [g];")) == "");
  CHECK(findings_of(kernel("ld.global.v2.u16 {%h1, %r1}, [g];")) ==
        with_cure("a.ptx:12: error: 'ld.global.v2.u16' expects registers of one type in the braces "
                  "of operand 1, "
                  "but '%h1' is .b16 and '%r1' is .b32 [type-mismatch]\n"
                  "    in: ld.global.v2.u16 {%h1, %r1}, [g];\n",
                  kTypeCure));
  // The second address belongs to the second space.
  CHECK(findings_of(kernel("cp.async.ca.shared.global [s], [g], 4;")) == "");
  CHECK(findings_of(kernel("cp.async.ca.shared.global [s], [s], 4;")) ==
        with_cure("a.ptx:12: error: 'cp.async.ca.shared.global' accesses .global, but 's' of "
                  "operand 2 is in "
                  ".shared [type-mismatch]\n    in: cp.async.ca.shared.global [s], [s], 4;\n",
                  kTypeCure));
}

TEST_CASE("bad-operand says what belongs there") {
  CHECK(findings_of(kernel("add.u32 %r1, %r2;")) ==
        with_cure("a.ptx:12: error: 'add.u32' takes 3 operands, not 2 [bad-operand]\n"
                  "    in: add.u32 %r1, %r2;\n",
                  kOperandCure));
  CHECK(findings_of(kernel("add.u32 5, %r2, %r3;")) ==
        with_cure("a.ptx:12: error: 'add.u32' expects a register, not a constant as operand 1 "
                  "[bad-operand]\n"
                  "    in: add.u32 5, %r2, %r3;\n",
                  kOperandCure));
  CHECK(findings_of(kernel("ld.global.u32 %r1, %rd1;")) ==
        with_cure("a.ptx:12: error: 'ld.global.u32' expects an address in brackets as operand 2 "
                  "[bad-operand]\n"
                  "    in: ld.global.u32 %r1, %rd1;\n",
                  kOperandCure));
  CHECK(findings_of(kernel("ld.global.v2.u32 {%r1, %r2, %r3}, [g];")) ==
        with_cure("a.ptx:12: error: 'ld.global.v2.u32' expects 2 operands in braces as operand 1 "
                  "[bad-operand]\n"
                  "    in: ld.global.v2.u32 {%r1, %r2, %r3}, [g];\n",
                  kOperandCure));
}

TEST_CASE("a list of one is allowed where ptxas 13.0 accepts it") {
  CHECK(findings_of(kernel("ld.global.b32 {%r1}, [%rd1];\nst.shared.v2.b32 [%r1], {%tid.x, %r2};\n"
                           "ld.global.f32 {%u1}, [%rd1];\nst.global.b32 [%rd1], {%tid.x};\n"
                           "mov.b32 {%r1}, %r2;\nld.global.v2.f32 {%u1, %u2}, [%rd1];\n"
                           "mov.b64 %rd1, {%tid.x, %r1};\nld.global.u8 {%u1}, [%rd1];\n")) == "");
  const auto refused = [](std::string_view opcode, std::string_view place,
                          const std::string& statement) {
    return with_cure("a.ptx:12: error: '" + std::string(opcode) +
                         "' expects one operand, not a list in braces as operand " +
                         std::string(place) + " [bad-operand]\n    in: " + statement + "\n",
                     kOperandCure);
  };
  CHECK(findings_of(kernel("mov.b32 {%r1}, {%r2};")) ==
        refused("mov.b32", "1", "mov.b32 {%r1}, {%r2};"));
  CHECK(findings_of(kernel("mov.u32 {%u1}, %u2;")) ==
        refused("mov.u32", "1", "mov.u32 {%u1}, %u2;"));
  CHECK(findings_of(kernel("add.u32 %u1, {%u2}, 1;")) ==
        refused("add.u32", "2", "add.u32 %u1, {%u2}, 1;"));
  CHECK(findings_of(kernel("st.global.b32 [%rd1], %tid.x;")) ==
        with_cure("a.ptx:12: error: 'st.global.b32' expects an ordinary register (read special "
                  "registers with mov) as operand 2 [bad-operand]\n    in: "
                  "st.global.b32 [%rd1], %tid.x;\n",
                  kOperandCure));
}

TEST_CASE("undefined names are told by what they look like") {
  CHECK(findings_of(kernel("add.u32 %r1, %r2, %r9;")) ==
        "a.ptx:12: error: register '%r9' is not declared [undefined-register]\n"
        "    in: add.u32 %r1, %r2, %r9;\n"
        "    cure: declare it with .reg, or raise the count of its declaration\n");
  CHECK(findings_of(kernel("ld.global.u32 %r1, [nowhere+4];")) ==
        "a.ptx:12: error: 'nowhere' is not declared [undefined-symbol]\n"
        "    in: ld.global.u32 %r1, [nowhere+4];\n"
        "    cure: declare it before use, or correct the name\n");
  CHECK(findings_of(kernel("bra away;")) ==
        "a.ptx:12: error: label 'away' is not defined in 'k' [undefined-symbol]\n"
        "    in: bra away;\n"
        "    cure: define the label, or branch to a defined one\n");
}

TEST_CASE("duplicate-name knows scopes and numbered registers") {
  const auto duplicate = [](int line, const std::string& what) {
    return "a.ptx:" + std::to_string(line) + ": error: " + what +
           " has a name that is already taken [duplicate-name]\n"
           "    rule: names are unique within their scope\n";
  };
  CHECK(findings_of(kernel("L: add.u32 %r1, %r2, 1;\nL: add.u32 %r1, %r2, 2;")) ==
        duplicate(13, "label 'L'"));
  CHECK(findings_of(kernel("L: { L: add.u32 %r1, %r2, 1; }")) == "");
  CHECK(findings_of(kernel(".local .b32 a;\n.local .b32 a;")) == duplicate(13, "variable 'a'"));
  CHECK(findings_of(kernel(".local .b32 a;\n{ .local .b32 a; }")) == "");
  CHECK(findings_of(kernel(".reg .b32 %q, %q3;\n.reg .b32 %q<4>;")) ==
        duplicate(12, "register '%q3'"));
  CHECK(findings_of(kernel(".reg .b32 %q, %q4;\n.reg .b32 %q<4>;")) == "");
  CHECK(findings_of(kernel(".reg .b32 p;")) == duplicate(12, "register 'p'"));
  CHECK(findings_of(kernel("") + ".global .b32 g;\n") == duplicate(15, "variable 'g'"));
  CHECK(findings_of(kernel("") + ".visible .entry k() { ret; }\n") ==
        duplicate(15, "function 'k'"));
  CHECK(findings_of(kernel("") + ".extern .global .b32 e;\n.visible .global .b32 e;\n") == "");
}

TEST_CASE("target-lacks and version-too-low name what it takes") {
  CHECK(
      findings_of(kernel("barrier.cluster.arrive.aligned;")) ==
      "a.ptx:12: error: 'barrier.cluster.arrive.aligned' needs sm_90 or newer, the target is sm_80 "
      "[target-lacks]\n    in: barrier.cluster.arrive.aligned;\n"
      "    cure: build for a target that has it, or avoid the instruction\n");
  CHECK(findings_of(kernel("mov.u32 %r1, %cluster_ctarank;")) ==
        "a.ptx:12: error: '%cluster_ctarank' needs sm_90 or newer, the target is sm_80 "
        "[target-lacks]\n"
        "    in: mov.u32 %r1, %cluster_ctarank;\n"
        "    cure: build for a target that has it, or avoid the instruction\n");
  CHECK(findings_of(kernel("cvt.rn.satfinite.f16.f32 %h1, %f1;")) ==
        "a.ptx:12: error: 'cvt.rn.satfinite.f16.f32' needs PTX 8.1, .version is 7.8 "
        "[version-too-low]\n"
        "    in: cvt.rn.satfinite.f16.f32 %h1, %f1;\n    cure: raise .version to 8.1\n");
  CHECK(findings_of(kernel(".reg .b128 %q;")) ==
        "a.ptx:12: error: '.reg .b128' needs PTX 8.3, .version is 7.8 [version-too-low]\n");
  CHECK(findings_of(kernel(""), {"sm_90a", ""}) ==
        "a.ptx:1: error: target sm_90a needs PTX 8.0, .version is 7.8 [version-too-low]\n");
  CHECK(findings_of(kernel(""), {"gfx90", ""}) ==
        "a.ptx:2: error: 'gfx90' is not a target: expected sm_NN, sm_NNa or sm_NNf, for example "
        "sm_89 "
        "[target-lacks]\n");
  CHECK(findings_of(".version 7.0\n.target sm_80\n.address_size 64\n.global .u64 a;\n"
                    ".global .u8 b[2] = {0xFF(a), 0xFF00(a)};\n.entry k() { ret; }\n") ==
        "a.ptx:5: error: one byte of an address as initial value needs PTX 7.1, .version is 7.0 "
        "[version-too-low]\n");
  CHECK(findings_of(".version 7.8\n.target sm_80\n.address_size 64\n.entry k()\n.maxclusterrank "
                    "4\n{ ret; }\n") ==
        "a.ptx:4: error: '.maxclusterrank' needs sm_90 or newer, the target is sm_80 "
        "[target-lacks]\n");
}

TEST_CASE("entries that are missing or have another name") {
  const std::string head = ".version 7.8\n.target sm_80\n.address_size 64\n";
  CHECK(findings_of(head) == "a.ptx: error: the module has no .entry to launch [missing-entry]\n");
  CHECK(findings_of(head + ".func f() { ret; }\n") ==
        "a.ptx: note: the module has device functions but no .entry to launch [missing-entry]\n");
  CHECK(findings_of(head + ".const .u32 table[2] = {1, 2};\n") ==
        "a.ptx: note: the module has data but no .entry to launch [missing-entry]\n");
  CHECK(findings_of(head + ".func f() { ret; }\n", {"", "k"}) ==
        "a.ptx: error: the module has no .entry to launch [missing-entry]\n");
  CHECK(findings_of(kernel("") + ".entry other() { ret; }\n", {"", "gemv"}) ==
        "a.ptx: error: there is no entry 'gemv'; the module has k, other [entry-name]\n");
  CHECK(findings_of(kernel(""), {"", "k"}) == "");
}

TEST_CASE("unknown-instruction is a warning") {
  CHECK(findings_of(kernel("frobnicate.b32 %r1, %r2;")) ==
        "a.ptx:12: warning: 'frobnicate.b32' is not in the op table; it is passed on as written "
        "and not "
        "checked [unknown-instruction]\n    in: frobnicate.b32 %r1, %r2;\n");
}

TEST_CASE("what can be said for certain of an unknown instruction is an error") {
  CHECK(findings_of(kernel("frobnicate.f32 %u1, %f2;")) ==
        "a.ptx:12: error: 'frobnicate.f32' is not in the op table, but its only type is .f32, and "
        "operand 1, '%u1', is .u32 [type-mismatch]\n    in: frobnicate.f32 %u1, %f2;\n" +
            std::string(kTypeCure));
  CHECK(findings_of(kernel("frobnicate.f32 %r1, %u2;")).starts_with("a.ptx:12: warning: "));
  CHECK(findings_of(kernel("mad.f32 %f1, %f2, %f3, %f1;")) ==
        "a.ptx:12: error: 'mad.f32' lacks a rounding: one of .rn, .rz, .rm, .rp [bad-operand]\n"
        "    in: mad.f32 %f1, %f2, %f3, %f1;\n    cure: write mad.rn.f32\n");
  CHECK(findings_of(kernel("ld.globl.u32 %u1, [g];")) ==
        "a.ptx:12: warning: 'ld.globl.u32' is not in the op table; it is passed on as written and "
        "not checked [unknown-instruction]\n    in: ld.globl.u32 %u1, [g];\n"
        "    cure: was '.global' meant, not '.globl'?\n");
  // ptxas 13.0 takes it in texts for old targets.
  CHECK(findings_of(".version 3.1\n.target sm_30\n.entry k() { .reg .f32 %f<2>;\nmad.f32 %f0, %f1, "
                    "%f1, %f1; }\n")
            .starts_with("a.ptx:4: warning: 'mad.f32' is not in the op table"));
}

TEST_CASE("one instruction's text can be judged alone") {
  CHECK(check_opcode("ld.global.u32 %r1, [%rd1];").rule == "");
  CHECK(check_opcode("add.s32 a, b, c;").rule == "");
  const UnknownFault misspelt = check_opcode("ldd.global.u32 %r1, [%rd1];");
  CHECK(misspelt.rule == "unknown-instruction");
  CHECK(misspelt.message ==
        "'ldd.global.u32' is not in the op table; it is passed on as written and not checked");
  CHECK(misspelt.cure == "was 'ld' meant, not 'ldd'?");
  CHECK(check_opcode("fma.f32 a, b, c, d;").message ==
        "'fma.f32' lacks a rounding: one of .rn, .rz, .rm, .rp");
  CHECK(check_opcode("add.u32.f32 a, b, c;").cure == "see the forms of 'add' in docs/isa.md");
}

// Each of them is refused by ptxas 13.0.
TEST_CASE("operands that no assembler takes are refused") {
  const auto message = [](const std::string& statement) {
    const auto findings = verify(parse(kernel(statement), "a.ptx"));
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].severity == Severity::Error);
    return findings[0].message;
  };
  CHECK(
      message("shfl.sync.idx.b32 %r1, %r2, 1.0, 31, -1;") ==
      "'shfl.sync.idx.b32' expects .b32 as operand 3, not a floating-point constant of 64 bits (a "
      "decimal one has 64)");
  CHECK(message("mov.b64 %rd1, 0f3F800000;") ==
        "'mov.b64' expects .b64 as operand 2, not a floating-point constant of 32 bits (a decimal "
        "one has 64)");
  CHECK(message("ld.global.b32 _, [%rd1];") ==
        "'ld.global.b32' expects a register, not '_' as operand 1");
  CHECK(message("ld.global.v2.b32 {_, _}, [%rd1];") ==
        "'ld.global.v2.b32' expects a register among the operands in braces, not only '_', as "
        "operand "
        "1");
  CHECK(message("mov.b64 {_, _}, %rd1;") ==
        "'mov.b64' expects a register among the operands in braces, not only '_', as operand 1");
  for (const char* statement :
       {"ld.global.u32 %u1, [16];", "st.shared.u32 [16], %u1;", "ld.u32 %u1, [16];",
        "atom.global.add.u32 %u1, [16], 1;", "red.shared.add.u32 [16], 1;"}) {
    CHECK(message(statement).find("expects a register or a variable as address (a number is one in "
                                  ".local only) as operand") != std::string::npos);
  }
  CHECK(message("and.b32 %r1, !%r2, %r3;") ==
        "'and.b32' expects an operand without '!' as operand 2");
  CHECK(message("mov.v2.b32 {%r1, %r2}, {0, %tid.x};") ==
        "'mov.v2.b32' expects an ordinary register (read special registers with mov) as operand 2");
}

// Each of them is taken by ptxas 13.0.
TEST_CASE("operands that assemblers take are taken") {
  CHECK(findings_of(kernel("shfl.sync.idx.b32 %r1, %r2, 0f00000000, 31, -1;\nmov.b64 %rd1, 1.0;\n"
                           "ld.local.u32 %u1, [16];\nst.local.u32 [-16], %u1;\n"
                           "ld.global.v2.b32 {_, %r1}, [%rd1];\natom.global.add.u32 _, [%rd1], 1;\n"
                           "xor.pred %p1, %p2, !%p3;\nand.pred %p1, !%p2, 1;\nnot.pred %p1, !%p2;\n"
                           "mov.pred %p1, !%p2;\nor.pred %p1, !%p2, !%p3;\n"
                           "mov.v2.b32 {%r1, %r2}, {%r2, %r1};\nmov.v2.f64 {%fd1, %fd2}, {%fd2, "
                           "%fd1};\nmov.v4.b32 {%r1, _, %r2, %r3}, {1, 2, 3, %u1};\n")) == "");
}

// ptxas 13.0 refuses the first of each pair and takes the second.
TEST_CASE("constants of wgmma are judged in every instruction of a form") {
  const std::string product =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, 1, ";
  const std::string text =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
      ".reg .b64 %rd<4>; .reg .f32 %f<4>;\n" +
      product + "1, 1, 0, 0;\n" + product + "-1, 1, 0, 1;\n" + product + "2, 1, 0, 0;\n" + product +
      "1, 1, 0, 3;\nret;\n}\n";
  const std::string found = findings_of(text);
  CHECK_THAT(found, Catch::Contains("a.ptx:9: error:") &&
                        Catch::Contains("expects 1, or -1 to negate the matrix, as operand 5"));
  CHECK_THAT(found,
             Catch::Contains("a.ptx:10: error:") &&
                 Catch::Contains("expects 0, or 1 for a matrix whose rows are contiguous along m"));
  CHECK(found.find("a.ptx:8:") == std::string::npos);
}

TEST_CASE("declarations that no assembler takes are refused") {
  const std::string head = ".version 7.8\n.target sm_80\n.address_size 64\n";
  const auto found = [&](const std::string& text) {
    std::string all;
    for (const Finding& finding : verify(parse(head + text + ".entry q() { ret; }\n", "a.ptx"))) {
      CHECK(finding.rule == "bad-declaration");
      CHECK(finding.severity == Severity::Error);
      all += finding.message;
    }
    return all;
  };
  CHECK(found(".entry k() .maxntid 32, 1, 0 { ret; }\n") == "number 3 of '.maxntid' is 0");
  CHECK(found(".entry k() .maxntid 32, 1, 1 { ret; }\n") == "");
  CHECK(found(".entry k() .reqntid 0 { ret; }\n") == "number 1 of '.reqntid' is 0");
  CHECK(found(".entry k() .maxnreg 0 { ret; }\n") == "number 1 of '.maxnreg' is 0");
  for (const std::string space : {".global", ".shared", ".const"}) {
    CHECK(found(space + " .b8 a[];\n") == "'a' is an array without a size, and not .extern");
    CHECK(found(".extern " + space + " .b8 a[];\n") == "");
  }
  CHECK(found(".global .b8 a[] = {1, 2};\n") == "");
  CHECK(found(".extern .shared .b8 a[4][];\n") ==
        "'a' lacks the size of a dimension after the first");
  CHECK(found(".extern .shared .b8 a[][4];\n") == "");
  CHECK(found(".entry k() { .local .b8 a[]; ret; }\n") ==
        "'a' is an array without a size, and not .extern");
  CHECK(found(".entry k(.param .b8 a[]) { ret; }\n") ==
        "'a' is an array without a size, and not .extern");
  CHECK(found(".func f(.param .b8 a[]) { ret; }\n") == "");
  CHECK(found(".entry k(.param .v2 .f32 a) { ret; }\n") ==
        "'a' is a .v2 in .param, which holds no vectors");
  CHECK(found(".func f(.reg .v2 .f32 a) { ret; }\n") == "");
  CHECK(found(".extern .global .u32 a;\n.global .u32 a;\n") ==
        "'a' is .extern above, and not .visible here");
  CHECK(found(".extern .global .u32 a;\n.visible .global .u32 a = 3;\n") == "");
  CHECK(found(".extern .global .u32 a;\n.weak .global .u32 a;\n") == "");
  CHECK(found(".global .u32 a;\n.extern .global .u32 a;\n") == "");
  CHECK(found(".extern .global .u32 a;\n.visible .global .u64 a;\n") ==
        "'a' has another type than its .extern declaration");
  CHECK(found(".extern .global .b8 a[4];\n.visible .global .b8 a[8];\n") ==
        "'a' has another type than its .extern declaration");
  CHECK(found(".extern .global .b8 a[];\n.visible .global .b8 a[8];\n") == "");
}

// What ptxas 13.0 accepts and refuses.
TEST_CASE("numbered registers whose prefix ends in a digit cannot be used") {
  CHECK(findings_of(kernel(".reg .b32 %a1<14>;")) == "");
  const std::string refused =
      "    rule: all digits at the end of a name are its number: '%a113' is number 113 of '%a'\n"
      "    cure: end the prefix in another character: '%a1_<14>'\n";
  const std::string head =
      "a.ptx:13: error: register '%a113' is not declared by '%a1<14>', whose prefix ends in a "
      "digit [undefined-register]\n";
  CHECK(findings_of(kernel(".reg .b32 %a1<14>;\nadd.u32 %a113, %r2, 1;\nmov.u32 %a11, %a12;")) ==
        head + "    in: add.u32 %a113, %r2, 1;\n" + refused);
  CHECK(findings_of(kernel(".reg .b64 %a1<14>;\nld.global.b32 %r1, [%a113];")) ==
        head + "    in: ld.global.b32 %r1, [%a113];\n" + refused);
  CHECK(findings_of(kernel(".reg .f32 %a1<14>;\nst.global.v2.f32 [g], {%f1, %a113};")) ==
        head + "    in: st.global.v2.f32 [g], {%f1, %a113};\n" + refused);
  CHECK(findings_of(kernel(".reg .pred %a1<14>;\n@%a113 bra L;\nL:")) ==
        head + "    in: @%a113 bra L;\n" + refused);
  CHECK(findings_of(kernel(".reg .b32 %a1b<14>;\nmov.u32 %a1b13, 1;")) == "");
  // The same name is that of a register which ptxas means, also of an outer block.
  CHECK(findings_of(kernel(".reg .b32 %a<20>; .reg .f32 %a1<14>;\nmov.u32 %a13, 1;")) == "");
  CHECK(findings_of(kernel(".reg .u32 %a<20>;\n{ .reg .f32 %a1<14>; mov.u32 %a13, 1; }")) == "");
  CHECK(findings_of(kernel(".reg .f32 %a1<14>;\n{ .reg .u32 %a10; mov.u32 %a10, 1; }")) == "");
}

TEST_CASE("findings come in the order of the text, each with its kernel") {
  const auto findings =
      verify(parse(kernel("add.u32 %r1, %r2, %f3;\nadd.u32 %r1, %r9, 1;\nbra away;"), "a.ptx"));
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].line == 12);
  CHECK(findings[1].line == 13);
  CHECK(findings[2].line == 14);
  for (const Finding& finding : findings) CHECK(finding.kernel == "k");
}

TEST_CASE("lowest_version is what target and instructions need together") {
  CHECK(lowest_version(parse(kernel("")), "sm_75") == Version{6, 3});
  CHECK(lowest_version(parse(kernel("")), "sm_89") == Version{7, 8});
  CHECK(lowest_version(parse(kernel("cvt.rn.satfinite.f16.f32 %h1, %f1;")), "sm_80") ==
        Version{8, 1});
  CHECK(lowest_version(parse(kernel(".reg .b128 %q;")), "sm_75") == Version{8, 3});
  try {
    static_cast<void>(lowest_version(parse(kernel("cp.async.commit_group;")), "sm_75"));
    FAIL("sm_75 has no cp.async");
  } catch (const Error& error) {
    CHECK(error.code == "target-lacks");
    CHECK(error.message == "'cp.async.commit_group' needs sm_80 or newer, the target is sm_75");
    CHECK(error.line == 12);
  }
  try {
    static_cast<void>(lowest_version(parse(kernel("")), "sm89"));
    FAIL("sm89 is no target");
  } catch (const Error& error) {
    CHECK(error.code == "unknown-target");
  }
}
