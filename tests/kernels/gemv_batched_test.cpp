// tests/kernels/gemv_batched_test.cpp - one matrix times several vectors
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "gemv_blocks_run.hpp"
#include "ptxgen/kernels/gemv/batched.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::byte kUntouched{0xa5};

GemvCase single_of(const BatchedGemv& spec, std::uint64_t seed) {
  GemvCase point;
  point.plan = spec.single();
  point.target = "sm_90";
  point.seed = seed;
  return point;
}

/// The matrix and m vectors, of which the first belongs to the matrix' seed.
struct Batch {
  Bytes w;
  std::vector<Bytes> x;
};
Batch random_batch(const BatchedGemv& spec) {
  Batch batch;
  for (std::uint32_t row = 0; row < spec.m; ++row) {
    const BlocksData data = make_blocks_data(single_of(spec, 7 + row), XValues::Normal);
    if (row == 0) batch.w = data.data.a;
    batch.x.push_back(data.data.x);
  }
  return batch;
}

// All rows of y, those beyond m_dim too.
Bytes run_batch(const BatchedGemv& spec, const Batch& batch, std::uint32_t m_dim) {
  emulator::Device device(emulator::gpu_named("h100"));
  const BuiltKernel kernel = spec.build(ptx::target(device.gpu().target));
  emulator::Program program = emulator::Program::load(device, kernel.module());
  Bytes all;
  for (std::uint32_t row = 0; row < m_dim; ++row) {
    all.insert(all.end(), batch.x[row].begin(), batch.x[row].end());
  }
  const std::uint64_t w = device.allocate(batch.w.size());
  device.write(w, batch.w);
  // No more than the rows of the launch: others must not be read.
  const std::uint64_t x = device.allocate(all.size());
  device.write(x, all);
  Bytes y(std::size_t{spec.m} * spec.n * bytes(spec.y));
  const std::uint64_t y_at = device.allocate(y.size());
  device.fill(y_at, kUntouched, y.size());
  using Entry = Kernel<Ptr<b8>, Ptr<b8>, Ptr<b8>, u32>;
  const auto arguments =
      Entry::pack(DeviceAddress<b8>{y_at}, DeviceAddress<b8>{w}, DeviceAddress<b8>{x}, m_dim);
  const LaunchGeometry geometry = spec.geometry(device.gpu());
  emulator::Launch launch;
  launch.kernel = "batched_gemv";
  launch.grid = {geometry.grid.x, 1, 1};
  launch.block = {geometry.block.x, 1, 1};
  launch.dynamic_shared_bytes = geometry.dynamic_shared_bytes;
  launch.parameters = {arguments.data(), arguments.size()};
  emulator::Options options;
  options.checks = emulator::RuleSet::all();
  const emulator::Result result = emulator::run(program, launch, options);
  for (const emulator::RunFinding& finding : result.findings) {
    FAIL_CHECK(emulator::to_text(finding));
  }
  device.read(y_at, y);
  return y;
}

void check_batch(const BatchedGemv& spec, std::uint32_t m_dim) {
  INFO(to_string(spec.weights) << " x " << to_string(spec.x) << " " << spec.n << "x" << spec.k
                               << ", m " << spec.m << ", m_dim " << m_dim);
  const Batch batch = random_batch(spec);
  const Bytes y = run_batch(spec, batch, m_dim);
  const std::size_t row_bytes = std::size_t{spec.n} * bytes(spec.y);
  for (std::uint32_t row = 0; row < spec.m; ++row) {
    const auto begin = y.begin() + static_cast<std::ptrdiff_t>(row * row_bytes);
    const Bytes got(begin, begin + static_cast<std::ptrdiff_t>(row_bytes));
    if (row >= m_dim) {
      CHECK(std::all_of(got.begin(), got.end(), [](std::byte b) { return b == kUntouched; }));
      continue;
    }
    GemvData one;
    one.a = batch.w;
    one.x = batch.x[row];
    GemvRunner runner(single_of(spec, 0), one);
    const GemvOutcome outcome = runner.run();
    CHECK(outcome.findings == "");
    CHECK(outcome.y == got);
  }
}

}  // namespace

TEST_CASE("batched_gemv: each row has the bits of a GEMV of its own") {
  for (const std::uint32_t m : {1u, 2u, 3u, 4u, 7u, 8u, 16u}) {
    check_batch({.k = 1024, .n = 37, .m = m, .weights = ElementType::q4_k}, m);
    check_batch({.k = 1536, .n = 21, .m = m, .weights = ElementType::q6_k}, m);
  }
  check_batch({.k = 608, .n = 35, .m = 5, .weights = ElementType::q8_0, .x = ElementType::q8_1}, 5);
  check_batch({.k = 576, .n = 33, .m = 9, .weights = ElementType::q4_0, .x = ElementType::f16}, 9);
  check_batch({.k = 4099, .n = 11, .m = 6, .weights = ElementType::f32}, 6);
  check_batch({.k = 520, .n = 19, .m = 8, .weights = ElementType::bf16, .x = ElementType::bf16}, 8);
}

TEST_CASE("batched_gemv: fewer rows than the code serves; the others stay as they are") {
  for (const std::uint32_t m_dim : {1u, 5u, 8u, 9u}) {
    check_batch({.k = 1280, .n = 21, .m = 11, .weights = ElementType::q5_k}, m_dim);
    check_batch({.k = 515, .n = 9, .m = 11, .weights = ElementType::f16}, m_dim);
  }
}

TEST_CASE("batched_gemv: more rows than the code serves are refused") {
  const BatchedGemv spec{.k = 256, .n = 4, .m = 3};
  for (const std::uint32_t m_dim : {0u, 4u}) {
    BatchedGemv::Operands operands;
    operands.m_dim = m_dim;
    try {
      Describe<BatchedGemv>::check(spec, operands);
      FAIL("it was accepted");
    } catch (const Error& error) {
      CHECK(error.code == "arguments");
      CHECK(error.message == "m_dim is " + std::to_string(m_dim) +
                                 "; the kernel was built for 1 to 3 rows: build it with a larger "
                                 "m, or launch it for fewer rows at a time");
    }
  }
}

}  // namespace ptxgen::test
