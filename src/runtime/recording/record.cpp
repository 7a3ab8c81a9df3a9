// src/runtime/recording/record.cpp - recordings of a described kernel and of any PTX
#include <algorithm>
#include <cstring>

#include "ptxgen/runtime/launch/launcher.hpp"
#include "ptxgen/runtime/recording/recording.hpp"
#include "ptxgen/version.hpp"
#include "runtime/launch/random_operands.hpp"
#include "runtime/recording/frames.hpp"
#include "runtime/recording/launch_tap.hpp"
#include "runtime/recording/outputs.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

Error not_recorded(std::string_view kernel, std::string_view why) {
  Error error(Stage::Launch, "not-recorded", format_text("record: {}", why));
  error.kernel = std::string(kernel);
  error.refresh();
  return error;
}

Recording begin_recording(const DeviceInfo& info, const RecordOptions& options) {
  Recording recording;
  recording.made_by = format_text("ptxgen {}, {}", kVersion, info.name);
  const ptx::Gpu gpu = gpu_of(info);
  if (ptx::find_gpu(gpu.name) != nullptr) recording.gpu = std::string(gpu.name);
  recording.seed = options.seed;
  recording.frames = options.frames;
  return recording;
}

// Runs the frames until one fails.
void run_frames(const Context& context, Recording& recording, const RecordOptions& options) {
  Frames frames(context, recording);
  const bool keeps = output_bytes(recording) * recording.frames <= options.keep_bytes;
  for (std::uint64_t frame = 0; frame < recording.frames; ++frame) {
    recording.failure = frames.run(frame, std::nullopt);
    if (!recording.failure.empty()) break;
    const std::vector<std::byte> outputs = frames.outputs();
    recording.frame_hashes.push_back(hash_text(outputs));
    if (keeps) recording.outputs.insert(recording.outputs.end(), outputs.begin(), outputs.end());
  }
  recording.hash = hash_of(recording.frame_hashes);
}

// A described kernel.

// The operands of a call: device memory for those that have it, numbers for the others.
struct CapturedCall {
  KernelCall call;
  std::vector<Buffer<u8>> memory;  // of `Recording::buffers`, in their order
};

RecordedBuffer buffer_of(const KernelDescription& kernel, const void* spec, std::size_t i,
                         const RecordOptions& options) {
  const ArgumentInfo& argument = kernel.arguments[i];
  const std::uint64_t count = kernel.elements_of(spec, i);
  RecordedBuffer buffer;
  buffer.name = std::string(argument.name);
  buffer.output = is_written(argument.role);
  RecordedContent& content = buffer.content;
  content.type = kernel.type_of(spec, i);
  content.low = argument.low;
  content.high = argument.high;
  content.seed = options.seed * 977 + i;
  content.each_frame = count <= options.vary_elements;
  buffer.bytes = bytes(content.type, count);
  const RepackedRows rows = kernel.repacked_of(spec, i);
  if (!kernel.is_read_of(spec, i)) {
    content = {};
    content.fill = 0xff;  // NaN in every float type
  } else if (rows.columns != 0) {
    content.bytes = random_elements(rows, count, argument, content.seed);
    content.kind = RecordedContent::Kind::Bytes;
    content.each_frame = false;
  } else {
    content.kind = RecordedContent::Kind::Elements;
  }
  return buffer;
}

CapturedCall make_captured_call(const Context& context, const KernelDescription& kernel,
                                std::span<const std::uint64_t> values, Recording& recording,
                                const RecordOptions& options) {
  const ErasedValue spec = kernel.make_spec(values);
  CapturedCall captured;
  captured.call.kernel = &kernel;
  captured.call.values.assign(values.begin(), values.end());
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const ArgumentInfo& argument = kernel.arguments[i];
    if (!kernel.is_present_of(spec.get(), i)) continue;
    if (is_memory(argument.role)) {
      const RecordedBuffer& buffer =
          recording.buffers.emplace_back(buffer_of(kernel, spec.get(), i, options));
      const Buffer<u8>& memory = captured.memory.emplace_back(context, buffer.bytes);
      captured.call.operands.push_back({argument.name, memory, 0});
    } else if (argument.role == ArgumentRole::Scalar) {
      captured.call.operands.push_back(
          {argument.name, {}, random_scalar(argument, options.seed * 977 + i)});
    }
  }
  return captured;
}

// The index of the recording's buffer that an address is in, and the byte; of the launcher's
// workspace, which begins as zeros, when it is first seen. An integer argument that happens to be
// an address of the same process would be taken for one: replayed, it would be another integer.
std::optional<RecordedPointer> pointer_to(std::uint64_t address, const LaunchTap& tap,
                                          std::vector<std::uint64_t>& bases, Recording& recording) {
  const auto allocation = tap.allocation_of(address);
  if (!allocation) return std::nullopt;
  const auto found = std::find(bases.begin(), bases.end(), allocation->address);
  const auto index = static_cast<std::size_t>(found - bases.begin());
  if (found == bases.end()) {
    bases.push_back(allocation->address);
    RecordedBuffer workspace;
    workspace.name = "workspace";
    workspace.bytes = allocation->bytes;
    recording.buffers.push_back(std::move(workspace));
  }
  return RecordedPointer{0, index, address - allocation->address};
}

RecordedLaunch launch_in(const TappedLaunch& tapped, const LaunchTap& tap,
                         std::vector<std::uint64_t>& bases, Recording& recording) {
  if (tapped.ptx.empty()) {
    throw not_recorded(tapped.kernel,
                       "the module was loaded from machine code, which runs on one "
                       "GPU only; record with PTXGEN_CACHE=off");
  }
  RecordedLaunch launch;
  const auto known = std::find(recording.modules.begin(), recording.modules.end(), tapped.ptx);
  launch.module = static_cast<std::size_t>(known - recording.modules.begin());
  if (known == recording.modules.end()) recording.modules.push_back(tapped.ptx);
  launch.kernel = tapped.kernel;
  launch.geometry = tapped.geometry;
  launch.block = tapped.block;
  for (std::uint32_t at = 0; at + 8 <= launch.block.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, launch.block.data() + at, sizeof(word));
    std::optional<RecordedPointer> pointer = pointer_to(word, tap, bases, recording);
    if (!pointer) continue;
    pointer->at = at;
    launch.pointers.push_back(*pointer);
    std::memset(launch.block.data() + at, 0, sizeof(word));
  }
  return launch;
}

// What the launcher would launch, taken from the driver's table instead of launched.
void capture(const LaunchTap& tap, const Device& opened, const KernelDescription& kernel,
             std::span<const std::uint64_t> values, Recording& recording,
             const RecordOptions& options, const Settings& settings) {
  const DeviceInfo& info = opened.info();
  const Device device = Device::open(tap.table(), info.ordinal, info.kind, settings);
  const Context context(device);
  LauncherOptions how;
  how.settings = settings;
  how.cache.mode = CacheMode::Off;
  const Launcher launcher(context, how);
  const CapturedCall captured = make_captured_call(context, kernel, values, recording, options);
  const ChosenKernel chosen = launcher.choose(captured.call);
  if (chosen.kernel == nullptr) {
    throw not_recorded(kernel.name, format_text("'{}' is a routine of another library or of the "
                                                "host, which has no PTX",
                                                chosen.implementation));
  }
  if (!chosen.kernel->tensor_maps.empty()) {
    throw not_recorded(chosen.kernel->name,
                       "its arguments have tensor maps, which hold addresses of this device in a "
                       "form of the driver's own");
  }
  // Its workspace lives as long as the stream.
  const Stream stream(context);
  (void)launcher.launch(captured.call, stream);
  std::vector<std::uint64_t> bases;
  for (const Buffer<u8>& memory : captured.memory) bases.push_back(memory.address().value);
  for (const TappedLaunch& launch : tap.launches()) {
    recording.launches.push_back(launch_in(launch, tap, bases, recording));
  }
}

// Any PTX.

emulator::Program::Kernel as_program_kernel(const Function& function) {
  emulator::Program::Kernel kernel;
  kernel.name = std::string(function.name());
  for (const Parameter& parameter : function.signature()->parameters) {
    kernel.parameters.push_back({parameter.name, parameter.type, parameter.offset, parameter.size});
  }
  kernel.parameter_bytes = function.signature()->size();
  return kernel;
}

std::uint64_t elements_in(std::span<const std::uint64_t> shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) count *= extent;
  return count;
}

RecordedBuffer buffer_of(const emulator::ArgumentSpec& spec, std::size_t number,
                         const std::string& name, std::uint64_t largest,
                         const RecordOptions& options) {
  using emulator::ArgumentKind;
  RecordedBuffer buffer;
  buffer.name = name;
  buffer.output = !spec.is_readonly();
  RecordedContent& content = buffer.content;
  const emulator::BufferContent initial = emulator::buffer_content(spec, number, name, largest);
  buffer.bytes = initial.bytes;
  if (spec.kind == ArgumentKind::Random || spec.kind == ArgumentKind::Iota ||
      spec.kind == ArgumentKind::Fill) {
    content.kind = RecordedContent::Kind::Spec;
    content.spec = spec.print ? spec.text.substr(spec.text.find(':') + 1) : spec.text;
    if (spec.kind == ArgumentKind::Random && !spec.seeded) {
      content.seed = options.seed * 977 + number - 1;
      content.each_frame = elements_in(initial.shape) <= options.vary_elements;
      if (!content.each_frame) content.spec += format_text(":{}", content.seed);
    }
  } else if (!initial.data.empty()) {
    content.kind = RecordedContent::Kind::Bytes;
    const auto* const begin = reinterpret_cast<const std::byte*>(initial.data.data());
    content.bytes.assign(begin, begin + initial.data.size());
  } else if (spec.kind != ArgumentKind::Zero) {
    content.fill = 0xff;
  }
  return buffer;
}

}  // namespace

Recording record(std::string_view device, const KernelDescription& kernel,
                 std::span<const std::uint64_t> values, const RecordOptions& options,
                 const Settings& settings) {
  const Device opened = Device::open(device, settings);
  if (opened.info().kind == DeviceKind::Host) {
    throw not_recorded(kernel.name, "the host runs functions, not PTX; record on the emulator");
  }
  Recording recording = begin_recording(opened.info(), options);
  {
    const LaunchTap tap(opened.table());
    capture(tap, opened, kernel, values, recording, options, settings);
  }
  run_frames(Context(opened), recording, options);
  return recording;
}

Recording record(const Context& context, const PtxLaunch& launch, const RecordOptions& options) {
  Recording recording = begin_recording(context.device().info(), options);
  recording.modules.emplace_back(launch.ptx);
  const Function function = load_as_it_is(context, launch.ptx, launch.file).function(launch.kernel);
  const emulator::Program::Kernel kernel = as_program_kernel(function);
  emulator::check_arguments(kernel, launch.arguments);
  RecordedLaunch recorded;
  recorded.kernel = kernel.name;
  recorded.geometry = launch.geometry;
  recorded.block.resize(kernel.parameter_bytes);
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const emulator::ArgumentSpec& spec = launch.arguments[i];
    const emulator::Program::Kernel::Parameter& parameter = kernel.parameters[i];
    if (spec.is_buffer()) {
      recorded.pointers.push_back({parameter.offset, recording.buffers.size(), 0});
      recording.buffers.push_back(
          buffer_of(spec, i + 1, parameter.name, context.memory().total, options));
    } else {
      std::ranges::copy(spec.value, recorded.block.begin() + parameter.offset);
    }
  }
  recording.launches.push_back(std::move(recorded));
  run_frames(context, recording, options);
  return recording;
}

}  // namespace ptxgen::inline v0
