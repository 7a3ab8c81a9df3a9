// tests/emulator/cuda/libraries_test.cpp - kernels out of CUB, libcu++, cuRAND and the like
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>

#include "cuda_case.hpp"
#include "numbers.hpp"

using namespace ptxgen::test;

TEST_CASE("cuda: CUB in blocks and warps") {
  run_case({"cub_block.cu"}, [](CudaRun& run) {
    const std::size_t n = 1000, tile = 512;
    const auto in = run.dice.integers<std::int32_t>(2 * tile, 0, 1000);
    const auto device_in = run.input(in);
    const auto sums = run.input(std::vector<std::int32_t>(3));
    run.launch("cub_reduce", {2}, {128}, device_in, as_int(n), sums);
    const auto end = in.begin() + static_cast<std::ptrdiff_t>(n);
    run.check_equal(sums, std::vector<std::int32_t>(3, std::accumulate(in.begin(), end, 0)));

    std::vector<std::int32_t> before(in.size());
    std::vector<std::uint32_t> keys(in.begin(), in.end());
    std::vector<std::int32_t> places(in.size()), sorted_places(in.size());
    std::vector<std::uint32_t> sorted_keys(in.size());
    std::iota(places.begin(), places.end(), 0);
    sorted_places = places;
    for (std::size_t first = 0; first < in.size(); first += tile) {
      for (std::size_t i = 1; i < tile; ++i) {
        before[first + i] = before[first + i - 1] + in[first + i - 1];
      }
      const auto begin = sorted_places.begin() + static_cast<std::ptrdiff_t>(first);
      std::stable_sort(begin, begin + static_cast<std::ptrdiff_t>(tile),
                       [&](auto a, auto b) { return in[at(a)] < in[at(b)]; });
    }
    for (std::size_t i = 0; i < in.size(); ++i) sorted_keys[i] = keys[at(sorted_places[i])];
    const auto a = run.output<std::int32_t>(in.size()), b = run.output<std::int32_t>(in.size()),
               c = run.output<std::int32_t>(in.size());
    run.launch("cub_scan", {2}, {128}, device_in, a, b, c);
    for (const auto& each : {a, b, c}) run.check_equal(each, before);
    const auto keys_out = run.output<std::uint32_t>(in.size());
    const auto places_out = run.output<std::int32_t>(in.size());
    run.launch("cub_sort", {2}, {128}, run.input(keys), run.input(places), keys_out, places_out);
    run.check_equal(keys_out, sorted_keys);
    run.check_equal(places_out, sorted_places);

    const auto bytes = run.dice.integers<std::uint8_t>(2 * tile, 0, 255);
    std::vector<std::uint32_t> counts(256);
    for (const std::uint8_t byte : bytes) ++counts[byte];
    const auto counted = run.input(std::vector<std::uint32_t>(256));
    run.launch("cub_histogram", {2}, {128}, run.input(bytes), counted);
    run.check_equal(counted, counts);

    const std::size_t threads = 256;
    const auto values = run.dice.integers<float>(threads, 0, 3);
    std::vector<float> by_16(threads / 16), scans(threads);
    std::vector<std::int32_t> heads(threads);
    for (std::size_t i = 0; i < threads; ++i) {
      by_16[i / 16] += values[i];
      scans[i] = values[i] + (i % 32 == 0 ? 0 : scans[i - 1]);
      heads[i] = i % 128 == 0 || values[i] != values[i - 1] ? 1 : 0;
    }
    const auto out_sums = run.output<float>(by_16.size()), out_scans = run.output<float>(threads);
    const auto out_heads = run.output<std::int32_t>(threads);
    run.launch("cub_warp", {2}, {128}, run.input(values), out_sums, out_scans, out_heads);
    run.check_equal(out_sums, by_16);
    run.check_equal(out_scans, scans);
    run.check_equal(out_heads, heads);
  });
}

TEST_CASE("cuda: libcu++ atomics, barriers, pipelines, semaphores") {
  run_case({"cuda_std.cu", 80}, [](CudaRun& run) {
    const std::size_t n = 200;
    const auto in = run.dice.integers<std::int32_t>(n, 0, 1000);
    const auto count = run.input(std::vector<std::uint32_t>(1));
    const auto maximum = run.input(std::vector<std::uint32_t>(2));
    const auto sum = run.input(std::vector<float>(1));
    run.launch("std_atomic", {2}, {128}, count, maximum, sum, run.input(in), as_int(n));
    run.check_equal(count, std::vector<std::uint32_t>{as_u32(n)});
    run.check_equal(sum, {static_cast<float>(std::accumulate(in.begin(), in.end(), 0))});
    std::int32_t bits = 0;
    for (const std::int32_t value : in) bits ^= value;
    const auto got = run.read(maximum);
    run.check_true(static_cast<std::int32_t>(got[1]) == bits, "the exclusive or of all");
    run.check_true(
        static_cast<std::int32_t>(got[0] | 1u) >= *std::max_element(in.begin(), in.end()),
        "the maximum");

    const std::size_t batches = 5, blocks = 2;
    const auto data = run.dice.integers<std::int32_t>(batches * blocks * 128, -1000, 1000);
    const auto device_data = run.input(data);
    std::vector<std::int32_t> rotated(blocks * 128), reversed(blocks * 128), weighted(blocks * 64);
    for (std::size_t b = 0; b < blocks; ++b) {
      for (std::size_t t = 0; t < 128; ++t) {
        for (std::size_t r = 0; r < batches; ++r) {
          const std::size_t row = (r * blocks + b) * 128;
          rotated[b * 128 + t] += data[row + (t + r) % 128];
          reversed[b * 128 + t] += data[row + 127 - t];
          if (t < 64) {
            weighted[b * 64 + t] += data[(r * blocks + b) * 64 + 63 - t] * as_int(r + 1);
          }
        }
      }
    }
    const auto out = run.output<std::int32_t>(rotated.size());
    run.launch("std_barrier", {2}, {128}, device_data, out, as_int(batches));
    run.check_equal(out, rotated);
    const auto out_pipeline = run.output<std::int32_t>(reversed.size());
    run.launch("std_pipeline", {2}, {128}, device_data, out_pipeline, as_int(batches));
    run.check_equal(out_pipeline, reversed);
    const auto out_roles = run.output<std::int32_t>(weighted.size());
    run.launch("std_roles", {2}, {128}, device_data, out_roles, as_int(batches));
    run.check_equal(out_roles, weighted);

    const auto in_use = run.input(std::vector<std::int32_t>(2)),
               at_once = run.input(std::vector<std::int32_t>(1)),
               done = run.input(std::vector<std::int32_t>(1));
    run.launch("std_semaphore", {2}, {64}, in_use, at_once, done);
    run.check_true(run.read(at_once)[0] >= 1 && run.read(at_once)[0] <= 6,
                   "at most three of a block hold the semaphore");
    run.check_equal(done, {128});

    const auto parts = run.dice.floats(64, 0.5f, 2.0f);
    std::vector<float> expected;
    for (std::size_t i = 0; i < parts.size(); i += 2) {
      const std::complex<double> z(static_cast<double>(parts[i]),
                                   static_cast<double>(parts[i + 1]));
      const auto w = z * z / (z + 1.0);
      expected.push_back(static_cast<float>(w.real()));
      expected.push_back(static_cast<float>(w.imag()));
    }
    const auto quotients = run.output<float>(parts.size());
    run.launch("std_types", {1}, {32}, run.input(parts), quotients, 32);
    run.check_close(quotients, expected, 1e-5, 1e-5);
  });
}

TEST_CASE("cuda: cooperative groups: grids, labels, scans") {
  run_case({"group_grid.cu", 80}, [](CudaRun& run) {
    const std::size_t n = 256;
    auto now = run.dice.integers<std::uint32_t>(n, 0, 1000);
    const auto a = run.input(now), b = run.output<std::uint32_t>(n);
    run.cooperative = true;
    run.launch("grid_sync", {4}, {64}, a, b, 4);
    run.cooperative = false;
    for (int round = 0; round < 4; ++round) {
      std::vector<std::uint32_t> next(n);
      for (std::size_t i = 0; i < n; ++i)
        next[i] = now[(i + n - 1) % n] + now[i] + now[(i + 1) % n];
      now = next;
    }
    run.check_equal(a, now);

    const auto in = run.dice.integers<std::int32_t>(n, 0, 1000);
    std::vector<std::int32_t> sums(n), scans(n), labels(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t warp = i / 32 * 32, tile = i / 8 * 8;
      for (std::size_t k = 0; k < 8; ++k) sums[i] += in[tile + k];
      sums[i] += 1000 * in[i ^ 63] + 64;
      for (std::size_t k = warp; k <= i; ++k) scans[i] += in[k];
      std::int32_t bits = 0;
      for (std::size_t k = tile; k < i; ++k) bits ^= in[k];
      scans[i] += bits;
      for (std::size_t k = warp; k < warp + 32; ++k) {
        if ((in[k] & 3) == (in[i] & 3)) labels[i] += k < i ? 101 : 100;
        if ((in[k] & 4) == (in[i] & 4)) labels[i] += 10000;
        if ((in[k] & 8) != 0 && (in[i] & 8) != 0) labels[i] += 1000000;
      }
    }
    const auto out_sums = run.output<std::int32_t>(n), out_scans = run.output<std::int32_t>(n),
               out_labels = run.output<std::int32_t>(n);
    run.launch("groups", {2}, {128}, run.input(in), out_sums, out_scans, out_labels);
    run.check_equal(out_sums, sums);
    run.check_equal(out_scans, scans);
    run.check_equal(out_labels, labels);
  });
}

namespace {

/// C[m x n] = A[m x k] B[k x n], each element found by its own rule.
template <class Out, class A, class B>
std::vector<Out> matrix_product(std::size_t m, std::size_t n, std::size_t k, A&& a, B&& b,
                                Out start) {
  std::vector<Out> c(m * n, start);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t l = 0; l < k; ++l) c[i * n + j] += static_cast<Out>(a(i, l) * b(l, j));
    }
  }
  return c;
}

}  // namespace

TEST_CASE("cuda: wmma with integers, bf16, tf32, f64") {
  run_case({"wmma_types.cu", 80}, [](CudaRun& run) {
    const auto s8a = run.dice.integers<std::int8_t>(16 * 64, -128, 127);
    const auto s8b = run.dice.integers<std::int8_t>(16 * 64, -128, 127);
    const auto s8c = run.output<std::int32_t>(256);
    run.launch("wmma_s8", {1}, {32}, run.input(s8a), run.input(s8b), s8c);
    run.check_equal(s8c, matrix_product<std::int32_t>(
                             16, 16, 64, [&](auto i, auto l) { return s8a[i * 64 + l]; },
                             [&](auto l, auto j) { return s8b[j * 64 + l]; }, 0));
    const auto u8a = run.dice.integers<std::uint8_t>(32 * 16, 0, 255);
    const auto u8b = run.dice.integers<std::uint8_t>(16 * 16, 0, 255);
    const auto u8c = run.output<std::int32_t>(256);
    run.launch("wmma_u8", {1}, {32}, run.input(u8a), run.input(u8b), u8c);
    // Stored by columns: the transposed product.
    run.check_equal(u8c, matrix_product<std::int32_t>(
                             8, 32, 16, [&](auto j, auto l) { return u8b[l * 16 + j]; },
                             [&](auto l, auto i) { return u8a[l * 32 + i]; }, 1));

    const auto fa = run.dice.integers<float>(16 * 16, -9, 9);
    const auto fb = run.dice.integers<float>(16 * 32, -9, 9);
    std::vector<std::uint16_t> ba, bb;
    for (const float value : fa) ba.push_back(bfloat_bits(static_cast<double>(value)));
    for (const float value : fb) bb.push_back(bfloat_bits(static_cast<double>(value)));
    auto bf = matrix_product<float>(
        8, 32, 16, [&](auto i, auto l) { return fa[i * 16 + l]; },
        [&](auto l, auto j) { return fb[l * 32 + j]; }, 3.0f);
    for (float& value : bf) value *= 2;
    const auto bfc = run.input(std::vector<float>(256, 3.0f));
    run.launch("wmma_bf16", {1}, {32}, run.input(ba), run.input(bb), bfc);
    run.check_equal(bfc, bf);
    const auto tfc = run.output<float>(256);
    run.launch("wmma_tf32", {1}, {32}, run.input(fa), run.input(fb), tfc);
    run.check_equal(tfc, matrix_product<float>(
                             16, 16, 8, [&](auto i, auto l) { return fa[i * 8 + l]; },
                             [&](auto l, auto j) { return fb[j * 8 + l]; }, 0.0f));
    const auto da = run.dice.integers<double>(32, -9, 9), db = run.dice.integers<double>(32, -9, 9);
    const auto dc = run.output<double>(64);
    run.launch("wmma_f64", {1}, {32}, run.input(da), run.input(db), dc);
    run.check_equal(dc, matrix_product<double>(
                            8, 8, 4, [&](auto j, auto l) { return db[j * 4 + l]; },
                            [&](auto l, auto i) { return da[i * 4 + l]; }, 0.0));
  });
}

TEST_CASE("cuda: cuRAND on the device") {
  run_case({"curand_device.cu"}, [](CudaRun& run) {
    const std::size_t n = 128, draws = 4;
    const std::uint64_t seed = 0x123456789abcdefu;
    const auto bits = run.output<std::uint32_t>(4 * n);
    const auto uniform = run.output<float>(4 * n), normal = run.output<float>(4 * n);
    run.launch("curand_philox", {2}, {64}, seed, bits, uniform, normal);
    // Philox 4x32-10 of Salmon et al. 2011: counter {offset, subsequence}, key the seed.
    std::vector<std::uint32_t> expected;
    std::vector<float> numbers;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::uint32_t iteration = 0; iteration < 2; ++iteration) {
        std::uint32_t c[4] = {iteration, 0, as_u32(i), 0};
        auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
        for (int round = 0; round < 10; ++round) {
          const std::uint64_t p = std::uint64_t{0xD2511F53u} * c[0];
          const std::uint64_t q = std::uint64_t{0xCD9E8D57u} * c[2];
          c[0] = static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k0;
          c[2] = static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k1;
          c[1] = static_cast<std::uint32_t>(q);
          c[3] = static_cast<std::uint32_t>(p);
          k0 += 0x9E3779B9u;
          k1 += 0xBB67AE85u;
        }
        for (const std::uint32_t word : c) {
          if (iteration == 0) {
            expected.push_back(word);
          } else {
            numbers.push_back(static_cast<float>(word) * 0x1p-32f + 0x1p-33f);
          }
        }
      }
    }
    run.check_equal(bits, expected);
    run.check_close(uniform, numbers, 1e-7, 1e-6);
    double sum = 0, squares = 0;
    for (const float value : run.read(normal)) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    run.check_true(std::abs(sum / 512) < 0.25 && std::abs(squares / 512 - 1) < 0.4,
                   "mean 0 and variance 1");

    // XORWOW of Marsaglia 2003 from the states that the device has made.
    const std::size_t words = 12;
    const auto states = run.output<std::uint32_t>(words * n);
    run.launch("curand_setup", {2}, {64}, states, seed);
    const auto start = run.read(states);
    const auto drawn = run.output<std::uint32_t>(draws * n);
    const auto one = run.output<float>(n);
    const auto doubles = run.output<double>(n);
    const auto events = run.output<std::uint32_t>(n);
    run.launch("curand_xorwow", {2}, {64}, states, drawn, one, doubles, events, as_int(draws));
    std::vector<std::uint32_t> from_host;
    for (std::size_t i = 0; i < n; ++i) {
      std::uint32_t d = start[words * i], v[5];
      std::copy_n(start.begin() + static_cast<std::ptrdiff_t>(words * i + 1), 5, v);
      for (std::size_t k = 0; k < draws; ++k) {
        const std::uint32_t t = v[0] ^ v[0] >> 2;
        std::copy(v + 1, v + 5, v);
        v[4] = (v[4] ^ v[4] << 4) ^ (t ^ t << 1);
        d += 362437;
        from_host.push_back(v[4] + d);
      }
    }
    run.check_equal(drawn, from_host);
    const auto counts = run.read(events);
    const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(n);
    run.check_true(mean > 3 && mean < 5, "four events on average");
    for (const float value : run.read(one)) run.check_true(value > 0 && value <= 1, "uniform");

    const auto mrg = run.output<float>(n);
    run.launch("curand_mrg", {2}, {64}, seed, mrg);
    double total = 0;
    for (const float value : run.read(mrg)) {
      run.check_true(value > 0 && value <= 1, "uniform of MRG32k3a");
      total += static_cast<double>(value);
    }
    run.check_true(total > 44 && total < 84, "one half on average");
  });
}

TEST_CASE("cuda: functions and atomics of half and bfloat16") {
  run_case({"half_functions.cu"}, [](CudaRun& run) {
    // Where there is no instruction for it, cuda_fp16.h reads the word plainly before its loop of
    // compare-and-swap: a race by the memory model.
    run.watched.remove(ptxgen::emulator::Rule::GlobalRace);
    const std::size_t threads = 32, n = 2 * threads;
    std::vector<std::uint16_t> in;
    for (std::size_t i = 0; i < n; ++i) {
      in.push_back(half_bits(static_cast<double>(run.dice.uniform(0.25f, 4.0f))));
    }
    const auto out = run.output<std::uint16_t>(14 * n);
    const auto numbers = run.output<float>(5 * threads);
    run.launch("half_functions", {1}, {32}, run.input(in), out, numbers);
    std::vector<double> expected, floats, got;
    const auto each = [&](auto&& f) {
      for (const std::uint16_t bits : in) expected.push_back(f(half_value(bits)));
    };
    each([](double x) { return std::exp(x); });
    each([](double x) { return std::log(x); });
    each([](double x) { return std::sqrt(x); });
    each([](double x) { return 1 / std::sqrt(x); });
    each([](double x) { return std::sin(x); });
    each([](double x) { return std::cos(x); });
    each([](double x) { return 1 / x; });
    each([](double x) { return std::min(x, 0.5); });
    each([](double x) { return std::max(x * x - 1, 0.0); });
    each([](double x) { return std::floor(x); });
    each([](double x) { return std::nearbyint(x); });
    each([](double x) { return x / 3; });
    each([](double x) { return std::exp2(x); });
    each([](double x) { return std::log2(x); });
    for (const std::uint16_t bits : run.read(out)) got.push_back(half_value(bits));
    run.check_close(got, expected, 0x1p-10, 0x1p-9);
    for (std::size_t part = 0; part < 5; ++part) {
      for (std::size_t i = 0; i < threads; ++i) {
        const double x = half_value(in[2 * i]), y = half_value(in[2 * i + 1]);
        const double values[] = {x + y, std::nearbyint(x), std::trunc(x), x == y ? 1.0 : 0.0,
                                 x > y ? 1.0 : 0.0};
        floats.push_back(values[part]);
      }
    }
    run.check_close(numbers, floats, 1e-6, 1e-6);

    const auto half = run.input(std::vector<std::uint16_t>(2));
    const auto halves = run.input(std::vector<std::uint16_t>(4));
    const auto bfloats = run.input(std::vector<std::uint16_t>(2));
    run.launch("half_atomics", {1}, {32}, half, halves, bfloats);
    run.check_equal(half, {half_bits(32), 0});
    run.check_equal(halves, {half_bits(32), half_bits(64), half_bits(496), half_bits(32)});
    run.check_equal(bfloats, {bfloat_bits(32), bfloat_bits(64)});
  });
}
