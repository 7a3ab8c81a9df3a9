// tests/analysis/registers_test.cpp - register accesses and undefined registers
#include <catch2/catch.hpp>

#include <vector>

#include "ptxgen/analysis.hpp"
#include "ptxgen/ptx.hpp"
#include "snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using namespace ptxgen::analysis;
using ptxgen::test::kernel;

namespace {

// "+%r1" written, "-%r1" read, with the operand's position ("@" for the guard).
std::string accesses(std::string_view line) {
  const Module module = kernel(line);
  const Function& function = module.functions[0];
  std::string text;
  for (const Instruction& s : function.body) {
    for_each_register(function, s, [&](Register reg, bool write, std::size_t operand) {
      if (!text.empty()) text += " ";
      text += (write ? "+" : "-") + name_of(module, function, reg) + ":" +
              (operand == kGuardPosition ? "@" : std::to_string(operand));
    });
  }
  return text;
}

std::string undefined(const Module& module, std::size_t function = 0) {
  const Function& f = module.functions[function];
  const RegisterIndex index(f);
  return to_text(maybe_undefined(f, Cfg(f), index), index, module, f);
}
std::string undefined(std::string_view body) { return undefined(kernel(body)); }

}  // namespace

TEST_CASE("accesses follow the op table") {
  CHECK(accesses("add.u32 %r1, %r2, %r3;") == "+%r1:0 -%r2:1 -%r3:2");
  CHECK(accesses("@!%p1 mov.u32 %r1, 5;") == "-%p1:@ +%r1:0");
  CHECK(accesses("setp.lt.and.u32 %p1|%p2, %r1, %r2, !%p3;") ==
        "+%p1:0 +%p2:1 -%r1:2 -%r2:3 -%p3:4");
  CHECK(accesses("ld.global.v2.u32 {%r1, %r2}, [%rd1+4];") == "+%r1:0 +%r2:0 -%rd1:1");
  CHECK(accesses("ld.global.v2.u32 {_, %r2}, [%rd1];") == "+%r2:0 -%rd1:1");
  CHECK(accesses("st.shared.v2.f32 [tile], {%f1, %f2};") == "-%f1:1 -%f2:1");
  CHECK(accesses("mov.b64 {%r1, %r2}, %rd1;") == "+%r1:0 +%r2:0 -%rd1:1");
  CHECK(accesses("mov.b64 %rd1, {%r1, %r2};") == "+%rd1:0 -%r1:1 -%r2:1");
  CHECK(accesses("atom.global.add.u32 %r1, [%rd1], %r2;") == "+%r1:0 -%rd1:1 -%r2:2");
  CHECK(accesses("red.global.add.u32 [%rd1], %r2;") == "-%rd1:0 -%r2:1");
  CHECK(accesses("shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;") == "+%r1:0 +%p1:1 -%r2:2");
  CHECK(accesses("cp.async.ca.shared.global [%r1], [%rd1], 4;") == "-%r1:0 -%rd1:1");
  CHECK(accesses("mov.u32 %r1, %tid.x;") == "+%r1:0");
  CHECK(accesses("bar.sync 0;").empty());
}

TEST_CASE("an index from which statements are erased is that of what is left") {
  const char* const text = R"(.version 8.7
.target sm_90
.address_size 64
.func (.reg .b32 q) f(.reg .b32 x, .reg .b64 unread)
{
  .reg .b32 %r<4000000000>;
  .reg .pred %p<2>;
  setp.eq.u32 %p1, x, 0;
  @%p1 add.u32 %r7, %r9, 1;
  mov.u32 %r3999999999, %r7;
  mov.u32 q, %r9;
  ret;
}
.func dense()
{
  .reg .b32 %r<9>;
  add.u32 %r1, %r2, %r3;
  add.u32 %r4, %r1, %r6;
  add.u32 %r8, %r4, %r4;
  ret;
}
)";
  const Module module = parse(text);
  for (const Function& full : module.functions) {
    const std::size_t statements = full.body.size();
    for (std::uint32_t set = 0; set < 1u << statements; ++set) {
      Function left = full;
      std::vector<std::uint32_t> erased;
      left.body.clear();
      for (std::uint32_t i = 0; i < statements; ++i) {
        if ((set >> i & 1) != 0)
          erased.push_back(i);
        else
          left.body.push_back(full.body[i]);
      }
      RegisterIndex index(full);
      index.erase(left, erased);
      CHECK(index == RegisterIndex(left));
    }
  }
}

TEST_CASE("registers are found by their numbers, with and without gaps") {
  const Module module = kernel("add.u32 %r5, %r6, %r7;\nadd.u32 %r20, %r6, %r30;\nret;");
  const Function& f = module.functions[0];
  const RegisterIndex index(f);
  REQUIRE(index.size() == 5);
  for (std::uint32_t i = 0; i < index.size(); ++i) CHECK(index.find(index[i]) == i);
  const DeclId decl = index[0].decl;
  for (const std::uint32_t unnamed : {0u, 4u, 8u, 19u, 21u, 31u, 39u})
    CHECK(index.find({decl, unnamed}) == kNone);
  CHECK(index.find({{decl.value + 1}, 5}) == kNone);
  CHECK(index.find({{1000}, 0}) == kNone);
}

TEST_CASE("vector registers, calls and indirect calls") {
  const Module module = parse(R"(.version 8.7
.target sm_90
.address_size 64
.func (.reg .b32 q) f(.reg .b32 x, .reg .b32 y)
{
  .reg .v4 .f32 v;
  .reg .f32 a;
  .reg .b64 target;
  mov.f32 v.x, 0f00000000;
  mov.f32 a, v.y;
P: .callprototype (.reg .b32 _) _ (.reg .b32 _);
  call (q), target, (x), P;
  ret;
}
)");
  const Function& f = module.functions[0];
  std::string text;
  for (const Instruction& s : f.body) {
    for_each_access(f, s, [&](const RegisterAccess& access) {
      text += (access.write ? " +" : " -") + name_of(module, f, access.reg) +
              std::to_string(access.component);
    });
  }
  CHECK(text == " +v1 +a0 -v2 +q0 -target0 -x0");
  const RegisterIndex index(f);
  // Parameters and results count though nothing names y.
  CHECK(index.size() == 6);
  CHECK(undefined(module) == "q x y v a target");
}

TEST_CASE("an index counts what occurs, not what is declared") {
  const Module module = kernel(R"(
  .reg .b32 %big<4000000000>;
  mov.u32 %big3999999999, 1;
  mov.u32 %big7, %big9;
)");
  const RegisterIndex index(module.functions[0]);
  REQUIRE(index.size() == 3);
  CHECK(index[0].index == 7);
  CHECK(index[1].index == 9);
  CHECK(index[2].index == 3999999999u);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(index.find(index[i]) == i);
  CHECK(index.find({index[0].decl, 8}) == kNone);
  CHECK(index.find({index[0].decl, 6}) == kNone);
  CHECK(index.find({index[0].decl, 0xfffffffe}) == kNone);
  CHECK(index.find({{0}, 0}) == kNone);
  CHECK(index.find({{kNone}, 0}) == kNone);
}

TEST_CASE("registers written on every path before they are read are defined") {
  CHECK(undefined("mov.u32 %r1, 1; add.u32 %r2, %r1, 1;").empty());
  CHECK(undefined(R"(
  setp.eq.u32 %p1, 1, 2;
  @%p1 bra A;
  mov.u32 %r1, 1;
  bra B;
A:
  mov.u32 %r1, 2;
B:
  mov.u32 %r2, %r1;
)")
            .empty());
  // Written in the loop before it is read there, and read after a loop that is entered always.
  CHECK(undefined(R"(
  mov.u32 %r1, 0;
L:
  mov.u32 %r2, %r1;
  add.u32 %r1, %r2, 1;
  setp.lt.u32 %p1, %r1, 9;
  @%p1 bra L;
  mov.u32 %r3, %r2;
)")
            .empty());
  // A default before a guarded load.
  CHECK(undefined(R"(
  setp.eq.u32 %p1, 1, 2;
  mov.u32 %r1, 0;
  @%p1 ld.shared.u32 %r1, [tile];
  mov.u32 %r2, %r1;
)")
            .empty());
  // Code that is never reached reads nothing.
  CHECK(undefined("ret; mov.u32 %r2, %r1;").empty());
}

TEST_CASE("registers that a path reads first may be undefined, and what comes of them") {
  CHECK(undefined("mov.u32 %r2, %r1;") == "%r1 %r2");
  CHECK(undefined("mov.u32 %r2, %r1; mov.u32 %r1, 0;") == "%r1 %r2");
  CHECK(undefined(R"(
  setp.eq.u32 %p1, 1, 2;
  @%p1 bra A;
  mov.u32 %r1, 1;
A:
  add.u32 %r2, %r1, 1;
  st.shared.u32 [tile], %r2;
  mov.u32 %r3, 7;
)") == "%r1 %r2");
  // The first time round.
  CHECK(undefined(R"(
L:
  mov.u32 %r2, %r1;
  mov.u32 %r1, 1;
  setp.lt.u32 %p1, %r1, 9;
  @%p1 bra L;
)") == "%p1 %r1 %r2");
  // A guarded write is none; an undefined guard leaves open which value the target has.
  CHECK(undefined(R"(
  @%p1 mov.u32 %r1, 1;
  mov.u32 %r2, %r1;
)") == "%p1 %r1 %r2");
  CHECK(undefined(R"(
  mov.u32 %r1, 0;
  @%p1 mov.u32 %r1, 1;
  mov.u32 %r2, %r1;
)") == "%p1 %r1 %r2");
  // Through an address.
  CHECK(undefined("ld.global.u32 %r1, [%rd1];") == "%r1 %rd1");
  CHECK(undefined("mov.b64 %rd1, {%r1, %r2}; mov.u32 %r3, 1;") == "%r1 %r2 %rd1");
}

TEST_CASE("more than 64 doubtful registers are told apart") {
  std::string body = "setp.eq.u32 %p1, 1, 2;\n.reg .b32 %x<300>;\n@%p1 bra A;\n";
  for (int i = 0; i < 300; i += 2) body += "mov.u32 %x" + std::to_string(i) + ", 1;\n";
  body += "bra B;\nA:\n";
  for (int i = 0; i < 300; ++i) {
    if (i % 3 != 0) body += "mov.u32 %x" + std::to_string(i) + ", 1;\n";
  }
  body += "B:\n";
  for (int i = 0; i < 300; ++i) body += "st.shared.u32 [tile], %x" + std::to_string(i) + ";\n";
  const Module module = kernel(body);
  const Function& f = module.functions[0];
  const RegisterIndex index(f);
  const RegisterSet set = maybe_undefined(f, Cfg(f), index);
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < index.size(); ++i) {
    const Register reg = index[i];
    if (module.text(f.registers[reg.decl.value].name) != "%x") continue;
    ++found;
    INFO(reg.index);
    CHECK(set.contains(i) == (reg.index % 2 != 0 || reg.index % 3 == 0));
  }
  CHECK(found == 300);
  CHECK(set.count() == 200);
}

TEST_CASE("results of a device function in registers are read where it returns") {
  const Module module = parse(R"(.version 8.7
.target sm_90
.address_size 64
.func (.reg .b32 a, .reg .b32 b) f()
{
  .reg .pred p;
  mov.u32 a, 1;
  setp.eq.u32 p, a, 2;
  @p ret;
  mov.u32 b, 1;
  ret;
}
)");
  CHECK(undefined(module) == "b");
}
