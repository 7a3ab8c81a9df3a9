// src/runtime/launch/cublas.hpp - cuBLAS, found at run time
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "ptxgen/driver/api.hpp"
#include "ptxgen/kernels/gemm/problem.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/dynamic_library.hpp"

namespace ptxgen::inline v0 {

/// A cuBLAS library and a handle of it in one context.
///
/// Threads: `sgemv` and `product` from any thread; calls are queued one after the other.
class Cublas {
 public:
  /// Finds and opens the library and creates a handle in the current context. That context must be
  /// current for every use and for the destructor. Not during a stream capture. Throws `Error`
  /// (Stage::Launch): "no-cublas" whose log lists every place tried, "cublas-failed" with cuBLAS's
  /// status.
  explicit Cublas(const Settings& settings);
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  ~Cublas();

  /// The opened file.
  [[nodiscard]] const std::string& where() const noexcept { return library_.path(); }
  /// "13.0.2"
  [[nodiscard]] const std::string& version() const noexcept { return version_; }

  /// Queues `y = x^T A` with `A[k x n]` row-major f32, k and n not 0: the product of cublasSgemv
  /// without transposition on the same memory seen as column-major `[n x k]`. Throws `Error`
  /// (Stage::Launch): "launch-limits" beyond 2^31 - 1, "cublas-failed".
  void sgemv(driver::CUstream stream, std::uint64_t y, std::uint64_t a, std::uint64_t x,
             std::uint32_t k, std::uint32_t n) const;

  /// How `product` computes.
  enum class Way : std::uint8_t {
    Gemv,  ///< cublasSgemv, f32 only
    Gemm,  ///< cublasGemmEx with one column, sums in f32
  };
  /// Queues the plain product of a problem (no alpha, beta, bias, residual; k not 0) whose weights,
  /// x and y have one type. Throws `Error` (Stage::Launch): "launch-limits" beyond 2^31 - 1,
  /// "no-cublas" if the library has no cublasGemmEx, "cublas-failed", "bad-problem" for a problem
  /// that it cannot compute.
  void product(Way way, driver::CUstream stream, std::uint64_t y, std::uint64_t a, std::uint64_t x,
               const GemvProblem& problem) const;

  /// Queues the plain product of one matrix (no batch, alpha, beta, bias, residual, activation; k
  /// not 0) with A and B of one type, f32, f16 or bf16: cublasGemmEx, sums in f32. Throws as
  /// `product`.
  void matrix_product(driver::CUstream stream, std::uint64_t c, std::uint64_t a, std::uint64_t b,
                      const GemmProblem& problem) const;

 private:
  // cuBLAS's functions. A handle is opaque, a status and an operation are ints.
#define PTXGEN_CUBLAS_FUNCTIONS(X)                                                           \
  X(create, "cublasCreate_v2", (void** handle))                                              \
  X(destroy, "cublasDestroy_v2", (void* handle))                                             \
  X(get_version, "cublasGetVersion_v2", (void* handle, int* version))                        \
  X(set_stream, "cublasSetStream_v2", (void* handle, driver::CUstream stream))               \
  X(sgemv_, "cublasSgemv_v2",                                                                \
    (void* handle, int operation, int rows, int columns, const float* alpha, const float* a, \
     int lda, const float* x, int incx, const float* beta, float* y, int incy))
#define PTXGEN_CUBLAS_MEMBER(field, symbol, parameters) int(*field) parameters = nullptr;
  struct Functions {
    PTXGEN_CUBLAS_FUNCTIONS(PTXGEN_CUBLAS_MEMBER)
    int (*gemm_ex)(void* handle, int operation_a, int operation_b, int m, int n, int k,
                   const void* alpha, const void* a, int type_a, int lda, const void* b, int type_b,
                   int ldb, const void* beta, void* c, int type_c, int ldc, int compute_type,
                   int algorithm) = nullptr;  // older libraries have a different signature
  };
#undef PTXGEN_CUBLAS_MEMBER
  void resolve();

  DynamicLibrary library_;
  Functions call_;
  std::string version_;
  void* handle_ = nullptr;
  mutable std::mutex mutex_;  // a handle's stream belongs to the handle
};

}  // namespace ptxgen::inline v0
