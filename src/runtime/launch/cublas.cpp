// src/runtime/launch/cublas.cpp - cuBLAS, found at run time
#include "runtime/launch/cublas.hpp"

#include <algorithm>
#include <limits>

#include "ptxgen/support/error.hpp"
#include "support/foreign_leaks.hpp"
#include "support/format.hpp"
#include "support/toolkit.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr int kSuccess = 0;
constexpr int kNoTranspose = 0;  // CUBLAS_OP_N
constexpr int kTranspose = 1;    // CUBLAS_OP_T
constexpr int kCompute32 = 68;   // CUBLAS_COMPUTE_32F
constexpr int kAnyAlgorithm = -1;

// Values and names of cublasStatus_t.
const char* status_name(int status) noexcept {
  switch (status) {
    case 1:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case 7:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case 8:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case 11:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case 13:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case 15:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "cublasStatus_t";
  }
}

// Values of cudaDataType.
int cuda_type(ElementType type) noexcept {
  return type == ElementType::f16 ? 2 : type == ElementType::bf16 ? 14 : 0;
}

void check(int status, const char* function) {
  if (status == kSuccess) return;
  Error error(Stage::Launch, "cublas-failed",
              format_text("{} says {} ({})", function, status_name(status), status));
  error.driver_status = status;
  throw error.refresh();
}

}  // namespace

void Cublas::resolve() {
  const char* missing = nullptr;
#define PTXGEN_CUBLAS_RESOLVE(field, symbol, parameters) \
  if (missing == nullptr && !library_.resolve(symbol, call_.field)) missing = symbol;
  PTXGEN_CUBLAS_FUNCTIONS(PTXGEN_CUBLAS_RESOLVE)
#undef PTXGEN_CUBLAS_RESOLVE
#undef PTXGEN_CUBLAS_FUNCTIONS
  if (missing != nullptr) {
    throw Error(
        Stage::Launch, "no-cublas",
        format_text("{} is not a cuBLAS library: it has no function {}", library_.path(), missing));
  }
  (void)library_.resolve("cublasGemmEx", call_.gemm_ex);
}

Cublas::Cublas(const Settings& settings) : library_(DynamicLibrary::find(cublas_search(settings))) {
  if (!library_) {
    Error error(Stage::Launch, "no-cublas",
                "the library cuBLAS was not found; install it, set PTXGEN_CUBLAS_PATH or "
                "PTXGEN_CUDA_PATH to its path, or choose the GEMV coalesced");
    error.log = to_text(library_.attempts());
    throw error.refresh();
  }
  resolve();
  {
    const ForeignLeaks what_cublas_keeps;
    check(call_.create(&handle_), "cublasCreate");
  }
  int number = 0;
  (void)call_.get_version(handle_, &number);
  // 130002 is 13.0.2; versions before cuBLAS 10 used another scheme and are not supported.
  version_ = format_text("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

Cublas::~Cublas() {
  if (handle_ != nullptr) (void)call_.destroy(handle_);
}

void Cublas::sgemv(driver::CUstream stream, std::uint64_t y, std::uint64_t a, std::uint64_t x,
                   std::uint32_t k, std::uint32_t n) const {
  constexpr std::uint32_t kMax = std::numeric_limits<int>::max();
  if (k > kMax || n > kMax) {
    throw Error(
        Stage::Launch, "launch-limits",
        format_text(
            "cublasSgemv takes sizes up to {}, not k = {}, n = {}; choose the GEMV coalesced", kMax,
            k, n));
  }
  const auto rows = static_cast<int>(n);
  const auto columns = static_cast<int>(k);
  const auto floats = [](std::uint64_t address) { return reinterpret_cast<float*>(address); };
  const float one = 1.0f;
  const float zero = 0.0f;
  const std::lock_guard lock(mutex_);
  check(call_.set_stream(handle_, stream), "cublasSetStream");
  check(call_.sgemv_(handle_, kNoTranspose, rows, columns, &one, floats(a), rows, floats(x), 1,
                     &zero, floats(y), 1),
        "cublasSgemv");
}

void Cublas::product(Way way, driver::CUstream stream, std::uint64_t y, std::uint64_t a,
                     std::uint64_t x, const GemvProblem& problem) const {
  const auto refuse = [](const char* code, std::string message) {
    throw Error(Stage::Launch, code, std::move(message));
  };
  constexpr std::uint64_t kMax = std::numeric_limits<int>::max();
  if (problem.k > kMax || problem.n > kMax || problem.leading_dimension() > kMax) {
    refuse("launch-limits",
           format_text("cuBLAS takes sizes up to {}, not {}", kMax, to_text(problem)));
  }
  if (problem.scaled || problem.bias || problem.residual || problem.k == 0 ||
      problem.x != problem.weights || problem.y != problem.weights ||
      (way == Way::Gemv && problem.weights != ElementType::f32)) {
    refuse("bad-problem", "one call of cuBLAS cannot compute " + to_text(problem));
  }
  // Row-major is column-major transposed: layout T is BLAS's n x k matrix, layout R its k x n one.
  const bool rows = problem.layout == GemvLayout::R;
  const auto k = static_cast<int>(problem.k);
  const auto n = static_cast<int>(problem.n);
  const auto lda = static_cast<int>(problem.leading_dimension());
  const int operation = rows ? kTranspose : kNoTranspose;
  const float one = 1.0f;
  const float zero = 0.0f;
  const auto floats = [](std::uint64_t address) { return reinterpret_cast<float*>(address); };
  const std::lock_guard lock(mutex_);
  check(call_.set_stream(handle_, stream), "cublasSetStream");
  if (way == Way::Gemv) {
    check(call_.sgemv_(handle_, operation, rows ? k : n, rows ? n : k, &one, floats(a), lda,
                       floats(x), 1, &zero, floats(y), 1),
          "cublasSgemv");
    return;
  }
  if (call_.gemm_ex == nullptr) {
    refuse("no-cublas", library_.path() + " has no function cublasGemmEx");
  }
  const int type = cuda_type(problem.weights);
  check(call_.gemm_ex(handle_, operation, kNoTranspose, n, 1, k, &one, floats(a), type, lda,
                      floats(x), type, k, &zero, floats(y), type, n, kCompute32, kAnyAlgorithm),
        "cublasGemmEx");
}

void Cublas::matrix_product(driver::CUstream stream, std::uint64_t c, std::uint64_t a,
                            std::uint64_t b, const GemmProblem& problem) const {
  constexpr std::uint64_t kMax = std::numeric_limits<int>::max();
  const std::uint64_t sizes[] = {problem.m,         problem.n,         problem.k,
                                 problem.pitch_a(), problem.pitch_b(), problem.pitch_c()};
  if (*std::ranges::max_element(sizes) > kMax) {
    throw Error(Stage::Launch, "launch-limits",
                format_text("cuBLAS takes sizes up to {}, not {}", kMax, to_text(problem)));
  }
  const bool floats = problem.type == ElementType::f32 || problem.type == ElementType::f16 ||
                      problem.type == ElementType::bf16;
  if (problem.batch != 1 || problem.k == 0 || problem.type_b() != problem.type || !floats ||
      problem.scaled || problem.bias || problem.residual ||
      problem.activation != GemmActivation::None) {
    throw Error(Stage::Launch, "bad-problem",
                "one call of cuBLAS cannot compute " + to_text(problem));
  }
  if (call_.gemm_ex == nullptr) {
    throw Error(Stage::Launch, "no-cublas", library_.path() + " has no function cublasGemmEx");
  }
  // Row-major is column-major transposed: C^T = B^T A^T.
  const auto operation = [](bool transposed) { return transposed ? kTranspose : kNoTranspose; };
  const auto size = [](std::uint64_t value) { return static_cast<int>(value); };
  const auto pointer = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
  const int type = cuda_type(problem.type);
  const float one = 1.0f;
  const float zero = 0.0f;
  const std::lock_guard lock(mutex_);
  check(call_.set_stream(handle_, stream), "cublasSetStream");
  check(call_.gemm_ex(handle_, operation(problem.transpose_b), operation(problem.transpose_a),
                      size(problem.n), size(problem.m), size(problem.k), &one, pointer(b), type,
                      size(problem.pitch_b()), pointer(a), type, size(problem.pitch_a()), &zero,
                      pointer(c), cuda_type(problem.c), size(problem.pitch_c()), kCompute32,
                      kAnyAlgorithm),
        "cublasGemmEx");
}

}  // namespace ptxgen::inline v0
