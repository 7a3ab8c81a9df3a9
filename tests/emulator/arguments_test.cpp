// tests/emulator/arguments_test.cpp - argument specs: values, forms, what is refused
#include "ptxgen/emulator/host/arguments.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <random>

#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using ptx::Type;

namespace {

std::uint64_t bits_of(std::string_view text) {
  const ArgumentSpec spec = parse_argument(text);
  REQUIRE(spec.value.size() <= 8);
  std::uint64_t value = 0;
  for (std::size_t i = spec.value.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(spec.value[i]);
  }
  return value;
}

std::string error_of(std::string_view text) {
  try {
    (void)parse_argument(text);
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Launch);
    CHECK(error.code == "argument");
    return error.message;
  }
  return "no error";
}

std::string misfit(std::string_view text, Type type, std::uint32_t bytes) {
  try {
    check_argument(parse_argument(text), {"p", type, 0, bytes}, 2);
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Launch);
    CHECK(error.code == "argument");
    return error.message;
  }
  return "fits";
}

// The value of a narrow format's bits, by its definition.
double value_of(std::uint64_t bits, unsigned mantissa, int lowest) {
  const auto fraction = static_cast<double>(bits & ((1u << mantissa) - 1));
  const int exponent = static_cast<int>(bits >> mantissa);
  const int shift = static_cast<int>(mantissa);
  if (exponent == 0) return std::ldexp(fraction, lowest - shift);
  return std::ldexp(fraction + std::ldexp(1.0, shift), exponent - 1 + lowest - shift);
}

std::string decimal(double value) {
  char text[512];
  std::snprintf(text, sizeof text, "%.180e", value);
  return text;
}

}  // namespace

TEST_CASE("integers are decimal, negative or hexadecimal") {
  CHECK(bits_of("u8:0") == 0);
  CHECK(bits_of("u8:255") == 255);
  CHECK(bits_of("u16:0xBEEF") == 0xbeef);
  CHECK(bits_of("u32:4294967295") == 0xffffffffu);
  CHECK(bits_of("u64:18446744073709551615") == ~0ull);
  CHECK(bits_of("u32:-0") == 0);
  CHECK(bits_of("s8:-128") == 0x80);
  CHECK(bits_of("s8:127") == 0x7f);
  CHECK(bits_of("s8:0xff") == 0xff);
  CHECK(bits_of("s16:-1") == 0xffff);
  CHECK(bits_of("s32:-0x10") == 0xfffffff0u);
  CHECK(bits_of("s32:-2147483648") == 0x80000000u);
  CHECK(bits_of("s64:-9223372036854775808") == 0x8000000000000000ull);
  CHECK(bits_of("s64:0x8000000000000000") == 0x8000000000000000ull);
  CHECK(parse_argument("s16:-1").value.size() == 2);
  CHECK(parse_argument("u64:1").value.size() == 8);

  CHECK(error_of("u8:256") == "argument 'u8:256': a .u8 value is between 0 and 255");
  CHECK(error_of("u32:-1") == "argument 'u32:-1': a .u32 value is between 0 and 4294967295");
  CHECK(error_of("s8:-129") == "argument 's8:-129': a .s8 value is between -128 and 127");
  CHECK(error_of("s8:128") == "argument 's8:128': a .s8 value is between -128 and 127");
  CHECK(error_of("s64:9223372036854775808") ==
        "argument 's64:9223372036854775808': a .s64 value is between -9223372036854775808 and "
        "9223372036854775807");
  CHECK(error_of("u64:18446744073709551616") ==
        "argument 'u64:18446744073709551616': a .u64 value is between 0 and 18446744073709551615");
  CHECK(error_of("u8:0x100") ==
        "argument 'u8:0x100': expected at most 2 hexadecimal digits after 0x");
  for (const auto* bad : {"u32:", "u32:-", "u32:1.5", "u32:abc", "u32: 1", "u32:1 ", "u32:+1",
                          "u32:0x", "u32:nan", "s32:--1", "s32:1e3"}) {
    CHECK(error_of(bad).find("is not an integer; write it in decimal or as 0x and digits") !=
          std::string::npos);
  }
}

TEST_CASE("floats are decimal, special or a bit pattern") {
  CHECK(bits_of("f32:1") == 0x3f800000);
  CHECK(bits_of("f32:-2.5e1") == 0xc1c80000);
  CHECK(bits_of("f32:0.1") == 0x3dcccccd);
  CHECK(bits_of("f32:-0") == 0x80000000);
  CHECK(bits_of("f32:1e-45") == 1);
  CHECK(bits_of("f32:1e-60") == 0);
  CHECK(bits_of("f32:0x3f800000") == 0x3f800000);
  CHECK(bits_of("f32:0xFF") == 0xff);
  CHECK(bits_of("f32:nan") == 0x7fc00000);
  CHECK(bits_of("f32:inf") == 0x7f800000);
  CHECK(bits_of("f32:-inf") == 0xff800000);
  CHECK(bits_of("f64:0.1") == 0x3fb999999999999aull);
  CHECK(bits_of("f64:-inf") == 0xfff0000000000000ull);
  CHECK(bits_of("f64:1e-400") == 0);
  CHECK(bits_of("f64:.5") == 0x3fe0000000000000ull);
  CHECK(bits_of("f64:5.E-1") == 0x3fe0000000000000ull);
  CHECK(bits_of("f64:0x3ff0000000000000") == 0x3ff0000000000000ull);
  CHECK(bits_of("f16:1") == 0x3c00);
  CHECK(bits_of("f16:-1.5") == 0xbe00);
  CHECK(bits_of("f16:inf") == 0x7c00);
  CHECK(bits_of("f16:-inf") == 0xfc00);
  CHECK(bits_of("f16:nan") == 0x7e00);
  CHECK(bits_of("f16:0x3c00") == 0x3c00);
  CHECK(bits_of("bf16:1") == 0x3f80);
  CHECK(bits_of("bf16:nan") == 0x7fc0);
  CHECK(bits_of("bf16:-inf") == 0xff80);
  CHECK(bits_of("bf16:3.3895314e38") == 0x7f7f);

  CHECK(
      error_of("f32:1e39") ==
      "argument 'f32:1e39': beyond the largest .f32 value, 3.40282347e38; write inf for infinity");
  CHECK(error_of("f64:-1e999").find("beyond the largest .f64 value") != std::string::npos);
  CHECK(error_of("f64:1e99999999999999999999").find("beyond the largest") != std::string::npos);
  CHECK(bits_of("f64:1e-99999999999999999999") == 0);
  CHECK(error_of("f16:65520").find("beyond the largest .f16 value, 65504") != std::string::npos);
  CHECK(error_of("f16:0x10000") ==
        "argument 'f16:0x10000': expected at most 4 hexadecimal digits after 0x");
  for (const auto* bad : {"f32:", "f32:-", "f32:.", "f32:e5", "f32:1e", "f32:1f", "f32:infinity",
                          "f32:-nan", "f32:+1", "f32:1.2.3", "f32: 1", "f32:--1"}) {
    CHECK(error_of(bad).find("is not a number; write a decimal number, nan, inf, -inf, or 0x") !=
          std::string::npos);
  }
}

TEST_CASE("narrow floats are rounded once, to nearest even") {
  // 2049 is between 2048 and 2050; the digit after it is beyond what a double holds.
  CHECK(bits_of("f16:2049") == 0x6800);
  CHECK(bits_of("f16:2049.0000000000000000000000000000001") == 0x6801);
  CHECK(bits_of("f16:2048.9999999999999999999999999999999") == 0x6800);
  CHECK(bits_of("f16:2051") == 0x6802);
  CHECK(bits_of("f16:2050.9999999999999999999999999999999") == 0x6801);
  CHECK(bits_of("f16:65519.9999999999999999999999999999") == 0x7bff);
  // Half of the smallest subnormal number goes to zero, the next decimal above it does not.
  CHECK(bits_of("f16:2.98023223876953125e-8") == 0);
  CHECK(bits_of("f16:2.9802322387695312500000000000000000001e-8") == 1);
  CHECK(bits_of("f16:8.94069671630859375e-8") == 2);

  struct Row {
    std::string_view name;
    unsigned mantissa;
    int lowest;
    std::uint64_t infinity;
  };
  std::mt19937_64 random(test::seed());
  std::cout << "seed " << test::seed() << '\n';
  for (const Row& row : {Row{"f16:", 10, -14, 0x7c00}, Row{"bf16:", 7, -126, 0x7f80}}) {
    const std::string prefix(row.name);
    for (int i = 0; i < test::count(4000, 40000); ++i) {
      const std::uint64_t bits = random() % (row.infinity - 1);
      const double value = value_of(bits, row.mantissa, row.lowest);
      const double next = value_of(bits + 1, row.mantissa, row.lowest);
      const std::string middle = decimal((value + next) / 2);
      INFO(prefix << middle);
      REQUIRE(bits_of(prefix + decimal(value)) == bits);
      REQUIRE(bits_of(prefix + middle) == bits + bits % 2);
      // The middle, and one unit of a place far after a double's last.
      std::string above = middle;
      above.insert(above.find('e'), "0001");
      REQUIRE(bits_of(prefix + above) == bits + 1);
      const double part = static_cast<double>(random() % 1000) / 1000.0;
      if (part != 0.5) {
        const std::string between = decimal(value + (next - value) * part);
        REQUIRE(bits_of(prefix + between) == bits + (part > 0.5 ? 1 : 0));
      }
    }
  }
}

TEST_CASE("bytes, null and buffers") {
  CHECK(parse_argument("bytes:00ffA1").value ==
        std::vector<std::byte>{std::byte{0}, std::byte{0xff}, std::byte{0xa1}});
  CHECK(error_of("bytes:abc") ==
        "argument 'bytes:abc': expected two hexadecimal digits for each byte, at least one byte");
  CHECK(error_of("bytes:0g") == "argument 'bytes:0g': '0g' is not a pair of hexadecimal digits");
  CHECK(error_of("bytes:").find("at least one byte") != std::string::npos);

  CHECK(parse_argument("null").value == std::vector<std::byte>(8));
  CHECK(parse_argument("null").kind == ArgumentKind::Null);

  const ArgumentSpec in = parse_argument("in:C:/folder/a.bin");
  CHECK(in.kind == ArgumentKind::In);
  CHECK(in.input == "C:/folder/a.bin");
  CHECK(in.is_buffer());
  const ArgumentSpec out = parse_argument("out:1024:C:/y.bin");
  CHECK(out.kind == ArgumentKind::Out);
  CHECK(out.bytes == 1024);
  CHECK(out.output == "C:/y.bin");
  const ArgumentSpec inout = parse_argument("inout:C:/a:b.bin:y.bin");
  CHECK(inout.kind == ArgumentKind::InOut);
  CHECK(inout.input == "C:/a:b.bin");
  CHECK(inout.output == "y.bin");
  const ArgumentSpec zero = parse_argument("zero:0x100:z.bin");
  CHECK(zero.kind == ArgumentKind::Zero);
  CHECK(zero.bytes == 256);
  CHECK(zero.output == "z.bin");
  CHECK(parse_argument("zero:256").output.empty());

  CHECK(error_of("in:") == "argument 'in:': the file is missing; write in:FILE");
  CHECK(error_of("out:0:f") ==
        "argument 'out:0:f': '0' is not a size in bytes, a number of at least 1; write "
        "out:BYTES:FILE");
  CHECK(error_of("zero:x:f").find("write zero:BYTES:FILE") != std::string::npos);
  CHECK(error_of("out:-5:f").find("'-5' is not a size") != std::string::npos);
  CHECK(error_of("out:8:") == "argument 'out:8:': the file after the last colon is missing");
  for (const auto* bad : {"inout:a", "inout::b", "inout:a:", "inout:"}) {
    CHECK(error_of(bad).find("write inout:FILE:FILE2") != std::string::npos);
  }
  for (const auto* bad : {"", "5", "nul", "i32:5", "f8:1", "pred:1", "b32:1", ":1", "NULL"}) {
    CHECK(error_of(bad).find("expected u8:VALUE to u64:VALUE") != std::string::npos);
  }
}

TEST_CASE("a spec has the parameter's size and kind") {
  CHECK(misfit("u32:1", Type::u32, 4) == "fits");
  CHECK(misfit("s32:-1", Type::u32, 4) == "fits");
  CHECK(misfit("u32:1", Type::b32, 4) == "fits");
  CHECK(misfit("f32:1", Type::b32, 4) == "fits");
  CHECK(misfit("f32:1", Type::f32, 4) == "fits");
  CHECK(misfit("f16:1", Type::b16, 2) == "fits");
  CHECK(misfit("f16:1", Type::f16, 2) == "fits");
  CHECK(misfit("f16:1", Type::b8, 2) == "fits");  // .b8 p[2], as nvcc declares a __half
  CHECK(misfit("bytes:00000000", Type::f32, 4) == "fits");
  CHECK(misfit("bytes:000000000000000000000000", Type::b8, 12) == "fits");
  for (const auto* spec : {"null", "in:f", "out:4:f", "zero:4:f", "inout:f:g", "u64:5", "s64:5"}) {
    CHECK(misfit(spec, Type::u64, 8) == "fits");
    CHECK(misfit(spec, Type::b64, 8) == "fits");
    CHECK(misfit(spec, Type::f64, 8).find("the parameter is a float; write f64:VALUE") !=
          std::string::npos);
  }

  CHECK(misfit("f32:1", Type::u32, 4) ==
        "argument 2 (parameter p, .u32): 'f32:1' is a float, the parameter is an integer; write "
        "u32:VALUE");
  CHECK(misfit("u32:1", Type::f32, 4) ==
        "argument 2 (parameter p, .f32): 'u32:1' is an integer, the parameter is a float; write "
        "f32:VALUE");
  CHECK(misfit("bf16:1", Type::f16, 2) ==
        "argument 2 (parameter p, .f16): 'bf16:1' has another floating-point type than the "
        "parameter; write f16:VALUE");
  CHECK(misfit("u32:1", Type::u64, 8) ==
        "argument 2 (parameter p, .u64): 'u32:1' has 4 bytes, the parameter has 8 bytes; write "
        "u64:VALUE, null or a buffer");
  CHECK(misfit("in:f", Type::u32, 4) ==
        "argument 2 (parameter p, .u32): 'in:f' is an address of 8 bytes, the parameter has 4 "
        "bytes; write u32:VALUE");
  CHECK(misfit("u8:1", Type::b16, 2) ==
        "argument 2 (parameter p, .b16): 'u8:1' has 1 byte, the parameter has 2 bytes; write "
        "u16:VALUE, f16:VALUE");
  CHECK(misfit("u64:1", Type::b8, 12) ==
        "argument 2 (parameter p, .b8[12]): 'u64:1' has 8 bytes, the parameter has 12 bytes; "
        "write bytes: and 24 hexadecimal digits");
}
