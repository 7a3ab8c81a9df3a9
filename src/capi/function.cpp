// src/capi/function.cpp - modules, functions, launches of any kernel
#include <cstddef>
#include <utility>

#include "capi/objects.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

using namespace ptxgen;
using namespace ptxgen::capi;

namespace ptxgen::inline v0::capi {

namespace {

[[noreturn]] void refuse(std::string_view kernel, std::string message) {
  Error error(Stage::Launch, "arguments", std::move(message));
  error.kernel = kernel;
  throw std::move(error.refresh());
}

LaunchValue::Kind kind_of(ptxgen_type type) noexcept {
  switch (type) {
    case PTXGEN_INTEGER:
      return LaunchValue::Kind::Integer;
    case PTXGEN_FLOAT:
      return LaunchValue::Kind::Float;
    case PTXGEN_POINTER:
      return LaunchValue::Kind::Pointer;
    default:
      return LaunchValue::Kind::Bytes;
  }
}

}  // namespace

std::vector<std::byte> pack(std::string_view kernel, const Signature& signature,
                            std::span<const ptxgen_argument> arguments) {
  std::vector<LaunchValue> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ptxgen_argument& argument = arguments[i];
    const auto which = [&] {
      const bool named = i < signature.parameters.size();
      return format_text("argument {}{}", i + 1,
                         named ? format_text(" (parameter {})", signature.parameters[i].name) : "");
    };
    if (argument.value == nullptr) throw UsageError{"null", which() + " has no value"};
    if (argument.type < PTXGEN_ANY || argument.type > PTXGEN_POINTER) {
      throw UsageError{
          "out-of-range",
          format_text(
              "{} has the type {}; valid types are PTXGEN_ANY, _INTEGER, _FLOAT and _POINTER",
              which(), argument.type)};
    }
    values.emplace_back(kind_of(argument.type), argument.value, argument.bytes);
  }
  return pack_arguments(kernel, signature, values);
}

ptxgen_geometry to_c(const LaunchGeometry& geometry) noexcept {
  ptxgen_geometry out{};
  out.struct_bytes = sizeof out;
  const auto write = [](std::uint32_t(&to)[3], const Dim3& from) {
    to[0] = from.x;
    to[1] = from.y;
    to[2] = from.z;
  };
  write(out.grid, geometry.grid);
  write(out.block, geometry.block);
  write(out.cluster, Dim3{});
  out.dynamic_shared_bytes = geometry.dynamic_shared_bytes;
  return out;
}

}  // namespace ptxgen::inline v0::capi

namespace {

struct Launch {
  LaunchGeometry geometry;
  LaunchOptions options;
};

Launch read_geometry(const ptxgen_geometry* from) {
  const ptxgen_geometry input = read_struct(&need_place(from, "geometry"), "geometry");
  const auto size = [](const std::uint32_t(&numbers)[3]) {
    const auto one = [](std::uint32_t number) { return number == 0 ? 1 : number; };
    return Dim3{one(numbers[0]), one(numbers[1]), one(numbers[2])};
  };
  Launch launch;
  launch.geometry = {size(input.grid), size(input.block), input.dynamic_shared_bytes};
  launch.options.cluster = size(input.cluster);
  launch.options.cooperative = input.cooperative != 0;
  launch.options.programmatic = input.programmatic != 0;
  return launch;
}

}  // namespace

extern "C" {

ptxgen_status ptxgen_module_load(ptxgen_device* device, const ptxgen_program* program,
                                 ptxgen_module** module) noexcept {
  return guarded(device, [&] {
    ptxgen_module*& result = need_result(module, "module");
    const SharedRuntime& runtime = need(device, "device").runtime;
    const ptxgen_program& of = need(program, "program");
    auto built = std::make_unique<ptxgen_module>(
        runtime, Module::load(runtime->context, of.module, runtime->options.module));
    built->source = of.module;
    result = built.release();
  });
}

ptxgen_status ptxgen_module_load_image(ptxgen_device* device, const void* image, size_t bytes,
                                       ptxgen_module** module) noexcept {
  return guarded(device, [&] {
    ptxgen_module*& result = need_result(module, "module");
    const SharedRuntime& runtime = need(device, "device").runtime;
    if (image == nullptr) throw_null("image");
    result = new ptxgen_module(
        runtime,
        Module::load_image(runtime->context, {static_cast<const std::byte*>(image), bytes}));
  });
}

void ptxgen_module_free(ptxgen_module* module) noexcept { delete module; }

ptxgen_status ptxgen_module_function(const ptxgen_module* module, const char* name,
                                     ptxgen_function** function) noexcept {
  return guarded(module, [&] {
    ptxgen_function*& result = need_result(function, "function");
    const ptxgen_module& of = need(module, "module");
    const std::string_view wanted = need_text(name, "name");
    auto built = std::make_unique<ptxgen_function>(of.runtime, of.module.function(wanted));
    if (of.source) built->signature = signature_of(*of.source, entry_of(*of.source, wanted));
    result = built.release();
  });
}

ptxgen_status ptxgen_module_variable(const ptxgen_module* module, const char* name,
                                     ptxgen_span* variable) noexcept {
  return guarded(module, [&] {
    const ptxgen_module& of = need(module, "module");
    const std::string_view wanted = need_text(name, "name");
    ptxgen_span& result = need_place(variable, "variable");
    const Module::Variable found = of.module.variable(wanted);
    result = {found.address, found.bytes};
  });
}

const char* ptxgen_module_log(const ptxgen_module* module) noexcept {
  return module == nullptr || !module->is(Kind::Module) ? "" : module->log.c_str();
}

ptxgen_status ptxgen_function_load(ptxgen_device* device, const ptxgen_program* program,
                                   const char* entry, ptxgen_function** function) noexcept {
  return guarded(device, [&] {
    ptxgen_function*& result = need_result(function, "function");
    const SharedRuntime& runtime = need(device, "device").runtime;
    const ptx::Module& source = need(program, "program").module;
    const ptx::Function& kernel = entry_of(source, entry == nullptr ? "" : entry);
    auto built = std::make_unique<ptxgen_function>(
        runtime, runtime->launcher.load(source, source.text(kernel.name)));
    built->signature = signature_of(source, kernel);
    result = built.release();
  });
}

void ptxgen_function_free(ptxgen_function* function) noexcept { delete function; }

ptxgen_status ptxgen_function_get_info(const ptxgen_function* function,
                                       ptxgen_function_info* info) noexcept {
  return guarded(function, [&] {
    const ptxgen_function& of = need(function, "function");
    const FunctionResources& resources = of.function.resources();
    ptxgen_function_info out{};
    out.name = of.name.c_str();
    out.registers = resources.registers;
    out.local = resources.local;
    out.static_shared = resources.static_shared;
    out.constant = resources.constant;
    out.max_threads = resources.max_threads;
    out.ptx_version = resources.ptx_version;
    out.binary_version = resources.binary_version;
    if (of.signature) {
      out.signature_known = 1;
      out.argument_count = static_cast<std::uint32_t>(of.signature->parameters.size());
      out.argument_bytes = of.signature->size();
    }
    write_struct(info, out, "info");
  });
}

ptxgen_status ptxgen_function_get_argument(const ptxgen_function* function, size_t index,
                                           ptxgen_argument_info* info) noexcept {
  return guarded(function, [&] {
    const ptxgen_function& of = need(function, "function");
    const std::size_t count = of.signature ? of.signature->parameters.size() : 0;
    if (index >= count) {
      throw UsageError{"out-of-range", format_text("argument is {}; {} has {} that are known",
                                                   index, of.name, count)};
    }
    const Parameter& from = of.signature->parameters[index];
    ptxgen_argument_info out{};
    out.name = from.name.c_str();
    // Names of types are literals, hence terminated.
    out.type = from.type == ptx::Type::none ? "" : ptx::name(from.type).data();
    out.bytes = from.size;
    out.offset = from.offset;
    out.pointer = from.pointer ? 1 : 0;
    write_struct(info, out, "info");
  });
}

ptxgen_status ptxgen_function_occupancy(const ptxgen_function* function, uint32_t threads,
                                        uint32_t dynamic_shared_bytes, uint32_t* blocks) noexcept {
  return guarded(function, [&] {
    const ptxgen_function& of = need(function, "function");
    need_place(blocks, "blocks") =
        of.function.blocks_per_multiprocessor(threads, dynamic_shared_bytes);
  });
}

ptxgen_status ptxgen_function_launch(const ptxgen_function* function,
                                     const ptxgen_geometry* geometry,
                                     const ptxgen_argument* arguments, size_t count,
                                     const ptxgen_stream* stream) noexcept {
  return guarded(function, [&] {
    const ptxgen_function& of = need(function, "function");
    const Launch launch = read_geometry(geometry);
    const auto input = need_array(arguments, count, "arguments");
    const Stream& on = need(stream, "stream").stream();
    if (!of.signature) {
      throw UsageError{"no-signature", of.name +
                                           " was loaded from an image, whose parameters are "
                                           "unknown; use ptxgen_function_launch_packed"};
    }
    const std::vector<std::byte> block = pack(of.name, *of.signature, input);
    of.function.launch(on, launch.geometry, block, launch.options);
  });
}

ptxgen_status ptxgen_function_launch_packed(const ptxgen_function* function,
                                            const ptxgen_geometry* geometry, const void* block,
                                            size_t bytes, const ptxgen_stream* stream) noexcept {
  return guarded(function, [&] {
    const ptxgen_function& of = need(function, "function");
    const Launch launch = read_geometry(geometry);
    const auto input = need_array(static_cast<const std::byte*>(block), bytes, "block");
    const Stream& on = need(stream, "stream").stream();
    if (of.signature && bytes != of.signature->size()) {
      refuse(of.name,
             format_text("the block has {}, the {} of {} take {}", count_text(bytes, "byte"),
                         count_text(of.signature->parameters.size(), "parameter"), of.name,
                         of.signature->size()));
    }
    of.function.launch(on, launch.geometry, input, launch.options);
  });
}

}  // extern "C"
