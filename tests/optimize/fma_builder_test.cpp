// tests/optimize/fma_builder_test.cpp - authors who forbid contraction, and what it saves them from
#include <cmath>
#include <cstring>

#include "fusion_cases.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/emulator/emulator.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// Statements of the kernel, one a line.
std::string lines_of(const ptx::Module& module) {
  Fused result;
  result.module = module;
  return result.body();
}
std::size_t count_of(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// The sum of scale * x[i], with what each sum lost carried to the next (Kahan).
constexpr float kScale = 0.1f;
ptx::Module kahan(Contract contract) {
  KernelBuilder k("kahan", "sm_80");
  const auto x = k.param<Ptr<f32>>("x");
  const auto out = k.param<Ptr<f32>>("out");
  const auto n = k.param<u32>("n");
  k.contract(contract);
  auto sum = k.var<f32>(0.0f);
  auto carry = k.var<f32>(0.0f);
  k.for_(0, n, 1, [&](Value<u32> i) {
    const Value<f32> term = x[i] * kScale - carry;
    const Value<f32> next = sum + term;
    carry = (next - sum) - term;
    sum = next;
  });
  out[0] = sum;
  return k.build().module();
}

float run(const ptx::Module& module, const std::vector<float>& x) {
  emulator::Device device(emulator::gpu_named("sm_80"));
  emulator::Program program = emulator::Program::load(device, module);
  const std::uint64_t in = device.allocate(x.size() * 4), out = device.allocate(4);
  device.write(in, std::as_bytes(std::span(x)));
  std::vector<std::byte> block(20);
  const auto n = static_cast<std::uint32_t>(x.size());
  std::memcpy(block.data(), &in, 8);
  std::memcpy(block.data() + 8, &out, 8);
  std::memcpy(block.data() + 16, &n, 4);
  emulator::Launch launch;
  launch.kernel = "kahan";
  launch.parameters = block;
  REQUIRE(emulator::run(program, launch).status == emulator::Status::Ok);
  float sum = 0;
  device.read(out, std::as_writable_bytes(std::span(&sum, 1)));
  return sum;
}

}  // namespace

TEST_CASE("an operation's word goes before the kernel's") {
  const auto built = [](Contract kernel, Contract mul, Contract add) {
    KernelBuilder k("k", "sm_80");
    const auto x = k.param<Ptr<f32>>("x");
    const Value<f32> a = k.ld(x);
    const Value<f32> product = k.mul(a, a, {.contract = mul});
    k.contract(kernel);  // counts for what was written before, too
    x[1] = k.add(product, 1.0f, {.contract = add});
    return run_pass(k.build().module(), "fma_fusion").reasons();
  };
  using enum Contract;
  CHECK(built(Default, Default, Default) == "+fused");
  CHECK(built(Default, Forbid, Default) == "contract-forbidden");
  CHECK(built(Default, Default, Forbid) == "contract-forbidden");
  CHECK(built(Forbid, Default, Default) == "contract-forbidden");
  CHECK(built(Forbid, Allow, Default) == "contract-forbidden");
  CHECK(built(Forbid, Allow, Allow) == "+fused");
}

TEST_CASE("a refusal leads to the line of C++") {
  KernelBuilder k("k", "sm_80");
  const auto x = k.param<Ptr<f32>>("x");
  const Value<f32> a = k.ld(x);
  const std::uint32_t line = __LINE__ + 1;
  const Value<f32> product = k.mul(a, a, {.rounding = Rounding::rz});
  x[1] = product + 1.0f;
  const Fused result = run_pass(k.build().module(), "fma_fusion");
  CHECK(result.message() ==
        "'mul.rz.f32 %f1, %f0, %f0' at fma_builder_test.cpp:" + std::to_string(line) +
            " rounds by .rz and the sum by .rn, a fused operation rounds once; "
            "give both the same rounding to have them fused");
  CHECK(result.report.decisions[0].cpp.line == line + 1);
}

TEST_CASE("forbidden operations have their rounding written, so that ptxas keeps them apart too") {
  const auto built = [](bool kernel, Contract own) {
    KernelBuilder k("k", "sm_80");
    const auto x = k.param<Ptr<f32>>("x");
    const auto n = k.param<u32>("n");
    if (kernel) k.contract(Contract::Forbid);
    const Value<f32> a = k.ld(x + 1);
    const Float plain{.rounding = Rounding::none, .contract = own};
    const Value<f32> product = k.mul(a, a, plain);
    x[0] = k.sub(k.add(product, 1.0f, plain), k.convert<f32>(n + n), plain);
    return lines_of(k.build().module());
  };
  const std::string open = built(false, Contract::Default);
  CHECK(count_of(open, "mul.f32") == 1);
  CHECK(count_of(open, "add.f32") == 1);
  CHECK(count_of(open, "sub.f32") == 1);
  CHECK(built(false, Contract::Allow) == open);
  CHECK(built(true, Contract::Allow) == open);
  const std::string closed = built(true, Contract::Default);
  CHECK(count_of(closed, "mul.rn.f32") == 1);
  CHECK(count_of(closed, "add.rn.f32") == 1);
  CHECK(count_of(closed, "sub.rn.f32") == 1);
  CHECK(count_of(closed, "add.u32") == 1);
  CHECK(built(false, Contract::Forbid) == closed);
}

TEST_CASE("compensated sums survive where contraction is forbidden") {
  std::vector<float> x;
  for (int i = 0; i < 5000; ++i) x.push_back(1.0f + static_cast<float>(i % 97) / 7.0f);
  // The same on the host, each operation rounded (volatile: the host contracts nothing).
  volatile float sum = 0.0f, carry = 0.0f, naive = 0.0f;
  double exact = 0;
  for (const float value : x) {
    volatile float product = value * kScale;
    volatile float term = product - carry;
    volatile float next = sum + term;
    volatile float gained = next - sum;
    carry = gained - term;
    sum = next;
    naive = naive + product;
    exact += double{product};
  }

  optimize::PassOptions options;
  options.passes = {"fma_fusion"};
  ptx::Module kept = kahan(Contract::Forbid);
  const std::string before = lines_of(kept);
  CHECK_FALSE(optimize::run_passes(kept, options).changed());
  CHECK(lines_of(kept) == before);
  CHECK(run(kept, x) == sum);
  // Two units in the last place of the sum of what was added; without compensation much more.
  const double bound = 2 * 0x1p-24 * exact;
  CHECK(std::fabs(double{sum} - exact) <= bound);
  CHECK(std::fabs(double{naive} - exact) > 5 * bound);

  // Left free, the products are no longer rounded by themselves: another sum.
  ptx::Module free = kahan(Contract::Default);
  CHECK(optimize::run_passes(free, options).passes.at(0).fired() == 1);
  CHECK(count_of(lines_of(free), "fma.rn.f32") == 1);
  double unrounded = 0;
  for (const float value : x) unrounded += double{value} * double{kScale};
  CHECK(std::fabs(double{run(free, x)} - unrounded) <= 2 * 0x1p-24 * unrounded);
}
