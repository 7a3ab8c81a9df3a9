// src/kernels/gemm/block_rows.cpp - rows of a stored B, dequantised
#include "kernels/gemm/block_rows.hpp"

#include <bit>

namespace ptxgen::inline v0::gemm {

std::vector<Value<f32>> load_run_of_row(KernelBuilder& k, ElementType type, const Ptr<b8>& row,
                                        const Value<u32>& run) {
  const std::uint32_t values = info(type).block_values;
  if (values == 1) {
    const Ptr<b8> at = moved(k, row, run, std::uint64_t{kRunValues} * bytes(type));
    return expand(k, load_run(k, at, type, kRunValues, bytes(type)), kRunValues);
  }
  const std::uint32_t runs = values / kRunValues;
  const Value<u32> block = run >> static_cast<unsigned>(std::countr_zero(runs));
  const Value<u32> run_of_block = run & (runs - 1);
  return load_block_values(k, type, moved(k, row, block, bytes(type)), run_of_block);
}

std::uint64_t pitch_bytes_b(const GemmProblem& problem) noexcept {
  return bytes(problem.type_b(), problem.pitch_b());
}

}  // namespace ptxgen::inline v0::gemm
