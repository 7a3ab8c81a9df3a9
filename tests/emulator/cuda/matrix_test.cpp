// tests/emulator/cuda/matrix_test.cpp - matrix products, tensor cores, factorisations, FFT
#include <algorithm>
#include <complex>

#include "cuda_case.hpp"
#include "numbers.hpp"

using namespace ptxgen::test;

namespace {

std::vector<std::uint16_t> halves(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) bits.push_back(half_bits(value));
  return bits;
}

// C[m x n] = A[m x k] B[k x n]; B as columns if `columns`. Exact: small integers.
template <class T>
std::vector<T> product(const std::vector<T>& a, const std::vector<T>& b, std::size_t m,
                       std::size_t n, std::size_t k, bool columns = false, T start = 0) {
  std::vector<T> c(m * n, start);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t l = 0; l < k; ++l)
        c[i * n + j] += a[i * k + l] * (columns ? b[j * k + l] : b[l * n + j]);
    }
  }
  return c;
}

}  // namespace

TEST_CASE("cuda: tiled matrix products") {
  run_case({"gemm_tiled.cu"}, [](CudaRun& run) {
    const std::size_t m = 37, n = 45, k = 50;
    const auto a = run.dice.integers<float>(m * k, -9, 9);
    const auto b = run.dice.integers<float>(k * n, -9, 9);
    const auto c = run.output<float>(m * n);
    run.launch("gemm_tiled", {3, 3}, {16, 16}, run.input(a), run.input(b), c, as_int(m), as_int(n),
               as_int(k));
    run.check_equal(c, product(a, b, m, n, k));

    const std::size_t size = 64, depth = 24;
    const auto left = run.dice.integers<float>(size * depth, -9, 9);
    const auto right = run.dice.integers<float>(depth * size, -9, 9);
    const auto old = run.dice.integers<float>(size * size, -9, 9);
    const auto out = run.input(old);
    run.launch("gemm_blocked", {2, 2}, {64}, run.input(left), run.input(right), out, as_int(size),
               as_int(depth), 2.0f, -0.5f);
    auto expected = product(left, right, size, size, depth);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = 2.0f * expected[i] - 0.5f * old[i];
    run.check_equal(out, expected);
  });
}

TEST_CASE("cuda: matrix product with cp.async in two buffers") {
  run_case({"gemm_async.cu", 80}, [](CudaRun& run) {
    const std::size_t m = 64, n = 64, k = 96;
    const auto a = run.dice.integers<float>(m * k, -9, 9);
    const auto b = run.dice.integers<float>(k * n, -9, 9);
    const auto c = run.output<float>(m * n);
    run.launch("gemm_async", {n / 32, m / 32}, {256}, run.input(a), run.input(b), c, as_int(n),
               as_int(k));
    run.check_equal(c, product(a, b, m, n, k));

    const auto in = run.dice.integers<std::int32_t>(200, 1, 1000);
    const auto out = run.output<std::int32_t>(256);
    run.launch("async_edges", {2}, {128}, run.input(in), 200, out);
    std::vector<std::int32_t> expected(256);
    for (std::size_t i = 0; i < 256; ++i) {
      const std::size_t from = i / 128 * 128 + 127 - i % 128;
      expected[i] = from < 200 ? in[from] : 0;
    }
    run.check_equal(out, expected);
  });
}

TEST_CASE("cuda: tensor cores through wmma") {
  run_case({"gemm_wmma.cu"}, [](CudaRun& run) {
    const std::size_t m = 32, n = 32, k = 48;
    const auto a = run.dice.integers<float>(m * k, -9, 9);
    const auto b = run.dice.integers<float>(n * k, -9, 9);
    const auto c = run.output<float>(m * n);
    run.launch("gemm_wmma", {n / 16, m / 16}, {32}, run.input(halves(a)), run.input(halves(b)), c,
               as_int(n), as_int(k));
    auto expected = product(a, b, m, n, k, true);
    for (float& value : expected) value *= 0.5f;
    run.check_equal(c, expected);

    // 32 x 8 x 16: A and C by columns, B by rows, sums small enough to be exact in f16.
    const auto left = run.dice.integers<float>(32 * 16, -5, 5);
    const auto right = run.dice.integers<float>(16 * 8, -5, 5);
    const auto old = run.dice.integers<float>(32 * 8, -50, 50);
    const auto sums = run.input(halves(old));
    run.launch("wmma_half", {1}, {32}, run.input(halves(left)), run.input(halves(right)), sums);
    std::vector<float> wanted(old);
    for (std::size_t i = 0; i < 32; ++i) {
      for (std::size_t j = 0; j < 8; ++j) {
        for (std::size_t l = 0; l < 16; ++l)
          wanted[j * 32 + i] += left[l * 32 + i] * right[l * 8 + j];
      }
    }
    run.check_equal(sums, halves(wanted));

    const auto bytes_a = run.dice.integers<std::int8_t>(256, -128, 127);
    const auto bytes_b = run.dice.integers<std::int8_t>(256, -128, 127);
    const auto full = run.output<std::int32_t>(256);
    run.launch("wmma_bytes", {1}, {32}, run.input(bytes_a), run.input(bytes_b), full);
    const std::vector<std::int32_t> wide_a(bytes_a.begin(), bytes_a.end());
    const std::vector<std::int32_t> wide_b(bytes_b.begin(), bytes_b.end());
    run.check_equal(full, product(wide_a, wide_b, 16, 16, 16, true, 7));
  });
}

TEST_CASE("cuda: ldmatrix and mma.sync") {
  run_case({"gemm_mma.cu", 80}, [](CudaRun& run) {
    const std::size_t k = 64;
    const auto a = run.dice.integers<float>(16 * k, -9, 9);
    const auto b = run.dice.integers<float>(k * 16, -9, 9);
    const auto c = run.output<float>(16 * 16);
    run.launch("gemm_mma", {1}, {32}, run.input(halves(a)), run.input(halves(b)), c, as_int(k));
    run.check_equal(c, product(a, b, 16, 16, k));

    const auto left = run.dice.integers<float>(16 * 16, -9, 9);
    const auto right = run.dice.integers<float>(8 * 16, -9, 9);
    std::vector<std::uint16_t> left_bits, right_bits;
    for (const float value : left) left_bits.push_back(bfloat_bits(value));
    for (const float value : right) right_bits.push_back(bfloat_bits(value));
    const auto out = run.output<float>(16 * 8);
    run.launch("mma_bfloat", {1}, {32}, run.input(left_bits), run.input(right_bits), out);
    run.check_equal(out, product(left, right, 16, 8, 16, true, 1.0f));

    const auto bytes_a = run.dice.integers<std::int8_t>(16 * 32, -128, 127);
    const auto bytes_b = run.dice.integers<std::int8_t>(8 * 32, -128, 127);
    const auto sums = run.output<std::int32_t>(16 * 8);
    run.launch("mma_bytes", {1}, {32}, run.input(bytes_a), run.input(bytes_b), sums);
    const std::vector<std::int32_t> wide_a(bytes_a.begin(), bytes_a.end());
    const std::vector<std::int32_t> wide_b(bytes_b.begin(), bytes_b.end());
    run.check_equal(sums, product(wide_a, wide_b, 16, 8, 32, true));
  });
}

TEST_CASE("cuda: LU with pivots, and exact determinants") {
  run_case({"lu.cu"}, [](CudaRun& run) {
    const std::size_t n = 20;
    const auto a = run.dice.integers<double>(n * n, -9, 9);
    const auto out = run.input(a);
    const auto pivots = run.output<std::int32_t>(n);
    const auto determinant = run.output<double>(1);
    run.launch_shared("lu", {1}, {64}, n * n * 8, out, as_int(n), pivots, determinant);
    const auto m = run.read(out);
    const auto exchanged = run.read(pivots);
    // L U is A with its rows exchanged.
    std::vector<double> rows(a), back(n * n);
    double product_of_diagonal = 1;
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t p = at(exchanged[k]);
      run.check_true(p >= k && p < n, "a pivot is at or below its row");
      for (std::size_t c = 0; c < n; ++c) std::swap(rows[k * n + c], rows[p * n + c]);
      product_of_diagonal *= (p == k ? 1 : -1) * m[k * n + k];
    }
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t k = 0; k <= std::min(r, c); ++k)
          back[r * n + c] += (k == r ? 1.0 : m[r * n + k]) * m[k * n + c];
      }
    }
    // Entries below 10, growth below 100, 20 steps: far below 1e-11.
    run.check_close(back, rows, 1e-11, 0);
    run.check_close(determinant, std::vector<double>{product_of_diagonal}, 0, 1e-13);

    const std::size_t count = 100;
    auto small = run.dice.integers<std::int32_t>(count * 25, -9, 9);
    for (std::size_t i = 0; i < 30; ++i) small[i * 25] = 0;  // pivots have to be looked for
    for (std::size_t c = 0; c < 5; ++c) small[25 * 40 + 10 + c] = small[25 * 40 + c];  // singular
    const auto exact = run.output<std::int64_t>(count);
    run.launch("small_determinants", {4}, {32}, run.input(small), exact, as_int(count));
    std::vector<std::int64_t> expected;
    for (std::size_t i = 0; i < count; ++i) {
      // Leibniz' sum over all permutations.
      std::size_t order[5] = {0, 1, 2, 3, 4};
      std::int64_t sum = 0;
      do {
        std::int64_t term = 1;
        for (std::size_t r = 0; r < 5; ++r) {
          term *= small[i * 25 + r * 5 + order[r]];
          for (std::size_t s = r + 1; s < 5; ++s) term *= order[r] > order[s] ? -1 : 1;
        }
        sum += term;
      } while (std::next_permutation(order, order + 5));
      expected.push_back(sum);
    }
    run.check_equal(exact, expected);
  });
}

TEST_CASE("cuda: FFT, and a number-theoretic one") {
  run_case({"fft.cu"}, [](CudaRun& run) {
    const std::size_t n = 256, rows = 2;
    const double pi = std::acos(-1.0);
    const auto in = run.dice.floats(2 * n * rows, -1, 1);
    const auto data = run.input(in);
    run.launch("fft", {rows}, {128}, data, -1.0f);
    std::vector<double> expected(in.size());
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t f = 0; f < n; ++f) {
        std::complex<double> sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const std::complex<double> x(in[2 * (r * n + i)], in[2 * (r * n + i) + 1]);
          sum += x * std::polar(1.0, -2 * pi * static_cast<double>(f * i % n) / n);
        }
        expected[2 * (r * n + f)] = sum.real();
        expected[2 * (r * n + f) + 1] = sum.imag();
      }
    }
    // Eight stages, each some 1e-7 of values up to about 30.
    run.check_close(data, expected, 5e-5, 0);

    const std::uint64_t prime = 998244353;
    const auto numbers = run.dice.integers<std::uint32_t>(128, 0, 998244352);
    const auto device_numbers = run.input(numbers);
    run.launch("number_fft", {1}, {64}, device_numbers);
    std::uint64_t root = 1;
    for (int i = 0; i < 119 * (1 << 16); ++i) root = root * 3 % prime;  // 3 to (prime - 1) / 128
    std::vector<std::uint64_t> powers(128, 1);
    for (std::size_t i = 1; i < 128; ++i) powers[i] = powers[i - 1] * root % prime;
    std::vector<std::uint32_t> transformed(128);
    for (std::size_t f = 0; f < 128; ++f) {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < 128; ++i) sum = (sum + numbers[i] * powers[f * i % 128]) % prime;
      transformed[f] = static_cast<std::uint32_t>(sum);
    }
    run.check_equal(device_numbers, transformed);
  });
}

TEST_CASE("cuda: products with a transpose, correlations, Gram-Schmidt") {
  run_case({"linear_algebra.cu"}, [](CudaRun& run) {
    const std::size_t rows = 60, columns = 40;
    const auto a = run.dice.integers<double>(rows * columns, -9, 9);
    const auto x = run.dice.integers<double>(columns, -9, 9);
    const auto device_a = run.input(a);
    const auto y = run.output<double>(rows);
    const auto z = run.output<double>(columns);
    run.launch("times_matrix", {2}, {32}, device_a, run.input(x), y, as_int(rows), as_int(columns));
    run.launch("times_transpose", {2}, {32}, device_a, y, z, as_int(rows), as_int(columns));
    const auto ax = product(a, x, rows, 1, columns);
    run.check_equal(y, ax);
    run.check_equal(z, product(ax, a, 1, columns, rows));

    const auto related = run.output<double>(columns * columns);
    run.launch("correlation", {3, 5}, {16, 8}, device_a, related, as_int(rows), as_int(columns));
    std::vector<double> expected(columns * columns);
    for (std::size_t i = 0; i < columns; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        double mi = 0, mj = 0, vi = 0, vj = 0, both = 0;
        for (std::size_t r = 0; r < rows; ++r) {
          mi += a[r * columns + i] / static_cast<double>(rows);
          mj += a[r * columns + j] / static_cast<double>(rows);
        }
        for (std::size_t r = 0; r < rows; ++r) {
          const double di = a[r * columns + i] - mi, dj = a[r * columns + j] - mj;
          vi += di * di;
          vj += dj * dj;
          both += di * dj;
        }
        expected[i * columns + j] = i == j ? 1.0 : both / std::sqrt(vi * vj);
      }
    }
    run.check_close(related, expected, 1e-13, 1e-12);

    const std::size_t tall = 100, few = 8;
    const auto vectors = run.dice.floats(tall * few, -1, 1);
    const auto device_vectors = run.input(vectors);
    run.launch("gram_schmidt", {1}, {64}, device_vectors, as_int(tall), as_int(few));
    const auto q = run.read(device_vectors);
    std::vector<double> dots, identity;
    for (std::size_t i = 0; i < few; ++i) {
      for (std::size_t j = 0; j < few; ++j) {
        double dot = 0;
        for (std::size_t r = 0; r < tall; ++r) dot += double{q[r * few + i]} * q[r * few + j];
        dots.push_back(dot);
        identity.push_back(i == j ? 1 : 0);
      }
    }
    run.check_close(dots, identity, 2e-6, 0);  // modified Gram-Schmidt in f32, condition below 3
  });
}
