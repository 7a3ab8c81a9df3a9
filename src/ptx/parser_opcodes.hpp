// src/ptx/parser_opcodes.hpp - candidate rows of an opcode
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx::reading {

/// A row whose modifiers match an opcode: `prototype` has `op` and `modifiers` set.
struct Candidate {
  Instruction prototype;
  const OpInfo* row = nullptr;
};

/// What is known about a dotted opcode text.
struct Opcode {
  const char* text = nullptr;
  std::uint32_t length = 0;
  std::uint32_t hash = 0;
  std::uint32_t first = 0;          ///< into the candidates
  std::uint16_t count = 0;          ///< 0: not in the op table
  std::uint16_t label_places = 0;   ///< bit i: operand i is a label
  std::uint16_t table_places = 0;   ///< bit i: operand i is the label of a table
  std::uint16_t memory_places = 0;  ///< bit i: operand i is an address
  bool call = false;
  bool coordinates = false;  ///< an address ends with the coordinates of a tensor or texture
  bool texture = false;      ///< the table has the commonest forms of it, PTX more
};

/// Opcodes by text, each matched against the op table once. Texts are not copied, and must have 8
/// readable bytes after them.
class OpcodeTable {
 public:
  OpcodeTable() : buckets_(256) {}

  [[nodiscard]] Opcode find(std::string_view text);
  [[nodiscard]] std::span<const Candidate> candidates(const Opcode& opcode) const noexcept {
    return {candidates_.data() + opcode.first, opcode.count};
  }

 private:
  std::uint32_t add(std::string_view text, std::uint32_t hash);
  void place(std::uint32_t number) noexcept;

  std::vector<Opcode> opcodes_;
  std::vector<std::uint32_t> buckets_;  // number + 1, 0 is free; a power of two of them
  std::vector<Candidate> candidates_;
};

/// The first candidate that the operands fit, by their types or else by their kinds; the first of
/// all if they fit none.
[[nodiscard]] const Candidate& choose(std::span<const Candidate> candidates, const Module& module,
                                      const Function& function, std::span<const Operand> operands);

}  // namespace ptxgen::inline v0::ptx::reading
