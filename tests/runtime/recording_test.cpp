// tests/runtime/recording_test.cpp - launches recorded, replayed, and made to differ
#include "ptxgen/runtime/recording/recording.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "ptxgen/builder.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime.hpp"
#include "runtime/object_support.hpp"
#include "support/harness.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::string_view kGpu = "emulator:h200";

Settings plain_settings() {
  Settings settings;
  settings.search_usual_places = false;
  return settings;
}

std::vector<std::uint64_t> gemv_values(std::uint64_t k, std::uint64_t n) {
  const KernelDescription& gemv = kernel_named("gemv");
  std::vector<std::uint64_t> values = gemv.default_values();
  values[parameter_index(gemv, "k")] = k;
  values[parameter_index(gemv, "n")] = n;
  return values;
}

Recording gemv_recording(std::uint64_t frames) {
  RecordOptions options;
  options.frames = frames;
  return record(kGpu, kernel_named("gemv"), gemv_values(64, 48), options, plain_settings());
}

Replay replayed(const Recording& recording, const ReplayOptions& options = {},
                const emulator::Options& how = driver::emulated::default_options()) {
  const Context context(Device::open(kGpu, plain_settings()));
  REQUIRE(driver::emulated::set_launch_options(context.handle(), how) == driver::CUDA_SUCCESS);
  return replay(context, recording, options);
}

std::string refusal_of(std::string_view text) {
  try {
    (void)parse_recording(text, "file.json");
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Io);
    CHECK(error.code == "bad-recording");
    CHECK(error.file == "file.json");
    return error.message;
  }
  return "accepted";
}

// Any PTX, on new memory.
Recording recording_of(std::string_view ptx, std::string_view kernel,
                       const LaunchGeometry& geometry, const std::vector<std::string>& arguments,
                       std::uint64_t frames) {
  std::vector<emulator::ArgumentSpec> specs;
  for (const std::string& text : arguments) specs.push_back(emulator::parse_argument(text));
  RecordOptions options;
  options.frames = frames;
  const Context context(Device::open(kGpu, plain_settings()));
  return record(context, {.ptx = ptx, .kernel = kernel, .geometry = geometry, .arguments = specs},
                options);
}

// out[i] = in[i] + 1 by as many threads as the launch has: beyond the ends with too many.
auto increment_kernel() {
  return build_kernel("increment", "sm_80", params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in")),
                      [](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in) {
                        const Value<u32> t = k.tid_x();
                        out[t] = in[t] + 1.0f;
                      });
}

// A device whose launches that fail are recorded in a folder.
struct RecordingGpu {
  explicit RecordingGpu(const std::string& folder)
      : device(Device::open(kGpu, settings_with(folder))),
        context(device),
        stream(context),
        kernel(context, increment_kernel()),
        out(context, 64),
        in(context, 64) {}
  ~RecordingGpu() {
    if (context.poisoned()) Context::reset(device);
  }
  static Settings settings_with(const std::string& folder) {
    Settings settings = plain_settings();
    settings.repro = folder;
    return settings;
  }
  void launch(std::uint32_t threads) {
    try {
      kernel.launch(stream, {.grid = {1, 1, 1}, .block = {threads, 1, 1}}, out, in);
      stream.synchronize();
    } catch (const Error& error) {
      CHECK(error.code == "device-fault");
    }
  }

  const Device device;
  const Context context;
  const Stream stream;
  const LoadedKernel<Ptr<f32>, Ptr<f32>> kernel;
  Buffer<f32> out;
  Buffer<f32> in;
};

Recording recording_in(const std::string& path) { return parse_recording(read_file(path), path); }

}  // namespace

TEST_CASE("a launch that reads what was never written is recorded, and replays so") {
  const TemporaryDirectory folder("/tmp");
  CaughtLog log;
  RecordingGpu gpu(folder.path());
  std::vector<float> half(32, 2.0f);
  gpu.in.write_part(0, half);
  gpu.launch(32);
  CHECK(log.take().empty());
  gpu.launch(48);
  gpu.launch(64);  // the same rule in more threads: one recording
  const std::string path = folder.path() + "/launch-increment.json";
  const std::vector<std::string> lines = log.take();
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Contains("[uninitialized-read]"));
  CHECK(lines[1] == "recorded: ptxgen replay " + path);
  CHECK(!std::filesystem::exists(folder.file("launch-increment-2.json")));

  const Recording recording = recording_in(path);
  CHECK(recording.failure == "findings: uninitialized-read");
  CHECK(recording.gpu == "h200");
  REQUIRE(recording.buffers.size() == 2);
  const RecordedContent& in = recording.buffers[1].content;
  CHECK(in.unwritten == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{128, 256}});
  const Replay again = replayed(recording);
  CHECK(again.same);
  CHECK(again.failure == "findings: uninitialized-read");
  // With the bytes written there is nothing to find.
  Recording written = recording;
  written.buffers[1].content.unwritten.clear();
  const Replay mended = replayed(written);
  CHECK(!mended.same);
  CHECK(mended.failure.empty());

  Recording beyond = recording;
  beyond.buffers[1].content.unwritten = {{128, 257}};
  CHECK_THROWS_WITH(replayed(beyond), Contains("bytes 128 to 257 are not written, of 256"));
}

TEST_CASE("a launch with a fault is recorded before the context is lost") {
  const TemporaryDirectory folder("/tmp");
  CaughtLog log;
  {
    RecordingGpu gpu(folder.path());
    gpu.in.write(std::vector<float>(64, 1.0f));
    gpu.launch(1024);
  }
  const Recording recording = recording_in(folder.path() + "/launch-increment.json");
  CHECK_THAT(recording.failure, Contains("out-of-bounds"));
  CHECK(replayed(recording).same);
}

TEST_CASE("a folder that is not there is said, and the launch goes on") {
  CaughtLog log;
  RecordingGpu gpu("/nowhere");
  gpu.launch(32);
  const std::vector<std::string> lines = log.take();
  REQUIRE(lines.size() == 2);
  CHECK(lines[1] ==
        "not recorded (PTXGEN_REPRO=/nowhere): /nowhere/launch-increment.json: No such file or "
        "directory");
}

TEST_CASE("a recording replays to the same bytes, from its text too") {
  const Recording recording = gemv_recording(5);
  CHECK(recording.failure.empty());
  REQUIRE(recording.frame_hashes.size() == 5);
  // Frames have other inputs, hence other outputs.
  CHECK(std::set(recording.frame_hashes.begin(), recording.frame_hashes.end()).size() == 5);
  CHECK(recording.gpu == "h200");
  CHECK_THAT(recording.made_by, Contains("emulated"));

  const Recording read = parse_recording(to_json(recording), "x.json");
  CHECK(to_json(read) == to_json(recording));
  const Replay result = replayed(read);
  CHECK(result.same);
  CHECK(result.frames == 5);
  CHECK(result.hash == recording.hash);
  CHECK_FALSE(result.first);
}

TEST_CASE("another number of threads and another schedule give the same hash") {
  const Recording recording = gemv_recording(3);
  for (const unsigned threads : {1u, 2u, 5u}) {
    for (const std::uint64_t seed : {0u, 7u}) {
      emulator::Options how = driver::emulated::default_options();
      how.threads = threads;
      how.seed = seed;
      const Replay result = replayed(recording, {}, how);
      CHECK(result.same);
      CHECK(result.hash == recording.hash);
    }
  }
}

TEST_CASE("one inverted bit of an input is found, in its frame, and nowhere else") {
  const Recording recording = gemv_recording(4);
  for (std::size_t i = 0; i < recording.buffers.size(); ++i) {
    const RecordedBuffer& buffer = recording.buffers[i];
    if (buffer.output) continue;
    for (std::uint64_t frame = 0; frame < recording.frames; ++frame) {
      // The sign of an element: it changes every output that the element is a part of.
      const std::uint64_t bit = 32 * ((frame * 37 + test::seed()) % (buffer.bytes / 4)) + 31;
      INFO(buffer.name << ", frame " << frame << ", bit " << bit);
      const Replay result = replayed(recording, {.flip = FlippedBit{frame, i, bit}});
      CHECK_FALSE(result.same);
      REQUIRE(result.first);
      CHECK(result.first->frame == frame);
      CHECK(result.first->buffer == "y");
      CHECK(result.first->differing > 0);
      CHECK_THAT(to_text(*result.first, recording),
                 Contains(" bytes of the outputs differ, the first at byte "));
    }
  }
  CHECK_THROWS_WITH(
      replayed(recording, {.flip = FlippedBit{4, 0, 0}}),
      Contains("there is no bit 0 of buffer 0 in frame 4: the recording has 4 frames and "));
}

TEST_CASE("a byte of the outputs that was another one is named") {
  Recording recording = gemv_recording(3);
  const std::size_t frame_bytes = recording.outputs.size() / 3;
  recording.outputs[frame_bytes + 100] ^= std::byte{0x10};
  recording.frame_hashes[1][0] = recording.frame_hashes[1][0] == '0' ? '1' : '0';
  const Replay result = replayed(recording);
  CHECK_FALSE(result.same);
  REQUIRE(result.first);
  CHECK(result.first->frame == 1);
  CHECK(result.first->offset == 100);
  CHECK(result.first->differing == 1);
  CHECK((result.first->expected_byte ^ result.first->found_byte) == std::byte{0x10});

  recording.outputs.clear();
  const Replay without = replayed(recording);
  REQUIRE(without.first);
  CHECK(without.first->frame == 1);
  CHECK_THAT(to_text(*without.first, recording), Contains("they were not kept"));
}

// Sums by atomics of floats depend on the order of the blocks.
TEST_CASE("a sum by float atomics under another order of blocks is found, at the right frame") {
  const auto kernel =
      build_kernel("total", "sm_80", params(param<Ptr<f32>>("x"), param<Ptr<f32>>("y")),
                   [](KernelBuilder& k, Ptr<f32> x, Ptr<f32> y) {
                     k.atom_add(y, k.ld(x + (k.ctaid_x() * k.ntid_x() + k.tid_x())));
                   });
  const std::string ptx = kernel.ptx();
  const LaunchGeometry geometry{.grid = {32, 1, 1}, .block = {32, 1, 1}};
  const Recording recording =
      recording_of(ptx, "total", geometry, {"random:f32:1024", "zero:4"}, 12);
  REQUIRE(recording.frame_hashes.size() == 12);
  CHECK(replayed(recording).same);

  emulator::Options how = driver::emulated::default_options();
  how.seed = 11;
  how.parallel = true;
  how.threads = 1;
  // Of the recordings of 1, 2, ... frames the first one that does not replay.
  std::uint64_t first = recording.frames;
  for (std::uint64_t frames = 1; frames <= recording.frames; ++frames) {
    Recording part = recording;
    part.frames = frames;
    part.frame_hashes.resize(frames);
    part.hash.clear();
    if (!replayed(part, {}, how).same) {
      first = frames - 1;
      break;
    }
  }
  REQUIRE(first < recording.frames);
  const Replay result = replayed(recording, {}, how);
  CHECK_FALSE(result.same);
  REQUIRE(result.first);
  CHECK(result.first->frame == first);
  CHECK(result.first->buffer == "y");
}

TEST_CASE("faults and findings end a recording, and are part of it") {
  const auto beyond = build_kernel(
      "beyond", "sm_80", params(param<Ptr<f32>>("out"), param<u32>("offset")),
      [](KernelBuilder& k, Ptr<f32> out, Value<u32> offset) { out[k.tid_x() + offset] = 1.0f; });
  const LaunchGeometry warp{.grid = {1, 1, 1}, .block = {32, 1, 1}};
  const Recording fault =
      recording_of(beyond.ptx(), "beyond", warp, {"zero:128", "u32:1000000"}, 3);
  CHECK(fault.frame_hashes.empty());
  CHECK_THAT(fault.failure, Catch::Matchers::StartsWith("device-fault: "));
  CHECK(replayed(parse_recording(to_json(fault), "x.json")).same);

  Recording mended = fault;
  mended.launches[0].block[8] = mended.launches[0].block[9] = mended.launches[0].block[10] =
      std::byte{0};
  const Replay result = replayed(mended);
  CHECK_FALSE(result.same);
  CHECK(result.failure.empty());

  const auto unwritten = build_kernel("unwritten", "sm_80", params(param<Ptr<f32>>("out")),
                                      [](KernelBuilder& k, Ptr<f32> out) {
                                        const auto tile = k.shared<f32>(32);
                                        out[k.tid_x()] = Value<f32>(tile[k.tid_x()]);
                                      });
  const Recording finding = recording_of(unwritten.ptx(), "unwritten", warp, {"zero:128"}, 3);
  CHECK(finding.frame_hashes.empty());
  CHECK(finding.failure == "findings: uninitialized-read");
  CHECK(replayed(finding).same);
}

TEST_CASE("kernels of the library replay, with quantised weights and workspaces") {
  std::size_t recorded = 0;
  std::size_t number = 0;
  for (const KernelDescription& kernel : catalog()) {
    // Every day a fifth of them.
    if (!test::full() && (number++ + test::seed()) % 5 != 0) continue;
    INFO(kernel.name);
    RecordOptions options;
    options.frames = 2;
    Recording recording;
    try {
      recording = record(kGpu, kernel, kernel.cases().front(), options, plain_settings());
    } catch (const Error& error) {
      CHECK(error.code == "not-recorded");
      CHECK_THAT(error.message, Contains("tensor maps"));
      continue;
    }
    CHECK(recording.failure.empty());
    CHECK(recording.frame_hashes.size() == 2);
    CHECK(replayed(parse_recording(to_json(recording), "x.json")).same);
    ++recorded;
  }
  CHECK(recorded >= 5);
}

TEST_CASE("what cannot be recorded, and what is no recording, is refused by text") {
  CHECK_THROWS_WITH(record("host", kernel_named("vadd"), kernel_named("vadd").cases().front(), {},
                           plain_settings()),
                    Contains("the host runs functions, not PTX; record on the emulator"));
  CHECK_THAT(refusal_of("{"), Contains("this is not a recording: "));
  CHECK_THAT(refusal_of("{}"),
             Contains("it has no member \"format\" with the value \"ptxgen recording 1\""));
  const std::string good = to_json(gemv_recording(1));
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  CHECK_THAT(refusal_of(with("\"frames\"", "\"pictures\"")), Contains("'frames' not found"));
  CHECK_THAT(refusal_of(with("\"elements\": \"f32\"", "\"elements\": \"f31\"")),
             Contains("'f31' is no element type"));
  CHECK_THAT(refusal_of(with("\"outputs\": \"", "\"outputs\": \"x")),
             Contains("hexadecimal digit"));

  Recording recording = gemv_recording(1);
  recording.launches[0].pointers[0].buffer = 99;
  CHECK_THROWS_WITH(replayed(recording), Contains("of buffer 99, which there is not"));
  recording = gemv_recording(1);
  recording.launches[0].module = 3;
  CHECK_THROWS_WITH(replayed(recording), Contains("is in module 3, of 1"));
  recording = gemv_recording(1);
  recording.buffers[0].content = {};
  recording.buffers[0].content.kind = RecordedContent::Kind::Bytes;
  recording.buffers[0].content.bytes.resize(7);
  CHECK_THROWS_WITH(replayed(recording), Contains(" bytes, and content of 7"));
}
