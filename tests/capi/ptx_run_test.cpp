// tests/capi/ptx_run_test.cpp - launches on host memory, as mock GPUs make them
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "capi/capi.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

using namespace ptxgen::test;

namespace {

/// Adds `n` to the element of each thread at `y`, `stride` elements apart; reads element 0 of `x`.
constexpr const char* kAdd = R"(.version 7.5
.target sm_35
.address_size 64
.visible .entry add(.param .u64 y, .param .u64 x, .param .s32 n, .param .u64 stride)
{
  .reg .b64 %rd<6>;
  .reg .b32 %r<6>;
  ld.param.u64 %rd0, [y];
  ld.param.u64 %rd1, [x];
  ld.param.s32 %r0, [n];
  ld.param.u64 %rd2, [stride];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r1, %r2, %r3, %r1;
  cvt.u64.u32 %rd3, %r1;
  mul.lo.u64 %rd3, %rd3, %rd2;
  shl.b64 %rd3, %rd3, 2;
  add.u64 %rd3, %rd0, %rd3;
  ld.global.s32 %r4, [%rd3];
  ld.global.s32 %r5, [%rd1];
  add.s32 %r4, %r4, %r0;
  add.s32 %r4, %r4, %r5;
  st.global.s32 [%rd3], %r4;
  ret;
}
)";

void* value_of(std::uint64_t number) { return reinterpret_cast<void*>(number); }

/// Runs kAdd; true without an error.
bool run_add(void* y, void* x, int n, std::uint64_t stride, int blocks, int threads) {
  void* const args[] = {y, x, value_of(static_cast<std::uint64_t>(n)), value_of(stride)};
  // An error of its own marks the slot: a success leaves it.
  ptxgen_device_get_info(nullptr, nullptr);
  const std::string marked = error_text(nullptr);
  ptx_run(kAdd, 4, args, threads, 1, 1, blocks, 1, 1, 0);
  return error_text(nullptr) == marked;
}

}  // namespace

TEST_CASE("a kernel reads and writes vectors of the caller") {
  std::vector<std::int32_t> y(300);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int32_t>(i);
  std::int32_t x = 1000;
  REQUIRE(run_add(y.data(), &x, -5, 1, 2, 128));
  for (std::size_t i = 0; i < y.size(); ++i) {
    CHECK(y[i] == static_cast<std::int32_t>(i) + (i < 256 ? 995 : 0));
  }
  CHECK(x == 1000);
}

TEST_CASE("pointers into one allocation see each other's writes, and offsets may be far") {
  // 40 MiB: threads 2 Mi elements apart leave the first windows, which then grow.
  constexpr std::size_t kStride = 2 << 20;
  std::vector<std::int32_t> y(kStride * 5, 7);
  REQUIRE(run_add(y.data(), y.data() + y.size() - 1, 1, kStride, 1, 5));
  for (std::size_t i = 0; i < 5; ++i) CHECK(y[i * kStride] == 15);
  CHECK(y[1] == 7);
  CHECK(y.back() == 7);
}

TEST_CASE("what is no memory is a finding, and nothing is written then") {
  std::int32_t y = 3;
  CHECK_FALSE(run_add(&y, nullptr, 1, 0, 1, 1));
  CHECK(error_code(nullptr) == "invalid-address");
  CHECK(error_text(nullptr).find("kernel add") != std::string::npos);
}

TEST_CASE("calls that cannot run say why") {
  ptx_run(nullptr, 0, nullptr, 1, 1, 1, 1, 1, 1, 0);
  CHECK(error_message(nullptr) == "ptx is NULL");
  ptx_run(kAdd, 0, nullptr, 1, 1, 1, 1, 1, 1, 0);
  CHECK(error_message(nullptr) == "nargs is 0; the kernel has 4 parameters");
  ptx_run(kAdd, -1, nullptr, 1, 1, 1, 1, 1, 1, 0);
  CHECK(error_message(nullptr) == "nargs is -1 and smem 0; both are at least 0");
  ptx_run(kAdd, 0, nullptr, 0, 1, 1, 1, 1, 1, 0);
  CHECK(error_message(nullptr) == "the block is 0 x 1 x 1; each is at least 1");
  ptx_run("nonsense", 0, nullptr, 1, 1, 1, 1, 1, 1, 0);
  CHECK(error_code(nullptr) == "syntax");
  ptx_run(kSaxpy, 0, nullptr, 1, 1, 1, 1, 1, 1, 0);
  CHECK(error_message(nullptr) == "the program has several kernels; name one of saxpy, fault");
}

TEST_CASE("threads may run kernels at the same time") {
  std::vector<std::vector<std::int32_t>> outputs(4, std::vector<std::int32_t>(64, 1));
  std::vector<std::thread> threads;
  std::int32_t x = 0;
  for (auto& y : outputs) {
    threads.emplace_back([&y, &x] {
      for (int i = 0; i < 3; ++i) {
        void* const args[] = {y.data(), &x, value_of(2), value_of(1)};
        ptx_run(kAdd, 4, args, 64, 1, 1, 1, 1, 1, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& y : outputs) CHECK(y == std::vector<std::int32_t>(64, 7));
}

#if defined(__linux__)
TEST_CASE("read-only memory is refused before anything is written to it") {
  constexpr std::size_t kBytes = 4096;
  void* const page = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  std::int32_t x = 1;
  CHECK_FALSE(run_add(page, &x, 1, 0, 1, 1));
  CHECK(error_code(nullptr) == "host-memory");
  CHECK(error_message(nullptr).find("which is read-only") != std::string::npos);
  munmap(page, kBytes);
}
#endif
