// src/qa/lines/replay.cpp - recordings: the same hash, the first frame that differs
#include "ptxgen/builder.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/runtime/recording/recording.hpp"
#include "qa/fixture.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace replaying {
namespace {

constexpr std::uint64_t kFrames = 100;
constexpr std::uint64_t kSeed = 42;
constexpr std::uint64_t kSize = 256;

// The device by name, since `record` opens it for itself.
std::string device_name(Fixture& fixture) {
  const DeviceInfo& info = fixture.device().info();
  if (!is_emulated(info.kind)) return "cuda:" + std::to_string(info.ordinal);
  return "emulator:" + std::string(gpu_of(info).name);
}

Recording gemv_recording(Fixture& fixture) {
  const KernelDescription& gemv = kernel_named("gemv");
  std::vector<std::uint64_t> values = gemv.default_values();
  values[parameter_index(gemv, "k")] = kSize;
  values[parameter_index(gemv, "n")] = kSize;
  return record(device_name(fixture), gemv, values, {.seed = kSeed, .frames = kFrames},
                fixture.settings());
}

std::size_t index_of(const Recording& recording, std::string_view name) {
  std::size_t index = 0;
  while (index < recording.buffers.size() && recording.buffers[index].name != name) ++index;
  return index;
}

// Frame `frame`, the sign of x[3].
ReplayOptions flip(const Recording& recording, std::uint64_t frame) {
  return {.flip = FlippedBit{frame, index_of(recording, "x"), 3 * 32 + 31}};
}

Outcome same_hash(Fixture& fixture, const Line&) {
  Tally tally;
  const Recording recording = gemv_recording(fixture);
  tally.check(recording.failure.empty(), "{}", recording.failure);
  tally.check(recording.frame_hashes.size() == kFrames, "{} frames of {}",
              recording.frame_hashes.size(), kFrames);
  for (std::size_t i = 1; i < recording.frame_hashes.size(); ++i) {
    tally.check(recording.frame_hashes[i] != recording.frame_hashes[i - 1],
                "frames {} and {} have the same outputs", i - 1, i);
  }
  const Replay again = replay(fixture.context(), parse_recording(to_json(recording), "recording"),
                              fixture.changed() ? flip(recording, kFrames / 2) : ReplayOptions{});
  tally.check(again.same, "{}", again.first ? to_text(*again.first, recording) : again.failure);
  tally.check(again.hash == recording.hash, "hash {} instead of {}", again.hash, recording.hash);
  tally.figure("{} x {}, seed {}: {} frames, hash {}", kSize, kSize, kSeed, again.frames,
               again.hash);
  return tally.outcome();
}

// A float sum by atomics, in the order of the blocks.
Recording sum_recording(Fixture& fixture) {
  const auto kernel = build_kernel(
      "total", fixture.target().name, params(param<Ptr<f32>>("x"), param<Ptr<f32>>("y")),
      [](KernelBuilder& k, Ptr<f32> x, Ptr<f32> y) {
        k.atom_add(y, k.ld(x + (k.ctaid_x() * k.ntid_x() + k.tid_x())));
      });
  const std::vector<emulator::ArgumentSpec> arguments = {
      emulator::parse_argument("random:f32:1024"), emulator::parse_argument("zero:4")};
  const std::string ptx = kernel.ptx();
  return record(fixture.context(),
                {.ptx = ptx,
                 .kernel = "total",
                 .geometry = {.grid = {32, 1, 1}, .block = {32, 1, 1}},
                 .arguments = arguments},
                {.seed = kSeed, .frames = 10});
}

Outcome first_divergence(Fixture& fixture, const Line&) {
  Tally tally;
  Recording recording = gemv_recording(fixture);
  if (fixture.changed()) recording.frame_hashes[7] = recording.frame_hashes[8];
  const Replay clean = replay(fixture.context(), recording);
  tally.check(!clean.first, "{}", clean.first ? to_text(*clean.first, recording) : "");
  for (const std::uint64_t frame : {std::uint64_t{0}, std::uint64_t{41}, kFrames - 1}) {
    const Replay changed = replay(fixture.context(), recording, flip(recording, frame));
    if (!tally.check(changed.first.has_value(), "a bit of frame {} is not noticed", frame))
      continue;
    tally.check(changed.first->frame == frame, "a bit of frame {} is reported in frame {}", frame,
                changed.first->frame);
    tally.figure("one bit of x: {}", to_text(*changed.first, recording));
  }
  if (!is_emulated(fixture.device().info().kind)) return tally.outcome();
  const Recording sum = sum_recording(fixture);
  const driver::CUcontext context = fixture.context().handle();
  emulator::Options permuted = driver::emulated::default_options();
  permuted.seed = 11;
  permuted.parallel = true;
  permuted.threads = 1;
  driver::emulated::set_launch_options(context, permuted);
  const Replay reordered = replay(fixture.context(), sum);
  driver::emulated::set_launch_options(context, driver::emulated::default_options());
  if (tally.check(reordered.first.has_value(), "another order of float atomics is not noticed")) {
    tally.figure("float atomics in another order of blocks: {}", to_text(*reordered.first, sum));
  }
  return tally.outcome();
}

constexpr Line kLines[] = {
    {"5.D1",
     Section::Replay,
     5,
     "a replay gives the recorded hash",
     "100 frames of a GEMV of 256 x 256 with other inputs in each, from the file's text, every "
     "output byte hashed",
     Means::Emulator,
     same_hash,
     {"one bit of an input is inverted in the middle frame"},
     "ptxgen record gemv -p k=4096 -p n=4096 -o r.json; ptxgen replay r.json"},
    {"5.D2",
     Section::Replay,
     3,
     "the first divergent frame is reported",
     "none in a replay; with one inverted bit that bit's frame; float atomics in another order of "
     "blocks are noticed",
     Means::Emulator,
     first_divergence,
     {"the hash of a frame is that of the next one"},
     "ptxgen replay r.json --flip 41:x:127"},
    {"5.D3", Section::Replay, 2, "another instance and another process agree",
     "tests/cli/record_test.cpp: one process records, others replay with 1 and 2 threads",
     Means::Record, by_record, kFailedResult, "ctest -R 'what one process recorded another'",
     "case what one process recorded another replays, and finds what was changed"},
};

}  // namespace
}  // namespace replaying

std::span<const Line> replay_lines() { return replaying::kLines; }

}  // namespace ptxgen::qa
