// tests/ptx/op_line.cpp - the one-line instructions that exercise each row
#include "ptx/op_line.hpp"

#include <algorithm>

#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::test {

namespace {

constexpr OpLine kLines[] = {
#define PTXGEN_LINE(op, text) {ptx::Op::op, text},
#define PTXGEN_LAX_LINE(op, text) {ptx::Op::op, text, true},
#include "lines_arithmetic.def"
#include "lines_async.def"
#include "lines_control.def"
#include "lines_matrix.def"
#include "lines_memory.def"
#include "lines_texture.def"
#undef PTXGEN_LINE
#undef PTXGEN_LAX_LINE
};

constexpr std::string_view kBefore =
    ".address_size 64\n"
    ".global .align 16 .b8 g[1024];\n"
    ".const .align 16 .b8 c[1024];\n"
    ".shared .align 16 .b8 s[1024];\n"
    ".func noargs() { ret; }\n"
    ".func (.param .b32 r) onearg(.param .b32 a) { ret; }\n"
    ".visible .entry k(.param .align 16 .b8 p[64])\n"
    "{\n"
    ".local .align 16 .b8 l[1024];\n"
    ".param .b32 a0;\n"
    ".param .b32 r0;\n"
    ".reg .pred %p<32>;\n"
    ".reg .b8 %b<32>;\n"
    ".reg .b16 %h<32>;\n"
    ".reg .u16 %rs<32>;\n"
    ".reg .b32 %r<32>;\n"
    ".reg .b64 %rd<32>;\n"
    ".reg .f32 %f<32>;\n"
    ".reg .f64 %fd<32>;\n"
    "T0: .branchtargets L0, L1;\n"
    "P0: .callprototype (.param .b32 _) _ (.param .b32 _);\n";

// .b128 registers need PTX 8.3 and sm_70, so they are declared only where a line uses them.
constexpr std::string_view kWide = ".reg .b128 %q<32>;\n";

}  // namespace

std::span<const OpLine> op_lines() { return kLines; }

std::string module_with(std::span<const OpLine> lines, std::string_view target,
                        ptx::Version version) {
  std::string text = ".version " + std::to_string(version.major) + "." +
                     std::to_string(version.minor) + "\n.target " + std::string(target) + "\n";
  text += kBefore;
  const bool wide = std::any_of(lines.begin(), lines.end(), [](const OpLine& line) {
    return line.text.find("%q") != std::string_view::npos;
  });
  text += wide ? kWide : "\n";
  for (const OpLine& line : lines) text.append(line.text).append("\n");
  text += "L0:\nL1:\nret;\n}\n";
  return text;
}

std::uint32_t first_line() {
  return 4 + static_cast<std::uint32_t>(std::count(kBefore.begin(), kBefore.end(), '\n'));
}

const ptx::Instruction* statement_on(const ptx::Function& function, std::uint32_t line) {
  for (const ptx::Instruction& statement : function.body) {
    if (statement.line == line) return &statement;
  }
  return nullptr;
}

const ptx::Target* lowest_target(const ptx::Function& function,
                                 const ptx::Instruction& instruction) {
  for (const ptx::Target& target : ptx::targets()) {
    const ptx::TargetName name{target.sm, target.variant};
    if (ptx::check_target(function, instruction, name, {255, 255}).rule.empty()) return &target;
  }
  return nullptr;
}

std::span<const ptx::Version> versions() {
  static constexpr ptx::Version kVersions[] = {
      {6, 3}, {6, 4}, {6, 5}, {7, 0}, {7, 1}, {7, 2}, {7, 3}, {7, 4}, {7, 5}, {7, 6}, {7, 7},
      {7, 8}, {8, 0}, {8, 1}, {8, 2}, {8, 3}, {8, 4}, {8, 5}, {8, 6}, {8, 7}, {8, 8}, {9, 0}};
  return kVersions;
}

}  // namespace ptxgen::test
