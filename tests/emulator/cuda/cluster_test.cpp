// tests/emulator/cuda/cluster_test.cpp - clusters and bulk copies, as nvcc compiles them
#include <numeric>

#include "cuda_case.hpp"
#include "numbers.hpp"

using namespace ptxgen::test;

TEST_CASE("cuda: clusters by cooperative groups") {
  run_case({"cluster_groups.cu", 90}, [](CudaRun& run) {
    const std::size_t blocks = 8, per_block = 100;
    const auto values = run.dice.integers<std::int32_t>(blocks * per_block, -50, 50);
    const auto out = run.output<std::int32_t>(blocks);
    run.launch("cluster_scan", {8}, {64}, run.input(values), out, as_int(per_block));
    std::vector<std::int32_t> expected(blocks);
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto from = values.begin() + static_cast<std::ptrdiff_t>(b / 4 * 4 * per_block);
      expected[b] =
          std::accumulate(from, values.begin() + static_cast<std::ptrdiff_t>(b * per_block), 0);
    }
    run.check_equal(out, expected);

    const std::size_t bins = 24, count = 1000;
    const auto numbers = run.dice.integers<std::uint32_t>(count, 0, 1000);
    const auto histogram = run.input(std::vector<std::int32_t>(bins));
    run.launch_shared("cluster_histogram", {4}, {64}, 12 * 4, run.input(numbers), as_int(count),
                      histogram, 12);
    std::vector<std::int32_t> counted(bins);
    for (const std::uint32_t number : numbers) ++counted[number % bins];
    run.check_equal(histogram, counted);

    const auto places = run.output<std::int32_t>(4 * 8);
    run.launch("cluster_places", {4, 2}, {32}, places);
    std::vector<std::int32_t> where;
    for (std::int32_t b = 0; b < 8; ++b) {
      const std::int32_t x = b % 4 % 2, y = b / 4;
      where.insert(where.end(), {x + 2 * y, x + 10 * y, 4, 128});
    }
    run.check_equal(places, where);
  });
}

TEST_CASE("cuda: bulk copies") {
  run_case({"bulk_copies.cu", 90}, [](CudaRun& run) {
    const auto values = run.dice.integers<float>(1024, -100, 100);
    const auto out = run.output<float>(1024);
    run.launch("bulk_scale", {4}, {64}, run.input(values), out, 3.0f);
    std::vector<float> expected;
    for (const float value : values) expected.push_back(3 * value);
    run.check_equal(out, expected);
    run.check_true(run.counters().bulk_load.bytes == 4096, "all bytes come by copies");
    run.check_true(run.counters().bulk_store.bytes == 4096, "and go by copies");

    const std::size_t chunks = 9, consumers = 64;
    const auto numbers = run.dice.integers<std::int32_t>(chunks * 128, -1000, 1000);
    const auto sums = run.output<std::int32_t>(consumers);
    run.launch("bulk_pipeline", {1}, {96}, run.input(numbers), sums, as_int(chunks));
    std::vector<std::int32_t> total(consumers);
    for (std::size_t i = 0; i < numbers.size(); ++i) total[i % consumers] += numbers[i];
    run.check_equal(sums, total);
  });
}
