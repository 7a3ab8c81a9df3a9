// src/capi/launch.cpp - launches and plans of the library's kernels
#include <utility>

#include "capi/objects.hpp"
#include "support/format.hpp"

using namespace ptxgen;
using namespace ptxgen::capi;

namespace {

template <class T>
DeviceSpan<T> elements(ptxgen_span span) noexcept {
  return {{span.address}, span.bytes / sizeof(detail::Host<T>)};
}

template <class E>
E enumerator(std::int32_t value, std::int32_t limit, const char* name) {
  if (value < 0 || value > limit) {
    throw UsageError{"out-of-range",
                     format_text("{} is {}; it may be 0 to {}", name, value, limit)};
  }
  return static_cast<E>(value);
}

GemvProblem problem_of(const ptxgen_gemv_problem* input) {
  const ptxgen_gemv_problem from = read_struct(&need_place(input, "problem"), "problem");
  GemvProblem problem;
  problem.k = from.k;
  problem.n = from.n;
  problem.layout = enumerator<GemvLayout>(from.layout, PTXGEN_GEMV_R, "problem.layout");
  problem.weights = enumerator<ElementType>(from.weights, PTXGEN_BF16, "problem.weights");
  problem.x = enumerator<ElementType>(from.x, PTXGEN_BF16, "problem.x");
  problem.y = enumerator<ElementType>(from.y, PTXGEN_BF16, "problem.y");
  problem.lda = from.lda;
  problem.scaled = from.scaled != 0;
  problem.bias = from.bias != 0;
  problem.residual = from.residual != 0;
  return problem;
}

GemvOperands operands_of(const ptxgen_gemv_operands* input, const GemvProblem& problem) {
  const ptxgen_gemv_operands from = read_struct(&need_place(input, "operands"), "operands");
  const auto range = [](const ptxgen_span& span) { return DeviceRange{span.address, span.bytes}; };
  GemvOperands operands;
  operands.y = range(from.y);
  operands.a = range(from.a);
  operands.x = range(from.x);
  operands.bias = range(from.bias);
  operands.residual = range(from.residual);
  if (problem.scaled) operands.alpha = from.alpha;
  if (problem.scaled) operands.beta = from.beta;
  operands.constant_weights = from.constant_weights != 0;
  return operands;
}

/// A kernel of the catalog with its parameters and operands, by name.
KernelCall call_of(const char* kernel, const ptxgen_parameter* parameters,
                   std::size_t parameter_count, const ptxgen_operand* operands,
                   std::size_t operand_count) {
  const KernelValues chosen = kernel_values(need_text(kernel, "kernel"),
                                            need_array(parameters, parameter_count, "parameters"));
  KernelCall call{chosen.kernel, chosen.values, {}};
  for (const ptxgen_operand& operand : need_array(operands, operand_count, "operands")) {
    call.operands.push_back({need_text(operand.name, "operands.name"),
                             {operand.memory.address, operand.memory.bytes},
                             operand.number});
  }
  return call;
}

void write_record(ptxgen_launch_record* to, const LaunchRecord& from) {
  if (to == nullptr) return;
  ptxgen_launch_record out{};
  write_text(out.kernel, from.kernel);
  write_text(out.implementation, from.implementation);
  write_text(out.reason, from.reason);
  out.geometry = capi::to_c(from.geometry);
  out.launches = from.launches;
  out.cached = from.cached ? 1 : 0;
  out.launch = from.launch;
  write_struct(to, out, "record");
}

/// Checks the record before the launch: an invalid one must not fail after it.
void check_record(const ptxgen_launch_record* record) {
  if (record == nullptr) return;
  std::size_t bytes = 0;
  std::memcpy(&bytes, record, sizeof bytes);
  if (bytes < sizeof bytes || bytes > 65536) throw_struct_bytes(bytes, "record");
}

/// One launch by the launcher: `run(launcher, stream)` returns the record.
template <class Run>
ptxgen_status launch(ptxgen_device* device, const ptxgen_stream* stream,
                     ptxgen_launch_record* record, const Run& run) noexcept {
  return guarded(device, [&] {
    const Launcher& launcher = need(device, "device").runtime->launcher;
    const Stream& on = need(stream, "stream").stream();
    check_record(record);
    write_record(record, run(launcher, on));
  });
}

template <class Freeze>
ptxgen_status plan_on(ptxgen_device* device, const ptxgen_stream* stream, ptxgen_plan** plan,
                      const Freeze& freeze) noexcept {
  return guarded(device, [&] {
    ptxgen_plan*& result = need_result(plan, "plan");
    const Launcher& launcher = need(device, "device").runtime->launcher;
    const ptxgen_stream& on = need(stream, "stream");
    result = new ptxgen_plan(on.shared, freeze(launcher, on.stream()));
  });
}

}  // namespace

extern "C" {

ptxgen_status ptxgen_gemv(ptxgen_device* device, ptxgen_span y, ptxgen_span a, ptxgen_span x,
                          uint32_t k, uint32_t n, const ptxgen_stream* stream,
                          ptxgen_launch_record* record) noexcept {
  return launch(device, stream, record, [&](const Launcher& launcher, const Stream& on) {
    return launcher.gemv(elements<f32>(y), elements<f32>(a), elements<f32>(x), k, n, on);
  });
}

ptxgen_status ptxgen_gemv_any(ptxgen_device* device, const ptxgen_gemv_problem* problem,
                              const ptxgen_gemv_operands* operands, const ptxgen_stream* stream,
                              ptxgen_launch_record* record) noexcept {
  return launch(device, stream, record, [&](const Launcher& launcher, const Stream& on) {
    const GemvProblem what = problem_of(problem);
    return launcher.launch(what, operands_of(operands, what), on);
  });
}

ptxgen_status ptxgen_matmul(ptxgen_device* device, ptxgen_span c, ptxgen_span a, ptxgen_span b,
                            ptxgen_matmul_shape shape, const ptxgen_stream* stream,
                            ptxgen_launch_record* record) noexcept {
  return launch(device, stream, record, [&](const Launcher& launcher, const Stream& on) {
    return launcher.matmul(elements<f32>(c), elements<f32>(a), elements<f32>(b),
                           {.m = shape.m, .k = shape.k, .n = shape.n}, on);
  });
}

ptxgen_status ptxgen_launch(ptxgen_device* device, const char* kernel,
                            const ptxgen_parameter* parameters, size_t parameter_count,
                            const ptxgen_operand* operands, size_t operand_count,
                            const ptxgen_stream* stream, ptxgen_launch_record* record) noexcept {
  return launch(device, stream, record, [&](const Launcher& launcher, const Stream& on) {
    return launcher.launch(call_of(kernel, parameters, parameter_count, operands, operand_count),
                           on);
  });
}

ptxgen_status ptxgen_plan_create(ptxgen_device* device, const char* kernel,
                                 const ptxgen_parameter* parameters, size_t parameter_count,
                                 const ptxgen_operand* operands, size_t operand_count,
                                 const ptxgen_stream* stream, ptxgen_plan** plan) noexcept {
  return plan_on(device, stream, plan, [&](const Launcher& launcher, const Stream& on) {
    return launcher.plan(call_of(kernel, parameters, parameter_count, operands, operand_count), on);
  });
}

ptxgen_status ptxgen_plan_gemv(ptxgen_device* device, ptxgen_span y, ptxgen_span a, ptxgen_span x,
                               uint32_t k, uint32_t n, const ptxgen_stream* stream,
                               ptxgen_plan** plan) noexcept {
  return plan_on(device, stream, plan, [&](const Launcher& launcher, const Stream& on) {
    return launcher.plan(GemvProblem{.k = k, .n = n},
                         {.y = elements<f32>(y), .a = elements<f32>(a), .x = elements<f32>(x)}, on);
  });
}

ptxgen_status ptxgen_plan_gemv_any(ptxgen_device* device, const ptxgen_gemv_problem* problem,
                                   const ptxgen_gemv_operands* operands,
                                   const ptxgen_stream* stream, ptxgen_plan** plan) noexcept {
  return plan_on(device, stream, plan, [&](const Launcher& launcher, const Stream& on) {
    const GemvProblem what = problem_of(problem);
    return launcher.plan(what, operands_of(operands, what), on);
  });
}

ptxgen_status ptxgen_plan_launch(const ptxgen_plan* plan, const ptxgen_stream* stream) noexcept {
  return guarded(plan, [&] {
    const LaunchPlan& of = need(plan, "plan").plan;
    if (stream == nullptr) {
      of.launch();
    } else {
      of.launch(need(stream, "stream").stream());
    }
  });
}

ptxgen_status ptxgen_plan_record(const ptxgen_plan* plan, ptxgen_launch_record* record) noexcept {
  return guarded(plan, [&] {
    const LaunchPlan& of = need(plan, "plan").plan;
    write_record(&need_place(record, "record"), of.record());
  });
}

void ptxgen_plan_free(ptxgen_plan* plan) noexcept { delete plan; }

ptxgen_status ptxgen_prepare(ptxgen_device* device, const ptxgen_kernel_request* requests,
                             size_t count, ptxgen_progress_callback callback, void* user) noexcept {
  return guarded(device, [&] {
    const Launcher& launcher = need(device, "device").runtime->launcher;
    std::vector<KernelRequest> wanted;
    for (const ptxgen_kernel_request& request : need_array(requests, count, "requests")) {
      const std::string_view name = need_text(request.kernel, "requests.kernel");
      const KernelValues chosen = kernel_values(
          name, need_array(request.parameters, request.parameter_count, "requests.parameters"));
      wanted.push_back({chosen.kernel->name, chosen.values});
    }
    struct Callback {
      ptxgen_progress_callback callback;
      void* user;
    } called{callback, user};
    PrepareProgress progress;
    if (callback != nullptr) {
      progress.user = &called;
      progress.report = [](void* to, std::size_t done, std::size_t total) {
        const auto& it = *static_cast<const Callback*>(to);
        it.callback(it.user, done, total);
      };
    }
    launcher.prepare(wanted, progress);
  });
}

}  // extern "C"
