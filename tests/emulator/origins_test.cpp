// tests/emulator/origins_test.cpp - findings name the places that a loader knows
#include "emulator/state/origins.hpp"

#include <catch2/catch.hpp>

#include "ptxgen/emulator/emulator.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using Catch::Matchers::Contains;

namespace {

// Line 8: a store by all threads; line 9: a load. Lines 11 and 12: two barriers that wait for each
// other's threads.
constexpr std::string_view kText = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
  .reg .b32 %r<3>; .reg .pred %p<2>; .shared .b32 cell;
  mov.u32 %r1, %tid.x;
  st.shared.b32 [cell], %r1;
  ld.shared.b32 %r2, [cell];
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bar.sync 1, 64;
  @!%p1 bar.sync 2, 64;
  ret;
}
)";

struct Texts {
  std::string race, deadlock;
};

std::string all_of(const Finding& finding) {
  std::string text = finding.message;
  for (const std::string& detail : finding.details) text += "\n" + detail;
  return text;
}

Texts texts_with(std::shared_ptr<const Origins> origins) {
  Device device(default_gpu("sm_80"));
  Program program = Program::load(device, kText);
  set_origins(program, std::move(origins));
  Launch launch;
  launch.kernel = "k";
  launch.block = {64, 1, 1};
  const Result result = run(program, launch);
  Texts texts;
  for (const RunFinding& found : result.findings) {
    CHECK(found.finding.line != 0);  // PTX lines stay, whatever texts name
    if (found.rule == Rule::SharedRace && found.other.line == 8 && found.finding.line == 9)
      texts.race = all_of(found.finding);
    if (found.rule == Rule::BarrierDeadlock) texts.deadlock = all_of(found.finding);
  }
  return texts;
}

}  // namespace

TEST_CASE("without origins findings name PTX lines") {
  const Texts texts = texts_with(nullptr);
  CHECK_THAT(texts.race, Contains(" wrote at line 8; nothing orders the two"));
  CHECK_THAT(texts.deadlock, Contains(" on, at line 11: barrier 1, 32 of 64 threads have arrived"));
}

TEST_CASE("with origins findings name the caller's places, and no other line") {
  auto origins = std::make_shared<Origins>();
  origins->file = "mine.ptx";
  origins->places.resize(12);
  origins->places[8] = {{"first.cpp", 23}, 5};
  origins->places[11] = {{}, 7};
  const Texts texts = texts_with(origins);
  CHECK_THAT(texts.race, Contains(" wrote at first.cpp:23; nothing orders the two"));
  CHECK_THAT(texts.deadlock,
             Contains(" on, at mine.ptx:7: barrier 1, 32 of 64 threads have arrived"));
  CHECK_THAT(texts.deadlock, Contains(" on: barrier 2, 32 of 64 threads have arrived"));
  CHECK_THAT(texts.race + texts.deadlock, !Contains(" line "));
}

TEST_CASE("origins of a text from nowhere leave places out") {
  const Texts texts = texts_with(std::make_shared<Origins>());
  CHECK_THAT(texts.race, Contains(" wrote; nothing orders the two"));
  CHECK_THAT(texts.deadlock, Contains(" on: barrier 1, 32 of 64 threads have arrived"));
}
