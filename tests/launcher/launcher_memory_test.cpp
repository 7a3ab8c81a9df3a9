// tests/launcher/launcher_memory_test.cpp - ten thousand launches, not one byte
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "launcher/rig.hpp"
#include "ptxgen/kernels.hpp"

namespace {
std::atomic<std::uint64_t> allocated{0};
std::atomic<std::uint64_t> freed{0};
}  // namespace

void* operator new(std::size_t bytes) {
  ++allocated;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  freed += memory != nullptr;
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  freed += memory != nullptr;
  std::free(memory);
}

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::atomic<std::uint64_t> launches{0};

driver::CUresult launch_nothing(driver::CUfunction, unsigned, unsigned, unsigned, unsigned,
                                unsigned, unsigned, unsigned, driver::CUstream, void**, void**) {
  ++launches;
  return driver::CUDA_SUCCESS;
}

// What has clusters goes this way.
driver::CUresult launch_nothing_ex(const driver::CUlaunchConfig*, driver::CUfunction, void**,
                                   void**) {
  ++launches;
  return driver::CUDA_SUCCESS;
}

// Waits until the threads that are still starting have what they need.
void settle() {
  for (std::uint64_t before = ~std::uint64_t{0}; before != allocated + freed;) {
    before = allocated + freed;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// Calls of `launch` allocate and free nothing, in any thread of the process.
template <class Launch>
void check_idle(const Launch& launch) {
  constexpr int kCalls = 10000;
  launch();
  settle();
  const std::uint64_t launches_before = launches;
  const std::uint64_t allocated_before = allocated;
  const std::uint64_t freed_before = freed;
  for (int i = 0; i < kCalls; ++i) launch();
  const std::uint64_t allocations = allocated - allocated_before;
  const std::uint64_t frees = freed - freed_before;
  CHECK(launches - launches_before == kCalls);
  CHECK(allocations == 0);
  CHECK(frees == 0);
}

}  // namespace

TEST_CASE("ten thousand launches of what is loaded allocate nothing") {
  driver::Table table = driver::emulated::table();
  table.launch_kernel = launch_nothing;
  table.launch_kernel_ex = launch_nothing_ex;
  Rig rig(plain_options(), table);
  const Buffer<f32> y(rig.context, 50);
  const Buffer<f32> a(rig.context, 2000);
  const Buffer<f32> x(rig.context, 40);
  const LaunchPlan plan =
      rig.launcher.plan(GemvProblem{.k = 40, .n = 50}, {.y = y, .a = a, .x = x}, rig.stream);
  const std::uint64_t modules = rig.launcher.cache().statistics().modules;
  SECTION("gemv") {
    check_idle([&] { rig.launcher.gemv(y, a, x, 40, 50, rig.stream); });
  }
  SECTION("gemv that splits its sums") {
    GemvProblem problem;
    problem.k = 100000;
    problem.n = 8;
    problem.layout = GemvLayout::R;
    REQUIRE(rig.launcher.gemv_plan(problem).value().workspace_bytes() > 0);
    const Buffer<f32> few(rig.context, 8);
    const Buffer<f32> weights(rig.context, 800000);
    const Buffer<f32> many(rig.context, 100000);
    GemvOperands operands;
    operands.y = few;
    operands.a = weights;
    operands.x = many;
    check_idle([&] { rig.launcher.launch(problem, operands, rig.stream); });
    return;
  }
  SECTION("matmul with one row") {
    check_idle([&] { rig.launcher.matmul(y, x, a, {.m = 1, .k = 40, .n = 50}, rig.stream); });
  }
  SECTION("plan") {
    check_idle([&] { plan.launch(); });
  }
  SECTION("vadd") {
    const DeviceSpan<f32> all = a;
    check_idle(
        [&] { rig.launcher.launch(Vadd{.n = 2000}, {.c = all, .a = all, .b = all}, rig.stream); });
    CHECK(rig.launcher.cache().statistics().modules == modules + 1);
    return;
  }
  CHECK(rig.launcher.cache().statistics().modules == modules);
}
