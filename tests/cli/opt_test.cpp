// tests/cli/opt_test.cpp - ptxgen opt, check with gates, dump with passes
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

constexpr std::string_view kPlain =
    ".version 7.8\n.target sm_89\n.address_size 64\n"
    ".visible .entry k(.param .u64 p) {\n  .reg .f32 %f<3>;\n  mov.f32 %f1, 0f3F800000;\n"
    "  add.rn.f32 %f2, %f1, %f1;\n  ret;\n}\n";
constexpr std::string_view kTooManyThreads =
    ".version 7.8\n.target sm_89\n.address_size 64\n"
    ".visible .entry k() .reqntid 2048 { ret; }\n";

std::vector<std::string> names_of(const json& passes) {
  std::vector<std::string> names;
  for (const json& pass : passes) names.push_back(pass.at("name"));
  return names;
}

}  // namespace

TEST_CASE("opt lists the passes and groups") {
  const auto result = ptxgen_program({"opt", "--list-passes"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(contains(result.out, "fma_fusion        floating-point mul and add become fma\n"));
  CHECK(contains(result.out, "tokens            barriers that order nothing more go\n"));
  CHECK(contains(result.out, "\ndefault           all passes but tokens, again and again"));
  CHECK(contains(ptxgen_program({"opt"}).err, "file is required"));
}

TEST_CASE("opt says of each barrier why it goes or stays") {
  TemporaryDirectory folder;
  const std::string file = folder.file("k.ptx");
  write_file(file,
             ".version 7.8\n.target sm_89\n.address_size 64\n"
             ".visible .entry k(.param .u64 p)\n.reqntid 64\n{\n"
             "  .reg .b32 %r<5>;\n  .shared .b32 s[64];\n  mov.u32 %r1, %tid.x;\n"
             "  shl.b32 %r2, %r1, 2;\n  mov.u32 %r3, s;\n  add.u32 %r2, %r2, %r3;\n"
             "  st.shared.u32 [%r2], %r1;\n  bar.sync 0;\n  ld.shared.u32 %r4, [s];\n"
             "  bar.sync 0;\n  ret;\n}\n");
  const auto result = ptxgen_program({"opt", file, "--passes", "tokens", "--explain"});
  CHECK(result.exit_code == 0);
  CHECK(contains(result.err, "tokens: changed, refused 1 conflict, 1 orders-nothing, "));
  CHECK(contains(result.err,
                 "    k:14: refused: 'bar.sync 0' stays: it orders 'st.shared.u32 [%r2], %r1' in "
                 "line 13 before 'ld.shared.u32 %r4, [s]' in line 15: threads (0,0,0) and (1,0,0) "
                 "access the same bytes [conflict]\n"
                 "    k:16: 'bar.sync 0' is removed: no two threads access before and after it "
                 "what conflicts [orders-nothing]\n"));
}

TEST_CASE("opt runs exactly the named passes in that order") {
  TemporaryDirectory folder;
  const std::string file = folder.file("k.ptx");
  write_file(file, kPlain);
  const auto run = [&](const std::string& passes) {
    const auto result = ptxgen_program({"opt", file, "--passes", passes, "--json"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(result.err == "");
    return json::parse(result.out);
  };
  json document = run("dead_code,fma_fusion,dead_code");
  CHECK(names_of(document.at("passes")) ==
        std::vector<std::string>{"dead_code", "fma_fusion", "dead_code"});
  for (const json& pass : document.at("passes")) {
    CHECK(pass.at("changed").is_boolean());
    CHECK(pass.at("decisions").is_array());
    CHECK(pass.at("counts").is_array());
    CHECK(pass.at("microseconds").is_number());
    CHECK(pass.at("statements").at("before").is_number());
  }
  document = run("none");
  CHECK(document.at("passes") == json::array());
  CHECK(document.at("ptx") == ptx::print(ptx::parse(kPlain)));
  CHECK(document.at("findings") == json::array());
  const auto names = names_of(run("default").at("passes"));
  REQUIRE(names.size() >= 7);
  CHECK(std::vector<std::string>(names.begin(), names.begin() + 6) ==
        std::vector<std::string>{"dead_code", "fma_fusion", "mad_fusion", "loop_split",
                                 "fold_constants", "copy_propagation"});
  CHECK(std::find(names.begin(), names.end(), "branch_simplify") != names.end());
  // All its members, then again those for which others have changed something.
  const std::vector<std::string> members = {"fold_constants", "copy_propagation", "dead_code",
                                            "branch_simplify"};
  const auto cleanup = names_of(run("cleanup").at("passes"));
  REQUIRE(cleanup.size() >= 4);
  CHECK(std::vector<std::string>(cleanup.begin(), cleanup.begin() + 4) == members);
  for (const std::string& name : cleanup) {
    CHECK(std::find(members.begin(), members.end(), name) != members.end());
  }
}

TEST_CASE("opt prints PTX and nothing else on standard output") {
  TemporaryDirectory folder;
  const std::string file = folder.file("k.ptx");
  write_file(file, kPlain);
  auto result = ptxgen_program({"opt", file, "--passes", "none"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(result.out == ptx::print(ptx::parse(kPlain)));
  CHECK(with_input(file, "opt - --passes none").out == result.out);
  const std::string unchanged = result.out;
  const std::string written = folder.file("out.ptx");
  result = ptxgen_program({"opt", file, "--passes", "none", "-o", written});
  CHECK(result.out == "");
  CHECK(read_file(written) == unchanged);
  result = ptxgen_program({"opt", file, "--passes", "none", "--json", "-o", written});
  CHECK(json::parse(result.out).at("ptx") == unchanged);
  // What passes leave is PTX, and explanations go elsewhere.
  result = ptxgen_program({"opt", file, "--explain"});
  CHECK(result.exit_code == 0);
  CHECK(ptx::verify(ptx::parse(result.out)).empty());
  CHECK(contains(result.err, "fma_fusion: nothing changed"));
  CHECK(contains(result.err, "dead_code: "));
}

TEST_CASE("opt only warns of what the gates find") {
  TemporaryDirectory folder;
  const std::string file = folder.file("k.ptx");
  write_file(file, kTooManyThreads);
  auto result = ptxgen_program({"opt", file, "--passes", "none"});
  CHECK(result.exit_code == 0);
  CHECK(result.out == ptx::print(ptx::parse(kTooManyThreads)));
  CHECK(contains(result.err, file + ":4: error: kernel 'k' .reqntid asks for 2048 threads"));
  result = ptxgen_program({"opt", file, "--passes", "none", "--json"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(json::parse(result.out).at("findings").at(0).at("rule") == "tile-limits");
}

TEST_CASE("wrong calls of opt say what is possible") {
  TemporaryDirectory folder;
  const std::string file = folder.file("k.ptx");
  write_file(file, kPlain);
  const auto refused = [&](std::vector<std::string> arguments, std::string_view message) {
    arguments.insert(arguments.begin(), "opt");
    const auto result = ptxgen_program(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    CHECK(contains(result.err, message));
  };
  refused({file, "--passes", "dead_code,inline"},
          "--passes dead_code,inline: there is no pass 'inline'; passes: fma_fusion mad_fusion "
          "loop_split fold_constants copy_propagation dead_code branch_simplify tokens; "
          "groups: cleanup default none");
  refused({file, "--passes", ""}, "there is no pass ''");
  refused({file, "--contract", "maybe"}, "--contract maybe: expects on or off");
  refused({file, "--split-threshold", "40000"}, "--split-threshold");
  refused({folder.file("absent.ptx")}, "cannot read the file");
  write_file(file, ".version 7.8\n.target sm_89\n.address_size 64\nnonsense\n");
  refused({file}, file + ":4:");
}

TEST_CASE("check runs the gates") {
  TemporaryDirectory folder;
  const std::string file = folder.file("k.ptx");
  write_file(file, kTooManyThreads);
  auto result = ptxgen_program({"check", file, "--json"});
  CHECK(result.exit_code == 1);
  const json findings = json::parse(result.out).at("findings");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].at("severity") == "error");
  CHECK(findings[0].at("rule") == "tile-limits");
  CHECK(findings[0].at("line") == 4);
  CHECK(findings[0].at("kernel") == "k");
  CHECK(findings[0].at("other").is_null());
  // A warning of a gate passes, unless --strict.
  write_file(file,
             ".version 7.8\n.target sm_89\n.address_size 64\n"
             ".visible .entry k() .maxnreg 256 { ret; }\n");
  result = ptxgen_program({"check", file});
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out, file + ":4: warning: kernel 'k' .maxnreg asks for 256 registers "
                                    "[tile-limits]\n"));
  CHECK(ptxgen_program({"check", file, "--strict"}).exit_code == 1);
}

TEST_CASE("dump prints what the launcher loads, or what the builder made") {
  for (const char* kernel : {"gemv_coalesced", "vadd"}) {
    const auto raw = ptxgen_program({"dump", kernel, "--passes", "none"});
    REQUIRE(raw.exit_code == 0);
    TemporaryDirectory folder;
    const std::string file = folder.file("raw.ptx");
    write_file(file, raw.out);
    const std::string loaded = ptxgen_program({"dump", kernel}).out;
    CHECK(ptxgen_program({"opt", file}).out == loaded);
    CHECK(ptxgen_program({"dump", kernel, "--passes", "default"}).out == loaded);
    // A second run changes nothing.
    write_file(file, loaded);
    CHECK(ptxgen_program({"opt", file}).out == loaded);
  }
  CHECK(contains(ptxgen_program({"dump", "vadd", "--passes", "x"}).err, "there is no pass 'x'"));
}
