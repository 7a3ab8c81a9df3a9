// tests/cli/device_test.cpp - ptxgen on a GPU, played by the stand-in for libcuda
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

// To the program the stand-in is a libcuda like any other, so this is its path to a GPU.
const std::string kStandin = STANDIN_LIBCUDA;
const std::string kLibcuda = "PTXGEN_LIBCUDA_PATH=" + kStandin;
const std::string kNoLibcuda = "PTXGEN_LIBCUDA_PATH=/nonexistent/libcuda.so.1";

bool standin_missing() {
  if (!kStandin.empty()) return false;
  test::skip("the stand-in for libcuda is not built (PTXGEN_BUILD_STANDIN)");
  return true;
}

// y[i] = 2 * x[i] for one block; `bad` != 0 stores to address 64 as well.
constexpr std::string_view kTwice = R"(.version 7.8
.target sm_75
.address_size 64
.visible .entry twice(.param .u64 y, .param .u64 x, .param .u8 small, .param .u32 bad)
{
.reg .pred %p<2>;
.reg .b32 %r<3>;
.reg .f32 %f<3>;
.reg .b64 %rd<7>;
ld.param.u64 %rd1, [y];
ld.param.u64 %rd2, [x];
ld.param.u32 %r1, [bad];
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd3, %r2, 4;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
ld.global.f32 %f1, [%rd5];
add.rn.f32 %f2, %f1, %f1;
st.global.f32 [%rd4], %f2;
setp.eq.u32 %p1, %r1, 0;
@%p1 ret;
mov.u64 %rd6, 64;
st.global.f32 [%rd6], %f2;
ret;
}
)";

struct TwicePlace {
  TemporaryDirectory folder;
  std::string ptx = folder.file("twice.ptx");
  std::string x = folder.file("x.bin");
  std::string y = folder.file("y.bin");
  TwicePlace() {
    write_file(ptx, kTwice);
    write_file(x, bytes_of<float>({1, 2, 3, 4}));
  }
  std::vector<std::string> call(const std::string& bad, std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"run",     ptx,       "--entry",   "twice", "--grid",
                                    "1",       "--block", "4",         "--arg", "zero:20:" + y,
                                    "in:" + x, "u8:7",    "u32:" + bad};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

}  // namespace

TEST_CASE("run on a GPU takes the same arguments and writes the same files") {
  if (standin_missing()) return;
  const TwicePlace place;
  for (const char* device : {"cuda:0", "emulator"}) {
    INFO(device);
    write_file(place.y, "");
    const auto result = with_environment({kLibcuda}, place.call("0", {"--device", device}));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(result.out == "");
    CHECK(values_in<float>(place.y) == std::vector<float>{2, 4, 6, 8, 0});
  }
  const auto result =
      with_environment({kLibcuda, "PTXGEN_DEVICE=cuda:0"}, place.call("0", {"--json"}));
  REQUIRE(result.exit_code == 0);
  CHECK(result.err == "");
  const json report = json::parse(result.out);
  CHECK(report.at("kernel") == "twice");
  CHECK(report.at("device") == "cuda:0");
  CHECK(report.at("status") == "ok");
  CHECK(report.at("findings") == json::array());
  CHECK_FALSE(report.contains("counters"));
}

TEST_CASE("auto is a GPU where there is one, and the emulator for what only that can do") {
  if (standin_missing()) return;
  const TwicePlace place;
  const auto device_of = [&](const std::string& library, std::vector<std::string> more) {
    more.push_back("--json");
    const auto result =
        with_environment({library, "PTXGEN_DEVICE=auto"}, place.call("0", std::move(more)));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return json::parse(result.out).at("device").get<std::string>();
  };
  CHECK(device_of(kLibcuda, {}) == "cuda:0");
  CHECK(device_of(kNoLibcuda, {}) == "emulator");
  for (const std::vector<std::string>& only :
       std::vector<std::vector<std::string>>{{"--schedules", "2"},
                                             {"--seed", "1"},
                                             {"--profile"},
                                             {"--check", "all"},
                                             {"--no-check", "trap"},
                                             {"--gpu", "t4"},
                                             {"--parallel"}}) {
    INFO(only.front());
    CHECK(device_of(kLibcuda, only) == "emulator");
    auto refused = only;
    refused.insert(refused.end(), {"--device", "cuda:0"});
    const auto result = with_environment({kLibcuda}, place.call("0", refused));
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, only.front() + " needs the emulator, and --device cuda:0 is a GPU; "
                                              "leave it out, or use --device emulator"));
  }
}

TEST_CASE("a fault on a GPU is told, exits with 1 and takes the outputs with it") {
  if (standin_missing()) return;
  const TwicePlace place;
  auto result = with_environment({kLibcuda}, place.call("1", {"--device", "cuda:0"}));
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK(contains(result.err, "no output file was written"));
  CHECK(contains(result.err, "twice: fault; "));
  result = with_environment({kLibcuda}, place.call("1", {"--device", "cuda:0", "--json"}));
  CHECK(result.exit_code == 1);
  const json report = json::parse(result.out);
  CHECK(report.at("status") == "fault");
  CHECK(contains(report.at("fault").get<std::string>(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_CASE("wrong calls of run for a GPU say what is wrong") {
  if (standin_missing()) return;
  const TwicePlace place;
  auto call = place.call("0", {"--device", "cuda:0"});
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& library,
                          std::string_view message) {
    const auto result = with_environment({library}, arguments);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, message));
  };
  refused(call, kNoLibcuda, "[no-driver]");
  refused(place.call("0", {"--device", "cuda:7"}), kLibcuda,
          "there is no device 7; the driver has 1,");
  call[3] = "thrice";
  refused(
      call, kLibcuda,
      "--entry thrice: " + place.ptx + " has no such entry; did you mean 'twice'?; it has: twice");
  call = place.call("0", {"--device", "cuda:0"});
  call[12] = "f32:0";
  refused(call, kLibcuda, "argument 4 (parameter bad, .u32)");
  call[12] = "u32:0";
  call[7] = "2048";
  refused(call, kLibcuda, "launch-limits");
}

TEST_CASE("gemv runs on a GPU, without findings and counters") {
  if (standin_missing()) return;
  const std::vector<std::string> call = {"gemv", "-p",     "k=300",    "-p",
                                         "n=70", "--json", "--device", "cuda:0"};
  auto result = with_environment({kLibcuda}, call);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json report = json::parse(result.out);
  CHECK(report.at("ok") == true);
  CHECK(report.at("device") == "cuda:0");
  CHECK(report.at("plan").at("kernel") == "gemv");
  CHECK_FALSE(report.contains("counters"));
  CHECK(report.at("findings") == json::array());
  for (const char* stage : {"build", "gates", "print", "load", "run", "download"}) {
    CHECK(report.at("stages_us").at(stage).is_number());
  }
  result = with_environment(
      {kLibcuda}, {"gemv", "-p", "k=8", "-p", "n=8", "--device", "cuda:0", "--gpu", "h200"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "--gpu needs the emulator, and --device cuda:0 is a GPU"));
  result = with_environment({kNoLibcuda}, call);
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "no-driver"));
}

TEST_CASE("one default GPU serves all commands whose subject names no target") {
  const auto gpu_of = [](const std::string& variable, std::vector<std::string> call) {
    call.insert(call.end(), {"--json"});
    const json report = json::parse(with_environment({kNoLibcuda, variable}, call).out);
    const json& gpu = report.at("gpu");
    return gpu.is_object() ? gpu.at("name").get<std::string>() : gpu.get<std::string>();
  };
  const std::vector<std::vector<std::string>> calls = {
      {"gemv", "-p", "k=64", "-p", "n=64"},
      {"plan", "gemv", "-p", "k=64", "-p", "n=64"},
      {"explain", "vadd"},
      {"decode-estimate", "--model", "llama-2-7b"},
  };
  for (const std::vector<std::string>& call : calls) {
    INFO(call.front());
    CHECK(gpu_of("PTXGEN_EMULATED_GPU=", call) == "h200");
    CHECK(gpu_of("PTXGEN_EMULATED_GPU=l40s", call) == "l40s");
  }
  const auto wrong = with_environment({kNoLibcuda, "PTXGEN_EMULATED_GPU=h20"}, calls.front());
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err, "PTXGEN_EMULATED_GPU=h20: there is no GPU 'h20'; write t4"));
}

TEST_CASE("doctor tells which driver answers and what auto is") {
  const auto report = [](std::vector<std::string> variables) {
    return json::parse(with_environment(std::move(variables), {"doctor", "--json"}).out);
  };
  json diagnosis = report({kNoLibcuda, "PTXGEN_DEVICE=auto"});
  CHECK(diagnosis.at("driver") == "none");
  CHECK(diagnosis.at("auto").at("device") == "emulator");
  auto text = with_environment({kNoLibcuda, "PTXGEN_DEVICE=auto"}, {"doctor"}).out;
  CHECK(contains(text, "\ndriver   no libcuda answers\n"));
  CHECK(contains(text, "\ndevice   without --device: emulator: no GPU was found"));
  CHECK(diagnosis.at("default_gpu") == "h200");
  CHECK(
      contains(text,
               "\nmodel    without --gpu: the first GPU of the PTX's .target; where there is none, "
               "h200 (PTXGEN_EMULATED_GPU)\n"));
  CHECK(contains(text, "\nhost     --device host: kernels run "));
  CHECK(report({kNoLibcuda, "PTXGEN_HOST=scalar"}).at("host").at("backend") == "scalar");
  CHECK(contains(with_environment({kNoLibcuda, "PTXGEN_HOST=mmx"}, {"doctor"}).out,
                 "\nhost     --device host: PTXGEN_HOST is 'mmx', which names no vectors"));
  CHECK(report({kNoLibcuda, "PTXGEN_DEVICE=cuda:3"}).at("auto").at("device") == "cuda:3");
  if (kStandin.empty()) {
    test::skip_part("the stand-in for libcuda is not built (PTXGEN_BUILD_STANDIN)");
    return;
  }
  diagnosis = report({kLibcuda, "PTXGEN_DEVICE=auto"});
  CHECK(diagnosis.at("driver") == "stand-in");
  CHECK(diagnosis.at("auto").at("device") == "cuda:0");
  text = with_environment({kLibcuda, "PTXGEN_DEVICE=auto"}, {"doctor"}).out;
  CHECK(contains(text, "\ndriver   ptxgen's stand-in for libcuda answers\n"));
}
