// tests/support/cubin.hpp - comparing the machine code of two cubins
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ptxgen::test {

/// The `.text.*` sections of a cubin by name. Throws `ptxgen::Error` ("bad-elf") for anything that
/// is not a whole 64-bit ELF file.
[[nodiscard]] std::map<std::string, std::vector<std::byte>> text_sections(
    std::span<const std::byte> cubin);

/// Whether two cubins hold the same code; if not, the first place where they differ.
struct CodeComparison {
  bool same = false;
  std::string section;     ///< ".text.kernel"
  std::size_t offset = 0;  ///< of the first byte that differs, or the shorter one's size
  std::string text;        ///< for a test's message; empty if same
  [[nodiscard]] explicit operator bool() const noexcept { return same; }
};

/// Compares all `.text.*` sections byte for byte. Two cubins without any are not the same: a check
/// that compares nothing is a failure.
[[nodiscard]] CodeComparison same_code(std::span<const std::byte> left,
                                       std::span<const std::byte> right);

}  // namespace ptxgen::test
