// tests/launcher/cublas_product_test.cpp - both layouts as cuBLAS is asked for them
#include <catch2/catch.hpp>

#include "launcher/fake_cublas.hpp"
#include "launcher/rig.hpp"
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
  const bool turned = p->operation_a != 0;
  found = multiply(p->operation_a, turned ? p->k : p->m, turned ? p->m : p->k,
                   static_cast<const float*>(p->a), p->lda, static_cast<const float*>(p->b));
  return 0;
}

}  // namespace

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
