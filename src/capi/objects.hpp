// src/capi/objects.hpp - the objects of handles
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capi/handle.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "ptxgen/runtime/device/stream.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "ptxgen/runtime/module/arguments.hpp"
#include "ptxgen/runtime/module/module.hpp"

namespace ptxgen::inline v0::capi {

/// A device with its context, cache and launcher. Handles made from it share it, so they can be
/// freed in any order.
struct Runtime {
  Settings settings;
  LauncherOptions options;
  Device device;
  Context context;
  Launcher launcher;

  Runtime(std::string_view name, const Settings& with, const LauncherOptions& launcher_options)
      : settings(with),
        options(launcher_options),
        device(Device::open(name, settings)),
        context(device),
        launcher(context, options) {}
};
using SharedRuntime = std::shared_ptr<Runtime>;

/// Shared by its handle and by the plans that launch on it.
struct SharedStream {
  SharedRuntime runtime;
  Stream stream;
};

/// The program's options for the driver and the caller's structure.
[[nodiscard]] Settings settings_from(const ptxgen_device_options& options);

/// The row of the catalog's kernel and its parameter values.
struct KernelValues {
  const KernelDescription* kernel = nullptr;
  std::vector<std::uint64_t> values;
};
[[nodiscard]] KernelValues kernel_values(std::string_view kernel,
                                         std::span<const ptxgen_parameter> parameters);

/// The only entry of the module, or the one of that name. Throws `Error` (Stage::Load,
/// "not-found").
[[nodiscard]] const ptx::Function& entry_of(const ptx::Module& module, std::string_view name);

/// The argument block of a launch. Throws `Error` (Stage::Launch, "arguments").
[[nodiscard]] std::vector<std::byte> pack(std::string_view kernel, const Signature& signature,
                                          std::span<const ptxgen_argument> arguments);

/// The image of a program for the named target, else the device's.
[[nodiscard]] ptxgen_image* assemble(const ptxgen_program& program, ptxgen_device* device,
                                     const char* target, AssembleOptions options);

[[nodiscard]] ptxgen_geometry to_c(const LaunchGeometry& geometry) noexcept;

}  // namespace ptxgen::inline v0::capi

struct ptxgen_device : ptxgen::capi::Handle {
  static constexpr auto kKind = ptxgen::capi::Kind::Device;
  ptxgen::capi::SharedRuntime runtime;
  std::string cache_folder;

  explicit ptxgen_device(ptxgen::capi::SharedRuntime shared);
};

struct ptxgen_buffer : ptxgen::capi::Handle {
  static constexpr auto kKind = ptxgen::capi::Kind::Buffer;
  ptxgen::capi::SharedRuntime runtime;
  ptxgen::detail::DeviceMemory memory;

  ptxgen_buffer(ptxgen::capi::SharedRuntime shared, std::uint64_t bytes)
      : Handle(kKind), runtime(std::move(shared)), memory(runtime->context, bytes) {}
};

struct ptxgen_stream : ptxgen::capi::Handle {
  static constexpr auto kKind = ptxgen::capi::Kind::Stream;
  std::shared_ptr<const ptxgen::capi::SharedStream> shared;

  explicit ptxgen_stream(std::shared_ptr<const ptxgen::capi::SharedStream> of)
      : Handle(kKind), shared(std::move(of)) {}
  [[nodiscard]] const ptxgen::Stream& stream() const noexcept { return shared->stream; }
};

struct ptxgen_event : ptxgen::capi::Handle {
  static constexpr auto kKind = ptxgen::capi::Kind::Event;
  ptxgen::capi::SharedRuntime runtime;
  ptxgen::Event event;

  ptxgen_event(ptxgen::capi::SharedRuntime shared, bool timing)
      : Handle(kKind), runtime(std::move(shared)), event(runtime->context, timing) {}
};

struct ptxgen_graph : ptxgen::capi::Handle {
  static constexpr auto kKind = ptxgen::capi::Kind::Graph;
  ptxgen::capi::SharedRuntime runtime;
  ptxgen::Graph graph;

  ptxgen_graph(ptxgen::capi::SharedRuntime shared, ptxgen::Graph captured)
      : Handle(kKind), runtime(std::move(shared)), graph(std::move(captured)) {}
};

struct ptxgen_program : ptxgen::capi::Handle {
  static constexpr auto kKind = ptxgen::capi::Kind::Program;
  ptxgen::ptx::Module module;
  std::string text;
  std::string log;
  std::vector<std::string> entries;
  std::optional<ptxgen::LaunchGeometry> geometry;
  std::vector<ptxgen::optimize::PassReport> passes;  ///< of ptxgen_program_optimize

  explicit ptxgen_program(ptxgen::ptx::Module parsed);
};

struct ptxgen_module : ptxgen::capi::Handle {
  static constexpr auto kKind = ptxgen::capi::Kind::Module;
  ptxgen::capi::SharedRuntime runtime;
  ptxgen::Module module;
  std::string log;
  /// Of what it was loaded from; empty for images.
  std::optional<ptxgen::ptx::Module> source;

  ptxgen_module(ptxgen::capi::SharedRuntime shared, ptxgen::Module loaded)
      : Handle(kKind),
        runtime(std::move(shared)),
        module(std::move(loaded)),
        log(module.info_log()) {}
};

struct ptxgen_function : ptxgen::capi::Handle {
  static constexpr auto kKind = ptxgen::capi::Kind::Function;
  ptxgen::capi::SharedRuntime runtime;
  ptxgen::Function function;
  std::string name;
  std::optional<ptxgen::Signature> signature;

  ptxgen_function(ptxgen::capi::SharedRuntime shared, ptxgen::Function loaded)
      : Handle(kKind),
        runtime(std::move(shared)),
        function(std::move(loaded)),
        name(function.name()) {}
};

struct ptxgen_plan : ptxgen::capi::Handle {
  static constexpr auto kKind = ptxgen::capi::Kind::Plan;
  std::shared_ptr<const ptxgen::capi::SharedStream> stream;  ///< and with it the device
  ptxgen::LaunchPlan plan;

  ptxgen_plan(std::shared_ptr<const ptxgen::capi::SharedStream> on, ptxgen::LaunchPlan frozen)
      : Handle(kKind), stream(std::move(on)), plan(std::move(frozen)) {}
};

struct ptxgen_image : ptxgen::capi::Handle {
  static constexpr auto kKind = ptxgen::capi::Kind::Image;
  ptxgen::Assembly assembly;
  std::string tool;

  explicit ptxgen_image(ptxgen::Assembly result);
};

struct ptxgen_findings : ptxgen::capi::Handle {
  static constexpr auto kKind = ptxgen::capi::Kind::Findings;
  const std::vector<ptxgen::LaunchFinding> list;

  explicit ptxgen_findings(std::vector<ptxgen::LaunchFinding> found)
      : Handle(kKind), list(std::move(found)) {}
};
