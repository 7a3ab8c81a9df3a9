// ptxgen/runtime/recording/recording.hpp - launches recorded in one file, and replayed
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptxgen/driver/steps.hpp"
#include "ptxgen/emulator/host/arguments.hpp"
#include "ptxgen/kernels/description.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

/// What a buffer of a recording holds before a frame.
struct RecordedContent {
  enum class Kind : std::uint8_t {
    Bytes,     ///< `bytes`
    Fill,      ///< every byte is `fill`
    Spec,      ///< `spec`, an argument of `ptxgen run`: "random:f32:1024:7", "iota:u32:16"
    Elements,  ///< random elements of `type` between `low` and `high`, as `verify` makes them
  };
  Kind kind = Kind::Fill;
  std::vector<std::byte> bytes;
  /// Of Bytes: begin and end of those that are not written, so that a read of them is found again.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> unwritten;
  std::uint8_t fill = 0;
  std::string spec;
  ElementType type = ElementType::f32;
  double low = -1;
  double high = 1;
  std::uint64_t seed = 0;  ///< of Elements, and of a Spec of each frame
  /// Of Spec and Elements: each frame has another seed, `frame` added. A Spec is written without
  /// one then.
  bool each_frame = false;
};

/// Device memory of a recording, aligned to 256 bytes. Buffers that are outputs, or differ from
/// frame to frame, are written before each frame; the others before the first.
struct RecordedBuffer {
  std::string name;  ///< of the operand or parameter
  std::uint64_t bytes = 0;
  RecordedContent content;
  bool output = false;  ///< hashed and compared after each frame
};

/// An address in an argument block: that of byte `offset` of a buffer.
struct RecordedPointer {
  std::uint32_t at = 0;  ///< byte of the block
  std::size_t buffer = 0;
  std::uint64_t offset = 0;
};

struct RecordedLaunch {
  std::size_t module = 0;
  std::string kernel;
  LaunchGeometry geometry;
  std::vector<std::byte> block;  ///< the arguments; 0 where an address is
  std::vector<RecordedPointer> pointers;
};

/// Launches with all that they need to be repeated in another process, on another device: PTX,
/// arguments, inputs or their seeds; and what came of them. A frame is all launches in their order,
/// on new inputs.
///
/// A recording of a program (PTXGEN_RECORD) has `steps` instead: each launch among them is a frame,
/// or a graph that allocates; `buffers` are names and sizes of all memory that it had, in the order
/// of the steps, and `frame_hashes` are of the bytes that a frame changed.
///
/// Plain data. `to_json` and `parse_recording` are its file format.
struct Recording {
  std::string made_by;  ///< "ptxgen 0.1.0, NVIDIA H200 SXM (emulated)"
  std::string gpu;      ///< of the GPU table, where it was recorded; empty: not one of it
  std::uint64_t seed = 0;
  std::uint64_t frames = 1;
  std::vector<std::string> modules;  ///< PTX
  std::vector<RecordedBuffer> buffers;
  std::vector<RecordedLaunch> launches;  ///< of a frame
  /// XXH3-128 of all bytes of the outputs after each frame, in the order of the buffers: 32
  /// hexadecimal digits. Fewer than `frames` if one failed.
  std::vector<std::string> frame_hashes;
  std::string hash;  ///< XXH3-128 of the texts of `frame_hashes`
  /// The outputs themselves, a frame after the other; empty if they were too large to keep.
  std::vector<std::byte> outputs;
  /// "device-fault: ..." or the findings of the frame after the last one in `frame_hashes`, which
  /// is the last that was run. Empty: all went well.
  std::string failure;
  std::vector<driver::Step> steps;  ///< of a program
  driver::StepContents contents;    ///< of `steps`, in the order of the hashes
  std::vector<std::string> notes;   ///< of a program: what is not recorded
  /// Of a program: why the recording ended before it; empty: it did not.
  std::string cut_off;

  [[nodiscard]] bool is_program() const noexcept { return !steps.empty(); }
};

/// The file format: JSON, bytes as hexadecimal digits; of a program one document a line.
[[nodiscard]] std::string to_json(const Recording& recording);
/// Throws `Error` (Stage::Io, "bad-recording") naming `file`, the member and what is expected.
[[nodiscard]] Recording parse_recording(std::string_view text, std::string_view file);

struct RecordOptions {
  std::uint64_t seed = 42;  ///< of the inputs
  std::uint64_t frames = 100;
  /// Outputs are kept if those of all frames have at most so many bytes. With them a replay names
  /// the byte that differs, without them the frame.
  std::uint64_t keep_bytes = 16 << 20;
  /// Elements an input may have to be another one in each frame; larger ones, matrices of weights,
  /// are the same in all.
  std::uint64_t vary_elements = 1 << 20;
};

/// Records launches of a described kernel on random inputs. Opens `device` for itself. Throws what
/// opening, building and loading throw; `Error` (Stage::Launch, "not-recorded") for a kernel
/// whose arguments have tensor maps, which are of one device. A fault, and findings of the emulated
/// device, end the recording and are part of it.
///
/// Threads: one recording of a described kernel at a time in a process.
[[nodiscard]] Recording record(std::string_view device, const KernelDescription& kernel,
                               std::span<const std::uint64_t> values,
                               const RecordOptions& options = {},
                               const Settings& settings = Settings::from_environment());

/// One launch of any PTX.
struct PtxLaunch {
  std::string_view ptx;
  std::string_view file = "<ptx>";  ///< its name in messages
  std::string_view kernel;          ///< the entry's name
  LaunchGeometry geometry;
  /// In the order of the parameters. `random` without a seed is another sequence in each frame;
  /// the contents of files become part of the recording.
  std::span<const emulator::ArgumentSpec> arguments;
};
/// Records it. Throws `Error` (Stage::Launch, "argument"), and what loading throws.
[[nodiscard]] Recording record(const Context& context, const PtxLaunch& launch,
                               const RecordOptions& options = {});

/// One bit of a buffer's content in one frame, inverted before the launches: what a replay must
/// find.
struct FlippedBit {
  std::uint64_t frame = 0;
  std::size_t buffer = 0;
  std::uint64_t bit = 0;
};

/// How a recording is replayed.
struct ReplayOptions {
  /// Of a program: the frame is a launch, before which the bit is inverted in memory.
  std::optional<FlippedBit> flip;
  /// Of a program: the last launch that is run; all are if there is none of that number.
  std::uint64_t last_launch = ~std::uint64_t{0};
};

/// The first frame that is not the recorded one.
struct Divergence {
  std::uint64_t frame = 0;
  std::string expected;  ///< hash
  std::string found;
  /// Where the recording has its outputs: buffer and byte of the first difference.
  std::string buffer;
  std::uint64_t offset = 0;
  std::byte expected_byte{};
  std::byte found_byte{};
  std::uint64_t differing = 0;  ///< bytes of the frame; 0: the outputs were not kept
  // Of a program.
  std::string kernel;           ///< or "graph"; empty: what the host read differs, not a launch
  std::uint64_t first = 0;      ///< of the buffer: bytes that the launch changed here,
  std::uint64_t end = 0;        ///< both 0: none
  std::uint64_t was_first = 0;  ///< and those that it changed when it was recorded
  std::uint64_t was_end = 0;
};

struct Replay {
  std::uint64_t frames = 0;  ///< that were run
  std::string hash;
  std::optional<Divergence> first;
  std::string failure;  ///< as in Recording
  /// Of a program: launches that differ, the first among them.
  std::uint64_t differing_launches = 0;
  /// Of a program: allocations and variables at other addresses than when it was recorded, and
  /// texture and surface objects with other handles. Those in arguments of kernels are translated,
  /// those in memory are not.
  std::uint64_t moved = 0;
  /// Whether every frame, and the failure's kind, are as recorded.
  bool same = false;
};

/// Runs all frames of a recording and compares each with what was recorded. Throws `Error`:
/// (Stage::Launch, "bad-recording") for indices, sizes and offsets that do not fit together, or a
/// flip of a bit that is not there; what loading throws.
[[nodiscard]] Replay replay(const Context& context, const Recording& recording,
                            const ReplayOptions& options = {});

/// "frame 12: y differs in 1 of 16384 bytes, first at byte 100: 3f expected, 40 found".
[[nodiscard]] std::string to_text(const Divergence& divergence, const Recording& recording);

}  // namespace ptxgen::inline v0
