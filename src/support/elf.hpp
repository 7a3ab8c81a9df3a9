// src/support/elf.hpp - the sections of a cubin
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ptxgen::inline v0 {

/// One section of a 64-bit little-endian ELF file. Views into the file's bytes.
struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint32_t info = 0;
  std::uint64_t size = 0;            ///< bytes, also for sections that hold none in the file
  std::span<const std::byte> bytes;  ///< empty for SHT_NOBITS
};

/// All sections in the file's order. Every offset is checked against the file's size: throws
/// `Error` (stage io, "bad-elf") that says what does not fit.
[[nodiscard]] std::vector<ElfSection> elf_sections(std::span<const std::byte> file);

}  // namespace ptxgen::inline v0
