// tests/builder/kernel_test.cpp - parameters, signatures, argument blocks, building
#include "emit.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ptxgen/ptx/verifier.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

auto saxpy(std::string_view target = "sm_89") {
  return build_kernel(
      "saxpy", target,
      params(param<Ptr<f32>>("y"), param<u8>("flag"), param<Ptr<f32>>("x"), param<f32>("a"),
             param<u32>("n")),
      [](KernelBuilder& k, Ptr<f32> y, Value<u8>, Ptr<f32> x, Value<f32> a, Value<u32> n) {
        const Value<u32> i = k.global_thread_x();
        k.if_(i < n, [&] { y[i] = fma(a, x[i], y[i]); });
      });
}

}  // namespace

TEST_CASE("a kernel built from its parameters") {
  const auto kernel = saxpy();
  CHECK(kernel.name() == "saxpy");
  CHECK(kernel.target() == "sm_89");
  CHECK(ptx::verify(kernel.module()).empty());
  CHECK(kernel.ptx() == saxpy().ptx());
  const ptx::Function* f = kernel.module().find_function("saxpy");
  REQUIRE(f != nullptr);
  CHECK(f->entry);
  REQUIRE(f->parameters.size() == 5);
  CHECK(kernel.module().text(f->parameters[1].name) == "flag");
  CHECK(f->body.back().is(ptx::Op::ret));
}

TEST_CASE("the signature says where each argument is") {
  const Signature signature = saxpy().signature();
  REQUIRE(signature.parameters.size() == 5);
  const std::uint32_t offsets[] = {0, 8, 16, 24, 28};
  const std::uint32_t sizes[] = {8, 1, 8, 4, 4};
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(signature.parameters[i].offset == offsets[i]);
    CHECK(signature.parameters[i].size == sizes[i]);
  }
  CHECK(signature.size() == 32);
  CHECK(signature.parameters[0].pointer);
  CHECK(signature.parameters[0].space == ptx::Space::Global);
  CHECK(signature.parameters[0].element == ptx::Type::f32);
  CHECK_FALSE(signature.parameters[3].pointer);
  CHECK(signature.parameters[3].type == ptx::Type::f32);
}

TEST_CASE("arguments are packed as the signature says") {
  const auto kernel = saxpy();
  const auto block = kernel.pack(DeviceAddress<f32>{0x1122334455667788u}, std::uint8_t{9},
                                 DeviceAddress<f32>{0x99u}, 2.0f, std::uint32_t{1000});
  CHECK(block.size() == 32);
  CHECK(block.count() == 5);
  std::uint64_t y = 0;
  float a = 0;
  std::uint32_t n = 0;
  std::memcpy(&y, block.argument(0), 8);
  std::memcpy(&a, block.argument(3), 4);
  std::memcpy(&n, block.argument(4), 4);
  CHECK(y == 0x1122334455667788u);
  CHECK(block.argument(1)[0] == std::byte{9});
  CHECK(a == 2.0f);
  CHECK(n == 1000);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(block.offsets[i] == kernel.signature().parameters[i].offset);
  }
  using K = decltype(saxpy());
  STATIC_REQUIRE(
      K::kAccepts<DeviceAddress<f32>, std::uint8_t, DeviceAddress<f32>, float, std::uint32_t>);
  STATIC_REQUIRE_FALSE(
      K::kAccepts<DeviceAddress<f32>, std::uint8_t, DeviceAddress<f32>, float, int>);
  STATIC_REQUIRE_FALSE(
      K::kAccepts<DeviceAddress<f32>, std::uint8_t, DeviceAddress<f64>, float, std::uint32_t>);
}

TEST_CASE("a kernel takes the lowest version that will do") {
  const auto version = [](std::string_view target, auto&& body) {
    KernelBuilder k("v", target);
    body(k);
    return k.build().module().version;
  };
  const auto nothing = [](KernelBuilder&) {};
  CHECK(version("sm_89", nothing) == ptx::Version{7, 8});
  CHECK(version("sm_75", nothing) == ptx::Version{6, 3});
  CHECK(version("sm_90", nothing) == ptx::Version{7, 8});
  CHECK(
      version("sm_90", [](KernelBuilder& k) {
        k.emit(ptx::Op::elect, {}, {k.undefined<b32>(), Operand(k.undefined<pred>()).joined(), 1});
      }) == ptx::Version{8, 0});
}

TEST_CASE("small parameters, pointers into other spaces, generic pointers") {
  KernelBuilder k("spaces");
  const Value<s16> a = k.param<s16>("a");
  const Ptr<f32, Generic> g = k.param<Ptr<f32, Generic>>("g");
  const Ptr<f32, Const> c = k.param<Ptr<f32, Const>>("c");
  k.declare_param<f16>("h");
  const Value<f16> h = k.load_param<f16>("h");
  static_cast<void>(h);
  static_cast<void>(a);
  k.st(g, k.ld(c));
  CHECK(emitted(k, 0) ==
        "ld.param.s16 %rs0, [a];\nld.param.u64 %rd0, [g];\nld.param.u64 %rd1, [c];\n"
        "cvta.to.const.u64 %rd2, %rd1;\nld.param.b16 %h0, [h];\nld.const.f32 %f0, [%rd2];\n"
        "st.f32 [%rd0], %f0;");
}

TEST_CASE("registers are declared once for each class, with exact counts") {
  KernelBuilder k("registers");
  const Ptr<f32> p = k.param<Ptr<f32>>("p");
  const Value<f32> x = k.ld(p);
  k.if_(x > 0.0f, [&] { k.st(p, x * x); });
  const BuiltKernel built = k.build();
  const ptx::Function& f = built.module().functions[0];
  REQUIRE(f.registers.size() == 3);
  CHECK(f.registers[0].count == 2);  // %rd
  CHECK(f.registers[1].count == 2);  // %f
  CHECK(f.registers[2].count == 1);  // %p
}

TEST_CASE("a symbol or special register is not taken for a register of a closed body") {
  // One register class after the other is declared in the loop's body, so that every small id is
  // that of a declaration whose first register is out of scope.
  for (unsigned classes = 0; classes < 4; ++classes) {
    INFO(classes << " classes");
    CHECK_NOTHROW(build_kernel("ids", "sm_90", params(param<Ptr<f32>>("y"), param<u32>("n")),
                               [&](KernelBuilder& k, Ptr<f32> y, Value<u32> n) {
                                 k.for_(0u, n, 1u, [&](Value<u32> i) {
                                   if (classes > 0) (void)k.cvt<f32>(i, Rounding::rn);
                                   if (classes > 1) (void)k.unpack<f16>(i);
                                   if (classes > 2) (void)k.cvt<f64>(i, Rounding::rn);
                                 });
                                 const SharedArray<f32> one = k.shared<f32>(32);
                                 const SharedArray<f32> two = k.shared<f32>(32);
                                 const Value<u32> thread = k.tid_x();
                                 one[thread] = 1.0f;
                                 two[thread] = 2.0f;
                                 k.bar_sync();
                                 y[thread] = one[thread] + two[thread];
                               }));
  }
}

namespace {

/// How often the kernel has that instruction.
std::size_t count(const BuiltKernel& kernel, ptx::Op op) {
  const auto& body = kernel.module().functions[0].body;
  return static_cast<std::size_t>(
      std::count_if(body.begin(), body.end(), [&](const auto& s) { return s.is(op); }));
}

template <class Body>
std::size_t moves_in(const Body& body) {
  return count(build_kernel("moves", "sm_89", {"x", "a"}, body), ptx::Op::mov);
}

}  // namespace

TEST_CASE("a result that is only moved into a variable is written there") {
  CHECK(moves_in([](KernelBuilder& k, Ptr<f32> x, Value<f32> a) {
          auto sum = k.var<f32>(0.0f);  // the only move
          sum = fma(a, a, sum);
          sum = fma(sum, a, sum);
          x[0] = sum;
        }) == 1);
  const auto kernel =
      build_kernel("sum", "sm_89", {"x", "a"}, [](KernelBuilder& k, Ptr<f32> x, Value<f32> a) {
        auto sum = k.var(a * a);
        x[0] = sum;
      });
  CHECK(count(kernel, ptx::Op::mov) == 0);
  CHECK(ptx::verify(kernel.module()).empty());
}

TEST_CASE("a result that something else uses too, or that a guard writes, is moved") {
  CHECK(moves_in([](KernelBuilder& k, Ptr<f32> x, Value<f32> a) {
          const Value<f32> held = a * a;
          auto sum = k.var(held);
          sum += a;
          x[0] = held;
          x[1] = sum;
        }) == 1);
  CHECK(moves_in([](KernelBuilder& k, Ptr<f32> x, Value<f32> a) {
          auto sum = k.var<f32>(0.0f);
          const Pred positive = a > 0.0f;
          k.guarded(positive, [&] { sum = a * a; });
          x[0] = sum;
        }) == 2);
  // Between the result and the move another path joins.
  CHECK(moves_in([](KernelBuilder& k, Ptr<f32> x, Value<f32> a) {
          auto sum = k.var<f32>(0.0f);
          const Value<f32> square = a * a;
          k.label("join");
          sum = square;
          x[0] = sum;
          k.branch_if(a > 0.0f, "join");
        }) == 2);
}

TEST_CASE("parameters named once are those that a list of types declares") {
  const auto body = [](KernelBuilder& k, const Ptr<f32>& x, Value<u32> n, Value<f64>) {
    x[n] = k.constant<f32>(1.0f);
  };
  const auto deduced = build_kernel("named", "sm_89", {"x", "n", "d"}, body);
  const auto listed = build_kernel(
      "named", "sm_89", params(param<Ptr<f32>>("x"), param<u32>("n"), param<f64>("d")), body);
  CHECK(deduced.ptx() == listed.ptx());
  STATIC_REQUIRE(std::is_same_v<decltype(deduced), decltype(listed)>);
}
