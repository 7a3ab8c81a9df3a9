// tests/launcher/fake_cublas.hpp - what the fake cuBLAS and its test share
#pragma once

namespace ptxgen::test {

/// The arguments of a cublasSgemv.
struct Product {
  void* stream;
  int operation, rows, columns;
  float alpha;
  const float* a;
  int lda;
  const float* x;
  int incx;
  float beta;
  float* y;
  int incy;
};

/// The arguments of a cublasGemmEx.
struct MatrixProduct {
  void* stream;
  int operation_a, operation_b, m, n, k;
  float alpha;
  const void* a;
  int type_a, lda;
  const void* b;
  int type_b, ldb;
  float beta;
  void* c;
  int type_c, ldc, compute_type, algorithm;
};

/// The fake's `fake_cublas_hooks`, which the test finds by name and fills.
struct Hooks {
  int (*product)(const Product* product) = nullptr;  ///< its status is cublasSgemv's
  int create_status = 0;
  int handles = 0;                                                ///< living
  int (*matrix_product)(const MatrixProduct* product) = nullptr;  ///< its status is cublasGemmEx's
};

}  // namespace ptxgen::test
