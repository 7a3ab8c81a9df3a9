// src/runtime/recording/frames.hpp - the frames of a recording, run on a device
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/module/module.hpp"
#include "ptxgen/runtime/recording/recording.hpp"

namespace ptxgen::inline v0 {

/// The bytes of a buffer before that frame. Throws `Error` (Stage::Launch, "bad-recording") if the
/// content has another size than the buffer.
[[nodiscard]] std::vector<std::byte> content_of(const RecordedBuffer& buffer, std::uint64_t frame);

/// PTX without the gates: what was recorded is repeated, also what they refuse. Throws what parsing
/// and `Module::load_image` throw.
[[nodiscard]] Module load_as_it_is(const Context& context, std::string_view ptx,
                                   std::string_view file);

/// Modules, buffers and launches of a recording on a device. `context` and `recording` must outlive
/// it.
///
/// Threads: one at a time.
class Frames {
 public:
  /// Throws `Error` (Stage::Launch, "bad-recording") for indices and offsets that do not fit.
  Frames(const Context& context, const Recording& recording);

  /// Writes the inputs and runs all launches; frames in ascending order from 0. Returns what went
  /// wrong, as `Recording::failure`.
  [[nodiscard]] std::string run(std::uint64_t frame, const std::optional<FlippedBit>& flip);
  /// All bytes of the outputs, in the order of the buffers.
  [[nodiscard]] std::vector<std::byte> outputs() const;

 private:
  struct Launch {
    Function function;
    std::vector<std::byte> block;
  };
  void write_inputs(std::uint64_t frame, const std::optional<FlippedBit>& flip);
  [[nodiscard]] std::string findings_since(std::uint64_t errors_and_warnings,
                                           std::size_t kept_before) const;

  const Context& context_;
  const Recording& recording_;
  std::vector<Buffer<u8>> buffers_;
  std::vector<Launch> launches_;
};

}  // namespace ptxgen::inline v0
