// tests/support/cubin.cpp - comparing the machine code of two cubins
#include "support/cubin.hpp"

#include <algorithm>
#include <cstdio>

#include "support/elf.hpp"

namespace ptxgen::test {

namespace {

std::string byte_text(const std::vector<std::byte>& bytes, std::size_t offset) {
  if (offset >= bytes.size()) return "its end";
  char text[8];
  std::snprintf(text, sizeof text, "0x%02x", static_cast<unsigned>(bytes[offset]));
  return text;
}

}  // namespace

std::map<std::string, std::vector<std::byte>> text_sections(std::span<const std::byte> cubin) {
  std::map<std::string, std::vector<std::byte>> sections;
  for (const ElfSection& section : elf_sections(cubin)) {
    if (section.name.rfind(".text.", 0) != 0) continue;
    sections[std::string(section.name)].assign(section.bytes.begin(), section.bytes.end());
  }
  return sections;
}

CodeComparison same_code(std::span<const std::byte> left, std::span<const std::byte> right) {
  const auto left_sections = text_sections(left);
  const auto right_sections = text_sections(right);
  CodeComparison result;
  if (left_sections.empty() && right_sections.empty()) {
    result.text = "neither cubin holds any code";
    return result;
  }
  for (const auto& [name, code] : left_sections) {
    const auto other = right_sections.find(name);
    if (other == right_sections.end()) {
      result.section = name;
      result.text = name + " is in the first cubin only";
      return result;
    }
    const auto [at, other_at] =
        std::mismatch(code.begin(), code.end(), other->second.begin(), other->second.end());
    if (at == code.end() && other_at == other->second.end()) continue;
    result.section = name;
    result.offset = static_cast<std::size_t>(at - code.begin());
    result.text = name + " differs at byte " + std::to_string(result.offset) + ": " +
                  byte_text(code, result.offset) + " against " +
                  byte_text(other->second, result.offset) + " (" + std::to_string(code.size()) +
                  " and " + std::to_string(other->second.size()) + " bytes)";
    return result;
  }
  for (const auto& [name, code] : right_sections) {
    if (left_sections.count(name) != 0) continue;
    result.section = name;
    result.text = name + " is in the second cubin only";
    return result;
  }
  result.same = true;
  return result;
}

}  // namespace ptxgen::test
