// bench/gemv/tune.cpp - measures the planner's short list
#include "bench/gemv/tune.hpp"

#include <algorithm>
#include <chrono>
#include <new>

#include "ptxgen/support/error.hpp"

namespace ptxgen::gemv_bench {

namespace {

// The candidates as arms; the reason for those that cannot be built or loaded.
struct Candidates {
  std::vector<Arm> arms;
  std::vector<TunedCandidate> failed;
};

Candidates candidates_of(const Context& context, const ArmMaker& maker, const GemvProblem& problem,
                         std::size_t max_count) {
  Candidates candidates;
  std::vector<GemvCandidate> ranking = rank_gemv_plans(problem, maker.gpu());
  if (ranking.size() > max_count) ranking.resize(max_count);
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    try {
      candidates.arms.push_back(
          maker.plan_arm("candidate " + std::to_string(i + 1), ranking[i].plan));
    } catch (const Error& error) {
      if (context.poisoned()) throw;
      candidates.failed.push_back({to_text(ranking[i].plan), 0, error.message});
    }
  }
  return candidates;
}

void take_results(TunedRecord& record, const std::vector<ArmResult>& results, Metric metric) {
  for (const ArmResult& result : results) {
    const MetricResult* const found = result.find(metric);
    record.candidates.push_back({result.arm.detail, found == nullptr ? 0 : found->us.median,
                                 result.failed.empty() ? result.wrong : result.failed});
  }
  const ArmResult* const best = best_candidate(results, metric);
  if (best == nullptr) {
    record.failure = "no candidate gave a right result";
    return;
  }
  const Statistics& us = best->find(metric)->us;
  record.plan = best->arm.plan;
  record.median_us = us.median;
  record.low_us = us.low;
  record.high_us = us.high;
  record.samples = us.n;
  if (const MetricResult* const first = results.front().find(metric)) {
    record.planned_us = first->us.median;
  }
}

TunedRecord tune_problem(const Context& context, const ArmMaker& maker, const Lead& lead,
                         const GemvProblem& problem, const TuneOptions& options) {
  const Metric metric = options.measure.metrics.front();
  TunedRecord record;
  record.place = tuned_place(context.device().info());
  record.problem = problem;
  record.metric = std::string(to_string(metric));
  record.samples = options.measure.samples;
  try {
    const Rotation rotation = rotation_of(matrix_bytes(problem), options.rotation_bytes,
                                          options.min_chain, context.memory().free / 10 * 9);
    const GemvData data(context, problem, rotation, options.seed);
    Candidates candidates = candidates_of(context, maker, problem, options.candidates);
    record.candidates = candidates.failed;
    if (candidates.arms.empty()) {
      record.failure = "no candidate could be loaded";
      return record;
    }
    const Arm verify = maker.roofline_arm(matrix_bytes(problem));
    take_results(
        record,
        measure_arms(context, data, std::move(candidates.arms), verify, lead, options.measure),
        metric);
  } catch (const Error& error) {
    record.failure = error.message;
  } catch (const std::bad_alloc&) {
    record.failure = "the host has too little memory for the matrices";
  }
  return record;
}

}  // namespace

std::vector<GemvProblem> tune_problems(const std::vector<BenchShape>& shapes,
                                       const std::vector<GemvLayout>& layouts,
                                       const std::vector<ElementType>& types,
                                       const std::vector<std::string>& xy) {
  std::vector<GemvProblem> problems;
  for (const BenchShape& shape : shapes) {
    for (const ElementType type : types) {
      for (const GemvLayout layout : layouts) {
        for (const std::string& word : xy) {
          GemvProblem problem = bench_problem(shape, layout, type);
          if (word == "f32") problem.x = problem.y = ElementType::f32;
          if (std::find(problems.begin(), problems.end(), problem) == problems.end()) {
            problems.push_back(problem);
          }
        }
      }
    }
  }
  return problems;
}

const ArmResult* best_candidate(const std::vector<ArmResult>& results, Metric metric) noexcept {
  const ArmResult* first = nullptr;
  const ArmResult* best = nullptr;
  for (const ArmResult& result : results) {
    const MetricResult* const found = result.find(metric);
    if (found == nullptr || !result.wrong.empty() || !result.failed.empty()) continue;
    if (first == nullptr) {
      first = best = &result;
      continue;
    }
    const bool faster = found->us.high < first->find(metric)->us.low;
    if (faster && found->us.median < best->find(metric)->us.median) best = &result;
  }
  return best;
}

void tune(const Device& device, const TuneOptions& options, const Settings& settings,
          const std::function<void(TunedRecord)>& keep, const BenchProgress& progress) {
  using std::chrono::steady_clock;
  const steady_clock::time_point begin = steady_clock::now();
  const Context context(device);
  LauncherOptions launching;
  launching.settings = settings;
  const Launcher launcher(context, launching);
  const ArmMaker maker(context, launcher, settings);
  const Lead lead(context, maker, options.lead_bytes);
  for (std::size_t i = 0; i < options.problems.size(); ++i) {
    const std::chrono::duration<double> passed = steady_clock::now() - begin;
    if (context.poisoned() || (options.seconds > 0 && passed.count() >= options.seconds)) return;
    if (progress) progress(i, options.problems.size(), to_text(options.problems[i]));
    keep(tune_problem(context, maker, lead, options.problems[i], options));
  }
}

}  // namespace ptxgen::gemv_bench
