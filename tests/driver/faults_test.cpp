// tests/driver/faults_test.cpp - kernels that fail: codes, logs, the poisoned context
#include <array>
#include <atomic>

#include "emulated_context.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;
using Catch::Contains;
using ptxgen::test::EmulatedContext;
using ptxgen::test::ptx_module;

namespace {

const std::string kKernels = ptx_module(R"(
.const .align 4 .b32 constant = 3;
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 message[6] = {105, 32, 60, 32, 110, 0};
.visible .entry beyond(.param .u64 p) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1+2162688], 1;
  ret;
}
.visible .entry past_end(.param .u64 p) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1+1572868], 5;
  ld.global.u32 %r1, [%rd1+1572868];
  add.u32 %r2, %r1, 1;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry past_shared(.param .u64 p) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  .shared .align 4 .b8 tile[64];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, tile;
  st.shared.u32 [%r1+64], 5;
  ld.shared.u32 %r2, [%r1+124];
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry far_shared(.param .u64 p) {
  .reg .b32 %r<2>;
  .shared .align 4 .b8 far_tile[64];
  mov.u32 %r1, far_tile;
  st.shared.u32 [%r1+128], 5;
  ret;
}
.visible .entry nothing(.param .u64 p) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 0;
  ld.global.u32 %r1, [%rd1];
  ret;
}
.visible .entry crooked(.param .u64 p) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1+2], 1;
  ret;
}
.visible .entry stops(.param .u64 p) { trap; }
.visible .entry readonly(.param .u64 p) {
  .reg .b64 %rd<2>;
  mov.u64 %rd1, constant;
  cvta.const.u64 %rd1, %rd1;
  st.u32 [%rd1], 1;
  ret;
}
.visible .entry asserts(.param .u64 p) {
  .reg .b64 %rd<2>;
  .param .b64 a;
  .param .b64 b;
  .param .b32 c;
  .param .b64 d;
  .param .b64 e;
  mov.u64 %rd1, message;
  cvta.global.u64 %rd1, %rd1;
  st.param.b64 [a], %rd1;
  st.param.b64 [b], %rd1;
  st.param.b32 [c], 12;
  st.param.b64 [d], %rd1;
  st.param.b64 [e], 1;
  call __assertfail, (a, b, c, d, e);
  ret;
}
.visible .entry forever(.param .u64 p) {
loop:
  bra loop;
}
.visible .entry waits(.param .u64 p) {
  .reg .b32 %r<2>;
  .reg .pred %p<2>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bar.sync 1, 64;
  @!%p1 bar.sync 2, 64;
  ret;
}
.visible .entry races(.param .u64 p) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  .shared .align 4 .b32 cell;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  st.shared.u32 [cell], %r1;
  ld.shared.u32 %r2, [cell];
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry sums(.param .u64 p) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [%rd1];
  mov.u32 %r2, %tid.x;
  add.u32 %r1, %r1, %r2;
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry same(.param .u64 p) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1], 7;
  ret;
}
.visible .entry grid(.param .u64 p) {
  .reg .pred %q<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  mov.u32 %r1, %envreg2;
  mov.u32 %r2, %envreg1;
  mov.b64 %rd1, {%r1, %r2};
  setp.ne.s64 %q1, %rd1, 0;
  @%q1 bra there;
  trap;
there:
  ret;
}
.visible .entry fine(.param .u64 p) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1], 9;
  ret;
}
)");

struct Seen {
  std::atomic<int> launches{0};
  std::string kernel;
  CUresult fault = CUDA_SUCCESS;
  std::size_t findings = 0;
};
void observe(void* user, const emulated::LaunchReport& launch) {
  auto& seen = *static_cast<Seen*>(user);
  seen.kernel = launch.kernel;
  seen.fault = launch.fault;
  seen.findings = launch.result.findings.size();
  ++seen.launches;
}

struct Fixture {
  EmulatedContext gpu;
  Seen seen;
  CUmodule module = nullptr;
  CUdeviceptr memory = 0;

  Fixture() {
    module = gpu.load(kKernels);
    memory = gpu.allocate(1572864);  // ends in the first page of 2 MiB
    REQUIRE(emulated::observe_launches(gpu.context, observe, &seen) == CUDA_SUCCESS);
    emulator::Options options = emulated::default_options();
    options.max_instructions = 10000;
    REQUIRE(emulated::set_launch_options(gpu.context, options) == CUDA_SUCCESS);
  }
  CUresult run(const char* kernel, unsigned threads = 1) {
    std::array<void*, 1> parameters{&memory};
    const CUresult queued = gpu.api.launch_kernel(gpu.function(module, kernel), 1, 1, 1, threads, 1,
                                                  1, 0, nullptr, parameters.data(), nullptr);
    return queued != CUDA_SUCCESS ? queued : gpu.api.ctx_synchronize();
  }
};

void check_fault(const char* kernel, CUresult code, const char* words, unsigned threads = 1) {
  INFO(kernel);
  Fixture f;
  REQUIRE(f.run("fine") == CUDA_SUCCESS);
  CHECK(f.run(kernel, threads) == code);
  const std::string log = f.gpu.log();
  CHECK_THAT(log, Contains("E ") && Contains(words));
  CHECK_THAT(log, Contains("in a launch of kernel '" + std::string(kernel) + "', grid (1,1,1)"));
  CHECK_THAT(log, Contains("cannot be used any more: " + result_name(code)));
  CHECK(f.seen.launches == 2);
  CHECK(f.seen.kernel == kernel);
  CHECK(f.seen.fault == code);
  // The context is poisoned, for calls of every kind.
  CHECK(f.gpu.api.ctx_synchronize() == code);
  CUmodule module = nullptr;
  CHECK(f.gpu.api.module_load_data(&module, kKernels.c_str()) == code);
  CHECK(f.gpu.api.module_unload(f.module) == code);
  CUdeviceptr address = 0;
  CHECK(f.gpu.api.mem_alloc(&address, 4) == code);
  // Another context is not.
  Fixture fresh;
  CHECK(fresh.run("fine") == CUDA_SUCCESS);
}

}  // namespace

TEST_CASE("faults: a sum by all threads without an atomic is logged unasked, and no fault") {
  Fixture f;
  const std::array<std::uint32_t, 64> zeros{};
  REQUIRE(f.gpu.api.memcpy_to_device(f.memory, zeros.data(), sizeof zeros) == CUDA_SUCCESS);
  CHECK(f.run("sums", 64) == CUDA_SUCCESS);
  CHECK(f.seen.findings >= 1);
  const std::string log = f.gpu.log();
  CHECK_THAT(log,
             Contains("[global-race]") && Contains("let one thread write it, or use an atomic"));
  CHECK_THAT(log, Contains("in a launch of kernel 'sums', grid (1,1,1), block (64,1,1)"));
}

TEST_CASE("faults: a note is a finding of the launch, and not in the log") {
  Fixture f;
  CHECK(f.run("same", 64) == CUDA_SUCCESS);
  CHECK(f.seen.findings == 1);
  CHECK(f.gpu.log().empty());
}

TEST_CASE("faults: a barrier of the grid needs a cooperative launch") {
  Fixture f;
  std::array<void*, 1> parameters{&f.memory};
  const CUfunction grid = f.gpu.function(f.module, "grid");
  REQUIRE(f.gpu.api.launch_cooperative_kernel(grid, 2, 1, 1, 32, 1, 1, 0, nullptr,
                                              parameters.data()) == CUDA_SUCCESS);
  CHECK(f.gpu.api.ctx_synchronize() == CUDA_SUCCESS);
  CHECK(f.gpu.log().empty());
  CHECK(f.run("grid") == CUDA_ERROR_LAUNCH_FAILED);
  CHECK_THAT(f.gpu.log(), Contains("its grid barrier (grid.sync) has no workspace "
                                   "because the launch is not cooperative"));
}

TEST_CASE("fault: out of bounds is 700, with the sanitizer's words") {
  check_fault("beyond", CUDA_ERROR_ILLEGAL_ADDRESS, "[out-of-bounds]");
}
TEST_CASE("fault: beyond a block's shared memory is 700") {
  check_fault("far_shared", CUDA_ERROR_ILLEGAL_ADDRESS, "[out-of-bounds]");
}

TEST_CASE("an access in a mapped page or the block's granule is a finding and no fault") {
  for (const char* kernel : {"past_end", "past_shared"}) {
    INFO(kernel);
    Fixture f;
    CHECK(f.run(kernel) == CUDA_SUCCESS);
    const std::string log = f.gpu.log();
    CHECK_THAT(log, Contains("E ") && Contains("[out-of-bounds]"));
    CHECK_THAT(log, !Contains("cannot be used any more"));
    CHECK(f.seen.fault == CUDA_SUCCESS);
    CHECK(f.seen.findings > 0);
    // What was stored there is there.
    std::uint32_t value = 0;
    REQUIRE(f.gpu.api.memcpy_to_host(&value, f.memory, 4) == CUDA_SUCCESS);
    CHECK(value == (kernel == std::string_view("past_end") ? 6 : 0));
    CHECK(f.run("fine") == CUDA_SUCCESS);

    Fixture strict;
    emulator::Options options = emulated::default_options();
    CHECK(options.mapped_pages);
    options.mapped_pages = false;
    REQUIRE(emulated::set_launch_options(strict.gpu.context, options) == CUDA_SUCCESS);
    CHECK(strict.run(kernel) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_THAT(strict.gpu.log(), Contains("cannot be used any more"));
  }
}

TEST_CASE("fault: a null pointer is 700") {
  check_fault("nothing", CUDA_ERROR_ILLEGAL_ADDRESS, "a null pointer [invalid-address]");
}
TEST_CASE("fault: constant memory is 700 to write") {
  check_fault("readonly", CUDA_ERROR_ILLEGAL_ADDRESS, "[write-to-readonly]");
}
TEST_CASE("fault: a misaligned address is 716") {
  check_fault("crooked", CUDA_ERROR_MISALIGNED_ADDRESS, "not a multiple of 4");
}
TEST_CASE("fault: trap is 719") { check_fault("stops", CUDA_ERROR_LAUNCH_FAILED, "[trap]"); }
TEST_CASE("fault: a failed assertion is 710") {
  check_fault("asserts", CUDA_ERROR_ASSERT, "assertion 'i < n' failed");
}
TEST_CASE("fault: an endless loop is 702") {
  check_fault("forever", CUDA_ERROR_LAUNCH_TIMEOUT, "[instruction-budget]");
}
TEST_CASE("fault: a barrier that cannot be completed is 702") {
  check_fault("waits", CUDA_ERROR_LAUNCH_TIMEOUT, "[barrier-deadlock]", 64);
}

TEST_CASE("fault: a race is logged as the error that it is, and poisons nothing") {
  Fixture f;
  CHECK(f.run("races", 64) == CUDA_SUCCESS);
  const std::string log = f.gpu.log();
  CHECK_THAT(log, Contains("E <module>:") && Contains("[shared-race]\n    st.shared.u32 [cell], "));
  CHECK_THAT(log, !Contains("the context cannot be used any more"));
  CHECK(f.seen.fault == CUDA_SUCCESS);
  CHECK(f.seen.findings > 0);
  CHECK(f.run("fine") == CUDA_SUCCESS);
}

TEST_CASE("fault: a finding names line, block and thread") {
  Fixture f;
  CHECK(f.run("beyond") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_THAT(f.gpu.log(), Contains("<module>:11: error: thread writes 4 bytes") &&
                              Contains("by thread (0,0,0) of block (0,0,0)"));
}

TEST_CASE("fault: every rule has a code, and only notes and races have none") {
  using emulator::Rule;
  for (const emulator::RuleInfo& row : emulator::rules()) {
    Rule rule{};
    REQUIRE(emulator::find_rule(row.name, rule));
    const CUresult code = emulated::fault_of(rule);
    INFO(row.name << " gives " << code);
    if (row.severity != Severity::Error) CHECK(code == CUDA_SUCCESS);
    CHECK((code == CUDA_SUCCESS || (code >= 700 && code < 800)));
  }
  CHECK(emulated::fault_of(Rule::StackOverflow) == CUDA_ERROR_HARDWARE_STACK_ERROR);
  CHECK(emulated::fault_of(Rule::UninitializedRead) == CUDA_SUCCESS);
}
