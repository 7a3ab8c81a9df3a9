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

/// The fake's `fake_cublas_hooks`, which the test finds by name and fills.
struct Hooks {
  int (*product)(const Product* product);  ///< its status is cublasSgemv's
  int create_status;
  int handles;  ///< living
};

}  // namespace ptxgen::test
