// src/ptx/parser_state.hpp - the parser
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/parser_constants.hpp"
#include "ptx/parser_cursor.hpp"
#include "ptx/parser_names.hpp"
#include "ptx/parser_opcodes.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx::reading {

/// The state space that a directive without its dot names, `Space::Generic` if it names none.
[[nodiscard]] Space space_from_keyword(std::string_view keyword);

/// Recursive descent over the text with one character of look ahead. Names are bound when they are
/// declared and unbound when their scope ends; what is used before it is declared stays an
/// unresolved symbol (module level) or a pending reference (labels).
class Parser {
 public:
  Parser(Module& module, std::string_view text, std::string_view file)
      : module_(module), cursor_(text, file) {}

  void read_module();
  /// Statements at the end of the body of a function that is in the module already.
  void read_statements(std::uint32_t function);

 private:
  struct OpenScope {
    std::uint32_t number;
    std::size_t bindings;       // how many there were when it began
    std::uint32_t begin_clock;  // number of its first statement
    Cursor::Mark mark;          // its `{`
  };
  struct LabelReference {
    std::uint32_t operand;  // in Function::operands
    std::uint32_t name;
    std::uint32_t scope;
    bool table;  // a variable may be here too
  };

  struct Unbind {
    enum class Slot : std::uint8_t { Exact, Prefix, Local, Ranged };
    std::uint32_t name;
    std::uint32_t previous;
    Slot slot;
  };
  // `name<range>` declares variables name0, name1, ...
  struct Ranged {
    std::uint32_t function;  // kNone at module level
    std::uint32_t variable;
    std::uint32_t range;
  };

  // parser_module.cpp: what is at module level.
  void read_version();
  void read_target();
  void read_address_size();
  bool read_module_directive(std::string_view keyword);
  void read_file_directive();
  void read_section();
  void skip_section_lines();
  void read_module_pragma();
  void read_alias();
  void read_linked(std::string_view what);
  void read_function(Linkage linkage, bool entry);
  void read_function_directives(Function& function);
  void read_parameters(std::vector<Variable>& list, SymbolKind kind);
  bool ends_declaration();
  void declare_function(std::uint32_t name, std::uint32_t index);
  void declare_module_variable(const Variable& variable);

  // parser_variables.cpp: declarations of variables, their initialisers, registers.
  Variable read_variable_type(std::string_view place);
  void read_pointer(Variable& variable);
  void read_attribute(Variable& variable);
  std::uint32_t read_alignment();
  Type read_type_keyword(std::string_view keyword);
  void read_declarator(Variable& variable, bool range_allowed);
  void read_initialiser(Variable& variable);
  void read_initial_value(Variable& variable);
  void read_initial_symbol(Variable& variable, InitialValue value, std::string_view what);
  void check_initial_count(const Variable& variable, const char* place);
  void read_registers();
  std::uint32_t declare_register(std::string_view name, RegisterDecl decl, const char* place);
  void refuse_late_declaration(std::string_view name, const RegisterDecl& decl, const char* place);

  // parser_body.cpp: statements.
  void read_body();
  void read_statement();
  void read_directive_statement();
  void read_label_statement(std::string_view name);
  void begin_scope();
  void end_scope();
  void read_guard();
  void read_location();
  void read_pragma();
  void read_variables(Linkage linkage);
  void read_table(std::uint32_t label_name, StatementKind kind);
  void read_prototype(std::uint32_t label_name);
  std::uint32_t add_label(std::uint32_t name, bool defined);
  Instruction& add_statement(StatementKind kind);
  void append_operands(Instruction& statement, std::span<const Operand> operands);

  // parser_operands.cpp: instructions.
  void read_instruction(const char* opcode_start);
  std::string_view read_opcode(const char* start);
  bool read_operands(const Opcode& opcode);
  bool read_coordinates(const Opcode& opcode);
  bool read_call_operands();
  bool read_operand(Operand& out);
  bool read_name(Operand& out);
  bool read_memory(Operand& out);
  bool read_vector(Operand& out, char close);
  void read_label_operand(Operand& out, bool table);
  void finish_instruction(const Candidate& candidate, std::uint32_t line);
  void unwrap_list(Instruction& statement);
  std::int64_t read_offset();
  std::uint8_t read_component();
  Register find_register(const char* start, const char* digits, const char* end);
  Register find_odd_register(const char* start, const char* digits, const char* end);
  void touch_odd(const char* start, const char* digits, const char* end);
  std::uint32_t symbol_of(std::string_view name);
  std::uint32_t ranged_symbol(std::string_view name);
  void keep_unknown(Cursor::Mark start, std::string_view opcode);

  // parser_index.cpp: elements of arrays.
  bool read_index(Operand& out);
  Register read_index_register(const char* place);
  void add_element_address(Operand& out, const Variable& array, Register index,
                           std::uint64_t added);
  void add_computation(std::string_view opcode, std::span<const Operand> operands);
  void add_element_register(Type type, std::string_view word);

  // parser_labels.cpp: label references, and taking over a function that exists.
  void resolve_labels();
  void resolve_one_by_one();
  void resolve_shared_names();
  void resolve_label(const LabelReference& reference, std::uint32_t label);
  void take_over_symbols();
  void take_over_function(std::uint32_t function);

  // Names.
  NameId id_of(std::uint32_t name) {
    Name& entry = names_[name];
    if (entry.id == NameId{}) entry.id = module_.names.intern(entry.view());
    return entry.id;
  }
  NameId intern(std::string_view text) { return module_.names.intern(text); }
  void bind(Unbind::Slot slot, std::uint32_t name, std::uint32_t value);
  void unbind_to(std::size_t size);
  std::uint32_t add_symbol(std::uint32_t name, SymbolKind kind, std::uint32_t function,
                           std::uint32_t index);
  void begin_function(std::uint32_t index);
  void end_function();

  Module& module_;
  Cursor cursor_;
  NameTable names_;
  OpcodeTable opcodes_;
  std::string taken_over_;                       // texts of names that were in the module before
  std::vector<std::uint32_t> taken_over_names_;  // by the module's name: its number here

  // The function being read.
  std::uint32_t function_ = kNone;
  Function* body_ = nullptr;
  bool built_ = false;  // statements have no lines of their own
  std::vector<OpenScope> scopes_;
  std::vector<std::uint32_t> scope_ends_;  // by scope: number after its last inner scope
  std::vector<Unbind> bindings_;
  std::vector<std::uint32_t> label_names_;     // by label of the function
  std::vector<std::uint32_t> label_previous_;  // by label: the one before with the same name
  std::vector<LabelReference> references_;
  std::vector<Ranged> ranged_;
  std::vector<std::uint32_t>
      unresolved_;  // names in the order in which symbols were added for them
  std::vector<std::unique_ptr<char[]>> opcode_texts_;  // opcodes put together from several words
  std::uint32_t clock_ = 1;       // number of the statement being read, over all functions
  std::size_t element_tail_ = 0;  // how many '_' make the names of those registers new; 0: unknown
  std::uint32_t first_element_register_ = kNone;  // of three that hold addresses of elements
  std::uint32_t odd_registers_ = 0;  // registers whose own name, or prefix, ends in a digit
  bool shared_label_names_ = false;  // some name is that of several labels

  std::string_view declared_name_;  // the latest name of a variable, in the text

  // The instruction being read.
  Guard guard_;
  std::size_t operand_count_ = 0;
  unsigned lists_of_one_ = 0;         // how many operands are `{a}`
  bool coordinates_ = false;          // the latest address ends with the coordinates of a tensor
  bool indexed_ = false;              // the latest name was that of an array, with an index
  const Opcode* indexing_ = nullptr;  // whose operand is being read, null within braces
  bool indexing_address_ = false;     // that operand is an address
  std::array<Operand, 256> operands_;
};

}  // namespace ptxgen::inline v0::ptx::reading
