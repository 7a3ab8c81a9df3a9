// tests/kernels/gemm_exits_test.cpp - threads that end before barriers of GEMM kernels
#include <algorithm>
#include <catch2/catch.hpp>
#include <span>
#include <string>
#include <type_traits>

#include "ptxgen/check.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;

namespace {

constexpr GemmProblem kProblem{.m = 40, .n = 40, .k = 100};

template <class Kernel>
Kernel kernel_of(const GemmProblem& problem = kProblem) {
  Kernel kernel;
  kernel.problem = problem;
  if constexpr (std::is_same_v<Kernel, GemmMma>) {
    kernel.tile = GemmTile::t64x64x32;
    kernel.stages = 2;
  }
  return kernel;
}

// `exit` for some threads, as a scope of its own.
std::string exit_if(const std::string& value, const std::string& comparison) {
  return "{\n.reg .u32 %early;\n.reg .pred %ends;\nmov.u32 %early, " + value + ";\nsetp." +
         comparison + ";\n@%ends exit;\n}\n";
}
// The same by a branch around an `exit` that has no guard of its own.
std::string exit_around(const std::string& value, const std::string& comparison) {
  return "{\n.reg .u32 %early;\n.reg .pred %ends;\nmov.u32 %early, " + value + ";\nsetp." +
         comparison + ";\n@!%ends bra %stays;\nexit;\n%stays:\n}\n";
}
const std::string kSome = exit_if("%tid.x", "gt.u32 %ends, %early, 95");
const std::string kSomeBlocks = exit_if("%ctaid.x", "gt.u32 %ends, %early, 95");

// The kernel's text with statements in front of its `number`-th barrier, or at its end.
enum class Where { FirstBarrier, SecondBarrier, End };
std::string changed(const ptx::Module& module, const std::string& statements, Where where) {
  std::string text = ptx::print(module);
  std::size_t at = text.rfind("ret;");
  if (where != Where::End) at = text.find("bar.sync 0;");
  if (where == Where::SecondBarrier) at = text.find("bar.sync 0;", at + 1);
  REQUIRE(at != std::string::npos);
  return text.insert(at, statements);
}

// The rules of the gate's findings.
std::string gate(const std::string& text) {
  std::string rules;
  for (const Finding& finding : gates::barrier_safety(ptx::parse(text)))
    rules += std::string(finding.rule) + " ";
  return rules;
}

// Runs a kernel with the parameters (c, a, b, bias, residual, [workspace,] alpha, beta, m).
template <class Kernel>
bool emulator_reports(const Kernel& kernel, const std::string& text) {
  emulator::Device device(emulator::default_gpu("sm_90"));
  emulator::Program program = emulator::Program::load(device, text);
  const GemmProblem& p = kernel.problem;
  const std::uint64_t c = device.allocate(4 * p.elements_c(), "c");
  const std::uint64_t a = device.allocate(2 * p.elements_a(), "a");
  const std::uint64_t b = device.allocate(2 * p.elements_b(), "b");
  device.fill(a, std::byte{0}, 2 * p.elements_a());
  device.fill(b, std::byte{0}, 2 * p.elements_b());
  GemmOperands operands;
  operands.c = {c, 4 * p.elements_c()};
  operands.a = {a, 2 * p.elements_a()};
  operands.b = {b, 2 * p.elements_b()};
  std::array<std::byte, kMaxArgumentBytes> block{};
  kDescription<Kernel>.pack_of(&kernel, &operands, 0, block.data());
  const LaunchGeometry geometry = kernel.geometry();
  emulator::Launch launch;
  launch.kernel = kernel_name<Kernel>;
  launch.grid = {geometry.grid.x, geometry.grid.y, geometry.grid.z};
  launch.block = {geometry.block.x, geometry.block.y, 1};
  launch.dynamic_shared_bytes = geometry.dynamic_shared_bytes;
  launch.parameters = std::span(block).first(kDescription<Kernel>.block_bytes);
  const emulator::Result result = emulator::run(program, launch);
  return std::any_of(result.findings.begin(), result.findings.end(), [](const auto& finding) {
    return finding.rule == emulator::Rule::ExitedBeforeBarrier ||
           finding.rule == emulator::Rule::BarrierDeadlock ||
           finding.rule == emulator::Rule::BarrierDivergence;
  });
}

}  // namespace

TEST_CASE("falsification 101: an exit without a guard before the barrier of a loop is flagged") {
  // On a path of some threads. After an exit of all no thread waits.
  const std::string some = exit_around("%tid.x", "gt.u32 %ends, %early, 95");
  const std::string all = exit_around("%tid.x", "ge.u32 %ends, %early, 0");
  const auto mma = kernel_of<GemmMma>();
  const ptx::Module module = mma.build(ptx::target("sm_90")).module();
  const std::string text = changed(module, some, Where::FirstBarrier);
  CHECK(gate(text).find("exited-before-barrier") == 0);
  CHECK(emulator_reports(mma, text));
  const ptx::Module wmma = kernel_of<GemmWmma>().build(ptx::target("sm_90")).module();
  for (const Where where : {Where::FirstBarrier, Where::SecondBarrier})
    CHECK(gate(changed(wmma, some, where)).find("exited-before-barrier") == 0);
  CHECK_FALSE(emulator_reports(mma, changed(module, "exit;\n", Where::FirstBarrier)));
  CHECK_FALSE(emulator_reports(mma, changed(module, all, Where::FirstBarrier)));
}

TEST_CASE("falsification 102: an exit of some threads in the k loop is flagged, of blocks not") {
  const ptx::Module module = kernel_of<GemmWmma>().build(ptx::target("sm_90")).module();
  CHECK(gate(changed(module, kSome, Where::FirstBarrier)).find("exited-before-barrier") == 0);
  CHECK(gate(changed(module, kSome, Where::SecondBarrier)).find("exited-before-barrier") == 0);
  CHECK(gate(changed(module, kSomeBlocks, Where::FirstBarrier)) == "");
}

TEST_CASE("falsification 103: an exit after the last barrier of a GEMM is not flagged") {
  const ptx::Module module = kernel_of<GemmWmma>().build(ptx::target("sm_90")).module();
  CHECK(gate(changed(module, kSome, Where::End)) == "");
}

TEST_CASE("falsification 112, 113: neither a loop nor its absence makes an early exit safe") {
  // The k loop has two steps of 32 terms, or one, which is no loop.
  for (const std::uint32_t k : {64u, 32u}) {
    const auto kernel = kernel_of<GemmMma>({.m = 40, .n = 40, .k = k});
    const ptx::Module module = kernel.build(ptx::target("sm_90")).module();
    INFO("k " << k);
    CHECK(gate(ptx::print(module)) == "");
    CHECK_FALSE(emulator_reports(kernel, ptx::print(module)));
    const std::string text = changed(module, kSome, Where::FirstBarrier);
    CHECK(gate(text).find("exited-before-barrier") == 0);
    CHECK(emulator_reports(kernel, text));
  }
}

TEST_CASE("falsification 114: gemm_wmma passes the analysis") {
  for (const std::uint32_t tile : {16u, 32u, 64u}) {
    GemmWmma kernel = kernel_of<GemmWmma>();
    kernel.tile = tile;
    const std::string text = kernel.build(ptx::target("sm_90")).ptx();
    CHECK(gate(text) == "");
    CHECK_FALSE(emulator_reports(kernel, text));
  }
}

TEST_CASE("falsification 115: early exits in gemm_mma and gemm_wmma are reported twice") {
  const auto mma = kernel_of<GemmMma>();
  const auto wmma = kernel_of<GemmWmma>();
  for (const Where where : {Where::FirstBarrier, Where::SecondBarrier}) {
    const std::string of_mma = changed(mma.build(ptx::target("sm_90")).module(), kSome, where);
    CHECK(gate(of_mma).find("exited-before-barrier") == 0);
    CHECK(emulator_reports(mma, of_mma));
    const std::string of_wmma = changed(wmma.build(ptx::target("sm_90")).module(), kSome, where);
    CHECK(gate(of_wmma).find("exited-before-barrier") == 0);
    CHECK(emulator_reports(wmma, of_wmma));
  }
}
