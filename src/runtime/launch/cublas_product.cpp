// src/runtime/launch/cublas_product.cpp - a benchmarked matrix product, by cuBLAS
#include "runtime/launch/cublas_product.hpp"

#include <algorithm>

#include "kernels/gemm/product.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/device/core.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

GemmProblem gemm_problem(const KernelDescription& kernel, const void* spec) {
  if (const GemmProblem* const found = gemm::product_of(kernel, spec)) return *found;
  throw Error(Stage::Launch, "bad-problem",
              format_text("{} is no kernel of the family gemm; cuBLAS is asked for their products "
                          "alone",
                          kernel.name));
}

DeviceRange range_of(const KernelCall& call, std::string_view name) {
  return std::ranges::find(call.operands, name, &OperandValue::name)->memory;
}

}  // namespace

CublasProduct::CublasProduct(const Context& context, const Settings& settings,
                             const KernelCall& call, const void* spec)
    : context_(context), problem_(gemm_problem(*call.kernel, spec)) {
  operands_.c = range_of(call, "c");
  operands_.a = range_of(call, "a");
  operands_.b = range_of(call, "b");
  if (is_emulated(context.device().info().kind)) {
    throw Error(Stage::Launch, "no-cublas", "cuBLAS needs a GPU, and this device is emulated");
  }
  const Current current(context.core(), Stage::Launch);
  library_ = std::make_unique<const Cublas>(settings);
}

CublasProduct::~CublasProduct() {
  const Current current(context_.core());  // cuBLAS frees its resources in the current context
  library_.reset();
}

void CublasProduct::queue(const Stream& stream) const {
  const Current current(context_.core(), Stage::Launch);
  library_->matrix_product(stream.handle(), operands_.c.address, operands_.a.address,
                           operands_.b.address, problem_);
}

}  // namespace ptxgen::inline v0
