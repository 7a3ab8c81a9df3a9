// tests/emulator/track_test.cpp - undefined bits of one instruction against all completions
#include <catch2/catch.hpp>

#include <bit>
#include <optional>
#include <random>

#include "emulator/machine/track.hpp"
#include "lane_runner.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using emulator::Slot;
using emulator::TrackDetail;

namespace {

/// One instruction, and how undefined bits go through it.
struct Tracked {
  TrackDetail detail;
  std::vector<unsigned> source_widths;
  std::vector<unsigned> result_widths;

  explicit Tracked(const std::string& text) {
    INFO(text);
    const ptx::Module module = test::kernel_with(text);
    const ptx::Instruction& instruction = *test::instructions_of(module).front();
    const ptx::Function& function = module.functions.back();
    const auto operands = function.operands_of(instruction);
    detail.function = emulator::lane_function(instruction, detail.op);
    REQUIRE(detail.function != nullptr);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const ptx::OperandSpec* spec = ptx::operand_spec(function, instruction, i);
      REQUIRE(spec != nullptr);
      const unsigned width = ptx::bits(ptx::operand_type(instruction, *spec));
      const unsigned elements = operands[i].kind == ptx::OperandKind::Vector
                                    ? static_cast<unsigned>(function.elements(operands[i]).size())
                                    : 1;
      const bool result = spec->role == ptx::OperandRole::Destination;
      for (unsigned e = 0; e < elements; ++e) {
        Slot slot;
        slot.bits = slot.register_bits = static_cast<std::uint8_t>(width);
        (result ? detail.results : detail.sources).push_back({slot, {}});
        (result ? result_widths : source_widths).push_back(width);
        constants.push_back(operands[i].kind == ptx::OperandKind::Integer
                                ? std::optional(operands[i].value)
                                : std::nullopt);
        if (result) constants.pop_back();
      }
    }
    detail.op.source_count = static_cast<std::uint8_t>(source_widths.size());
    detail.op.result_count = static_cast<std::uint8_t>(result_widths.size());
    emulator::choose_track(instruction, operands, detail);
  }

  [[nodiscard]] std::vector<std::uint64_t> run(const std::vector<std::uint64_t>& sources) const {
    std::vector<std::uint64_t> results(64);
    detail.function(detail.op, sources.data(), results.data());
    results.resize(result_widths.size());
    return results;
  }
  [[nodiscard]] std::vector<std::uint64_t> undefined(const std::vector<std::uint64_t>& values,
                                                     const std::vector<std::uint64_t>& bits) const {
    std::vector<std::uint64_t> results(64);
    emulator::undefined_results(detail, values.data(), bits.data(), results.data());
    results.resize(result_widths.size());
    return results;
  }

  std::vector<std::optional<std::uint64_t>> constants;  ///< by source
};

std::uint64_t low(unsigned bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

/// The value with its undefined bits, in their order, those of `choice`.
std::uint64_t completed(std::uint64_t value, std::uint64_t undefined, std::uint64_t& choice) {
  for (; undefined != 0; undefined &= undefined - 1) {
    const std::uint64_t bit = undefined & (~undefined + 1);
    value = (choice & 1) != 0 ? value | bit : value & ~bit;
    choice >>= 1;
  }
  return value;
}

struct Row {
  const char* text;
  bool exact;  ///< a bit is called undefined only if it can differ
};

constexpr Row kRows[] = {
    {"mov.b32 %r0, %r1;", true},
    {"mov.b64 %rd0, {%r1, %r2};", true},
    {"mov.b64 {%r1, %r2}, %rd0;", true},
    {"mov.b32 {%h1, %h2}, %r0;", true},
    {"mov.b64 {%h1, %h2, %h3, %h4}, %rd0;", true},
    {"and.b32 %r0, %r1, %r2;", true},
    {"or.b64 %rd0, %rd1, %rd2;", true},
    {"xor.b16 %h0, %h1, %h2;", true},
    {"not.b32 %r0, %r1;", true},
    {"and.pred %p0, %p1, %p2;", true},
    {"or.pred %p0, %p1, %p2;", true},
    {"xor.pred %p0, %p1, %p2;", true},
    {"not.pred %p0, %p1;", true},
    {"lop3.b32 %r0, %r1, %r2, %r3, 0xca;", true},
    {"lop3.b32 %r0, %r1, %r2, %r3, 0x1d;", true},
    {"lop3.b32 %r0, %r1, %r2, %r3, 0x40;", true},
    {"shl.b32 %r0, %r1, 7;", true},
    {"shl.b64 %rd0, %rd1, 33;", true},
    {"shr.u32 %r0, %r1, 5;", true},
    {"shr.s32 %r0, %r1, 29;", true},
    {"shr.s64 %rd0, %rd1, 60;", true},
    {"shf.l.wrap.b32 %r0, %r1, %r2, 9;", true},
    {"shf.r.clamp.b32 %r0, %r1, %r2, 30;", true},
    {"bfe.u32 %r0, %r1, 3, 9;", true},
    {"bfe.s32 %r0, %r1, 20, 6;", true},
    {"bfi.b32 %r0, %r1, %r2, 4, 11;", true},
    {"bfi.b64 %rd0, %rd1, %rd2, 40, 20;", true},
    {"prmt.b32 %r0, %r1, %r2, 0x7531;", true},
    {"prmt.b32 %r0, %r1, %r2, 0x9c04;", true},
    {"prmt.b32.f4e %r0, %r1, %r2, 3;", true},
    {"brev.b32 %r0, %r1;", true},
    {"cvt.u64.u32 %rd0, %r1;", true},
    {"cvt.s64.s32 %rd0, %r1;", true},
    {"cvt.u16.u32 %h0, %r1;", true},
    {"cvt.s32.s16 %r0, %h1;", true},
    {"shl.b32 %r0, %r1, %r2;", false},
    {"shr.u32 %r0, %r1, %r2;", false},
    {"prmt.b32 %r0, %r1, %r2, %r3;", false},
    {"bfe.u32 %r0, %r1, %r2, %r3;", false},
    {"bfi.b32 %r0, %r1, %r2, %r3, %r4;", false},
    {"selp.b32 %r0, %r1, %r2, %p0;", false},
    {"add.u32 %r0, %r1, %r2;", false},
    {"add.sat.s32 %r0, %r1, %r2;", false},
    {"sub.s64 %rd0, %rd1, %rd2;", false},
    {"neg.s32 %r0, %r1;", false},
    {"mul.lo.u32 %r0, %r1, %r2;", false},
    {"mul.hi.u32 %r0, %r1, %r2;", false},
    {"mul.wide.u32 %rd0, %r1, %r2;", false},
    {"mul.wide.s16 %r0, %h1, %h2;", false},
    {"mad.lo.s32 %r0, %r1, %r2, %r3;", false},
    {"mad.wide.u32 %rd0, %r1, %r2, %rd3;", false},
    {"mad.hi.s32 %r0, %r1, %r2, %r3;", false},
    {"min.s32 %r0, %r1, %r2;", false},
    {"abs.s32 %r0, %r1;", false},
    {"popc.b32 %r0, %r1;", false},
    {"clz.b32 %r0, %r1;", false},
    {"setp.lt.u32 %p0, %r1, %r2;", false},
    {"setp.eq.and.s32 %p0|%p1, %r1, %r2, %p2;", false},
    {"slct.s32.s32 %r0, %r1, %r2, %r3;", false},
    {"cvt.sat.u8.s32 %r0, %r1;", false},
    {"cvt.rn.f32.u32 %f0, %r1;", false},
    {"cvt.rn.f16x2.f32 %r0, %f1, %f2;", false},
    {"cvt.rn.satfinite.e4m3x2.f32 %h0, %f1, %f2;", false},
    {"cvt.rn.f16x2.e4m3x2 %r0, %h1;", false},
    {"add.f16x2 %r0, %r1, %r2;", false},
    {"fma.rn.bf16x2 %r0, %r1, %r2, %r3;", false},
    {"min.u16x2 %r0, %r1, %r2;", false},
    {"add.f32 %f0, %f1, %f2;", false},
    {"dp4a.u32.u32 %r0, %r1, %r2, %r3;", false},
};

/// At most `count` bits of those that the sources have, constants left alone.
std::vector<std::uint64_t> some_bits(const Tracked& tracked, unsigned count,
                                     std::mt19937_64& dice) {
  std::vector<std::uint64_t> bits(tracked.source_widths.size());
  const bool near = dice() % 2 == 0;  // in one source, next to each other
  const std::size_t only = dice() % bits.size();
  const std::uint64_t start = dice();
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t source = near ? only : dice() % bits.size();
    if (tracked.constants[source]) continue;
    const std::uint64_t at = near ? start + i : dice();
    bits[source] |= std::uint64_t{1} << (at % tracked.source_widths[source]);
  }
  return bits;
}

}  // namespace

TEST_CASE("every result bit that undefined bits can change is undefined") {
  std::mt19937_64 dice(test::seed());
  for (const Row& row : kRows) {
    INFO(row.text);
    const Tracked tracked(row.text);
    for (int round = 0; round < 300; ++round) {
      std::vector<std::uint64_t> values;
      for (std::size_t i = 0; i < tracked.source_widths.size(); ++i) {
        const std::uint64_t value = dice() >> (dice() % 3 == 0 ? 58 : 0);
        values.push_back(tracked.constants[i].value_or(value) & low(tracked.source_widths[i]));
      }
      const std::vector<std::uint64_t> bits =
          some_bits(tracked, static_cast<unsigned>(1 + dice() % 6), dice);
      const std::vector<std::uint64_t> reported = tracked.undefined(values, bits);
      // All completions: bits that are not the same in all of them differ.
      const std::vector<std::uint64_t> first = tracked.run(values);
      std::vector<std::uint64_t> differ(first.size());
      unsigned total = 0;
      for (const std::uint64_t each : bits) total += static_cast<unsigned>(std::popcount(each));
      for (std::uint64_t choice = 0; choice < std::uint64_t{1} << total; ++choice) {
        std::uint64_t left = choice;
        std::vector<std::uint64_t> sources;
        for (std::size_t i = 0; i < values.size(); ++i) {
          sources.push_back(completed(values[i], bits[i], left));
        }
        const std::vector<std::uint64_t> results = tracked.run(sources);
        for (std::size_t i = 0; i < results.size(); ++i) differ[i] |= results[i] ^ first[i];
      }
      for (std::size_t i = 0; i < first.size(); ++i) {
        CAPTURE(i, values, bits, reported[i], differ[i]);
        if ((differ[i] & ~reported[i]) != 0) FAIL("a bit can differ and is called defined");
        if (row.exact && reported[i] != differ[i])
          FAIL("a bit cannot differ and is called undefined");
      }
    }
    const std::vector<std::uint64_t> none(tracked.source_widths.size());
    for (const std::uint64_t each : tracked.undefined(none, none)) CHECK(each == 0);
  }
}
