// tests/emulator/lane_runner.cpp - one instruction's semantics on given source bits
#include "lane_runner.hpp"

#include <catch2/catch.hpp>

#include "ptxgen/ptx/parser.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

constexpr std::size_t kMaxWords = 64;

/// splitmix64: the same numbers everywhere.
std::uint64_t random_bits(std::uint64_t number) {
  std::uint64_t z = seed() * 0x9e3779b97f4a7c15u + number * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t mask(unsigned width) {
  return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

void add_widths(ptx::Type type, unsigned elements, std::vector<unsigned>& out) {
  for (unsigned i = 0; i < elements; ++i) {
    unsigned left = ptx::bits(type);
    for (; left > 64; left -= 64) out.push_back(64);
    out.push_back(left);
  }
}

}  // namespace

ptx::Module kernel_with(std::string_view statements) {
  std::string text =
      ".version 9.0\n.target sm_100a\n.address_size 64\n"
      ".global .align 16 .b8 g[1024];\n.shared .align 16 .b8 s[1024];\n"
      ".visible .entry k()\n{\n.reg .pred %p<32>; .reg .b8 %b<32>; .reg .b16 %h<32>;\n"
      ".reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .b128 %q<32>; .reg .f32 %f<64>;\n"
      ".reg .f64 %fd<64>;\n";
  text.append(statements).append("\n}\n");
  return ptx::parse(text);
}

std::string registers_of(unsigned width) {
  switch (width) {
    case 1:
      return "%p";
    case 8:
      return "%b";
    case 16:
      return "%h";
    case 32:
      return "%r";
    case 64:
      return "%rd";
    default:
      return "%q";
  }
}

std::vector<const ptx::Instruction*> instructions_of(const ptx::Module& module) {
  std::vector<const ptx::Instruction*> found;
  for (const ptx::Instruction& statement : module.functions.back().body) {
    if (statement.kind == ptx::StatementKind::Instruction) found.push_back(&statement);
  }
  return found;
}

LaneRunner::LaneRunner(std::string text) : text_(std::move(text)) {
  INFO(text_);
  const ptx::Module module = kernel_with(text_);
  const auto instructions = instructions_of(module);
  REQUIRE(instructions.size() == 1);
  const ptx::Instruction& instruction = *instructions[0];
  function_ = emulator::lane_function(instruction, op_);
  REQUIRE(function_ != nullptr);

  const ptx::Function& function = module.functions.back();
  for (std::size_t i = 0; i < instruction.operand_count; ++i) {
    const ptx::OperandSpec* spec = ptx::operand_spec(function, instruction, i);
    REQUIRE(spec != nullptr);
    if (spec->role == ptx::OperandRole::Destination) continue;
    add_widths(ptx::operand_type(instruction, *spec),
               std::max(1u, ptx::operand_elements(instruction, *spec)), source_widths_);
  }
  // A second destination that is not written has its place all the same.
  for (const ptx::OperandSpec& spec : ptx::info(instruction.op).operand_specs()) {
    if (spec.role != ptx::OperandRole::Destination) continue;
    add_widths(ptx::operand_type(instruction, spec),
               std::max(1u, ptx::operand_elements(instruction, spec)), result_widths_);
  }
  op_.source_count = static_cast<std::uint8_t>(source_widths_.size());
  op_.result_count = static_cast<std::uint8_t>(result_widths_.size());
  // Rows that read the carry flag find it after their sources.
  if (op_.op == ptx::Op::addc || op_.op == ptx::Op::subc || op_.op == ptx::Op::madc) {
    source_widths_.push_back(1);
  }
  if (op_.carry_out) result_widths_.push_back(1);
}

std::vector<std::uint64_t> LaneRunner::run(const std::vector<std::uint64_t>& sources) const {
  if (sources.size() != source_widths_.size()) {
    INFO(text_);
    REQUIRE(sources.size() == source_widths_.size());
  }
  std::vector<std::uint64_t> results(kMaxWords, kUnwritten);
  function_(op_, sources.data(), results.data());
  for (std::size_t i = 0; i < result_widths_.size(); ++i) {
    if (results[i] != (results[i] & mask(result_widths_[i]))) {
      INFO(text_ << ": bits outside the width of result " << i);
      CHECK(results[i] == (results[i] & mask(result_widths_[i])));
    }
  }
  for (std::size_t i = result_widths_.size(); i < kMaxWords; ++i) {
    if (results[i] != kUnwritten) {
      INFO(text_ << ": writes result " << i);
      CHECK(results[i] == kUnwritten);
    }
  }
  results.resize(result_widths_.size());
  return results;
}

const std::vector<std::uint64_t>& corner_bits(unsigned width) {
  static const std::vector<std::vector<std::uint64_t>> kAll = [] {
    std::vector<std::vector<std::uint64_t>> all(65);
    all[1] = {0, 1};
    for (unsigned w : {8u, 16u, 32u, 64u}) {
      const std::uint64_t top = std::uint64_t{1} << (w - 1);
      for (const std::uint64_t bits : {std::uint64_t{0},
                                       std::uint64_t{1},
                                       ~std::uint64_t{0},
                                       top,
                                       top - 1,
                                       std::uint64_t{2},
                                       ~std::uint64_t{1},
                                       top + 1,
                                       std::uint64_t{w / 2},
                                       std::uint64_t{w - 1},
                                       std::uint64_t{w},
                                       std::uint64_t{w + 1},
                                       std::uint64_t{0x5555555555555555},
                                       std::uint64_t{1} << w / 2,
                                       (std::uint64_t{1} << w / 2) - 1,
                                       std::uint64_t{0xaaaaaaaaaaaaaaaa},
                                       std::uint64_t{255},
                                       std::uint64_t{0x0123456789abcdef},
                                       top >> 1,
                                       std::uint64_t{256 + 7}}) {
        all[w].push_back(bits & mask(w));
      }
    }
    return all;
  }();
  return kAll[width];
}

bool next_sources(const std::vector<unsigned>& widths, std::uint64_t random_count,
                  std::uint64_t& state, std::vector<std::uint64_t>& out) {
  out.resize(widths.size());
  // Two sources: every corner with every other. More: the first corners, which are the sharpest.
  const std::size_t max = widths.size() <= 2 ? 20 : widths.size() == 3 ? 14 : 7;
  std::uint64_t combinations = 1;
  for (const unsigned width : widths) {
    combinations *= std::min<std::uint64_t>(max, corner_bits(width).size());
  }
  // A dozen parts put together are not tried in all combinations.
  combinations = std::min<std::uint64_t>(combinations, 20000);
  std::uint64_t number = state++;
  if (number < combinations) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::uint64_t there = std::min<std::uint64_t>(max, corner_bits(widths[i]).size());
      out[i] = corner_bits(widths[i])[number % there];
      number /= there;
    }
    return true;
  }
  if (number - combinations >= random_count) return false;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::uint64_t bits = random_bits(number * 16 + i);
    // Short numbers are as likely as long ones: counts and positions are among the sources.
    const auto length = static_cast<unsigned>(random_bits(number * 16 + 8 + i) % (widths[i] + 1));
    out[i] = (bits & 1) != 0 ? bits & mask(widths[i]) : bits & mask(length) & mask(widths[i]);
  }
  return true;
}

}  // namespace ptxgen::test
