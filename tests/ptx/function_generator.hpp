// tests/ptx/function_generator.hpp - random bodies of functions, for module_generator
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ptx/dice.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::test {

/// A variable that code may address.
struct Place {
  ptx::SymbolId symbol;
  ptx::Space space = ptx::Space::Global;
  std::uint64_t bytes = 0;
  std::uint32_t alignment = 1;
};

/// A function that code may call.
struct Callable {
  std::uint32_t function = 0;
  ptx::SymbolId symbol;
};

/// What the functions of one module share.
struct Surroundings {
  ptx::Module* module = nullptr;
  ptx::TargetName target;
  std::vector<ptx::Op> rows;  ///< of the op table, that the target offers and code may use anywhere
  std::vector<Place> places;
  std::vector<Callable> callables;
};

/// The rows of the op table that need nothing around them: no addresses, labels or other threads.
[[nodiscard]] std::vector<ptx::Op> free_rows(ptx::TargetName target);

/// A number for an integer of that many bits, as PTX writes it.
[[nodiscard]] ptx::Operand random_integer(Dice& dice, unsigned bits, bool is_signed);
[[nodiscard]] std::uint32_t random_f32(Dice& dice);
[[nodiscard]] std::uint64_t random_f64(Dice& dice);

/// The symbol of a variable, parameter or function, added to the module.
ptx::SymbolId add_symbol(ptx::Module& module, ptx::NameId name, ptx::SymbolKind kind,
                         std::uint32_t function, std::uint32_t index);

/// Fills the body of one function whose head is printed already.
class FunctionGenerator {
 public:
  FunctionGenerator(Dice& dice, const Surroundings& around, std::uint32_t function);
  void fill(unsigned statements);

 private:
  /// Registers that were declared together, as code in the innermost scope sees them.
  struct Visible {
    std::uint32_t decl;
    bool hidden;
  };
  struct LabelHere {
    std::uint32_t label = 0;
    bool placed = false;
  };
  struct Scope {
    std::uint32_t number = 0;
    std::size_t first_visible = 0;
    std::vector<std::uint32_t> hid;  ///< entries of visible_ that this scope shadows
    std::vector<LabelHere> labels;
    std::unordered_set<std::string> label_names;  ///< taken here, or meant by inner code as outer
  };

  ptx::Module& module() { return *around_.module; }
  ptx::Function& body() { return module().functions[function_]; }

  // Declarations.
  void declare_registers(std::string_view prefix, ptx::Type type, std::uint32_t count);
  void declare_register(std::string_view name, ptx::Type type, std::uint8_t vector);
  void add_registers(ptx::RegisterDecl decl);
  void declare_some_registers();
  Place declare_variable(ptx::Variable variable);

  // Operands.
  bool choose_register(ptx::Type wanted, bool relaxed, ptx::Operand& out, bool allow_component,
                       ptx::Type like = ptx::Type::none);
  std::uint32_t pool(const std::vector<ptx::Operand>& elements);
  ptx::Operand group(ptx::OperandKind kind, const std::vector<ptx::Operand>& elements);
  bool operand(const ptx::OperandSpec& spec, const ptx::Instruction& instruction,
               ptx::Operand& out);
  bool scalar(const ptx::OperandSpec& spec, ptx::Op op, ptx::Type wanted, ptx::Operand& out,
              ptx::Type like = ptx::Type::none);
  bool constant(ptx::Type wanted, ptx::Op op, ptx::Operand& out);

  // Statements.
  ptx::Instruction& add(ptx::StatementKind kind, const std::vector<ptx::Operand>& operands);
  ptx::Instruction row(ptx::Op op);
  void add(ptx::Instruction instruction, const std::vector<ptx::Operand>& operands);
  void maybe_guard(ptx::Instruction& instruction, unsigned percent);
  bool table_instruction();
  bool words(ptx::Instruction& instruction);
  void memory_instruction();
  void atomic_instruction();
  void load_parameters();
  void store_registers();
  void barrier();
  void location();

  // Control flow.
  std::uint32_t new_label(Scope& scope);
  std::uint32_t table_label(std::string_view stem);
  std::uint32_t label_to_reach(bool here_only);
  void place_label(std::uint32_t label);
  void place_open_label();
  void place_open_labels();
  void branch();
  void branch_table();
  void loop(unsigned statements, unsigned depth);
  void nested_scope(unsigned statements);
  void begin_scope();
  void end_scope();
  void call();
  void return_values();
  void statements(unsigned count, unsigned depth);

  Dice& dice_;
  const Surroundings& around_;
  std::uint32_t function_;
  std::vector<Visible> visible_;
  std::vector<Scope> scopes_;
  std::vector<Place> places_;
  unsigned next_name_ = 0;
};

}  // namespace ptxgen::test
