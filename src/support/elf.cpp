// src/support/elf.cpp - the sections of a cubin
#include "support/elf.hpp"

#include <cstring>
#include <string>

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"

namespace ptxgen::inline v0 {

namespace {

// Offsets and sizes of the 64-bit ELF structures (System V ABI, "Object Files").
constexpr std::size_t kHeaderSize = 64;
constexpr std::size_t kSectionHeaderSize = 64;
constexpr std::uint32_t kNoBits = 8;

[[noreturn]] void fail(const std::string& what) {
  throw Error(Stage::Io, "bad-elf", "not a readable 64-bit ELF file: " + what);
}

/// `size` bytes at `offset`, or an error naming `what`.
std::span<const std::byte> slice(std::span<const std::byte> file, std::uint64_t offset,
                                 std::uint64_t size, const std::string& what) {
  if (offset > file.size() || size > file.size() - offset) {
    fail(what + " needs bytes " + std::to_string(offset) + " to " + std::to_string(offset + size) +
         " of a file of " + count_text(file.size(), "byte"));
  }
  return file.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

template <class T>
T number(std::span<const std::byte> from, std::size_t offset) {
  T value = 0;
  // Both the file and every host with a CUDA driver are little-endian.
  std::memcpy(&value, from.data() + offset, sizeof(T));
  return value;
}

std::string_view text_at(std::span<const std::byte> table, std::uint32_t offset) {
  if (offset >= table.size()) fail("a section name is outside the name table");
  const auto rest = table.subspan(offset);
  const char* begin = reinterpret_cast<const char*>(rest.data());
  const void* end = std::memchr(begin, 0, rest.size());
  if (end == nullptr) fail("a section name has no end");
  return {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
}

}  // namespace

std::vector<ElfSection> elf_sections(std::span<const std::byte> file) {
  const auto header = slice(file, 0, kHeaderSize, "the header");
  static constexpr unsigned char kMagic[] = {0x7f, 'E', 'L', 'F', 2, 1};
  if (std::memcmp(header.data(), kMagic, sizeof kMagic) != 0) fail("the first bytes are wrong");
  const auto table_offset = number<std::uint64_t>(header, 40);
  const auto entry_size = number<std::uint16_t>(header, 58);
  const auto count = number<std::uint16_t>(header, 60);
  const auto names_index = number<std::uint16_t>(header, 62);
  if (count == 0) return {};
  if (entry_size < kSectionHeaderSize) fail("section headers are too small");
  if (names_index >= count) fail("the name table's index is out of range");
  const auto table =
      slice(file, table_offset, std::uint64_t{entry_size} * count, "the section table");
  const auto entry = [&](std::size_t index) {
    return table.subspan(index * entry_size, kSectionHeaderSize);
  };
  const auto names = slice(file, number<std::uint64_t>(entry(names_index), 24),
                           number<std::uint64_t>(entry(names_index), 32), "the name table");
  std::vector<ElfSection> sections;
  sections.reserve(count);
  for (std::size_t i = 1; i < count; ++i) {
    const auto at = entry(i);
    ElfSection section;
    section.name = text_at(names, number<std::uint32_t>(at, 0));
    section.type = number<std::uint32_t>(at, 4);
    section.info = number<std::uint32_t>(at, 44);
    section.size = number<std::uint64_t>(at, 32);
    if (section.type != kNoBits) {
      section.bytes = slice(file, number<std::uint64_t>(at, 24), section.size,
                            "section " + std::string(section.name));
    }
    sections.push_back(section);
  }
  return sections;
}

}  // namespace ptxgen::inline v0
