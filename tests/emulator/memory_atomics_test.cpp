// tests/emulator/memory_atomics_test.cpp - atom and red, through whole kernels
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "emulator/memory_kernels.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using test::findings_of;
using test::MemoryKernel;

namespace {

using u64 = std::uint64_t;

struct AtomicRow {
  const char* op;
  const char* type;
  unsigned bytes;
  std::function<u64(u64 old, u64 value)> next;
};

template <class T>
u64 bits_of(T value) {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<std::uint32_t>(value);
  } else {
    return std::bit_cast<u64>(value);
  }
}

const std::vector<AtomicRow>& rows() {
  const auto u32 = [](u64 v) { return static_cast<std::uint32_t>(v); };
  const auto s32 = [](u64 v) { return static_cast<std::int32_t>(v); };
  const auto s64 = [](u64 v) { return static_cast<std::int64_t>(v); };
  static const std::vector<AtomicRow> all = {
      {"add", "u32", 4, [=](u64 a, u64 b) { return u32(a + b); }},
      {"add", "s32", 4, [=](u64 a, u64 b) { return u32(a + b); }},
      {"add", "u64", 8, [](u64 a, u64 b) { return a + b; }},
      {"min", "u32", 4, [=](u64 a, u64 b) { return std::min<u64>(u32(a), u32(b)); }},
      {"max", "u32", 4, [=](u64 a, u64 b) { return std::max<u64>(u32(a), u32(b)); }},
      {"min", "s32", 4, [=](u64 a, u64 b) { return s32(a) < s32(b) ? u32(a) : u32(b); }},
      {"max", "s32", 4, [=](u64 a, u64 b) { return s32(a) > s32(b) ? u32(a) : u32(b); }},
      {"min", "u64", 8, [](u64 a, u64 b) { return std::min(a, b); }},
      {"max", "u64", 8, [](u64 a, u64 b) { return std::max(a, b); }},
      {"min", "s64", 8, [=](u64 a, u64 b) { return s64(a) < s64(b) ? a : b; }},
      {"max", "s64", 8, [=](u64 a, u64 b) { return s64(a) > s64(b) ? a : b; }},
      {"and", "b32", 4, [=](u64 a, u64 b) { return u32(a & b); }},
      {"or", "b32", 4, [=](u64 a, u64 b) { return u32(a | b); }},
      {"xor", "b32", 4, [=](u64 a, u64 b) { return u32(a ^ b); }},
      {"and", "b64", 8, [](u64 a, u64 b) { return a & b; }},
      {"or", "b64", 8, [](u64 a, u64 b) { return a | b; }},
      {"xor", "b64", 8, [](u64 a, u64 b) { return a ^ b; }},
      {"exch", "b32", 4, [=](u64, u64 b) { return u32(b); }},
      {"exch", "b64", 8, [](u64, u64 b) { return b; }},
      {"inc", "u32", 4, [=](u64 a, u64 b) { return u32(a) >= u32(b) ? 0 : a + 1; }},
      {"dec", "u32", 4,
       [=](u64 a, u64 b) { return u32(a) == 0 || u32(a) > u32(b) ? u32(b) : a - 1; }},
      {"add", "f32", 4,
       [](u64 a, u64 b) {
         return bits_of(std::bit_cast<float>(static_cast<std::uint32_t>(a)) +
                        std::bit_cast<float>(static_cast<std::uint32_t>(b)));
       }},
      {"add", "f64", 8,
       [](u64 a, u64 b) { return bits_of(std::bit_cast<double>(a) + std::bit_cast<double>(b)); }},
  };
  return all;
}

/// What a lane gives: plain numbers for floats, all kinds of bits for the others.
u64 operand(const AtomicRow& row, unsigned lane) {
  const std::string_view type = row.type;
  if (type == "f32") return bits_of(1.5f * static_cast<float>(lane) - 7.25f);
  if (type == "f64") return bits_of(1e-3 * lane - 0.0071);
  if (std::string_view(row.op) == "inc" || std::string_view(row.op) == "dec") return 3 + lane % 5;
  const u64 bits = (lane + 1) * 0x9e3779b97f4a7c15u;
  return row.bytes == 4 ? bits >> 32 : bits;
}

/// atom or red by all lanes of a warp on word t % 4, against the same one after another.
void check(const AtomicRow& row, bool red, const std::string& space, const std::string& words) {
  CAPTURE(row.op, row.type, red, space, words);
  const bool wide = row.bytes == 8;
  const std::string value = wide ? "%rd1" : "%r1";
  const std::string old = wide ? "%rd2" : "%r2";
  const std::string load = wide ? "u64" : "u32";
  const std::string stride = wide ? "%t8" : "%t4";
  std::string body = "add.u64 %rd10, %in, " + stride + ";\nld.global." + load + " " + value +
                     ", [%rd10+64];\nand.b32 %r10, %t, 3;\nmul.wide.u32 %rd11, %r10, " +
                     std::to_string(row.bytes) + ";\n";
  const bool shared = space == ".shared";
  if (shared) {
    // Shared words begin as the global ones, and end up there again.
    body +=
        "mov.u64 %rd12, tile; add.u64 %rd12, %rd12, %rd11; add.u64 %rd13, %in, %rd11;\n"
        "setp.lt.u32 %p1, %t, 4; @%p1 ld.global." +
        load + " " + old +
        ", [%rd13];\n"
        "@%p1 st.shared." +
        load + " [%rd12], " + old + ";\nbar.warp.sync 0xffffffff;\n";
  } else {
    body += "add.u64 %rd12, %in, %rd11;\n";
  }
  const std::string address = "[%rd12], " + value;
  if (red) {
    body += "red" + words + space + "." + row.op + "." + row.type + " " + address + ";\n";
  } else {
    body += "atom" + words + space + "." + row.op + "." + row.type + " " + old + ", " + address +
            ";\nadd.u64 %rd14, %out, " + stride + ";\nst.global." + load + " [%rd14], " + old +
            ";\n";
  }
  if (shared) {
    body += "bar.warp.sync 0xffffffff; @%p1 ld.shared." + load + " " + old +
            ", [%rd12];\n@%p1 st.global." + load + " [%rd13], " + old + ";\n";
  }
  MemoryKernel kernel(body, ".shared .align 8 .b8 tile[64];");
  std::vector<std::uint8_t> in(64 + 32 * row.bytes);
  u64 state[4];
  for (unsigned i = 0; i < 4; ++i) {
    state[i] = std::string_view(row.op) == "inc" || std::string_view(row.op) == "dec"
                   ? i
                   : operand(row, 40 + i);
    std::memcpy(in.data() + i * row.bytes, &state[i], row.bytes);
  }
  for (unsigned t = 0; t < 32; ++t) {
    const u64 bits = operand(row, t);
    std::memcpy(in.data() + 64 + t * row.bytes, &bits, row.bytes);
  }
  kernel.input(in);
  kernel.output(32 * row.bytes);
  const Result result = kernel.run();
  REQUIRE(findings_of(result).empty());
  const auto olds = kernel.result<std::uint8_t>();
  for (unsigned t = 0; t < 32; ++t) {
    u64 seen = 0;
    std::memcpy(&seen, olds.data() + t * row.bytes, row.bytes);
    if (!red) REQUIRE(seen == state[t % 4]);
    state[t % 4] = row.next(state[t % 4], operand(row, t));
  }
  std::vector<std::uint8_t> after(4 * row.bytes);
  kernel.device().read(kernel.in(), std::as_writable_bytes(std::span(after)));
  for (unsigned i = 0; i < 4; ++i) {
    u64 bits = 0;
    std::memcpy(&bits, after.data() + i * row.bytes, row.bytes);
    REQUIRE(bits == state[i]);
  }
  CHECK(result.counters.atomics == 1);
}

/// One lane: memory `old`, operand `value`; what stays in memory.
u64 one(const std::string& opcode, unsigned bytes, u64 old, u64 value, bool shared = false) {
  const std::string reg = bytes == 8 ? "%rd1" : bytes == 4 ? "%r1" : "%rs1";
  const std::string type = "b" + std::to_string(8 * bytes);
  std::string body = "ld.global." + type + " " + reg + ", [%in+8];\n";
  if (shared) {
    body += "ld.global.b64 %rd5, [%in]; st.shared.b64 [tile], %rd5;\n" + opcode + " [tile], " +
            reg + ";\nld.shared.b64 %rd5, [tile]; st.global.b64 [%in], %rd5;\n";
  } else {
    body += opcode + " [%in], " + reg + ";\n";
  }
  MemoryKernel kernel(body, ".shared .align 8 .b8 tile[8];");
  kernel.input(std::vector<u64>{old, value});
  REQUIRE(findings_of(kernel.run(1)).empty());
  u64 after = 0;
  kernel.device().read(kernel.in(), std::as_writable_bytes(std::span(&after, 1)));
  return after;
}

}  // namespace

TEST_CASE("atom of every operation and type, global, shared and generic") {
  for (const AtomicRow& row : rows()) {
    for (const char* space : {".global", ".shared", ""}) check(row, false, space, "");
  }
}

TEST_CASE("red of every operation and type") {
  for (const AtomicRow& row : rows()) {
    if (std::string_view(row.op) == "exch") continue;
    for (const char* space : {".global", ".shared"}) check(row, true, space, "");
  }
}

TEST_CASE("orders and scopes of atom") {
  const AtomicRow& add = rows().front();
  for (const char* words : {".relaxed.cta", ".acquire.gpu", ".release.sys", ".acq_rel.gpu"}) {
    check(add, false, ".global", words);
  }
}

TEST_CASE("cas of 16, 32, 64 and 128 bits") {
  for (const unsigned bytes : {2u, 4u, 8u}) {
    CAPTURE(bytes);
    const std::string r = bytes == 2 ? "%rs" : bytes == 4 ? "%r" : "%rd";
    const std::string type = "b" + std::to_string(8 * bytes);
    MemoryKernel kernel("mov.b64 %rd9, %t8; cvt.u32.u64 %r9, %t8;\nld.global." + type + " " + r +
                        "1, [%in+8]; ld.global." + type + " " + r +
                        "2, [%in+16];\natom.global.cas." + type + " " + r + "3, [%in], " + r +
                        "1, " + r + "2;\nadd.u64 %rd10, %out, %t8; st.global." + type +
                        " [%rd10], " + r + "3;\n");
    kernel.input(std::vector<u64>{5, 5, 9});
    kernel.output(256);
    REQUIRE(findings_of(kernel.run()).empty());
    u64 after = 0;
    kernel.device().read(kernel.in(), std::as_writable_bytes(std::span(&after, 1)));
    CHECK(after == 9);
    const auto olds = kernel.result<u64>();
    // The first lane finds 5 and changes it, all others find 9.
    for (unsigned t = 0; t < 32; ++t) CHECK((olds[t] & 0xffff) == (t == 0 ? 5 : 9));
  }
  MemoryKernel wide(
      "ld.global.b128 %q1, [%in+16]; ld.global.b128 %q2, [%in+32];\n"
      "atom.global.cas.b128 %q3, [%in], %q1, %q2; st.global.b128 [%out], %q3;\n"
      "atom.global.exch.b128 %q3, [%in], %q1; st.global.b128 [%out+16], %q3;\n"
      "atom.global.cas.b128 %q3, [%in], %q2, %q2; st.global.b128 [%out+32], %q3;\n");
  wide.input(std::vector<u64>{1, 2, 1, 2, 3, 4});
  wide.output(48);
  REQUIRE(findings_of(wide.run(1)).empty());
  CHECK(wide.result<u64>() == std::vector<u64>{1, 2, 3, 4, 1, 2});
}

TEST_CASE("f32 add flushes subnormals in global memory and keeps them in shared") {
  const u64 tiny = 0x00000001;
  CHECK((one("red.global.add.f32", 4, tiny, tiny) & 0xffffffffu) == 0);
  CHECK((one("red.shared.add.f32", 4, tiny, tiny, true) & 0xffffffffu) == 2);
  CHECK((one("red.global.add.f32", 4, 0x80000001u, 0x80000001u) & 0xffffffffu) == 0x80000000u);
  CHECK((one("red.global.add.f32", 4, 0x7f800000u, 0xff800000u) & 0xffffffffu) == 0x7fffffffu);
  CHECK(one("red.global.add.f64", 8, 1, 1) == 2);
  CHECK(one("red.global.add.f64", 8, 0x7ff0000000000000u, 0xfff0000000000000u) ==
        0xfff8000000000000u);
}

TEST_CASE("16-bit floats are added with one rounding, subnormals kept") {
  struct Row {
    const char* type;
    std::uint32_t a, b, sum;
  };
  const Row table[] = {
      {"f16", 0x3c00, 0x3c00, 0x4000},   // 1 + 1 = 2
      {"f16", 0x0001, 0x0001, 0x0002},   // smallest subnormals
      {"f16", 0x03ff, 0x0001, 0x0400},   // into the normal range
      {"f16", 0x6800, 0x3c00, 0x6800},   // 2048 + 1: a tie, to even
      {"f16", 0x6801, 0x3c00, 0x6802},   // 2050 + 1: a tie, to even
      {"f16", 0x7bff, 0x4c00, 0x7c00},   // 65504 + 16: half way, to infinity
      {"f16", 0x7bff, 0x4bff, 0x7bff},   // just below half
      {"f16", 0x7c00, 0xfc00, 0x7fff},   // inf - inf
      {"f16", 0x3c00, 0xbc00, 0x0000},   // 1 - 1 = +0
      {"f16", 0x8000, 0x8000, 0x8000},   // -0 - 0
      {"bf16", 0x3f80, 0x3f80, 0x4000},  // 1 + 1 = 2
      {"bf16", 0x4380, 0x3f80, 0x4380},  // 256 + 1: a tie, to even
      {"bf16", 0x4381, 0x3f80, 0x4382},  // 258 + 1: a tie, to even
      {"bf16", 0x0001, 0x0001, 0x0002},  // subnormals
      {"bf16", 0x7f7f, 0x7f7f, 0x7f80},  // overflow
  };
  for (const Row& row : table) {
    CAPTURE(row.type, row.a, row.b);
    const std::string opcode = "red.global.add.noftz." + std::string(row.type);
    CHECK((one(opcode, 2, row.a, row.b) & 0xffff) == row.sum);
    const u64 pair = one(opcode + "x2", 4, row.a | row.b << 16, row.b | row.a << 16);
    CHECK((pair & 0xffffffffu) == (row.sum | row.sum << 16));
  }
}

TEST_CASE("vector atomics update each element") {
  MemoryKernel kernel(
      "cvt.rn.f32.u32 %f1, %t; add.f32 %f2, %f1, %f1;\n"
      "atom.global.add.v2.f32 {%f3, %f4}, [%in], {%f1, %f2};\n"
      "red.global.add.v4.f32 [%in+16], {%f1, %f1, %f2, %f2};\n"
      "add.u64 %rd1, %out, %t8; st.global.v2.f32 [%rd1], {%f3, %f4};\n");
  kernel.input(std::vector<float>(8, 1.0f));
  kernel.output(256);
  REQUIRE(findings_of(kernel.run()).empty());
  std::vector<float> after(8);
  kernel.device().read(kernel.in(), std::as_writable_bytes(std::span(after)));
  CHECK(after == std::vector<float>{497, 993, 1, 1, 497, 497, 993, 993});
  const auto olds = kernel.result<float>();
  float sum = 1;
  for (unsigned t = 0; t < 32; ++t) {
    CHECK(olds[2 * t] == sum);
    sum += static_cast<float>(t);
  }
}

TEST_CASE("blocks on several host threads count together") {
  MemoryKernel kernel(
      "red.global.add.u32 [%in], 1; red.global.add.u64 [%in+8], 3;\n"
      "red.global.max.u32 [%in+4], %t; red.global.add.f64 [%in+16], 0d3ff0000000000000;\n");
  kernel.input(std::vector<u64>{0, 0, 0});
  Options options;
  options.threads = 4;
  options.parallel = true;
  REQUIRE(findings_of(kernel.run(64, 200, options)).empty());
  std::vector<u64> after(3);
  kernel.device().read(kernel.in(), std::as_writable_bytes(std::span(after)));
  CHECK((after[0] & 0xffffffffu) == 12800);
  CHECK(after[0] >> 32 == 63);
  CHECK(after[1] == 38400);
  CHECK(std::bit_cast<double>(after[2]) == 12800.0);
}

TEST_CASE("atomics on memory that nothing has written") {
  MemoryKernel kernel("red.global.add.u32 [%out], 1;\n");
  kernel.output(4, "argument 0 'sum'");
  const Result result = kernel.run();
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].rule == Rule::UninitializedRead);
  CHECK_THAT(result.findings[0].finding.message, Catch::StartsWith("thread updates 4 bytes at "));
}
