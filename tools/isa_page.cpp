// tools/isa_page.cpp - writes docs/isa.md from the op table
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "ptxgen/ptx.hpp"

using namespace ptxgen::ptx;

namespace {

std::string text(Version v) { return std::to_string(v.major) + "." + std::to_string(v.minor); }

std::string text(const Requirement& r) {
  std::string out = text(r.version);
  if (r.sm != 0) out += ", " + name(TargetName{r.sm, r.variant});
  return out;
}

// Text as Markdown code; | is escaped.
std::string code(std::string_view text) {
  std::string out = "`";
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out + "`";
}

std::string needs_text(const OpInfo& row) {
  std::string out;
  for (const Need& need : needs(row)) {
    if (!out.empty()) out += "; ";
    std::string modifiers;
    for (const Modifier modifier : condition(need)) modifiers += "." + std::string(name(modifier));
    if (need.requirement.never()) {
      out += "not `" + modifiers + "`";
    } else {
      out += (modifiers.empty() ? "" : "`" + modifiers + "` ") + text(need.requirement);
    }
  }
  return out;
}

std::string flags_text(Flag flags) {
  static constexpr std::pair<Flag, std::string_view> kNames[] = {
      {Flag::ReadsMemory, "reads memory"},
      {Flag::WritesMemory, "writes memory"},
      {Flag::Barrier, "barrier"},
      {Flag::Convergent, "convergent"},
      {Flag::Commutative, "commutative"},
      {Flag::Terminator, "terminator"},
      {Flag::Branch, "branch"},
      {Flag::Call, "call"},
      {Flag::Volatile, "volatile"},
      {Flag::Fence, "fence"},
      {Flag::Asynchronous, "asynchronous"}};
  std::string out;
  for (const auto& [flag, word] : kNames) {
    if (has(flags, flag)) out += (out.empty() ? "" : ", ") + std::string(word);
  }
  return out;
}

std::string page() {
  std::string out =
      "# PTX as the library knows it\n\n"
      "Generated from the op table (`include/ptxgen/ptx/ops.def`, where the notation is explained) "
      "by\n"
      "`tools/isa_page`; a test compares it with the table. An instruction that is not here can "
      "still\n"
      "be parsed and printed: it stays as it was written, unchecked.\n\n"
      "## Targets\n\n| target | lowest PTX | static shared bytes per block | most, opted in |\n"
      "|---|---|---|---|\n";
  for (const Target& target : targets()) {
    out += "| " + std::string(target.name) + " | " + text(target.version) + " | " +
           std::to_string(target.shared_per_block) + " | " +
           std::to_string(target.shared_per_block_opt_in) + " |\n";
  }
  std::string_view group;
  for (const OpInfo& row : op_table()) {
    if (row.group != group) {
      group = row.group;
      out += "\n## " + std::string(group) +
             "\n\n| row | opcode | operands | does | needs | flags |\n" +
             "|---|---|---|---|---|---|\n";
    }
    out += "| " + std::string(row.id) + " | " +
           code(std::string(row.mnemonic) + std::string(row.pattern)) + " | " +
           (row.operand_pattern.empty() ? std::string() : code(row.operand_pattern)) + " | " +
           std::string(row.doc) + " | " + needs_text(row) + " | " + flags_text(row.flags) + " |\n";
  }
  out += "\n## Special registers\n\n| register | type | needs |\n|---|---|---|\n";
  for (const SpecialInfo& reg : special_registers()) {
    out += "| `%" + std::string(reg.text) + (reg.components != 0 ? ".x .y .z" : "") + "` | ." +
           std::string(name(reg.type)) + " | " + text(reg.requirement) + " |\n";
  }
  return out;
}

}  // namespace

// isa_page FILE writes the page; isa_page --check FILE exits with 1 if FILE differs from it.
int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (argc != 2 && !check) {
    std::cerr << "usage: isa_page [--check] FILE\n";
    return 2;
  }
  const std::string wanted = page();
  if (!check) {
    std::ofstream(argv[1], std::ios::binary) << wanted;
    return 0;
  }
  std::ifstream in(argv[2], std::ios::binary);
  const std::string found{std::istreambuf_iterator<char>(in), {}};
  if (found == wanted) return 0;
  std::cerr << argv[2] << " is not what the op table says; write it anew with isa_page " << argv[2]
            << '\n';
  return 1;
}
