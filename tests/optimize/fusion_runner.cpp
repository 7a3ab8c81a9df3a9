// tests/optimize/fusion_runner.cpp - runs three-operand bodies on the emulator
#include "fusion_runner.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <span>

namespace ptxgen::test {

namespace {

constexpr std::uint32_t kThreads = 128;

std::vector<std::byte> packed(const std::vector<std::uint64_t>& values, std::size_t bytes) {
  std::vector<std::byte> memory(values.size() * bytes);
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(memory.data() + i * bytes, &values[i], bytes);  // little-endian, as devices are
  return memory;
}

}  // namespace

std::string elementwise_kernel(std::string_view body, int width) {
  const std::string w = std::to_string(width);
  const std::string bytes = std::to_string(width / 8);
  std::string text =
      ".version 8.7 .target sm_100 .address_size 64 .visible .entry k(.param .u64 pa, "
      ".param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u32 n) { .reg .pred %out, %p<4>; "
      ".reg .b32 %i, %t, %n; .reg .b64 %j, %ra, %rb, %rc, %rd; .reg .b" +
      w + " %a, %b, %c, %d, %x<8>; mov.u32 %i, %ctaid.x; mov.u32 %t, %tid.x; " +
      "mad.lo.u32 %i, %i, " + std::to_string(kThreads) + ", %t; ld.param.u32 %n, [n]; " +
      "setp.ge.u32 %out, %i, %n; @%out exit; mul.wide.u32 %j, %i, " + bytes + "; ";
  for (const char* r : {"a", "b", "c", "d"}) {
    const std::string name(r);
    text += "ld.param.u64 %r" + name + ", [p" + name + "]; ";
    text += "add.s64 %r" + name + ", %r" + name + ", %j; ";
    if (name != "d") text += "ld.global.b" + w + " %" + name + ", [%r" + name + "]; ";
  }
  text += "\n";
  text += body;
  text += "st.global.b" + w + " [%rd], %d; ret; }\n";
  return text;
}

std::vector<std::uint64_t> run_elementwise(const ptx::Module& module, int width,
                                           const Operands& operands) {
  const std::size_t count = operands.a.size();
  const auto bytes = static_cast<std::size_t>(width) / 8;
  emulator::Device device(emulator::gpu_named("sm_100"));
  emulator::Program program = emulator::Program::load(device, ptx::print(module), "fused.ptx");
  std::vector<std::byte> block(36);
  std::size_t offset = 0;
  std::uint64_t address = 0;
  const auto pass = [&] {
    std::memcpy(block.data() + offset, &address, 8);
    offset += 8;
  };
  for (const auto* values : {&operands.a, &operands.b, &operands.c}) {
    address = device.allocate(count * bytes);
    device.write(address, packed(*values, bytes));
    pass();
  }
  address = device.allocate(count * bytes);
  pass();
  const auto n = static_cast<std::uint32_t>(count);
  std::memcpy(block.data() + offset, &n, 4);
  emulator::Launch launch;
  launch.kernel = "k";
  launch.grid.x = (n + kThreads - 1) / kThreads;
  launch.block.x = kThreads;
  launch.parameters = block;
  const emulator::Result result = emulator::run(program, launch);
  for (const emulator::RunFinding& finding : result.findings) UNSCOPED_INFO(to_text(finding));
  REQUIRE(result.status == emulator::Status::Ok);
  std::vector<std::byte> memory(count * bytes);
  device.read(address, memory);
  std::vector<std::uint64_t> values(count, 0);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(&values[i], memory.data() + i * bytes, bytes);
  return values;
}

}  // namespace ptxgen::test
