// tests/optimize/fresh_names_test.cpp - names of passes beside hostile names of the author
#include "optimize/fresh_names.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>

#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::test {

namespace {

using optimize::FreshNames;

ptx::Module kernel(const std::string& declarations, const std::string& body = "ret;") {
  return ptx::parse(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n" +
                    declarations + "\n" + body + "\n}\n");
}

std::string label(const std::string& declarations, const std::string& body = "ret;") {
  ptx::Module module = kernel(declarations, body);
  FreshNames names(module, module.functions[0], "$opt_");
  return std::string(module.text(names.name()));
}

std::string prefix(const std::string& declarations) {
  ptx::Module module = kernel(declarations);
  FreshNames names(module, module.functions[0], "%opt_f32_");
  return std::string(module.text(names.prefix()));
}

}  // namespace

TEST_CASE("a numbered declaration takes its numbers and nothing else") {
  CHECK(label(".reg .b32 $<4>;") == "$opt_0");
  CHECK(label(".reg .b32 $o<4>;") == "$opt_0");
  CHECK(label(".reg .b32 $opt_<1>;") == "$opt_1");
  CHECK(label(".reg .b32 $opt_0<3>;") == "$opt_0");
  CHECK(label(".reg .b32 $opt_, $opt_01, $opt_0x;") == "$opt_0");
  CHECK(label(".reg .b32 $opt_0;") == "$opt_1");
  CHECK(label(".shared .b32 $opt_0;") == "$opt_1");
  CHECK(label("", "$opt_0: bra $opt_1; $opt_1: ret;") == "$opt_2");
}

TEST_CASE("a search for a name is bounded by the names that exist") {
  // Each of the four billion names is taken, so another stem is.
  CHECK(label(".reg .b32 $opt_<4000000000>;") == "$opt__1");
  CHECK(label(".reg .b32 $opt_<4000000000>, $opt__<4000000000>, $opt__0;") == "$opt___3");
  std::string many;
  for (int i = 0; i < 3000; ++i) many += ".reg .b32 $opt_" + std::to_string(i) + ";\n";
  CHECK(label(many) == "$opt_3000");
}

TEST_CASE("a prefix begins no name that is there") {
  CHECK(prefix(".reg .f32 %o<4>;") == "%opt_f32_0_");
  CHECK(prefix(".reg .f32 %opt_f32_<4>;") == "%opt_f32_0_");
  CHECK(prefix(".reg .f32 %opt_f32_0_<4>;") == "%opt_f32_1_");
  CHECK(prefix(".reg .f32 %opt_f32_0_7;") == "%opt_f32_1_");
  CHECK(prefix(".reg .f32 %opt_f32_0_1<2>, %opt_f32_1_;") == "%opt_f32_2_");
}

TEST_CASE("names of the module that a function refers to are not hidden") {
  ptx::Module module = ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 $opt_0;\n"
      ".visible .entry k()\n{\n.reg .b32 %r;\nld.global.u32 %r, [$opt_0];\nret;\n}\n"
      ".visible .entry other()\n{\nret;\n}\n");
  CHECK(module.text(FreshNames(module, module.functions[0], "$opt_").name()) == "$opt_1");
  CHECK(module.text(FreshNames(module, module.functions[1], "$opt_").name()) == "$opt_0");
}

TEST_CASE("fma_fusion ends where a register's prefix begins the names of new ones") {
  ptx::Module module = ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .f32 a, .param .u64 out)\n{\n"
      ".reg .f32 %o<4>;\n.reg .b64 %rd;\n"
      "ld.param.f32 %o0, [a];\nld.param.u64 %rd, [out];\n"
      "mul.rn.f32 %o1, %o0, %o0;\nsub.rn.f32 %o2, %o0, %o1;\nst.global.f32 [%rd], %o2;\nret;\n}\n");
  optimize::run_passes(module);
  CHECK(ptx::verify(module).empty());
  CHECK(ptx::print(module).find("%opt_f32_0_") != std::string::npos);
}

}  // namespace ptxgen::test
