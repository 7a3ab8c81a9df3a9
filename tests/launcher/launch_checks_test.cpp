// tests/launcher/launch_checks_test.cpp - what is refused before a launch, in words
#include <catch2/catch.hpp>
#include <limits>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/launch/launch_checks.hpp"

using namespace ptxgen;

namespace {

DeviceSpan<f32> span(std::uint64_t address, std::uint64_t count) { return {{address}, count}; }

// What `gemv` checks for k = 5, n = 7, as "code: message".
std::string refusal(const GemvOperands& operands, GemvProblem problem = {.k = 5, .n = 7}) {
  try {
    kDescription<GemvProblem>.check_of(&problem, &operands);
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Launch);
    CHECK(error.kernel == "gemv");
    return error.code + ": " + error.message;
  }
  return "fits";
}
std::string refusal(DeviceSpan<f32> y, DeviceSpan<f32> a, DeviceSpan<f32> x,
                    GemvProblem problem = {.k = 5, .n = 7}) {
  return refusal({.y = y, .a = a, .x = x}, problem);
}

constexpr std::uint64_t kY = 0x1000, kA = 0x2000, kX = 0x3000;

}  // namespace

TEST_CASE("buffers of exactly the right size and larger ones fit") {
  CHECK(refusal(span(kY, 7), span(kA, 35), span(kX, 5)) == "fits");
  CHECK(refusal(span(kY, 700), span(kA, 3500), span(kX, 500)) == "fits");
}

TEST_CASE("a buffer that is too small is named with both sizes") {
  CHECK(refusal(span(kY, 6), span(kA, 35), span(kX, 5)) ==
        "buffer-size: y holds 6 elements (24 bytes), but k = 5, n = 7 needs 7 elements (28 bytes); "
        "pass a larger buffer or a smaller shape");
  CHECK(refusal(span(kY, 7), span(kA, 34), span(kX, 5)).starts_with("buffer-size: a holds 34 "));
  CHECK(refusal(span(kY, 7), span(kA, 35), span(kX, 1))
            .starts_with("buffer-size: x holds 1 element (4 bytes), but k = 5, n = 7 needs 5 "
                         "elements (20 bytes)"));
}

TEST_CASE("a null pointer is refused where something is needed, and only there") {
  CHECK(refusal(span(0, 7), span(kA, 35), span(kX, 5)) ==
        "null-pointer: y is a null pointer, but k = 5, n = 7 needs 7 elements (28 bytes); pass "
        "device memory");
  CHECK(refusal(span(kY, 7), {}, span(kX, 5)).starts_with("null-pointer: a is"));
  CHECK(refusal(span(kY, 7), {}, {}, {.k = 0, .n = 7}) == "fits");
}

TEST_CASE("an address between elements is refused") {
  CHECK(refusal(span(kY, 7), span(kA + 2, 35), span(kX, 5)) ==
        "misaligned: a is at 0x2002, which is not a multiple of its 4-byte elements; pass an "
        "aligned address");
}

TEST_CASE("an output that overlaps an input is refused, byte for byte") {
  CHECK(refusal(span(kX + 16, 7), span(kA, 35), span(kX, 5)) ==
        "aliasing: y at 0x3010 (28 bytes) overlaps x at 0x3000 (20 bytes); the kernel reads x "
        "while it writes y: give y separate memory");
  CHECK(refusal(span(kX + 20, 7), span(kA, 35), span(kX, 5)) == "fits");
  CHECK(refusal(span(kX - 28, 7), span(kA, 35), span(kX, 5)) == "fits");
  CHECK(refusal(span(kX - 24, 7), span(kA, 35), span(kX, 5)).starts_with("aliasing: "));
  CHECK(refusal(span(kA + 136, 7), span(kA, 35), span(kX, 5)).starts_with("aliasing: "));
  // Inputs may share memory, and what is after the part that is needed does not matter.
  CHECK(refusal(span(kY, 7), span(kA, 35), span(kA, 35)) == "fits");
  CHECK(refusal(span(kX + 20, 7), span(kA, 35), span(kX, 100)) == "fits");
}

TEST_CASE("an output may be an input itself where that is allowed, but no shifted part of it") {
  const GemvProblem problem{.k = 5, .n = 7, .residual = true};
  const auto with_residual = [&](std::uint64_t at) {
    return refusal({.y = span(kY, 7), .a = span(kA, 35), .x = span(kX, 5), .residual = span(at, 7)},
                   problem);
  };
  CHECK(with_residual(kY) == "fits");
  CHECK(with_residual(kY + 4) ==
        "aliasing: y at 0x1000 (28 bytes) overlaps residual at 0x1004 (28 bytes); y may be "
        "residual itself, but not a shifted part of it");
}

TEST_CASE(
    "operands that the shape does not have, and factors of an unscaled problem, are refused") {
  GemvOperands operands{.y = span(kY, 7), .a = span(kA, 35), .x = span(kX, 5)};
  operands.bias = span(0x5000, 7);
  CHECK(refusal(operands) ==
        "arguments: there is bias, but k = 5, n = 7 has no such operand; leave it empty, or set "
        "the parameter that adds it");
  CHECK(refusal(operands, {.k = 5, .n = 7, .bias = true}) == "fits");
  operands.bias = {};
  operands.alpha = 2;
  CHECK(refusal(operands) ==
        "arguments: alpha is not 1 or beta not 0, but the problem is not scaled; set "
        "GemvProblem::scaled");
}

TEST_CASE("memory of another element type is refused; raw memory and bits of the width are taken") {
  const auto with_x = [](DeviceRange x) {
    return refusal({.y = span(kY, 7), .a = span(kA, 35), .x = x});
  };
  CHECK(with_x(DeviceSpan<u32>{{kX}, 5}) ==
        "operand-type: x is memory of u32, but k = 5, n = 7 takes f32; pass memory of that type, "
        "or a DeviceRange without one");
  CHECK(with_x(DeviceSpan<b32>{{kX}, 5}) == "fits");
  CHECK(with_x(DeviceSpan<u8>{{kX}, 20}) == "fits");
  CHECK(with_x({kX, 20}) == "fits");
}

TEST_CASE("an element type that a kernel does not serve is refused, typed too") {
  const auto vadd = [](const Vadd& kernel) -> std::string {
    const DeviceRange memory{kY, 4096};
    const Vadd::Operands operands{.c = memory, .a = memory, .b = memory};
    try {
      kDescription<Vadd>.check_of(&kernel, &operands);
    } catch (const Error& error) {
      return error.code + ": " + error.message;
    }
    return "fits";
  };
  CHECK(vadd({.n = 7, .type = ElementType::f16}) == "fits");
  CHECK(vadd({.n = 7, .type = ElementType::q4_k}) == "bad-parameter: type may be f32|f16|bf16");
  GemvProblem problem;
  problem.weights = ElementType::s32;
  try {
    check(problem);
    FAIL("weights of s32 were accepted");
  } catch (const Error& error) {
    CHECK(error.message ==
          "weights is s32; it may be f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k or "
          "q6_k");
  }
}

TEST_CASE("sizes near the end of addresses do not wrap around") {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  CHECK(refusal(span(kMax - 7, kMax), span(kA, 35), span(kX, 5)) ==
        "buffer-size: y at 0xfffffffffffffff8 would end past the last address: k = 5, n = 7 "
        "needs 7 elements (28 bytes)");
  const std::uint64_t k = 0xffffffffu;
  CHECK(refusal(span(kY, k), span(kA, 35), span(kX, k), {.k = 0xffffffffu, .n = 0xffffffffu})
            .find("needs 18446744065119617025 elements (more than 2^64 bytes)") !=
        std::string::npos);
}

TEST_CASE("the argument block of another's kernel has the signature's size and aligned pointers") {
  const auto kernel = build_kernel(
      "three", "sm_89", params(param<Ptr<f64>>("out"), param<u32>("n"), param<Ptr<u8>>("bytes")),
      [](KernelBuilder&, Ptr<f64> out, Value<u32>, Ptr<u8>) { out[0] = 1.0; });
  const auto refused = [&](std::span<const std::byte> block) -> std::string {
    try {
      check_block(kernel.name(), kernel.signature(), block);
    } catch (const Error& error) {
      return error.code + ": " + error.message;
    }
    return "fits";
  };
  const auto good = kernel.pack(DeviceAddress<f64>{8}, 1u, DeviceAddress<u8>{3});
  CHECK(refused({good.data(), good.size()}) == "fits");
  CHECK(refused({good.data(), good.size() - 1}) ==
        "arguments: the argument block has 23 bytes, but the kernel's 3 parameters take 24; use "
        "Kernel<...>::pack");
  const auto odd = kernel.pack(DeviceAddress<f64>{12}, 1u, DeviceAddress<u8>{3});
  CHECK(refused({odd.data(), odd.size()}) ==
        "misaligned: parameter out is 0xc, which is not a multiple of its 8-byte elements; pass an "
        "aligned address");
}
