// src/capi/program.cpp - the library's kernels, PTX, machine code
#include <algorithm>
#include <utility>

#include "capi/objects.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/runtime/module/compile.hpp"
#include "runtime/module/gates.hpp"
#include "support/format.hpp"

using namespace ptxgen;
using namespace ptxgen::capi;

namespace ptxgen::inline v0::capi {

KernelValues kernel_values(std::string_view kernel, std::span<const ptxgen_parameter> parameters) {
  KernelValues chosen;
  chosen.kernel = &kernel_named(kernel);
  for (const ParameterInfo& info : chosen.kernel->parameters) {
    chosen.values.push_back(info.default_value);
  }
  for (const ptxgen_parameter& parameter : parameters) {
    const std::string_view name = need_text(parameter.name, "parameters.name");
    chosen.values[parameter_index(*chosen.kernel, name)] = parameter.value;
  }
  return chosen;
}

const ptx::Function& entry_of(const ptx::Module& module, std::string_view name) {
  const ptx::Function* only = nullptr;
  std::string names;
  for (const ptx::Function& function : module.functions) {
    if (!function.entry || function.declaration) continue;
    const std::string_view its = module.text(function.name);
    if (its == name) return function;
    names += (names.empty() ? "" : ", ") + std::string(its);
    // An empty name is ambiguous if there are several.
    only = names == its ? &function : nullptr;
  }
  if (name.empty() && only != nullptr) return *only;
  throw Error(Stage::Load, "not-found",
              name.empty()
                  ? (names.empty() ? std::string("the program has no kernel")
                                   : "the program has several kernels; name one of " + names)
                  : format_text("there is no kernel '{}'; {}", name,
                                names.empty() ? std::string("the program has none")
                                              : "there are: " + names));
}

}  // namespace ptxgen::inline v0::capi

ptxgen_program::ptxgen_program(ptx::Module parsed)
    : Handle(kKind), module(std::move(parsed)), text(ptx::print(module)) {
  for (const ptx::Function& function : module.functions) {
    if (function.entry && !function.declaration) entries.emplace_back(module.text(function.name));
  }
}

ptxgen_image::ptxgen_image(Assembly result)
    : Handle(kKind),
      assembly(std::move(result)),
      tool(format_text("{} {}", ptxgen::to_string(assembly.tool), assembly.tool_version)) {}

namespace {

/// The named target, else the device's.
const ptx::Target& target_for(const ptxgen_device* device, const char* target) {
  if (target != nullptr) return ptx::target(target);
  if (device == nullptr) throw UsageError{"null", "device and target are NULL; give one of them"};
  return need(device, "device").runtime->device.target();
}

const KernelDescription& catalog_entry(std::size_t kernel) {
  if (kernel >= catalog().size()) {
    throw UsageError{"out-of-range",
                     format_text("kernel is {}; there are {}", kernel, catalog().size())};
  }
  return catalog()[kernel];
}

}  // namespace

namespace ptxgen::inline v0::capi {

ptxgen_image* assemble(const ptxgen_program& program, ptxgen_device* device, const char* target,
                       AssembleOptions options) {
  options.target = target_for(device, target).name;
  options.file = program.module.file;
  const Assembler assembler(device == nullptr ? Settings::from_environment()
                                              : need(device, "device").runtime->settings);
  return new ptxgen_image(assembler.assemble(program.text, options));
}

}  // namespace ptxgen::inline v0::capi

extern "C" {

size_t ptxgen_kernel_count(void) noexcept { return catalog().size(); }

ptxgen_status ptxgen_kernel_get_info(size_t kernel, ptxgen_kernel_info* info) noexcept {
  return guarded(nullptr, [&] {
    const KernelDescription& entry = catalog_entry(kernel);
    // The catalog's texts are literals, hence terminated.
    write_struct(
        info,
        ptxgen_kernel_info{0, entry.name.data(), entry.doc.data(), entry.access_pattern.data(),
                           entry.parameters.size(), entry.arguments.size()},
        "info");
  });
}

ptxgen_status ptxgen_kernel_get_parameter(size_t kernel, size_t parameter,
                                          ptxgen_parameter_info* info) noexcept {
  return guarded(nullptr, [&] {
    const KernelDescription& entry = catalog_entry(kernel);
    if (parameter >= entry.parameters.size()) {
      throw UsageError{"out-of-range", format_text("parameter is {}; {} has {}", parameter,
                                                   entry.name, entry.parameters.size())};
    }
    const ParameterInfo& from = entry.parameters[parameter];
    write_struct(
        info,
        ptxgen_parameter_info{0, from.name.data(), from.type.data(), from.doc.data(),
                              from.default_value, from.min, from.max, from.specializes ? 1 : 0},
        "info");
  });
}

const char* ptxgen_kernel_value_name(size_t kernel, size_t parameter, uint64_t value) noexcept {
  if (kernel >= catalog().size() || parameter >= catalog()[kernel].parameters.size()) {
    return nullptr;
  }
  const ParameterInfo& info = catalog()[kernel].parameters[parameter];
  return value < info.words.size() ? info.words[static_cast<std::size_t>(value)].data() : nullptr;
}

ptxgen_status ptxgen_kernel_get_operand(size_t kernel, size_t operand,
                                        ptxgen_operand_info* info) noexcept {
  return guarded(nullptr, [&] {
    const KernelDescription& entry = catalog_entry(kernel);
    if (operand >= entry.arguments.size()) {
      throw UsageError{"out-of-range", format_text("operand is {}; {} has {}", operand, entry.name,
                                                   entry.arguments.size())};
    }
    const ArgumentInfo& from = entry.arguments[operand];
    write_struct(info,
                 ptxgen_operand_info{0, from.name.data(), to_string(from.role).data(),
                                     from.doc.data(), from.optional ? 1 : 0},
                 "info");
  });
}

ptxgen_status ptxgen_program_build(ptxgen_device* device, const char* target, const char* kernel,
                                   const ptxgen_parameter* parameters, size_t parameter_count,
                                   ptxgen_program** program) noexcept {
  return guarded(device, [&] {
    ptxgen_program*& result = need_result(program, "program");
    const ptx::Target& for_target = target_for(device, target);
    const KernelValues chosen = kernel_values(
        need_text(kernel, "kernel"), need_array(parameters, parameter_count, "parameters"));
    auto built = std::make_unique<ptxgen_program>(chosen.kernel->build(chosen.values, for_target));
    built->geometry = chosen.kernel->geometry(chosen.values, for_target);
    result = built.release();
  });
}

ptxgen_status ptxgen_program_parse(const char* ptx, size_t bytes, const char* file,
                                   ptxgen_program** program) noexcept {
  return guarded(nullptr, [&] {
    ptxgen_program*& result = need_result(program, "program");
    if (ptx == nullptr) throw_null("ptx");
    const std::string_view text(ptx, bytes);
    ptx::Module module = ptx::parse(text, file == nullptr ? "<ptx>" : file);
    refuse_illegal({module, {}, text});
    result = new ptxgen_program(std::move(module));
  });
}

ptxgen_status ptxgen_program_compile_cuda(ptxgen_device* device, const char* source, size_t bytes,
                                          const char* file, const char* const* options,
                                          size_t option_count, ptxgen_program** program) noexcept {
  return guarded(device, [&] {
    ptxgen_program*& result = need_result(program, "program");
    const Runtime& runtime = *need(device, "device").runtime;
    if (source == nullptr) throw_null("source");
    CudaOptions how;
    how.target = runtime.device.info().target;
    how.settings = runtime.settings;
    how.gates = runtime.options.gates;
    if (file != nullptr) how.name = file;
    for (const char* option : need_array(options, option_count, "options")) {
      how.nvrtc.emplace_back(need_text(option, "options"));
    }
    CudaProgram compiled = compile_cuda(std::string_view(source, bytes), how);
    auto built = std::make_unique<ptxgen_program>(std::move(compiled.module));
    built->log = std::move(compiled.log);
    result = built.release();
  });
}

void ptxgen_program_free(ptxgen_program* program) noexcept { delete program; }

const char* ptxgen_program_ptx(const ptxgen_program* program, size_t* bytes) noexcept {
  const bool known = program != nullptr && program->is(Kind::Program);
  if (bytes != nullptr) *bytes = known ? program->text.size() : 0;
  return known ? program->text.c_str() : "";
}

const char* ptxgen_program_log(const ptxgen_program* program) noexcept {
  return program == nullptr || !program->is(Kind::Program) ? "" : program->log.c_str();
}

size_t ptxgen_program_entry_count(const ptxgen_program* program) noexcept {
  return program == nullptr || !program->is(Kind::Program) ? 0 : program->entries.size();
}

const char* ptxgen_program_entry(const ptxgen_program* program, size_t index) noexcept {
  return index < ptxgen_program_entry_count(program) ? program->entries[index].c_str() : nullptr;
}

ptxgen_status ptxgen_program_geometry(const ptxgen_program* program,
                                      ptxgen_geometry* geometry) noexcept {
  return guarded(program, [&] {
    const ptxgen_program& of = need(program, "program");
    if (!of.geometry) {
      throw UsageError{"no-geometry",
                       "only programs of ptxgen_program_build have a known geometry"};
    }
    write_struct(geometry, to_c(*of.geometry), "geometry");
  });
}

ptxgen_status ptxgen_program_assemble(const ptxgen_program* program, ptxgen_device* device,
                                      const char* target, ptxgen_image** image) noexcept {
  return guarded(program, [&] {
    ptxgen_image*& result = need_result(image, "image");
    const ptxgen_program& of = need(program, "program");
    result = assemble(of, device, target, {});
  });
}

ptxgen_status ptxgen_image_get_info(const ptxgen_image* image, ptxgen_image_info* info) noexcept {
  return guarded(image, [&] {
    const ptxgen_image& of = need(image, "image");
    ptxgen_image_info out{};
    out.data = of.assembly.cubin.data();
    out.bytes = of.assembly.cubin.size();
    out.registers = of.assembly.registers;
    out.spill_stores = of.assembly.spill_stores;
    out.spill_loads = of.assembly.spill_loads;
    out.shared = of.assembly.shared;
    out.tool = of.tool.c_str();
    out.log = of.assembly.log.c_str();
    write_struct(info, out, "info");
  });
}

void ptxgen_image_free(ptxgen_image* image) noexcept { delete image; }

}  // extern "C"
