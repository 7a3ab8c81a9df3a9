// tests/analysis/induction_trace_test.cpp - predicted trip counts against loops that are run
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "analysis/facts.hpp"
#include "analysis/ordinal.hpp"
#include "ptxgen/analysis/induction.hpp"
#include "ptxgen/emulator.hpp"
#include "snippets.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::analysis;

namespace {

enum class Form { Bottom, BottomBefore, Top };

// A loop of one variable with numbers to be filled in.
struct Shape {
  Form form = Form::Bottom;
  unsigned bits = 32;
  bool is_signed = false;
  Relation relation = Relation::Lt;  // goes on while variable relation bound
  std::uint64_t step = 1;
  std::uint64_t start = 0, bound = 0;
  bool constant_start = true, constant_bound = true;
  bool guarded = false;  // by start relation bound
  bool swapped = false;
};

std::uint64_t mask(const Shape& s) { return Ordinal{s.bits, false, false}.mask(); }

bool holds(const Shape& s, std::uint64_t a, std::uint64_t b) {
  const Ordinal order{s.bits, s.is_signed, false};
  const std::uint64_t x = order(a), y = order(b);
  switch (s.relation) {
    case Relation::Lt:
      return x < y;
    case Relation::Le:
      return x <= y;
    case Relation::Gt:
      return x > y;
    case Relation::Ge:
      return x >= y;
    case Relation::Eq:
      return x == y;
    case Relation::Ne:
      return x != y;
  }
  return false;
}

constexpr std::uint64_t kMax = 3000;

struct Run {
  std::uint64_t iterations = 0;  // how often the test was made
  bool ended = false, wrapped = false;
};

// The loop itself, by hand. `wrapped`: an iteration was begun whose value is not the last one plus
// step.
Run interpret(const Shape& s) {
  Run run;
  std::uint64_t value = s.start;
  const bool down = (s.step >> (s.bits - 1) & 1) != 0;
  const Ordinal order{s.bits, s.is_signed, down};
  while (run.iterations < kMax) {
    const std::uint64_t next = (value + s.step) & mask(s);
    ++run.iterations;
    if (!holds(s, s.form == Form::Bottom ? next : value, s.bound)) {
      run.ended = true;
      return run;
    }
    if (order(next) < order(value)) run.wrapped = true;
    value = next;
  }
  return run;
}

std::string text_of(const Shape& s) {
  const std::string r = s.bits == 64 ? "%rd" : "%r";
  const std::string bits = std::to_string(s.bits);
  const std::string type = (s.is_signed ? ".s" : ".u") + bits;
  const auto number = [&](std::uint64_t value) {
    return s.bits == 64 ? std::to_string(static_cast<std::int64_t>(value))
                        : std::to_string(static_cast<std::int32_t>(value));
  };
  constexpr const char* kWords[] = {"lt", "le", "gt", "ge", "eq", "ne"};
  const auto word = [&](Relation relation) { return kWords[static_cast<unsigned>(relation)]; };
  const std::string bound = s.constant_bound ? number(s.bound) : r + "2";
  const auto compare = [&](const std::string& p, Relation relation, const std::string& value) {
    if (s.swapped) {
      return "setp." + std::string(word(mirrored(relation))) + type + " " + p + ", " + bound +
             ", " + value + ";\n";
    }
    return "setp." + std::string(word(relation)) + type + " " + p + ", " + value + ", " + bound +
           ";\n";
  };
  const std::string v = r + "1";
  std::string text;
  if (!s.constant_start) text += "ld.shared.b" + bits + " " + v + ", [tile];\n";
  if (!s.constant_bound) text += "ld.shared.b" + bits + " " + r + "2, [tile+8];\n";
  if (s.constant_start) text += "mov.b" + bits + " " + v + ", " + number(s.start) + ";\n";
  text += "mov.b64 %rd9, 0;\n";
  if (s.guarded) text += compare("%p1", opposite(s.relation), v) + "@%p1 bra END;\n";
  const std::string step = "add.s" + bits + " " + v + ", " + v + ", " + number(s.step) + ";\n";
  text += "TOP:\nadd.s64 %rd9, %rd9, 1;\n";
  if (s.form == Form::Top) {
    text += compare("%p2", opposite(s.relation), v) + "@%p2 bra END;\n" + step + "bra TOP;\n";
  } else if (s.form == Form::Bottom) {
    text += step + compare("%p2", s.relation, v) + "@%p2 bra TOP;\n";
  } else {
    text += compare("%p2", s.relation, v) + step + "@%p2 bra TOP;\n";
  }
  text += "END:\nld.param.u64 %rd10, [a];\nst.global.u64 [%rd10], %rd9;\nret;\n";
  return text;
}

Shape random_shape(std::mt19937_64& dice) {
  const auto roll = [&](std::uint64_t n) { return dice() % n; };
  Shape s;
  s.form = static_cast<Form>(roll(3));
  s.bits = roll(3) == 0 ? 64 : 32;
  s.is_signed = roll(2) != 0;
  s.relation = static_cast<Relation>(roll(6));
  constexpr std::uint64_t kSteps[] = {1, 1, 1, 2, 3, 7, 16, 0x20000000};
  s.step = kSteps[roll(std::size(kSteps))];
  if (roll(2) != 0) s.step = (0 - s.step) & mask(s);
  s.constant_start = roll(2) != 0;
  s.constant_bound = roll(2) != 0;
  s.guarded = roll(2) != 0;
  s.swapped = roll(2) != 0;
  return s;
}

std::uint64_t random_number(std::mt19937_64& dice, const Shape& s) {
  const std::uint64_t sign = std::uint64_t{1} << (s.bits - 1);
  const std::uint64_t around[] = {0, sign, mask(s), sign - 1, 0};
  return (around[dice() % std::size(around)] + dice() % 40 - 20) & mask(s);
}

struct Predicted {
  TripCount count;
  bool none = true;
};

Predicted predict(const Shape& s) {
  const ptx::Module module = test::kernel(text_of(s));
  Facts facts(module, module.functions[0]);
  if (facts.cfg().loops().loops().size() != 1) return {};
  return {facts.inductions().trip_count(0), false};
}

std::uint64_t emulate(const Shape& s) {
  const ptx::Module module = test::kernel(text_of(s));
  emulator::Device device(emulator::default_gpu("sm_90"));
  emulator::Program program = emulator::Program::load(device, module);
  const std::uint64_t out = device.allocate(8);
  std::byte parameters[16] = {};
  std::memcpy(parameters + 8, &out, 8);
  emulator::Launch launch;
  launch.kernel = "k";
  launch.parameters = parameters;
  REQUIRE(emulator::run(program, launch).status == emulator::Status::Ok);
  std::uint64_t iterations = 0;
  device.read(out, std::as_writable_bytes(std::span(&iterations, 1)));
  return iterations;
}

}  // namespace

TEST_CASE("constant trip counts are those of the loop, near the ends of the type too") {
  std::mt19937_64 dice(test::seed());
  int constant = 0, run = 0;
  for (int i = 0; i < test::count(3000, 30000); ++i) {
    Shape s = random_shape(dice);
    s.constant_start = s.constant_bound = true;
    s.start = random_number(dice, s);
    s.bound = random_number(dice, s);
    const Predicted predicted = predict(s);
    if (predicted.none) continue;
    CAPTURE(text_of(s));
    Run truth = interpret(s);
    if (s.form == Form::Top) --truth.iterations;  // the last test lets no iteration begin
    if (predicted.count.kind != TripCount::Kind::Constant) continue;
    ++constant;
    if (predicted.count.iterations > kMax) {
      CHECK_FALSE(truth.ended);
      continue;
    }
    REQUIRE(truth.ended);
    REQUIRE(predicted.count.iterations == truth.iterations);
    // Equality knows no sign: it is excluded for one of the two.
    const bool equality = s.relation == Relation::Eq || s.relation == Relation::Ne;
    if (predicted.count.wrap_excluded && !equality) REQUIRE_FALSE(truth.wrapped);
    const bool enters = !s.guarded || holds(s, s.start, s.bound);
    if (truth.iterations <= 100 && i % 10 == 0) {
      ++run;
      const std::uint64_t tests = truth.iterations + (s.form == Form::Top ? 1 : 0);
      REQUIRE(emulate(s) == (enters ? tests : 0));
    }
  }
  CHECK(constant > test::count(800, 8000));
  CHECK(run > test::count(40, 400));
}

TEST_CASE("where wrap-around is excluded no run of the loop wraps, and its count follows") {
  std::mt19937_64 dice(test::seed() + 1);
  int excluded = 0, possible = 0;
  for (int i = 0; i < test::count(1500, 15000); ++i) {
    Shape s = random_shape(dice);
    s.start = random_number(dice, s);
    s.bound = random_number(dice, s);
    if (s.constant_start && s.constant_bound) s.constant_start = false;
    const Predicted predicted = predict(s);
    if (predicted.none) continue;
    if (predicted.count.kind == TripCount::Kind::Constant) continue;
    CAPTURE(text_of(s));
    REQUIRE(predicted.count.kind == TripCount::Kind::Symbolic);
    (predicted.count.wrap_excluded ? excluded : possible) += 1;
    if (!predicted.count.wrap_excluded) continue;
    for (int n = 0; n < 60; ++n) {
      if (!s.constant_start) s.start = random_number(dice, s);
      if (!s.constant_bound) s.bound = random_number(dice, s);
      if (s.guarded && !holds(s, s.start, s.bound)) continue;
      CAPTURE(s.start, s.bound);
      const Run truth = interpret(s);
      const bool equality = s.relation == Relation::Eq || s.relation == Relation::Ne;
      if (!equality) REQUIRE_FALSE(truth.wrapped);
      if (!truth.ended) continue;
      const std::uint64_t first = s.start + (s.form == Form::Bottom ? s.step : 0);
      const auto iterations =
          iteration_count(first, s.step, s.relation, s.bound, s.is_signed, s.bits);
      if (!equality) REQUIRE(iterations.has_value());
      if (iterations) REQUIRE(*iterations == truth.iterations);
    }
  }
  CHECK(excluded > test::count(150, 1500));
  CHECK(possible > test::count(150, 1500));
}

TEST_CASE("start, step and test of every random loop are read as written") {
  std::mt19937_64 dice(test::seed() + 2);
  for (int i = 0; i < test::count(300, 3000); ++i) {
    Shape s = random_shape(dice);
    s.start = random_number(dice, s);
    s.bound = random_number(dice, s);
    const ptx::Module module = test::kernel(text_of(s));
    Facts facts(module, module.functions[0]);
    CAPTURE(text_of(s));
    REQUIRE(facts.cfg().loops().loops().size() == 1);
    const Inductions& inductions = facts.inductions();
    REQUIRE(inductions.tests(0).size() == 1);
    const LoopTest& test = inductions.tests(0)[0];
    REQUIRE(test.goes_on);
    CHECK(test.every_iteration);
    CHECK(test.goes_on->relation == s.relation);
    CHECK(test.goes_on->is_signed == s.is_signed);
    CHECK(test.goes_on->bound.constant() == s.constant_bound);
    if (s.constant_bound) CHECK(test.goes_on->bound.value == s.bound);
    const Induction& variable = inductions.of(0)[test.goes_on->value.variable];
    CHECK(variable.bits == s.bits);
    CHECK(variable.step.value == s.step);
    CHECK(variable.start.constant() == s.constant_start);
    if (s.constant_start) CHECK(variable.start.value == s.start);
    CHECK(test.goes_on->value.is_next == (s.form == Form::Bottom));
  }
}
