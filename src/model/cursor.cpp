// src/model/cursor.cpp - checked reads of little-endian bytes
#include "model/cursor.hpp"

#include "model/format.hpp"
#include "model/printable.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"

namespace ptxgen::inline v0::gguf {

std::string place_text(const Subject& subject, std::uint64_t offset) {
  std::string text(subject.noun);
  if (!subject.name.empty()) {
    text += " '" + printable(subject.name) + "'";
  } else if (subject.number != 0) {
    text += format_text(" number {}", subject.number);
  }
  return text + format_text(" at byte {}", offset);
}

void fail(std::string_view file, std::string_view code, const Subject& subject,
          std::uint64_t offset, std::string_view text) {
  Error error(Stage::Io, std::string(code), place_text(subject, offset) + ": " + std::string(text));
  error.file = file;
  throw error.refresh();
}

void Cursor::fail(std::string_view code, std::uint64_t offset, std::string_view text) const {
  gguf::fail(file_, code, subject, offset, text);
}

void Cursor::truncated(std::uint64_t count) const {
  fail("truncated", offset(),
       format_text("the file ends here: {} needed, {} left", count_text(count, "byte"), left()));
}

std::uint64_t Cursor::count(std::string_view noun, std::uint64_t min_bytes) {
  const std::uint64_t at = offset();
  const std::uint64_t result = u64();
  if (result > left() / min_bytes) {
    fail("bad-count", at,
         format_text("the {} that follow cannot hold {} of {} or more", count_text(left(), "byte"),
                     count_text(result, noun), count_text(min_bytes, "byte")));
  }
  return result;
}

}  // namespace ptxgen::inline v0::gguf
