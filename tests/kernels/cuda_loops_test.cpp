// tests/kernels/cuda_loops_test.cpp - products in CUDA C++ with inline PTX, compiled for sm_90a
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "driver/emulated_context.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/check.hpp"
#include "ptxgen/kernels/gemm/mma.hpp"
#include "ptxgen/kernels/gemm/wgmma.hpp"
#include "ptxgen/runtime/assemble/nvrtc.hpp"
#include "ptxgen/runtime/module/compile.hpp"
#include "ptxgen/support/error.hpp"
#include "support/half.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;
using namespace ptxgen::test;

namespace {

// Those of ring.cuh.
constexpr unsigned kStages = 3, kTerms = 64, kRows = 128, kColumns = 64;
constexpr unsigned kRingBytes = kStages * (kRows + kColumns) * kTerms * 2;

std::string file(const std::string& name) {
  std::ifstream in(std::string(CUDA_LOOPS) + "/" + name);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

// The PTX of a loop; empty where there is no compiler.
std::string compiled(const std::string& name, bool with_ring) {
  CudaOptions options;
  options.target = "sm_90a";
  options.name = name;
  try {
    const CudaProgram program =
        compile_cuda((with_ring ? file("ring.cuh") : "") + file(name), options);
    for (const Finding& finding : gates::run(program.module)) {
      INFO(to_text(finding));
      CHECK(finding.severity != Severity::Error);
    }
    return program.ptx;
  } catch (const Error& error) {
    if (error.code != "no-nvrtc") throw;
    skip(error.message);
    return {};
  }
}

/// C[m x n] = A[m x k] B[n x k]^T on the emulated device, under all checks.
class Product {
 public:
  Product(unsigned m, unsigned n, unsigned k) : m_(m), n_(n), k_(k) {
    Dice dice(seed());
    const auto fill = [&](std::vector<std::uint16_t>& to, unsigned rows) {
      for (unsigned i = 0; i < rows * k; ++i)
        to.push_back(float_to_f16(static_cast<float>(dice.bits() % 2001) * 0.001f - 1));
    };
    fill(a_, m);
    fill(b_, n);
    a_at_ = uploaded(a_);
    b_at_ = uploaded(b_);
    c_at_ = gpu_.allocate(4 * size());
    REQUIRE(emulated::observe_launches(gpu_.context, report, this) == CUDA_SUCCESS);
  }

  /// A loop of mma.sync, whose blocks have 64 x 64 outputs.
  void multiply(const std::string& ptx, const char* name) {
    void* parameters[] = {&c_at_, &a_at_, &b_at_, &m_, &n_, &k_};
    launch(gpu_.function(gpu_.load(ptx), name), blocks(n_, 64), blocks(m_, 64), 128, 0, parameters);
  }
  /// A loop of wgmma; clusters of `cluster` blocks have adjacent rows.
  void multiply_by_maps(const std::string& ptx, const char* name, unsigned cluster) {
    CUtensorMap map_a = map(a_at_, m_, kRows);
    CUtensorMap map_b = map(b_at_, n_, kColumns / cluster);
    void* parameters[] = {&map_a, &map_b, &c_at_, &m_, &n_, &k_};
    const CUfunction function = gpu_.function(gpu_.load(ptx), name);
    REQUIRE(gpu_.api.func_set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        kRingBytes) == CUDA_SUCCESS);
    const unsigned down = (blocks(m_, kRows) + cluster - 1) / cluster * cluster;
    launch(function, blocks(n_, kColumns), down, 384, kRingBytes, parameters);
  }

  /// The largest error as a share of what `relative`, of the terms' magnitudes, allows.
  double worst(double relative) {
    std::vector<float> c(size());
    REQUIRE(gpu_.api.memcpy_to_host(c.data(), c_at_, 4 * size()) == CUDA_SUCCESS);
    double worst = 0;
    for (unsigned i = 0; i < m_; ++i) {
      for (unsigned j = 0; j < n_; ++j) {
        double sum = 0, magnitude = 0;
        for (unsigned t = 0; t < k_; ++t) {
          const double term = double{f16_to_float(a_[std::size_t{i} * k_ + t])} *
                              f16_to_float(b_[std::size_t{j} * k_ + t]);
          sum += term;
          magnitude += std::abs(term);
        }
        const double error = std::abs(double{c[std::size_t{i} * n_ + j]} - sum);
        // A value that is not a number counts as wrong.
        worst = std::max(worst, error == error ? error / (relative * magnitude) : HUGE_VAL);
      }
    }
    return worst;
  }
  [[nodiscard]] const std::string& findings() const noexcept { return findings_; }

 private:
  static unsigned blocks(unsigned outputs, unsigned tile) { return (outputs - 1) / tile + 1; }
  [[nodiscard]] std::size_t size() const { return std::size_t{m_} * n_; }
  CUdeviceptr uploaded(const std::vector<std::uint16_t>& values) {
    const CUdeviceptr at = gpu_.allocate(2 * values.size());
    REQUIRE(gpu_.api.memcpy_to_device(at, values.data(), 2 * values.size()) == CUDA_SUCCESS);
    return at;
  }
  CUtensorMap map(CUdeviceptr at, unsigned rows, unsigned box_rows) {
    CUtensorMap map;
    const std::uint64_t extents[] = {k_, rows};
    const std::uint64_t strides[] = {2 * extents[0]};
    const std::uint32_t box[] = {kTerms, box_rows};
    constexpr std::uint32_t kEach[] = {1, 1};
    REQUIRE(gpu_.api.tensor_map_encode_tiled(
                &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, reinterpret_cast<void*>(at), extents,
                strides, box, kEach, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    return map;
  }
  void launch(CUfunction function, unsigned x, unsigned y, unsigned threads, unsigned shared,
              void** parameters) {
    emulator::Options options = emulated::default_options();
    options.checks = emulator::RuleSet::all();
    options.seed = seed();
    REQUIRE(emulated::set_launch_options(gpu_.context, options) == CUDA_SUCCESS);
    REQUIRE(gpu_.api.launch_kernel(function, x, y, 1, threads, 1, 1, shared, nullptr, parameters,
                                   nullptr) == CUDA_SUCCESS);
    REQUIRE(gpu_.api.ctx_synchronize() == CUDA_SUCCESS);
  }
  static void report(void* user, const emulated::LaunchReport& launch) {
    for (const emulator::RunFinding& finding : launch.result.findings)
      static_cast<Product*>(user)->findings_ += emulator::to_text(finding) + "\n";
  }

  EmulatedContext gpu_;
  unsigned m_, n_, k_;
  std::vector<std::uint16_t> a_, b_;
  CUdeviceptr a_at_ = 0, b_at_ = 0, c_at_ = 0;
  std::string findings_;
};

void check(Product& product, const char* name, double bound) {
  const double worst = product.worst(bound);
  std::printf("%s.cu, seed %u: largest error / bound %.3f\n", name, static_cast<unsigned>(seed()),
              worst);
  CHECK(product.findings() == "");
  CHECK(worst > 0);
  CHECK(worst <= 1);
}

}  // namespace

TEST_CASE("a loop of cp.async, ldmatrix and mma.sync in CUDA C++ against fp64") {
  const std::string ptx = compiled("multistage.cu", false);
  if (ptx.empty()) return;
  Product product(100, 72, 160);
  product.multiply(ptx, "multistage");
  check(product, "multistage", tensor_core_error(160));
}

TEST_CASE("loops of tensor copies, an mbarrier ring and wgmma in CUDA C++ against fp64") {
  struct Loop {
    const char* name;
    unsigned cluster;
  };
  for (const Loop& loop :
       {Loop{"warp_specialized", 1}, Loop{"multicast", 2}, Loop{"registers", 1}}) {
    const std::string ptx = compiled(std::string(loop.name) + ".cu", true);
    if (ptx.empty()) return;
    // Five steps in three stages; the last one and the last tiles are incomplete.
    Product product(140, 72, 296);
    product.multiply_by_maps(ptx, loop.name, loop.cluster);
    check(product, loop.name, warpgroup_error(320));
  }
}
