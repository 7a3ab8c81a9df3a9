// bench/bench_passes.cpp - the passes: on one kernel, and on a large text
//
// passes/gemv_coalesced/default is what a kernel pays before it is loaded: the whole default
// pipeline with the verifier after every pass that changed something, and a copy of the module.
// Target: 150 us in the release build. passes/gemv_coalesced/copy is that copy alone.
// gates/gemv_coalesced/before_load is the time of the gates before every load on a miss of the
// cache, the other rows of that name are single ones.
// gates/kernels_10 and gates/kernels_160 run each gate on modules of 10 and 160 kernels; the column
// us_per_kernel shows whether a gate's work is linear in the number of kernels.
// passes/nvcc is the largest text of the corpus, in statements per second. The rows of a benchmark
// tell what the passes themselves and the verifier took of it, in microseconds.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/kernels/gemv/coalesced.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx.hpp"

namespace {

using namespace ptxgen;

ptx::Module gemv() { return GemvCoalesced{4096, 4096}.build(ptx::target("sm_89")).module(); }

// The largest text that nvcc made of the corpus.
ptx::Module nvcc() {
  std::filesystem::path largest;
  for (const auto& entry : std::filesystem::directory_iterator(PTXGEN_BENCH_PTX)) {
    if (largest.empty() || entry.file_size() > std::filesystem::file_size(largest))
      largest = entry.path();
  }
  std::ifstream in(largest, std::ios::binary);
  return ptx::parse(std::string(std::istreambuf_iterator<char>(in), {}));
}

/// Kernels with everything that gates follow: shared memory of their own and of the module, a
/// barrier under a condition, a call, an access that is not coalesced.
std::string kernels(unsigned count) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".extern .shared .align 16 .b8 dynamic[];\n.shared .b32 common[64];\n"
      ".func f()\n{\n  st.shared.b32 [common], 1;\n  ret;\n}\n";
  for (unsigned i = 0; i < count; ++i) {
    text += ".visible .entry k" + std::to_string(i) + "(.param .u64 p, .param .u32 n)\n{\n" +
            R"(  .reg .b32 %r<9>;
  .reg .b64 %rd<6>;
  .reg .pred %p<2>;
  .shared .b32 tile[64];
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r5, [n];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 256;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.b32 %r6, [%rd4];
  mov.u32 %r2, tile;
  mad.lo.u32 %r4, %r1, 4, %r2;
  st.shared.b32 [%r4], %r6;
  st.shared.b32 [dynamic], %r6;
  setp.lt.u32 %p1, %r1, %r5;
  @%p1 bar.sync 0;
  ld.shared.b32 %r7, [%r4+4];
  st.global.b32 [%rd4], %r7;
  call f, ();
  ret;
}
)";
  }
  return text;
}

std::size_t statements_of(const ptx::Module& module) {
  std::size_t count = 0;
  for (const ptx::Function& function : module.functions) count += function.body.size();
  return count;
}

void run(benchmark::State& state, const ptx::Module& original, const std::string& passes) {
  optimize::PassOptions options;
  options.passes = {passes};
  // A second run must find nothing to do, or the first was not all of it.
  ptx::Module once = original;
  optimize::run_passes(once, options);
  if (optimize::run_passes(once, options).changed()) {
    return state.SkipWithError("the second run changed something");
  }
  double in_passes = 0, in_verifier = 0;
  for (auto _ : state) {
    ptx::Module module = original;
    const optimize::PipelineReport report = optimize::run_passes(module, options);
    benchmark::DoNotOptimize(module.functions.data());
    for (const optimize::PassReport& pass : report.passes) {
      in_passes += pass.microseconds;
      in_verifier += pass.verify_microseconds;
    }
  }
  const auto rounds = static_cast<double>(state.iterations());
  state.counters["passes_us"] = in_passes / rounds;
  state.counters["verifier_us"] = in_verifier / rounds;
  state.counters["statements/s"] = benchmark::Counter(
      static_cast<double>(statements_of(original)) * rounds, benchmark::Counter::kIsRate);
}

void copy(benchmark::State& state, const ptx::Module& original) {
  for (auto _ : state) {
    ptx::Module module = original;
    benchmark::DoNotOptimize(module.functions.data());
  }
}

void run_gate(benchmark::State& state, const ptx::Module& module, const std::string& name) {
  for (auto _ : state) {
    for (const gates::GateInfo& gate : gates::all_gates()) {
      const bool wanted = name == "before_load" ? gate.before_load : gate.name == name;
      if (wanted) benchmark::DoNotOptimize(gate.run(module, {}));
    }
  }
  state.counters["us_per_kernel"] =
      benchmark::Counter(1e-6 * static_cast<double>(state.iterations() * module.functions.size()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void add_gates(const std::string& group, const ptx::Module& module) {
  const auto named = [&](const std::string& name) {
    benchmark::RegisterBenchmark(
        ("gates/" + group + "/" + name).c_str(),
        [&module, name](benchmark::State& state) { run_gate(state, module, name); })
        ->Unit(benchmark::kMicrosecond);
  };
  named("before_load");
  for (const gates::GateInfo& gate : gates::all_gates()) named(std::string(gate.name));
}

void add(const std::string& group, const ptx::Module& module) {
  const auto named = [&](const std::string& passes) {
    benchmark::RegisterBenchmark(
        ("passes/" + group + "/" + passes).c_str(),
        [&module, passes](benchmark::State& state) { run(state, module, passes); })
        ->Unit(benchmark::kMicrosecond);
  };
  named("default");
  named("cleanup");
  for (const optimize::PassInfo& pass : optimize::all_passes()) named(std::string(pass.name));
  benchmark::RegisterBenchmark(("passes/" + group + "/copy").c_str(), [&module](
                                                                          benchmark::State& state) {
    copy(state, module);
  })->Unit(benchmark::kMicrosecond);
}

}  // namespace

int main(int argc, char** argv) {
  const ptx::Module small = gemv(), large = nvcc();
  const ptx::Module few = ptx::parse(kernels(10)), many = ptx::parse(kernels(160));
  add("gemv_coalesced", small);
  add_gates("gemv_coalesced", small);
  add_gates("kernels_10", few);
  add_gates("kernels_160", many);
  add("nvcc", large);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
