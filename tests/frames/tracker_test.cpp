// tests/frames/tracker_test.cpp - values over the frames of a launch
#include <catch2/catch.hpp>

#include <limits>

#include "ptxgen/frames.hpp"
#include "ptxgen/support/error.hpp"
#include "tile_kernel.hpp"

using namespace ptxgen;
using frames::ValueTracker;
using Direction = ValueTracker::Direction;

TEST_CASE("frames: a tracker knows changed, monotonic and bounded values") {
  ValueTracker tracker;
  for (std::uint64_t step = 0; step < 5; ++step) {
    tracker.record("rising", step, static_cast<double>(step / 2));
    tracker.record("constant", step, 3);
    tracker.record("jumping", step, step == 2 ? -1 : 1);
  }
  CHECK(tracker.names() == std::vector<std::string>{"rising", "constant", "jumping"});
  CHECK(tracker.samples("rising").size() == 5);
  CHECK(tracker.samples("none").empty());
  CHECK(tracker.changed("rising"));
  CHECK(tracker.changed("constant").message == "'constant' was 3 in all 5 samples");
  CHECK(tracker.unchanged("constant"));
  CHECK(tracker.unchanged("rising").message == "'rising' was 0 at step 0 and 1 at step 2");
  CHECK(tracker.monotonic("rising", Direction::Rising));
  CHECK(tracker.monotonic("constant", Direction::Falling));
  CHECK(tracker.monotonic("rising", Direction::Falling).message ==
        "'rising' does not only fall: 0 at step 1, then 1 at step 2");
  CHECK(tracker.monotonic("jumping", Direction::Rising).message ==
        "'jumping' does not only rise: 1 at step 1, then -1 at step 2");
  CHECK(tracker.within("rising", 0, 2));
  CHECK(tracker.within("rising", 0, 1).message == "'rising' is 2 at step 4, not between 0 and 1");
}

TEST_CASE("frames: a value that was never recorded fails every check") {
  const ValueTracker tracker;
  CHECK(tracker.changed("y").message == "'y' was never recorded");
  CHECK_FALSE(tracker.unchanged("y"));
  CHECK_FALSE(tracker.monotonic("y", Direction::Rising));
  CHECK_FALSE(tracker.within("y", -1e300, 1e300));
}

TEST_CASE("frames: NaN is neither monotonic nor within bounds, and steps do not fall") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ValueTracker tracker;
  tracker.record("a", 1, nan);
  tracker.record("a", 1, nan);
  CHECK(tracker.unchanged("a"));
  CHECK_FALSE(tracker.changed("a"));
  CHECK_FALSE(tracker.monotonic("a", Direction::Rising));
  CHECK_FALSE(tracker.within("a", -1, 1));
  tracker.record("a", 2, 1);
  CHECK(tracker.changed("a"));
  try {
    tracker.record("a", 1, 1);
    FAIL("a step that falls was accepted");
  } catch (const Error& error) {
    CHECK(error.message ==
          "'a' is recorded at step 1 after step 2; record the frames of a launch in their order, "
          "and each launch in a tracker of its own");
  }
}

TEST_CASE("frames: a tracker follows registers by thread, shared memory and buffers") {
  test::TileLaunch launch(test::kTileKernel, 2);
  frames::FrameOptions options;
  options.lines = {test::kTileEnd};
  options.watches = {{"%f1"}, {"tile", 0, 4}, {"y", 0, 2}};
  options.buffers.assign(launch.buffers().begin(), launch.buffers().end());
  frames::FrameRecorder recorder(launch.device(), options);
  REQUIRE(launch.observe(recorder).status == emulator::Status::Ok);
  ValueTracker tracker;
  for (const frames::Frame& frame : recorder.frames()) {
    if (frame.active == 0xffffffffu) tracker.record(frame);
  }
  for (const std::uint32_t thread : {0u, 31u, 32u, 45u, 63u}) {
    const std::string name = "b1:%f1[" + std::to_string(thread) + "]";
    INFO(name);
    REQUIRE(tracker.samples(name).size() == 3);
    for (std::uint32_t t = 0; t < 3; ++t) {
      CHECK(tracker.samples(name)[t].value == static_cast<double>(test::tile_sum(thread, t + 1)));
    }
    CHECK(tracker.monotonic(name, Direction::Rising));
  }
  CHECK(tracker.changed("b0:tile[0]"));
  CHECK(tracker.within("b0:tile[3]", 3, 131));
  // Block 1 stores what block 0 stored before.
  CHECK(tracker.samples("y[0]").front().value == 0);
  CHECK(tracker.samples("y[0]").back().value == static_cast<double>(test::tile_sum(0, 3)));
}
