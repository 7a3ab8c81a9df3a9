// src/cli/args/module_kernels.cpp - the kernels of a parsed module
#include "cli/args/module_kernels.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace ptxgen::cli {

namespace {

using Kernel = emulator::Program::Kernel;

Kernel kernel_of(const ptx::Module& module, const ptx::Function& function) {
  Kernel kernel;
  kernel.name = std::string(module.text(function.name));
  std::uint64_t end = 0;
  for (const ptx::Variable& variable : function.parameters) {
    const std::uint64_t alignment = std::max<std::uint32_t>(ptx::natural_alignment(variable), 1);
    const std::uint64_t offset = (end + alignment - 1) / alignment * alignment;
    const std::uint64_t bytes = ptx::size_in_bytes(variable);
    kernel.parameters.push_back({std::string(module.text(variable.name)), variable.type,
                                 static_cast<std::uint32_t>(offset),
                                 static_cast<std::uint32_t>(bytes)});
    end = offset + bytes;
  }
  kernel.parameter_bytes = static_cast<std::uint32_t>(end);
  for (const ptx::Directive& directive : function.directives) {
    const auto part = [&](unsigned i) {
      return i < directive.count ? directive.values[i] : std::uint32_t{1};
    };
    const emulator::Dim3 all{part(0), part(1), part(2)};
    if (directive.kind == ptx::DirectiveKind::reqntid) kernel.required_block = all;
    if (directive.kind == ptx::DirectiveKind::reqnctapercluster) kernel.required_cluster = all;
  }
  return kernel;
}

}  // namespace

std::vector<Kernel> kernels_of(const ptx::Module& module) {
  std::vector<Kernel> kernels;
  for (const ptx::Function& function : module.functions) {
    if (function.entry && !function.declaration) kernels.push_back(kernel_of(module, function));
  }
  return kernels;
}

}  // namespace ptxgen::cli
