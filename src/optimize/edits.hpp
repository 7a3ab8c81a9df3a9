// src/optimize/edits.hpp - changes to a function's body, collected and made at once
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "optimize/fresh_names.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::optimize {

/// Statements to insert, replace and erase. Statement numbers are those of the body as it was when
/// the edits were begun, until `apply`. New statements get line, site and hints of the statement
/// that they are made like, so that messages still lead to the code of the author.
class Edits {
 public:
  Edits(ptx::Module& module, ptx::Function& function) : module_(&module), function_(&function) {}

  /// A new statement of the row, with words for its slots in any order; words that are always there
  /// may be missing. The operands are copied into the function's pool (elements of Vector and List
  /// operands must be in it already: see `vector`). Throws std::logic_error if the words do not
  /// fit.
  [[nodiscard]] ptx::Instruction make(ptx::Op op, std::span<const ptx::Modifier> words,
                                      std::span<const ptx::Operand> operands, std::uint32_t like);
  [[nodiscard]] ptx::Instruction make(ptx::Op op, std::initializer_list<ptx::Modifier> words,
                                      std::initializer_list<ptx::Operand> operands,
                                      std::uint32_t like) {
    return make(op, std::span(words.begin(), words.size()),
                std::span(operands.begin(), operands.size()), like);
  }
  /// A statement that puts a label at its place.
  [[nodiscard]] ptx::Instruction place(ptx::LabelId label, std::uint32_t like);
  /// A copy of a statement with operands of its own, so that either can be changed.
  [[nodiscard]] ptx::Instruction copy(const ptx::Instruction& instruction);

  void erase(std::uint32_t statement) { add(statement, Kind::Erase, {}); }
  void replace(std::uint32_t statement, const ptx::Instruction& by) {
    add(statement, Kind::Replace, by);
  }
  /// Several before one statement stand in the order in which they were inserted. body.size() puts
  /// them at the end.
  void insert_before(std::uint32_t statement, const ptx::Instruction& instruction) {
    add(statement, Kind::Before, instruction);
  }

  /// A register of the function's outermost scope that nobody uses yet. Registers of one type share
  /// a declaration with a name that is new in the function.
  [[nodiscard]] ptx::Register new_register(ptx::Type type);
  /// A label of scope `scope` with a new name.
  [[nodiscard]] ptx::LabelId new_label(std::uint32_t scope = 0);

  [[nodiscard]] bool empty() const noexcept { return edits_.empty(); }
  /// Makes the changes in the body, in time linear in it. Afterwards the object can be used anew.
  void apply();

 private:
  enum class Kind : std::uint8_t { Before, Replace, Erase };
  struct Edit {
    std::uint32_t statement;
    Kind kind;
    ptx::Instruction instruction;
  };
  void add(std::uint32_t statement, Kind kind, const ptx::Instruction& instruction) {
    edits_.push_back({statement, kind, instruction});
  }

  ptx::Module* module_;
  ptx::Function* function_;
  std::vector<Edit> edits_;
  struct Declared {
    ptx::Type type;
    ptx::DeclId decl;
  };
  std::vector<Declared> declared_;
  std::optional<FreshNames> label_names_;
};

}  // namespace ptxgen::inline v0::optimize
