// tests/kernels/gemv_blocks_layers_test.cpp - first choices for weights in blocks, by layers
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "gemv_blocks_run.hpp"
#include "gemv_operands.hpp"
#include "kernels/model/law.hpp"
#include "ptxgen/kernels/gemv/batched.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/kernels/model/rates.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "support/format.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

constexpr std::string_view kGpus[] = {"h200", "h100", "a100", "rtx4090"};

struct Layer {
  std::uint32_t n, k;
  [[nodiscard]] std::uint64_t weights() const { return std::uint64_t{n} * k; }
};
struct Model {
  const char* name;
  std::vector<Layer> layers;  ///< q and o, k and v, gate and up, down, the head
};
const std::vector<Model>& models() {
  static const std::vector<Model> all = {
      {"Llama-2-7B", {{4096, 4096}, {11008, 4096}, {4096, 11008}, {32000, 4096}}},
      {"Llama-3.2-1B", {{2048, 2048}, {512, 2048}, {8192, 2048}, {2048, 8192}, {128256, 2048}}},
      {"Qwen2.5-1.5B", {{1536, 1536}, {256, 1536}, {8960, 1536}, {1536, 8960}, {151936, 1536}}},
      {"Gemma-3-270M",
       {{1024, 640}, {256, 640}, {640, 1024}, {2048, 640}, {640, 2048}, {262144, 640}}},
      {"Llama-3-8B", {{14336, 4096}, {4096, 14336}}}};
  return all;
}
constexpr std::uint64_t kLarge = 58'700'000;  // weights of 4096 x 14336
// Weights of layers that are launched every day, and in a full run: the emulator takes seconds for
// ten millions.
constexpr std::uint64_t kMaxDaily = 2'200'000;
constexpr std::uint64_t kMaxFull = 17'000'000;

bool serves(ElementType weights, const Layer& layer) {
  return layer.k % info(weights).block_values == 0;
}

/// The largest term of a prediction.
std::string_view largest_term(const GemvPrediction& prediction) {
  const GemvTerms& t = prediction.terms;
  const std::pair<double, std::string_view> terms[] = {
      {t.dram, "DRAM"},     {t.latency, "latency"},   {t.issue, "issue slots"},  {t.l1, "L1"},
      {t.blocks, "blocks"}, {t.boundary, "boundary"}, {t.reduction, "reduction"}};
  return std::max_element(std::begin(terms), std::end(terms),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

/// Of the read rate, for layers of at least `kLarge` weights.
constexpr double goal(ElementType weights) { return weights == ElementType::q4_k ? 0.85 : 0.90; }

/// What a plan takes that loses nothing of its own, in microseconds: the boundary, a first load
/// that misses the L2, and the bytes at the rate of GEMVs.
double floor_us(const GemvTerms& terms, const GpuRates& rates) {
  return terms.boundary + (rates.latency_ns - rates.hit_ns) * 1e-3 + terms.dram;
}

double bytes_in_flight_needed(const GpuRates& rates, std::uint32_t sms) {
  return rates.read_gb_per_s * (rates.latency_ns + rates.growth_ns) / sms;
}

/// Sums over the instructions that load or copy weights.
emulator::MemoryCounters weight_counters(const std::string& ptx,
                                         const emulator::Counters& counters) {
  const std::map<std::uint32_t, std::string> operands = operands_of_lines(ptx::parse(ptx));
  emulator::MemoryCounters all;
  for (const emulator::LineCounters& line : counters.lines) {
    const auto operand = operands.find(line.line);
    // Prefetches into the L2 are of the bytes that are loaded later.
    if (operand == operands.end() || operand->second != "a" || line.memory.bytes == 0) continue;
    all.sectors += line.memory.sectors;
    all.bytes += line.memory.bytes;
  }
  return all;
}

/// Sectors that a launch requests over ceil(bytes of the matrix / 32), and their limit: rows that
/// begin inside a sector are requested in pieces of 32 loads that share one with the next, and
/// short rows end in smaller pieces.
struct Share {
  double requested = 0;
  double limit = 0;
};

/// Runs a first choice.
Share check_reads(ElementType weights, ElementType x, const Layer& layer, std::string_view gpu,
                  bool repacked) {
  const ptx::Gpu& device = *ptx::find_gpu(gpu);
  GemvCase point = blocks_layer(weights, x, layer.n, layer.k);
  point.plan.problem.repacked = repacked;
  const GemvCandidate best = rank_gemv_plans(point.plan.problem, device).front();
  point.plan = best.plan;
  point.target = device.target;
  INFO(gpu << ": " << to_text(point));
  GemvRunner runner(point, make_blocks_data(point, XValues::Uniform).data);
  const GemvOutcome outcome = runner.run();
  CHECK(outcome.findings == "");
  CHECK(outcome.counters.shared_load.bank_conflicts == 0);
  CHECK(outcome.counters.shared_store.bank_conflicts == 0);
  // Each byte once, and none outside the matrix, which the emulator would report: so the distinct
  // sectors are those of the matrix. Several lanes load the scales of some repacked blocks, but the
  // sectors that are requested are those of the matrix too.
  const std::uint64_t all = bytes(weights, layer.weights());
  const emulator::MemoryCounters read = weight_counters(runner.ptx(), outcome.counters);
  if (repacked && (weights == ElementType::q8_0 || weights == ElementType::q6_k)) {
    CHECK(read.bytes >= all);
  } else {
    CHECK(read.bytes == all);
  }
  CHECK(read.sectors == best.prediction.weight_sectors);
  const std::uint64_t matrix = point.plan.problem.matrix_bytes();
  const double of_piece = 1.0 / best.plan.load_bytes;
  // Panels of q6_k as stored have 52.5 sectors.
  const bool aligned =
      point.plan.problem.row_bytes() % 32 == 0 && (repacked || weights != ElementType::q6_k);
  const bool is_long = bytes(weights, layer.k) >= 2048;
  return {static_cast<double>(read.sectors) / static_cast<double>((matrix + 31) / 32),
          aligned ? 1.02 : 1 + of_piece + (is_long ? 0 : 0.08)};
}

/// The worst of the first choices of a type, for rows whose pieces begin at sectors, and others.
struct Requested {
  double aligned = 0;
  double others = 0;
  std::size_t launches = 0;
};
Requested requested_sectors(ElementType weights, bool repacked, std::size_t& number) {
  Requested all;
  for (const Model& model : models()) {
    for (const Layer& layer : model.layers) {
      // Every day layers of up to two million weights, each on one of the GPUs; in the full run
      // larger ones, each once.
      if (!serves(weights, layer) || layer.weights() > (full() ? kMaxFull : kMaxDaily)) continue;
      for (const ElementType x : {ElementType::f32, ElementType::q8_1}) {
        ++number;
        if (layer.weights() > kMaxDaily && number % 2 == 0) continue;
        for (std::size_t gpu = 0; gpu < std::size(kGpus); ++gpu) {
          if ((number + gpu) % std::size(kGpus) != 0) continue;
          const Share share = check_reads(weights, x, layer, kGpus[gpu], repacked);
          INFO(layer.n << "x" << layer.k << " " << to_string(weights));
          CHECK(share.requested <= share.limit);
          double& worst = share.limit <= 1.02 ? all.aligned : all.others;
          worst = std::max(worst, share.requested);
          ++all.launches;
        }
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("first choices for weights in blocks fetch each byte once, without bank conflicts") {
  std::size_t number = 0;
  for (const ElementType weights : kBlockTypes) {
    for (const bool repacked : {false, true}) {
      if (repacked && repacked_fields(weights).empty()) continue;
      const Requested worst = requested_sectors(weights, repacked, number);
      CHECK(worst.launches > 0);
      std::printf(
          "%s, %s: %zu launches, each byte once; sectors requested / ceil(bytes / 32): %.3f for "
          "pieces that begin at sectors, %.3f for others\n",
          std::string(to_string(weights)).c_str(), repacked ? "repacked" : "as stored",
          worst.launches, worst.aligned, worst.others);
    }
  }
}

namespace {

struct Predicted {
  ElementType weights;
  bool repacked;
};
constexpr Predicted kPredicted[] = {{ElementType::q4_k, false},
                                    {ElementType::q6_k, false},
                                    {ElementType::q6_k, true},
                                    {ElementType::q8_0, false},
                                    {ElementType::q8_0, true}};

}  // namespace

TEST_CASE("first choices for weights in blocks: predicted shares of the read rate") {
  std::set<std::string> out_of_reach;  // where no plan can reach the goal
  std::set<std::string> missed;        // where the first choice does not
  for (const std::string_view name : kGpus) {
    const ptx::Gpu& gpu = *ptx::find_gpu(name);
    const bool hbm = gpu.dram == ptx::Dram::HBM;
    const GpuRates rates = rates_of(gpu);
    const double copy_rate = model::mixed(rates, 0.5).gb_per_s;
    for (const Model& model : models()) {
      for (const Layer& layer : model.layers) {
        for (const auto& [weights, repacked] : kPredicted) {
          if (!serves(weights, layer)) continue;
          GemvProblem problem =
              blocks_layer(weights, ElementType::f32, layer.n, layer.k).plan.problem;
          problem.repacked = repacked;
          const GemvCandidate best = rank_gemv_plans(problem, gpu).front();
          const GemvPrediction& prediction = best.prediction;
          const double roofline =
              static_cast<double>(bytes(weights, layer.weights())) / rates.read_gb_per_s * 1e-3;
          const double share = roofline / prediction.chained_us;
          INFO(name << " " << to_text(problem) << ": " << to_text(best.plan) << ", " << share);
          CHECK(prediction.blocks_per_sm > 0);
          std::printf(
              "%-8s %-13s %6u x %-6u %s%s: %7.2f us chained, %3.0f %% of the read rate, %5.1f "
              "KiB in flight, largest: %s\n",
              std::string(name).c_str(), model.name, layer.n, layer.k,
              std::string(to_string(weights)).c_str(), repacked ? " repacked" : "",
              prediction.chained_us, 100 * share, prediction.bytes_in_flight_per_sm / 1024,
              std::string(largest_term(prediction)).c_str());
          if (layer.weights() < kLarge) continue;
          const double minimum = floor_us(prediction.terms, rates);
          const bool possible = roofline / minimum >= goal(weights);
          if (!possible) out_of_reach.insert(format_text("{} {}", name, to_string(weights)));
          if (share < goal(weights) && possible) {
            missed.insert(format_text("{} {} {}x{}", name, to_string(weights), layer.n, layer.k));
          }
          if (layer.k >= 4096) CHECK(prediction.chained_us <= 1.01 * minimum);
          CHECK(share * rates.read_gb_per_s / copy_rate >= goal(weights));
          // 40 KB where the full rate needs 25 KiB and more; elsewhere what it needs, and a half.
          // Short repacked rows have just what is needed: with more, fewer lanes have work.
          const double needed = bytes_in_flight_needed(rates, gpu.sms);
          if (hbm && !repacked) CHECK(prediction.bytes_in_flight_per_sm >= 40'000);
          CHECK(prediction.bytes_in_flight_per_sm >= (repacked ? 1.0 : 1.5) * needed);
        }
      }
    }
  }
  // 48 MB in 10.3 us at the read rate: 0.6 us of a boundary, 0.14 us of a first load and the 4.3 %
  // that GEMVs lose leave 89.5 %.
  CHECK(out_of_reach == std::set<std::string>{"h200 q6_k"});
  CHECK(missed.empty());
}

namespace {

// As the planner ranks them for a GPU of the target.
Gemv first_choice(const GemvProblem& problem, const ptx::Target& target) {
  const std::string_view gpu = target.sm >= 120   ? "rtx5090"
                               : target.sm >= 100 ? "b200"
                               : target.sm >= 90  ? "h200"
                               : target.sm >= 89  ? "rtx4090"
                               : target.sm >= 80  ? "a100"
                                                  : "t4";
  for (const GemvCandidate& choice : rank_gemv_plans(problem, *ptx::find_gpu(gpu))) {
    if (admitted(choice.plan, std::string(target.name))) return Gemv{choice.plan};
  }
  throw std::logic_error("no plan");
}

}  // namespace

TEST_CASE("weights in blocks assemble within 128 registers, without spills, on any target") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available())
    return skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  std::size_t assembled = 0;
  std::uint32_t registers = 0;
  const auto check_module = [&](const ptx::Module& module, std::string_view target) {
    AssembleOptions options;
    options.target = target;
    const Assembly assembly = assembler.assemble(ptx::print(module), options);
    CHECK(assembly.spill_stores + assembly.spill_loads == 0);
    CHECK(assembly.registers <= 128);
    registers = std::max(registers, assembly.registers);
    ++assembled;
  };
  // Of q6_k, which takes more registers than others, also long rows and loads of 2 bytes.
  constexpr Layer kShapes[] = {{4096, 4096}, {4096, 14336}, {1536, 8960}, {8192, 2048}};
  std::size_t number = 0;
  for (const ptx::Target& target : ptx::targets()) {
    for (const ElementType weights : kBlockTypes) {
      const std::size_t shapes = weights == ElementType::q6_k ? std::size(kShapes) : 1;
      for (const ElementType x : {ElementType::f32, ElementType::f16, ElementType::q8_1}) {
        for (const Layer& shape : std::span(kShapes).first(shapes)) {
          // Every day one in 23, so that each target and each type has some.
          if (!full() && number++ % 23 != 0) continue;
          for (const bool repacked : {false, true}) {
            if (repacked && repacked_fields(weights).empty()) continue;
            GemvProblem problem = blocks_layer(weights, x, shape.n, shape.k).plan.problem;
            problem.repacked = repacked;
            INFO(target.name << " " << to_text(problem));
            check_module(first_choice(problem, target).build(target).module(), target.name);
            BatchedGemv batched{shape.k, 64, 8, weights, x};
            batched.repacked = repacked;
            INFO("batched");
            check_module(batched.build(target).module(), target.name);
          }
        }
      }
    }
  }
  std::printf("weights in blocks: %zu kernels assembled, at most %u registers, no spills\n",
              assembled, registers);
  CHECK(assembled >= 2 * ptx::targets().size());
}

}  // namespace ptxgen::test
