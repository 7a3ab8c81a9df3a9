// tests/emulator/cuda/reduce_scan_test.cpp - reductions, scans and histograms of nvcc
#include <algorithm>
#include <numeric>

#include "cuda_case.hpp"
#include "numbers.hpp"

using namespace ptxgen::test;

TEST_CASE("cuda: sums by trees in shared memory") {
  run_case({"reduce_tree.cu"}, [](CudaRun& run) {
    const std::size_t n = 10007, blocks = 7;
    const auto in = run.dice.integers<std::uint32_t>(n, 0, 1 << 20);
    const auto device_in = run.input(in);
    const auto sums = run.output<std::uint32_t>(blocks);
    run.launch("reduce_tree", {blocks}, {256}, device_in, as_u32(n), sums);
    std::vector<std::uint32_t> expected(blocks);
    for (std::size_t i = 0; i < n; ++i) expected[i / 256 % blocks] += in[i];
    run.check_equal(sums, expected);

    const std::size_t parts = (n + 255) / 256;
    const auto each = run.output<std::uint32_t>(parts);
    run.launch("reduce_interleaved", {as_u32(parts)}, {256}, device_in, as_u32(n), each);
    std::vector<std::uint32_t> of_block(parts);
    for (std::size_t i = 0; i < n; ++i) of_block[i / 256] += in[i];
    run.check_equal(each, of_block);
  });
}

TEST_CASE("cuda: sums and maxima by shuffles") {
  run_case({"reduce_shuffle.cu"}, [](CudaRun& run) {
    const std::size_t n = 5003, blocks = 4, threads = 224;
    const auto in = run.dice.integers<float>(n, -100, 100);  // exact in any order
    const auto sums = run.output<float>(blocks);
    run.launch("reduce_shuffle", {blocks}, {threads}, run.input(in), as_int(n), sums);
    std::vector<float> expected(blocks);
    for (std::size_t i = 0; i < n; ++i) expected[i / threads % blocks] += in[i];
    run.check_equal(sums, expected);

    std::vector<std::int64_t> wide(5 * 32);
    for (auto& value : wide) value = static_cast<std::int64_t>(run.dice.bits());
    const auto maximum = run.output<std::int64_t>(wide.size());
    run.launch("reduce_butterfly", {5}, {32}, run.input(wide), maximum);
    std::vector<std::int64_t> largest(wide.size());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const auto first = wide.begin() + static_cast<std::ptrdiff_t>(i / 32 * 32);
      largest[i] = *std::max_element(first, first + 32);
    }
    run.check_equal(maximum, largest);
  });
}

TEST_CASE("cuda: reductions of cooperative groups") {
  run_case({"reduce_groups.cu"}, [](CudaRun& run) {
    const std::size_t n = 6 * 128;
    const auto in = run.dice.integers<std::int32_t>(n, -100000, 100000);
    const auto sum = run.input(std::vector<std::int32_t>{0});
    const auto maximum = run.input(std::vector<std::int32_t>{INT32_MIN});
    const auto tiles = run.output<std::int32_t>(n / 8);
    run.launch("reduce_groups", {6}, {128}, run.input(in), sum, maximum, tiles);
    run.check_equal(sum, {std::accumulate(in.begin(), in.end(), 0)});
    run.check_equal(maximum, {*std::max_element(in.begin(), in.end())});
    std::vector<std::int32_t> expected(n / 8);
    for (std::size_t i = 0; i < n; ++i) expected[i / 8] ^= in[i];
    run.check_equal(tiles, expected);

    const auto pairs = run.dice.integers<float>(64 * 2, -50, 50);
    const auto out = run.output<float>(4 * 2);
    run.launch("reduce_custom", {1}, {64}, run.input(pairs), out);
    std::vector<float> both(4 * 2);
    for (std::size_t i = 0; i < 64; ++i) {
      both[i / 16 * 2] += pairs[2 * i];
      float& largest = both[i / 16 * 2 + 1];
      largest = i % 16 == 0 ? pairs[2 * i + 1] : std::max(largest, pairs[2 * i + 1]);
    }
    run.check_equal(out, both);
  });
}

TEST_CASE("cuda: reductions by atomics") {
  struct Totals {
    std::uint64_t sum64 = 0;
    std::uint32_t sum = 0;
    std::int32_t smallest = INT32_MAX, maximum = INT32_MIN;
    std::uint32_t all = 0xffffffffu, any = 0, odd = 0;
    float fsum = 0;
    double dsum = 0;
    std::uint32_t wraps = 0;
    std::uint32_t padding = 0;
  };
  run_case({"reduce_atomic.cu"}, [](CudaRun& run) {
    const std::size_t n = 1000;
    const auto in = run.dice.integers<std::int32_t>(n, -100000, 100000);
    const auto device_in = run.input(in);
    const auto totals = run.input(std::vector<Totals>{Totals{}});
    run.launch("reduce_atomic", {8}, {128}, device_in, as_int(n), totals);
    Totals expected;
    for (const std::int32_t value : in) {
      const auto bits = static_cast<std::uint32_t>(value);
      expected.sum64 += static_cast<std::uint64_t>(std::int64_t{value}) * 1000003u;
      expected.sum += bits;
      expected.smallest = std::min(expected.smallest, value);
      expected.maximum = std::max(expected.maximum, value);
      expected.all &= bits | 0x10u;
      expected.any |= bits;
      expected.odd ^= bits;
      expected.fsum += static_cast<float>(value % 16);
      expected.dsum += value;
      expected.wraps = expected.wraps >= 96 ? 0 : expected.wraps + 1;
    }
    const Totals actual = run.read(totals)[0];
    run.check_values<std::uint64_t>({actual.sum64}, {expected.sum64});
    run.check_values<std::uint32_t>(
        {actual.sum, actual.all, actual.any, actual.odd, actual.wraps},
        {expected.sum, expected.all, expected.any, expected.odd, expected.wraps});
    run.check_values<std::int32_t>({actual.smallest, actual.maximum},
                                   {expected.smallest, expected.maximum});
    run.check_values<double>({actual.fsum, actual.dsum}, {expected.fsum, expected.dsum});

    const auto sum = run.input(std::vector<std::int32_t>{5});
    run.launch("reduce_atomic_shared", {8}, {128}, device_in, as_int(n), sum);
    run.check_equal(sum, {std::accumulate(in.begin(), in.end(), 5)});

    const auto floats = run.dice.floats(n, -1000, 1000);
    const auto maximum = run.input(std::vector<float>{-2000});
    run.launch("reduce_atomic_cas", {8}, {128}, run.input(floats), as_int(n), maximum);
    run.check_equal(maximum, {*std::max_element(floats.begin(), floats.end())});
  });
}

TEST_CASE("cuda: the last block adds up") {
  run_case({"reduce_last_block.cu"}, [](CudaRun& run) {
    const std::size_t n = 3333, blocks = (n + 127) / 128;
    const auto in = run.dice.integers<std::int32_t>(n, -1000, 1000);
    const auto device_in = run.input(in);
    const auto sums = run.output<std::int32_t>(blocks);
    for (int round = 0; round < 2; ++round) {
      const auto total = run.output<std::int32_t>(1);
      run.launch("reduce_last_block", {as_u32(blocks)}, {128}, device_in, as_int(n), sums, total);
      run.check_equal(total, {std::accumulate(in.begin(), in.end(), 0)});
    }
    run.check_equal(run.variable<std::uint32_t>("blocks_done"), {0u});
  });
}

TEST_CASE("cuda: reduction instructions of a warp") {
  run_case({"reduce_redux.cu", 80}, [](CudaRun& run) {
    const auto in = run.dice.integers<std::int32_t>(32, INT32_MIN, INT32_MAX);
    const auto out = run.output<std::int32_t>(32 * 8);
    run.launch("reduce_redux", {1}, {32}, run.input(in), out);
    std::vector<std::uint32_t> bits(in.begin(), in.end());
    std::uint32_t sum = 0, all = ~0u, any = 0, odd = 0;
    for (const std::uint32_t value : bits) {
      sum += value;
      all &= value;
      any |= value;
      odd ^= value;
    }
    const auto signed_range = std::minmax_element(in.begin(), in.end());
    const auto range = std::minmax_element(bits.begin(), bits.end());
    const std::vector<std::uint32_t> one{sum,
                                         static_cast<std::uint32_t>(*signed_range.first),
                                         static_cast<std::uint32_t>(*signed_range.second),
                                         *range.first,
                                         *range.second,
                                         all,
                                         any,
                                         odd};
    std::vector<std::int32_t> expected;
    for (int lane = 0; lane < 32; ++lane) expected.insert(expected.end(), one.begin(), one.end());
    run.check_equal(out, expected);

    const auto small = run.dice.integers<std::int32_t>(32, -1000, 1000);
    const auto parts = run.output<std::int32_t>(32);
    run.launch("reduce_redux_parts", {1}, {32}, run.input(small), parts);
    std::int32_t total = 0, maximum = INT32_MIN, smallest = INT32_MAX;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      if (lane % 3 == 0) total += small[lane];
      if (lane % 3 == 1) maximum = std::max(maximum, small[lane]);
      if (lane % 3 == 2) smallest = std::min(smallest, small[lane]);
    }
    std::vector<std::int32_t> wanted(32);
    for (std::size_t lane = 0; lane < 32; ++lane)
      wanted[lane] = lane % 3 == 0 ? total : lane % 3 == 1 ? maximum : smallest;
    run.check_equal(parts, wanted);
  });
}

TEST_CASE("cuda: scans by doubling") {
  run_case({"scan_doubling.cu"}, [](CudaRun& run) {
    const std::size_t n = 200;
    const auto in = run.dice.integers<std::int32_t>(n, -1000, 1000);
    const auto out = run.output<std::int32_t>(n);
    run.launch_shared("scan_doubling", {1}, {256}, 2 * 256 * 4, run.input(in), out, as_int(n));
    std::vector<std::int32_t> expected(n);
    std::partial_sum(in.begin(), in.end(), expected.begin());
    run.check_equal(out, expected);

    const auto words = run.dice.integers<std::uint32_t>(256, 0, 1 << 30);
    const auto scanned = run.output<std::uint32_t>(256);
    run.launch("scan_warp", {2}, {128}, run.input(words), scanned);
    std::vector<std::uint32_t> wanted(words);
    for (std::size_t i = 0; i < 256; ++i) {
      if (i % 32 != 0) wanted[i] += wanted[i - 1];
    }
    run.check_equal(scanned, wanted);
  });
}

TEST_CASE("cuda: scan up and down a tree") {
  run_case({"scan_tree.cu"}, [](CudaRun& run) {
    const std::size_t blocks = 3, n = 512;
    const auto in = run.dice.integers<std::int32_t>(blocks * n, -1000, 1000);
    const auto out = run.output<std::int32_t>(blocks * n);
    run.launch("scan_tree", {blocks}, {n / 2}, run.input(in), out);
    std::vector<std::int32_t> expected(blocks * n);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = i % n == 0 ? 0 : expected[i - 1] + in[i - 1];
    run.check_equal(out, expected);
  });
}

TEST_CASE("cuda: one-pass scan that looks back") {
  run_case({"scan_lookback.cu"}, [](CudaRun& run) {
    const std::size_t n = 2500, blocks = (n + 127) / 128;
    const auto in = run.dice.integers<std::uint32_t>(n, 0, 1000);
    const auto out = run.output<std::uint32_t>(n);
    const auto ticket = run.input(std::vector<std::uint32_t>{0});
    const auto state = run.input(std::vector<std::uint64_t>(blocks));
    run.launch("scan_lookback", {as_u32(blocks)}, {128}, run.input(in), out, as_u32(n), ticket,
               state);
    std::vector<std::uint32_t> expected(n);
    std::partial_sum(in.begin(), in.end(), expected.begin());
    run.check_equal(out, expected);
  });
}

TEST_CASE("cuda: byte histogram in shared memory") {
  run_case({"histogram_shared.cu"}, [](CudaRun& run) {
    const std::size_t n = 3000;
    std::vector<std::uint32_t> words(n);
    for (auto& word : words)
      word = static_cast<std::uint32_t>(run.dice.bits()) & 0x3fff7f0fu;  // some bins crowded
    const auto bins = run.input(std::vector<std::uint32_t>(256));
    run.launch("histogram_shared", {3}, {192}, run.input(words), as_int(n), bins);
    std::vector<std::uint32_t> expected(256);
    for (const std::uint32_t word : words) {
      for (unsigned shift = 0; shift < 32; shift += 8) ++expected[word >> shift & 255];
    }
    run.check_equal(bins, expected);
  });
}

TEST_CASE("cuda: histograms in global memory") {
  run_case({"histogram_global.cu"}, [](CudaRun& run) {
    const std::size_t n = 2000, bins = 20;
    // Multiples of 1/8 below a width of 1/2: the division is exact.
    auto values = run.dice.integers<float>(n, -20, 100);
    for (float& value : values) value *= 0.125f;
    const auto counts = run.input(std::vector<std::uint64_t>(bins));
    run.launch("histogram_global", {16}, {128}, run.input(values), as_int(n), 0.0f, 0.5f,
               as_int(bins), counts);
    std::vector<std::uint64_t> expected(bins);
    for (const float value : values) {
      const int bin = static_cast<int>(value / 0.5f);
      if (bin >= 0 && bin < as_int(bins)) ++expected[at(bin)];
    }
    run.check_equal(counts, expected);

    const auto keys = run.dice.integers<std::uint8_t>(n, 0, 255);
    const auto weights = run.dice.integers<double>(n, -1000, 1000);
    const auto sums = run.input(std::vector<double>(16));
    run.launch("histogram_weighted", {16}, {128}, run.input(keys), run.input(weights), as_int(n),
               sums);
    std::vector<double> totals(16);
    for (std::size_t i = 0; i < n; ++i) totals[keys[i] % 16] += weights[i];
    run.check_equal(sums, totals);
  });
}
