// tests/frames/recorder_test.cpp - frames of a launch, and their pictures
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>

#include "ptxgen/frames.hpp"
#include "ptxgen/support/error.hpp"
#include "tile_kernel.hpp"

using namespace ptxgen;
using frames::Frame;
using frames::FrameOptions;
using frames::FrameRecorder;
using frames::FrameStyle;

namespace {

/// PTXGEN_REWRITE_GOLDENS=1 writes the snapshots.
frames::SnapshotMode mode() {
  const char* rewrite = std::getenv("PTXGEN_REWRITE_GOLDENS");
  return rewrite != nullptr && *rewrite != '\0' ? frames::SnapshotMode::Update
                                                : frames::SnapshotMode::Compare;
}

std::string snapshot(const char* name) { return std::string(SNAPSHOTS_FOLDER) + "/" + name; }

std::vector<Frame> recorded(FrameOptions options, std::uint32_t blocks = 1) {
  test::TileLaunch launch(test::kTileKernel, blocks);
  options.buffers.assign(launch.buffers().begin(), launch.buffers().end());
  FrameRecorder recorder(launch.device(), options);
  recorder.finish(launch.observe(recorder));
  return {recorder.frames().begin(), recorder.frames().end()};
}

FrameStyle style_of(std::size_t width, std::size_t height) {
  FrameStyle style;
  style.size = {width, height};
  style.source = test::kTileKernel;
  return style;
}

void require(const frames::FrameCheck& check) {
  INFO(check.message);
  CHECK(check.ok);
}

}  // namespace

TEST_CASE("frames: one before each instruction, and one after the launch") {
  const std::vector<Frame> all = recorded({});
  REQUIRE(all.size() > 60);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i].number == i);
  CHECK(all[0].instruction == "ld.param.u64 %rd1, [y];");
  CHECK(all[0].kernel == "tiles");
  CHECK(all[0].block_size == emulator::Dim3{64, 1, 1});
  CHECK(all[0].warps.size() == 2);
  CHECK(all.back().finished);
  CHECK_FALSE(all[all.size() - 2].finished);
  CHECK(all[all.size() - 2].instruction == "ret;");
}

TEST_CASE("frames: of lines, barriers, a block, a warp, each N-th") {
  FrameOptions options;
  options.lines = {test::kTileStore};
  CHECK(recorded(options, 3).size() == 2 * 3 + 1);
  options.one_block = true;
  options.block = 2;
  std::vector<Frame> some = recorded(options, 3);
  REQUIRE(some.size() == 3);
  CHECK(some[0].block == emulator::Dim3{2, 0, 0});
  options.one_warp = true;
  options.warp = 1;
  some = recorded(options, 3);
  REQUIRE(some.size() == 2);
  CHECK(some[0].warp == 1);
  CHECK(some[0].barrier == false);
  FrameOptions barriers;
  barriers.barriers = true;
  some = recorded(barriers);
  // Each warp reaches two barriers for each tile; warps that diverged come in parts.
  CHECK(std::ranges::count_if(some, [](const Frame& f) { return f.active == 0xffffffffu; }) == 12);
  CHECK(std::ranges::all_of(some, [](const Frame& f) { return f.barrier || f.finished; }));
  const std::size_t full = recorded({}).size();
  FrameOptions seldom;
  seldom.every = 10;
  some = recorded(seldom);
  CHECK(some.size() == (full - 1 + 9) / 10 + 1);
  CHECK(some[3].number == 30);
}

TEST_CASE("frames: memory is bounded, and the kept frames can be looked up by step") {
  const std::vector<Frame> all = recorded({});
  test::TileLaunch launch;
  FrameOptions options;
  options.max_frames = 10;
  FrameRecorder recorder(launch.device(), options);
  CHECK(recorder.at(0) == nullptr);
  recorder.finish(launch.observe(recorder));
  const std::span<const Frame> kept = recorder.frames();
  REQUIRE(kept.size() == 10);
  CHECK(recorder.dropped() == all.size() - 10);
  CHECK(kept.back().finished);
  CHECK(kept.front().number == all.size() - 10);
  CHECK(recorder.at(all.size() - 4)->number == all.size() - 4);
  CHECK(recorder.at(0)->number == kept.front().number);
  CHECK(recorder.at(~std::uint64_t{0})->finished);
}

TEST_CASE("frames: values of registers, shared memory and buffers") {
  FrameOptions options;
  options.lines = {test::kTileEnd, test::kTileStore};
  options.watches = {frames::parse_watch("%f1"), frames::parse_watch("tile[60..63]"),
                     frames::parse_watch("x[64..65]"), frames::parse_watch("%r1[1]:s32")};
  std::uint32_t tiles[2] = {};
  std::size_t compared = 0;
  for (const Frame& frame : recorded(options)) {
    if (frame.finished || frame.active != 0xffffffffu) continue;
    const bool end = frame.line == test::kTileEnd;
    const std::uint32_t count = end ? ++tiles[frame.warp] : 3;
    const frames::WatchedValues& sums = frame.watched[0];
    REQUIRE(sums.bits.size() == 32);
    CHECK(sums.first == 32 * frame.warp);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      CHECK(sums.known[lane]);
      CHECK(frames::value_of(sums.bits[lane], sums.type) ==
            static_cast<double>(
                test::tile_sum(static_cast<std::uint32_t>(sums.first + lane), count)));
    }
    const frames::WatchedValues& tile = frame.watched[1];
    CHECK(frames::value_of(tile.bits[3], tile.type) == 64.0 * (count - 1) + 63);
    CHECK(frames::value_of(frame.watched[2].bits[1], ptx::Type::f32) == 65);
    if (end) CHECK(frame.watched[3].bits == std::vector<std::uint64_t>{32 * frame.warp + 1u});
    ++compared;
  }
  CHECK(compared == 8);
}

TEST_CASE("frames: a picture has the size that was asked for") {
  FrameOptions options;
  options.watches = {{"%f1"}, {"tile"}, {"y"}};
  const std::vector<Frame> all = recorded(options, 40);
  for (const auto& [width, height] :
       {std::pair<std::size_t, std::size_t>{80, 24}, {200, 50}, {40, 8}, {61, 13}}) {
    for (std::size_t i = 0; i < all.size(); i += 97) {
      FrameStyle style = style_of(width, height);
      if (i != 0) style.previous = &all[i - 1];
      require(frames::size_is(frames::to_text(all[i], style), width, height));
      style.source = {};
      require(frames::size_is(frames::to_text(all[i], style), width, height));
    }
    require(frames::size_is(frames::to_text(all.back(), style_of(width, height)), width, height));
  }
  for (const frames::FrameSize size : {frames::FrameSize{39, 24}, frames::FrameSize{80, 7}}) {
    FrameStyle style;
    style.size = size;
    try {
      static_cast<void>(frames::to_text(all[0], style));
      FAIL("a size below the minimum was accepted");
    } catch (const Error& error) {
      CHECK(error.code == "frame-size");
      require(frames::contains(error.message, "the minimum is 40 x 8"));
    }
  }
}

TEST_CASE("frames: pictures of a diverged warp, of its end, and of what changed") {
  FrameOptions options;
  options.lines = {test::kTileAdd};
  options.watches = {{"%f1", 18, 6}, {"tile", 0, 8}};
  const std::vector<Frame> all = recorded(options, 2);
  // The third tile: threads from 40 on are elsewhere, so warp 1 adds with lanes 0 to 7.
  const auto found = std::ranges::find_if(
      all, [](const Frame& f) { return f.warp == 1 && f.active == 0x000000ffu; });
  REQUIRE(found != all.end());
  FrameStyle style = style_of(80, 24);
  const std::uint32_t breakpoints[] = {test::kTileEnd, test::kTileAdd};
  style.breakpoints = breakpoints;
  style.previous = &*(found - 1);
  const std::string text = frames::to_text(*found, style);
  require(frames::line_is(
      text, 1, "tiles  step " + std::to_string(found->number) + "  block (0,0,0)  warp 1 of 2"));
  require(frames::contains(text, "warp 1  ########........................ line 31 running"));
  require(frames::matches(text, "^warp 1  \\.{8}\\+{24} line 33 ready$"));
  require(frames::matches(text, "^>B +31   add.f32 %f1, %f1, %f2;$"));
  require(frames::matches(text, "^ B +33   bar.sync 0;$"));
  require(frames::snapshot_is(text, snapshot("diverged_80x24.txt"), mode()));
  style.size = {200, 50};
  require(
      frames::snapshot_is(frames::to_text(*found, style), snapshot("diverged_200x50.txt"), mode()));
  require(frames::snapshot_is(frames::to_text(all.back(), style_of(80, 24)),
                              snapshot("end_80x24.txt"), mode()));
}

TEST_CASE("frames: changed values are marked, unknown ones are dashes") {
  FrameOptions options;
  options.watches = {{"%f1", 0, 2}, {"tile", 0, 2}};
  const std::vector<Frame> all = recorded(options);
  require(frames::contains(frames::to_text(all[0], style_of(80, 24)), "%f1 f32 [0] - -"));
  require(frames::contains(frames::to_text(all[0], style_of(80, 24)), "tile f32 [0] - -"));
  bool marked = false;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i - 1].line != test::kTileAdd || all[i - 1].warp != 0) continue;
    FrameStyle style = style_of(80, 24);
    style.previous = &all[i - 1];
    const std::vector<frames::FrameLine> lines = frames::to_lines(all[i], style);
    const auto row =
        std::ranges::find(lines, frames::LineRole::ChangedValue, &frames::FrameLine::role);
    REQUIRE(row != lines.end());
    require(frames::contains(row->text, "%f1 f32 [0] 63* 62*"));
    marked = true;
    break;
  }
  CHECK(marked);
}

TEST_CASE("frames: a launch with a finding shows it") {
  std::string ptx = test::kTileKernel;
  const std::string add = "add.u64 %rd4, %rd4, 256;";
  ptx.replace(ptx.find(add), add.size(), "add.u64 %rd4, %rd4, 512;");
  test::TileLaunch launch(ptx);
  FrameRecorder recorder(launch.device(), {});
  const emulator::Result result = launch.observe(recorder);
  recorder.finish(result);
  REQUIRE(result.findings.size() == 1);
  require(frames::contains(frames::to_text(recorder.frames().front()), "no finding"));
  require(frames::matches(frames::to_text(recorder.frames().back()),
                          "^1 finding: line 24, out-of-bounds: thread reads 4 bytes at 0x"));
}
