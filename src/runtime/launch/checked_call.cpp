// src/runtime/launch/checked_call.cpp - a call on random operands, compared with its reference
#include "runtime/launch/checked_call.hpp"

#include <algorithm>
#include <numeric>

#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "runtime/launch/output_check.hpp"
#include "runtime/launch/random_operands.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr auto kGuard = static_cast<std::byte>(0xa5);

OperandMemory make_memory(const KernelDescription& kernel, const void* spec, std::size_t i,
                          const VerifyOptions& options) {
  const ArgumentInfo& info = kernel.arguments[i];
  OperandMemory memory;
  memory.argument = i;
  memory.output = i;
  memory.type = kernel.type_of(spec, i);
  memory.written = is_written(info.role);
  const std::uint64_t count = kernel.elements_of(spec, i);
  std::vector<std::byte> elements;
  if (kernel.is_read_of(spec, i)) {
    const std::uint64_t seed = options.seed * 977 + i;
    const RepackedRows rows = kernel.repacked_of(spec, i);
    elements = rows.columns != 0 ? random_elements(rows, count, info, seed)
                                 : random_elements(memory.type, count, info, seed);
  } else {
    // NaN in every float type.
    elements.assign(static_cast<std::size_t>(bytes(memory.type, count)), std::byte{0xff});
  }
  const std::size_t step = std::lcm(bytes(memory.type), kernel.alignment_of(spec, i));
  memory.begin = kGuardBytes + options.offset * step;
  memory.before.assign(memory.begin, kGuard);
  memory.before.insert(memory.before.end(), elements.begin(), elements.end());
  memory.before.insert(memory.before.end(), kGuardBytes, kGuard);
  return memory;
}

// The input that an output is in place, or null.
OperandMemory* shared_input(RandomCall& call, const KernelDescription& kernel, const void* spec,
                            std::size_t i) {
  for (const std::string_view name : kernel.arguments[i].may_alias) {
    for (OperandMemory& memory : call.memory) {
      if (kernel.arguments[memory.argument].name == name && !memory.written &&
          memory.type == kernel.type_of(spec, i) &&
          kernel.elements_of(spec, memory.argument) == kernel.elements_of(spec, i)) {
        return &memory;
      }
    }
  }
  return nullptr;
}

void add_memory(RandomCall& call, const Context& context, const KernelDescription& kernel,
                const void* spec, std::size_t i, const VerifyOptions& options) {
  Span inputs(context.device().trace(), "inputs", "verify", &call.stages);
  const ArgumentInfo& info = kernel.arguments[i];
  OperandMemory* memory = options.in_place && is_written(info.role) && !kernel.is_read_of(spec, i)
                              ? shared_input(call, kernel, spec, i)
                              : nullptr;
  if (memory == nullptr) {
    memory = &call.memory.emplace_back(make_memory(kernel, spec, i, options));
  } else {
    memory->written = true;
    memory->output = i;
  }
  const auto elements = memory->elements(memory->before);
  const RepackedRows rows = kernel.repacked_of(spec, i);
  const std::vector<std::byte> stored =
      rows.columns != 0 ? unpack_rows(rows.type, rows.columns, elements) : std::vector<std::byte>();
  const ElementType type = rows.columns != 0 ? rows.type : memory->type;
  const std::span<const std::byte> plain = rows.columns != 0 ? stored : elements;
  std::vector<double> values = to_values(type, plain);
  // What a reference does not set is not what the output held before.
  if (!kernel.is_read_of(spec, i)) std::fill(values.begin(), values.end(), 0.0);
  call.host.all.push_back({info.name, std::move(values), magnitudes_of(type, plain)});
  inputs.end();
  const Span upload(context.device().trace(), "upload", "verify", &call.stages);
  if (memory->buffer.size() == 0) memory->buffer = Buffer<u8>(context, as_u8(memory->before));
  call.call.operands.push_back(
      {info.name, {memory->buffer.address().value + memory->begin, elements.size()}, 0});
}

void add_scalar(RandomCall& call, const ArgumentInfo& info, std::uint64_t seed,
                std::span<const OperandValue> requested) {
  const auto found = std::ranges::find(requested, info.name, &OperandValue::name);
  const double exact = found != requested.end() ? found->number : random_scalar(info, seed);
  call.host.all.push_back({info.name, {exact}, {}});
  call.call.operands.push_back({info.name, {}, exact});
}

RandomCall make_call(const Context& context, const KernelDescription& kernel,
                     std::span<const std::uint64_t> values, const void* spec,
                     const VerifyOptions& options) {
  RandomCall call;
  call.call.kernel = &kernel;
  call.call.values.assign(values.begin(), values.end());
  // Inputs first: an output may be one of them.
  for (const bool outputs : {false, true}) {
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
      const ArgumentInfo& info = kernel.arguments[i];
      if (!kernel.is_present_of(spec, i) || is_written(info.role) != outputs) continue;
      if (is_memory(info.role)) {
        add_memory(call, context, kernel, spec, i, options);
      } else if (info.role == ArgumentRole::Scalar) {
        add_scalar(call, info, options.seed * 977 + i, options.scalars);
      }
    }
  }
  return call;
}

// Bytes that the kernel had no business to change.
std::uint64_t changed(const OperandMemory& memory) {
  std::uint64_t count = 0;
  const std::size_t end = memory.before.size() - kGuardBytes;
  for (std::size_t i = 0; i < memory.before.size(); ++i) {
    const bool result = memory.written && i >= memory.begin && i < end;
    count += !result && memory.before[i] != memory.after[i] ? 1 : 0;
  }
  return count;
}

}  // namespace

CheckedCall::CheckedCall(const Context& context, const KernelDescription& kernel,
                         std::span<const std::uint64_t> values, const VerifyOptions& options)
    : trace_(context.device().trace()),
      kernel_(kernel),
      spec_(kernel.make_spec(values)),
      call_(make_call(context, kernel, values, spec_.get(), options)) {}

bool CheckedCall::reads_outputs() const {
  return std::any_of(call_.memory.begin(), call_.memory.end(), [&](const OperandMemory& memory) {
    return memory.written && kernel_.is_read_of(spec_.get(), memory.argument);
  });
}

void CheckedCall::restore() {
  for (OperandMemory& memory : call_.memory) memory.buffer.write(as_u8(memory.before));
}

void CheckedCall::compare(const Launcher& launcher, Verification& result) {
  Span download(trace_, "download", "verify", &result.stages);
  for (OperandMemory& memory : call_.memory) {
    memory.after.resize(memory.before.size());
    memory.buffer.read({reinterpret_cast<std::uint8_t*>(memory.after.data()), memory.after.size()});
    result.outside += changed(memory);
  }
  download.end();
  Span reference(trace_, "reference", "verify", &result.stages);
  if (!has_reference_) kernel_.reference_of(spec_.get(), call_.host);
  has_reference_ = true;
  reference.end();
  const Span comparison(trace_, "compare", "verify", &result.stages);
  const ErrorBound within = bound(launcher);
  OutputCheck check(result, within);
  for (const OperandMemory& memory : call_.memory) {
    if (!memory.written) continue;
    check.output(memory.type, memory.elements(memory.after), memory.elements(memory.before),
                 call_.host[kernel_.arguments[memory.output].name]);
  }
  check.finish();
}

ErrorBound CheckedCall::bound(const Launcher& launcher) const {
  const ChosenKernel chosen = launcher.choose(call_.call);
  return chosen.kernel != nullptr && chosen.spec != nullptr ? chosen.kernel->bound_of(chosen.spec)
                                                            : kernel_.bound_of(spec_.get());
}

void collect_findings(const Context& context, std::uint64_t first, Verification& result) {
  for (const LaunchFinding& found : context.device().findings(std::string_view(result.kernel))) {
    if (found.launch < first || found.finding.severity == Severity::Note) continue;
    result.findings.push_back(found.text);
  }
}

}  // namespace ptxgen::inline v0
