// tests/launcher/typed_launch_test.cpp - launches and plans with typed arguments
#include <catch2/catch.hpp>

#include "launcher/rig.hpp"
#include "ptxgen/builder.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr LaunchGeometry kOneBlock{.grid = {1, 1, 1}, .block = {32, 1, 1}};

auto saxpy_kernel(std::string_view name = "saxpy") {
  return build_kernel(
      name, "sm_80",
      params(param<Ptr<f32>>("y"), param<Ptr<f32>>("x"), param<f32>("a"), param<u32>("n")),
      [](KernelBuilder& k, Ptr<f32> y, Ptr<f32> x, Value<f32> a, Value<u32> n) {
        const Value<u32> i = k.tid_x();
        k.if_(i < n, [&] {
          const Value<f32> old = y[i];
          const Value<f32> in = x[i];
          y[i] = fma(a, in, old);
        });
      });
}

struct Saxpy {
  Rig rig;
  Buffer<f32> y{rig.context, std::vector<float>{1, 2, 3}};
  Buffer<f32> x{rig.context, std::vector<float>{10, 20, 30}};
};

// What others print: a structure, integers without a sign, pointers that are numbers.
constexpr std::string_view kForeign = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry foreign(.param .u64 out, .param .u32 n, .param .f32 a, .param .align 8 .b8 pair[16])
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  .reg .f32 %f<2>;
  ld.param.u64 %rd0, [out];
  cvta.to.global.u64 %rd1, %rd0;
  ld.param.u32 %r0, [n];
  ld.param.f32 %f0, [a];
  ld.param.u32 %r1, [pair+8];
  st.global.u32 [%rd1], %r0;
  st.global.f32 [%rd1+4], %f0;
  st.global.u32 [%rd1+8], %r1;
  ret;
}
)";

struct Pair {
  std::uint64_t first;
  std::uint32_t second;
  std::uint32_t rest;
};

}  // namespace

TEST_CASE("a kernel is launched with buffers and scalars, without an argument block") {
  Saxpy s;
  const auto kernel = saxpy_kernel();
  const LaunchRecord record =
      s.rig.launcher.launch(kernel, kOneBlock, s.rig.stream, s.y, s.x, 0.5f, 3u);
  CHECK(record.kernel == "saxpy");
  CHECK(record.geometry == kOneBlock);
  CHECK(read(s.y) == std::vector<float>{6, 12, 18});
  // Spans and bare addresses are the same memory.
  const DeviceSpan<f32> span = s.x;
  s.rig.launcher.launch(kernel, kOneBlock, s.rig.stream, s.y.address(), span, 1.0f, 2u);
  CHECK(read(s.y) == std::vector<float>{16, 32, 18});
  const Error odd = error_of([&] {
    s.rig.launcher.launch(kernel, kOneBlock, s.rig.stream,
                          DeviceAddress<f32>{s.y.address().value + 2}, s.x, 1.0f, 2u);
  });
  CHECK(odd.code == "misaligned");
}

TEST_CASE("a loaded kernel keeps its types and needs no lookup") {
  Saxpy s;
  const auto loaded = s.rig.launcher.load(saxpy_kernel());
  const auto before = s.rig.launcher.cache().statistics();
  s.rig.launcher.launch(loaded, kOneBlock, s.rig.stream, s.y, s.x, 0.5f, 3u);
  loaded.launch(s.rig.stream, kOneBlock, s.y, s.x, 0.5f, 3u);
  CHECK(read(s.y) == std::vector<float>{11, 22, 33});
  const auto after = s.rig.launcher.cache().statistics();
  CHECK(after.hits == before.hits);
  CHECK(after.misses == before.misses);
}

TEST_CASE("plans and graphs are frozen from typed arguments") {
  Saxpy s;
  const auto kernel = saxpy_kernel();
  const auto loaded = s.rig.launcher.load(kernel);
  const LaunchPlan by_kernel =
      s.rig.launcher.plan(kernel, kOneBlock, s.rig.stream, s.y, s.x, 0.5f, 3u);
  const LaunchPlan by_loaded =
      s.rig.launcher.plan(loaded, kOneBlock, s.rig.stream, s.y, s.x, 0.5f, 3u);
  const LaunchPlan by_function =
      s.rig.launcher.plan(loaded.function(), kOneBlock, s.rig.stream, s.y, s.x, 0.5f, 3u);
  by_kernel.launch();
  by_loaded.launch();
  by_function.launch();
  CHECK(by_function.record().kernel == "saxpy");
  CHECK(read(s.y) == std::vector<float>{16, 32, 48});
  s.rig.stream.begin_capture();
  s.rig.launcher.launch(kernel, kOneBlock, s.rig.stream, s.y, s.x, 1.0f, 3u);
  s.rig.launcher.launch(loaded, kOneBlock, s.rig.stream, s.y, s.x, 1.0f, 3u);
  const Graph graph = s.rig.stream.end_capture();
  CHECK(graph.nodes() == 2);
  graph.launch(s.rig.stream);
  CHECK(read(s.y) == std::vector<float>{36, 72, 108});
}

TEST_CASE("a plan of a function outlives launcher cache and function") {
  Saxpy s;
  const LaunchPlan plan = [&] {
    const Function function = s.rig.launcher.load(saxpy_kernel().module());
    return s.rig.launcher.plan(function, kOneBlock, s.rig.stream, s.y, s.x, 0.5f, 3u);
  }();
  s.rig.launcher.cache().clear();
  plan.launch();
  CHECK(read(s.y) == std::vector<float>{6, 12, 18});
}

TEST_CASE("functions of others are checked against their PTX when they are launched") {
  Rig rig;
  const Function function = rig.launcher.load(kForeign);
  REQUIRE(function.signature() != nullptr);
  CHECK(function.signature()->parameters.size() == 4);
  const Buffer<b32> out(rig.context, std::vector<std::uint32_t>{0, 0, 0});
  const Pair pair{1, 7, 0};
  const LaunchRecord record =
      rig.launcher.launch(function, kOneBlock, rig.stream, out, -1, 0.5f, pair);
  CHECK(record.kernel == "foreign");
  CHECK(read(out) == std::vector<std::uint32_t>{0xffffffff, 0x3f000000, 7});
  const auto message = [&](const auto&... arguments) {
    const Error error =
        error_of([&] { rig.launcher.launch(function, kOneBlock, rig.stream, arguments...); });
    CHECK(error.code == "arguments");
    CHECK(error.kernel == "foreign");
    return error.message;
  };
  CHECK(
      message(out, 1u, 0.5f) ==
      "3 arguments were given, foreign has 4 parameters: .u64 out, .u32 n, .f32 a, 16 bytes pair");
  CHECK(message(out, 1u, 0.5, pair) == "argument 3 (parameter a) has 8 bytes, .f32 takes 4");
  CHECK(message(out, 1u, 1u, pair) ==
        "argument 3 (parameter a) is an integer, the kernel takes .f32");
  CHECK(message(out, 1.0f, 0.5f, pair) ==
        "argument 2 (parameter n) is a float, the kernel takes .u32");
  CHECK(message(out, out, 0.5f, pair) == "argument 2 (parameter n) has 8 bytes, .u32 takes 4");
}

TEST_CASE("a built kernel without its type is checked for elements, too") {
  Saxpy s;
  const BuiltKernel kernel = saxpy_kernel();
  s.rig.launcher.launch(kernel, kOneBlock, s.rig.stream, s.y, s.x, 0.5f, 3u);
  s.rig.launcher.plan(kernel, kOneBlock, s.rig.stream, s.y, s.x, 0.5f, 3u).launch();
  CHECK(read(s.y) == std::vector<float>{11, 22, 33});
  const Buffer<u32> other(s.rig.context, 3);
  const Error error = error_of(
      [&] { s.rig.launcher.launch(kernel, kOneBlock, s.rig.stream, s.y, other, 0.5f, 3u); });
  CHECK(error.message ==
        "argument 2 (parameter x) is memory of .u32, the kernel takes .u64 (a pointer to .f32)");
}

TEST_CASE("a geometry can ask for a cooperative launch, in a plan as well") {
  Saxpy s;
  LaunchGeometry geometry = kOneBlock;
  geometry.cooperative = true;
  const auto kernel = saxpy_kernel();
  s.rig.launcher.launch(kernel, geometry, s.rig.stream, s.y, s.x, 0.5f, 3u);
  s.rig.launcher.plan(kernel, geometry, s.rig.stream, s.y, s.x, 0.5f, 3u).launch();
  CHECK(read(s.y) == std::vector<float>{11, 22, 33});
  geometry.grid = {1u << 30, 1, 1};
  const Error error =
      error_of([&] { s.rig.launcher.launch(kernel, geometry, s.rig.stream, s.y, s.x, 0.5f, 3u); });
  CHECK(error.code == "launch-limits");
}
