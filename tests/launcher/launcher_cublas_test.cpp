// tests/launcher/launcher_cublas_test.cpp - GEMV by cuBLAS: layout, fallback, refusals
#include <catch2/catch.hpp>

#include "launcher/fake_cublas.hpp"
#include "launcher/rig.hpp"
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

std::vector<Product> products;

// What BLAS means by its arguments: y = alpha * op(A) x + beta * y, A column-major.
int compute(const Product* p) {
  products.push_back(*p);
  const driver::Table& table = driver::emulated::table();
  const auto at = [](const float* pointer) { return reinterpret_cast<std::uint64_t>(pointer); };
  const auto rows = static_cast<std::size_t>(p->rows);
  const auto columns = static_cast<std::size_t>(p->columns);
  std::vector<float> a(columns * static_cast<std::size_t>(p->lda)), x(columns), y(rows);
  // What was queued before is done first: the fake has no stream of its own.
  if (table.ctx_synchronize() != driver::CUDA_SUCCESS ||
      table.memcpy_to_host(a.data(), at(p->a), a.size() * 4) != driver::CUDA_SUCCESS ||
      table.memcpy_to_host(x.data(), at(p->x), x.size() * 4) != driver::CUDA_SUCCESS) {
    return 13;
  }
  if (p->operation != 0 || p->incx != 1 || p->incy != 1 || p->beta != 0) return 7;
  for (std::size_t i = 0; i < rows; ++i) {
    float sum = 0;
    for (std::size_t j = 0; j < columns; ++j) {
      sum += a[j * static_cast<std::size_t>(p->lda) + i] * x[j];
    }
    y[i] = p->alpha * sum;
  }
  return table.memcpy_to_device(at(p->y), y.data(), y.size() * 4) == driver::CUDA_SUCCESS ? 0 : 13;
}

LauncherOptions with_blas(GemvChoice choice, const char* path = FAKE_CUBLAS) {
  LauncherOptions options = plain_options();
  options.gemv = choice;
  options.settings.cublas_path = path;
  return options;
}

// A 3 x 2 product with whole numbers.
struct Small {
  explicit Small(const Rig& rig)
      : y(rig.context, std::vector<float>{-1, -1}),
        a(rig.context, std::vector<float>{1, 2, 3, 4, 5, 6}),
        x(rig.context, std::vector<float>{1, 10, 100}) {}
  Buffer<f32> y, a, x;
  const std::vector<float> expected = {531, 642};
};

driver::CUresult refuse_to_load(driver::CUmodule*, const void*, unsigned, driver::CUjit_option*,
                                void**) {
  return driver::CUDA_ERROR_INVALID_PTX;
}

// A GPU whose driver takes no module.
driver::Table without_modules() {
  driver::Table table = driver::emulated::table();
  table.module_load_data_ex = refuse_to_load;
  return table;
}

}  // namespace

TEST_CASE("y = A^T x in row-major order is cublasSgemv without transposition") {
  hooks() = {compute, 0, 0};
  products.clear();
  {
    const LogOfTest log;
    const Rig rig(with_blas(GemvChoice::Cublas));
    const Small small(rig);
    const LaunchRecord record = rig.launcher.gemv(small.y, small.a, small.x, 3, 2, rig.stream);
    CHECK(record.kernel == "cublasSgemv");
    CHECK(record.implementation == "cublas");
    CHECK(record.reason == "requested");
    CHECK_FALSE(record.cached);
    CHECK(read(small.y) == small.expected);
    CHECK(rig.launcher.gemv(small.y, small.a, small.x, 3, 2, rig.stream).cached);
    CHECK(hooks().handles == 1);
    REQUIRE(products.size() == 2);
    CHECK(products[0].stream == rig.stream.handle());
    CHECK(products[0].rows == 2);
    CHECK(products[0].columns == 3);
    CHECK(products[0].lda == 2);
    CHECK(log.text().find("gemv: cuBLAS 13.0.2 from " FAKE_CUBLAS) != std::string::npos);
  }
  CHECK(hooks().handles == 0);
}

TEST_CASE("cuBLAS with k = 0 gives zeros, with several rows a product for each") {
  hooks() = {compute, 0, 0};
  products.clear();
  const Rig rig(with_blas(GemvChoice::Cublas));
  const Small small(rig);
  rig.launcher.gemv(small.y, {}, {}, 0, 2, rig.stream);
  rig.stream.synchronize();
  CHECK(read(small.y) == std::vector<float>{0, 0});
  CHECK(products.empty());

  const Buffer<f32> rows(rig.context, std::vector<float>{1, 10, 100, 1, 0, 0});
  const Buffer<f32> c(rig.context, 4);
  const LaunchRecord record =
      rig.launcher.matmul(c, rows, small.a, {.m = 2, .k = 3, .n = 2}, rig.stream);
  CHECK(record.kernel == "cublasSgemv");
  CHECK(record.implementation == "rows");
  CHECK(record.launches == 2);
  CHECK(read(c) == std::vector<float>{531, 642, 1, 2});
}

TEST_CASE("plans and prepare know cuBLAS") {
  hooks() = {compute, 0, 0};
  const Rig rig(with_blas(GemvChoice::Cublas));
  const Small small(rig);
  const KernelRequest wanted[] = {{"gemv", {3, 2}}};
  rig.launcher.prepare(wanted);
  CHECK(hooks().handles == 1);
  const LaunchPlan plan = rig.launcher.plan(GemvProblem{.k = 3, .n = 2},
                                            {.y = small.y, .a = small.a, .x = small.x}, rig.stream);
  CHECK(plan.record().kernel == "cublasSgemv");
  CHECK(plan.record().cached);
  plan.launch();
  CHECK(read(small.y) == small.expected);
}

TEST_CASE("auto falls back on cuBLAS once the kernel cannot be loaded, and says so") {
  hooks() = {compute, 0, 0};
  const LogOfTest log;
  const Rig rig(with_blas(GemvChoice::Auto), without_modules());
  const Small small(rig);
  for (int i = 0; i < 2; ++i) {
    const LaunchRecord record = rig.launcher.gemv(small.y, small.a, small.x, 3, 2, rig.stream);
    CHECK(record.implementation == "cublas");
    CHECK(record.reason == "auto: the planned kernel could not be loaded");
  }
  CHECK(read(small.y) == small.expected);
  const std::string text = log.text();
  const std::string message = "gemv uses cublasSgemv from now on; the planned kernel could not be";
  CHECK(text.find(message) != std::string::npos);
  CHECK(text.find(message) == text.rfind(message));  // once
}

TEST_CASE("without a cuBLAS to fall back on, the first cause is what is thrown") {
  const Rig rig(with_blas(GemvChoice::Auto, "/nowhere/libcublas.so"), without_modules());
  const Small small(rig);
  const Error error =
      error_of([&] { rig.launcher.gemv(small.y, small.a, small.x, 3, 2, rig.stream); });
  CHECK(error.stage == Stage::Load);
  REQUIRE(error.causes.size() >= 1);
  CHECK(error.causes.back().code == "no-cublas");
  // Other choices have nothing to fall back on.
  const Launcher coalesced(rig.context, with_blas(GemvChoice::Coalesced));
  CHECK(error_of([&] { coalesced.gemv(small.y, small.a, small.x, 3, 2, rig.stream); }).stage ==
        Stage::Load);
}

TEST_CASE("a cuBLAS that is missing, broken or fails is an error with its reason") {
  hooks() = {compute, 0, 0};
  const auto refused = [](const LauncherOptions& options) {
    const Rig rig(options);
    const Small small(rig);
    return error_of([&] { rig.launcher.gemv(small.y, small.a, small.x, 3, 2, rig.stream); });
  };
  const Error missing = refused(with_blas(GemvChoice::Cublas, "/nowhere/libcublas.so"));
  CHECK(missing.code == "no-cublas");
  CHECK(missing.log.find("/nowhere/libcublas.so") != std::string::npos);
  CHECK(missing.message.find("PTXGEN_CUBLAS_PATH") != std::string::npos);
  const Error broken = refused(with_blas(GemvChoice::Cublas, BROKEN_CUBLAS));
  CHECK(broken.code == "no-cublas");
  CHECK(broken.message == BROKEN_CUBLAS
        " is not a cuBLAS library: it has no function cublasSgemv_v2");
  hooks().create_status = 3;
  const Error poor = refused(with_blas(GemvChoice::Cublas));
  CHECK(poor.code == "cublas-failed");
  CHECK(poor.message == "cublasCreate says CUBLAS_STATUS_ALLOC_FAILED (3)");
  CHECK(poor.driver_status == 3);
  hooks() = {[](const Product*) { return 13; }, 0, 0};
  CHECK(refused(with_blas(GemvChoice::Cublas)).message ==
        "cublasSgemv says CUBLAS_STATUS_EXECUTION_FAILED (13)");
}

TEST_CASE("sizes that cublasSgemv cannot say are refused") {
  hooks() = {compute, 0, 0};
  const Rig rig(with_blas(GemvChoice::Cublas));
  const Error error = error_of([&] {
    rig.launcher.gemv({{4096}, 1u << 31}, {{1ull << 40}, 1ull << 31}, {{1ull << 50}, 1}, 1,
                      1u << 31, rig.stream);
  });
  CHECK(error.code == "launch-limits");
  CHECK(error.message ==
        "cublasSgemv takes sizes up to 2147483647, not k = 1, n = 2147483648; choose the GEMV "
        "coalesced");
}
