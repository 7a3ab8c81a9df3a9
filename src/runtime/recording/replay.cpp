// src/runtime/recording/replay.cpp - the frames of a recording, compared with what was recorded
#include <algorithm>

#include "ptxgen/runtime/recording/recording.hpp"
#include "runtime/recording/frames.hpp"
#include "runtime/recording/outputs.hpp"
#include "runtime/recording/program_replay.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

// "device-fault: ..." and "findings: ..." are of one kind each; addresses in the text may differ.
std::string_view kind_of(std::string_view failure) { return failure.substr(0, failure.find(':')); }

// Buffer and offset of byte `at` of the outputs.
void locate(Divergence& divergence, std::uint64_t at, const Recording& recording) {
  for (const RecordedBuffer& buffer : recording.buffers) {
    if (!buffer.output) continue;
    if (at < buffer.bytes) {
      divergence.buffer = buffer.name;
      divergence.offset = at;
      return;
    }
    at -= buffer.bytes;
  }
}

Divergence divergence_of(const Recording& recording, std::uint64_t frame,
                         const std::vector<std::byte>& found, std::string hash) {
  Divergence divergence;
  divergence.frame = frame;
  divergence.expected = recording.frame_hashes[static_cast<std::size_t>(frame)];
  divergence.found = std::move(hash);
  const auto begin = static_cast<std::size_t>(frame) * found.size();
  if (recording.outputs.size() < begin + found.size()) return divergence;
  const auto expected = std::span(recording.outputs).subspan(begin, found.size());
  for (std::size_t i = found.size(); i-- > 0;) {
    if (found[i] == expected[i]) continue;
    ++divergence.differing;
    divergence.expected_byte = expected[i];
    divergence.found_byte = found[i];
    locate(divergence, i, recording);
  }
  return divergence;
}

void check_flip(const FlippedBit& flip, const Recording& recording) {
  if (flip.frame < recording.frames && flip.buffer < recording.buffers.size() &&
      flip.bit / 8 < recording.buffers[flip.buffer].bytes) {
    return;
  }
  throw Error(
      Stage::Launch, "bad-recording",
      format_text("replay: there is no bit {} of buffer {} in frame {}: the recording has {} "
                  "and {}",
                  flip.bit, flip.buffer, flip.frame, count_text(recording.frames, "frame"),
                  count_text(recording.buffers.size(), "buffer")));
}

}  // namespace

Replay replay(const Context& context, const Recording& recording, const ReplayOptions& options) {
  if (options.flip) check_flip(*options.flip, recording);
  if (recording.is_program()) return replay_program(context, recording, options);
  Frames frames(context, recording);
  Replay result;
  std::vector<std::string> hashes;
  for (std::uint64_t frame = 0; frame < recording.frames; ++frame) {
    result.failure = frames.run(frame, options.flip);
    if (!result.failure.empty()) break;
    const std::vector<std::byte> found = frames.outputs();
    hashes.push_back(hash_text(found));
    // A recording that failed ends where it failed.
    if (frame >= recording.frame_hashes.size()) break;
    if (!result.first && hashes.back() != recording.frame_hashes[static_cast<std::size_t>(frame)]) {
      result.first = divergence_of(recording, frame, found, hashes.back());
    }
  }
  result.frames = hashes.size();
  result.hash = hash_of(hashes);
  result.same = !result.first && hashes.size() == recording.frame_hashes.size() &&
                kind_of(result.failure) == kind_of(recording.failure) &&
                !(hashes.empty() && result.failure.empty());
  return result;
}

std::string to_text(const Divergence& divergence, const Recording& recording) {
  if (recording.is_program()) return program_text_of(divergence);
  if (divergence.differing == 0) {
    return format_text(
        "frame {}: the outputs have the hash {}, and had {}; they were not kept, which would name "
        "the byte (record with a larger --keep)",
        divergence.frame, divergence.found, divergence.expected);
  }
  return format_text(
      "frame {}: {} of {} of the outputs differ, the first at byte {} of {}: {:02x}, "
      "and was {:02x}",
      divergence.frame, divergence.differing, count_text(output_bytes(recording), "byte"),
      divergence.offset, divergence.buffer, std::to_integer<unsigned>(divergence.found_byte),
      std::to_integer<unsigned>(divergence.expected_byte));
}

}  // namespace ptxgen::inline v0
