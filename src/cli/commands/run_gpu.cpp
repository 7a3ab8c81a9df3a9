// src/cli/commands/run_gpu.cpp - ptxgen run on a GPU
#include "cli/commands/run_gpu.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cli/args/module_kernels.hpp"
#include "cli/commands/commands.hpp"
#include "cli/output/captured_output.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/device/stream.hpp"

namespace ptxgen::cli {

namespace {

using Kernel = emulator::Program::Kernel;

// The arguments on the device: memory for those that are buffers, and the parameter block.
class GpuArguments {
 public:
  GpuArguments(const Context& context, const Kernel& kernel,
               std::span<const emulator::ArgumentSpec> specs)
      : specs_(specs), block_(kernel.parameter_bytes) {
    emulator::check_arguments(kernel, specs);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      std::byte* const place = block_.data() + kernel.parameters[i].offset;
      if (!specs[i].is_buffer()) {
        std::ranges::copy(specs[i].value, place);
        continue;
      }
      emulator::BufferContent content = emulator::buffer_content(
          specs[i], i + 1, kernel.parameters[i].name, context.memory().total);
      Buffer<u8> memory = memory_for(context, specs[i], content);
      content.data.clear();
      buffers_.push_back({i, parameter_name(kernel, i), std::move(content), std::move(memory)});
      const std::uint64_t address = buffers_.back().memory.address().value;
      for (unsigned b = 0; b < 8; ++b) place[b] = static_cast<std::byte>(address >> (8 * b));
    }
  }

  [[nodiscard]] std::span<const std::byte> block() const noexcept { return block_; }

  [[nodiscard]] bool has_outputs() const noexcept {
    return std::ranges::any_of(
        buffers_, [&](const Argument& buffer) { return !specs_[buffer.index].output.empty(); });
  }

  void write_outputs(std::unique_ptr<Error>& write_error) const {
    for (const Argument& buffer : buffers_) {
      const std::string& file = specs_[buffer.index].output;
      if (file.empty()) continue;
      const std::string& header = buffer.content.output_header;
      std::string bytes(header.size() + static_cast<std::size_t>(buffer.memory.size()), '\0');
      std::ranges::copy(header, bytes.begin());
      buffer.memory.read({reinterpret_cast<std::uint8_t*>(bytes.data()) + header.size(),
                          bytes.size() - header.size()});
      try {
        write_output(file, bytes);
      } catch (const Error& error) {
        if (write_error == nullptr) write_error = std::make_unique<Error>(error);
      }
    }
  }

  [[nodiscard]] std::vector<PrintedBuffer> printed() const {
    std::vector<PrintedBuffer> all;
    for (const Argument& buffer : buffers_) {
      if (!specs_[buffer.index].print) continue;
      std::vector<std::uint8_t> content(static_cast<std::size_t>(buffer.memory.size()));
      buffer.memory.read(content);
      all.push_back(print_buffer(buffer.index + 1, buffer.parameter, buffer.content.type,
                                 buffer.content.shape,
                                 [&](std::uint64_t offset, std::span<std::byte> bytes) {
                                   std::memcpy(bytes.data(), content.data() + offset, bytes.size());
                                 }));
    }
    return all;
  }

 private:
  struct Argument {
    std::size_t index = 0;
    std::string parameter;
    emulator::BufferContent content;  // without its bytes
    Buffer<u8> memory;
  };

  static Buffer<u8> memory_for(const Context& context, const emulator::ArgumentSpec& spec,
                               const emulator::BufferContent& content) {
    if (content.data.empty()) {
      Buffer<u8> memory(context, content.bytes);
      if (spec.kind == emulator::ArgumentKind::Zero) memory.fill_bytes(0);
      return memory;
    }
    return Buffer<u8>(context, std::span(reinterpret_cast<const std::uint8_t*>(content.data.data()),
                                         content.data.size()));
  }

  std::span<const emulator::ArgumentSpec> specs_;
  std::vector<std::byte> block_;
  std::vector<Argument> buffers_;
};

Dim3 runtime_size(const emulator::Dim3& size) { return {size.x, size.y, size.z}; }

}  // namespace

GpuOutcome run_on_gpu(const Device& device, const RunOptions& options, std::string_view text,
                      const ptx::Module& module, std::span<const emulator::ArgumentSpec> specs,
                      bool keep_printf, std::unique_ptr<Error>& write_error) {
  const std::vector<Kernel> kernels = kernels_of(module);
  const Kernel& kernel = chosen_kernel(kernels, options);
  const emulator::Launch launch = launch_of(options, kernel);
  const Context context(device);
  const ptxgen::Stream stream(context);
  ModuleOptions loading;
  loading.gates = !options.no_gates;
  const Function function =
      Module::load(context, text, loading, input_name(options.file)).function(kernel.name);
  const GpuArguments arguments(context, kernel, specs);
  const LaunchGeometry geometry{runtime_size(launch.grid), runtime_size(launch.block),
                                launch.dynamic_shared_bytes};
  LaunchOptions how;
  how.cluster = runtime_size(launch.cluster);
  how.cooperative = options.cooperative;

  GpuOutcome outcome;
  outcome.kernel = kernel.name;
  outcome.resources = function.resources();
  CapturedOutput printed(keep_printf);
  const auto begin = std::chrono::steady_clock::now();
  try {
    function.launch(stream, geometry, arguments.block(), how);
    context.synchronize();
  } catch (const Error& error) {
    if (error.code != "device-fault") throw;
    outcome.fault = error.what();
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  outcome.printed = printed.text();
  if (outcome.fault.empty()) {
    arguments.write_outputs(write_error);
    outcome.buffers = arguments.printed();
  } else {
    outcome.outputs_lost = arguments.has_outputs();
  }
  return outcome;
}

}  // namespace ptxgen::cli
