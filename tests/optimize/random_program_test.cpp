// tests/optimize/random_program_test.cpp - random programs run, and nothing is wrong with them
#include <catch2/catch.hpp>

#include <string>

#include "program_runner.hpp"
#include "random_program.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {

TEST_CASE("random programs run without a finding, the same in two runs") {
  const int programs = count(60, 3000);
  std::uint64_t instructions = 0, barriers = 0, ordered = 0;
  for (int i = 0; i < programs; ++i) {
    const auto flavour = static_cast<Flavour>(i % 6);
    const std::uint64_t number = seed() * 1'000'000 + static_cast<std::uint64_t>(i);
    const RandomProgram program = random_program(number, flavour);
    INFO("program " << number << ", flavour " << i % 6 << "\n" << program.ptx);
    const ProgramOutcome watched = run_program(program, program.ptx, true);
    REQUIRE(watched.findings.empty());
    REQUIRE(watched.status == emulator::Status::Ok);
    const ProgramOutcome plain = run_program(program, program.ptx);
    REQUIRE(difference(program, watched, plain).empty());
    instructions += plain.warp_instructions;
    barriers += plain.barriers;
    for (const auto& [opcode, count] : plain.observable) ordered += count;
  }
  CHECK(instructions > static_cast<std::uint64_t>(programs) * 100);
  CHECK(barriers > static_cast<std::uint64_t>(programs) * 10);
  CHECK(ordered > barriers);
}

}  // namespace ptxgen::test
