// tests/cli/findings_test.cpp - findings by source line and cause
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

// A loop that a compiler unrolled: four loads of one source line beyond a buffer of 4 bytes, and
// one of another line.
constexpr std::string_view kUnrolled = R"(.version 7.8
.target sm_89
.address_size 64
.file 1 "sum.cu"
.visible .entry sum(.param .u64 x)
{
.reg .b32 %r<8>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [x];
.loc 1 5 1
ld.global.u32 %r1, [%rd1+4];
ld.global.u32 %r2, [%rd1+8];
ld.global.u32 %r3, [%rd1+12];
ld.global.u32 %r4, [%rd1+16];
.loc 1 7 1
ld.global.u32 %r5, [%rd1+20];
ret;
}
)";

// The same mistake many times, each on a line of its own, without `.loc`.
std::string many(int count) {
  std::string text =
      ".version 7.8\n.target sm_89\n.address_size 64\n.visible .entry k(.param .u64 x)\n{\n"
      ".reg .b32 %r<2>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [x];\n";
  for (int i = 1; i <= count; ++i) {
    text += "ld.global.u32 %r1, [%rd1+" + std::to_string(4 * i) + "];\n";
  }
  return text + "ret;\n}\n";
}

SubprocessResult run(const std::string& ptx, const std::vector<std::string>& more = {}) {
  std::vector<std::string> call = {"run",     ptx, "--grid", "1",
                                   "--block", "1", "--arg",  "fill:u32:1:0"};
  call.insert(call.end(), more.begin(), more.end());
  return ptxgen_program(call);
}

std::size_t count_of(const std::string& text, std::string_view piece) {
  std::size_t count = 0;
  for (auto at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("run shows one entry for each source line and cause") {
  const Place place;
  const std::string ptx = place.with("sum.ptx", kUnrolled);
  const auto result = run(ptx);
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK(count_of(result.err, "[out-of-bounds]") == 2);
  CHECK(contains(result.err,
                 "4 findings of this cause, at PTX lines 11, 12, 13, 14, 4 times in all"));
  CHECK(count_of(result.err, "source sum.cu:5") == 1);
  CHECK(count_of(result.err, "source sum.cu:7") == 1);
  CHECK(contains(result.err, "\nsum: findings, 2 errors; "));
  const auto all = run(ptx, {"--all"});
  CHECK(count_of(all.err, "[out-of-bounds]") == 5);
  CHECK_FALSE(contains(all.err, "of this cause"));
  // JSON holds every finding, and which belong together.
  const json report = json::parse(run(ptx, {"--json"}).out);
  CHECK(report.at("findings").size() == 5);
  CHECK(report.at("groups") == json::parse(R"([{"example":0,"members":[0,1,2,3],"count":4},
                                               {"example":4,"members":[4],"count":1}])"));
}

TEST_CASE("a long list of causes is cut, and says so") {
  const Place place;
  const std::string ptx = place.with("many.ptx", many(25));
  const auto result = run(ptx);
  CHECK(count_of(result.err, "[out-of-bounds]") == 20);
  CHECK(contains(result.err, "\nnot shown: 5 errors; --all shows every finding\n"));
  CHECK(contains(result.err, "\nk: findings, 25 errors; "));
  CHECK(count_of(run(ptx, {"--all"}).err, "[out-of-bounds]") == 25);
}

TEST_CASE("check names source lines and groups by them") {
  const Place place;
  const std::string ptx =
      place.with("shift.ptx",
                 ".version 7.8\n.target sm_89\n.address_size 64\n.file 1 \"shift.cu\"\n"
                 ".visible .entry k()\n{\n.reg .b32 %r<2>;\n.loc 1 3 1\n"
                 "frobnicate.b32 a;\nfrobnicate.b32 b;\n.loc 1 4 1\nfrobnicate.b32 c;\nret;\n}\n");
  const auto result = ptxgen_program({"check", ptx});
  INFO(result.out);
  CHECK(count_of(result.out, "[unknown-instruction]") == 2);
  CHECK(contains(result.out, "    source shift.cu:3\n"));
  CHECK(contains(result.out, "    source shift.cu:4\n"));
  CHECK(contains(result.out, "    2 findings of this cause, at PTX lines 9, 10\n"));
  CHECK(count_of(ptxgen_program({"check", ptx, "--all"}).out, "[unknown-instruction]") == 3);
  const json report = json::parse(ptxgen_program({"check", ptx, "--json"}).out);
  CHECK(report.at("findings").size() == 3);
  CHECK(report.at("groups").size() == 2);
  CHECK(report.at("findings")[2].at("source") == json({{"file", "shift.cu"}, {"line", 4}}));
  // opt shows its findings alike.
  const auto opt = ptxgen_program({"opt", ptx, "-o", place.folder.file("out.ptx")});
  CHECK(count_of(opt.err, "[unknown-instruction]") == 2);
}

TEST_CASE("opt --explain and explain show three decisions of a kind") {
  const Place place;
  std::string text =
      ".version 7.8\n.target sm_89\n.address_size 64\n.visible .entry k(.param .u64 x)\n{\n"
      ".reg .f32 %f<40>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [x];\nld.global.f32 %f1, [%rd1];\n";
  for (int i = 2; i < 12; ++i) {
    const std::string a = "%f" + std::to_string(2 * i);
    const std::string b = "%f" + std::to_string(2 * i + 1);
    text += "mul.rn.f32 " + a + ", %f1, %f1;\nadd.rn.f32 " + b + ", " + a + ", %f1;\n" +
            "st.global.f32 [%rd1+" + std::to_string(4 * i) + "], " + b + ";\n";
  }
  const std::string ptx = place.with("fuse.ptx", text + "ret;\n}\n");
  const std::string out = place.folder.file("out.ptx");
  const auto opt = [&](const std::vector<std::string>& more) {
    std::vector<std::string> call = {"opt", ptx, "--explain", "--passes", "fma_fusion", "-o", out};
    call.insert(call.end(), more.begin(), more.end());
    return ptxgen_program(call).err;
  };
  CHECK(count_of(opt({"--all"}), "[fused]") == 10);
  CHECK(count_of(opt({}), "[fused]") == 3);
  CHECK(contains(opt({}), "not shown: 7 decisions of the same kinds; --all shows every one\n"));
  const auto explain = ptxgen_program({"explain", ptx, "--passes", "fma_fusion"});
  CHECK(count_of(explain.out, "[fused]") == 3);
}
