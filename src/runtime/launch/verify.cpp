// src/runtime/launch/verify.cpp - a described kernel against its fp64 reference
#include "ptxgen/runtime/launch/verify.hpp"

#include <algorithm>

#include "runtime/launch/checked_call.hpp"

namespace ptxgen::inline v0 {

namespace {

// Waits for the launch, and collects its findings even if it was stopped.
void wait_for(const Stream& stream, const Context& context, const LaunchRecord& record,
              Verification& result) {
  try {
    stream.synchronize();
  } catch (const Error&) {
    collect_findings(context, record.launch, result);
    throw;
  }
  collect_findings(context, record.launch, result);
}

void launch_once(const Launcher& launcher, const Context& context, CheckedCall& call,
                 Verification& result) {
  result.stages = call.stages();
  const Stream stream(context);
  Span launch(context.device().trace(), "launch", "verify", &result.stages);
  const LaunchRecord record = launcher.launch(call.call(), stream);
  launch.end();
  result.kernel = record.kernel;
  result.implementation = record.implementation;
  result.reason = record.reason;
  Span run(context.device().trace(), "run", "verify", &result.stages);
  wait_for(stream, context, record, result);
  run.end();
  call.compare(launcher, result);
}

// One round: launches on restored memory between two events, then the comparison. Microseconds per
// launch.
double timed_round(const Launcher& launcher, const Context& context, const LaunchPlan& plan,
                   const Stream& stream, CheckedCall& call, std::uint64_t launches,
                   Verification& result) {
  call.restore();
  const Event begin(context);
  const Event end(context);
  stream.record(begin);
  for (std::uint64_t i = 0; i < launches; ++i) plan.launch();
  stream.record(end);
  stream.synchronize();
  const double microseconds = double{end.milliseconds_since(begin)} * 1e3;
  if (call.reads_outputs()) {
    // The launches computed with each other's results; one more has the reference's inputs.
    call.restore();
    plan.launch();
    stream.synchronize();
  }
  call.compare(launcher, result);
  return microseconds / static_cast<double>(launches);
}

void time_rounds(const Launcher& launcher, const Context& context, CheckedCall& call,
                 const BenchmarkOptions& options, Benchmark& result) {
  const Stream stream(context);
  const LaunchPlan plan = launcher.plan(call.call(), stream);
  result.geometry = plan.record().geometry;
  for (std::uint64_t i = 0; i < options.warmup; ++i) plan.launch();
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    result.microseconds.push_back(
        timed_round(launcher, context, plan, stream, call, options.launches, result.verification));
  }
}

}  // namespace

Verification verify(const Launcher& launcher, const Context& context,
                    const KernelDescription& kernel, std::span<const std::uint64_t> values,
                    const VerifyOptions& options) {
  CheckedCall call(context, kernel, values, options);
  Verification result;
  result.shape = shape_text(kernel, call.spec());
  try {
    launch_once(launcher, context, call, result);
  } catch (const Error& error) {
    result.error = error;
  }
  return result;
}

double Benchmark::median() const {
  if (microseconds.empty()) return 0;
  std::vector<double> sorted = microseconds;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 != 0 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

Benchmark benchmark(const Launcher& launcher, const Context& context,
                    const KernelDescription& kernel, std::span<const std::uint64_t> values,
                    const BenchmarkOptions& options) {
  if (options.launches == 0 || options.rounds == 0) {
    throw Error(Stage::Launch, "arguments", "benchmark: 0 launches or 0 rounds measure nothing");
  }
  CheckedCall call(context, kernel, values, options.operands);
  Benchmark result;
  result.verification.shape = shape_text(kernel, call.spec());
  result.cost = kernel.cost_of(call.spec());
  try {
    launch_once(launcher, context, call, result.verification);
    // A wrong kernel is not timed.
    if (result.verification.ok()) time_rounds(launcher, context, call, options, result);
  } catch (const Error& error) {
    result.verification.error = error;
  }
  return result;
}

}  // namespace ptxgen::inline v0
