// src/kernels/description.cpp - parameter values and operands by name
#include "ptxgen/kernels/description.hpp"

#include <algorithm>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::inline v0 {

namespace {

[[noreturn]] void refuse(const KernelDescription& kernel, Stage stage, const char* code,
                         std::string message) {
  Error error(stage, code, std::move(message));
  error.kernel = kernel.name;
  throw error.refresh();
}

const HostOperands::Operand& find(const HostOperands& host, std::string_view name) {
  const auto found = std::find_if(host.all.begin(), host.all.end(),
                                  [&](const auto& operand) { return operand.name == name; });
  if (found != host.all.end()) return *found;
  throw Error(Stage::Build, "arguments",
              format_text("the call has no operand '{}'; it has: {}", name,
                          join_text(host.all, ", ", &HostOperands::Operand::name)));
}

}  // namespace

HostOperands::Operand& HostOperands::operator[](std::string_view name) {
  return const_cast<Operand&>(find(*this, name));
}
const std::vector<double>& HostOperands::input(std::string_view name) const {
  return find(*this, name).values;
}
double HostOperands::number(std::string_view name) const { return find(*this, name).values[0]; }

LaunchGeometry KernelDescription::geometry(std::span<const std::uint64_t> values,
                                           const ptx::Target& target) const {
  ptx::Gpu gpu = emulator::default_gpu(target.name);
  gpu.target = target.name;  // a GPU's best target may have more kernels
  return geometry_of(make_spec(values).get(), gpu);
}

std::vector<std::uint64_t> KernelDescription::default_values() const {
  std::vector<std::uint64_t> values;
  for (const ParameterInfo& info : parameters) values.push_back(info.default_value);
  return values;
}

bool KernelDescription::serves(const ptx::Target& target) const {
  if (check_target_of == nullptr) return true;
  try {
    check_target_of(make_spec(default_values()).get(), target);
  } catch (const Error&) {
    return false;
  }
  return true;
}

std::string range_text(const ParameterInfo& info) {
  if (!info.words.empty()) return join_text(info.words, "|");
  const std::string range = format_text("{}..{}", info.min, info.max);
  return info.multiple_of == 1 ? range
                               : format_text("{}, multiples of {}", range, info.multiple_of);
}

std::string shape_text(const KernelDescription& kernel, const void* spec) {
  std::vector<std::uint64_t> values(kernel.parameters.size());
  kernel.values_of(spec, values.data());
  std::vector<std::string> sizes;
  std::vector<std::string> options;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ParameterInfo& info = kernel.parameters[i];
    const bool option = !info.words.empty() || info.type == "bool";
    if (!option && values[i] + info.default_value != 0) {
      sizes.push_back(format_text("{} = {}", info.name, values[i]));
    } else if (option && values[i] != info.default_value) {
      options.push_back(values[i] < info.words.size()
                            ? format_text("{} = {}", info.name, info.words[values[i]])
                            : format_text("{}{}", values[i] == 0 ? "no " : "", info.name));
    }
  }
  sizes.insert(sizes.end(), options.begin(), options.end());
  return sizes.empty() ? format_text("kernel {}", kernel.name) : join_text(sizes, ", ");
}

void check_values(const KernelDescription& kernel, std::span<const std::uint64_t> values) {
  const auto bad = [&](std::string message) {
    refuse(kernel, Stage::Build, "bad-parameter", std::move(message));
  };
  if (values.size() != kernel.parameters.size()) {
    bad(format_text("takes {}, not {}", count_text(kernel.parameters.size(), "parameter"),
                    values.size()));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ParameterInfo& info = kernel.parameters[i];
    const bool in_range = values[i] >= info.min && values[i] <= info.max;
    if (in_range && values[i] % info.multiple_of == 0) continue;
    if (in_range) {
      bad(format_text("{} is {}, not a multiple of {}", info.name, values[i], info.multiple_of));
    }
    if (!info.words.empty()) bad(format_text("{} may be {}", info.name, range_text(info)));
    bad(format_text("{} is {}, outside {}", info.name, values[i], range_text(info)));
  }
}

std::size_t parameter_index(const KernelDescription& kernel, std::string_view name) {
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (kernel.parameters[i].name == name) return i;
  }
  refuse(kernel, Stage::Build, "bad-parameter",
         format_text("{} has no parameter '{}'; it has: {}", kernel.name, name,
                     join_text(kernel.parameters, ", ", &ParameterInfo::name)));
}

std::size_t argument_index(const KernelDescription& kernel, std::string_view name) {
  const auto can_be_given = [](const ArgumentInfo& argument) {
    return argument.role != ArgumentRole::Workspace && argument.role != ArgumentRole::Shape &&
           argument.role != ArgumentRole::TensorMap;
  };
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    if (!can_be_given(kernel.arguments[i])) continue;
    if (kernel.arguments[i].name == name) return i;
    names.push_back(kernel.arguments[i].name);
  }
  refuse(
      kernel, Stage::Launch, "arguments",
      format_text("{} has no operand '{}'; it has: {}", kernel.name, name, join_text(names, ", ")));
}

}  // namespace ptxgen::inline v0
