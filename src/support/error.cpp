// src/support/error.cpp - the text of ptxgen::Error
#include "ptxgen/support/error.hpp"

#include <array>
#include <utility>

namespace ptxgen::inline v0 {

std::string_view to_string(Stage stage) noexcept {
  static constexpr std::array<std::string_view, 10> kNames = {
      "build",  "verify", "optimize", "assemble", "load",
      "launch", "cache",  "emulate",  "device",   "io"};
  const auto index = static_cast<std::size_t>(stage);
  return index < kNames.size() ? kNames[index] : "unknown";
}

Error::Error(Stage stage_, std::string code_, std::string message_)
    : stage(stage_), code(std::move(code_)), message(std::move(message_)) {
  refresh();
}

std::string Error::describe() const {
  std::string text;
  if (!file.empty() || line != 0) {
    text += file.empty() ? "<ptx>" : file;
    if (line != 0) text += ":" + std::to_string(line);
    if (column != 0) text += ":" + std::to_string(column);
    text += ": ";
  }
  text += "error: " + message + " [" + code + "]";
  const auto indented = [&text](std::string_view lines) {
    while (!lines.empty()) {
      const auto end = lines.find('\n');
      text += "\n  ";
      text += lines.substr(0, end);
      lines = end == std::string_view::npos ? std::string_view{} : lines.substr(end + 1);
    }
  };
  if (!excerpt.empty()) indented(excerpt);
  std::string context = "stage " + std::string(to_string(stage));
  if (!kernel.empty()) context += ", kernel " + kernel;
  if (!target.empty()) context += ", target " + target;
  if (driver_status != 0) context += ", status " + std::to_string(driver_status);
  indented(context);
  if (site.known())
    indented("built at " + std::string(site.file) + ":" + std::to_string(site.line));
  if (!log.empty()) {
    indented("log:");
    indented(log);
  }
  for (const Error& cause : causes) {
    indented("also:");
    indented(cause.describe());
  }
  return text;
}

Error& Error::refresh() {
  what_ = describe();
  return *this;
}

}  // namespace ptxgen::inline v0
