// tests/kernels/gemm_fp8_test.cpp - products of e4m3 by mma.sync and wgmma
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <vector>

#include "kernels/gemm_sizes.hpp"
#include "launcher/rig.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/gemm/planner.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/model/tensor.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "support/fp8.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// A launcher on an emulated GPU of the table.
struct GpuRig {
  explicit GpuRig(const char* gpu)
      : ordinal(driver::emulated::add_gpu(*ptx::find_gpu(gpu))),
        device(Device::open(table, ordinal, DeviceKind::Cuda)),
        context(device),
        stream(context),
        launcher(context, plain_options()) {}

  const driver::Table table = driver::emulated::table();
  int ordinal;
  const Device device;
  const Context context;
  const Stream stream;
  Launcher launcher;
};

template <class Kernel>
std::vector<std::uint64_t> values_of(const Kernel& kernel) {
  std::vector<std::uint64_t> values(kDescription<Kernel>.parameters.size());
  kDescription<Kernel>.values_of(&kernel, values.data());
  return values;
}

// Any size, pitch, epilogue and type of C.
GemmProblem drawn_problem(Dice& dice, std::uint64_t work, std::uint32_t unit) {
  GemmProblem p;
  do {
    for (std::uint32_t* size : {&p.m, &p.n, &p.k})
      *size = kGemmSizes[dice.bits() % std::size(kGemmSizes)];
  } while (std::uint64_t{p.m} * p.n * p.k > work);
  p.type = ElementType::e4m3;
  p.transpose_b = true;
  p.c = static_cast<ElementType>(dice.bits() % 3);
  p.lda = (p.k + unit - 1) / unit * unit + (one_in(dice, 3) ? unit : 0);
  p.ldb = (p.k + unit - 1) / unit * unit + (one_in(dice, 3) ? unit : 0);
  p.scaled = one_in(dice, 3);
  p.bias = one_in(dice, 3);
  p.residual = one_in(dice, 3);
  p.activation = static_cast<GemmActivation>(one_in(dice, 3) ? dice.bits() % 4 : 0);
  return p;
}

template <class Kernel, class R>
double verified(const R& rig, const Kernel& kernel, std::uint64_t number) {
  const Verification result =
      verify(rig.launcher, rig.context, kDescription<Kernel>, values_of(kernel),
             {.seed = number, .offset = static_cast<std::uint32_t>(number % 2)});
  INFO(kernel_name<Kernel> << " " << result.shape << ", seed " << seed() << ": "
                           << result.error_text() << result.first_wrong
                           << (result.findings.empty() ? "" : result.findings[0]));
  CHECK(result.ok());
  return result.worst_share;
}

}  // namespace

TEST_CASE("e4m3 on the host: every code, the nearest of two, ties to even, the largest") {
  for (int code = 0; code < 256; ++code) {
    const auto bits = static_cast<std::uint8_t>(code);
    const float value = e4m3_to_float(bits);
    INFO(code);
    if ((code & 0x7f) == 0x7f) {
      CHECK(std::isnan(value));
      continue;
    }
    CHECK(float_to_e4m3(value) == bits);
    if ((code & 0x7f) >= 0x7e || (code & 0x80) != 0) continue;
    const float next = e4m3_to_float(static_cast<std::uint8_t>(code + 1));
    const float middle = (value + next) / 2;  // exact
    CHECK(next > value);
    CHECK(float_to_e4m3(middle) == (code % 2 == 0 ? code : code + 1));
    CHECK(float_to_e4m3(std::nextafterf(middle, 0.0f)) == code);
    CHECK(float_to_e4m3(std::nextafterf(middle, 1000.0f)) == code + 1);
  }
  CHECK(e4m3_to_float(0x7e) == 448);
  CHECK(e4m3_to_float(0x01) == std::ldexp(1.0f, -9));
  CHECK(float_to_e4m3(1e30f) == 0x7e);
  CHECK(float_to_e4m3(-465.0f) == 0xfe);
  CHECK(float_to_e4m3(-0.0f) == 0x80);
  CHECK(float_to_e4m3(std::nanf("")) == 0x7f);
  const double values[] = {0.3, -1000, 17};
  const std::vector<std::byte> stored = to_elements(ElementType::e4m3, values);
  CHECK(to_values(ElementType::e4m3, stored) == std::vector<double>{0.3125, -448, 16});
}

TEST_CASE("gemm_mma of e4m3 is within its bound on sm_89 and sm_90, without a finding") {
  Dice dice(seed());
  double of_all = 0;
  for (const char* gpu : {"rtx4090", "h200"}) {
    const GpuRig rig(gpu);
    double worst = 0;
    const int points = kSanitized ? 1 : count(2, 150);
    for (int i = 0; i < points; ++i) {
      GemmMma kernel;
      kernel.problem = drawn_problem(dice, full() ? 17'000'000 : 200'000, 1);
      kernel.tile = static_cast<GemmTile>(dice.bits() % std::size(kGemmTiles));
      kernel.stages = 2 + static_cast<std::uint32_t>(dice.bits() % 3);
      kernel.problem.alignment = 16u >> (dice.bits() % 4);
      kernel.problem.c_alignment = 16u >> (dice.bits() % 4);
      if (one_in(dice, 3)) {
        kernel.problem.k = 64 * kernel.stages * (1 + static_cast<std::uint32_t>(dice.bits() % 2));
        kernel.problem.lda = kernel.problem.ldb = 0;
        kernel.blocks = 1 + static_cast<std::uint32_t>(dice.bits() % 5);
      }
      worst = std::max(worst, verified(rig, kernel, static_cast<std::uint64_t>(i)));
    }
    std::printf("gemm_mma of e4m3 on %s: %d points, largest error / bound %.3f\n", gpu, points,
                worst);
    of_all = std::max(of_all, worst);
  }
  CHECK(of_all > 0);
}

TEST_CASE("gemm_wgmma of e4m3 is within its bound, without a finding") {
  const GpuRig rig("h200");
  Dice dice(seed());
  double worst = 0;
  const int points = kSanitized ? 1 : count(2, 120);
  for (int i = 0; i < points; ++i) {
    GemmWgmma kernel;
    kernel.problem = drawn_problem(dice, full() ? 17'000'000 : 300'000, 16);
    kernel.problem.c_alignment = 16u >> (dice.bits() % 4);
    kernel.tile = full() && one_in(dice, 2) ? WgmmaTile::t128x256x64 : WgmmaTile::t128x128x64;
    kernel.stages = 2 + static_cast<std::uint32_t>(dice.bits() % 3);
    kernel.cluster = 1 + static_cast<std::uint32_t>(dice.bits() % 2);
    if (kernel.steps() % kernel.stages == 0) {
      kernel.blocks = 2 * kernel.cluster;
      kernel.stream_k = one_in(dice, 2);
    }
    worst = std::max(worst, verified(rig, kernel, static_cast<std::uint64_t>(i)));
  }
  std::printf("gemm_wgmma of e4m3: %d points, largest error / bound %.3f\n", points, worst);
  CHECK(worst > 0);
}

namespace {

// C of integers from -4 to 4, which are e4m3, and whose sums here have fewer than 14 bits; element
// `special` of A is replaced if it is not negative.
template <class Kernel>
std::vector<float> integer_product(const GpuRig& rig, const Kernel& kernel, int special,
                                   std::uint8_t with) {
  const GemmProblem& p = kernel.problem;
  const auto stored = [&](std::size_t count, std::size_t step) {
    std::vector<std::uint8_t> bits;
    for (std::size_t i = 0; i < count; ++i)
      bits.push_back(float_to_e4m3(static_cast<float>(i * step % 9) - 4));
    return bits;
  };
  std::vector<std::uint8_t> of_a = stored(p.elements_a(), 7);
  if (special >= 0) of_a[static_cast<std::size_t>(special)] = with;
  const Buffer<u8> a(rig.context, of_a);
  const Buffer<u8> b(rig.context, stored(p.elements_b(), 5));
  const Buffer<f32> c(rig.context, std::vector<float>(p.elements_c(), 7.0f));
  rig.launcher.launch(kernel, {.c = c, .a = a, .b = b}, rig.stream);
  rig.stream.synchronize();
  return read(c);
}

template <class Kernel>
void check_integers(const char* gpu, const Kernel& kernel) {
  const GpuRig rig(gpu);
  const GemmProblem& p = kernel.problem;
  const std::vector<float> got = integer_product(rig, kernel, -1, 0);
  // A NaN in row 3.
  const std::uint32_t row = 3;
  const std::vector<float> with_nan =
      integer_product(rig, kernel, static_cast<int>(row * p.pitch_a() + p.k - 1), 0x7f);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < p.m; ++i) {
    for (std::size_t j = 0; j < p.n; ++j) {
      int sum = 0;
      for (std::size_t t = 0; t < p.k; ++t) {
        sum += (static_cast<int>((i * p.pitch_a() + t) * 7 % 9) - 4) *
               (static_cast<int>((j * p.pitch_b() + t) * 5 % 9) - 4);
      }
      const std::size_t at = i * p.pitch_c() + j;
      wrong += got[at] == static_cast<float>(sum) ? 0 : 1;
      wrong += i == row ? (std::isnan(with_nan[at]) ? 0 : 1) : (with_nan[at] == got[at] ? 0 : 1);
    }
  }
  INFO(gpu << " " << to_text(p));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("products of small integers in e4m3 are exact, and a NaN reaches its row alone") {
  GemmMma mma;
  mma.problem = {.m = 21, .n = 37, .k = 99, .type = ElementType::e4m3, .transpose_b = true};
  mma.problem.alignment = 2;  // rows of 99 are copied byte by byte
  mma.tile = GemmTile::t32x32x32;
  check_integers("rtx4090", mma);
  check_integers("h200", mma);
  GemmWgmma wgmma;
  wgmma.problem = {.m = 21, .n = 37, .k = 144, .type = ElementType::e4m3, .transpose_b = true};
  wgmma.tile = WgmmaTile::t128x128x64;
  check_integers("h200", wgmma);
}

TEST_CASE("e4m3 that a kernel cannot multiply is refused by name") {
  const auto refusal = [](const auto& kernel, std::string_view target) {
    const Error error = error_of([&] { static_cast<void>(kernel.build(ptx::target(target))); });
    return error.code + ": " + error.message;
  };
  GemmMma mma;
  mma.problem.type = ElementType::e4m3;
  CHECK(refusal(mma, "sm_89") ==
        "bad-problem: type is e4m3 with A as [m x k] and B as [k x n]; tensor cores multiply 8-bit "
        "elements that are adjacent along k: store A as [m x k] and B as [n x k] (ta = 0, tb = 1)");
  mma.problem.transpose_b = true;
  CHECK(refusal(mma, "sm_86") ==
        "target-lacks: type is e4m3, which the tensor cores of sm_86 do not have; they need sm_89 "
        "or newer: take f16");
  mma.problem.b = ElementType::q8_0;
  CHECK(refusal(mma, "sm_89") ==
        "bad-problem: type is e4m3 with a B of q8_0; tensor cores multiply it with a B of e4m3: "
        "convert one of them");
  GemmTiled tiled;
  tiled.problem.type = ElementType::e4m3;
  CHECK(refusal(tiled, "sm_90") ==
        "bad-problem: type is e4m3, which gemm_tiled does not have; take gemm_mma (sm_89 and "
        "newer) or gemm_wgmma (sm_90a)");
  GemmWgmma wgmma;
  wgmma.problem = {.type = ElementType::e4m3, .transpose_b = true, .lda = 520};
  CHECK(refusal(wgmma, "sm_90a") ==
        "bad-problem: lda is 520 elements; tensor maps need rows of a multiple of 16 bytes below "
        "2^40, 16 elements: pad them, or take gemm_mma");
  // The family says what its kernel for any GPU says.
  const Error none = error_of([] {
    static_cast<void>(
        rank_gemm_plans({.type = ElementType::e4m3, .transpose_b = true}, *ptx::find_gpu("a100")));
  });
  CHECK(none.code == "target-lacks");
}

TEST_CASE("e4m3 is planned at twice the rate of f16, on Hopper by wgmma alone") {
  const GemmProblem cube{
      .m = 4096, .n = 4096, .k = 4096, .type = ElementType::e4m3, .transpose_b = true};
  const auto& gpu = [](const char* name) -> const ptx::Gpu& { return *ptx::find_gpu(name); };
  for (const char* name : {"h100", "rtx4090"}) {
    const GemmCandidate best = rank_gemm_plans(cube, gpu(name)).front();
    std::printf("%s on %s: %s, %.1f us, %.1f %% of the peak, bound by %s\n", to_text(cube).c_str(),
                name, to_text(best.kernel).c_str(), best.prediction.us,
                100 * best.prediction.share_of_peak, std::string(best.prediction.bound_by).c_str());
    CHECK(std::holds_alternative<GemmWgmma>(best.kernel) == (std::string_view(name) == "h100"));
    CHECK(tensor_rates(gpu(name), ElementType::e4m3).peak_tflops ==
          Approx(2 * tensor_rates(gpu(name), ElementType::f16).peak_tflops));
  }
  CHECK(tensor_rates(gpu("h100"), ElementType::e4m3).mma_tflops() ==
        Approx(tensor_rates(gpu("h100"), ElementType::f16).mma_tflops()));
  CHECK(tensor_rates(gpu("a100"), ElementType::e4m3).peak_tflops == 0);
}

TEST_CASE("kernels of e4m3 assemble without spills") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available())
    return test::skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  const auto check_assembly = [&](const auto& kernel, const char* target) {
    AssembleOptions options;
    options.target = target;
    const Assembly result = assembler.assemble(kernel.build(ptx::target(target)).ptx(), options);
    INFO(result.log);
    CHECK(result.spill_stores + result.spill_loads == 0);
    CHECK(result.log.find("serialized") == std::string::npos);
  };
  GemmMma mma;
  mma.problem.type = ElementType::e4m3;
  mma.problem.transpose_b = true;
  check_assembly(mma, "sm_89");
  GemmWgmma wgmma;
  wgmma.problem = mma.problem;
  if (full()) check_assembly(wgmma, "sm_90a");
}
