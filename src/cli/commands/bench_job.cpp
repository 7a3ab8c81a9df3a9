// src/cli/commands/bench_job.cpp - measures one kernel at one size
#include "cli/commands/bench_job.hpp"

#include <bit>

#include "cli/output/ptx_hash.hpp"
#include "ptxgen/kernels/elementwise/elementwise.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "support/half.hpp"
#include "support/random_values.hpp"

namespace ptxgen::cli {

namespace {

// The part that all measurements share; the caller owns the buffers.
class Measurement {
 public:
  Measurement(const Launcher& launcher, const Context& context, const BenchJob& job,
              std::uint64_t n, std::uint64_t k)
      : launcher_(launcher), context_(context), job_(job), stream_(context) {
    row_.work = {job.op, job.type, n, k};
    row_.block = job.block;
    row_.iters = job.iters;
    row_.warmup = job.warmup;
    row_.fma_a = job.a;
    row_.fma_b = job.b;
  }

  template <class Spec, class... A>
  void time(const Spec& spec, const A&... arguments) {
    const auto kernel = spec.build(context_.device().target());
    const LaunchGeometry geometry = spec.geometry();
    const LaunchPlan plan = launcher_.plan(kernel, geometry, stream_, arguments...);
    row_.grid = geometry.grid.x;
    row_.ptx_hash = hash_of(ptx::print(kernel.module()));
    const Event begin(context_);
    const Event end(context_);
    for (std::uint64_t i = 0; i < job_.warmup; ++i) plan.launch();
    stream_.record(begin);
    for (std::uint64_t i = 0; i < job_.iters; ++i) plan.launch();
    stream_.record(end);
    stream_.synchronize();
    row_.time_ms_total = double{end.milliseconds_since(begin)};
  }

  [[nodiscard]] std::vector<std::uint64_t> indices() const {
    return job_.validate_all ? all_indices(row_.work.n) : validation_indices(row_.work.n);
  }
  [[nodiscard]] const Context& context() const { return context_; }
  [[nodiscard]] const BenchJob& job() const { return job_; }
  [[nodiscard]] std::uint32_t n() const { return static_cast<std::uint32_t>(row_.work.n); }
  [[nodiscard]] std::uint32_t k() const { return static_cast<std::uint32_t>(row_.work.k); }

  [[nodiscard]] BenchRow row(const Validation& validation) const {
    BenchRow result = row_;
    result.validation = validation;
    return result;
  }

 private:
  const Launcher& launcher_;
  const Context& context_;
  const BenchJob& job_;
  const ptxgen::Stream stream_;
  BenchRow row_;
};

// The output is filled with values that are no result, so a kernel that does nothing fails.
template <class T>
Buffer<T> spoiled(const Context& context, std::uint64_t n) {
  Buffer<T> buffer(context, n);
  buffer.fill_bytes(0xff);
  return buffer;
}
template <class T>
std::vector<HostType<T>> contents(const Buffer<T>& buffer) {
  std::vector<HostType<T>> values(buffer.size());
  buffer.read(values);
  return values;
}

template <class T>
std::vector<std::uint16_t> random_halves(std::uint64_t n, std::uint64_t seed) {
  const auto rounded = detail::kSame<T, f16> ? float_to_f16 : float_to_bf16;
  const std::vector<float> values = random_values(n, seed);
  std::vector<std::uint16_t> halves(n);
  for (std::size_t i = 0; i < n; ++i) halves[i] = rounded(values[i]);
  return halves;
}

// Random bits with some NaN payloads, which a copy must keep.
std::vector<std::uint32_t> random_words(std::uint64_t n, std::uint64_t seed) {
  const std::vector<float> values = random_values(n, seed);
  std::vector<std::uint32_t> words(n);
  for (std::size_t i = 0; i < n; ++i) {
    words[i] = std::bit_cast<std::uint32_t>(values[i]);
    if (i % 1021 == 7) words[i] = 0x7f800001u + static_cast<std::uint32_t>(i & 0xfffff);
  }
  return words;
}

BenchRow measure_vadd(Measurement& m) {
  const std::vector<float> a = random_values(m.n(), m.job().seed);
  const std::vector<float> b = random_values(m.n(), ~m.job().seed);
  const Buffer<f32> left(m.context(), a);
  const Buffer<f32> right(m.context(), b);
  const Buffer<f32> sum = spoiled<f32>(m.context(), m.n());
  m.time(Vadd{m.n(), ElementType::f32, m.job().block, m.job().grid}, left.address(),
         right.address(), sum.address(), m.n());
  const auto found = validate_vadd(a, b, contents(sum), m.indices());
  return m.row(found);
}

template <class T>
BenchRow measure_vadd_halves(Measurement& m) {
  const std::vector<std::uint16_t> a = random_halves<T>(m.n(), m.job().seed);
  const std::vector<std::uint16_t> b = random_halves<T>(m.n(), ~m.job().seed);
  const Buffer<T> left(m.context(), a);
  const Buffer<T> right(m.context(), b);
  const Buffer<T> sum = spoiled<T>(m.context(), m.n());
  const ElementType element = detail::kSame<T, f16> ? ElementType::f16 : ElementType::bf16;
  m.time(Vadd{m.n(), element, m.job().block, m.job().grid}, left.address(), right.address(),
         sum.address(), m.n());
  const auto found = validate_vadd(m.job().type, a, b, contents(sum), m.indices());
  return m.row(found);
}

BenchRow measure_copy(Measurement& m) {
  const std::vector<std::uint32_t> in = random_words(m.n(), m.job().seed);
  const Buffer<b32> from(m.context(), in);
  const Buffer<b32> to = spoiled<b32>(m.context(), m.n());
  m.time(Copy{m.n(), m.job().block, m.job().grid}, from.address(), to.address(), m.n());
  const auto found = validate_copy(in, contents(to), m.indices());
  return m.row(found);
}

BenchRow measure_fma(Measurement& m) {
  const std::vector<float> in = random_values(m.n(), m.job().seed);
  const Buffer<f32> from(m.context(), in);
  const Buffer<f32> to = spoiled<f32>(m.context(), m.n());
  const auto n = static_cast<std::int32_t>(m.n());
  const auto k = static_cast<std::int32_t>(m.k());
  m.time(FmaRpt{m.n(), m.k(), m.job().block, m.job().grid}, from.address(), to.address(), n, k,
         m.job().a, m.job().b);
  const auto found = validate_fma(in, contents(to), k, m.job().a, m.job().b, m.indices());
  return m.row(found);
}

}  // namespace

std::uint64_t buffer_bytes(const BenchJob& job, std::uint64_t n) noexcept {
  // Each array is read or written once, so that the model's bytes are the buffers' as well.
  return bytes_model({job.op, job.type, n, 0});
}

BenchRow measure(const Launcher& launcher, const Context& context, const BenchJob& job,
                 std::uint64_t n, std::uint64_t k) {
  Measurement measurement(launcher, context, job, n, k);
  switch (job.op) {
    case BenchOp::Vadd:
      if (job.type == BenchType::F16) return measure_vadd_halves<f16>(measurement);
      if (job.type == BenchType::Bf16) return measure_vadd_halves<bf16>(measurement);
      return measure_vadd(measurement);
    case BenchOp::Copy:
      return measure_copy(measurement);
    case BenchOp::FmaRpt:
      return measure_fma(measurement);
  }
  return {};
}

}  // namespace ptxgen::cli
