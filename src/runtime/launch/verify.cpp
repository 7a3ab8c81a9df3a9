// src/runtime/launch/verify.cpp - a described kernel against its fp64 reference
#include "ptxgen/runtime/launch/verify.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/random_values.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr auto kGuard = static_cast<std::byte>(0xa5);

/// One operand in device memory: guard bytes, the elements, guard bytes.
struct Memory {
  std::size_t argument = 0;
  std::size_t output = 0;  ///< the argument that is written; another one in place
  ElementType type = ElementType::f32;
  std::size_t begin = 0;  ///< of the elements in `before`
  std::vector<std::byte> before;
  std::vector<std::byte> after;
  Buffer<u8> buffer;
  bool written = false;

  [[nodiscard]] std::span<const std::byte> elements(const std::vector<std::byte>& of) const {
    return std::span(of).subspan(begin, of.size() - begin - kGuardBytes);
  }
};

/// A call with its operands on host and device.
struct Call {
  KernelCall call;
  HostOperands host;
  std::vector<Memory> memory;
};

std::span<const std::uint8_t> as_u8(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

std::vector<double> random_between(std::uint64_t count, const ArgumentInfo& info, bool integral,
                                   std::uint64_t seed) {
  const std::vector<float> random = random_values(static_cast<std::size_t>(count), seed);
  std::vector<double> values(random.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double share = (double{random[i]} + 1) / 2;
    values[i] = info.low + share * (info.high - info.low);
    if (integral) values[i] = std::floor(values[i]);
  }
  return values;
}

bool is_integral(ptx::Type type) { return ptx::kind(type) != ptx::TypeKind::Float; }

Memory make_memory(const Context& context, const KernelDescription& kernel, const void* spec,
                   std::size_t i, const VerifyOptions& options) {
  const ArgumentInfo& info = kernel.arguments[i];
  Memory memory;
  memory.argument = i;
  memory.output = i;
  memory.type = kernel.type_of(spec, i);
  memory.written = is_written(info.role);
  const std::uint64_t count = kernel.elements_of(spec, i);
  std::vector<std::byte> elements;
  if (kernel.is_read_of(spec, i)) {
    const bool integral = is_integral(ptxgen::info(memory.type).type);
    elements =
        to_elements(memory.type, random_between(count, info, integral, options.seed * 977 + i));
  } else {
    // NaN in every float type.
    elements.assign(static_cast<std::size_t>(bytes(memory.type, count)), std::byte{0xff});
  }
  memory.begin = kGuardBytes + std::size_t{options.offset} *
                                   std::max(bytes(memory.type), kernel.alignment_of(spec, i));
  memory.before.assign(memory.begin, kGuard);
  memory.before.insert(memory.before.end(), elements.begin(), elements.end());
  memory.before.insert(memory.before.end(), kGuardBytes, kGuard);
  memory.buffer = Buffer<u8>(context, as_u8(memory.before));
  return memory;
}

// The input that an output is in place, or null.
Memory* shared_input(Call& call, const KernelDescription& kernel, const void* spec, std::size_t i) {
  for (const std::string_view name : kernel.arguments[i].may_alias) {
    for (Memory& memory : call.memory) {
      if (kernel.arguments[memory.argument].name == name && !memory.written &&
          memory.type == kernel.type_of(spec, i) &&
          kernel.elements_of(spec, memory.argument) == kernel.elements_of(spec, i)) {
        return &memory;
      }
    }
  }
  return nullptr;
}

void add_memory(Call& call, const Context& context, const KernelDescription& kernel,
                const void* spec, std::size_t i, const VerifyOptions& options) {
  const ArgumentInfo& info = kernel.arguments[i];
  Memory* memory = options.in_place && is_written(info.role) && !kernel.is_read_of(spec, i)
                       ? shared_input(call, kernel, spec, i)
                       : nullptr;
  if (memory == nullptr) {
    memory = &call.memory.emplace_back(make_memory(context, kernel, spec, i, options));
  } else {
    memory->written = true;
    memory->output = i;
  }
  const auto elements = memory->elements(memory->before);
  std::vector<double> values = to_values(memory->type, elements);
  // What a reference does not set is not what the output held before.
  if (!kernel.is_read_of(spec, i)) std::fill(values.begin(), values.end(), 0.0);
  call.host.all.push_back({info.name, std::move(values), {}});
  call.call.operands.push_back(
      {info.name, {memory->buffer.address().value + memory->begin, elements.size()}, 0});
}

void add_scalar(Call& call, const ArgumentInfo& info, std::uint64_t seed) {
  const double number = random_between(1, info, is_integral(info.scalar), seed)[0];
  const double exact = info.scalar == ptx::Type::f32 ? double{static_cast<float>(number)} : number;
  call.host.all.push_back({info.name, {exact}, {}});
  call.call.operands.push_back({info.name, {}, exact});
}

Call make_call(const Context& context, const KernelDescription& kernel,
               std::span<const std::uint64_t> values, const void* spec,
               const VerifyOptions& options) {
  Call call;
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
        add_scalar(call, info, options.seed * 977 + i);
      }
    }
  }
  return call;
}

bool same_bits(ElementType type, std::span<const std::byte> got, double expected, double value) {
  if (std::isnan(expected)) return std::isnan(value);
  const std::vector<std::byte> bits = to_elements(type, {&expected, 1});
  return std::memcmp(bits.data(), got.data(), bits.size()) == 0;
}

/// Compares one output; sums for the NMSE.
class OutputCheck {
 public:
  OutputCheck(Verification& result, const ErrorBound& bound) : result_(result), bound_(bound) {}

  void output(const Memory& memory, const HostOperands::Operand& reference) {
    const auto elements = memory.elements(memory.after);
    const std::vector<double> values = to_values(memory.type, elements);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double magnitude =
          i < reference.magnitude.size() ? reference.magnitude[i] : std::abs(reference.values[i]);
      const auto bits = elements.subspan(i * bytes(memory.type), bytes(memory.type));
      one(memory.type, reference.name, i, bits, values[i], reference.values[i], magnitude);
    }
  }
  void finish() { result_.nmse = squares_ > 0 ? errors_ / squares_ : errors_; }

 private:
  void one(ElementType type, std::string_view name, std::size_t i, std::span<const std::byte> bits,
           double got, double expected, double magnitude) {
    ++result_.compared;
    if (same_bits(type, bits, expected, got)) return add(0, expected);
    const double error = std::abs(got - expected);
    const double within = bound_.exact ? 0
                                       : bound_.relative * magnitude + bound_.absolute +
                                             unit_in_last_place(type, expected) / 2;
    add(error, expected);
    if (error <= within) {
      result_.worst_share = std::max(result_.worst_share, error / within);
      result_.max_error = std::max(result_.max_error, error);
      return;
    }
    result_.worst_share = std::max(result_.worst_share, within > 0 ? error / within : INFINITY);
    result_.max_error = std::isnan(error) ? INFINITY : std::max(result_.max_error, error);
    if (result_.wrong++ == 0) {
      result_.first_wrong =
          format_text("{}[{}] is {}, expected {} +- {:.3g}", name, i, got, expected, within);
    }
  }
  void add(double error, double expected) {
    if (std::isfinite(error)) errors_ += error * error;
    if (std::isfinite(expected)) squares_ += expected * expected;
  }

  Verification& result_;
  const ErrorBound& bound_;
  double errors_ = 0;
  double squares_ = 0;
};

// Bytes that the kernel had no business to change.
std::uint64_t changed(const Memory& memory) {
  std::uint64_t count = 0;
  const std::size_t end = memory.before.size() - kGuardBytes;
  for (std::size_t i = 0; i < memory.before.size(); ++i) {
    const bool result = memory.written && i >= memory.begin && i < end;
    count += !result && memory.before[i] != memory.after[i] ? 1 : 0;
  }
  return count;
}

void collect_findings(const Context& context, std::uint64_t launch, Verification& result) {
  for (const LaunchFinding& found : context.device().findings(launch)) {
    if (found.finding.severity != Severity::Note) result.findings.push_back(found.text);
  }
}

void run(const Launcher& launcher, const Context& context, Call& call, Verification& result) {
  const Stream stream(context);
  const LaunchRecord record = launcher.launch(call.call, stream);
  result.kernel = record.kernel;
  result.implementation = record.implementation;
  try {
    stream.synchronize();
  } catch (const Error&) {
    collect_findings(context, record.launch, result);
    throw;
  }
  collect_findings(context, record.launch, result);
  for (Memory& memory : call.memory) {
    memory.after.resize(memory.before.size());
    memory.buffer.read({reinterpret_cast<std::uint8_t*>(memory.after.data()), memory.after.size()});
    result.outside += changed(memory);
  }
}

ErrorBound bound_of(const Launcher& launcher, const Call& call, const void* spec) {
  const ChosenKernel chosen = launcher.choose(call.call);
  return chosen.kernel != nullptr && chosen.spec != nullptr ? chosen.kernel->bound_of(chosen.spec)
                                                            : call.call.kernel->bound_of(spec);
}

}  // namespace

Verification verify(const Launcher& launcher, const Context& context,
                    const KernelDescription& kernel, std::span<const std::uint64_t> values,
                    const VerifyOptions& options) {
  const ErasedValue spec = kernel.make_spec(values);
  Verification result;
  result.shape = shape_text(kernel, spec.get());
  Call call = make_call(context, kernel, values, spec.get(), options);
  try {
    run(launcher, context, call, result);
    kernel.reference_of(spec.get(), call.host);
    const ErrorBound bound = bound_of(launcher, call, spec.get());
    OutputCheck check(result, bound);
    for (const Memory& memory : call.memory) {
      if (memory.written) {
        check.output(memory, call.host[kernel.arguments[memory.output].name]);
      }
    }
    check.finish();
  } catch (const Error& error) {
    result.error = error.what();
  }
  return result;
}

}  // namespace ptxgen::inline v0
