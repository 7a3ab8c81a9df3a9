// tests/emulator/memory_instructions_test.cpp - ld, st, cvta and counters, through whole kernels
#include <catch2/catch.hpp>
#include <random>

#include "emulator/memory/access_counts.hpp"
#include "emulator/memory_kernels.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using test::findings_of;
using test::MemoryKernel;

namespace {

std::vector<std::uint8_t> random_bytes(std::size_t count) {
  std::mt19937_64 random(test::seed());
  std::vector<std::uint8_t> result(count);
  for (auto& one : result) one = static_cast<std::uint8_t>(random());
  return result;
}

struct TypeRow {
  const char* name;
  unsigned bytes;
  bool is_signed;
  /// Registers it may be loaded into, by bits.
  std::vector<unsigned> widths;
};

const std::vector<TypeRow>& types() {
  static const std::vector<TypeRow> all = {
      {"b8", 1, false, {16, 32, 64}},  {"u8", 1, false, {16, 32, 64}},
      {"s8", 1, true, {16, 32, 64}},   {"b16", 2, false, {16, 32, 64}},
      {"u16", 2, false, {16, 32, 64}}, {"s16", 2, true, {16, 32, 64}},
      {"b32", 4, false, {32, 64}},     {"u32", 4, false, {32, 64}},
      {"s32", 4, true, {32, 64}},      {"f32", 4, false, {32}},
      {"b64", 8, false, {64}},         {"u64", 8, false, {64}},
      {"s64", 8, true, {64}},          {"f64", 8, false, {64}},
  };
  return all;
}

std::string register_name(const TypeRow& type, unsigned width, unsigned index) {
  const std::string number = std::to_string(index);
  if (std::string_view(type.name) == "f32") return "%f" + number;
  if (std::string_view(type.name) == "f64") return "%d" + number;
  return (width == 16 ? "%rs" : width == 32 ? "%r" : "%rd") + number;
}

std::uint64_t value_at(const std::vector<std::uint8_t>& bytes, std::size_t at, const TypeRow& type,
                       unsigned width) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, type.bytes);
  const unsigned unused = 64 - type.bytes * 8;
  if (type.is_signed) {
    value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
  }
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}

/// Moves a register of any kind into %rd<index>, zero-extended.
std::string widen(const TypeRow& type, unsigned width, unsigned from, unsigned to) {
  const std::string source = register_name(type, width, from);
  const std::string target = "%rd" + std::to_string(to);
  if (width == 64) return "mov.b64 " + target + ", " + source + ";\n";
  if (std::string_view(type.name) == "f32") {
    return "mov.b32 %r30, " + source + ";\ncvt.u64.u32 " + target + ", %r30;\n";
  }
  return (width == 32 ? "cvt.u64.u32 " : "cvt.u64.u16 ") + target + ", " + source + ";\n";
}

/// Where lane `t` looks, in units of the access.
struct PatternRow {
  const char* name;
  const char* code;  ///< %r0 = index, from %t
  std::uint32_t (*index)(std::uint32_t t);
};
constexpr PatternRow kPatterns[] = {
    {"neighbours", "mov.u32 %r0, %t;", [](std::uint32_t t) { return t; }},
    {"the same", "mov.u32 %r0, 5;", [](std::uint32_t) { return 5u; }},
    {"every second", "shl.b32 %r0, %t, 1;", [](std::uint32_t t) { return 2 * t; }},
    {"backwards", "sub.u32 %r0, 31, %t;", [](std::uint32_t t) { return 31 - t; }},
    {"pairs", "shr.u32 %r0, %t, 1;", [](std::uint32_t t) { return t / 2; }},
    {"mixed up", "mul.lo.u32 %r0, %t, 11; and.b32 %r0, %r0, 31;",
     [](std::uint32_t t) { return t * 11 & 31; }},
};

/// What makes a space of 64 * 32 bytes hold the input, and the register of its base.
struct SpaceRow {
  const char* name;
  const char* variables;
  const char* prepare;
  const char* suffix;
  const char* base;
};
constexpr SpaceRow kSpaces[] = {
    {"global", "", "", ".global", "%in"},
    {"generic global", "", "", "", "%in"},
    {"shared, 64-bit base", ".shared .align 16 .b8 tile[2048];",
     "mov.u64 %rd20, tile; mul.wide.u32 %rd21, %t, 64; add.u64 %rd22, %in, %rd21;\n"
     "add.u64 %rd23, %rd20, %rd21;\n"
     "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd22];\n"
     "st.shared.v4.u32 [%rd23], {%r10, %r11, %r12, %r13};\n"
     "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd22+16];\n"
     "st.shared.v4.u32 [%rd23+16], {%r10, %r11, %r12, %r13};\n"
     "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd22+32];\n"
     "st.shared.v4.u32 [%rd23+32], {%r10, %r11, %r12, %r13};\n"
     "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd22+48];\n"
     "st.shared.v4.u32 [%rd23+48], {%r10, %r11, %r12, %r13};\nbar.sync 0;\n",
     ".shared", "%rd20"},
    {"generic shared", ".shared .align 16 .b8 tile[2048];",
     "cvta.shared.u64 %rd20, tile; mul.wide.u32 %rd21, %t, 64; add.u64 %rd22, %in, %rd21;\n"
     "add.u64 %rd23, %rd20, %rd21;\n"
     "ld.v4.u32 {%r10, %r11, %r12, %r13}, [%rd22];\n"
     "st.v4.u32 [%rd23], {%r10, %r11, %r12, %r13};\n"
     "ld.v4.u32 {%r10, %r11, %r12, %r13}, [%rd22+16];\n"
     "st.v4.u32 [%rd23+16], {%r10, %r11, %r12, %r13};\n"
     "ld.v4.u32 {%r10, %r11, %r12, %r13}, [%rd22+32];\n"
     "st.v4.u32 [%rd23+32], {%r10, %r11, %r12, %r13};\n"
     "ld.v4.u32 {%r10, %r11, %r12, %r13}, [%rd22+48];\n"
     "st.v4.u32 [%rd23+48], {%r10, %r11, %r12, %r13};\nbar.sync 0;\n",
     "", "%rd20"},
};

}  // namespace

TEST_CASE("vector moves, indexed addresses and negated predicates in logic run") {
  MemoryKernel kernel(
      ".reg .v2 .b32 %v, %w;\nadd.u64 %rd2, %out, %t16;\nadd.u32 %r1, %t, 100;\n"
      "mov.v2.b32 {%r2, %r3}, {%t, %r1};\nmov.v2.b32 {%r2, %r3}, {%r3, %r2};\n"
      "mov.v2.b32 %v, {%r2, %r3};\nmov.v2.u32 %w, %v;\nst.global.v2.b32 [%rd2], %w;\n"
      "setp.lt.u32 %p1, %t, 20;\nsetp.lt.u32 %p2, %t, 10;\nxor.pred %p3, %p1, !%p2;\n"
      "selp.u32 %r4, 1, 0, %p3;\nand.pred %p3, !%p2, %p1;\nnot.pred %p3, !%p3;\n"
      "@%p3 add.u32 %r4, %r4, 2;\nmov.pred %p3, !%p1;\n@%p3 add.u32 %r4, %r4, 4;\n"
      "st.shared.u32 cells[1], %r4;\nld.shared.u32 %r5, [cells+4];\n"
      "st.global.v2.b32 [%rd2+8], {%r4, %r5};\n",
      ".shared .u32 cells[4];");
  kernel.input(std::vector<std::uint32_t>(1));
  kernel.output(512);
  Options options;
  options.checks = RuleSet::none();  // all lanes write one cell
  CHECK(kernel.run(32, 1, options).status == Status::Ok);
  const auto out = kernel.result<std::uint32_t>();
  for (std::uint32_t i = 0; i < 32; ++i) {
    const bool p1 = i < 20, p2 = i < 10;
    CHECK(out[4 * i] == i + 100);
    CHECK(out[4 * i + 1] == i);
    CHECK(out[4 * i + 2] == (p1 != !p2 ? 1u : 0u) + (!p2 && p1 ? 2u : 0u) + (p1 ? 0u : 4u));
  }
}

TEST_CASE("a variable may be declared .extern and defined in one module") {
  for (const char* variables : {".extern .global .u32 a[];\n.visible .global .u32 a[2] = {7, 8};",
                                ".visible .global .u32 a[2] = {7, 8};\n.extern .global .u32 a[];",
                                ".extern .global .u32 a[2];\n.extern .global .u32 a[];\n.visible "
                                ".global .u32 a[2] = {7, 8};"}) {
    MemoryKernel kernel(
        "add.u64 %rd2, %out, %t4;\nld.global.u32 %r1, [a+4];\n"
        "st.global.u32 [%rd2], %r1;\n",
        variables);
    kernel.input(std::vector<std::uint32_t>(1));
    kernel.output(128);
    CHECK(findings_of(kernel.run()) == "");
    CHECK(kernel.result<std::uint32_t>() == std::vector<std::uint32_t>(32, 8));
  }
}

TEST_CASE("an element that a register chooses is read and written as ptxas compiles it") {
  // Index 2^32 + t in 64 bits is t; -1 in 32 bits, and 2, is 1; 2^29 elements of 8 bytes are none.
  MemoryKernel kernel(
      "add.u64 %rd2, %out, %t16;\nand.b32 %r1, %t, 3;\n"
      "ld.global.u64 %rd4, table[%r1];\ncvt.u64.u32 %rd5, %r1;\nadd.u64 %rd5, %rd5, 4294967296;\n"
      "ld.global.u64 %rd6, table[%rd5];\nadd.u64 %rd4, %rd4, %rd6;\nmov.u32 %r2, -1;\n"
      "ld.global.u64 %rd6, table[%r2+2];\nadd.u64 %rd4, %rd4, %rd6;\nadd.u32 %r2, %r1, 536870912;\n"
      "ld.global.u64 %rd6, table[%r2];\nadd.u64 %rd4, %rd4, %rd6;\n"
      "st.global.u64 [%rd2], %rd4;\n"
      "cvt.u16.u32 %rs1, %t;\nst.shared.u16 cells[%rs1], %rs1;\nbar.sync 0;\nmov.u64 %rd7, "
      "cells[%r1];\n"
      "ld.shared.u16 %rd8, [%rd7];\nsetp.eq.u32 %p1, %r1, 0;\n"
      "@%p1 ld.const.u8 %rd8, fixed[%r1+1];\nst.global.u64 [%rd2+8], %rd8;\n",
      ".global .u64 table[4] = {1, 20, 300, 4000};\n.shared .u16 cells[32];\n"
      ".const .u8 fixed[2] = {7, 77};");
  kernel.input(std::vector<std::uint32_t>(1));
  kernel.output(32 * 16);
  CHECK(findings_of(kernel.run()) == "");
  const auto out = kernel.result<std::uint64_t>();
  constexpr std::uint64_t kTable[] = {1, 20, 300, 4000};
  for (std::uint32_t t = 0; t < 32; ++t) {
    CHECK(out[2 * t] == 3 * kTable[t % 4] + 20);
    CHECK(out[2 * t + 1] == (t % 4 == 0 ? 77 : t % 4));
  }
}

TEST_CASE("an element beyond its array is a finding of the instruction that reads it") {
  MemoryKernel kernel(
      "mov.u32 %r1, 4;\nld.global.u64 %rd4, table[%r1];\nst.global.u64 [%out], %rd4;\n",
      ".global .u64 table[4];");
  kernel.input(std::vector<std::uint32_t>(1));
  kernel.output(8);
  const Result result = kernel.run(1, 1);
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].rule == Rule::OutOfBounds);
  CHECK_THAT(findings_of(result), Catch::Contains("reads 8 bytes") &&
                                      Catch::Contains("right at the end of variable 'table'"));
}

TEST_CASE("a list of one is loaded and stored as the register alone") {
  MemoryKernel kernel(
      "add.u64 %rd1, %in, %t4;\nadd.u64 %rd2, %out, %t4;\nsetp.lt.u32 %p1, %t, 20;\n"
      "mov.b32 %r1, 7;\n@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];\nmov.b32 %r2, {%r1};\n"
      "mov.b32 {%r3}, %r2;\nst.global.b32 [ %rd2 + 0 ], { %r3 };\n"
      "st.global.b32 [%rd2+128], {%tid.x};\n");
  std::vector<std::uint32_t> in(32);
  for (std::uint32_t i = 0; i < 32; ++i) in[i] = 100 + i;
  kernel.input(in);
  kernel.output(256);
  const Result result = kernel.run();
  CHECK(findings_of(result) == "");
  const auto out = kernel.result<std::uint32_t>();
  for (std::uint32_t i = 0; i < 32; ++i) {
    CHECK(out[i] == (i < 20 ? 100 + i : 7));
    CHECK(out[32 + i] == i);
  }
}

TEST_CASE("ld of every type, width, pattern and space") {
  const auto bytes = random_bytes(2048);
  for (const SpaceRow& space : kSpaces) {
    for (const TypeRow& type : types()) {
      for (const unsigned width : type.widths) {
        std::string body = space.prepare;
        for (const PatternRow& pattern : kPatterns) {
          body += pattern.code;
          body += "\nmul.wide.u32 %rd1, %r0, " + std::to_string(type.bytes) + ";\nadd.u64 %rd1, " +
                  space.base + ", %rd1;\nld" + space.suffix + "." + type.name + " " +
                  register_name(type, width, 2) + ", [%rd1];\n" + widen(type, width, 2, 3) +
                  "add.u64 %rd4, %out, %t8;\nst.global.u64 [%rd4], %rd3;\n" +
                  "add.u64 %out, %out, 256;\n";
        }
        CAPTURE(space.name, type.name, width);
        MemoryKernel kernel(body, space.variables);
        kernel.input(bytes);
        kernel.output(256 * std::size(kPatterns));
        const Result result = kernel.run();
        REQUIRE(findings_of(result).empty());
        const auto values = kernel.result<std::uint64_t>();
        for (std::size_t p = 0; p < std::size(kPatterns); ++p) {
          CAPTURE(kPatterns[p].name);
          for (std::uint32_t t = 0; t < 32; ++t) {
            REQUIRE(values[p * 32 + t] ==
                    value_at(bytes, kPatterns[p].index(t) * type.bytes, type, width));
          }
        }
      }
    }
  }
}

TEST_CASE("ld under a guard leaves the other lanes' registers alone") {
  const auto bytes = random_bytes(2048);
  for (const TypeRow& type : types()) {
    for (const char* guard :
         {"setp.lt.u32 %p1, %t, 7;", "setp.eq.u32 %p1, %t, 30;",
          "and.b32 %r9, %t, 1; setp.ne.u32 %p1, %r9, 0;", "setp.gt.u32 %p1, %t, 40;"}) {
      const unsigned width = type.widths.back();
      CAPTURE(type.name, guard);
      const std::string reg = register_name(type, width, 2);
      const std::string address =
          "mul.wide.u32 %rd1, %t, " + std::to_string(type.bytes) + ";\nadd.u64 %rd1, %in, %rd1;\n";
      MemoryKernel kernel(std::string(guard) + "\n" + address + "ld.global." + type.name + " " +
                          reg + ", [%in];\n@%p1 ld.global." + type.name + " " + reg +
                          ", [%rd1];\n" + widen(type, width, 2, 3) +
                          "add.u64 %rd4, %out, %t8;\nst.global.u64 [%rd4], %rd3;\n");
      kernel.input(bytes);
      kernel.output(256);
      const Result result = kernel.run();
      REQUIRE(findings_of(result).empty());
      const auto values = kernel.result<std::uint64_t>();
      const std::string_view text = guard;
      for (std::uint32_t t = 0; t < 32; ++t) {
        const bool on = text.find("lt") != text.npos   ? t < 7
                        : text.find("eq") != text.npos ? t == 30
                        : text.find("ne") != text.npos ? t % 2 == 1
                                                       : false;
        REQUIRE(values[t] == value_at(bytes, on ? t * type.bytes : 0, type, width));
      }
    }
  }
}

TEST_CASE("vectors of every type are loaded and stored element by element") {
  const auto bytes = random_bytes(4096);
  for (const TypeRow& type : types()) {
    for (const unsigned count : {2u, 4u}) {
      if (count * type.bytes > 16) continue;
      for (const PatternRow& pattern : kPatterns) {
        for (const bool shared : {false, true}) {
          const unsigned width = type.widths.front();
          CAPTURE(type.name, count, pattern.name, shared);
          std::string list = "{";
          for (unsigned i = 0; i < count; ++i) {
            list += (i == 0 ? "" : ", ") + register_name(type, width, i + 1);
          }
          list += "}";
          const std::string vector = ".v" + std::to_string(count) + "." + type.name + " ";
          const std::string size = std::to_string(count * type.bytes);
          std::string body = std::string(pattern.code) + "\nmul.wide.u32 %rd10, %r0, " + size +
                             ";\nadd.u64 %rd11, %in, %rd10;\nmul.wide.u32 %rd12, %t, " + size +
                             ";\nadd.u64 %rd13, %out, %rd12;\nld.global" + vector + list +
                             ", [%rd11];\n";
          if (shared) {
            body += "mov.u64 %rd14, tile;\nadd.u64 %rd14, %rd14, %rd12;\nst.shared" + vector +
                    "[%rd14], " + list + ";\nld.shared" + vector + list + ", [%rd14];\n";
          }
          body += "st.global" + vector + "[%rd13], " + list + ";\n";
          MemoryKernel kernel(body, ".shared .align 16 .b8 tile[1024];");
          kernel.input(bytes);
          kernel.output(32 * count * type.bytes);
          const Result result = kernel.run();
          REQUIRE(findings_of(result).empty());
          const auto stored = kernel.result<std::uint8_t>();
          for (std::uint32_t t = 0; t < 32; ++t) {
            REQUIRE(std::memcmp(stored.data() + t * count * type.bytes,
                                bytes.data() + pattern.index(t) * count * type.bytes,
                                count * type.bytes) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("128 bits, and vectors with sinks or the same register twice") {
  const auto bytes = random_bytes(1024);
  MemoryKernel kernel(
      "add.u64 %rd1, %in, %t16; add.u64 %rd2, %out, %t16;\n"
      "ld.global.b128 %q1, [%rd1];\nst.global.b128 [%rd2], %q1;\n"
      "ld.global.v4.u32 {_, %r1, _, %r2}, [%rd1];\nst.global.v2.u32 [%rd2+512], {%r2, %r1};\n"
      "ld.global.v2.u64 {%rd1, %rd3}, [%rd1];\nst.global.v2.u64 [%rd2+1024], {%rd3, %rd1};\n");
  kernel.input(bytes);
  kernel.output(1536);
  const Result result = kernel.run();
  REQUIRE(findings_of(result).empty());
  const auto stored = kernel.result<std::uint8_t>();
  for (std::uint32_t t = 0; t < 32; ++t) {
    const std::uint8_t* in = bytes.data() + 16 * t;
    CHECK(std::memcmp(stored.data() + 16 * t, in, 16) == 0);
    CHECK(std::memcmp(stored.data() + 512 + 16 * t, in + 12, 4) == 0);
    CHECK(std::memcmp(stored.data() + 516 + 16 * t, in + 4, 4) == 0);
    CHECK(std::memcmp(stored.data() + 1024 + 16 * t, in + 8, 8) == 0);
    CHECK(std::memcmp(stored.data() + 1032 + 16 * t, in, 8) == 0);
  }
}

TEST_CASE("stores of every type in every pattern: the highest lane stays") {
  const auto bytes = random_bytes(2048);
  // Which lane stays is another matter than that they race.
  Options options;
  options.checks.remove(Rule::GlobalRace);
  for (const TypeRow& type : types()) {
    for (const PatternRow& pattern : kPatterns) {
      const unsigned width = type.widths.back();
      CAPTURE(type.name, pattern.name);
      const std::string size = std::to_string(type.bytes);
      MemoryKernel kernel("mul.wide.u32 %rd1, %t, " + size + ";\nadd.u64 %rd1, %in, %rd1;\n" +
                          pattern.code + "\nmul.wide.u32 %rd2, %r0, " + size +
                          ";\nadd.u64 %rd2, %out, %rd2;\nld.global." + type.name + " " +
                          register_name(type, width, 3) + ", [%rd1];\nst.global." + type.name +
                          " [%rd2], " + register_name(type, width, 3) + ";\n");
      kernel.input(bytes);
      kernel.output(512);
      const Result result = kernel.run(32, 1, options);
      REQUIRE(result.status == Status::Ok);
      std::vector<std::uint8_t> expected(512, 0);
      for (std::uint32_t t = 0; t < 32; ++t) {
        std::memcpy(expected.data() + pattern.index(t) * type.bytes, bytes.data() + t * type.bytes,
                    type.bytes);
      }
      CHECK(kernel.result<std::uint8_t>() == expected);
    }
  }
}

TEST_CASE("every order, cache operator and eviction word moves the same bytes") {
  const auto bytes = random_bytes(128);
  for (const char* load : {"ld.weak.global", "ld.volatile.global", "ld.relaxed.gpu.global",
                           "ld.acquire.sys.global", "ld.mmio.relaxed.sys.global", "ld.global.nc",
                           "ld.global.ca", "ld.global.cg", "ld.global.L1::no_allocate",
                           "ld.global.nc.L1::evict_last", "ldu.global", "ld.global.L2::128B"}) {
    for (const char* store :
         {"st.weak.global", "st.volatile.global", "st.relaxed.gpu.global", "st.release.cta.global",
          "st.mmio.relaxed.sys.global", "st.global.wb", "st.global.L1::evict_first"}) {
      CAPTURE(load, store);
      MemoryKernel kernel("add.u64 %rd1, %in, %t4; add.u64 %rd2, %out, %t4;\n" + std::string(load) +
                          ".u32 %r1, [%rd1];\n" + store + ".u32 [%rd2], %r1;\n");
      kernel.input(bytes);
      kernel.output(128);
      REQUIRE(findings_of(kernel.run()).empty());
      REQUIRE(kernel.result<std::uint8_t>() == bytes);
    }
  }
}

TEST_CASE("cache hints are passed over") {
  const auto bytes = random_bytes(128);
  MemoryKernel kernel(
      "add.u64 %rd1, %in, %t4; add.u64 %rd2, %out, %t4;\n"
      "createpolicy.fractional.L2::evict_last.b64 %rd3, 0.5;\n"
      "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd3;\n"
      "st.global.L2::cache_hint.u32 [%rd2], %r1, %rd3;\n"
      "prefetch.global.L2 [%rd1];\n");
  kernel.input(bytes);
  kernel.output(128);
  REQUIRE(findings_of(kernel.run()).empty());
  CHECK(kernel.result<std::uint8_t>() == bytes);
}

TEST_CASE("local memory belongs to each thread") {
  MemoryKernel kernel(
      ".local .align 16 .b8 mine[64];\n"
      "mov.u64 %rd1, mine; cvta.local.u64 %rd2, %rd1;\n"
      "st.local.u32 [mine], %t; mul.lo.u32 %r1, %t, 3; st.local.u16 [mine+8], %r1;\n"
      "st.u8 [%rd2+10], %t;\n"
      "and.b32 %r2, %t, 7; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd4, %rd1, %rd3;\n"
      "st.local.u32 [%rd4+16], %t;\nld.local.u32 %r3, [%rd4+16];\n"
      "ld.u32 %r4, [%rd2]; ld.local.u32 %r5, [%rd1+8]; ld.local.s8 %r6, [mine+10];\n"
      "add.u64 %rd5, %out, %t16; st.global.v4.u32 [%rd5], {%r3, %r4, %r5, %r6};\n");
  kernel.output(64 * 16);
  const Result result = kernel.run(64);
  // Byte 11 was never written, and is part of the 4 bytes at 8.
  CHECK_THAT(findings_of(result),
             Catch::Contains("thread reads 4 bytes at offset 0x8 of the thread's local memory, "
                             "which was never written") &&
                 Catch::Contains("uninitialized-read"));
  CHECK(result.findings.size() == 1);
  const auto values = kernel.result<std::uint32_t>();
  for (std::uint32_t t = 0; t < 64; ++t) {
    CHECK(values[4 * t] == t);
    CHECK(values[4 * t + 1] == t);
    CHECK(values[4 * t + 2] == (3 * t | t << 16));
    CHECK(values[4 * t + 3] == t);
  }
}

TEST_CASE("variables of the module: global, constant, shared") {
  MemoryKernel kernel(
      "ld.const.u32 %r1, [table+8]; mov.u64 %rd1, table; add.u64 %rd2, %rd1, %t4;\n"
      "ld.const.u32 %r2, [%rd2]; cvta.const.u64 %rd3, %rd2; ld.u32 %r3, [%rd3];\n"
      "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [slot], 77; bar.sync 0;\n"
      "ld.shared.u32 %r4, [slot]; ld.global.u32 %r5, [counter+4];\n"
      "add.u32 %r4, %r4, %r5; add.u64 %rd5, %out, %t16;\n"
      "st.global.v4.u32 [%rd5], {%r1, %r2, %r3, %r4};\n",
      ".const .align 4 .u32 table[4] = {10, 20, 30, 40};\n.global .u32 counter[2] = {1, 2};\n"
      ".shared .u32 slot;\n");
  kernel.output(64);
  const Result result = kernel.run(4);
  CHECK(result.status == Status::Ok);
  const auto values = kernel.result<std::uint32_t>();
  for (std::uint32_t t = 0; t < 4; ++t) {
    CHECK(values[4 * t] == 30);
    CHECK(values[4 * t + 1] == 10 * (t + 1));
    CHECK(values[4 * t + 2] == 10 * (t + 1));
    CHECK(values[4 * t + 3] == 79);
  }
}

TEST_CASE("cvta there and back, isspacep, generic accesses that part the lanes") {
  MemoryKernel kernel(
      ".local .align 8 .b8 mine[8];\n"
      "mov.u64 %rd1, tile; cvta.shared.u64 %rd2, %rd1; cvta.to.shared.u64 %rd3, %rd2;\n"
      "mov.u64 %rd4, mine; cvta.local.u64 %rd5, %rd4; cvta.to.local.u64 %rd6, %rd5;\n"
      "cvta.to.global.u64 %rd7, %out; cvta.global.u64 %rd8, %rd7;\n"
      "sub.u64 %rd9, %rd3, %rd1; sub.u64 %rd10, %rd6, %rd4; sub.u64 %rd11, %rd8, %out;\n"
      "or.b64 %rd9, %rd9, %rd10; or.b64 %rd9, %rd9, %rd11; cvt.u32.u64 %r1, %rd9;\n"
      // 1 shared of shared, 2 local of local, 4 global of global; 8 upwards: the false ones.
      "mov.u32 %r2, 0;\n"
      "isspacep.shared %p1, %rd2; @%p1 or.b32 %r2, %r2, 1;\n"
      "isspacep.local %p1, %rd5; @%p1 or.b32 %r2, %r2, 2;\n"
      "isspacep.global %p1, %out; @%p1 or.b32 %r2, %r2, 4;\n"
      "isspacep.global %p1, %rd2; @%p1 or.b32 %r2, %r2, 8;\n"
      "isspacep.shared %p1, %rd5; @%p1 or.b32 %r2, %r2, 16;\n"
      "isspacep.local %p1, %out; @%p1 or.b32 %r2, %r2, 32;\n"
      "isspacep.const %p1, %out; @%p1 or.b32 %r2, %r2, 64;\n"
      // A third of the lanes each: local, shared, global, by one instruction.
      "add.u64 %rd2, %rd2, %t4; add.u64 %rd12, %in, %t4; rem.u32 %r3, %t, 3;\n"
      "setp.eq.u32 %p2, %r3, 0; setp.eq.u32 %p3, %r3, 1;\n"
      "selp.b64 %rd13, %rd2, %rd12, %p3; selp.b64 %rd13, %rd5, %rd13, %p2;\n"
      "mad.lo.u32 %r4, %t, 100, 7; st.u32 [%rd13], %r4; ld.u32 %r5, [%rd13];\n"
      "mov.u32 %r6, 0; @%p2 ld.local.u32 %r6, [mine];\n"
      "add.u64 %rd1, %rd1, %t4; @%p3 ld.shared.u32 %r6, [%rd1];\n"
      "add.u64 %rd14, %out, %t16; st.global.v4.u32 [%rd14], {%r1, %r2, %r5, %r6};\n",
      ".shared .align 16 .b8 tile[128];");
  kernel.input(std::vector<std::uint32_t>(32, 5));
  kernel.output(512);
  const Result result = kernel.run();
  CHECK(findings_of(result).empty());
  const auto values = kernel.result<std::uint32_t>();
  std::vector<std::uint32_t> in(32);
  kernel.device().read(kernel.in(), std::as_writable_bytes(std::span(in)));
  for (std::uint32_t t = 0; t < 32; ++t) {
    CHECK(values[4 * t] == 0);
    CHECK(values[4 * t + 1] == 7);
    CHECK(values[4 * t + 2] == t * 100 + 7);
    CHECK(values[4 * t + 3] == (t % 3 == 2 ? 0 : t * 100 + 7));
    CHECK(in[t] == (t % 3 == 2 ? t * 100 + 7 : 5));
  }
}

TEST_CASE("kernel parameters of all widths, by name and by address") {
  Device device(default_gpu("sm_90"));
  Program program = Program::load(
      device,
      ".version 8.4\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u64 out, .param .u8 a, .param .s16 b, .param .f32 c, "
      ".param .align 16 .b8 d[16])\n{\n.reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f32 %f1;\n"
      "ld.param.u64 %rd1, [out]; ld.param.u8 %r1, [a]; ld.param.s16 %r2, [b];\n"
      "ld.param.f32 %f1, [c]; ld.param.v2.u32 {%r3, %r4}, [d+8];\n"
      "mov.b64 %rd2, d; ld.param.u32 %r5, [%rd2+4]; cvta.param.u64 %rd3, %rd2;\n"
      "ld.u32 %r6, [%rd3];\n"
      "st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2; st.global.f32 [%rd1+8], %f1;\n"
      "st.global.v2.u32 [%rd1+16], {%r3, %r4}; st.global.v2.u32 [%rd1+24], {%r5, %r6};\n"
      "ret;\n}\n");
  const std::uint64_t out = device.allocate(32);
  const Program::Kernel& kernel = *program.find_kernel("k");
  std::vector<std::byte> block(kernel.parameter_bytes);
  const auto put = [&](std::size_t i, const auto& value) {
    std::memcpy(block.data() + kernel.parameters[i].offset, &value, sizeof value);
  };
  put(0, out);
  put(1, std::uint8_t{200});
  put(2, std::int16_t{-3});
  put(3, 1.5f);
  const std::uint32_t d[4] = {11, 22, 33, 44};
  put(4, d);
  Launch launch;
  launch.kernel = "k";
  launch.parameters = block;
  const Result result = run(program, launch);
  CHECK(findings_of(result).empty());
  std::vector<std::uint32_t> values(8);
  device.read(out, std::as_writable_bytes(std::span(values)));
  CHECK(values[0] == 200);
  CHECK(values[1] == 0xfffffffdu);
  CHECK(values[2] == 0x3fc00000u);
  CHECK(values[4] == 33);
  CHECK(values[5] == 44);
  CHECK(values[6] == 22);
  CHECK(values[7] == 11);
}

TEST_CASE("counters of a strided load and a tile, through a launch") {
  struct Row {
    const char* address;  ///< %rd1 from %t
    const char* load;
    std::uint64_t sectors, ideal, bytes;
  };
  const Row rows[] = {
      {"mul.wide.u32 %rd1, %t, 4;", "ld.global.f32 %f1", 4, 4, 128},
      {"mul.wide.u32 %rd1, %t, 8;", "ld.global.f32 %f1", 8, 4, 128},
      {"mul.wide.u32 %rd1, %t, 128;", "ld.global.f32 %f1", 32, 4, 128},
      {"mul.wide.u32 %rd1, %t, 132;", "ld.global.f32 %f1", 32, 4, 128},
      {"mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %rd1, 4;", "ld.global.f32 %f1", 5, 4, 128},
      {"mov.u64 %rd1, 0;", "ld.global.f32 %f1", 1, 1, 128},
      {"mul.wide.u32 %rd1, %t, 8;", "ld.global.f64 %d1", 8, 8, 256},
      {"mul.wide.u32 %rd1, %t, 16;", "ld.global.v4.f32 {%f1, %f2, %f3, %f4}", 16, 16, 512},
      {"mul.wide.u32 %rd1, %t, 32;", "ld.global.v4.f32 {%f1, %f2, %f3, %f4}", 32, 16, 512},
      {"sub.u32 %r1, 63, %t; mul.wide.u32 %rd1, %r1, 4;", "ld.global.f32 %f1", 4, 4, 128},
      {"mul.wide.u32 %rd1, %t, 4; setp.lt.u32 %p1, %t, 9;", "@%p1 ld.global.f32 %f1", 2, 2, 36},
      {"mul.wide.u32 %rd1, %t, 1;", "ld.global.u8 %r1", 1, 1, 32},
  };
  for (const Row& row : rows) {
    CAPTURE(row.address, row.load);
    for (const char* space : {".global", ""}) {
      std::string load = row.load;
      load.replace(load.find(".global"), 7, space);
      MemoryKernel kernel(std::string(row.address) + "\nadd.u64 %rd1, %in, %rd1;\n" + load +
                          ", [%rd1];\n");
      kernel.input(std::vector<std::uint8_t>(16384, 1));
      // The second warp of a block finds what the first one has looked up.
      const Result result = kernel.run(64);
      REQUIRE(findings_of(result).empty());
      // Lanes of the second warp are 32 strides further on; its guard has no lane.
      const bool guarded = row.bytes == 36;
      const unsigned warps = guarded ? 1 : 2;
      CHECK(result.counters.global_load.requests == warps);
      CHECK(result.counters.global_load.sectors == warps * row.sectors);
      CHECK(result.counters.global_load.ideal_sectors == warps * row.ideal);
      CHECK(result.counters.global_load.bytes == warps * row.bytes);
    }
  }
}

TEST_CASE("counters of shared accesses, through a launch") {
  struct Row {
    const char* address;
    const char* store;
    std::uint64_t wavefronts, ideal, bytes;
  };
  const Row rows[] = {
      {"shl.b32 %r1, %t, 2;", "u32 [%r1], %t", 1, 1, 128},
      {"shl.b32 %r1, %t, 7;", "u32 [%r1], %t", 32, 1, 128},
      {"mul.lo.u32 %r1, %t, 132;", "u32 [%r1], %t", 1, 1, 128},
      {"shl.b32 %r1, %t, 3;", "u32 [%r1], %t", 2, 1, 128},
      {"shl.b32 %r1, %t, 3;", "u64 [%r1], %t8", 2, 2, 256},
      {"shl.b32 %r1, %t, 4;", "u64 [%r1], %t8", 4, 2, 256},
      {"shl.b32 %r1, %t, 4;", "v2.u64 [%r1], {%t8, %t8}", 4, 4, 512},
      {"shl.b32 %r1, %t, 7;", "v2.u64 [%r1], {%t8, %t8}", 32, 4, 512},
      {"mov.u32 %r1, %t;", "u8 [%r1], %t", 1, 1, 32},
  };
  for (const Row& row : rows) {
    CAPTURE(row.address, row.store);
    MemoryKernel kernel(
        "mov.u32 %r2, tile;\n" + std::string(row.address) + "\nst.shared." + row.store + ";\n",
        ".shared .align 16 .b8 tile[8192];");
    const Result result = kernel.run();
    REQUIRE(findings_of(result).empty());
    CHECK(result.counters.shared_store.requests == 1);
    CHECK(result.counters.shared_store.wavefronts == row.wavefronts);
    CHECK(result.counters.shared_store.ideal_wavefronts == row.ideal);
    CHECK(result.counters.shared_store.bank_conflicts == row.wavefronts - row.ideal);
    CHECK(result.counters.shared_store.bytes == row.bytes);
    CHECK(result.counters.global_store.requests == 0);
  }
}

TEST_CASE("a launch without counters counts nothing and computes the same") {
  MemoryKernel kernel(
      "add.u64 %rd1, %in, %t4; add.u64 %rd2, %out, %t4;\n"
      "ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1;\n");
  const auto bytes = random_bytes(128);
  kernel.input(bytes);
  kernel.output(128);
  Options options;
  options.counters = false;
  const Result result = kernel.run(32, 1, options);
  CHECK(kernel.result<std::uint8_t>() == bytes);
  CHECK(result.counters.global_load.requests == 0);
  CHECK(result.counters.global_load.sectors == 0);
}

TEST_CASE("every stride counts as the plain definitions say, and moves the right bytes") {
  struct Row {
    unsigned bytes;
    const char* type;
    const char* value;
  };
  for (const Row& row :
       {Row{4, "u32", "%r5"}, Row{8, "u64", "%rd5"}, Row{16, "v4.u32", "{%r5, %r6, %r7, %r8}"}}) {
    // Lane t reads what is `start + t * stride` bytes into a buffer, of which `start` and
    // `stride` are the first words, and puts it as far into shared memory.
    MemoryKernel kernel(
        std::string("ld.global.v2.s32 {%r1, %r2}, [%in]; mul.lo.s32 %r3, %t, %r2;\n"
                    "add.s32 %r3, %r3, %r1; cvt.s64.s32 %rd1, %r3; add.s64 %rd2, %in, %rd1;\n"
                    "mov.u32 %r4, tile; add.u32 %r4, %r4, %r3;\n") +
            "ld.global." + row.type + " " + row.value + ", [%rd2];\nst.shared." + row.type +
            " [%r4], " + row.value + ";\nld.shared." + row.type + " " + row.value +
            ", [%r4];\nadd.u64 %rd3, %out, " +
            (row.bytes == 4   ? "%t4"
             : row.bytes == 8 ? "%t8"
                              : "%t16") +
            ";\nst.global." + row.type + " [%rd3], " + row.value + ";\n",
        ".shared .align 16 .b8 tile[16384];");
    std::vector<std::uint32_t> data(4096);
    for (std::uint32_t i = 0; i < data.size(); ++i) data[i] = 7 * i + 1;
    kernel.input(data);
    kernel.output(32 * row.bytes);
    for (int units = -20; units <= 24; ++units) {
      const int stride = units * static_cast<int>(row.bytes);
      const int start = units < 0 ? 16384 - static_cast<int>(row.bytes) * 8 : 4096 + 16;
      CAPTURE(row.bytes, stride);
      if (start + 31 * stride < 8 || start + 31 * stride + 16 > 16384) continue;
      data[0] = static_cast<std::uint32_t>(start);
      data[1] = static_cast<std::uint32_t>(stride);
      kernel.device().write(kernel.in(), std::as_bytes(std::span(data)));
      std::uint64_t addresses[32], offsets[32];
      for (int t = 0; t < 32; ++t) {
        offsets[t] = static_cast<std::uint64_t>(start + t * stride);
        addresses[t] = kernel.in() + offsets[t];
      }
      Options options;
      // Equal addresses are a race of the same value, which is not asked here.
      options.checks.remove(Rule::SharedRace).remove(Rule::RaceSameValue);
      const Result result = kernel.run(32, 1, options);
      REQUIRE(findings_of(result).empty());
      const auto out = kernel.result<std::uint32_t>();
      for (unsigned t = 0; t < 32; ++t) {
        for (unsigned i = 0; i < row.bytes / 4; ++i) {
          REQUIRE(out[t * row.bytes / 4 + i] == data[offsets[t] / 4 + i]);
        }
      }
      const SectorCount sectors = count_sectors(addresses, 0xffffffffu, row.bytes);
      // The load of start and stride: one sector, one more request.
      CHECK(result.counters.global_load.requests == 2);
      CHECK(result.counters.global_load.sectors == sectors.sectors + 1);
      CHECK(result.counters.global_load.ideal_sectors == sectors.ideal + 1);
      const WavefrontCount fronts = count_wavefronts(offsets, 0xffffffffu, row.bytes);
      for (const SharedCounters& shared :
           {result.counters.shared_load, result.counters.shared_store}) {
        CHECK(shared.wavefronts == fronts.wavefronts);
        CHECK(shared.ideal_wavefronts == fronts.ideal);
        CHECK(shared.bank_conflicts == fronts.wavefronts - fronts.ideal);
      }
    }
  }
}
