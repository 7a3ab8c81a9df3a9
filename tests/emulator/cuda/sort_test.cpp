// tests/emulator/cuda/sort_test.cpp - sorting networks, radix passes, selection, transposes
#include <algorithm>
#include <functional>
#include <numeric>

#include "cuda_case.hpp"
#include "numbers.hpp"

using namespace ptxgen::test;

namespace {

template <class T>
std::vector<T> sorted_rows(std::vector<T> values, std::size_t row) {
  for (auto first = values.begin(); first != values.end();
       first += static_cast<std::ptrdiff_t>(row))
    std::sort(first, first + static_cast<std::ptrdiff_t>(row));
  return values;
}

}  // namespace

TEST_CASE("cuda: bitonic networks") {
  run_case({"sort_bitonic.cu"}, [](CudaRun& run) {
    const std::size_t n = 2 * 512;
    std::vector<std::uint32_t> keys(n), values(n);
    for (std::size_t i = 0; i < n; ++i) {
      // The low bits make keys unique, so that the values' order is determined.
      keys[i] = static_cast<std::uint32_t>(run.dice.bits()) << 10 | as_u32(i);
      values[i] = as_u32(i) * 7;
    }
    const auto device_keys = run.input(keys);
    const auto device_values = run.input(values);
    run.launch("sort_bitonic", {2}, {256}, device_keys, device_values);
    const auto expected = sorted_rows(keys, 512);
    run.check_equal(device_keys, expected);
    std::vector<std::uint32_t> carried(n);
    for (std::size_t i = 0; i < n; ++i) carried[i] = (expected[i] & 1023) * 7;
    run.check_equal(device_values, carried);

    const auto few = run.dice.integers<std::int32_t>(256, -50, 50);
    const auto device_few = run.input(few);
    run.launch("sort_warp", {4}, {64}, device_few);
    run.check_equal(device_few, sorted_rows(few, 32));
  });
}

TEST_CASE("cuda: merge exchange and odd-even bricks") {
  run_case({"sort_odd_even.cu"}, [](CudaRun& run) {
    const auto numbers = run.dice.integers<double>(2 * 128, -1000, 1000);
    const auto data = run.input(numbers);
    run.launch_shared("sort_odd_even", {2}, {128}, 128 * 8, data, 128);
    run.check_equal(data, sorted_rows(numbers, 128));

    const auto few = run.dice.integers<std::int16_t>(101, -3000, 3000);
    const auto device_few = run.input(few);
    run.launch("sort_bricks", {1}, {64}, device_few, 101);
    run.check_equal(device_few, sorted_rows(few, 101));
  });
}

TEST_CASE("cuda: radix sort") {
  run_case({"radix_pass.cu"}, [](CudaRun& run) {
    const std::size_t n = 1000, blocks = (n + 127) / 128;
    const auto keys = run.dice.integers<std::uint32_t>(n, 0, 65535);
    auto from = run.input(keys);
    auto to = run.output<std::uint32_t>(n);
    for (int shift = 0; shift < 16; shift += 4) {
      const auto counts = run.output<std::uint32_t>(16 * blocks);
      run.launch("radix_count", {as_u32(blocks)}, {128}, from, as_int(n), shift, counts);
      run.launch("radix_offsets", {1}, {32}, counts, as_int(16 * blocks));
      run.launch("radix_scatter", {as_u32(blocks)}, {128}, from, to, as_int(n), shift, counts);
      std::swap(from, to);
    }
    run.check_equal(from, sorted_rows(keys, n));
  });
}

TEST_CASE("cuda: the k largest") {
  run_case({"top_k.cu"}, [](CudaRun& run) {
    const std::size_t rows = 3, n = 500, k = 5;
    const auto in = run.dice.integers<float>(rows * n, -200, 200);  // with ties
    const auto values = run.output<float>(rows * k);
    const auto places = run.output<std::int32_t>(rows * k);
    run.launch_shared("top_k", {rows}, {128}, (n + 31) / 32 * 4, run.input(in), as_int(n),
                      as_int(k), values, places);
    std::vector<std::int32_t> expected_places;
    std::vector<float> expected;
    for (std::size_t r = 0; r < rows; ++r) {
      std::vector<std::size_t> order(n);
      std::iota(order.begin(), order.end(), r * n);
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return in[a] > in[b]; });
      for (std::size_t i = 0; i < k; ++i) {
        expected.push_back(in[order[i]]);
        expected_places.push_back(as_int(order[i] - r * n));
      }
    }
    run.check_equal(values, expected);
    run.check_equal(places, expected_places);
  });
}

TEST_CASE("cuda: argmax by 64-bit atomics") {
  run_case({"argmax.cu"}, [](CudaRun& run) {
    const std::size_t n = 1500;
    auto in = run.dice.floats(n, -100, 99);
    in[700] = in[1100] = 99.5f;
    const auto best = run.input(std::vector<std::uint64_t>{0});
    run.launch("argmax", {12}, {128}, run.input(in), as_int(n), best);
    run.check_values<std::uint32_t>({~static_cast<std::uint32_t>(run.read(best)[0])}, {700u});

    const auto negative = run.dice.floats(n, -100, -1);
    run.write(best, {0});
    run.launch("argmax", {12}, {128}, run.input(negative), as_int(n), best);
    const auto max = std::max_element(negative.begin(), negative.end()) - negative.begin();
    run.check_values<std::uint32_t>({~static_cast<std::uint32_t>(run.read(best)[0])},
                                    {static_cast<std::uint32_t>(max)});
  });
}

TEST_CASE("cuda: transposes") {
  run_case({"transpose.cu"}, [](CudaRun& run) {
    const std::size_t rows = 70, columns = 45;
    const auto in = run.dice.floats(rows * columns, -1, 1);
    const auto device_in = run.input(in);
    std::vector<float> expected(rows * columns);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) expected[c * rows + r] = in[r * columns + c];
    }
    const auto plain = run.output<float>(rows * columns);
    run.launch("transpose_plain", {3, 9}, {16, 8}, device_in, plain, as_int(rows), as_int(columns));
    run.check_equal(plain, expected);
    std::uint64_t conflicts[2] = {};
    for (const bool padded : {false, true}) {
      const auto tiled = run.output<float>(rows * columns);
      run.launch(padded ? "transpose_padded" : "transpose_tiled", {2, 3}, {32, 8}, device_in, tiled,
                 as_int(rows), as_int(columns));
      run.check_equal(tiled, expected);
      conflicts[padded ? 1 : 0] = run.counters().shared_load.bank_conflicts;
    }
    run.check_true(conflicts[0] > 0, "a tile without padding has bank conflicts");
    run.check_true(conflicts[1] == 0, "a tile of 33 words a row has none");
  });
}

TEST_CASE("cuda: filters with warp-aggregated atomics") {
  run_case({"warp_aggregated.cu"}, [](CudaRun& run) {
    const std::size_t n = 1000;
    const auto in = run.dice.integers<std::int32_t>(n, -100, 100);
    const auto device_in = run.input(in);
    std::vector<std::int32_t> expected;
    std::copy_if(in.begin(), in.end(), std::back_inserter(expected),
                 [](std::int32_t value) { return value > 0; });
    std::sort(expected.begin(), expected.end());
    for (const bool groups : {true, false}) {
      const auto count = run.input(std::vector<std::uint32_t>{0});
      const auto out = run.output<std::int32_t>(expected.size());
      run.launch(groups ? "filter_groups" : "filter_by_hand", {groups ? 8u : 3u}, {128}, device_in,
                 as_int(n), out, count);
      run.check_equal(count, {as_u32(expected.size())});
      auto found = run.read(out);
      std::sort(found.begin(), found.end());
      run.check_values(found, expected);
    }
    const auto keys = run.dice.integers<std::int32_t>(n, 0, 9);
    const auto counts = run.input(std::vector<std::uint32_t>(10));
    run.launch("count_keys", {8}, {128}, run.input(keys), as_int(n), counts);
    std::vector<std::uint32_t> wanted(10);
    for (const std::int32_t key : keys) ++wanted[at(key)];
    run.check_equal(counts, wanted);
  });
}
