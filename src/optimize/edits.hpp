// src/optimize/edits.hpp - collected changes of a function body
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "optimize/fresh_names.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::optimize {

/// Statements to insert, replace and erase. Statement numbers are those of the original body until
/// `apply`. New statements get line, site and hints of the statement `like`, which keeps messages
/// at the code of the author.
class Edits {
 public:
  Edits(ptx::Module& module, ptx::Function& function) : module_(&module), function_(&function) {}

  /// A new statement of the row, with modifiers in any order; fixed modifiers may be missing. The
  /// operands are copied into the function's pool (elements of Vector and List operands must be in
  /// it already: see `vector`). Throws std::logic_error if the modifiers do not match the
  /// row.
  [[nodiscard]] ptx::Instruction make(ptx::Op op, std::span<const ptx::Modifier> modifiers,
                                      std::span<const ptx::Operand> operands, std::uint32_t like);
  [[nodiscard]] ptx::Instruction make(ptx::Op op, std::initializer_list<ptx::Modifier> modifiers,
                                      std::initializer_list<ptx::Operand> operands,
                                      std::uint32_t like) {
    return make(op, std::span(modifiers.begin(), modifiers.size()),
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
  /// Several insertions before one statement keep their order. body.size() inserts at
  /// the end.
  void insert_before(std::uint32_t statement, const ptx::Instruction& instruction) {
    add(statement, Kind::Before, instruction);
  }

  /// A new register in the function's outermost scope. Registers of one type share a declaration
  /// with a name that is new in the function.
  [[nodiscard]] ptx::Register new_register(ptx::Type type);
  /// A label of scope `scope` with a new name.
  [[nodiscard]] ptx::LabelId new_label(std::uint32_t scope = 0);

  [[nodiscard]] bool empty() const noexcept { return edits_.empty(); }
  /// Applies the changes in time linear in the body. Afterwards the object can be reused.
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
