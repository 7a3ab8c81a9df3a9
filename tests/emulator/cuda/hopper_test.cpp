// tests/emulator/cuda/hopper_test.cpp - tensor copies, tensor maps and wgmma of nvcc
#include "cuda_case.hpp"
#include "emulator/state/tensor_map.hpp"
#include "numbers.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

struct alignas(64) Map {
  std::byte bytes[emulator::kTensorMapBytes];
};

/// Rows of k f16, boxes of 64 x 64 with the 128-byte swizzle.
Map map_of(const Buffer<std::uint16_t>& buffer, std::size_t rows, std::size_t k) {
  emulator::TensorMap map;
  map.type = ptx::Type::f16;
  map.rank = 2;
  map.swizzle_bytes = 128;
  map.address = buffer.address;
  map.dims = {k, rows};
  map.strides = {2, 2 * k};
  map.box = {64, 64};
  map.steps = {1, 1};
  Map result;
  map.pack(std::span<std::byte, emulator::kTensorMapBytes>(result.bytes));
  return result;
}

}  // namespace

TEST_CASE("cuda: matrix product of tensor copies and wgmma in a ring of stages") {
  run_case({"gemm_wgmma.cu", 90, true}, [](CudaRun& run) {
    const std::size_t m = 128, n = 64, k = 448;
    const auto a = run.dice.integers<float>(m * k, -4, 4);
    const auto b = run.dice.integers<float>(n * k, -4, 4);
    std::vector<std::uint16_t> half_a, half_b;
    for (const float value : a) half_a.push_back(half_bits(value));
    for (const float value : b) half_b.push_back(half_bits(value));
    const auto out = run.output<float>(m * n);
    run.launch("gemm_wgmma", {2}, {160}, map_of(run.input(half_a), m, k),
               map_of(run.input(half_b), n, k), out, static_cast<int>(n), static_cast<int>(k));
    std::vector<float> expected(m * n);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t l = 0; l < k; ++l) expected[i * n + j] += a[i * k + l] * b[j * k + l];
      }
    }
    run.check_equal(out, expected);
  });
}

TEST_CASE("cuda: one tensor map that is changed for each of several tensors") {
  run_case({"tensor_maps.cu", 90, true}, [](CudaRun& run) {
    const std::vector<int> rows = {5, 16, 40, 1, 33, 17, 2};
    std::vector<int> starts = {0};
    std::vector<std::uint64_t> tensors;
    std::vector<float> expected;
    for (const int count : rows) {
      const auto values = run.dice.integers<float>(static_cast<std::size_t>(count) * 32, -9, 9);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i % 32 == 0) expected.push_back(0);
        expected.back() += values[i];
      }
      tensors.push_back(run.input(values).address);
      starts.push_back(starts.back() + count);
    }
    emulator::TensorMap map;
    map.type = ptx::Type::f32;
    map.rank = 2;
    map.address = tensors[0];
    map.dims = {32, 1};
    map.strides[0] = 4;
    map.strides[1] = 128;
    map.box = {32, 16};
    map.steps = {1, 1};
    Map first;
    map.pack(std::span<std::byte, emulator::kTensorMapBytes>(first.bytes));
    const unsigned blocks = 3;
    const auto sums = run.output<float>(expected.size());
    run.launch("row_sums", {blocks}, {64}, first, run.output<Map>(blocks), run.input(tensors),
               run.input(starts), static_cast<int>(rows.size()), sums);
    run.check_equal(sums, expected);
  });
}
