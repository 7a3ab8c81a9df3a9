// tests/cli/run_test.cpp - ptxgen run: options, messages, exit codes, JSON
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "program.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

// The same through a shell: redirections, variables.
SubprocessResult by_shell(const std::string& before, const std::string& after) {
  return run_program({"/bin/sh", "-c", before + std::string(PTXGEN_PROGRAM) + " " + after});
}

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : object.items()) names.insert(name);
  return names;
}

constexpr std::string_view kHead = ".version 7.8\n.target sm_89\n.address_size 64\n";

// y[i] = a * x[i] with i the global thread, if i < n. The store is line 22.
constexpr std::string_view kScale = R"(.version 7.8
.target sm_89
.address_size 64
.visible .entry scale(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
.reg .pred %p<2>;
.reg .b32 %r<6>;
.reg .f32 %f<4>;
.reg .b64 %rd<8>;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
ld.param.u32 %r5, [n];
setp.ge.u32 %p1, %r4, %r5;
@%p1 bra done;
ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.f32 %f1, [a];
mul.wide.u32 %rd3, %r4, 4;
add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
ld.global.f32 %f2, [%rd5];
mul.rn.f32 %f3, %f1, %f2;
st.global.f32 [%rd4], %f3;
done:
ret;
}
)";

// Each thread takes a ticket: order[i] = counter++. Which is whose depends on the schedule.
constexpr std::string_view kTickets = R"(.version 7.8
.target sm_89
.address_size 64
.visible .entry tickets(.param .u64 counter, .param .u64 order)
{
.reg .b32 %r<6>;
.reg .b64 %rd<6>;
ld.param.u64 %rd1, [counter];
ld.param.u64 %rd2, [order];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
atom.global.add.u32 %r5, [%rd1], 1;
mul.wide.u32 %rd3, %r4, 4;
add.s64 %rd4, %rd2, %rd3;
st.global.u32 [%rd4], %r5;
ret;
}
)";

// Writes 7, then traps where the parameter is not zero. The trap is line 12.
constexpr std::string_view kTrap = R"(.version 7.8
.target sm_89
.address_size 64
.visible .entry traps(.param .u64 out, .param .u32 bad)
{
.reg .pred %p<2>;
.reg .b32 %r<3>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [bad];
st.global.u32 [%rd1], 7;
setp.ne.u32 %p1, %r1, 0;
@%p1 trap;
ret;
}
)";

// printf("%d of %d\n", tid, ntid)
constexpr std::string_view kPrint = R"(.version 7.8
.target sm_89
.address_size 64
.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 text[10] = {37, 100, 32, 111, 102, 32, 37, 100, 10, 0};
.visible .entry prints()
{
.local .align 8 .b8 stack[8];
.reg .b32 %r<4>;
.reg .b64 %rd<5>;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ntid.x;
st.local.u32 [stack], %r1;
st.local.u32 [stack+4], %r2;
mov.u64 %rd1, stack;
cvta.local.u64 %rd2, %rd1;
mov.u64 %rd3, text;
cvta.global.u64 %rd4, %rd3;
{
.param .b64 p0;
st.param.b64 [p0], %rd4;
.param .b64 p1;
st.param.b64 [p1], %rd2;
.param .b32 r0;
call.uni (r0), vprintf, (p0, p1);
ld.param.b32 %r3, [r0];
}
ret;
}
)";

const std::set<std::string> kFindingKeys = {"severity", "rule",   "message", "file",
                                            "line",     "kernel", "cpp",     "source",
                                            "block",    "thread", "other",   "count"};

}  // namespace

TEST_CASE("run reads arguments, runs and writes the output files") {
  const Place place;
  const std::string ptx = place.with("scale.ptx", kScale);
  const std::string x = place.with("x.bin", bytes_of<float>({1, 2, 3, 4, 5, 6, 7, 8}));
  const std::string y = place.file("y.bin");
  const auto result =
      ptxgen_program({"run", ptx, "--entry", "scale", "--grid", "2", "--block", "4", "--arg",
                      "out:32:" + y, "--arg", "in:" + x, "--arg", "f32:-1.5", "--arg", "u32:8"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out == "");
  CHECK(result.err.starts_with("scale: ok; "));
  CHECK(values_in<float>(y) == std::vector<float>{-1.5f, -3, -4.5f, -6, -7.5f, -9, -10.5f, -12});

  // The entry may be left out, several specs may follow one --arg, PTX comes from standard input.
  const std::string again = place.file("again.bin");
  const auto piped = by_shell("", "run - --grid 1 --block 8,1,1 --arg out:32:" + again +
                                      " in:" + x + " f32:0x40000000 u32:8 < " + ptx);
  INFO(piped.err);
  REQUIRE(piped.exit_code == 0);
  CHECK(values_in<float>(again) == std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16});

  // zero and inout; what is not written stays.
  const std::string zeros = place.file("zeros.bin");
  REQUIRE(ptxgen_program({"run", ptx, "--grid", "1", "--block", "8", "--arg", "zero:36:" + zeros,
                          "in:" + x, "f32:1", "u32:2"})
              .exit_code == 0);
  CHECK(values_in<float>(zeros) == std::vector<float>{1, 2, 0, 0, 0, 0, 0, 0, 0});
  const std::string both = place.file("both.bin");
  REQUIRE(ptxgen_program({"run", ptx, "--grid", "1", "--block", "8", "--arg",
                          "inout:" + x + ":" + both, "in:" + x, "f32:10", "u32:2"})
              .exit_code == 0);
  CHECK(values_in<float>(both) == std::vector<float>{10, 20, 3, 4, 5, 6, 7, 8});
  CHECK(values_in<float>(x).front() == 1);
}

TEST_CASE("run --json has the documented fields and nothing else on standard output") {
  const Place place;
  const std::string ptx = place.with("scale.ptx", kScale);
  const std::string x = place.with("x.bin", std::string(4 * 64, '\0'));
  const std::vector<std::string> call = {"run",     ptx,     "--grid", "2",
                                         "--block", "32",    "--arg",  "out:256:" + place.file("y"),
                                         "in:" + x, "f32:1", "u32:40", "--json",
                                         "--seed",  "3"};
  const auto result = ptxgen_program(call);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err == "");
  const json report = json::parse(result.out);
  CHECK(keys(report) == std::set<std::string>{"kernel", "gpu", "device", "seed", "schedules",
                                              "status", "findings", "unchecked", "printf",
                                              "seconds", "counters", "groups"});
  CHECK(report.at("kernel") == "scale");
  CHECK(report.at("gpu") == "rtx4090");
  CHECK(report.at("seed") == 3);
  CHECK(report.at("schedules") == 1);
  CHECK(report.at("status") == "ok");
  CHECK(report.at("findings") == json::array());
  CHECK(report.at("unchecked") == json::array());
  CHECK(report.at("printf") == "");
  CHECK(report.at("seconds").is_number());
  const json& counters = report.at("counters");
  CHECK(keys(counters) == std::set<std::string>{"warp_instructions", "thread_instructions",
                                                "opcodes", "warp_execution_efficiency", "branches",
                                                "divergent_branches", "barriers", "atomics",
                                                "blocks_per_sm", "waves", "global_load",
                                                "global_store", "local_load", "local_store",
                                                "shared_load", "shared_store"});
  for (const char* group : {"global_load", "global_store", "local_load", "local_store"}) {
    CHECK(keys(counters.at(group)) ==
          std::set<std::string>{"requests", "sectors", "ideal_sectors", "bytes"});
  }
  for (const char* group : {"shared_load", "shared_store"}) {
    CHECK(keys(counters.at(group)) ==
          std::set<std::string>{"requests", "wavefronts", "ideal_wavefronts", "bank_conflicts"});
  }
  // Block 0 is whole, block 1 has 8 lanes past its branch: 7 + 9 + 1 instructions each, of which
  // the first 7 and `ret` belong to all lanes.
  CHECK(counters.at("warp_instructions") == 2 * 17);
  CHECK(counters.at("thread_instructions") == 32 * 17 + 32 * 8 + 8 * 9);
  CHECK(counters.at("branches") == 2);
  CHECK(counters.at("divergent_branches") == 1);
  CHECK(counters.at("global_load") ==
        json({{"requests", 2}, {"sectors", 5}, {"ideal_sectors", 5}, {"bytes", 160}}));
  CHECK(counters.at("global_store") == counters.at("global_load"));
  CHECK(counters.at("opcodes") == json({{"add", 4},
                                        {"bra", 2},
                                        {"ld", 10},
                                        {"mad", 2},
                                        {"mov", 6},
                                        {"mul", 4},
                                        {"ret", 2},
                                        {"setp", 2},
                                        {"st", 2}}));

  // -o takes the document; --profile adds the lines.
  auto more = call;
  more.insert(more.end(), {"--profile", "-o", place.file("report.json")});
  const auto written = ptxgen_program(more);
  REQUIRE(written.exit_code == 0);
  CHECK(written.out == "");
  const json profiled = json::parse(read_file(place.file("report.json")));
  CHECK(profiled.at("counters") == counters);
  bool has_load = false;
  for (const json& line : profiled.at("lines")) {
    for (const char* key : {"line", "opcode", "executions", "thread_executions"}) {
      CHECK(line.contains(key));
    }
    if (line.at("line") != 20) continue;
    has_load = true;
    CHECK(line.at("opcode") == "ld.global.f32");
    CHECK(line.at("executions") == 2);
    CHECK(line.at("thread_executions") == 40);
    CHECK(line.at("memory").at("sectors") == 5);
  }
  CHECK(has_load);
}

TEST_CASE("run --profile prints the PTX with its counters") {
  const Place place;
  const std::string ptx = place.with("scale.ptx", kScale);
  const std::string x = place.with("x.bin", std::string(4 * 64, '\0'));
  std::vector<std::string> call = {"run",     ptx,     "--grid", "2",
                                   "--block", "32",    "--arg",  "out:256:" + place.file("y"),
                                   "in:" + x, "f32:1", "u32:40", "--profile"};
  const auto result = ptxgen_program(call);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.starts_with(
      "executions  lanes  divergent  sectors/ideal  wavefronts/ideal | PTX\n"));
  CHECK(contains(result.out,
                 "\n         2   20.0                       5/5                   | ld.global.f32 "
                 "%f2, [%rd5];\n"));
  CHECK(contains(result.out,
                 "\n         2   32.0          1                                  | @%p1 bra "
                 "done;\n"));
  CHECK(contains(result.out,
                 "\n                                                              | "
                 ".reg .pred %p<2>;\n"));
  CHECK(contains(result.out, "| done:\n"));
  // Every line of the file, in order.
  std::string lines;
  std::string_view rest = result.out;
  for (int number = 0; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (number >= 2) lines += std::string(line.substr(line.find('|') + 2)) + "\n";
  }
  CHECK(lines == kScale);
  call.insert(call.end(), {"-o", place.file("profile.txt")});
  CHECK(ptxgen_program(call).out == "");
  CHECK(read_file(place.file("profile.txt")) == result.out);
  // Without --profile, -o takes the counters as a table.
  call.erase(call.end() - 3);
  CHECK(ptxgen_program(call).out == "");
  CHECK(contains(read_file(place.file("profile.txt")),
                 "global loads        2 requests, 5 sectors, ideally 5 (100.0 %), 160 "
                 "bytes\n"));
}

TEST_CASE("findings go to standard error as text, or into the JSON") {
  const Place place;
  const std::string ptx = place.with("scale.ptx", kScale);
  const std::string x = place.with("x.bin", std::string(32, '\0'));
  const std::string y = place.file("y.bin");
  const std::vector<std::string> call = {"run",   ptx,           "--grid",  "3",     "--block", "4",
                                         "--arg", "out:32:" + y, "in:" + x, "f32:1", "u32:12"};
  auto result = ptxgen_program(call);
  CHECK(result.exit_code == 1);
  CHECK(result.out == "");
  CHECK(contains(result.err, ptx + ":22: error: "));
  CHECK(contains(result.err, "[out-of-bounds]\n"));
  CHECK(contains(result.err, "thread (0,0,0) of block (2,0,0)"));
  CHECK(contains(result.err, "\nscale: findings, 2 errors; "));
  CHECK(read_file(y).size() == 32);

  auto with_json = call;
  with_json.push_back("--json");
  result = ptxgen_program(with_json);
  CHECK(result.exit_code == 1);
  CHECK(result.err == "");
  json report = json::parse(result.out);
  CHECK(report.at("status") == "findings");
  REQUIRE(report.at("findings").size() == 2);
  for (const json& finding : report.at("findings")) {
    const std::set<std::string> names = keys(finding);
    for (const std::string& key : kFindingKeys) CHECK(names.contains(key));
    CHECK(finding.at("severity") == "error");
    CHECK(finding.at("rule") == "out-of-bounds");
    CHECK(finding.at("file") == ptx);
    CHECK(finding.at("kernel") == "scale");
    CHECK(finding.at("block") == json({2, 0, 0}));
    CHECK(finding.at("thread") == json({0, 0, 0}));
    CHECK(finding.at("cpp").is_null());
    CHECK(finding.at("source").is_null());
    CHECK(finding.at("other").is_null());
    CHECK(finding.at("count") == 4);
  }
  CHECK(report.at("findings")[0].at("line") == 20);
  CHECK(report.at("findings")[1].at("line") == 22);

  const auto code = [&](std::vector<std::string> more) {
    std::vector<std::string> all = call;
    all.insert(all.end(), more.begin(), more.end());
    return ptxgen_program(all).exit_code;
  };
  CHECK(code({"--no-check", "out-of-bounds"}) == 0);
  CHECK(code({"--check", "none"}) == 0);
  CHECK(code({"--check", "all"}) == 1);
  CHECK(code({"--check", "default"}) == 1);
  CHECK(code({"--check", "trap,misaligned"}) == 0);
  CHECK(code({"--check", "trap,out-of-bounds"}) == 1);
  CHECK(code({"--check", "all", "--no-check", "trap,out-of-bounds,invalid-address"}) == 0);
  CHECK(code({"--suppress", "out-of-bounds"}) == 0);
  CHECK(code({"--suppress", "out-of-bounds:scale"}) == 0);
  CHECK(code({"--suppress", "out-of-bounds:other"}) == 1);
  CHECK(code({"--suppress", "misaligned"}) == 1);
  CHECK(code({"--suppress", "out-of-bounds:scale:20"}) == 1);
  CHECK(code({"--suppress", "out-of-bounds:scale:20", "--suppress", "out-of-bounds::22"}) == 0);
  const std::string list =
      place.with("known.txt", "# known\n\nout-of-bounds:scale:20\nout-of-bounds:scale:22\n");
  CHECK(code({"--suppressions", list}) == 0);
  CHECK(code({"--strict"}) == 1);
}

TEST_CASE("a sum by all threads without an atomic is found unasked") {
  const Place place;
  // out[0] += in[i]; the load of the sum is line 15, its store line 17.
  const std::string ptx = place.with("sum.ptx", std::string(kHead) + R"(
.visible .entry sum(.param .u64 out, .param .u64 in)
{
.reg .b32 %r<8>;
.reg .b64 %rd<6>;
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];
mul.wide.u32 %rd3, %r4, 4;
add.s64 %rd4, %rd2, %rd3;
ld.global.u32 %r5, [%rd4];
ld.global.u32 %r6, [%rd1];
add.u32 %r6, %r6, %r5;
st.global.u32 [%rd1], %r6;
ret;
}
)");
  std::string bytes(4 * 128, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i / 4);
  const std::string in = place.with("in.bin", bytes);
  const std::vector<std::string> call = {"run",     ptx,  "--grid", "2",
                                         "--block", "64", "--arg",  "zero:4:" + place.file("out"),
                                         "in:" + in};
  auto result = ptxgen_program(call);
  CHECK(result.exit_code == 1);
  INFO(result.err);
  CHECK(contains(result.err, ptx + ":17: error: "));
  CHECK(contains(result.err, "writes with the same instruction, another value [global-race]\n"));
  CHECK(contains(result.err, "let one thread write it, or use an atomic"));
  CHECK_FALSE(contains(result.err, "not checked"));
  auto without = call;
  without.insert(without.end(), {"--no-check", "global-race,scope-too-narrow"});
  result = ptxgen_program(without);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.err, "; not checked: global-race, scope-too-narrow\n"));
  without.push_back("--json");
  result = ptxgen_program(without);
  CHECK(result.exit_code == 0);
  CHECK(json::parse(result.out).at("unchecked") == json({"global-race", "scope-too-narrow"}));
}

TEST_CASE("a fault gives status fault, exit code 1, and the output files all the same") {
  const Place place;
  const std::string ptx = place.with("trap.ptx", kTrap);
  const std::string out = place.file("out.bin");
  std::vector<std::string> call = {"run", ptx,     "--grid",       "1",    "--block",
                                   "1",   "--arg", "out:4:" + out, "u32:1"};
  auto result = ptxgen_program(call);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, ptx + ":12: error: "));
  CHECK(contains(result.err, "[trap]"));
  CHECK(contains(result.err, "\ntraps: fault, 1 error; "));
  CHECK(values_in<std::uint32_t>(out) == std::vector<std::uint32_t>{7});
  call.push_back("--json");
  result = ptxgen_program(call);
  CHECK(result.exit_code == 1);
  CHECK(json::parse(result.out).at("status") == "fault");
  // Not reporting it does not make it a success.
  call.insert(call.end(), {"--suppress", "trap"});
  CHECK(ptxgen_program(call).exit_code == 1);

  const std::string loop = place.with(
      "loop.ptx", std::string(kHead) + ".visible .entry loops() { again: bra again; }\n");
  result =
      ptxgen_program({"run", loop, "--grid", "1", "--block", "32", "--max-instructions", "5000"});
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "[instruction-budget]"));
  CHECK(contains(result.err, "5000"));
}

TEST_CASE("device printf goes to standard output, or into the JSON") {
  const Place place;
  const std::string ptx = place.with("print.ptx", kPrint);
  auto result = ptxgen_program({"run", ptx, "--grid", "1", "--block", "3"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out == "0 of 3\n1 of 3\n2 of 3\n");
  result = ptxgen_program({"run", ptx, "--grid", "1", "--block", "2", "--json"});
  REQUIRE(result.exit_code == 0);
  CHECK(json::parse(result.out).at("printf") == "0 of 2\n1 of 2\n");
}

TEST_CASE("several schedules find what depends on the order, and only that") {
  const Place place;
  const std::string ptx = place.with("tickets.ptx", kTickets);
  const std::string order = place.file("order.bin");
  const std::vector<std::string> call = {"run",
                                         ptx,
                                         "--grid",
                                         "16",
                                         "--block",
                                         "64",
                                         "--arg",
                                         "zero:4:" + place.file("counter"),
                                         "out:4096:" + order,
                                         "--schedules",
                                         "8"};
  auto result = ptxgen_program(call);
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err,
                 ptx + ": error: argument 2 (parameter order) depends on the schedule: "));
  CHECK(contains(result.err, " of 4096 bytes differ [nondeterminism]\n"));
  CHECK(contains(result.err, "    first at offset "));
  CHECK(contains(result.err, " with --seed 0, "));
  CHECK(contains(result.err,
                 "    order the accesses that decide it: a barrier, or one fixed order of "
                 "additions\n"));
  // Every schedule begins with fresh buffers: the counter ends at 1024 each time.
  CHECK_FALSE(contains(result.err, "parameter counter"));
  CHECK(values_in<std::uint32_t>(place.file("counter")) == std::vector<std::uint32_t>{1024});
  // The file holds what the first seed left: tickets in order.
  CHECK(values_in<std::uint32_t>(order)[1023] == 1023);

  auto more = call;
  more.insert(more.end(), {"--json", "--seed", "5"});
  result = ptxgen_program(more);
  const json report = json::parse(result.out);
  CHECK(report.at("seed") == 5);
  CHECK(report.at("schedules") == 8);
  CHECK(report.at("status") == "findings");
  REQUIRE(report.at("findings").size() == 1);
  const json& finding = report.at("findings")[0];
  for (const std::string& key : kFindingKeys) CHECK(finding.contains(key));
  CHECK(finding.at("rule") == "nondeterminism");
  CHECK(finding.at("line") == 0);
  CHECK(finding.at("kernel") == "tickets");
  CHECK(finding.at("block").is_null());
  CHECK(finding.at("thread").is_null());
  CHECK(finding.at("count") >= 1);
  CHECK(finding.at("count") <= 7);

  for (const char* option : {"--no-check", "--suppress"}) {
    more = call;
    more.insert(more.end(), {option, "nondeterminism"});
    CHECK(ptxgen_program(more).exit_code == 0);
  }
  more = call;
  more.back() = "1";
  CHECK(ptxgen_program(more).exit_code == 0);

  // A deterministic kernel stays silent.
  const std::string scale = place.with("scale.ptx", kScale);
  const std::string x = place.with("x.bin", std::string(512, '\x3f'));
  result = ptxgen_program({"run", scale, "--grid", "4", "--block", "32", "--arg",
                           "out:512:" + place.file("y"), "in:" + x, "f32:3", "u32:128",
                           "--schedules", "5", "--check", "all"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
}

TEST_CASE("the same seed gives the same bytes, --parallel or not for kernels without order") {
  const Place place;
  const std::string ptx = place.with("tickets.ptx", kTickets);
  const auto tickets = [&](const std::string& seed) {
    const std::string order = place.file("order" + seed);
    REQUIRE(ptxgen_program({"run", ptx, "--grid", "16", "--block", "64", "--seed", seed, "--arg",
                            "zero:4:" + place.file("counter"), "out:4096:" + order})
                .exit_code == 0);
    return read_file(order);
  };
  CHECK(tickets("7") == tickets("7"));
  CHECK(tickets("0") != tickets("7"));
  CHECK(ptxgen_program({"run", ptx, "--grid", "16", "--block", "64", "--parallel", "--arg",
                        "zero:4:" + place.file("c"), "out:4096:" + place.file("o")})
            .exit_code == 0);
  CHECK(values_in<std::uint32_t>(place.file("c")) == std::vector<std::uint32_t>{1024});
}

TEST_CASE("options --gpu and --device choose what is modelled") {
  const Place place;
  const std::string ptx =
      place.with("k.ptx", std::string(kHead) + ".visible .entry k() { ret; }\n");
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", ptx, "--grid", "1", "--block", "1"});
    return ptxgen_program(more);
  };
  CHECK(json::parse(run({"--json", "--gpu", "h200"}).out).at("gpu") == "h200");
  CHECK(json::parse(run({"--json", "--gpu", "sm_90"}).out).at("gpu") == "sm_90");
  CHECK(json::parse(run({"--json"}).out).at("gpu") == "rtx4090");
  auto result = run({"--gpu", "voodoo2"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "--gpu voodoo2: "));
  CHECK(contains(result.err, "h200"));
  CHECK(run({"--device", "emulator"}).exit_code == 0);
  result = run({"--device", "tpu"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err,
                 "--device tpu: there is no such device; expects auto, emulator, host or cuda:N"));
  CHECK(contains(run({"--device", "cuda:"}).err, "there is no such device"));
  const std::string launch = "run " + ptx + " --grid 1 --block 1";
  result = by_shell("PTXGEN_DEVICE=gpu ", launch);
  CHECK(result.exit_code == 2);
  CHECK(contains(
      result.err,
      "PTXGEN_DEVICE=gpu: there is no such device; expects auto, emulator, host or cuda:N"));
  CHECK(by_shell("PTXGEN_DEVICE=gpu ", launch + " --device emulator").exit_code == 0);
}

TEST_CASE("a carry that no instruction has set is 0, whatever ran before") {
  const Place place;
  // Block 0 sets it, block 1 reads the carry all the same: PTX leaves open what it finds.
  const std::string ptx = place.with("carry.ptx", std::string(kHead) +
                                                      R"(.visible .entry k(.param .u64 out)
{
.reg .pred %p<2>;
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %ctaid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra read;
sub.cc.u32 %r2, 1, 1;
read:
subc.u32 %r3, 10, 0;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r3;
ret;
}
)");
  const std::string out = place.file("out");
  const auto result = ptxgen_program(
      {"run", ptx, "--grid", "4", "--block", "1", "--schedules", "20", "--arg", "out:16:" + out});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(values_in<std::uint32_t>(out) == std::vector<std::uint32_t>{10, 9, 9, 9});
}

TEST_CASE("wrong calls of run say what is possible") {
  const Place place;
  const std::string two = place.with(
      "two.ptx", std::string(kHead) +
                     ".visible .entry a() { ret; }\n.visible .entry b() .reqntid 64 { ret; }\n");
  const std::string scale = place.with("scale.ptx", kScale);
  const auto refused = [&](std::vector<std::string> arguments, std::string_view message) {
    arguments.insert(arguments.begin(), "run");
    const auto result = ptxgen_program(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    CHECK(contains(result.err, message));
  };
  refused({two, "--grid", "1", "--block", "1"},
          two + " has several entries, name one with --entry: a, b");
  refused({two, "--grid", "1", "--block", "1", "--entry", "c"},
          "--entry c: " + two + " has no such entry; it has: a, b");
  refused({place.with("f.ptx", std::string(kHead) + ".visible .func f() { ret; }\n"), "--grid", "1",
           "--block", "1"},
          "f.ptx has no entry to run");
  for (const char* bad : {"0", "1,0", "x", "1,", ",1", "1,2,3,4", "4294967296", "-1", "1.5"}) {
    refused({two, "--entry", "a", "--block", "1", std::string("--grid=") + bad},
            std::string("--grid ") + bad +
                ": expects X[,Y[,Z]], whole numbers in 1..4294967295, or 2^E");
  }
  refused({two, "--entry", "a", "--grid", "1", "--block", "0"},
          "--block 0: expects X[,Y[,Z]], whole numbers in 1..4294967295, or 2^E");
  refused({two, "--entry", "a", "--grid", "1"},
          "--block is missing, and the kernel requires no block size of its own");
  CHECK(ptxgen_program({"run", two, "--entry", "b", "--grid", "1"}).exit_code == 0);
  refused({two, "--entry", "b", "--grid", "1", "--block", "32"}, "[launch-limits]");
  refused({two, "--entry", "a", "--grid", "1", "--block", "2048"}, "[launch-limits]");
  refused({two, "--entry", "a", "--grid", "1", "--block", "1", "--smem", "1000000"},
          "[launch-limits]");
  refused({two, "--entry", "a", "--block", "1"}, "--grid is required");
  refused({two, "--entry", "a", "--grid", "1", "--block", "1", "--check", "everything"},
          "--check everything: there is no rule 'everything'; the rules are out-of-bounds, ");
  refused({two, "--entry", "a", "--grid", "1", "--block", "1", "--no-check", "x"},
          "--no-check x: there is no rule 'x'");
  refused({two, "--entry", "a", "--grid", "1", "--block", "1", "--suppress", "trap:a:x"},
          "--suppress trap:a:x: 'x' in the suppression 'trap:a:x' is not a line number");
  const std::string known = place.with("known.txt", "trap\nnothing\n");
  refused({two, "--entry", "a", "--grid", "1", "--block", "1", "--suppressions", known},
          known + ":2: error: there is no rule 'nothing'");
  refused({two, "--entry", "a", "--grid", "1", "--block", "1", "--schedules", "0"}, "--schedules");
  refused({two, "--entry", "a", "--grid", "1", "--block", "1", "--max-instructions", "0"},
          "--max-instructions");
  refused({two, "--entry", "a", "--grid", "1", "--block", "1", "--seed", "x"}, "--seed");
  refused({two, "--entry", "a", "--grid", "1", "--block", "1", "--arg", "u32:1"}, "1 argument");
  refused({scale, "--grid", "1", "--block", "1", "--arg", "null", "null", "u32:1", "u32:1"},
          "argument 3 (parameter a, .f32)");
  refused({scale, "--grid", "1", "--block", "1", "--arg", "null", "null", "f32:1"}, "3 arguments");
  refused({scale, "--grid", "1", "--block", "1", "--arg", "int:3"}, "argument 'int:3'");
  refused({scale, "--grid", "1", "--block", "1", "--arg", "in:" + place.file("absent"), "null",
           "f32:1", "u32:1"},
          "No such file");
  refused({place.file("absent.ptx"), "--grid", "1", "--block", "1"}, "No such file");
  refused({"-", "--grid", "1", "--block", "1", "--arg", "in:-"},
          "'-' stands for standard input, which can be read once only");
  refused({scale, "--grid", "1", "--block", "1", "--schedules", "2", "--arg", "null", "in:-",
           "f32:1", "u32:1"},
          "--schedules reads the inputs again for each schedule");
  refused({place.with("broken.ptx", std::string(kHead) + ".visible .entry k() { ret }\n"), "--grid",
           "1", "--block", "1"},
          "broken.ptx:4:");
  refused(
      {place.with("texture.ptx",
                  std::string(kHead) +
                      ".visible .entry k(.param .u64 t)\n{\n.reg .f32 %f<5>;\n.reg .b32 %r<3>;\n"
                      ".reg .b64 %rd<2>;\nld.param.u64 %rd1, [t];\nmov.u32 %r1, 0;\n"
                      "txq.channel_order.b32 %r1, [%rd1];\nret;\n}\n"),
       "--grid", "1", "--block", "1", "--arg", "null"},
      "txq");

  const std::string cluster =
      place.with("cluster.ptx",
                 ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k()\n"
                 ".reqnctapercluster 2, 1, 1\n{\nret;\n}\n");
  refused({cluster, "--grid", "4", "--block", "1", "--cluster", "4"},
          "--cluster 4: the kernel's .reqnctapercluster is 2,1,1; leave --cluster out or say the "
          "same");
  refused({cluster, "--grid", "4", "--block", "1", "--cluster", "0"},
          "--cluster 0: expects X[,Y[,Z]], whole numbers in 1..4294967295, or 2^E");
}

TEST_CASE("an output file that cannot be written is an error, after the findings") {
  const Place place;
  const std::string ptx = place.with("trap.ptx", kTrap);
  const auto result = ptxgen_program(
      {"run", ptx, "--grid", "1", "--block", "1", "--arg", "out:4:/dev/full", "u32:1"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "[trap]"));
  CHECK(contains(result.err, "/dev/full: error: cannot write the file"));
}
