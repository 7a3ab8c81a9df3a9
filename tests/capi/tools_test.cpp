// tests/capi/tools_test.cpp - checks, passes, assemblers, counters and host views through C
#include <string>
#include <vector>

#include "capi/capi.hpp"
#include "support/harness.hpp"

using namespace ptxgen::test;

namespace {

/// Threads of one warp store to the same shared word, and a mul and an add that may become fma.
constexpr const char* kRacy = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry racy(.param .u64 .ptr .global .align 4 out, .param .f32 a, .param .b16 bits,
                     .param .align 4 .b8 both[12])
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .shared .align 4 .b8 tile[128];
  ld.param.u64 %rd0, [out];
  ld.param.f32 %f0, [a];
  mov.u32 %r0, %tid.x;
  cvt.rn.f32.u32 %f1, %r0;
  mul.f32 %f2, %f1, %f0;
  add.f32 %f2, %f2, %f0;
  mov.u32 %r2, tile;
  st.shared.f32 [%r2], %f2;
  ld.shared.f32 %f3, [%r2];
  st.global.f32 [%rd0], %f3;
  ret;
}
)";

ptxgen_finding finding_of(const ptxgen_findings* list, std::size_t index) {
  ptxgen_finding finding{};
  finding.struct_bytes = sizeof finding;
  good(ptxgen_findings_get(list, index, &finding), list);
  return finding;
}

ptxgen_check_options for_block(std::uint32_t threads) {
  ptxgen_check_options options{};
  options.struct_bytes = sizeof options;
  options.block[0] = threads;
  options.block[1] = options.block[2] = threads == 0 ? 0 : 1;
  return options;
}

void parse_text(const char* text, OwnedProgram& program) {
  good(ptxgen_program_parse(text, std::strlen(text), "racy.ptx", &program));
}

ptxgen_counters counters_of(const ptxgen_device* device) {
  ptxgen_counters counters{};
  counters.struct_bytes = sizeof counters;
  good(ptxgen_device_get_counters(device, &counters), device);
  return counters;
}

}  // namespace

TEST_CASE("a check returns what gates find, with the block that makes it certain") {
  OwnedFindings list;
  const ptxgen_check_options options = for_block(64);
  good(ptxgen_check(kRacy, std::strlen(kRacy), "racy.ptx", &options, &list));
  bool seen = false;
  for (std::size_t i = 0; i < ptxgen_findings_count(list); ++i) {
    const ptxgen_finding finding = finding_of(list, i);
    if (std::string(finding.rule) != "shared-race") continue;
    seen = true;
    CHECK(finding.severity == PTXGEN_FINDING_ERROR);
    CHECK(std::string(finding.kernel) == "racy");
    CHECK(std::string(finding.file) == "racy.ptx");
    CHECK((finding.line == 18 || finding.line == 19));
    CHECK(std::string(finding.statement).find("shared.f32") != std::string::npos);
    CHECK(finding.launch == 0);
    CHECK(finding.block[0] == 64);
    CHECK(std::string(finding.text).find("[shared-race]") != std::string::npos);
  }
  CHECK(seen);
}

TEST_CASE("a finding has the source line of its .loc") {
  std::string text = kRacy;
  const std::string store = "  st.shared.f32 [%r2], %f2;";
  text.insert(text.find(store), "  .loc 1 42 7\n");
  text += ".file 1 \"racy.cu\"\n";
  OwnedFindings list;
  const ptxgen_check_options options = for_block(64);
  good(ptxgen_check(text.data(), text.size(), nullptr, &options, &list));
  REQUIRE(ptxgen_findings_count(list) > 0);
  const ptxgen_finding finding = finding_of(list, 0);
  CHECK(std::string(finding.rule) == "shared-race");
  CHECK(std::string(finding.source_file) == "racy.cu");
  CHECK(finding.source_line == 42);
  CHECK(finding.other_line != 0);
}

TEST_CASE("a check of text that cannot be parsed is a finding, and of a wrong target an error") {
  OwnedFindings list;
  const std::string text = ".version 7.0\n.target sm_80\n.address_size 64\nnonsense here;\n";
  good(ptxgen_check(text.data(), text.size(), nullptr, nullptr, &list));
  REQUIRE(ptxgen_findings_count(list) == 1);
  CHECK(std::string(finding_of(list, 0).rule) == "syntax");
  CHECK(finding_of(list, 0).line == 4);
  CHECK(std::string(finding_of(list, 0).statement) == "nonsense here;");
  ptxgen_check_options options = for_block(0);
  options.target = "gfx90a";
  OwnedFindings none;
  CHECK(ptxgen_check(text.data(), text.size(), nullptr, &options, &none) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(nullptr) == "options.target is 'gfx90a', which is no target; try sm_90");
  CHECK(none.handle == nullptr);
  options.target = nullptr;
  options.entry = "missing";
  good(ptxgen_check(kRacy, std::strlen(kRacy), nullptr, &options, &none));
  REQUIRE(ptxgen_findings_count(none) > 0);
  CHECK(std::string(finding_of(none, 0).rule) == "entry-name");
}

TEST_CASE("passes run on a copy of a program and report what they did") {
  OwnedProgram program;
  parse_text(kRacy, program);
  ptxgen_optimize_options options{};
  options.struct_bytes = sizeof options;
  options.passes = "fma_fusion";
  OwnedProgram optimized;
  good(ptxgen_program_optimize(program, &options, &optimized), program);
  CHECK(std::string(ptxgen_program_ptx(optimized, nullptr)).find("fma.rn.f32") !=
        std::string::npos);
  CHECK(std::string(ptxgen_program_ptx(program, nullptr)).find("fma.rn.f32") == std::string::npos);
  CHECK(ptxgen_program_pass_count(program) == 0);
  REQUIRE(ptxgen_program_pass_count(optimized) == 1);
  ptxgen_pass_info info{};
  info.struct_bytes = sizeof info;
  good(ptxgen_program_get_pass(optimized, 0, &info), optimized);
  CHECK(std::string(info.name) == "fma_fusion");
  CHECK(info.changed == 1);
  CHECK(info.fired == 1);
  CHECK(info.statements_after < info.statements_before);
  CHECK(std::string(ptxgen_program_log(optimized)).find("fused") != std::string::npos);
  CHECK(ptxgen_program_get_pass(optimized, 1, &info) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(optimized) == "index is 1; the passes of the program are 1");
  options.no_contract = 1;
  OwnedProgram same;
  good(ptxgen_program_optimize(program, &options, &same), program);
  CHECK(std::string(ptxgen_program_ptx(same, nullptr)).find("fma.rn.f32") == std::string::npos);
}

TEST_CASE("a pass that does not exist and a wrong threshold are refused") {
  OwnedProgram program;
  parse_text(kRacy, program);
  ptxgen_optimize_options options{};
  options.struct_bytes = sizeof options;
  options.passes = "cleanup,magic";
  OwnedProgram optimized;
  CHECK(ptxgen_program_optimize(program, &options, &optimized) == PTXGEN_ERROR_OPTIMIZE);
  CHECK(error_code(program) == "unknown-pass");
  options.passes = nullptr;
  options.set_split_threshold = 1;
  options.split_threshold = 40000;
  CHECK(ptxgen_program_optimize(program, &options, &optimized) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(program) == "options.split_threshold is 40000; it may be 0 to 32767");
}

TEST_CASE("an image by a named tool lists its kernels") {
  OwnedProgram program;
  parse_text(kRacy, program);
  ptxgen_assemble_options options{};
  options.struct_bytes = sizeof options;
  options.target = "sm_80";
  options.tool = "gas";
  OwnedImage image;
  CHECK(ptxgen_program_assemble_with(program, nullptr, &options, &image) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(program) ==
        "options.tool is 'gas'; it may be nvjitlink, ptxas, driver or fewest");
  options.tool = "fewest";
  options.set_optimization = 1;
  options.optimization = 4;
  CHECK(ptxgen_program_assemble_with(program, nullptr, &options, &image) == PTXGEN_ERROR_USAGE);
  options.optimization = 3;
  if (ptxgen_program_assemble_with(program, nullptr, &options, &image) != PTXGEN_OK) {
    CHECK(error_code(program) == "no-assembler");
    CHECK(ptxgen_image_kernel_count(image) == 0);
    skip("no assembler (nvJitLink or ptxas) on this machine");
  }
  REQUIRE(ptxgen_image_kernel_count(image) == 1);
  ptxgen_kernel_resources resources{};
  resources.struct_bytes = sizeof resources;
  good(ptxgen_image_get_kernel(image, 0, &resources), image);
  CHECK(std::string(resources.name) == "racy");
  CHECK(resources.registers > 0);
  CHECK(resources.shared >= 128);
  CHECK(ptxgen_image_get_kernel(image, 1, &resources) == PTXGEN_ERROR_USAGE);
}

TEST_CASE("launches are counted exactly until the sums are cleared; parameters have types") {
  OwnedDevice device;
  open_emulator(device, {{"PTXGEN_LOG", "off"}});
  OwnedStream stream;
  good(ptxgen_stream_create(device, 0, 0, &stream), device);
  OwnedProgram program;
  parse_saxpy(program);
  OwnedFunction function;
  good(ptxgen_function_load(device, program, "saxpy", &function), device);
  const std::vector<std::string> types = {"u64", "u64", "f32", "u32"};
  for (std::size_t i = 0; i < types.size(); ++i) {
    ptxgen_argument_info info{};
    info.struct_bytes = sizeof info;
    good(ptxgen_function_get_argument(function, i, &info), function);
    CHECK(info.type == types[i]);
    CHECK(info.pointer == (i < 2 ? 1 : 0));
    CHECK(info.offset == (i < 3 ? 8 * i : 20));
    CHECK(ptxgen_function_get_argument(function, 4, &info) == PTXGEN_ERROR_USAGE);
  }
  CHECK(error_message(function) == "argument is 4; saxpy has 4 that are known");

  OwnedBuffer y;
  OwnedBuffer x;
  upload(device, std::vector<float>(64, 1), y);
  upload(device, std::vector<float>(64, 2), x);
  const std::uint64_t y_at = ptxgen_buffer_span(y).address;
  const std::uint64_t x_at = ptxgen_buffer_span(x).address;
  const float a = 3;
  const std::uint32_t n = 64;
  const ptxgen_argument arguments[] = {{&y_at, 8, PTXGEN_POINTER},
                                       {&x_at, 8, PTXGEN_POINTER},
                                       {&a, 4, PTXGEN_FLOAT},
                                       {&n, 4, PTXGEN_INTEGER}};
  const ptxgen_geometry shape = geometry(1, 64);
  CHECK(counters_of(device).launches == 0);
  for (int i = 0; i < 2; ++i) {
    good(ptxgen_function_launch(function, &shape, arguments, 4, stream), function);
  }
  good(ptxgen_stream_synchronize(stream), stream);
  const ptxgen_counters counters = counters_of(device);
  CHECK(counters.launches == 2);
  // 18 instructions of 2 warps in 2 launches; the guarded branch is not taken.
  CHECK(counters.warp_instructions == 2 * 2 * 18);
  CHECK(counters.thread_instructions == 32 * counters.warp_instructions);
  CHECK(counters.global_load.requests == 2 * 2 * 2);
  CHECK(counters.global_load.bytes == 2 * 2 * 64 * 4);
  CHECK(counters.global_load.sectors == counters.global_load.ideal_sectors);
  CHECK(counters.global_store.bytes == 2 * 64 * 4);
  CHECK(counters.seconds > 0);
  good(ptxgen_device_clear_counters(device), device);
  CHECK(counters_of(device).launches == 0);
  CHECK(counters_of(device).warp_instructions == 0);
}

TEST_CASE("the host sees the memory of an emulated buffer itself") {
  OwnedDevice device;
  open_emulator(device);
  OwnedBuffer buffer;
  upload(device, {1, 2, 3}, buffer);
  auto* const values = static_cast<float*>(ptxgen_buffer_host(buffer));
  REQUIRE(values != nullptr);
  CHECK(values[2] == 3);
  values[1] = 20;
  CHECK(download(buffer) == std::vector<float>{1, 20, 3});
  OwnedBuffer empty;
  good(ptxgen_buffer_create(device, 0, &empty), device);
  CHECK(ptxgen_buffer_host(empty) == nullptr);
  CHECK(ptxgen_buffer_host(nullptr) == nullptr);
}
