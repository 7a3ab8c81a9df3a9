// tests/tile/tile_rig.hpp - kernels on the emulator, with counters and findings
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/emulator.hpp"

namespace ptxgen::test {

/// An argument of a kernel: memory, or a number.
struct TileArgument {
  std::vector<float> memory;  ///< of `Ptr<f32>`, from `offset` elements on; written back
  std::size_t offset = 0;     ///< elements in front, which the kernel is not given
  std::uint32_t number = 0;
  bool is_memory = false;

  TileArgument(std::uint32_t n) : number(n) {}
  TileArgument(std::vector<float> values, std::size_t before = 0)
      : memory(std::move(values)), offset(before), is_memory(true) {}
};

/// Runs the kernel; memory is read back into the arguments.
inline emulator::Result run_tiles(const BuiltKernel& kernel, emulator::Dim3 grid,
                                  std::uint32_t threads, std::vector<TileArgument>& arguments) {
  emulator::Device device(emulator::default_gpu(kernel.target()));
  emulator::Program program = emulator::Program::load(device, kernel.module());
  std::vector<std::byte> block(kernel.signature().size());
  std::vector<std::uint64_t> addresses;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    TileArgument& argument = arguments[i];
    std::byte* const to = block.data() + kernel.signature().parameters[i].offset;
    std::uint64_t address = 0;
    if (argument.is_memory) {
      const auto bytes = std::as_bytes(std::span(argument.memory));
      address = device.allocate(bytes.size());
      device.write(address, bytes);
      const std::uint64_t passed = address + 4 * argument.offset;
      std::memcpy(to, &passed, sizeof passed);
    } else {
      std::memcpy(to, &argument.number, sizeof argument.number);
    }
    addresses.push_back(address);
  }
  emulator::Launch launch;
  launch.kernel = kernel.name();
  launch.grid = grid;
  launch.block = {threads};
  launch.parameters = block;
  const emulator::Result result = emulator::run(program, launch);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_memory) continue;
    device.read(addresses[i], std::as_writable_bytes(std::span(arguments[i].memory)));
  }
  return result;
}

inline std::string findings_of(const emulator::Result& result) {
  std::string text;
  for (const emulator::RunFinding& finding : result.findings) text += to_text(finding) + "\n";
  return text;
}

/// Numbers that a sum in f32 of thousands of them represents exactly nowhere.
inline std::vector<float> values(std::size_t count, std::uint32_t seed) {
  std::vector<float> all(count);
  std::uint32_t state = seed * 2654435761u + 12345;
  for (float& v : all) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
  return all;
}

}  // namespace ptxgen::test
