// src/qa/lines/speed_ups.cpp - the speed-up claims of the tile specification
#include <algorithm>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace speed_ups {
namespace {

constexpr std::uint32_t kTerms = 1000;  // of each thread's product

// Each of 128 threads: a sum of kTerms products, by separate multiplications and additions.
ptx::Module dot_product(std::string_view target) {
  return build_kernel("dot", target,
                      params(param<Ptr<f32>>("y"), param<Ptr<f32>>("x"), param<u32>("n")),
                      [](KernelBuilder& k, Ptr<f32> y, Ptr<f32> x, Value<u32> n) {
                        const Value<u32> thread = k.tid_x();
                        auto sum = k.var<f32>(0.0f);
                        k.for_(0u, n, 1u, [&](Value<u32> i) {
                          const Value<f32> value = k.ld_global(x + i);
                          const Value<f32> product = value * value;
                          sum += product;
                        });
                        k.st_global(y + thread, sum);
                      })
      .module();
}

std::uint64_t instructions(const emulator::Counters& counters, std::string_view mnemonic) {
  const auto found = std::ranges::find(counters.opcodes, mnemonic, &emulator::OpCount::mnemonic);
  return found == counters.opcodes.end() ? 0 : found->executions;
}

Outcome fusion_speed(Fixture& fixture, const Line&) {
  Tally tally;
  const std::vector<float> x(kTerms, 0.5f);
  LaunchGeometry geometry;
  geometry.block = {128, 1, 1};
  const auto run = [&](const ptx::Module& module) {
    Emulation emulation(gpu_of(fixture.device().info()));
    const std::uint64_t y = emulation.allocate(512);
    emulator::Result result = emulation.launch(module, geometry, {y, emulation.upload(x), kTerms});
    tally.check(result.status == emulator::Status::Ok, "{}", first_error(result));
    const std::vector<float> sums = emulation.download<float>(y, 128);
    tally.check(sums[127] == 0.25f * kTerms, "the sum is {}, not {}", sums[127], 0.25f * kTerms);
    return result.counters;
  };
  ptx::Module module = dot_product(fixture.target().name);
  const emulator::Counters before = run(module);
  optimize::PassOptions options;
  options.passes = {fixture.changed() ? "dead_code" : "fma_fusion"};
  optimize::run_passes(module, options);
  const emulator::Counters after = run(module);
  const std::uint64_t fewer = before.warp_instructions - after.warp_instructions;
  tally.check(instructions(after, "fma") == 4 * kTerms, "{} fused operations, expected {}",
              instructions(after, "fma"), 4 * kTerms);
  tally.check(fewer == 4 * kTerms, "{} instructions fewer, expected {}", fewer, 4 * kTerms);
  const double share = static_cast<double>(fewer) / static_cast<double>(before.warp_instructions);
  tally.figure("{} instead of {} instructions: {:.1f} % fewer; the time needs a GPU",
               after.warp_instructions, before.warp_instructions, 100 * share);
  return tally.outcome(share >= 0.1 ? Verdict::Supported : Verdict::Falsified);
}

Outcome coalescing_speed(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr std::uint32_t kSize = 1024;
  const Problem problem = random_problem(kSize, kSize, 71);
  const auto sectors = [&]<class K>(K spec) {
    Emulation emulation(gpu_of(fixture.device().info()));
    const emulator::Result result =
        emulation.launch(fixture.build(spec), spec.geometry(),
                         {emulation.allocate(4 * std::uint64_t{kSize}), emulation.upload(problem.a),
                          emulation.upload(problem.x), kSize, kSize});
    return result.counters.global_load.sectors;
  };
  const std::uint64_t strided = sectors(GemvStrided{kSize, kSize});
  const std::uint64_t coalesced =
      fixture.changed() ? strided : sectors(GemvCoalesced{kSize, kSize});
  const double ratio = static_cast<double>(strided) / static_cast<double>(coalesced);
  tally.check(ratio > 1.2, "{} sectors strided, {} coalesced", strided, coalesced);
  tally.figure("{} x {}: {} sectors instead of {}, {:.2f} times fewer; the time needs a GPU", kSize,
               kSize, coalesced, strided, ratio);
  return tally.outcome(Verdict::Supported);
}

constexpr Line kLines[] = {
    {"S1",
     Section::Hypotheses,
     0,
     "fusion makes a dot product 10 % faster",
     "executed instructions of 128 threads with 1000 terms, before and after fma_fusion",
     Means::Emulator,
     fusion_speed,
     {"no pair is fused"},
     "ptxgen opt --passes fma_fusion"},
    {"S2", Section::Hypotheses, 0,
     "loop splitting makes a loop with conditional products 15 % faster",
     "executed instructions of a GEMV whose inner loop guards every step", Means::Record, by_record,
     kFailedResult, "ctest -R 'a GEMV whose inner loop guards every step'",
     "case a GEMV whose inner loop guards every step runs 15 % fewer instructions",
     Verdict::Supported},
    {"S3", Section::Hypotheses, 0, "tile constraints make code generation 5 % faster",
     "not decided: a time of the host, measured by bench_codegen", Means::Unit},
    {"S4",
     Section::Hypotheses,
     0,
     "the memory hierarchy makes 1M strided accesses 20 % faster",
     "sectors of gemv_strided and gemv_coalesced, 1024 x 1024, exact",
     Means::Emulator,
     coalescing_speed,
     {"the strided kernel is compared with itself"},
     "ptxgen gemv -p k=1024 -p n=1024 --impl strided --json"},
};

}  // namespace
}  // namespace speed_ups

std::span<const Line> speed_up_lines() { return speed_ups::kLines; }

}  // namespace ptxgen::qa
