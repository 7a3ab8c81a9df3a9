// src/cli_common/files.hpp - input files, products, JSON text
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ptxgen::cli {

/// The largest PTX text that is read, in bytes.
constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 30;
/// The whole file, or standard input for "-", of at most `max_bytes`. Throws `Error` (stage io), as
/// `read_file`.
[[nodiscard]] std::string read_input(const std::string& path,
                                     std::uint64_t max_bytes = kMaxTextBytes);
/// The name of that input in messages.
[[nodiscard]] std::string input_name(const std::string& path);
/// Writes to the file, or to standard output if `path` is empty or "-". Throws `Error` (stage io).
void write_output(const std::string& path, std::string_view bytes);
/// Throws `UsageError` that begins with `option` if the file cannot be written: it is a folder or
/// read-only, or its folder is missing or read-only. Creates and changes nothing.
void check_writable(const std::string& option, const std::string& path);
enum class Stream { Out, Err };
/// Whether standard output or error is a terminal.
[[nodiscard]] bool is_terminal(Stream stream) noexcept;

/// JSON as the programs print it: two spaces of indentation, invalid UTF-8 replaced.
[[nodiscard]] std::string text_of(const nlohmann::json& json);

}  // namespace ptxgen::cli
