// tests/capi/findings_test.cpp - findings of launches, and strict mode, through the C API
#include <string>
#include <vector>

#include "capi/capi.hpp"

using namespace ptxgen::test;

namespace {

/// Stores 32 words of shared memory that no thread has written.
constexpr const char* kReads = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry reads(.param .u64 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  .shared .align 4 .b8 tile[128];
  ld.param.u64 %rd0, [out];
  cvta.to.global.u64 %rd1, %rd0;
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd2, %r0, 4;
  add.s64 %rd3, %rd1, %rd2;
  shl.b32 %r1, %r0, 2;
  mov.u32 %r2, tile;
  add.s32 %r2, %r2, %r1;
  ld.shared.u32 %r3, [%r2];
  st.global.u32 [%rd3], %r3;
  ret;
}
)";

struct Setup {
  OwnedDevice device;
  OwnedBuffer out;
  OwnedStream stream;
  OwnedProgram program;
  OwnedFunction function;

  explicit Setup(bool strict = false) {
    const ptxgen_setting settings[] = {{"PTXGEN_CACHE", "memory"}, {"PTXGEN_LOG", "off"}};
    ptxgen_device_options options{};
    options.struct_bytes = sizeof options;
    options.ignore_environment = 1;
    options.settings = settings;
    options.setting_count = 2;
    options.strict = strict ? 1 : 0;
    good(ptxgen_device_open("emulator", &options, &device));
    good(ptxgen_buffer_create(device, 128, &out));
    good(ptxgen_stream_create(device, 0, 0, &stream));
    good(ptxgen_program_parse(kReads, std::strlen(kReads), "reads.ptx", &program));
    good(ptxgen_function_load(device, program, nullptr, &function));
  }
  void launch() {
    const std::uint64_t address = ptxgen_buffer_span(out).address;
    ptxgen_argument argument{};
    argument.value = &address;
    argument.bytes = sizeof address;
    argument.type = PTXGEN_POINTER;
    const ptxgen_geometry shape = geometry(1, 32);
    good(ptxgen_function_launch(function, &shape, &argument, 1, stream), function);
  }
};

ptxgen_finding finding_at(const ptxgen_findings* list, std::size_t index) {
  ptxgen_finding finding{};
  finding.struct_bytes = sizeof finding;
  good(ptxgen_findings_get(list, index, &finding), list);
  return finding;
}

}  // namespace

TEST_CASE("findings are read as objects, counted and cleared") {
  Setup setup;
  setup.launch();
  good(ptxgen_stream_synchronize(setup.stream));
  OwnedFindings list;
  good(ptxgen_findings_create(setup.device, &list));
  REQUIRE(ptxgen_findings_count(list) == 1);
  const ptxgen_finding finding = finding_at(list, 0);
  CHECK(finding.launch != 0);
  CHECK(finding.count == 32);
  CHECK(finding.severity == PTXGEN_FINDING_ERROR);
  CHECK(finding.fault == 0);
  CHECK(std::string(finding.rule) == "uninitialized-read");
  CHECK(std::string(finding.kernel) == "reads");
  CHECK(std::string(finding.statement) == "ld.shared.u32 %r3, [%r2];");
  CHECK(std::string(finding.file) == "reads.ptx");
  CHECK(finding.line == 17);
  CHECK(finding.block[0] == 32);
  CHECK(finding.grid[0] == 1);
  CHECK(std::string(finding.text).starts_with("reads.ptx:17: error: "));
  std::uint64_t errors = 9;
  std::uint64_t warnings = 9;
  good(ptxgen_device_count_findings(setup.device, &errors, &warnings, nullptr));
  CHECK(errors == 1);
  CHECK(warnings == 0);
  ptxgen_finding beyond{};
  beyond.struct_bytes = sizeof beyond;
  CHECK(ptxgen_findings_get(list, 1, &beyond) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(list) == "index is 1; the list has 1 findings");
  good(ptxgen_device_clear_findings(setup.device));
  good(ptxgen_device_count_findings(setup.device, &errors, nullptr, nullptr));
  CHECK(errors == 0);
  CHECK(ptxgen_findings_count(list) == 1);  // as it was when it was made
  CHECK(ptxgen_findings_count(nullptr) == 0);
}

TEST_CASE("a callback gets every finding before the wait returns") {
  Setup setup;
  struct Seen {
    ptxgen_device* device = nullptr;
    std::vector<std::string> rules;
    ptxgen_status inside = PTXGEN_OK;
  } seen;
  seen.device = setup.device;
  good(ptxgen_device_on_finding(
      setup.device,
      [](void* user, const ptxgen_finding* finding) {
        auto& to = *static_cast<Seen*>(user);
        to.rules.emplace_back(finding->rule);
        to.inside = ptxgen_device_synchronize(to.device);  // would wait for itself
      },
      &seen));
  setup.launch();
  setup.launch();
  good(ptxgen_stream_synchronize(setup.stream));
  CHECK(seen.rules == std::vector<std::string>{"uninitialized-read", "uninitialized-read"});
  CHECK(seen.inside != PTXGEN_OK);
  good(ptxgen_device_on_finding(setup.device, nullptr, nullptr));
  setup.launch();
  good(ptxgen_stream_synchronize(setup.stream));
  CHECK(seen.rules.size() == 2);
}

TEST_CASE("strict: the next call that waits returns the finding") {
  Setup setup(true);
  setup.launch();
  CHECK(ptxgen_stream_synchronize(setup.stream) == PTXGEN_ERROR_LAUNCH);
  CHECK(error_code(setup.stream) == "uninitialized-read");
  CHECK(error_text(setup.stream).find("kernel reads") != std::string::npos);
  good(ptxgen_stream_synchronize(setup.stream));
  std::int32_t poisoned = 1;
  good(ptxgen_device_poisoned(setup.device, &poisoned));
  CHECK(poisoned == 0);
}
