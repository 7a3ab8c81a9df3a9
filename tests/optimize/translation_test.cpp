// tests/optimize/translation_test.cpp - passes on random programs, compared on the emulator
#include <catch2/catch.hpp>

#include <cstdio>
#include <string>

#include "ptxgen/runtime/assemble/assembler.hpp"
#include "support/harness.hpp"
#include "translation.hpp"

namespace ptxgen::test {

namespace {

constexpr int kPrograms = 300, kInFull = 20000;

/// What a run over random programs must reach, so that it is known to have looked.
struct Expected {
  const char* pass;
  Flavour flavour;
  unsigned changed_percent;  ///< of programs, at least
  double fired;              ///< decisions in each program, at least
};

/// Assembles every so many programs, where there is an assembler.
class Sample {
 public:
  void assemble(const RandomProgram& program, const std::string& ptx) {
    if (!assembler_.available() || count_++ % 50 != 0) return;
    AssembleOptions options;
    options.target = program.target;
    options.optimization = 0;
    INFO("program " << program.number << "\n" << ptx);
    CHECK_NOTHROW(static_cast<void>(assembler_.assemble(ptx, options)));
    ++assembled_;
  }
  ~Sample() {
    if (!assembler_.available()) skip_part("no assembler: the results stay unassembled");
  }

 private:
  Assembler assembler_{Settings::from_environment()};
  int count_ = 0, assembled_ = 0;
};

void validate(const Expected& expected) {
  const int programs = count(kPrograms, kInFull);
  Sample sample;
  std::uint64_t changed = 0, fired = 0, refused = 0, before = 0, after = 0;
  for (int i = 0; i < programs; ++i) {
    const std::uint64_t number = seed() * 1'000'000 + 20'000 + static_cast<std::uint64_t>(i);
    const Flavour flavour = i % 4 == 3 ? Flavour::Mixed : expected.flavour;
    const RandomProgram program = random_program(number, flavour);
    const ProgramOutcome outcome = run_program(program, program.ptx);
    const Translation result = translate(program, outcome, expected.pass);
    if (!result.failure.empty()) {
      const RandomProgram small = shrink(program, expected.pass);
      const Translation again = translate(small, run_program(small, small.ptx), expected.pass);
      FAIL((again.failure.empty() ? result.failure : again.failure));
    }
    changed += result.changed ? 1 : 0;
    fired += result.fired;
    refused += result.refused;
    before += result.instructions_before;
    after += result.instructions_after;
    if (result.changed) sample.assemble(program, result.after);
  }
  std::printf(
      "%s: %d programs, %llu changed, %llu candidates taken, %llu refused, %.1f %% fewer warp "
      "instructions\n",
      expected.pass, programs, static_cast<unsigned long long>(changed),
      static_cast<unsigned long long>(fired), static_cast<unsigned long long>(refused),
      100.0 * (1.0 - static_cast<double>(after) / static_cast<double>(before)));
  CHECK(changed * 100 >= static_cast<std::uint64_t>(programs) * expected.changed_percent);
  CHECK(static_cast<double>(fired) >= expected.fired * programs);
}

}  // namespace

TEST_CASE("fma_fusion keeps what random programs do, its pairs rounded once") {
  validate({"fma_fusion", Flavour::Floats, 50, 1.5});
}
TEST_CASE("mad_fusion keeps what random programs do") {
  validate({"mad_fusion", Flavour::Integers, 90, 3});
}
TEST_CASE("loop_split keeps what random programs do") {
  validate({"loop_split", Flavour::Loops, 15, 0.25});
}
TEST_CASE("fold_constants keeps what random programs do") {
  validate({"fold_constants", Flavour::Constants, 80, 4});
}
TEST_CASE("copy_propagation keeps what random programs do") {
  validate({"copy_propagation", Flavour::Copies, 80, 4});
}
TEST_CASE("dead_code keeps what random programs do") {
  validate({"dead_code", Flavour::Copies, 90, 12});
}
TEST_CASE("branch_simplify keeps what random programs do") {
  validate({"branch_simplify", Flavour::Constants, 50, 0.5});
}
TEST_CASE("the default passes keep what random programs do, their pairs rounded once") {
  validate({"default", Flavour::Mixed, 90, 15});
}

}  // namespace ptxgen::test
