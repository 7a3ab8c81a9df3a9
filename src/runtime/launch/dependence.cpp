// src/runtime/launch/dependence.cpp - whether outputs depend on the inputs that they should
#include "runtime/launch/dependence.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/runtime/device/specific_target.hpp"
#include "runtime/launch/random_operands.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::size_t kPartsOfInput = 64;
// Changes of a reference above so many bounds are not what errors hide.
constexpr double kClearly = 8;

/// Elements of an input.
struct Part {
  std::size_t first = 0, count = 0;
};

/// An output's values and bits, of a launch and of its reference.
struct Outputs {
  std::vector<std::byte> bits;
  HostOperands::Operand reference;
};

class Dependence {
 public:
  Dependence(const Launcher& launcher, const Context& context, const KernelDescription& kernel,
             CheckedCall& call, std::uint64_t seed, Verification& result)
      : launcher_(launcher),
        context_(context),
        kernel_(kernel),
        call_(call),
        seed_(seed),
        bound_(call.bound(launcher)),
        result_(result) {
    for (const OperandMemory& memory : call.memory()) {
      if (memory.written) before_.push_back(of_launch(memory, call.host()));
    }
  }

  void check(std::size_t input) {
    OperandMemory& memory = call_.memory()[input];
    const std::size_t count = to_values(memory.type, memory.elements(memory.before)).size();
    const std::size_t length = std::max<std::size_t>(count / kPartsOfInput, 1);
    std::mt19937_64 random(seed_ + input);
    // The last element alone: more may reach beyond what is lost at the end.
    const Part parts[] = {{count - 1, 1},
                          {count - length, length},
                          {0, length},
                          {random() % (count - length + 1), length}};
    for (const Part& part : parts) {
      const std::size_t findings = result_.findings.size();
      check(memory, part);
      // One of each input, of which more would say the same.
      if (result_.findings.size() != findings) break;
    }
    memory.buffer.write(as_u8(memory.before));
  }

 private:
  [[nodiscard]] Outputs of_launch(const OperandMemory& memory, const HostOperands& host) const {
    const auto bits = memory.elements(memory.after);
    return {{bits.begin(), bits.end()}, find(host, kernel_.arguments[memory.output].name)};
  }
  [[nodiscard]] static const HostOperands::Operand& find(const HostOperands& host,
                                                         std::string_view name) {
    return *std::ranges::find(host.all, name, &HostOperands::Operand::name);
  }

  void check(OperandMemory& memory, const Part& part) {
    const ArgumentInfo& info = kernel_.arguments[memory.argument];
    std::vector<std::byte> changed = memory.before;
    const std::size_t element = bytes(memory.type);
    const std::vector<std::byte> other =
        random_elements(memory.type, part.count, info, seed_ * 31 + part.first + 1);
    std::copy(other.begin(), other.end(),
              changed.begin() + static_cast<std::ptrdiff_t>(memory.begin + part.first * element));
    const HostOperands host = reference_with(info.name, part, to_values(memory.type, other));
    launch_with(memory, changed);
    std::size_t at = 0;
    for (const OperandMemory& output : call_.memory()) {
      if (!output.written) continue;
      compare(output.type, before_[at++], of_launch(output, host), info.name, part);
    }
  }

  // Outputs hold again what they held before the first launch.
  void launch_with(OperandMemory& input, const std::vector<std::byte>& changed) {
    call_.restore();
    input.buffer.write(as_u8(changed));
    const Stream stream(context_);
    launcher_.launch(call_.call(), stream);
    stream.synchronize();
    for (OperandMemory& memory : call_.memory()) {
      if (!memory.written) continue;
      memory.buffer.read(
          {reinterpret_cast<std::uint8_t*>(memory.after.data()), memory.after.size()});
    }
  }

  [[nodiscard]] HostOperands reference_with(std::string_view input, const Part& part,
                                            const std::vector<double>& values) const {
    HostOperands host = call_.host();
    for (const OperandMemory& memory : call_.memory()) {
      if (!memory.written) continue;
      HostOperands::Operand& output = host[kernel_.arguments[memory.output].name];
      std::fill(output.values.begin(), output.values.end(), 0.0);
    }
    std::copy(values.begin(), values.end(),
              host[input].values.begin() + static_cast<std::ptrdiff_t>(part.first));
    kernel_.reference_of(call_.spec(), host);
    return host;
  }

  void compare(ElementType type, const Outputs& before, const Outputs& after,
               std::string_view input, const Part& part) {
    const std::size_t element = bytes(type);
    for (std::size_t i = 0; i < before.reference.values.size(); ++i) {
      const bool same =
          std::memcmp(&before.bits[i * element], &after.bits[i * element], element) == 0;
      const double one = before.reference.values[i];
      const double other = after.reference.values[i];
      if (same &&
          std::abs(other - one) > kClearly * (within(type, before, i) + within(type, after, i))) {
        result_.findings.push_back(format_text(
            "{}[{}] does not change with {}, which takes its reference from {} to {}: the kernel "
            "leaves elements of {} out [lost-dependence]",
            before.reference.name, i, text_of(input, part), one, other, input));
        return;
      }
      if (!same && one == other) {
        result_.findings.push_back(format_text(
            "{}[{}] changes with {}, on which its reference does not depend: an index or a mask "
            "of the kernel is wrong [false-dependence]",
            before.reference.name, i, text_of(input, part)));
        return;
      }
    }
  }
  [[nodiscard]] static std::string text_of(std::string_view input, const Part& part) {
    if (part.count == 1) return format_text("{}[{}]", input, part.first);
    return format_text("{}[{}] to {}[{}]", input, part.first, input, part.first + part.count - 1);
  }
  [[nodiscard]] double within(ElementType type, const Outputs& of, std::size_t i) const {
    const double value = of.reference.values[i];
    const auto& magnitudes = of.reference.magnitude;
    const double magnitude = i < magnitudes.size() ? magnitudes[i] : std::abs(value);
    return bound_.relative * magnitude + bound_.absolute + unit_in_last_place(type, value) / 2;
  }

  const Launcher& launcher_;
  const Context& context_;
  const KernelDescription& kernel_;
  CheckedCall& call_;
  std::uint64_t seed_;
  ErrorBound bound_;
  Verification& result_;
  std::vector<Outputs> before_;
};

bool is_plain(const KernelDescription& kernel, const CheckedCall& call,
              const OperandMemory& memory) {
  const ArgumentInfo& info = kernel.arguments[memory.argument];
  return !memory.written && memory.type <= ElementType::bf16 && info.role == ArgumentRole::Input &&
         kernel.repacked_of(call.spec(), memory.argument).columns == 0;
}

// Of the kernel that serves the call.
void check_sizes(const Launcher& launcher, const Context& context, const KernelDescription& kernel,
                 const CheckedCall& call, Verification& result) {
  const ChosenKernel chosen = launcher.choose(call.call());
  const bool other = chosen.kernel != nullptr && chosen.spec != nullptr;
  const KernelDescription& served = other ? *chosen.kernel : kernel;
  const Device& device = context.device();
  const ptx::Target* const specific =
      served.needs_specific ? specific_target(device.info()) : nullptr;
  const ptx::Target& target = specific != nullptr ? *specific : device.target();
  const ptx::Module module = served.build_of(other ? chosen.spec : call.spec(), target);
  for (const Finding& finding : gates::sizes(module, declared_sizes(served))) {
    result.findings.push_back(to_text(finding));
  }
}

}  // namespace

std::vector<gates::SizeDeclaration> declared_sizes(const KernelDescription& kernel) {
  std::vector<gates::SizeDeclaration> sizes;
  for (const ArgumentInfo& argument : kernel.arguments) {
    if (argument.role != ArgumentRole::Shape) continue;
    gates::SizeDeclaration& size = sizes.emplace_back();
    size.name = argument.name;
    for (const ParameterInfo& parameter : kernel.parameters) {
      if (parameter.name == argument.name) size.multiple = parameter.multiple_of;
    }
  }
  return sizes;
}

void check_dependence(const Launcher& launcher, const Context& context,
                      const KernelDescription& kernel, CheckedCall& call, std::uint64_t seed,
                      Verification& result) {
  check_sizes(launcher, context, kernel, call, result);
  const bool floats = std::ranges::all_of(call.memory(), [](const OperandMemory& memory) {
    return !memory.written || memory.type <= ElementType::bf16;
  });
  if (call.reads_outputs() || !floats) return;
  Dependence dependence(launcher, context, kernel, call, seed, result);
  for (std::size_t i = 0; i < call.memory().size(); ++i) {
    if (is_plain(kernel, call, call.memory()[i])) dependence.check(i);
  }
}

}  // namespace ptxgen::inline v0
