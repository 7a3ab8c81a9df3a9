// src/runtime/module/arguments.cpp - signatures of PTX entries, argument blocks
#include <algorithm>
#include <cstring>

#include "ptxgen/ptx/names.hpp"
#include "ptxgen/runtime/module/arguments.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::inline v0 {

Signature signature_of(const ptx::Module& module, const ptx::Function& entry) {
  Signature signature;
  std::uint64_t end = 0;
  for (const ptx::Variable& variable : entry.parameters) {
    const std::uint64_t alignment = std::max<std::uint32_t>(ptx::natural_alignment(variable), 1);
    Parameter parameter;
    parameter.name = module.text(variable.name);
    // An array of bytes is a structure: only its size is known.
    parameter.type =
        variable.dimensions.empty() && variable.vector == 1 ? variable.type : ptx::Type::none;
    end = (end + alignment - 1) / alignment * alignment;
    parameter.offset = static_cast<std::uint32_t>(end);
    parameter.size = static_cast<std::uint32_t>(ptx::size_in_bytes(variable));
    parameter.pointer = variable.pointer;
    parameter.space = variable.pointer_space;
    end += parameter.size;
    signature.parameters.push_back(std::move(parameter));
  }
  return signature;
}

namespace {

[[noreturn]] void refuse(std::string_view kernel, std::string message) {
  Error error(Stage::Launch, "arguments", std::move(message));
  error.kernel = kernel;
  throw std::move(error.refresh());
}

/// f16 and similar: the host passes their bits.
bool is_half(ptx::Type type) noexcept {
  return type == ptx::Type::f16 || type == ptx::Type::f16x2 || type == ptx::Type::bf16 ||
         type == ptx::Type::bf16x2;
}

bool is_float(ptx::Type type) noexcept {
  return is_half(type) || type == ptx::Type::f32 || type == ptx::Type::f64;
}

/// Untyped bits.
bool is_untyped(ptx::Type type) noexcept {
  switch (type) {
    case ptx::Type::none:
    case ptx::Type::b8:
    case ptx::Type::b16:
    case ptx::Type::b32:
    case ptx::Type::b64:
    case ptx::Type::b128:
      return true;
    default:
      return false;
  }
}

/// Why a value does not match the parameter; empty: it does.
std::string mismatch(const Parameter& parameter, const LaunchValue& value) {
  using Kind = LaunchValue::Kind;
  switch (value.kind()) {
    case Kind::Bytes:
      return {};
    case Kind::Pointer: {
      if (parameter.size != 8 || is_float(parameter.type)) return "a pointer";
      const bool both = value.element() != ptx::Type::none && parameter.element != ptx::Type::none;
      if (!both || value.element() == parameter.element) return {};
      return "memory of ." + std::string(ptx::name(value.element()));
    }
    case Kind::Float:
      if (parameter.pointer) return "a float";
      return is_untyped(parameter.type) || is_float(parameter.type) ? "" : "a float";
    case Kind::Integer:
      if (parameter.pointer || is_untyped(parameter.type) || !is_float(parameter.type)) return {};
      // A host without a half type passes a half as a 2-byte integer.
      return is_half(parameter.type) ? "" : "an integer";
  }
  return {};
}

std::string type_text(const Parameter& parameter) {
  std::string text = parameter.type == ptx::Type::none
                         ? format_text("{} bytes", parameter.size)
                         : "." + std::string(ptx::name(parameter.type));
  if (!parameter.pointer) return text;
  const bool known = parameter.element != ptx::Type::none;
  return text + (known ? format_text(" (a pointer to .{})", ptx::name(parameter.element))
                       : " (a pointer)");
}

std::string list_text(const Signature& signature) {
  return join_text(signature.parameters, ", ", [](const Parameter& parameter) {
    return format_text("{} {}", type_text(parameter), parameter.name);
  });
}

}  // namespace

std::vector<std::byte> pack_arguments(std::string_view kernel, const Signature& signature,
                                      std::span<const LaunchValue> arguments) {
  if (arguments.size() != signature.parameters.size()) {
    const std::string list = list_text(signature);
    refuse(kernel,
           format_text("{} arguments were given, {} has {} parameters{}", arguments.size(), kernel,
                       signature.parameters.size(), list.empty() ? "" : ": " + list));
  }
  std::vector<std::byte> block(signature.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const LaunchValue& argument = arguments[i];
    const Parameter& parameter = signature.parameters[i];
    const auto which = [&] {
      return format_text("argument {} (parameter {})", i + 1, parameter.name);
    };
    if (argument.bytes() != parameter.size) {
      refuse(kernel, format_text("{} has {} bytes, {} takes {}", which(), argument.bytes(),
                                 type_text(parameter), parameter.size));
    }
    if (const std::string is = mismatch(parameter, argument); !is.empty()) {
      refuse(kernel,
             format_text("{} is {}, the kernel takes {}", which(), is, type_text(parameter)));
    }
    std::memcpy(block.data() + parameter.offset, argument.data(), parameter.size);
  }
  return block;
}

}  // namespace ptxgen::inline v0
