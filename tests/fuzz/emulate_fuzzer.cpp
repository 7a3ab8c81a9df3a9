// tests/fuzz/emulate_fuzzer.cpp - load and run whatever loads
//
// The text must be refused with an Error, or run to an end within its budget, whatever addresses,
// counts and sizes it makes up. Bytes after the last brace are not PTX: they choose the launch.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/emulator/report/profile.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/support/error.hpp"

namespace {

namespace emulator = ptxgen::emulator;
namespace ptx = ptxgen::ptx;

constexpr std::uint64_t kBufferBytes = 4096;
constexpr std::size_t kMaxParameters = 16;
constexpr std::uint64_t kMaxInstructions = 8'000;
constexpr std::size_t kMaxKernels = 3;

void require(bool holds, std::string_view what, std::string_view detail) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %.*s\n%.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

/// The bytes that choose a launch; zeros when there are no more.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}
  std::uint8_t next() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }

 private:
  std::string_view bytes_;
};

/// A GPU of the module's target with little memory, so that what is allocated stays bounded.
ptx::Gpu gpu_for(const ptx::Module& module) {
  ptx::Gpu gpu = emulator::default_gpu(module.target);
  gpu.memory_bytes = std::min<std::uint64_t>(gpu.memory_bytes, 64u << 20);
  return gpu;
}

struct Setting {
  emulator::Dim3 grid{2, 1, 1};
  emulator::Dim3 block{64, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  emulator::Options options;
};

Setting setting_from(Choices& choices) {
  constexpr emulator::Dim3 kGrids[] = {{2, 1, 1}, {1, 1, 1}, {2, 2, 2}, {5, 1, 1}, {300, 3, 1}};
  constexpr emulator::Dim3 kBlocks[] = {{64, 1, 1}, {32, 1, 1}, {1, 1, 1},
                                        {33, 1, 1}, {8, 4, 2},  {7, 3, 2}};
  Setting result;
  result.grid = kGrids[choices.next() % std::size(kGrids)];
  result.block = kBlocks[choices.next() % std::size(kBlocks)];
  result.dynamic_shared_bytes = 64u * choices.next();
  const std::uint8_t flags = choices.next();
  result.options.seed = flags & 3u;
  result.options.threads = 1 + (flags >> 2 & 1u);
  result.options.parallel = (flags >> 3 & 1u) != 0;
  result.options.counters = (flags >> 4 & 1u) == 0;
  result.options.checks = (flags >> 5 & 1u) == 0   ? emulator::RuleSet::all()
                          : (flags >> 6 & 1u) == 0 ? emulator::RuleSet::defaults()
                                                   : emulator::RuleSet::none();
  // So many for all warps together, on slow builds too.
  result.options.max_instructions =
      std::max<std::uint64_t>(20, kMaxInstructions / result.grid.count());
  result.options.stack_bytes = 4096;
  result.options.printf_bytes = 4096;
  return result;
}

/// Pointers to buffers for what has the size of one, small numbers for the rest.
std::vector<std::byte> parameters_for(const emulator::Program::Kernel& kernel,
                                      emulator::Device& device, Choices& choices) {
  std::vector<std::byte> block(kernel.parameter_bytes);
  const std::size_t count = std::min(kernel.parameters.size(), kMaxParameters);
  for (std::size_t i = 0; i < count; ++i) {
    const emulator::Program::Kernel::Parameter& parameter = kernel.parameters[i];
    const std::uint8_t choice = choices.next();
    std::uint64_t value = choice == 0 ? 48 : choice;
    if (parameter.bytes == 8 && choice < 0x80) {
      value = device.allocate(kBufferBytes, parameter.name);
      if ((choice & 1u) == 0) device.fill(value, std::byte{choice}, kBufferBytes);
      if ((choice & 2u) != 0) device.protect(value);
      value += choice >> 2;
    }
    std::memcpy(block.data() + parameter.offset, &value,
                std::min<std::size_t>(parameter.bytes, sizeof value));
  }
  return block;
}

void launch(emulator::Program& program, const emulator::Program::Kernel& kernel,
            emulator::Device& device, Choices choices) {
  const Setting setting = setting_from(choices);
  emulator::Launch launch;
  launch.kernel = kernel.name;
  launch.grid = setting.grid;
  launch.block = setting.block;
  if (kernel.required_block.x != 0) launch.block = kernel.required_block;
  if (launch.block.count() > 256) return;
  launch.cluster = {1, 1, 1};
  launch.dynamic_shared_bytes = setting.dynamic_shared_bytes;
  std::vector<std::byte> block;
  try {
    block = parameters_for(kernel, device, choices);
  } catch (const ptxgen::Error& error) {
    require(error.code == "out-of-memory", "buffers fit or memory is full", error.what());
    return;
  }
  launch.parameters = block;
  try {
    const emulator::Result result = emulator::run(program, launch, setting.options);
    for (const emulator::RunFinding& finding : result.findings) {
      require(!finding.finding.message.empty() && finding.count > 0, "a finding says something",
              emulator::to_text(finding));
    }
    require(result.printed.size() <= setting.options.printf_bytes, "printf keeps to its buffer",
            result.printed);
    (void)emulator::to_text(result.counters);
  } catch (const ptxgen::Error& error) {
    require(error.stage == ptxgen::Stage::Launch, "only refused launches throw", error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t brace = all.rfind('}');
  const std::size_t end = brace == std::string_view::npos ? size : brace + 1;
  // Texts end with a line feed, which chooses nothing.
  const std::string_view text = all.substr(0, end);
  const std::string_view rest = all.substr(end);
  const Choices choices(rest.starts_with('\n') ? rest.substr(1) : rest);
  try {
    emulator::Device device(gpu_for(ptx::parse(text, "fuzzed")));
    emulator::Program program = emulator::Program::load(device, text, "fuzzed");
    std::size_t runs = 0;
    for (const emulator::Program::Kernel& kernel : program.kernels()) {
      if (++runs > kMaxKernels) break;
      launch(program, kernel, device, choices);
    }
  } catch (const ptxgen::Error& error) {
    require(!error.message.empty(), "an error says something", error.code);
  }
  return 0;
}
