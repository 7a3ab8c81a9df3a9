// src/runtime/launch/checked_call.cpp - a call on random operands, compared with its reference
#include "runtime/launch/checked_call.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/quantization/random_blocks.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "support/format.hpp"
#include "support/random_values.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr auto kGuard = static_cast<std::byte>(0xa5);

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

bool is_integral(ElementType type) {
  return !is_block_format(type) && ptx::kind(ptxgen::info(type).type) != ptx::TypeKind::Float;
}

std::vector<std::byte> random_elements(ElementType type, std::uint64_t count,
                                       const ArgumentInfo& info, std::uint64_t seed) {
  if (is_block_format(type)) return random_blocks(type, count, info.low, info.high, seed);
  return to_elements(type, random_between(count, info, is_integral(type), seed));
}

OperandMemory make_memory(const Context& context, const KernelDescription& kernel, const void* spec,
                          std::size_t i, const VerifyOptions& options) {
  const ArgumentInfo& info = kernel.arguments[i];
  OperandMemory memory;
  memory.argument = i;
  memory.output = i;
  memory.type = kernel.type_of(spec, i);
  memory.written = is_written(info.role);
  const std::uint64_t count = kernel.elements_of(spec, i);
  std::vector<std::byte> elements;
  if (kernel.is_read_of(spec, i)) {
    elements = random_elements(memory.type, count, info, options.seed * 977 + i);
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

// Of the values of blocks; none for other types.
std::vector<double> magnitudes(ElementType type, std::span<const std::byte> elements) {
  if (!is_block_format(type)) return {};
  std::vector<float> values(elements.size() / bytes(type) * ptxgen::info(type).block_values);
  term_magnitudes(type, elements, values);
  return {values.begin(), values.end()};
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
  const ArgumentInfo& info = kernel.arguments[i];
  OperandMemory* memory = options.in_place && is_written(info.role) && !kernel.is_read_of(spec, i)
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
  call.host.all.push_back({info.name, std::move(values), magnitudes(memory->type, elements)});
  call.call.operands.push_back(
      {info.name, {memory->buffer.address().value + memory->begin, elements.size()}, 0});
}

void add_scalar(RandomCall& call, const ArgumentInfo& info, std::uint64_t seed) {
  const bool integral = ptx::kind(info.scalar) != ptx::TypeKind::Float;
  const double number = random_between(1, info, integral, seed)[0];
  const double exact = info.scalar == ptx::Type::f32 ? double{static_cast<float>(number)} : number;
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

  void output(const OperandMemory& memory, const HostOperands::Operand& reference) {
    const auto elements = memory.elements(memory.after);
    if (is_block_format(memory.type)) {
      return blocks(memory.type, elements, memory.elements(memory.before), reference);
    }
    const std::vector<double> values = to_values(memory.type, elements);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double magnitude =
          i < reference.magnitude.size() ? reference.magnitude[i] : std::abs(reference.values[i]);
      const auto bits = elements.subspan(i * bytes(memory.type), bytes(memory.type));
      one(memory.type, reference.name, i, bits, values[i], reference.values[i], magnitude);
    }
  }
  // Blocks are compared bit for bit with those of the reference's values. Where it left the values
  // of a block, those bits: blocks of no quantised values come back as others.
  void blocks(ElementType type, std::span<const std::byte> got, std::span<const std::byte> before,
              const HostOperands::Operand& reference) {
    std::vector<std::byte> expected = to_elements(type, reference.values);
    const std::vector<double> values = to_values(type, before);
    const std::ptrdiff_t size = info(type).block_values;
    for (std::size_t at = 0; at < got.size(); at += bytes(type)) {
      const auto first = static_cast<std::ptrdiff_t>(at / bytes(type)) * size;
      const auto old = values.begin() + first;
      if (!std::equal(old, old + size, reference.values.begin() + first)) continue;
      std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(at), bytes(type),
                  expected.begin() + static_cast<std::ptrdiff_t>(at));
    }
    for (std::size_t at = 0; at < got.size(); at += bytes(type)) {
      const std::size_t block = at / bytes(type);
      ++result_.compared;
      if (std::memcmp(&got[at], &expected[at], bytes(type)) == 0) continue;
      result_.worst_share = result_.max_error = INFINITY;
      if (result_.wrong++ == 0) {
        result_.first_wrong = format_text("block {} of {} is not that of the values, rounded to {}",
                                          block, reference.name, to_string(type));
      }
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
    : kernel_(kernel),
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
  for (OperandMemory& memory : call_.memory) {
    memory.after.resize(memory.before.size());
    memory.buffer.read({reinterpret_cast<std::uint8_t*>(memory.after.data()), memory.after.size()});
    result.outside += changed(memory);
  }
  if (!has_reference_) kernel_.reference_of(spec_.get(), call_.host);
  has_reference_ = true;
  const ErrorBound within = bound(launcher);
  OutputCheck check(result, within);
  for (const OperandMemory& memory : call_.memory) {
    if (!memory.written) continue;
    check.output(memory, call_.host[kernel_.arguments[memory.output].name]);
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
