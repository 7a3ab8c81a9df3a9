// tests/launcher/cublas_product_test.cpp - both layouts as cuBLAS is asked for them
#include <catch2/catch.hpp>

#include "launcher/fake_cublas.hpp"
#include "launcher/rig.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "runtime/device/core.hpp"
#include "runtime/launch/cublas.hpp"
#include "support/dynamic_library.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

Hooks& hooks() {
  LibrarySearch search;
  search.stem = "libfake_cublas_whole.so";
  search.override_path = FAKE_CUBLAS;
  static const DynamicLibrary library = DynamicLibrary::find(search);
  REQUIRE(library);
  return *static_cast<Hooks*>(library.symbol("fake_cublas_hooks"));
}

std::vector<float> fetch(const void* address, std::size_t count) {
  std::vector<float> values(count);
  const auto at = reinterpret_cast<std::uint64_t>(address);
  if (driver::emulated::table().memcpy_to_host(values.data(), at, count * 4) != 0) values.clear();
  return values;
}

// What BLAS means: y = op(A) x, A column-major with `rows` rows and `columns` columns.
std::vector<float> multiply(int operation, int rows, int columns, const float* a, int lda,
                            const float* x) {
  const auto r = static_cast<std::size_t>(rows);
  const auto c = static_cast<std::size_t>(columns);
  const auto pitch = static_cast<std::size_t>(lda);
  const std::vector<float> matrix = fetch(a, (c - 1) * pitch + r);
  const std::vector<float> vector = fetch(x, operation == 0 ? c : r);
  std::vector<float> y(operation == 0 ? r : c);
  for (std::size_t i = 0; i < r; ++i) {
    for (std::size_t j = 0; j < c; ++j) {
      if (operation == 0) {
        y[i] += matrix[j * pitch + i] * vector[j];
      } else {
        y[j] += matrix[j * pitch + i] * vector[i];
      }
    }
  }
  return y;
}

std::vector<float> found;
MatrixProduct asked;

int by_gemv(const Product* p) {
  found = multiply(p->operation, p->rows, p->columns, p->a, p->lda, p->x);
  return 0;
}
int by_gemm(const MatrixProduct* p) {
  asked = *p;
  if (p->type_a != 0) return 0;
  // op(A) is m x k, so A itself is k x m where it is transposed.
  const bool transposed = p->operation_a != 0;
  found = multiply(p->operation_a, transposed ? p->k : p->m, transposed ? p->m : p->k,
                   static_cast<const float*>(p->a), p->lda, static_cast<const float*>(p->b));
  return 0;
}

// What BLAS means: C = op(A) op(B), all column-major, f32; into device memory.
int by_definition(const MatrixProduct* p) {
  asked = *p;
  const auto at = [](const std::vector<float>& matrix, int transposed, int ld, int row,
                     int column) {
    const int inner = transposed != 0 ? column : row;
    const int outer = transposed != 0 ? row : column;
    return double{matrix[static_cast<std::size_t>(outer * ld + inner)]};
  };
  const auto extent = [](int transposed, int ld, int rows, int columns) {
    const int outer = transposed != 0 ? rows : columns;
    const int inner = transposed != 0 ? columns : rows;
    return static_cast<std::size_t>((outer - 1) * ld + inner);
  };
  const auto a = fetch(p->a, extent(p->operation_a, p->lda, p->m, p->k));
  const auto b = fetch(p->b, extent(p->operation_b, p->ldb, p->k, p->n));
  for (int column = 0; column < p->n; ++column) {
    std::vector<float> sums;
    for (int row = 0; row < p->m; ++row) {
      double sum = 0;
      for (int i = 0; i < p->k; ++i) {
        sum += at(a, p->operation_a, p->lda, row, i) * at(b, p->operation_b, p->ldb, i, column);
      }
      sums.push_back(static_cast<float>(sum));
    }
    const auto to = reinterpret_cast<std::uint64_t>(p->c) +
                    4 * static_cast<std::uint64_t>(column) * static_cast<std::uint64_t>(p->ldc);
    driver::emulated::table().memcpy_to_device(to, sums.data(), 4 * sums.size());
  }
  return 0;
}
int by_zeros(const MatrixProduct* p) {
  driver::emulated::table().memset_d32(reinterpret_cast<std::uint64_t>(p->c), 0, 1);
  return 0;
}

Settings with_fake() {
  Settings settings;
  settings.cublas_path = FAKE_CUBLAS;
  return settings;
}

}  // namespace

TEST_CASE("a benchmark of a GEMM has rounds of cuBLAS, whose results are compared, too") {
  const Rig rig;
  hooks().matrix_product = by_definition;
  for (unsigned transposed = 0; transposed < 4; ++transposed) {
    for (const bool cold : {false, true}) {
      GemmNaive kernel;
      kernel.problem = {.m = 5, .n = 7, .k = 12, .type = ElementType::f32};
      kernel.problem.transpose_a = transposed % 2 != 0;
      kernel.problem.transpose_b = transposed / 2 != 0;
      kernel.problem.lda = 13;
      kernel.problem.ldb = 14;
      kernel.problem.ldc = 9;
      const auto& description = kDescription<GemmNaive>;
      std::vector<std::uint64_t> values(description.parameters.size());
      description.values_of(&kernel, values.data());
      BenchmarkOptions options{.launches = 1, .rounds = 2, .warmup = 0, .cold = cold};
      options.cublas = with_fake();
      const Benchmark result = benchmark(rig.launcher, rig.context, description, values, options);
      CHECK(result.verification.ok());
      INFO(result.cublas.error_text() << result.cublas.first_wrong);
      CHECK(result.cublas.ok());
      CHECK(result.cublas.compared == 2 * (4 * 9 + 7));  // with the gaps between rows
      CHECK(result.cublas_microseconds.size() == 2);
      CHECK(result.cublas_version == "13.0.2");
      CHECK(asked.compute_type == 68);
    }
  }
  hooks().matrix_product = by_zeros;
  BenchmarkOptions options{.launches = 1, .rounds = 1, .warmup = 0};
  options.cublas = with_fake();
  const KernelDescription& naive = kDescription<GemmNaive>;
  std::vector<std::uint64_t> values = naive.default_values();
  for (const char* size : {"m", "n", "k"}) values[parameter_index(naive, size)] = 8;
  const Benchmark wrong = benchmark(rig.launcher, rig.context, naive, values, options);
  CHECK(wrong.verification.ok());
  CHECK_FALSE(wrong.cublas.ok());
  CHECK(wrong.cublas.wrong > 0);
}

TEST_CASE("a benchmark without cuBLAS says why, and is none the worse") {
  const Rig rig;
  const auto reason = [&](std::string_view name, const Settings& settings,
                          std::initializer_list<std::pair<const char*, std::uint64_t>> changed) {
    const KernelDescription& kernel = kernel_named(name);
    std::vector<std::uint64_t> values = kernel.default_values();
    for (const auto& [parameter, value] : changed)
      values[parameter_index(kernel, parameter)] = value;
    BenchmarkOptions options{.launches = 1, .rounds = 1, .warmup = 0};
    options.cublas = settings;
    const Benchmark result = benchmark(rig.launcher, rig.context, kernel, values, options);
    CHECK(result.verification.ok());
    CHECK(result.cublas_microseconds.empty());
    REQUIRE(result.cublas.error);
    return result.cublas.error->code + ": " + result.cublas.error->message;
  };
  CHECK(reason("vadd", with_fake(), {{"n", 8}}) ==
        "bad-problem: vadd is no kernel of the family gemm; cuBLAS is asked for their products "
        "alone");
  CHECK(reason("gemm_naive", with_fake(), {{"m", 8}, {"n", 8}, {"k", 8}, {"bias", 1}})
            .starts_with("bad-problem: one call of cuBLAS cannot compute "));
  Settings elsewhere;
  elsewhere.cublas_path = "/nonexistent/libcublas.so";
  CHECK(reason("gemm_naive", elsewhere, {{"m", 8}, {"n", 8}, {"k", 8}})
            .starts_with("no-cublas: the library cuBLAS was not found"));
}

TEST_CASE("cuBLAS is asked for the product of either layout, by either function") {
  const Rig rig;
  Settings settings;
  settings.cublas_path = FAKE_CUBLAS;
  const Current current(rig.context.core(), Stage::Launch);
  const Cublas library(settings);
  hooks().product = by_gemv;
  hooks().matrix_product = by_gemm;

  GemvProblem problem;
  problem.k = 3;
  problem.n = 2;
  const Buffer<f32> a(rig.context, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  const Buffer<f32> x(rig.context, std::vector<float>{1, 10, 100});
  const Buffer<f32> y(rig.context, 2);
  const auto product = [&](Cublas::Way way) {
    found.clear();
    library.product(way, rig.stream.handle(), y.address().value, a.address().value,
                    x.address().value, problem);
    return found;
  };
  for (const Cublas::Way way : {Cublas::Way::Gemv, Cublas::Way::Gemm}) {
    problem.layout = GemvLayout::T;
    problem.lda = 0;
    CHECK(product(way) == std::vector<float>{531, 642});
    problem.lda = 3;  // rows 1 2, 4 5, 7 8
    CHECK(product(way) == std::vector<float>{741, 852});
    problem.layout = GemvLayout::R;
    problem.lda = 0;
    CHECK(product(way) == std::vector<float>{321, 654});
    problem.lda = 4;  // rows 1 2 3, 5 6 7
    CHECK(product(way) == std::vector<float>{321, 765});
  }
  CHECK(asked.n == 1);
  CHECK(asked.alpha == 1);
  CHECK(asked.beta == 0);
  CHECK(asked.compute_type == 68);  // CUBLAS_COMPUTE_32F: no tensor cores' short formats

  problem.lda = 0;
  problem.weights = problem.x = problem.y = ElementType::bf16;
  static_cast<void>(product(Cublas::Way::Gemm));
  CHECK(asked.type_a == 14);  // CUDA_R_16BF
  CHECK(asked.type_b == 14);
  CHECK(asked.type_c == 14);
  CHECK(error_of([&] { static_cast<void>(product(Cublas::Way::Gemv)); }).message ==
        "one call of cuBLAS cannot compute R bf16 2x3 x bf16 y bf16");
  problem.y = ElementType::f32;
  CHECK(error_of([&] { static_cast<void>(product(Cublas::Way::Gemm)); }).code == "bad-problem");
}
