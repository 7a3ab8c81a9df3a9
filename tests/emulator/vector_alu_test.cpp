// tests/emulator/vector_alu_test.cpp - whole-warp handlers against one lane's semantics
//
// Every handler of every instruction set that this processor offers, for full and partial masks,
// destinations that are sources too, corner and random values: the same bits as the LaneFunction of
// the instruction, and nothing else touched.
#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "emulator/state/machine.hpp"
#include "emulator/vector/alu.hpp"
#include "emulator/vector/isa.hpp"
#include "emulator/vector/lane_steps.hpp"
#include "lane_runner.hpp"
#include "ptx/dice.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

using emulator::Alu;
using emulator::Compare;
using emulator::CompareType;
using emulator::Handler;
using emulator::Isa;
using emulator::kLanes;
using emulator::kNoIndex;
using emulator::Step;

// Types as alu.def spells them, to ask for their sizes.
using u32 = std::uint32_t;
using s32 = std::int32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;

struct AluRow {
  Alu id;
  const char* name;
  std::array<unsigned, 4> bytes;  // of the result, a, b, c
};
constexpr AluRow kAluRows[] = {
#define PTXGEN_ALU(id, result, a, b, c, value) \
  {Alu::id, #id, {sizeof(result), sizeof(a), sizeof(b), sizeof(c)}},
#include "emulator/vector/alu.def"
};

struct AluText {
  Alu id;
  const char* text;
};
constexpr AluText kAluTexts[] = {
    {Alu::Mov32, "mov.b32 %r0, %r1;"},
    {Alu::Mov64, "mov.b64 %rd0, %rd1;"},
    {Alu::Add32, "add.u32 %r0, %r1, %r2;"},
    {Alu::Sub32, "sub.s32 %r0, %r1, %r2;"},
    {Alu::Mul32, "mul.lo.s32 %r0, %r1, %r2;"},
    {Alu::Mad32, "mad.lo.u32 %r0, %r1, %r2, %r3;"},
    {Alu::And32, "and.b32 %r0, %r1, %r2;"},
    {Alu::Or32, "or.b32 %r0, %r1, %r2;"},
    {Alu::Xor32, "xor.b32 %r0, %r1, %r2;"},
    {Alu::Not32, "not.b32 %r0, %r1;"},
    {Alu::Shl32, "shl.b32 %r0, %r1, %r2;"},
    {Alu::ShrU32, "shr.u32 %r0, %r1, %r2;"},
    {Alu::ShrS32, "shr.s32 %r0, %r1, %r2;"},
    {Alu::MinU32, "min.u32 %r0, %r1, %r2;"},
    {Alu::MaxU32, "max.u32 %r0, %r1, %r2;"},
    {Alu::MinS32, "min.s32 %r0, %r1, %r2;"},
    {Alu::MaxS32, "max.s32 %r0, %r1, %r2;"},
    {Alu::Neg32, "neg.s32 %r0, %r1;"},
    {Alu::MulWideU32, "mul.wide.u32 %rd0, %r1, %r2;"},
    {Alu::MulWideS32, "mul.wide.s32 %rd0, %r1, %r2;"},
    {Alu::MadWideU32, "mad.wide.u32 %rd0, %r1, %r2, %rd3;"},
    {Alu::MadWideS32, "mad.wide.s32 %rd0, %r1, %r2, %rd3;"},
    {Alu::Add64, "add.s64 %rd0, %rd1, %rd2;"},
    {Alu::Sub64, "sub.u64 %rd0, %rd1, %rd2;"},
    {Alu::Mul64, "mul.lo.u64 %rd0, %rd1, %rd2;"},
    {Alu::Mad64, "mad.lo.s64 %rd0, %rd1, %rd2, %rd3;"},
    {Alu::And64, "and.b64 %rd0, %rd1, %rd2;"},
    {Alu::Or64, "or.b64 %rd0, %rd1, %rd2;"},
    {Alu::Xor64, "xor.b64 %rd0, %rd1, %rd2;"},
    {Alu::Not64, "not.b64 %rd0, %rd1;"},
    {Alu::Neg64, "neg.s64 %rd0, %rd1;"},
    {Alu::Shl64, "shl.b64 %rd0, %rd1, %r2;"},
    {Alu::ShrU64, "shr.u64 %rd0, %rd1, %r2;"},
    {Alu::ShrS64, "shr.s64 %rd0, %rd1, %r2;"},
    {Alu::Dp4aUU, "dp4a.u32.u32 %r0, %r1, %r2, %r3;"},
    {Alu::Dp4aUS, "dp4a.u32.s32 %r0, %r1, %r2, %r3;"},
    {Alu::Dp4aSU, "dp4a.s32.u32 %r0, %r1, %r2, %r3;"},
    {Alu::Dp4aSS, "dp4a.s32.s32 %r0, %r1, %r2, %r3;"},
    {Alu::BfeU32, "bfe.u32 %r0, %r1, %r2, %r3;"},
    {Alu::BfeS32, "bfe.s32 %r0, %r1, %r2, %r3;"},
    {Alu::Prmt, "prmt.b32 %r0, %r1, %r2, %r3;"},
    {Alu::WidenU32, "cvt.u64.u32 %rd0, %r1;"},
    {Alu::WidenS32, "cvt.s64.s32 %rd0, %r1;"},
    {Alu::Narrow64, "cvt.u32.u64 %r0, %rd1;"},
    {Alu::AddF32, "add.f32 %f0, %f1, %f2;"},
    {Alu::SubF32, "sub.rn.f32 %f0, %f1, %f2;"},
    {Alu::MulF32, "mul.f32 %f0, %f1, %f2;"},
    {Alu::FmaF32, "fma.rn.f32 %f0, %f1, %f2, %f3;"},
    {Alu::AddF64, "add.f64 %fd0, %fd1, %fd2;"},
    {Alu::SubF64, "sub.f64 %fd0, %fd1, %fd2;"},
    {Alu::MulF64, "mul.rn.f64 %fd0, %fd1, %fd2;"},
    {Alu::FmaF64, "fma.rn.f64 %fd0, %fd1, %fd2, %fd3;"},
    {Alu::NegF32, "neg.f32 %f0, %f1;"},
    {Alu::AbsF32, "abs.f32 %f0, %f1;"},
    {Alu::F32FromS32, "cvt.rn.f32.s32 %f0, %r1;"},
    {Alu::F32FromU32, "cvt.rn.f32.u32 %f0, %r1;"},
    {Alu::S32FromF32Nearest, "cvt.rni.s32.f32 %r0, %f1;"},
    {Alu::S32FromF32Zero, "cvt.rzi.s32.f32 %r0, %f1;"},
    {Alu::F32FromF16, "cvt.f32.f16 %f0, %h1;"},
};

std::vector<Isa> offered() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::Baseline, Isa::Avx2, Isa::Avx512}) {
    if (emulator::offers(isa)) found.push_back(isa);
  }
  return found;
}

/// A frame with space for six registers of 8 bytes a lane and some predicates.
class TestFrame {
 public:
  static constexpr u32 slot(unsigned i) { return 64 + i * 256; }
  static constexpr u32 predicate(unsigned i) { return 64 + 6 * 256 + i * 4; }

  TestFrame() {
    const emulator::FrameHead head;
    std::memcpy(bytes_.data(), &head, sizeof head);
  }
  void set(u32 at, unsigned bytes, unsigned lane, u64 value) {
    std::memcpy(bytes_.data() + at + lane * bytes, &value, bytes);
  }
  [[nodiscard]] u64 get(u32 at, unsigned bytes, unsigned lane) const {
    u64 value = 0;
    std::memcpy(&value, bytes_.data() + at + lane * bytes, bytes);
    return value;
  }
  void run(Handler handler, const Step& step, u32 active) {
    emulator::Context context;
    context.frame = bytes_.data();
    context.active = active;
    handler(context, step);
  }
  friend bool operator==(const TestFrame&, const TestFrame&) = default;

 private:
  alignas(64) std::array<std::byte, 64 + 6 * 256 + 64> bytes_{};
};

u64 value_of(Dice& dice, unsigned bits) {
  const std::vector<u64>& corners = corner_bits(bits);
  const u64 value = dice.chance(50) ? corners[dice.below(corners.size())] : dice.bits();
  if (bits == 32 && dice.chance(20)) return value & 0x3f;  // shift distances
  return bits == 64 ? value : value & ((u64{1} << bits) - 1);
}

u32 mask_of(Dice& dice) {
  constexpr u32 kMasks[] = {0xffffffffu, 0u, 1u, 0x80000000u, 0x0000ffffu, 0x55555555u};
  return dice.chance(50) ? dice.pick(kMasks) : static_cast<u32>(dice.bits());
}

constexpr unsigned kGuard = 0, kP = 1, kQ = 2, kChooser = 3;

/// Guard and active lanes of a step; returns the lanes that it changes.
u32 choose_mask(Dice& dice, TestFrame& frame, Step& step, u32& active) {
  active = mask_of(dice);
  step.guard = 0;
  step.guard_flip = 0;
  if (dice.chance(50)) return active;
  const u32 guard = mask_of(dice);
  frame.set(TestFrame::predicate(kGuard), 4, 0, guard);
  step.guard = TestFrame::predicate(kGuard);
  step.guard_flip = dice.chance(50) ? 0xffffffffu : 0;
  return active & (guard ^ step.guard_flip);
}

// Registers of 16 bits have lanes of 4 bytes.
emulator::Slot slot_of(u32 offset, unsigned bytes, unsigned bits) {
  emulator::Slot slot;
  slot.offset = offset;
  slot.lane_bytes = static_cast<std::uint8_t>(bytes);
  slot.bits = slot.register_bits = static_cast<std::uint8_t>(bits);
  return slot;
}

/// The handler that decoding would choose, for operands of these widths.
Handler chosen(const LaneRunner& lane, unsigned result_bytes, std::vector<unsigned> source_bytes) {
  emulator::LaneDetail detail;
  detail.op = lane.op();
  detail.results.push_back(
      slot_of(TestFrame::slot(0), result_bytes, result_bytes == 0 ? 1 : result_bytes * 8));
  for (unsigned i = 0; i < source_bytes.size(); ++i) {
    detail.sources.push_back(
        slot_of(TestFrame::slot(i + 1), source_bytes[i], lane.source_widths()[i]));
  }
  Step step;
  return emulator::vector_handler(detail, step);
}

}  // namespace

TEST_CASE("every whole-warp handler has a row here") {
  REQUIRE(std::size(kAluTexts) == std::size(kAluRows));
  for (std::size_t i = 0; i < std::size(kAluRows); ++i) {
    INFO(kAluRows[i].name);
    CHECK(kAluTexts[i].id == kAluRows[i].id);
  }
}

TEST_CASE("whole-warp arithmetic does what one lane does") {
  Dice dice(seed());
  const std::vector<Isa> isas = offered();
  const int rounds = count(600, 10000);
  for (std::size_t row = 0; row < std::size(kAluRows); ++row) {
    const AluRow& alu = kAluRows[row];
    const LaneRunner lane(kAluTexts[row].text);
    const std::size_t sources = lane.source_widths().size();
    std::vector<unsigned> widths;
    for (std::size_t i = 0; i < sources; ++i) widths.push_back(alu.bytes[i + 1]);
    INFO(lane.text());
    CHECK(chosen(lane, alu.bytes[0], widths) ==
          emulator::handlers(emulator::best_isa()).alu(alu.id));
    for (int round = 0; round < rounds; ++round) {
      TestFrame before;
      Step step;
      // The destination is a register of its own or one of the sources.
      std::array<u32, 3> from{};
      for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t which = std::min(i, sources - 1);
        from[i] = i < sources ? TestFrame::slot(static_cast<unsigned>(i) + 1) : from[which];
      }
      if (sources > 1 && alu.bytes[1] == alu.bytes[2] && dice.chance(15)) from[1] = from[0];
      step.source = from;
      step.result = TestFrame::slot(0);
      const std::size_t alias = dice.below(sources + 2);
      if (alias < sources && alu.bytes[alias + 1] == alu.bytes[0]) step.result = from[alias];
      for (unsigned l = 0; l < kLanes; ++l) {
        before.set(TestFrame::slot(0), alu.bytes[0], l, dice.bits());
        for (std::size_t i = 0; i < sources; ++i) {
          before.set(from[i], alu.bytes[i + 1], l, value_of(dice, lane.source_widths()[i]));
        }
      }
      u32 active = 0;
      const u32 mask = choose_mask(dice, before, step, active);
      TestFrame expected = before;
      for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1u) == 0) continue;
        std::vector<u64> values;
        for (std::size_t i = 0; i < sources; ++i) {
          values.push_back(before.get(from[i], alu.bytes[i + 1], l));
        }
        expected.set(step.result, alu.bytes[0], l, lane(values));
      }
      for (const Isa isa : isas) {
        TestFrame after = before;
        after.run(emulator::handlers(isa).alu(alu.id), step, active);
        if (after == expected) continue;
        for (unsigned l = 0; l < kLanes; ++l) {
          INFO(emulator::name(isa) << ", lane " << l << ", mask " << mask
                                   << ", a = " << before.get(from[0], alu.bytes[1], l)
                                   << ", b = " << before.get(from[1], alu.bytes[2], l));
          CHECK(after.get(step.result, alu.bytes[0], l) ==
                expected.get(step.result, alu.bytes[0], l));
        }
        FAIL("other bytes of the frame have changed, or the lanes above");
      }
    }
  }
}

TEST_CASE("whole-warp comparisons do what one lane does") {
  struct Name {
    Compare comparison;
    const char* name;
  };
  constexpr Name kNames[] = {{Compare::Eq, "eq"},   {Compare::Ne, "ne"},   {Compare::Lt, "lt"},
                             {Compare::Le, "le"},   {Compare::Gt, "gt"},   {Compare::Ge, "ge"},
                             {Compare::EqU, "equ"}, {Compare::NeU, "neu"}, {Compare::LtU, "ltu"},
                             {Compare::LeU, "leu"}, {Compare::GtU, "gtu"}, {Compare::GeU, "geu"}};
  struct TypeName {
    CompareType type;
    const char* name;
    const char* reg;
    unsigned bytes;
  };
  constexpr TypeName kTypes[] = {{CompareType::U32, "u32", "%r", 4},
                                 {CompareType::S32, "s32", "%r", 4},
                                 {CompareType::U64, "u64", "%rd", 8},
                                 {CompareType::S64, "s64", "%rd", 8},
                                 {CompareType::F32, "f32", "%f", 4}};
  Dice dice(seed() + 1);
  int compared = 0;
  for (const TypeName& type : kTypes) {
    for (const Name& name : kNames) {
      const bool unordered = name.comparison >= Compare::EqU;
      if (unordered && type.type != CompareType::F32) continue;
      const std::string reg = type.reg;
      const LaneRunner lane(std::string("setp.") + name.name + "." + type.name + " %p0, " + reg +
                            "1, " + reg + "2;");
      INFO(lane.text());
      CHECK(chosen(lane, 0, {type.bytes, type.bytes}) ==
            emulator::handlers(emulator::best_isa()).compare(name.comparison, type.type));
      for (int round = 0; round < count(300, 5000); ++round) {
        TestFrame before;
        Step step;
        const u32 a = TestFrame::slot(1);
        const u32 b = dice.chance(10) ? a : TestFrame::slot(2);
        step.source = {a, b, dice.chance(50) ? TestFrame::predicate(kQ) : kNoIndex};
        step.result = dice.chance(80) ? TestFrame::predicate(kP) : kNoIndex;
        before.set(TestFrame::predicate(kP), 4, 0, dice.bits());
        before.set(TestFrame::predicate(kQ), 4, 0, dice.bits());
        for (unsigned l = 0; l < kLanes; ++l) {
          const u64 value = value_of(dice, type.bytes * 8);
          before.set(b, type.bytes, l, dice.chance(25) ? value : value_of(dice, type.bytes * 8));
          before.set(a, type.bytes, l, value);
        }
        u32 active = 0;
        const u32 mask = choose_mask(dice, before, step, active);
        u32 set = 0;
        for (unsigned l = 0; l < kLanes; ++l) {
          const u64 bit = lane({before.get(a, type.bytes, l), before.get(b, type.bytes, l)});
          set |= static_cast<u32>(bit & 1u) << l;
        }
        TestFrame expected = before;
        const auto merge = [&](u32 at, u32 bits) {
          if (at == kNoIndex) return;
          const auto old = static_cast<u32>(before.get(at, 4, 0));
          expected.set(at, 4, 0, (old & ~mask) | (bits & mask));
        };
        merge(step.result, set);
        merge(step.source[2], ~set);
        for (const Isa isa : offered()) {
          TestFrame after = before;
          after.run(emulator::handlers(isa).compare(name.comparison, type.type), step, active);
          INFO(emulator::name(isa) << ", mask " << mask);
          REQUIRE(after == expected);
          ++compared;
        }
      }
    }
  }
  CHECK(compared > 1000);
}

TEST_CASE("whole-warp lookup tables do what one lane does") {
  Dice dice(seed() + 3);
  for (u32 table = 0; table < 256; ++table) {
    const LaneRunner lane("lop3.b32 %r0, %r1, %r2, %r3, " + std::to_string(table) + ";");
    CHECK(chosen(lane, 4, {4, 4, 4, 4}) == emulator::handlers(emulator::best_isa()).lookup());
    for (int round = 0; round < count(4, 100); ++round) {
      TestFrame before;
      Step step;
      step.source = {TestFrame::slot(1), TestFrame::slot(2), TestFrame::slot(3)};
      step.result = TestFrame::slot(dice.below(4));
      step.immediate = TestFrame::slot(4);
      for (unsigned l = 0; l < kLanes; ++l) {
        for (unsigned i = 0; i < 4; ++i) before.set(TestFrame::slot(i), 4, l, dice.bits());
        before.set(TestFrame::slot(4), 4, l, table);
      }
      u32 active = 0;
      const u32 mask = choose_mask(dice, before, step, active);
      TestFrame expected = before;
      for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1u) == 0) continue;
        std::vector<u64> values;
        for (unsigned i = 1; i < 5; ++i) values.push_back(before.get(TestFrame::slot(i), 4, l));
        expected.set(step.result, 4, l, lane(values));
      }
      for (const Isa isa : offered()) {
        TestFrame after = before;
        after.run(emulator::handlers(isa).lookup(), step, active);
        INFO(emulator::name(isa) << ", table " << table << ", mask " << mask);
        REQUIRE(after == expected);
      }
    }
  }
}

TEST_CASE("whole-warp selection does what one lane does") {
  Dice dice(seed() + 2);
  for (const unsigned bytes : {4u, 8u}) {
    const LaneRunner lane(bytes == 4 ? "selp.b32 %r0, %r1, %r2, %p3;"
                                     : "selp.b64 %rd0, %rd1, %rd2, %p3;");
    CHECK(chosen(lane, bytes, {bytes, bytes, 0}) ==
          emulator::handlers(emulator::best_isa()).select(bytes));
    for (int round = 0; round < count(2000, 50000); ++round) {
      TestFrame before;
      Step step;
      step.source = {TestFrame::slot(1), TestFrame::slot(2), TestFrame::predicate(kChooser)};
      step.result = TestFrame::slot(dice.below(3));
      step.immediate = dice.chance(50) ? 0xffffffffu : 0u;
      const u32 chooser = mask_of(dice);
      before.set(TestFrame::predicate(kChooser), 4, 0, chooser);
      for (unsigned l = 0; l < kLanes; ++l) {
        for (unsigned i = 0; i < 3; ++i) before.set(TestFrame::slot(i), bytes, l, dice.bits());
      }
      u32 active = 0;
      const u32 mask = choose_mask(dice, before, step, active);
      TestFrame expected = before;
      for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1u) == 0) continue;
        const u64 p = ((chooser ^ static_cast<u32>(step.immediate)) >> l) & 1u;
        expected.set(
            step.result, bytes, l,
            lane({before.get(step.source[0], bytes, l), before.get(step.source[1], bytes, l), p}));
      }
      for (const Isa isa : offered()) {
        TestFrame after = before;
        after.run(emulator::handlers(isa).select(bytes), step, active);
        INFO(emulator::name(isa) << ", mask " << mask);
        REQUIRE(after == expected);
      }
    }
  }
}

}  // namespace ptxgen::test
