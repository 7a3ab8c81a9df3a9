// tests/launcher/fake_cublas.cpp - a cuBLAS whose products a test computes
//
// The test fills `fake_cublas_hooks`, which it finds by name.
#include "launcher/fake_cublas.hpp"

#include <cstddef>

#if defined(_WIN32)
#define EXPORTED extern "C" __declspec(dllexport)
#else
#define EXPORTED extern "C" __attribute__((visibility("default")))
#endif

using namespace ptxgen::test;

extern "C" {
EXPORTED Hooks fake_cublas_hooks;
Hooks fake_cublas_hooks = {nullptr, 0, 0, nullptr};
}

namespace {
struct Handle {
  void* stream = nullptr;
};
}  // namespace

EXPORTED int cublasCreate_v2(void** handle);
EXPORTED int cublasDestroy_v2(void* handle);
EXPORTED int cublasGetVersion_v2(void* handle, int* version);
EXPORTED int cublasSetStream_v2(void* handle, void* stream);
EXPORTED int cublasSgemv_v2(void* handle, int operation, int rows, int columns, const float* alpha,
                            const float* a, int lda, const float* x, int incx, const float* beta,
                            float* y, int incy);
EXPORTED int cublasGemmEx(void* handle, int operation_a, int operation_b, int m, int n, int k,
                          const void* alpha, const void* a, int type_a, int lda, const void* b,
                          int type_b, int ldb, const void* beta, void* c, int type_c, int ldc,
                          int compute_type, int algorithm);

int cublasCreate_v2(void** handle) {
  if (fake_cublas_hooks.create_status != 0) return fake_cublas_hooks.create_status;
  *handle = new Handle;
  ++fake_cublas_hooks.handles;
  return 0;
}

int cublasDestroy_v2(void* handle) {
  delete static_cast<Handle*>(handle);
  --fake_cublas_hooks.handles;
  return 0;
}

int cublasGetVersion_v2(void*, int* version) {
  *version = 130002;
  return 0;
}

int cublasSetStream_v2(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}

int cublasSgemv_v2(void* handle, int operation, int rows, int columns, const float* alpha,
                   const float* a, int lda, const float* x, int incx, const float* beta, float* y,
                   int incy) {
  const Product product{static_cast<Handle*>(handle)->stream,
                        operation,
                        rows,
                        columns,
                        *alpha,
                        a,
                        lda,
                        x,
                        incx,
                        *beta,
                        y,
                        incy};
  return fake_cublas_hooks.product(&product);
}

int cublasGemmEx(void* handle, int operation_a, int operation_b, int m, int n, int k,
                 const void* alpha, const void* a, int type_a, int lda, const void* b, int type_b,
                 int ldb, const void* beta, void* c, int type_c, int ldc, int compute_type,
                 int algorithm) {
  const MatrixProduct product{static_cast<Handle*>(handle)->stream,
                              operation_a,
                              operation_b,
                              m,
                              n,
                              k,
                              *static_cast<const float*>(alpha),
                              a,
                              type_a,
                              lda,
                              b,
                              type_b,
                              ldb,
                              *static_cast<const float*>(beta),
                              c,
                              type_c,
                              ldc,
                              compute_type,
                              algorithm};
  return fake_cublas_hooks.matrix_product(&product);
}
