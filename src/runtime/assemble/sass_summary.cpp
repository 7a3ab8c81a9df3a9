// src/runtime/assemble/sass_summary.cpp - what machine code does with memory
#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>

#include "ptxgen/runtime/assemble/disassembler.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0 {

namespace {

bool has_part(std::string_view opcode, std::string_view part) {
  const std::size_t at = opcode.find(part);
  if (at == std::string_view::npos) return false;
  const std::size_t end = at + part.size();
  return (at == 0 || opcode[at - 1] == '.') && (end == opcode.size() || opcode[end] == '.');
}

bool is(std::string_view opcode, std::string_view mnemonic) {
  return opcode.substr(0, opcode.find('.')) == mnemonic;
}

// Bytes that a thread moves with it.
std::uint32_t width(std::string_view opcode) {
  if (has_part(opcode, "128")) return 16;
  if (has_part(opcode, "64")) return 8;
  if (has_part(opcode, "U16") || has_part(opcode, "S16")) return 2;
  if (has_part(opcode, "U8") || has_part(opcode, "S8")) return 1;
  return 4;
}

// The vector registers that the operands name, without those of the uniform file: R4, R2.64.
template <class Fn>
void for_each_register(std::string_view operands, Fn&& fn) {
  for (std::size_t at = 0; at < operands.size(); ++at) {
    if (operands[at] != 'R') continue;
    if (at != 0 && (std::isalnum(static_cast<unsigned char>(operands[at - 1])) != 0)) continue;
    std::string_view rest = operands.substr(at + 1);
    if (const auto reg = take_number<std::uint32_t>(rest)) fn(*reg);
  }
}

std::optional<std::uint32_t> branch_target(const SassInstruction& instruction) {
  if (!is(instruction.opcode, "BRA")) return {};
  const std::size_t at = instruction.operands.rfind("0x");
  if (at == std::string::npos) return {};
  std::string_view digits = std::string_view(instruction.operands).substr(at + 2);
  return take_number<std::uint32_t>(digits, 16);
}

// Loads whose data no instruction has named yet.
class Pending {
 public:
  void clear() {
    loads_.clear();
    bytes_ = 0;
  }
  void issue(const SassInstruction& instruction) {
    Load load{0, 0, width(instruction.opcode)};
    bool first = true;
    for_each_register(instruction.operands, [&](std::uint32_t reg) {
      if (first) load.reg = reg;
      first = false;
    });
    load.registers = std::max(1u, load.bytes / 4);
    bytes_ += load.bytes;
    loads_.push_back(load);
  }
  // Loads return in order: this waits for those ahead of it, too.
  void wait_for(std::uint32_t reg) {
    for (std::size_t i = loads_.size(); i-- != 0;) {
      if (reg < loads_[i].reg || reg >= loads_[i].reg + loads_[i].registers) continue;
      for (std::size_t done = 0; done <= i; ++done) bytes_ -= loads_[done].bytes;
      loads_.erase(loads_.begin(), loads_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return;
    }
  }
  [[nodiscard]] std::uint32_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(loads_.size());
  }

 private:
  struct Load {
    std::uint32_t reg;
    std::uint32_t registers;
    std::uint32_t bytes;
  };
  std::vector<Load> loads_;
  std::uint32_t bytes_ = 0;
};

struct Offsets {
  std::uint32_t first, last;
};

struct InFlight {
  SassLoads all, streamed;
};

// The maximum of loads in flight among instructions of a range, block by block.
InFlight max_in_flight(const SassFunction& function, const std::set<std::uint32_t>& targets,
                       const Offsets& range) {
  InFlight largest;
  Pending all, streamed;
  const auto issue = [](Pending& pending, SassLoads& largest_yet, const SassInstruction& load) {
    pending.issue(load);
    if (pending.bytes() > largest_yet.bytes)
      largest_yet = {pending.count(), pending.bytes(), load.offset};
  };
  for (const SassInstruction& instruction : function.instructions) {
    if (instruction.offset < range.first || instruction.offset > range.last) continue;
    const bool ends_block = branch_target(instruction).has_value();
    if (ends_block || targets.contains(instruction.offset)) {
      all.clear();
      streamed.clear();
    }
    for_each_register(instruction.operands, [&](std::uint32_t reg) {
      all.wait_for(reg);
      streamed.wait_for(reg);
    });
    if (!is(instruction.opcode, "LDG")) continue;
    issue(all, largest.all, instruction);
    if (has_part(instruction.opcode, "NA")) issue(streamed, largest.streamed, instruction);
  }
  return largest;
}

SassLoop loop_of(const SassFunction& function, const std::set<std::uint32_t>& targets,
                 const Offsets& range) {
  SassLoop loop;
  loop.first = range.first;
  loop.last = range.last;
  for (const SassInstruction& instruction : function.instructions) {
    if (instruction.offset < range.first || instruction.offset > range.last) continue;
    ++loop.instructions;
    if (is(instruction.opcode, "LDG")) loop.loaded_bytes += width(instruction.opcode);
    if (is(instruction.opcode, "LDGSTS")) loop.copied_bytes += width(instruction.opcode);
  }
  const InFlight in_flight = max_in_flight(function, targets, range);
  loop.in_flight = in_flight.all;
  loop.streamed = in_flight.streamed;
  return loop;
}

}  // namespace

const SassLoop* SassSummary::main_loop() const noexcept {
  const SassLoop* largest = nullptr;
  for (const SassLoop& loop : loops) {
    const std::uint32_t bytes = loop.loaded_bytes + loop.copied_bytes;
    if (bytes != 0 &&
        (largest == nullptr || bytes > largest->loaded_bytes + largest->copied_bytes)) {
      largest = &loop;
    }
  }
  return largest;
}

SassSummary summary_of(const SassFunction& function) {
  SassSummary summary;
  summary.instructions = static_cast<std::uint32_t>(function.instructions.size());
  std::set<std::uint32_t> targets;
  std::vector<Offsets> back;
  for (const SassInstruction& instruction : function.instructions) {
    if (is(instruction.opcode, "LDL") || is(instruction.opcode, "STL")) ++summary.spills;
    const auto target = branch_target(instruction);
    if (!target) continue;
    targets.insert(*target);
    // The endless loop after the last instruction branches to itself.
    if (*target < instruction.offset) back.push_back({*target, instruction.offset});
  }
  for (const Offsets& loop : back) {
    const bool innermost = std::none_of(back.begin(), back.end(), [&](const Offsets& other) {
      return other.first >= loop.first && other.last <= loop.last &&
             (other.first != loop.first || other.last != loop.last);
    });
    if (innermost) summary.loops.push_back(loop_of(function, targets, loop));
  }
  const InFlight in_flight = max_in_flight(function, targets, {0, ~std::uint32_t{0}});
  summary.in_flight = in_flight.all;
  summary.streamed = in_flight.streamed;
  return summary;
}

}  // namespace ptxgen::inline v0
