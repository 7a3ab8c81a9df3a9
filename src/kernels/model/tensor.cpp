// src/kernels/model/tensor.cpp - the rates of tensor cores
#include "ptxgen/kernels/model/tensor.hpp"

namespace ptxgen::inline v0 {

namespace {

// On Hopper mma.sync ends at 62 to 65 % of the peak. On sm_120 an attention kernel of mma.sync with
// ldmatrix in two stages reached 94 %, and a GEMM of 128 x 128 tiles, 64 x 64 a warp, as much as
// cuBLAS; on an A100 mma.sync alone equals FlashAttention-2. tcgen05 is not mma.sync: Hopper's
// share is taken for sm_100.
constexpr double kHopperShare = 0.635;
constexpr double kOtherShare = 0.94;
// DeepGEMM's bf16 kernel on an H100 SXM, the best published; cuBLAS reached 77 % there, a plain
// kernel of CUTLASS 65 %.
constexpr double kWgmmaShare = 0.84;

}  // namespace

TensorRates tensor_rates(const ptx::Gpu& gpu, ElementType type) noexcept {
  const std::uint16_t sm = ptx::sm_of(gpu);
  TensorRates rates;
  const bool eight_bits = type == ElementType::e4m3;
  if (type > ElementType::bf16 && !eight_bits) return rates;
  if (sm < 80 && type != ElementType::f16) return rates;
  if (eight_bits && sm < 89) return rates;
  const bool server = sm >= 90 && sm < 120;
  rates.mma_share = server ? kHopperShare : kOtherShare;
  if (sm == 90) rates.wgmma_share = kWgmmaShare;
  rates.measured = sm == 90 || sm == 120;
  // A GPU that is not in the table: as the weakest of its kind.
  const double unknown = server ? 4096 : 512;
  const double per_clock =
      gpu.tensor.operations_per_clock != 0 ? gpu.tensor.operations_per_clock : unknown;
  const double clock = gpu.tensor.clock_mhz != 0 ? gpu.tensor.clock_mhz : gpu.clock_mhz;
  rates.peak_tflops = per_clock * gpu.sms * clock * 1e-6;
  if (type == ElementType::f32) rates.peak_tflops /= 2;
  if (eight_bits) {
    // Datasheets have twice the rate of f16, with sums in f32. mma.sync of sm_90 multiplies them as
    // f16; no kernel's share was looked up.
    rates.peak_tflops *= 2;
    if (sm == 90) rates.mma_share /= 2;
    rates.measured = false;
  }
  return rates;
}

}  // namespace ptxgen::inline v0
