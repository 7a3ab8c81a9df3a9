// tests/functional/errors_test.cpp - F5: errors, and that what follows them is right
#include <catch2/catch.hpp>

#include "functional/gemv_cases.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using namespace ptxgen::functional;

namespace {

template <class Work>
std::string code_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.code;
  }
  return "no error";
}

// A kernel that stores where no memory is.
BuiltKernel wild_store(const ptx::Target& target) {
  return build_kernel("wild_store", target.name, params(param<Ptr<f32>>("out")),
                      [](KernelBuilder&, Ptr<f32> out) { out[0] = 1.0f; });
}

}  // namespace

TEST_CASE("F5: after a refused call the next one is right") {
  on_every_place([](Place& place) {
    const Problem problem = random_problem({20, 30}, 31);
    const Buffer<f32> y(place.context, 30);
    const Buffer<f32> a(place.context, problem.a);
    const Buffer<f32> x(place.context, problem.x);
    const DeviceSpan<f32> whole_x = x;
    const auto gemv = [&](DeviceSpan<f32> out, DeviceSpan<f32> matrix, DeviceSpan<f32> vector,
                          std::uint32_t k, std::uint32_t n) {
      return code_of([&] { place.launcher.gemv(out, matrix, vector, k, n, place.stream); });
    };
    CHECK(gemv({}, a, x, 20, 30) == "null-pointer");
    CHECK(gemv(y, {}, x, 20, 30) == "null-pointer");
    CHECK(gemv(y, a, whole_x.subspan(0, 19), 20, 30) == "buffer-size");
    CHECK(gemv(y, a, x, 20, 31) == "buffer-size");
    CHECK(gemv(y, a, x, 20, 0) == "empty-grid");
    CHECK(gemv(whole_x, a, x, 20, 20) == "aliasing");
    CHECK(gemv({{y.address().value + 2}, 29}, a, x, 20, 29) == "misaligned");
    const auto kernel = wild_store(place.device.target());
    const std::uint64_t address = y.address().value;
    CHECK(code_of([&] {
            place.launcher.launch(kernel, {.grid = {1, 1, 1}, .block = {4096, 1, 1}},
                                  std::as_bytes(std::span(&address, 1)), place.stream);
          }) == "launch-limits");
    place.stream.synchronize();
    CHECK_FALSE(place.context.poisoned());
    check_everywhere(place, problem);
  });
}

TEST_CASE("F5: a fault poisons the context, and a new one after a reset works") {
  for (const std::string& name : places()) {
    INFO("device " << name);
    {
      Place place(name);
      const Buffer<f32> before(place.context, 16);
      const auto kernel = wild_store(place.device.target());
      const std::uint64_t nowhere = 64;
      place.launcher.launch(kernel, {.grid = {1, 1, 1}, .block = {1, 1, 1}},
                            std::as_bytes(std::span(&nowhere, 1)), place.stream);
      try {
        place.stream.synchronize();
        FAIL_CHECK("the store to nowhere was not noticed");
      } catch (const Error& error) {
        CHECK(error.code == "device-fault");
        CHECK(error.driver_status == driver::CUDA_ERROR_ILLEGAL_ADDRESS);
        if (place.emulated()) CHECK(error.log.find("wild_store") != std::string::npos);
      }
      CHECK(place.context.poisoned());
      CHECK(code_of([&] { (void)Buffer<f32>(place.context, 16); }) == "context-lost");
      CHECK(code_of([&] { place.stream.synchronize(); }) == "context-lost");
      CHECK(code_of([&] {
              place.launcher.launch(Vadd{.n = 16}, {.c = before, .a = before, .b = before},
                                    place.stream);
            }) == "context-lost");
    }
    Context::reset(Device::open(name));
    Place fresh(name);
    check_everywhere(fresh, random_problem({100, 50}, 32));
  }
}
