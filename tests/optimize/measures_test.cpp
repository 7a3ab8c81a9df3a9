// tests/optimize/measures_test.cpp - passes on the PTX of nvcc and ours
#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "support/cubin.hpp"
#include "support/harness.hpp"

namespace {

using namespace ptxgen;

constexpr std::uint32_t kElements = 500, kBlocks = 2, kThreads = 64;
constexpr std::uint32_t kRows = 70, kColumns = 200;  // of our kernels

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A text, and how its kernels are run.
struct Text {
  std::string name;
  std::string ptx;
  bool ours = false;
  LaunchGeometry geometry{{kBlocks, 1, 1}, {kThreads, 1, 1}, 0};
};

std::vector<Text> texts() {
  std::vector<Text> all;
  for (const char* variant : {"O0", "nofma"}) {
    const std::string name = std::string("passes.sm_80.") + variant;
    all.push_back({name, read(PTXGEN_CORPUS "/stored/" + name + ".ptx"), false});
  }
  for (const KernelDescription& entry : catalog()) {
    if (entry.name.substr(0, 5) != "gemv_" || entry.arguments.size() != 5) continue;  // y a x k n
    std::vector<std::uint64_t> values;
    for (const ParameterInfo& parameter : entry.parameters) {
      values.push_back(parameter.name == "k"   ? kRows
                       : parameter.name == "n" ? kColumns
                                               : parameter.default_value);
    }
    const std::string ptx = ptx::print(entry.build(values, ptx::target("sm_80")));
    all.push_back(
        {std::string(entry.name), ptx, true, entry.geometry(values, ptx::target("sm_80"))});
  }
  return all;
}

/// What runs of all kernels of a text left and took.
struct Run {
  std::vector<std::vector<std::byte>> results;
  std::uint64_t instructions = 0;
  /// Executions of float mul, add, sub, neg and fma by warps, in kernels that are made of them.
  std::uint64_t arithmetic = 0;
};

bool is_float_arithmetic(const std::string& opcode) {
  const std::string operation = opcode.substr(0, opcode.find('.'));
  if (operation != "mul" && operation != "add" && operation != "sub" && operation != "neg" &&
      operation != "fma") {
    return false;
  }
  return opcode.find(".f") != std::string::npos && opcode.find(".f") + 2 < opcode.size();
}

/// Small whole numbers, so that sums of products are exact and rounding them once changes nothing.
std::vector<float> numbers(std::size_t count) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<float>(i * 5 % 7) - 3.0f;
  return result;
}

Run run(const Text& text, const std::string& ptx) {
  Run built;
  emulator::Device device(emulator::gpu_named("sm_80"));
  emulator::Program program = emulator::Program::load(device, ptx, text.name);
  for (const emulator::Program::Kernel& kernel : program.kernels()) {
    const auto buffer = [&](std::size_t count) {
      const std::vector<float> values = numbers(count);
      const std::uint64_t address = device.allocate(count * 4, "buffer");
      device.write(address, std::as_bytes(std::span(values)));
      return address;
    };
    std::vector<std::uint64_t> buffers{buffer(std::size_t{2} * 256)};
    buffers.push_back(buffer(text.ours ? std::size_t{kRows} * kColumns : kElements));
    if (text.ours) buffers.push_back(buffer(kRows));
    const std::vector<std::uint32_t> sizes = text.ours ? std::vector<std::uint32_t>{kRows, kColumns}
                                                       : std::vector<std::uint32_t>{kElements};
    std::vector<std::byte> parameters(kernel.parameter_bytes);
    REQUIRE(kernel.parameters.size() == buffers.size() + sizes.size());
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      const void* from =
          i < buffers.size() ? static_cast<const void*>(&buffers[i]) : &sizes[i - buffers.size()];
      std::memcpy(&parameters[kernel.parameters[i].offset], from, kernel.parameters[i].bytes);
    }
    emulator::Launch launch;
    launch.kernel = kernel.name;
    launch.grid = {text.geometry.grid.x, 1, 1};
    launch.block = {text.geometry.block.x, 1, 1};
    launch.dynamic_shared_bytes = text.geometry.dynamic_shared_bytes;
    launch.parameters = parameters;
    const emulator::Result result = emulator::run(program, launch);
    for (const emulator::RunFinding& finding : result.findings) {
      UNSCOPED_INFO(emulator::to_text(finding));
    }
    REQUIRE(result.status == emulator::Status::Ok);
    std::vector<std::byte> out(std::size_t{2} * 256 * 4);
    device.read(buffers[0], out);
    built.results.push_back(std::move(out));
    built.instructions += result.counters.warp_instructions;
    for (const emulator::LineCounters& line : result.counters.lines) {
      const bool counts = line.function == "dot" || line.function == "polynomial";
      if (counts && is_float_arithmetic(line.opcode)) built.arithmetic += line.executions;
    }
  }
  return built;
}

/// Bytes of machine code, 0 without an assembler.
std::size_t code_bytes(const Assembler& assembler, const std::string& ptx) {
  if (!assembler.available()) return 0;
  std::size_t bytes = 0;
  AssembleOptions options;
  options.target = "sm_80";
  for (const auto& [name, code] : test::text_sections(assembler.assemble(ptx, options).cubin)) {
    bytes += code.size();
  }
  return bytes;
}

std::vector<std::string> passes() {
  std::vector<std::string> names;
  for (const optimize::PassInfo& pass : optimize::all_passes()) names.emplace_back(pass.name);
  names.emplace_back("default");
  return names;
}

std::string apply(const std::string& ptx, const std::string& pass,
                  optimize::PipelineReport& report) {
  ptx::Module module = ptx::parse(ptx);
  optimize::PassOptions options;
  options.passes = {pass};
  report = optimize::run_passes(module, options);
  return ptx::print(module);
}

double less(std::uint64_t before, std::uint64_t after) {
  return before == 0 ? 0
                     : 100.0 * (static_cast<double>(before) - static_cast<double>(after)) /
                           static_cast<double>(before);
}

}  // namespace

// PTXGEN_REWRITE_GOLDENS=1 writes the files anew; read the difference before it goes in.
TEST_CASE("what each pass makes of nvcc's PTX is its golden file") {
  const char* rewrite = std::getenv("PTXGEN_REWRITE_GOLDENS");
  for (const Text& text : texts()) {
    if (text.ours) continue;
    REQUIRE_FALSE(text.ptx.empty());
    for (const std::string& pass : passes()) {
      optimize::PipelineReport report;
      const std::string after = apply(text.ptx, pass, report);
      const std::string path = PTXGEN_CORPUS "/passes/" + text.name + "." + pass + ".ptx";
      INFO(path);
      if (rewrite != nullptr && *rewrite == '1') {
        std::remove(path.c_str());
        if (report.changed()) std::ofstream(path, std::ios::binary) << after;
      }
      CHECK(read(path) == (report.changed() ? after : std::string()));
    }
  }
}

TEST_CASE("every pass keeps the results of real kernels, and what it saves") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available()) test::skip_part("no assembler: no bytes of machine code");
  std::map<std::string, int> changes;
  std::printf("%-20s %-17s %21s %25s %25s\n", "text", "pass", "statements", "warp instructions",
              "bytes of code");
  for (const Text& text : texts()) {
    const Run before = run(text, text.ptx);
    const std::size_t bytes_before = code_bytes(assembler, text.ptx);
    for (const std::string& pass : passes()) {
      INFO(text.name << ", " << pass);
      optimize::PipelineReport report;
      const std::string ptx = apply(text.ptx, pass, report);
      if (!report.changed()) continue;
      ++changes[pass];
      const Run after = run(text, ptx);
      CHECK(after.results == before.results);
      const std::size_t bytes = code_bytes(assembler, ptx);
      std::printf(
          "%-20s %-17s %6zu -> %4zu (%+3.0f %%) %8llu -> %6llu (%+3.0f %%) %8zu -> %6zu (%+3.0f "
          "%%)\n",
          text.name.c_str(), pass.c_str(), report.passes.front().statements_before,
          report.passes.back().statements_after,
          -less(report.passes.front().statements_before, report.passes.back().statements_after),
          static_cast<unsigned long long>(before.instructions),
          static_cast<unsigned long long>(after.instructions),
          -less(before.instructions, after.instructions), bytes_before, bytes,
          -less(bytes_before, bytes));
      if (pass == "fma_fusion" && text.name == "passes.sm_80.nofma") {
        std::printf("  float arithmetic of dot and polynomial: %llu -> %llu executions\n",
                    static_cast<unsigned long long>(before.arithmetic),
                    static_cast<unsigned long long>(after.arithmetic));
        CHECK(after.arithmetic * 3 <= before.arithmetic * 2);
      }
      if (pass != "loop_split") CHECK(after.instructions <= before.instructions);
    }
  }
  for (const std::string& pass : passes()) {
    INFO(pass << " changes none of the texts");
    if (pass == "tokens") continue;  // nvcc's barriers are all needed
    CHECK(changes[pass] >= 1);
  }
}
