// src/runtime/recording/program_json.hpp - lines of a recording of a program
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/runtime/recording/recording.hpp"

/// The file of a recorded program: one JSON document a line, each written when it happens, so that
/// a program that dies leaves all lines before.
namespace ptxgen::inline v0 {

inline constexpr std::string_view kProgramFormat = "ptxgen recording 2";

// All lines end with a newline.
[[nodiscard]] std::string header_line(std::string_view made_by, std::string_view gpu);
/// A content, before the first step that names it.
[[nodiscard]] std::string content_line(std::string_view hash, std::span<const std::byte> bytes);
[[nodiscard]] std::string step_line(const driver::Step& step);
[[nodiscard]] std::string note_line(std::string_view text);
/// The last line. `cut_off`: why it is not the end of the program, or empty.
[[nodiscard]] std::string end_line(std::string_view failure, std::string_view cut_off,
                                   std::string_view hash);

/// "123:456:HASH;" of each output: what the hash of a launch is of.
[[nodiscard]] std::string text_of_outputs(std::span<const driver::StepOutput> outputs);

/// Finds the frames among steps that it gets in their order: launches, and graphs that are run as
/// one.
class FrameSteps {
 public:
  /// What a frame changed that ends well with this step, or null.
  [[nodiscard]] const std::vector<driver::StepOutput>* outputs_of(
      const driver::Step& step) noexcept;
  [[nodiscard]] bool in_graph() const noexcept { return in_graph_; }

 private:
  bool in_graph_ = false;
};

/// Whether the text begins with a header of such a file.
[[nodiscard]] bool is_program_text(std::string_view text) noexcept;
/// Throws `Error` (Stage::Io, "bad-recording") with the number of the line.
[[nodiscard]] Recording parse_program(std::string_view text);
[[nodiscard]] std::string program_text(const Recording& recording);

/// The bytes of a content, or null: it is not in the recording.
[[nodiscard]] const std::vector<std::byte>* find_content(const Recording& recording,
                                                         std::string_view hash) noexcept;

// recording_json.cpp
[[nodiscard]] std::string hex_of(std::span<const std::byte> bytes);
/// Throws `Error` ("bad-recording") for what are no digits.
[[nodiscard]] std::vector<std::byte> bytes_of_hex(std::string_view text);

}  // namespace ptxgen::inline v0
