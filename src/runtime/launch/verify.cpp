// src/runtime/launch/verify.cpp - a described kernel against its fp64 reference
#include "ptxgen/runtime/launch/verify.hpp"

#include <algorithm>

#include "runtime/launch/checked_call.hpp"
#include "runtime/launch/cold_rounds.hpp"
#include "runtime/launch/cublas_product.hpp"
#include "runtime/launch/dependence.hpp"
#include "support/format.hpp"

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
template <class Launch>
double timed_round(const Launcher& launcher, const Context& context, const Launch& launch,
                   const Stream& stream, CheckedCall& call, std::uint64_t launches,
                   Verification& result) {
  call.restore();
  const Event begin(context);
  const Event end(context);
  stream.record(begin);
  for (std::uint64_t i = 0; i < launches; ++i) launch();
  stream.record(end);
  stream.synchronize();
  const double microseconds = double{end.milliseconds_since(begin)} * 1e3;
  if (call.reads_outputs()) {
    // The launches computed with each other's results; one more has the reference's inputs.
    call.restore();
    launch();
    stream.synchronize();
  }
  call.compare(launcher, result);
  return microseconds / static_cast<double>(launches);
}

// The same product by cuBLAS, where it was asked for; why there is none is in the result.
std::unique_ptr<const CublasProduct> cublas_product(const Context& context, const CheckedCall& call,
                                                    const std::optional<Settings>& settings,
                                                    Benchmark& result) {
  if (!settings) return nullptr;
  try {
    auto product =
        std::make_unique<const CublasProduct>(context, *settings, call.call(), call.spec());
    result.cublas_version = product->version();
    // The first product loads code.
    const Stream stream(context);
    product->queue(stream);
    stream.synchronize();
    return product;
  } catch (const Error& error) {
    result.cublas.error = error;
    return nullptr;
  }
}

void time_rounds(const Launcher& launcher, const Context& context, CheckedCall& call,
                 const BenchmarkOptions& options, const CublasProduct* cublas, Benchmark& result) {
  const Stream stream(context);
  const LaunchPlan plan = launcher.plan(call.call(), stream);
  const auto launch = [&] { plan.launch(); };
  const auto product = [&] { cublas->queue(stream); };
  result.geometry = plan.record().geometry;
  for (std::uint64_t i = 0; i < options.warmup; ++i) {
    launch();
    if (cublas != nullptr) product();
  }
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    result.microseconds.push_back(timed_round(launcher, context, launch, stream, call,
                                              options.launches, result.verification));
    if (cublas == nullptr) continue;
    result.cublas_microseconds.push_back(
        timed_round(launcher, context, product, stream, call, options.launches, result.cublas));
  }
}

// One launch and one copy a round; every launch is compared.
void time_cold_rounds(const Launcher& launcher, const Context& context, CheckedCall& call,
                      const BenchmarkOptions& options, const CublasProduct* cublas,
                      Benchmark& result) {
  const Stream stream(context);
  const LaunchPlan plan = launcher.plan(call.call(), stream);
  ColdRounds cold(launcher, context, result.cost.bytes(), options.lead_bytes);
  result.geometry = plan.record().geometry;
  result.copy_bytes = cold.copy_bytes();
  result.lead_bytes = cold.lead_bytes();
  for (std::uint64_t i = 0; i < options.warmup; ++i) plan.launch();
  stream.synchronize();
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    call.restore();
    result.microseconds.push_back(cold.time([&] { plan.launch(); }, stream));
    call.compare(launcher, result.verification);
    result.copy_microseconds.push_back(cold.copy(stream));
    if (cublas == nullptr) continue;
    call.restore();
    result.cublas_microseconds.push_back(cold.time([&] { cublas->queue(stream); }, stream));
    call.compare(launcher, result.cublas);
  }
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
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
    if (options.dependence) {
      check_dependence(launcher, context, kernel, call, options.seed, result);
    }
  } catch (const Error& error) {
    result.error = error;
  }
  return result;
}

double Benchmark::median() const { return median_of(microseconds); }
double Benchmark::copy_median() const { return median_of(copy_microseconds); }
double Benchmark::cublas_median() const { return median_of(cublas_microseconds); }

Benchmark benchmark(const Launcher& launcher, const Context& context,
                    const KernelDescription& kernel, std::span<const std::uint64_t> values,
                    const BenchmarkOptions& options) {
  if (options.launches == 0 || options.rounds == 0) {
    throw Error(Stage::Launch, "arguments", "benchmark: 0 launches or 0 rounds measure nothing");
  }
  if (options.cold && options.launches != 1) {
    throw Error(Stage::Launch, "arguments",
                format_text("benchmark: {} launches of a cold round; the second finds what the "
                            "first has read in the caches; ask for one launch and more rounds",
                            options.launches));
  }
  CheckedCall call(context, kernel, values, options.operands);
  Benchmark result;
  result.verification.shape = shape_text(kernel, call.spec());
  result.cost = kernel.cost_of(call.spec());
  try {
    launch_once(launcher, context, call, result.verification);
    // A wrong kernel is not timed.
    if (result.verification.ok()) {
      const auto cublas = cublas_product(context, call, options.cublas, result);
      (options.cold ? time_cold_rounds : time_rounds)(launcher, context, call, options,
                                                      cublas.get(), result);
    }
  } catch (const Error& error) {
    result.verification.error = error;
  }
  return result;
}

}  // namespace ptxgen::inline v0
