// src/qa/lines/snippets.cpp - PTX with known defects
#include "qa/lines/snippets.hpp"

#include <vector>

#include "qa/edits.hpp"
#include "support/format.hpp"

namespace ptxgen::qa {

namespace {

#define PTXGEN_QA_HEAD                                               \
  ".version 8.0\n.target sm_80\n.address_size 64\n"                  \
  ".visible .entry k(.param .u32 n, .param .u64 a, .param .u64 b)\n" \
  ".maxntid 256, 1, 1\n{\n"                                          \
  ".reg .pred %p<8>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n"       \
  ".reg .f32 %f<8>;\n.shared .align 16 .b32 tile[256];\n"

std::string kernel(std::string_view body) { return PTXGEN_QA_HEAD + std::string(body) + "}\n"; }

std::string sum_loop(std::string_view sum, std::string_view result) {
  return kernel(format_text(
      "ld.param.u32 %r1, [n];\nmov.u32 %r2, 0;\nmov.u32 %r3, tile;\nmov.f32 %f1, 0f00000000;\n"
      "LOOP:\nld.shared.f32 %f2, [%r3];\nadd.u32 %r3, %r3, 4;\n{}add.u32 %r2, %r2, 1;\n"
      "setp.lt.u32 %p1, %r2, %r1;\n@%p1 bra LOOP;\nst.shared.f32 [tile], {};\nret;\n",
      sum, result));
}

std::string exchange(std::string_view barrier) {
  return kernel(format_text(
      "mov.u32 %r1, %tid.x;\nmov.u32 %r2, tile;\nmad.lo.u32 %r3, %r1, 4, %r2;\n"
      "st.shared.u32 [%r3], %r1;\n{}xor.b32 %r4, %r3, 128;\nld.shared.u32 %r5, [%r4];\n"
      "ld.param.u64 %rd1, [a];\nmad.wide.u32 %rd2, %r1, 4, %rd1;\nst.global.u32 [%rd2], %r5;\n"
      "ret;\n",
      barrier));
}

std::string step(std::string_view target) {
  return kernel(
      format_text("ld.param.u32 %r1, [n];\nmov.u32 %r2, 0;\nmov.u32 %r3, tile;\n"
                  "LOOP:\nsetp.ge.u32 %p1, %r2, %r1;\n@%p1 bra END;\nst.shared.u32 [%r3], %r2;\n"
                  "add.u32 %r2, %r2, 1;\nbra {};\nEND:\nret;\n",
                  target));
}

std::string shared_address(std::string_view move) { return kernel(format_text("{}ret;\n", move)); }

std::vector<BugClass> make_fixtures() {
  const std::string_view generic =
      "mov.u64 %rd1, tile;\ncvta.shared.u64 %rd2, %rd1;\nld.shared.f32 %f1, [%rd2];\n";
  const std::string_view window = "mov.u32 %r1, tile;\nld.shared.f32 %f1, [%r1];\n";
  return {
      {"shared address in a generic register", "shared-64bit-address", shared_address(generic),
       shared_address(window)},
      {"branch to the end of a loop instead of its start", "loop-branch-direction", step("END"),
       step("LOOP")},
      {"missing barrier", "shared-race", exchange(""), exchange("bar.sync 0;\n")},
      {"accumulator that starts again in each iteration", "stale-accumulator",
       sum_loop("add.f32 %f3, %f1, %f2;\n", "%f3"), sum_loop("add.f32 %f1, %f1, %f2;\n", "%f1")},
      {"invalid syntax", "syntax", kernel("add.u32 %r1 %r2, %r3;\nret;\n"),
       kernel("mov.u32 %r2, 1;\nadd.u32 %r1, %r2, %r2;\nret;\n")},
      {"missing entry", "missing-entry", ".version 8.0\n.target sm_80\n.address_size 64\n",
       kernel("ret;\n")},
      {"a value minus itself", "self-subtract",
       kernel("ld.shared.f32 %f1, [tile];\nsub.f32 %f3, %f1, %f1;\nst.shared.f32 [tile], %f3;\n"
              "ret;\n"),
       kernel("ld.shared.f32 %f1, [tile];\nld.shared.f32 %f2, [tile+4];\n"
              "sub.f32 %f3, %f1, %f2;\nst.shared.f32 [tile], %f3;\nret;\n")},
      {"a parameter that is not declared", "undefined-symbol",
       kernel("ld.param.u64 %rd1, [c];\nret;\n"), kernel("ld.param.u64 %rd1, [a];\nret;\n")},
  };
}

}  // namespace

const char* const kWideSharedLoad = PTXGEN_QA_HEAD
    "mov.u64 %rd1, tile;\ncvta.shared.u64 %rd2, %rd1;\nld.shared.f32 %f1, [%rd2];\nret;\n}\n";
const char* const kWideSharedStore = PTXGEN_QA_HEAD
    "mov.u64 %rd1, tile;\ncvta.shared.u64 %rd2, %rd1;\nst.shared.u32 [%rd2], 1;\nret;\n}\n";
const char* const kInfiniteLoop =
    PTXGEN_QA_HEAD "mov.u32 %r1, 0;\nLOOP:\nadd.u32 %r1, %r1, 1;\nbra LOOP;\nret;\n}\n";
const char* const kBranchToLoopEnd = PTXGEN_QA_HEAD
    "ld.param.u32 %r1, [n];\nmov.u32 %r2, 0;\nmov.u32 %r3, tile;\n"
    "LOOP:\nsetp.ge.u32 %p1, %r2, %r1;\n@%p1 bra END;\nst.shared.u32 [%r3], %r2;\n"
    "add.u32 %r2, %r2, 1;\nbra END;\nEND:\nret;\n}\n";

#undef PTXGEN_QA_HEAD

std::span<const BugClass> bug_class_fixtures() {
  static const std::vector<BugClass> kFixtures = make_fixtures();
  return kFixtures;
}

void widen_shared_address(ptx::Module& module) {
  ptx::Function& function = module.functions.front();
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    const ptx::Instruction& load = function.body[i];
    if (!load.is(ptx::Op::ld) || load.get(ptx::Field::Space) != ptx::Modifier::shared) continue;
    const ptx::Operand address = function.operands_of(load)[1];
    if (address.base != ptx::OperandKind::Register) continue;
    const std::string narrow = ptx::name_of(module, function, address.as_register());
    insert_before(module, i,
                  ".reg .b64 wide_address;\ncvt.u64.u32 wide_address, " + narrow + ";\n");
    ptx::Function& edited = module.functions.front();
    const auto decl = static_cast<std::uint32_t>(edited.registers.size() - 1);
    edited.operands_of(edited.body[i + 1])[1] =
        ptx::Operand::memory(ptx::Register{{decl}, 0}, address.offset());
    return;
  }
}

}  // namespace ptxgen::qa
