// src/kernels/model/tensor.cpp - the rates of tensor cores
#include "ptxgen/kernels/model/tensor.hpp"

namespace ptxgen::inline v0 {

namespace {

/// f16 operations of an SM in a clock, and the clock at which the datasheet counts them (MHz; 0:
/// the table's boost clock).
struct TensorRow {
  std::string_view gpu;
  double per_clock = 0;
  double clock_mhz = 0;
};

// NVIDIA's datasheets and architecture white papers, dense, sums in f32: T4 65 TFLOP/s, A100 312,
// A40 149.7, RTX 3090 71, RTX 4090 165.2, RTX 4080 97.5, L40S 362, L40 181, L4 121, H100 SXM 989,
// H100 PCIe 756, B200 2250, RTX 5090 209.5.
constexpr TensorRow kRows[] = {
    {"t4", 1024},          {"a100", 2048},       {"a100-40", 2048},    {"rtx3090", 512},
    {"a40", 1024},         {"rtx4090", 512},     {"rtx4080", 512},     {"l40s", 1024},
    {"l40", 512},          {"l4", 1024},         {"h100", 4096, 1830}, {"h100-pcie", 4096, 1620},
    {"gh200", 4096, 1830}, {"h200", 4096, 1830}, {"b200", 8192, 1856}, {"b300", 8192, 1856},
    {"rtx5090", 512}};

// On Hopper mma.sync ends at 62 to 65 % of the peak. On sm_120 an attention kernel of mma.sync with
// ldmatrix in two stages reached 94 %, and a GEMM of 128 x 128 tiles, 64 x 64 a warp, as much as
// cuBLAS; on an A100 mma.sync alone equals FlashAttention-2. tcgen05 is not mma.sync: Hopper's
// share is taken for sm_100.
constexpr double kHopperShare = 0.635;
constexpr double kOtherShare = 0.94;

}  // namespace

TensorRates tensor_rates(const ptx::Gpu& gpu, ElementType type) noexcept {
  const std::uint16_t sm = ptx::sm_of(gpu);
  TensorRates rates;
  if (type > ElementType::bf16 || (sm < 80 && type != ElementType::f16)) return rates;
  const bool server = sm >= 90 && sm < 120;
  rates.mma_share = server ? kHopperShare : kOtherShare;
  rates.measured = sm == 90 || sm == 120;
  TensorRow row{gpu.name, server ? 4096.0 : 512.0, 0};
  for (const TensorRow& known : kRows) {
    if (known.gpu == gpu.name) row = known;
  }
  const double clock = row.clock_mhz != 0 ? row.clock_mhz : gpu.clock_mhz;
  rates.peak_tflops = row.per_clock * gpu.sms * clock * 1e-6;
  if (type == ElementType::f32) rates.peak_tflops /= 2;
  return rates;
}

}  // namespace ptxgen::inline v0
