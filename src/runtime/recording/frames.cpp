// src/runtime/recording/frames.cpp - the frames of a recording, run on a device
#include "runtime/recording/frames.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "runtime/launch/random_operands.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

Error bad_recording(const std::string& message) {
  return Error(Stage::Launch, "bad-recording", "recording: " + message);
}

std::vector<std::byte> bytes_of_spec(const RecordedBuffer& buffer, std::uint64_t frame) {
  std::string text = buffer.content.spec;
  if (buffer.content.each_frame) text += format_text(":{}", buffer.content.seed + frame);
  const emulator::BufferContent content = emulator::buffer_content(
      emulator::parse_argument(text), 1, buffer.name, std::max<std::uint64_t>(buffer.bytes, 1));
  const auto* const begin = reinterpret_cast<const std::byte*>(content.data.data());
  return {begin, begin + content.data.size()};
}

// All of a buffer but what is to stay unwritten.
void write_content(Buffer<u8>& buffer, const RecordedBuffer& recorded,
                   std::span<const std::uint8_t> bytes) {
  std::uint64_t at = 0;
  const auto write_to = [&](std::uint64_t end) {
    if (end <= at) return;
    buffer.write_part(
        at, bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(end - at)));
  };
  for (const auto& [begin, end] : recorded.content.unwritten) {
    if (begin < at || end < begin || end > bytes.size()) {
      throw bad_recording(format_text("buffer {}: bytes {} to {} are not written, of {}",
                                      recorded.name, begin, end, bytes.size()));
    }
    write_to(begin);
    at = end;
  }
  write_to(bytes.size());
}

std::vector<std::byte> random_bytes(const RecordedBuffer& buffer, std::uint64_t frame) {
  const RecordedContent& content = buffer.content;
  ArgumentInfo range;
  range.low = content.low;
  range.high = content.high;
  const ElementInfo& type = info(content.type);
  const std::uint64_t blocks = buffer.bytes / type.block_bytes;
  return random_elements(content.type, blocks * type.block_values, range,
                         content.seed + (content.each_frame ? frame : 0));
}

}  // namespace

std::vector<std::byte> content_of(const RecordedBuffer& buffer, std::uint64_t frame) {
  const RecordedContent& content = buffer.content;
  std::vector<std::byte> bytes;
  switch (content.kind) {
    case RecordedContent::Kind::Bytes:
      bytes = content.bytes;
      break;
    case RecordedContent::Kind::Fill:
      bytes.assign(static_cast<std::size_t>(buffer.bytes), std::byte{content.fill});
      break;
    case RecordedContent::Kind::Spec:
      bytes = bytes_of_spec(buffer, frame);
      break;
    case RecordedContent::Kind::Elements:
      bytes = random_bytes(buffer, frame);
      break;
  }
  if (bytes.size() != buffer.bytes) {
    throw bad_recording(format_text("buffer {} has {} bytes, and content of {}", buffer.name,
                                    buffer.bytes, bytes.size()));
  }
  return bytes;
}

Module load_as_it_is(const Context& context, std::string_view ptx, std::string_view file) {
  const std::string text(ptx);
  const auto image = std::as_bytes(std::span(text.c_str(), text.size() + 1));
  return Module::load_image(context, image, ptx::parse(text, file));
}

Frames::Frames(const Context& context, const Recording& recording)
    : context_(context), recording_(recording) {
  for (const RecordedBuffer& buffer : recording.buffers) {
    buffers_.emplace_back(context, buffer.bytes);
  }
  std::vector<Module> modules;
  for (const std::string& text : recording.modules) {
    modules.push_back(load_as_it_is(context, text, "<recording>"));
  }
  for (const RecordedLaunch& launch : recording.launches) {
    if (launch.module >= modules.size()) {
      throw bad_recording(format_text("kernel {} is in module {}, of {}", launch.kernel,
                                      launch.module, modules.size()));
    }
    Launch ready{modules[launch.module].function(launch.kernel), launch.block};
    for (const RecordedPointer& pointer : launch.pointers) {
      if (pointer.buffer >= buffers_.size() || pointer.at + 8ull > ready.block.size() ||
          pointer.offset > buffers_[pointer.buffer].bytes()) {
        throw bad_recording(
            format_text("kernel {}: the address at byte {} of its arguments is "
                        "byte {} of buffer {}, which there is not",
                        launch.kernel, pointer.at, pointer.offset, pointer.buffer));
      }
      const std::uint64_t address = buffers_[pointer.buffer].address().value + pointer.offset;
      std::memcpy(ready.block.data() + pointer.at, &address, sizeof(address));
    }
    launches_.push_back(std::move(ready));
  }
}

void Frames::write_inputs(std::uint64_t frame, const std::optional<FlippedBit>& flip) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const RecordedBuffer& buffer = recording_.buffers[i];
    const bool flipped = flip && flip->buffer == i;
    // A frame after the one with the inverted bit has it as it was.
    const bool touched = flipped && (flip->frame == frame || flip->frame + 1 == frame);
    if (frame != 0 && !buffer.output && !buffer.content.each_frame && !touched) continue;
    std::vector<std::byte> bytes = content_of(buffer, frame);
    if (flipped && flip->frame == frame) {
      bytes[static_cast<std::size_t>(flip->bit / 8)] ^= std::byte{1} << (flip->bit % 8);
    }
    write_content(buffers_[i], buffer, as_u8(bytes));
  }
}

std::string Frames::findings_since(std::uint64_t errors_and_warnings,
                                   std::size_t kept_before) const {
  const FindingCounts counts = context_.device().finding_counts();
  if (counts.errors + counts.warnings == errors_and_warnings) return {};
  std::set<std::string> rules;
  const std::vector<LaunchFinding> all = context_.device().findings();
  for (const LaunchFinding& found : std::span(all).subspan(std::min(kept_before, all.size()))) {
    if (found.finding.severity != Severity::Note) rules.insert(found.finding.rule);
  }
  std::string text;
  for (const std::string& rule : rules) text += (text.empty() ? "" : ", ") + rule;
  return "findings: " + text;
}

std::string Frames::run(std::uint64_t frame, const std::optional<FlippedBit>& flip) {
  const FindingCounts counts = context_.device().finding_counts();
  const std::size_t kept = static_cast<std::size_t>(counts.all() - counts.dropped);
  write_inputs(frame, flip);
  const Stream stream(context_);
  try {
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      launches_[i].function.launch(stream, recording_.launches[i].geometry, launches_[i].block);
    }
    stream.synchronize();
  } catch (const Error& error) {
    if (error.code != "device-fault") throw;
    return "device-fault: " + error.message;
  }
  return findings_since(counts.errors + counts.warnings, kept);
}

std::vector<std::byte> Frames::outputs() const {
  std::vector<std::byte> all;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (!recording_.buffers[i].output) continue;
    const std::size_t at = all.size();
    all.resize(at + static_cast<std::size_t>(buffers_[i].bytes()));
    buffers_[i].read({reinterpret_cast<std::uint8_t*>(all.data() + at), all.size() - at});
  }
  return all;
}

}  // namespace ptxgen::inline v0
