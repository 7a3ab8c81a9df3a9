// tests/cli/cli_test.cpp - the program's contract: products, findings, exit codes
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

constexpr std::string_view kGood =
    ".version 7.8\n.target sm_89\n.address_size 64\n"
    ".visible .entry k(.param .u64 p) { .reg .f32 %f<3>; add.rn.f32 %f2, %f1, %f1; ret; }\n";
constexpr std::string_view kWrongType =
    ".version 7.8\n.target sm_89\n.address_size 64\n.visible .entry k()\n{\n"
    ".reg .f32 %f<3>;\n.reg .b64 %rd<2>;\nadd.rn.f32 %f2, %rd1, %f1;\nret;\n}\n";

}  // namespace

TEST_CASE("dump prints a kernel and nothing else, in every process the same") {
  const auto first = ptxgen_program({"dump", "gemv_coalesced", "-p", "k=4096", "-p", "n=4096"});
  REQUIRE(first.exit_code == 0);
  CHECK(first.err == "");
  const ptx::Module module = ptx::parse(first.out);
  CHECK(module.target == "sm_89");
  CHECK(module.version == ptx::Version{7, 8});
  CHECK(module.find_function("gemv_coalesced") != nullptr);
  CHECK(ptx::verify(module).empty());
  for (int i = 0; i < 3; ++i) {
    CHECK(ptxgen_program({"dump", "gemv_coalesced", "-p", "n=4096", "-p", "k=4096"}).out ==
          first.out);
  }
  TemporaryDirectory folder;
  const std::string file = folder.file("k.ptx");
  const auto written = ptxgen_program({"dump", "gemv_coalesced", "--target", "sm_89", "-o", file});
  CHECK(written.out == "");
  CHECK(read_file(file) == first.out);
  const auto as_json = ptxgen_program({"dump", "gemv_coalesced", "--json"});
  CHECK(json::parse(as_json.out).at("ptx") == first.out);
}

TEST_CASE("list names every kernel with its parameters") {
  const auto result = ptxgen_program({"list", "--json"});
  REQUIRE(result.exit_code == 0);
  const json kernels = json::parse(result.out);
  std::vector<std::string> names;
  for (const json& kernel : kernels) {
    names.push_back(kernel.at("name"));
    CHECK_FALSE(kernel.at("doc").get<std::string>().empty());
    for (const json& parameter : kernel.at("parameters")) {
      CHECK_FALSE(parameter.at("doc").get<std::string>().empty());
      const json& range = parameter.at("range");
      if (parameter.at("type") == "word") {
        CHECK(std::find(range.begin(), range.end(), parameter.at("default")) != range.end());
        continue;
      }
      CHECK((parameter.at("type") == "u32" || parameter.at("type") == "u64" ||
             parameter.at("type") == "bool"));
      CHECK(range.size() == 2);
      CHECK(parameter.at("default") >= range[0]);
      CHECK(parameter.at("default") <= range[1]);
    }
    // Each one can be dumped as it is listed.
    CHECK(ptxgen_program({"dump", kernel.at("name")}).exit_code == 0);
  }
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const char* name : {"copy", "gemv", "gemv_strided", "vadd"}) {
    CHECK(std::count(names.begin(), names.end(), name) == 1);
  }
  CHECK(contains(ptxgen_program({"list"}).out, "gemv_coalesced"));
  CHECK(contains(ptxgen_program({"list"}).out,
                 "    -p dtype=f32  word f32|f16|bf16|q4_0|q4_1|q5_0|q5_1|q8_0|q4_k|q5_k|q6_k  "));
  CHECK(contains(ptxgen_program({"dump", "gemv", "-p", "layout=R", "-p", "dtype=bf16"}).out,
                 ".entry gemv("));
  CHECK(contains(ptxgen_program({"dump", "gemv", "-p", "dtype=f64"}).err,
                 "-p dtype=f64: expects one of f32|f16|bf16|q4_0|"));
}

TEST_CASE("wrong calls of dump say what is possible") {
  auto result = ptxgen_program({"dump", "gemvv"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "there is no kernel 'gemvv'; did you mean 'gemv'?; there are: "));
  result = ptxgen_program({"dump", "vadd", "-p", "m=3"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "kernel 'vadd' has no parameter 'm'; it has: n (1..4294967295)"));
  result = ptxgen_program({"dump", "vadd", "-p", "n=0"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "-p n=0: expects a whole number in 1..4294967295, or 2^E"));
  for (const char* value :
       {"n=4294967296", "n=99999999999999999999", "n=x", "n=-1", "n=", "n=1.5"}) {
    CHECK(ptxgen_program({"dump", "vadd", "-p", value}).exit_code == 2);
  }
  CHECK(
      contains(ptxgen_program({"dump", "vadd", "-p", "n"}).err, "-p expects NAME=VALUE, not 'n'"));
  result = ptxgen_program({"dump", "vadd", "--target", "sm_99"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "there is no target 'sm_99'; there are: sm_75 sm_80"));
}

TEST_CASE("check prints findings and exits with 1 for an error") {
  TemporaryDirectory folder;
  const std::string good = folder.file("good.ptx");
  const std::string bad = folder.file("bad.ptx");
  const std::string broken = folder.file("broken.ptx");
  write_file(good, kGood);
  write_file(bad, kWrongType);
  write_file(broken,
             ".version 7.8\n.target sm_89\n.address_size 64\n.visible .entry k()\n{\nret\n}\n");

  auto result = ptxgen_program({"check", good});
  CHECK(result.exit_code == 0);
  CHECK(result.out == "");
  result = ptxgen_program({"check", bad});
  CHECK(result.exit_code == 1);
  CHECK(contains(result.out,
                 bad + ":8: error: 'add.rn.f32' expects .f32 as operand 2, but '%rd1' is .b64 "
                       "[type-mismatch]"));
  result = ptxgen_program({"check", bad, "--json"});
  CHECK(result.exit_code == 1);
  json findings = json::parse(result.out).at("findings");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].at("severity") == "error");
  CHECK(findings[0].at("rule") == "type-mismatch");
  CHECK(findings[0].at("line") == 8);
  CHECK(findings[0].at("kernel") == "k");
  CHECK(findings[0].at("file") == bad);
  CHECK(findings[0].at("cpp").is_null());
  CHECK(findings[0].at("count") == 1);
  result = ptxgen_program({"check", broken, "--json"});
  CHECK(result.exit_code == 1);
  findings = json::parse(result.out).at("findings");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].at("rule") == "syntax");
  CHECK(findings[0].at("line") == 7);

  CHECK(ptxgen_program({"check", good, "--entry", "other"}).exit_code == 1);
  CHECK(contains(ptxgen_program({"check", good, "--entry", "other"}).out, "[entry-name]"));
  CHECK(contains(ptxgen_program({"check", good, "--target", "sm_90a"}).out, "[version-too-low]"));
  CHECK(with_input(good, "check -").exit_code == 0);
  CHECK(contains(with_input(bad, "check -").out, "<stdin>:8: error:"));
}

TEST_CASE("warnings pass, unless --strict") {
  TemporaryDirectory folder;
  const std::string file = folder.file("k.ptx");
  write_file(file,
             ".version 7.8\n.target sm_89\n.address_size 64\n.visible .entry k()\n{\n"
             "frobnicate.b32 everything;\nret;\n}\n");
  const auto result = ptxgen_program({"check", file});
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out,
                 file + ":6: warning: 'frobnicate.b32' is not in the op table; it is passed on "
                        "as written and not checked [unknown-instruction]"));
  CHECK(ptxgen_program({"check", file, "--strict"}).exit_code == 1);
}

TEST_CASE("fmt prints any PTX in one form") {
  TemporaryDirectory folder;
  const std::string file = folder.file("k.ptx");
  write_file(file, kGood);
  const auto once = ptxgen_program({"fmt", file});
  REQUIRE(once.exit_code == 0);
  CHECK(ptx::difference(ptx::parse(once.out), ptx::parse(kGood)) == "");
  const std::string again = folder.file("again.ptx");
  CHECK(ptxgen_program({"fmt", file, "-o", again}).out == "");
  CHECK(read_file(again) == once.out);
  CHECK(with_input(again, "fmt -").out == once.out);
}

TEST_CASE("diff says what two files do differently") {
  TemporaryDirectory folder;
  const std::string a = folder.file("a.ptx"), b = folder.file("b.ptx");
  const std::string head =
      ".version 7.8\n.target sm_89\n.address_size 64\n.visible .entry k()\n{\n";
  write_file(a, head + ".reg .b32 %r<2>;\nmov.u32 %r1, %tid.x;\nbar.sync 0;\nret;\n}\n");
  write_file(b, head + ".reg .b32 %t;\nmov.u32 %t, %tid.x;\nret;\n}\n");
  auto result = ptxgen_program({"diff", a, a});
  CHECK(result.exit_code == 0);
  CHECK(result.out == "no difference in what they do\n");
  result = ptxgen_program({"diff", a, b});
  CHECK(result.exit_code == 1);
  CHECK(result.out ==
        "k: line 8: barrier removed\n  - bar.sync 0;\nk: bar.sync 0 instead of 1 times\n");
  result = ptxgen_program({"diff", b, a, "--json"});
  CHECK(result.exit_code == 1);
  const json document = json::parse(result.out);
  CHECK(document.at("equal") == false);
  CHECK(document.at("changes").at(0).at("kind") == "barrier");
  CHECK(document.at("changes").at(0).at("kernel") == "k");
  CHECK(document.at("changes").at(0).at("a") == "");
  CHECK(document.at("changes").at(0).at("b") == "bar.sync 0;");
  CHECK(document.at("changes").at(0).at("lines") == json::array({0, 8}));
}

TEST_CASE("bad calls, files and PTX exit with 2 and say why") {
  TemporaryDirectory folder;
  const std::string broken = folder.file("broken.ptx");
  write_file(broken,
             ".version 7.8\n.target sm_89\n.address_size 64\n.visible .entry k() { ret }\n");
  auto result = ptxgen_program({"fmt", broken});
  CHECK(result.exit_code == 2);
  CHECK(result.out == "");
  CHECK(contains(result.err, broken + ":4:"));
  CHECK(contains(result.err, "expected"));
  for (const char* command : {"fmt", "check"}) {
    result = ptxgen_program({command, folder.file("absent.ptx")});
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, "cannot read the file"));
    CHECK(contains(result.err, "No such file"));
    CHECK(ptxgen_program({command, folder.path()}).exit_code == 2);
  }
  CHECK(ptxgen_program({}).exit_code == 2);
  CHECK(ptxgen_program({"frobnicate"}).exit_code == 2);
  CHECK(ptxgen_program({"dump"}).exit_code == 2);
  CHECK(ptxgen_program({"check", broken, "--target", "volta"}).exit_code == 2);
  CHECK(ptxgen_program({"dump", "vadd", "-o", folder.file("no/such/folder")}).exit_code == 2);
}

TEST_CASE("every subcommand has help with an example") {
  for (const char* command : {"list", "dump", "fmt", "diff", "check", "opt", "explain", "assemble",
                              "run", "gemv", "doctor"}) {
    const auto result = ptxgen_program({command, "--help"});
    CHECK(result.exit_code == 0);
    CHECK(contains(result.out, std::string("Example: ptxgen ") + command));
  }
  CHECK(contains(ptxgen_program({"--help"}).out, "gemv_coalesced"));
  CHECK(ptxgen_program({"--version"}).exit_code == 0);
}

TEST_CASE("doctor lists every piece, found or missing") {
  const auto result = ptxgen_program({"doctor", "--json"});
  REQUIRE(result.exit_code == 0);
  const json diagnosis = json::parse(result.out);
  CHECK(diagnosis.at("pieces").size() >= 8);
  for (const json& piece : diagnosis.at("pieces"))
    CHECK_FALSE(piece.at("gives").get<std::string>().empty());
  CHECK(contains(ptxgen_program({"doctor"}).out, "NVIDIA driver"));
}

TEST_CASE("assemble reports resources, or plainly that there is nothing to assemble with") {
  TemporaryDirectory folder;
  const std::string file = folder.file("k.ptx");
  write_file(file, kGood);
  const std::string cubin = folder.file("k.cubin");
  const auto result =
      ptxgen_program({"assemble", file, "--target", "sm_89", "--json", "-o", cubin});
  if (result.exit_code == 2) {
    CHECK(contains(result.err, "no-assembler"));
  } else {
    REQUIRE(result.exit_code == 0);
    const json resources = json::parse(result.out);
    for (const char* key :
         {"registers", "spill_stores", "spill_loads", "shared", "constant", "tool", "log"}) {
      CHECK(resources.contains(key));
    }
    CHECK(resources.at("compared").size() >= 1);
    for (const json& tool : resources.at("compared")) {
      CHECK(resources.at("registers") <= tool.at("registers"));
    }
    CHECK(read_file(cubin).substr(1, 3) == "ELF");
  }
  CHECK(ptxgen_program({"assemble", file}).exit_code == 2);
  const auto unknown = ptxgen_program({"assemble", file, "--target", "sm_89", "--with", "ptxsa"});
  CHECK(unknown.exit_code == 2);
  CHECK(
      contains(unknown.err,
               "--with ptxsa: expects fewest, nvjitlink, ptxas or driver; did you mean 'ptxas'?"));
}
