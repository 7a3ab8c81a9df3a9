// src/runtime/launch/cublas_product.hpp - a benchmarked matrix product, by cuBLAS
#pragma once

#include <memory>
#include <string>

#include "ptxgen/kernels/gemm/problem.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "runtime/launch/cublas.hpp"

namespace ptxgen::inline v0 {

/// The product of a call of the GEMM family, with the same operands.
class CublasProduct {
 public:
  /// `spec`: of the call. Throws `Error` (Stage::Launch): "bad-problem" for a kernel that is no
  /// GEMM, or a problem that one call of cuBLAS cannot compute; "no-cublas", also on an emulated
  /// device; "cublas-failed".
  CublasProduct(const Context& context, const Settings& settings, const KernelCall& call,
                const void* spec);
  CublasProduct(const CublasProduct&) = delete;
  CublasProduct& operator=(const CublasProduct&) = delete;
  ~CublasProduct();

  /// Throws `Error` (Stage::Launch, "cublas-failed").
  void queue(const Stream& stream) const;
  /// "13.0.2"
  [[nodiscard]] const std::string& version() const noexcept { return library_->version(); }

 private:
  const Context& context_;
  GemmProblem problem_;
  GemmOperands operands_;
  std::unique_ptr<const Cublas> library_;
};

}  // namespace ptxgen::inline v0
