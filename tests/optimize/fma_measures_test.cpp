// tests/optimize/fma_measures_test.cpp - costs and savings of fusion
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "fusion_cases.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "support/cubin.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Both fusions, in the order of the default pipeline.
optimize::PipelineReport fuse(ptx::Module& module) {
  optimize::PassOptions options;
  options.passes = {"fma_fusion", "mad_fusion"};
  return optimize::run_passes(module, options);
}

// Instructions that multiply, add or turn the sign of floats.
bool is_float_arithmetic(std::string_view opcode) {
  const std::string_view operation = opcode.substr(0, opcode.find('.'));
  const std::string_view type = opcode.substr(opcode.rfind('.') + 1);
  const bool arithmetic = operation == "mul" || operation == "add" || operation == "sub" ||
                          operation == "neg" || operation == "fma";
  return arithmetic && (type[0] == 'f' || type[0] == 'b');
}

// A run of one of the kernels that take a, b, out and n.
struct Run {
  std::uint64_t instructions = 0, arithmetic = 0;  // of warps
  std::vector<float> out;
};
Run run(const ptx::Module& module, std::string_view kernel, const std::vector<float>& a,
        const std::vector<float>& b, std::uint32_t blocks, std::uint32_t threads) {
  emulator::Device device(emulator::gpu_named("sm_80"));
  emulator::Program program = emulator::Program::load(device, module);
  std::vector<std::byte> block(28);
  const auto pass = [&](std::size_t offset, const std::vector<float>& values) {
    const std::uint64_t address = device.allocate(values.size() * 4);
    device.write(address, std::as_bytes(std::span(values)));
    std::memcpy(block.data() + offset, &address, 8);
    return address;
  };
  Run built;
  built.out.assign(a.size(), 0.0f);
  pass(0, a);
  pass(8, b);
  const std::uint64_t out = pass(16, built.out);
  const auto n = static_cast<std::uint32_t>(a.size());
  std::memcpy(block.data() + 24, &n, 4);
  emulator::Launch launch;
  launch.kernel = kernel;
  launch.grid.x = blocks;
  launch.block.x = threads;
  launch.parameters = block;
  const emulator::Result result = emulator::run(program, launch);
  for (const emulator::RunFinding& finding : result.findings) UNSCOPED_INFO(to_text(finding));
  REQUIRE(result.status == emulator::Status::Ok);
  device.read(out, std::as_writable_bytes(std::span(built.out)));
  built.instructions = result.counters.warp_instructions;
  for (const emulator::LineCounters& line : result.counters.lines) {
    if (is_float_arithmetic(line.opcode)) built.arithmetic += line.executions;
  }
  return built;
}

std::vector<float> numbers(std::size_t n, std::uint64_t salt, float low, float high) {
  std::vector<float> list(n);
  std::uint64_t state = seed() * 0x9e3779b97f4a7c15 + salt;
  for (float& x : list) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = low + (high - low) * static_cast<float>(state >> 40) * 0x1p-24f;
  }
  return list;
}

double percent_less(std::uint64_t before, std::uint64_t after) {
  return 100.0 * (1.0 - static_cast<double>(after) / static_cast<double>(before));
}
void tell(const std::string& what, std::uint64_t before, std::uint64_t after) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", percent_less(before, after));
  std::cout << what << ": " << before << " -> " << after << ", " << text << " % fewer\n";
}

// Partial sums of a dot product against the exact one: each is a chain of at most `length` sums.
void check_dot(const std::vector<float>& a, const std::vector<float>& b, const Run& result,
               std::size_t threads, double length) {
  double exact = 0, magnitude = 0, found = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    exact += double{a[i]} * double{b[i]};
    magnitude += std::fabs(double{a[i]} * double{b[i]});
  }
  for (std::size_t i = 0; i < threads; ++i) found += result.out[i];
  const double u = 0x1p-24;
  const double gamma = (length + 1) * u / (1 - (length + 1) * u);  // and one for the product
  CHECK(std::fabs(found - exact) <= gamma * magnitude);
  CHECK(exact != 0);
}

constexpr std::size_t kElements = 100'000;

// The kernel as an author writes it: product and sum apart.
ptx::Module built_dot(unsigned unroll) {
  KernelBuilder k("dot", "sm_80");
  const auto a = k.param<Ptr<f32>>("a");
  const auto b = k.param<Ptr<f32>>("b");
  const auto out = k.param<Ptr<f32>>("out");
  const auto n = k.param<u32>("n");
  const Value<u32> t = k.global_thread_x();
  const Value<u32> stride = k.nctaid_x() * k.ntid_x();
  auto sum = k.var<f32>(0.0f);
  k.for_(
      t, n, stride, [&](Value<u32> i) { sum += a[i] * b[i]; }, Unroll{unroll});
  out[t] = sum;
  return k.build().module();
}

}  // namespace

TEST_CASE("load, mul and add become two thirds, mul and add alone a half") {
  const auto statements = [](std::string_view body) {
    const Fused result = fma_fusion(body);
    const std::size_t before = result.report.statements_before - 1;  // ret
    CHECK(result.report.statements_before - result.report.statements_after ==
          result.report.fired());
    return std::pair(before, result.report.statements_after - 1);
  };
  std::string loads, plain;
  for (int i = 0; i < 100; ++i) {
    const std::string arithmetic = "mul.f32 %f3, %f1, %f2; add.f32 %f5, %f5, %f3;\n";
    loads += "ld.global.f32 %f1, [%rd1]; " + arithmetic;
    plain += arithmetic;
  }
  const auto [loads_before, loads_after] = statements(loads);
  const auto [plain_before, plain_after] = statements(plain);
  // Declarations of registers are no statements.
  CHECK(loads_before == 300);
  CHECK(loads_after == 200);
  CHECK(plain_before == 200);
  CHECK(plain_after == 100);
}

TEST_CASE("a dot product of 100k elements runs a tenth fewer instructions") {
  const std::vector<float> a = numbers(kElements, 1, -1.0f, 1.0f);
  const std::vector<float> b = numbers(kElements, 2, 0.0f, 1.0f);
  constexpr std::uint32_t kBlocks = 2, kThreads = 128;
  const double length = std::ceil(double{kElements} / (kBlocks * kThreads)) + 1;
  const auto measure = [&](const std::string& what, const ptx::Module& before, const char* kernel) {
    ptx::Module after = before;
    static_cast<void>(fuse(after));
    const Run first = run(before, kernel, a, b, kBlocks, kThreads);
    const Run second = run(after, kernel, a, b, kBlocks, kThreads);
    check_dot(a, b, first, kBlocks * kThreads, length);
    check_dot(a, b, second, kBlocks * kThreads, length);
    CHECK(first.out != second.out);  // another rounding
    tell(what, first.instructions, second.instructions);
    CHECK(percent_less(first.instructions, second.instructions) >= 10);
    CHECK(3 * second.arithmetic <= 2 * first.arithmetic);
  };
  measure("dot product, built", built_dot(1), "dot");
  measure("dot product, built, unrolled by 4", built_dot(4), "dot");
  const ptx::Module nvcc = ptx::parse(contents(PTXGEN_CORPUS "/stored/unfused.sm_80.nofma.ptx"));
  measure("dot product, nvcc -fmad=false", nvcc, "dot");
  measure("dot product by float4, nvcc -fmad=false", nvcc, "dot4");
}

// What nvcc leaves under -fmad=false, and how near the results stay.
TEST_CASE("nvcc's code without contraction shrinks by a third of its arithmetic") {
  const ptx::Module before = ptx::parse(contents(PTXGEN_CORPUS "/stored/unfused.sm_80.nofma.ptx"));
  ptx::Module after = before;
  CHECK(fuse(after).changed());
  const std::vector<float> a = numbers(4096, 3, 0.25f, 1.0f);
  const std::vector<float> b = numbers(4096, 4, 0.25f, 1.0f);
  std::uint64_t arithmetic_before = 0, arithmetic_after = 0;
  for (const char* kernel :
       {"dot", "dot4", "polynomial", "complex_power", "length_squared", "newton", "half_blend"}) {
    INFO(kernel);
    const Run first = run(before, kernel, a, b, 4, 1024);
    const Run second = run(after, kernel, a, b, 4, 1024);
    tell(std::string("float arithmetic of ") + kernel, first.arithmetic, second.arithmetic);
    arithmetic_before += first.arithmetic;
    arithmetic_after += second.arithmetic;
    CHECK(second.arithmetic < first.arithmetic);
    CHECK(second.instructions < first.instructions);
    // Magnitudes of intermediate values are below 8; halves have 11 bits.
    const double bound = std::strcmp(kernel, "half_blend") == 0 ? 0.1 : 1e-4;
    double worst = 0;
    for (std::size_t i = 0; i < first.out.size(); ++i)
      worst = std::max(worst, double{std::fabs(first.out[i] - second.out[i])});
    CHECK(worst <= bound);
  }
  tell("float arithmetic of all", arithmetic_before, arithmetic_after);
  CHECK(3 * arithmetic_after <= 2 * arithmetic_before);
}

// Why neg and fma are better than mul and sub, though they are as many in PTX.
TEST_CASE("the negation of a difference costs nothing in the machine") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available()) return skip("no assembler found");
  const auto bytes = [&](const char* arithmetic) {
    std::string body = ".reg .f32 %x, %y, %z, %s, %t; .reg .b64 %at; ld.param.u64 %at, [out];\n";
    for (int i = 0; i < 64; ++i) {
      const std::string n = std::to_string(16 * i);
      body += "ld.global.f32 %x, [%at+" + n + "]; ld.global.f32 %y, [%at+" + n +
              "]; ld.global.f32 %z, [%at+" + n + "];\n" + arithmetic + "st.global.f32 [%at+" + n +
              "], %t;\n";
    }
    AssembleOptions options;
    options.target = "sm_100";
    std::size_t size = 0;
    for (const auto& [name, code] :
         text_sections(assembler.assemble(fusion_kernel(body), options).cubin)) {
      size += code.size();
    }
    return size;
  };
  const std::size_t fused = bytes("fma.rn.f32 %t, %x, %y, %z;\n");
  CHECK(bytes("neg.f32 %s, %z; fma.rn.f32 %t, %x, %y, %s;\n") == fused);
  CHECK(bytes("neg.f32 %s, %x; fma.rn.f32 %t, %s, %y, %z;\n") == fused);
  CHECK(bytes("mul.rn.f32 %s, %x, %y; sub.rn.f32 %t, %s, %z;\n") > fused);
}

// PTXGEN_REWRITE_GOLDENS=1 writes the file anew; read the difference before it goes in.
TEST_CASE("nvcc's code without contraction after both fusions is the golden text") {
  ptx::Module module = ptx::parse(contents(PTXGEN_CORPUS "/stored/unfused.sm_80.nofma.ptx"));
  static_cast<void>(fuse(module));
  const std::string path = PTXGEN_GOLDENS "/unfused.sm_80.fused.ptx";
  const std::string text = ptx::print(module);
  const char* rewrite = std::getenv("PTXGEN_REWRITE_GOLDENS");
  if (rewrite != nullptr && *rewrite == '1') std::ofstream(path, std::ios::binary) << text;
  CHECK(text == contents(path));
}

TEST_CASE("a second run over other people's code changes no byte") {
  std::size_t texts = 0, fused = 0;
  for (const char* folder : {"stored", "foreign"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(PTXGEN_CORPUS) / folder)) {
      if (entry.path().extension() != ".ptx") continue;
      INFO(entry.path().filename().string());
      ptx::Module module = ptx::parse(contents(entry.path()));
      const std::string before = ptx::print(module);
      const optimize::PipelineReport first = fuse(module);
      const std::string once = ptx::print(module);
      CHECK(first.changed() == (before != once));
      CHECK_FALSE(fuse(module).changed());
      CHECK(ptx::print(module) == once);
      ++texts;
      for (const optimize::PassReport& pass : first.passes) fused += pass.fired();
    }
  }
  CHECK(texts >= 20);
  CHECK(fused >= 100);
  std::cout << fused << " pairs fused in " << texts << " texts\n";
}

TEST_CASE("work grows with the function, not faster") {
  // Straight code; pairs that are all refused; guards; a branch between each product and its sum,
  // factors written elsewhere; products that wait for sums far away; chains across loops.
  const auto body = [](int shape, int statements) {
    std::string text = "mov.f32 %f1, 0f3F800000;\n";
    std::string tail;
    for (int i = 0, result = 0; result < statements; ++i) {
      const std::string n = std::to_string(i);
      switch (shape) {
        case 0:
          text += "mul.f32 %f3, %f1, %f2; add.f32 %f5, %f5, %f3;\n";
          result += 2;
          break;
        case 1:
          text += "mul.f32 %f3, %f1, %f2; mov.f32 %f1, %f5; add.f32 %f5, %f5, %f3;\n";
          result += 3;
          break;
        case 2:
          text += "@%p" + std::to_string(i % 4) + " mul.f32 %f3, %f1, %f2; @%p" +
                  std::to_string(i % 4) + " add.f32 %f5, %f5, %f3;\n";
          result += 2;
          break;
        case 3:
          text += "mul.f32 %f3, %f1, %f2; @%p1 bra $l" + n + "; mov.f32 %f6, %f4; $l" + n +
                  ": add.f32 %f5, %f6, %f3; mov.f32 %f1, %f5; mov.f32 %f2, %f1;\n";
          result += 7;
          break;
        case 4:
          text += "mul.f32 %x" + n + ", %f1, %f2;\n";
          tail += "@%p1 bra $l" + n + "; $l" + n + ": add.f32 %f5, %f5, %x" + n + ";\n";
          result += 4;
          break;
        default:
          text +=
              "$l" + n + ": mul.f32 %f3, %f1, %f2; add.f32 %f5, %f5, %f3; @%p1 bra $l" + n + ";\n";
          result += 4;
      }
    }
    // For shape 4 the factors are written again at the very end.
    return "{ .reg .f32 %x<" + std::to_string(statements) + ">;\n" + text + tail +
           "mov.f32 %f1, %f5; mov.f32 %f2, %f1;\n}\n";
  };
  optimize::PassOptions options;
  options.passes = {"fma_fusion"};
  options.verify = false;
  for (int shape = 0; shape < 6; ++shape) {
    std::uint64_t before = 0;
    for (const int statements : {1'000, 10'000, 100'000}) {
      ptx::Module module = ptx::parse(fusion_kernel(body(shape, statements)));
      const optimize::PassReport report = optimize::run_passes(module, options).passes.at(0);
      INFO("shape " << shape << ", " << statements << " statements: " << report.visits
                    << " visits");
      CHECK(report.visits >= static_cast<std::uint64_t>(statements));
      CHECK(report.visits <= 80 * static_cast<std::uint64_t>(statements));
      if (before != 0) {
        CHECK(report.visits <= before * 11);
        CHECK(report.visits >= before * 9);
      }
      CHECK(report.fired() + report.refused() >= static_cast<std::uint64_t>(statements) / 8);
      before = report.visits;
    }
  }
}
