// bench/bench_codegen.cpp - kernel spec to PTX against NVRTC; parser, printer
//
// Run with --benchmark_format=json for the figures. codegen/gemv_coalesced is spec to verified PTX
// text; codegen/nvrtc_gemv is NVRTC on the equivalent CUDA C++ in the same process. Each is checked
// before it is timed.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "ptxgen/kernels/gemv/coalesced.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime/assemble/nvrtc.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/support/text_buffer.hpp"

namespace {

using namespace ptxgen;

constexpr std::string_view kTarget = "sm_89";

// The same design as gemv_coalesced: 256 columns per block, x staged through a shared tile.
constexpr std::string_view kCudaGemv = R"(
extern "C" __global__ void __launch_bounds__(256)
gemv_coalesced(float* y, const float* a, const float* x, unsigned k, unsigned n) {
  __shared__ float tile[256];
  const unsigned column = blockIdx.x * 256 + threadIdx.x;
  float sum = 0.0f;
  for (unsigned row0 = 0; row0 < k; row0 += 256) {
    const unsigned row = row0 + threadIdx.x;
    tile[threadIdx.x] = row < k ? x[row] : 0.0f;
    __syncthreads();
    if (column < n) {
      const unsigned rows = min(256u, k - row0);
      const float* p = a + (size_t)row0 * n + column;
      #pragma unroll 4
      for (unsigned t = 0; t < rows; ++t) sum = fmaf(tile[t], p[(size_t)t * n], sum);
    }
    __syncthreads();
  }
  if (column < n) y[column] = sum;
}
)";

std::string generate(const GemvCoalesced& spec) {
  return ptx::print(spec.build(ptx::target(kTarget)).module());
}

void stop(benchmark::State& state, const std::string& why) { state.SkipWithError(why.c_str()); }

void codegen_gemv_coalesced(benchmark::State& state) {
  const GemvCoalesced spec{4096, 4096};
  for (const Finding& finding : ptx::verify(ptx::parse(generate(spec))))
    return stop(state, to_text(finding));
  for (auto _ : state) {
    std::string text = generate(spec);
    benchmark::DoNotOptimize(text.data());
  }
}
BENCHMARK(codegen_gemv_coalesced)->Name("codegen/gemv_coalesced")->Unit(benchmark::kMicrosecond);

void codegen_nvrtc_gemv(benchmark::State& state) {
  try {
    const Nvrtc nvrtc(Settings::from_environment());
    const std::string options[] = {"--gpu-architecture=compute_89"};
    const auto check = ptx::parse(nvrtc.compile(kCudaGemv, options).ptx);
    if (check.find_function("gemv_coalesced") == nullptr)
      return stop(state, "NVRTC gave no kernel");
    for (auto _ : state) {
      auto result = nvrtc.compile(kCudaGemv, options);
      benchmark::DoNotOptimize(result.ptx.data());
    }
  } catch (const Error& error) {
    stop(state, "SKIP: " + error.message);
  }
}
BENCHMARK(codegen_nvrtc_gemv)->Name("codegen/nvrtc_gemv")->Unit(benchmark::kMicrosecond);

// The largest text that nvcc made of the corpus.
std::string nvcc_text() {
  std::filesystem::path largest;
  for (const auto& entry : std::filesystem::directory_iterator(PTXGEN_BENCH_PTX)) {
    if (largest.empty() || entry.file_size() > std::filesystem::file_size(largest))
      largest = entry.path();
  }
  std::ifstream in(largest, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void parse_nvcc(benchmark::State& state) {
  const std::string text = nvcc_text();
  const ptx::Module once = ptx::parse(text);
  if (const std::string d = ptx::difference(once, ptx::parse(ptx::print(once))); !d.empty()) {
    return stop(state, d);
  }
  for (auto _ : state) {
    ptx::Module module = ptx::parse(text);
    benchmark::DoNotOptimize(module.functions.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}
BENCHMARK(parse_nvcc)->Name("parse/nvcc")->Unit(benchmark::kMicrosecond);

void print_nvcc(benchmark::State& state) {
  const ptx::Module module = ptx::parse(nvcc_text());
  std::size_t size = 0;
  for (auto _ : state) {
    std::string text = ptx::print(module);
    size = text.size();
    benchmark::DoNotOptimize(text.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(size) * state.iterations());
}
BENCHMARK(print_nvcc)->Name("print/nvcc")->Unit(benchmark::kMicrosecond);

void verify_nvcc(benchmark::State& state) {
  const std::string text = nvcc_text();
  const ptx::Module module = ptx::parse(text);
  for (auto _ : state) {
    auto findings = ptx::verify(module);
    benchmark::DoNotOptimize(findings.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}
BENCHMARK(verify_nvcc)->Name("verify/nvcc")->Unit(benchmark::kMicrosecond);

// Whether our own text buffer still earns its place: it goes when it is not twice as fast as fmt.
constexpr int kLines = 1000;

void text_ours(benchmark::State& state) {
  for (auto _ : state) {
    TextBuffer out;
    for (unsigned i = 0; i < kLines; ++i) {
      out << "    fma.rn.f32 %f";
      out.decimal(i) << ", %f";
      out.decimal(i + 1) << ", 0f";
      out.hex(0x3F800000u + i, 8) << ", %f";
      out.decimal(i + 2) << ";\n";
    }
    benchmark::DoNotOptimize(out.view().data());
  }
}
BENCHMARK(text_ours)->Name("text/ours")->Unit(benchmark::kMicrosecond);

void text_fmt(benchmark::State& state) {
  for (auto _ : state) {
    fmt::memory_buffer out;
    for (unsigned i = 0; i < kLines; ++i) {
      fmt::format_to(std::back_inserter(out),
                     FMT_STRING("    fma.rn.f32 %f{}, %f{}, 0f{:08X}, %f{};\n"), i, i + 1,
                     0x3F800000u + i, i + 2);
    }
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(text_fmt)->Name("text/fmt")->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
