// ptxgen/ptx/ir.hpp - a PTX module as plain data
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/names.hpp"
#include "ptxgen/ptx/ops.hpp"
#include "ptxgen/support/source_location.hpp"

namespace ptxgen::inline v0::ptx {

/// No index, for every 32-bit id below.
inline constexpr std::uint32_t kNone = 0xffffffffu;

struct DeclId {
  std::uint32_t value = kNone;
  friend constexpr bool operator==(DeclId, DeclId) = default;
};
struct SymbolId {
  std::uint32_t value = kNone;
  friend constexpr bool operator==(SymbolId, SymbolId) = default;
};
struct LabelId {
  std::uint32_t value = kNone;
  friend constexpr bool operator==(LabelId, LabelId) = default;
};

enum class SpecialRegister : std::uint8_t {
#define PTXGEN_SPECIAL(id, text, type, components, major, minor, sm) id,
#include "ptxgen/ptx/special_registers.def"
};

/// A row of special_registers.def.
struct SpecialInfo {
  std::string_view text;  ///< without '%'
  Type type;
  std::uint8_t components;  ///< 3 for `.x .y .z`, 0 for a scalar
  Requirement requirement;
};
[[nodiscard]] const SpecialInfo& info(SpecialRegister reg) noexcept;
[[nodiscard]] std::span<const SpecialInfo> special_registers() noexcept;

/// One register: its declaration and its number there (`%f12` is number 12 of the
/// declaration `.reg .f32 %f<13>`; a register declared alone is number 0).
struct Register {
  DeclId decl;
  std::uint32_t index = 0;
  friend constexpr bool operator==(Register, Register) = default;
};

/// `.reg .f32 %f<13>;` or `.reg .pred done;`, in the scope `scope` of its function.
struct RegisterDecl {
  NameId name;  ///< the full name, or the prefix of numbered registers
  Type type = Type::none;
  std::uint8_t vector = 1;  ///< 2 or 4 for `.reg .v4 .f32 v`
  bool numbered = false;
  std::uint32_t count = 1;  ///< number of registers: 0 to count-1
  std::uint32_t scope = 0;  ///< 0 is the function body itself
  std::uint32_t line = 0;
};

enum class OperandKind : std::uint8_t {
  None,
  Register,  ///< `id` the declaration, `index` the number
  Special,   ///< `id` the SpecialRegister
  Integer,   ///< `value` the 64-bit pattern
  Float32,   ///< `value` the 32-bit pattern, printed 0fXXXXXXXX
  Float64,   ///< `value` the 64-bit pattern, printed 0dXXXXXXXXXXXXXXXX
  Symbol,    ///< `id` the SymbolId, `value` a byte offset
  Memory,    ///< `[base+value]`; `base` says what `id` and `index` are
  Vector,    ///< `{...}`: `index` operands from `id` in the function's pool
  List,      ///< `(...)` of a call: as Vector
  Label,     ///< `id` the LabelId
  Sink,      ///< `_`
};

/// 24 bytes of plain data; `kind` determines which fields are used. Unused fields are zero, hence
/// operands of one function can be compared bytewise.
struct Operand {
  OperandKind kind = OperandKind::None;
  OperandKind base = OperandKind::None;  ///< Memory: Register, Symbol or Integer (absolute)
  std::uint8_t component = 0;    ///< 1..4 for `.x .y .z .w` of a vector or special register, else 0
  bool negated : 1 = false;      ///< `!p`
  bool joined : 1 = false;       ///< printed after `|`; after Memory, within its brackets
  bool is_unsigned : 1 = false;  ///< Integer: a literal above the signed range
  bool zero_offset : 1 = false;  ///< Memory: `[%r1+0]`, which ptxas 13 compiles otherwise than
                                 ///< `[%r1]` under `.target ..., debug`
  bool in_braces : 1 = false;    ///< a list of one, `{%r1}`, where a plain operand is allowed too
  std::uint32_t id = 0;
  std::uint32_t index = 0;
  std::uint32_t reserved = 0;
  std::uint64_t value = 0;

  [[nodiscard]] static constexpr Operand reg(Register r) noexcept {
    Operand o;
    o.kind = OperandKind::Register;
    o.id = r.decl.value;
    o.index = r.index;
    return o;
  }
  [[nodiscard]] static constexpr Operand special(SpecialRegister r,
                                                 std::uint8_t component = 0) noexcept {
    Operand o;
    o.kind = OperandKind::Special;
    o.id = static_cast<std::uint32_t>(r);
    o.component = component;
    return o;
  }
  [[nodiscard]] static constexpr Operand integer(std::int64_t value) noexcept {
    Operand o;
    o.kind = OperandKind::Integer;
    o.value = static_cast<std::uint64_t>(value);
    return o;
  }
  [[nodiscard]] static constexpr Operand unsigned_integer(std::uint64_t value) noexcept {
    Operand o = integer(static_cast<std::int64_t>(value));
    o.is_unsigned = (value >> 63) != 0;
    return o;
  }
  [[nodiscard]] static Operand f32(float value) noexcept;
  [[nodiscard]] static Operand f64(double value) noexcept;
  [[nodiscard]] static constexpr Operand symbol(SymbolId s, std::int64_t offset = 0) noexcept {
    Operand o;
    o.kind = OperandKind::Symbol;
    o.id = s.value;
    o.value = static_cast<std::uint64_t>(offset);
    return o;
  }
  [[nodiscard]] static constexpr Operand memory(Register base, std::int64_t offset = 0) noexcept {
    Operand o = reg(base);
    o.base = OperandKind::Register;
    o.kind = OperandKind::Memory;
    o.value = static_cast<std::uint64_t>(offset);
    return o;
  }
  [[nodiscard]] static constexpr Operand memory(SymbolId base, std::int64_t offset = 0) noexcept {
    Operand o = symbol(base, offset);
    o.base = OperandKind::Symbol;
    o.kind = OperandKind::Memory;
    return o;
  }
  [[nodiscard]] static constexpr Operand label(LabelId l) noexcept {
    Operand o;
    o.kind = OperandKind::Label;
    o.id = l.value;
    return o;
  }
  [[nodiscard]] static constexpr Operand sink() noexcept {
    Operand o;
    o.kind = OperandKind::Sink;
    return o;
  }

  [[nodiscard]] constexpr Register as_register() const noexcept { return {{id}, index}; }
  [[nodiscard]] constexpr std::int64_t offset() const noexcept {
    return static_cast<std::int64_t>(value);
  }
  friend constexpr bool operator==(const Operand&, const Operand&) = default;
};

/// `@p` or `@!p` before an instruction.
struct Guard {
  Register predicate;
  bool negated = false;
  [[nodiscard]] constexpr bool present() const noexcept { return predicate.decl.value != kNone; }
  friend constexpr bool operator==(const Guard&, const Guard&) = default;
};

/// What a statement of a function body is.
enum class StatementKind : std::uint8_t {
  Instruction,
  Unknown,        ///< an instruction outside the op table, `text` as it was written
  Label,          ///< operand 0 the label defined here
  ScopeBegin,     ///< `{`; `scope` the scope that begins
  ScopeEnd,       ///< `}`
  Variable,       ///< `variable` of the function is declared here
  Location,       ///< `.loc`: operands file, line, column[, function name symbol or label + offset,
                  ///< inlined_at file, line, column]
  Pragma,         ///< `text`
  BranchTargets,  ///< operand 0 the table's label, then the targets
  CallTargets,    ///< operand 0 the table's label, then function symbols
  CallPrototype,  ///< operand 0 its label; `variable` the number of the prototype
};

/// Whether a multiplication and an addition may become one fused operation, rounded once.
enum class Contract : std::uint8_t {
  Default,  ///< as the function says; of a function: as the options of the passes say
  Allow,
  Forbid,
};

/// No hint, see `Instruction::split_hint`.
inline constexpr std::int16_t kNoSplitHint = -1;

/// One statement. For `StatementKind::Instruction`, `modifiers[i]` is the modifier in slot i of the
/// row, fixed ones included (`Modifier::none` for an omitted optional one).
struct Instruction {
  StatementKind kind = StatementKind::Instruction;
  Contract contract = Contract::Default;  ///< of mul, add and sub; not part of PTX
  std::uint16_t operand_count = 0;        ///< a `.branchtargets` may name hundreds of labels
  Op op{};
  /// For a branch: the loop_split threshold of its condition or of the loop that it closes, 0 for
  /// never, or kNoSplitHint. Not part of PTX.
  std::int16_t split_hint = kNoSplitHint;
  std::uint32_t first_operand = 0;  ///< in Function::operands
  Guard guard;
  std::array<Modifier, kMaxModifiers> modifiers{};
  NameId text;                     ///< Unknown, Pragma
  std::uint32_t variable = kNone;  ///< Variable, CallPrototype
  std::uint32_t scope = 0;         ///< ScopeBegin
  std::uint32_t line = 0;          ///< 1-based line of the text it was parsed from, 0 if built
  std::uint32_t site = 0;          ///< 1-based index into Module::sites, 0 if unknown

  /// The modifier in a field, `Modifier::none` if absent.
  [[nodiscard]] Modifier get(Field field) const noexcept;
  [[nodiscard]] bool has(Field field) const noexcept { return get(field) != Modifier::none; }
  /// Sets the modifier of a field. Returns false and changes nothing if the row does not allow it.
  bool set(Field field, Modifier modifier) noexcept;
  /// Type number `index` of the opcode (0 is the first), `Type::none` if it has fewer.
  [[nodiscard]] Type type(std::size_t index = 0) const noexcept;
  [[nodiscard]] bool is(Op other) const noexcept {
    return kind == StatementKind::Instruction && op == other;
  }
};

enum class Linkage : std::uint8_t { None, Visible, Extern, Weak, Common };

/// One piece of a variable's initialiser; nested braces are Open and Close.
struct InitialValue {
  enum class Kind : std::uint8_t {
    Open,
    Close,
    Integer,
    Float32,
    Float64,
    Symbol,
    Generic,
    Masked
  };
  Kind kind = Kind::Integer;
  bool is_unsigned = false;
  SymbolId symbol;              ///< Symbol, Generic (`generic(symbol)`), Masked (`0xff00(symbol)`)
  bool masked_generic = false;  ///< Masked: `0xff00(generic(symbol))`
  std::uint64_t value = 0;      ///< number, or the offset from the symbol
  std::uint64_t mask = 0;       ///< Masked
};

/// A variable, a parameter or a return value. `dimensions` holds elements, 0 for `[]`.
struct Variable {
  NameId name;
  Space space = Space::Global;
  Type type = Type::none;
  Linkage linkage = Linkage::None;
  std::uint8_t vector = 1;               ///< 2 or 4 for `.v2`, `.v4`
  bool managed = false;                  ///< `.attribute(.managed)`
  bool pointer = false;                  ///< parameter with `.ptr`
  Space pointer_space = Space::Generic;  ///< `.ptr .global`
  bool initialised = false;
  std::uint32_t alignment = 0;  ///< bytes, 0 if not written
  std::uint32_t pointer_alignment = 0;
  std::uint32_t range = 0;  ///< `name<range>` declares name0 .. ; 0 for a plain name
  std::vector<std::uint64_t> dimensions;
  std::vector<InitialValue> initial;
  NameId unified;  ///< text inside `.attribute(.unified(...))`, or empty
  DeclId decl;     ///< parameters in registers: their declaration in the function
  std::uint32_t line = 0;
  std::uint32_t scope = 0;
};

/// Bytes of all elements; 0 for unsized variables. Saturates at 2^64-1.
[[nodiscard]] std::uint64_t size_in_bytes(const Variable& variable) noexcept;
/// Alignment in bytes: `.align`, or the natural alignment of the element.
[[nodiscard]] std::uint32_t natural_alignment(const Variable& variable) noexcept;

struct Label {
  NameId name;
  std::uint32_t scope = 0;
  bool defined = false;
};

/// `.callprototype (returns) _ (parameters)`.
struct Prototype {
  std::vector<Variable> returns;
  std::vector<Variable> parameters;
  bool noreturn = false;
};

enum class DirectiveKind : std::uint8_t {
#define PTXGEN_DIRECTIVE(id, text, min, max, major, minor, sm) id,
#include "ptxgen/ptx/directives.def"
};

/// A row of directives.def.
struct DirectiveInfo {
  std::string_view text;
  std::uint8_t min_values;
  std::uint8_t max_values;
  Requirement requirement;
};
[[nodiscard]] const DirectiveInfo& info(DirectiveKind directive) noexcept;
[[nodiscard]] std::span<const DirectiveInfo> directives() noexcept;

/// `.maxntid 256, 1, 1` and the like.
struct Directive {
  DirectiveKind kind{};
  std::uint8_t count = 0;
  std::array<std::uint32_t, 3> values{};
  friend bool operator==(const Directive&, const Directive&) = default;
};

/// An entry (kernel) or device function. Without a body it is a declaration.
struct Function {
  NameId name;
  bool entry = false;
  bool declaration = false;
  Linkage linkage = Linkage::None;
  std::uint32_t line = 0;
  std::vector<Variable> returns;
  std::vector<Variable> parameters;
  std::vector<Directive> directives;
  std::vector<NameId> pragmas;  ///< between head and body
  std::vector<RegisterDecl> registers;
  std::vector<Variable> variables;
  std::vector<Label> labels;
  std::vector<Prototype> prototypes;
  std::vector<Instruction> body;
  std::vector<Operand> operands;  ///< of all statements, including elements of vectors and lists
  std::uint32_t scopes = 1;       ///< how many scopes there are; 0 is the body
  Contract contract = Contract::Default;   ///< default for instructions; not part of PTX
  std::int16_t split_hint = kNoSplitHint;  ///< default for loops; not part of PTX

  [[nodiscard]] std::span<const Operand> operands_of(
      const Instruction& instruction) const noexcept {
    return {operands.data() + instruction.first_operand, instruction.operand_count};
  }
  [[nodiscard]] std::span<Operand> operands_of(const Instruction& instruction) noexcept {
    return {operands.data() + instruction.first_operand, instruction.operand_count};
  }
  /// The elements of a Vector or List operand.
  [[nodiscard]] std::span<const Operand> elements(const Operand& operand) const noexcept {
    return {operands.data() + operand.id, operand.index};
  }
  [[nodiscard]] std::span<Operand> elements(const Operand& operand) noexcept {
    return {operands.data() + operand.id, operand.index};
  }
  [[nodiscard]] Type type_of(Register reg) const noexcept {
    return reg.decl.value < registers.size() ? registers[reg.decl.value].type : Type::none;
  }
};

enum class SymbolKind : std::uint8_t {
  Unresolved,
  Variable,          ///< Module::variables[index]
  Function,          ///< Module::functions[index] (a definition if there is one)
  FunctionVariable,  ///< Module::functions[function].variables[index]
  Parameter,         ///< Module::functions[function].parameters[index]
  Return,            ///< Module::functions[function].returns[index]
};

/// The entity named in an operand.
struct Symbol {
  NameId name;
  SymbolKind kind = SymbolKind::Unresolved;
  std::uint32_t function = kNone;
  std::uint32_t index = kNone;
};

/// `.file 1 "a.cu", timestamp, size`.
struct SourceFile {
  std::uint32_t number = 0;
  NameId path;
  bool has_time = false;
  std::uint64_t timestamp = 0;
  std::uint64_t size = 0;
};

/// An entity at module level, in order of the text.
struct Item {
  enum class Kind : std::uint8_t { Variable, Function, File, Section, Pragma, Alias };
  Kind kind = Kind::Variable;
  std::uint32_t index = 0;  ///< Variable, Function, File
  NameId text;              ///< Section: the whole text; Pragma: the string; Alias: the alias
  NameId text2;             ///< Alias: the aliasee
};

/// A PTX module. Plain data: copy it, compare it (`equal`), print it (`print`).
struct Module {
  Version version{7, 8};
  std::string target = "sm_89";
  std::vector<std::string> target_options;  ///< `debug`, `texmode_independent`, ...
  std::uint8_t address_size = 64;
  Names names;
  std::vector<Item> items;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<SourceFile> files;
  std::vector<Symbol> symbols;
  std::vector<SourceLocation> sites;  ///< C++ call sites; not part of PTX
  // Origin of the text, for messages; not part of PTX.
  std::string file;
  std::uint32_t version_line = 0;
  std::uint32_t target_line = 0;

  [[nodiscard]] std::string_view text(NameId id) const noexcept { return names[id]; }
  /// The C++ call that built a statement; unknown for parsed ones.
  [[nodiscard]] SourceLocation site_of(const Instruction& instruction) const noexcept {
    return instruction.site == 0 ? SourceLocation{} : sites[instruction.site - 1];
  }
  /// Definition (or else declaration) of a function by name, or nullptr.
  [[nodiscard]] const Function* find_function(std::string_view name) const noexcept;
  [[nodiscard]] Function* find_function(std::string_view name) noexcept;
};

/// The op table's specification of operand `i` of an instruction (0 is the first written one), or
/// nullptr. Omitted optional operands do not count.
[[nodiscard]] const OperandSpec* operand_spec(const Function& function,
                                              const Instruction& instruction,
                                              std::size_t i) noexcept;

/// The required type of such an operand, `Type::none` if any is allowed.
[[nodiscard]] Type operand_type(const Instruction& instruction, const OperandSpec& spec) noexcept;

/// The number of elements in braces, 0 for an operand without braces.
[[nodiscard]] unsigned operand_elements(const Instruction& instruction,
                                        const OperandSpec& spec) noexcept;

/// Whether such an operand may be written in braces of its own: `{%r1}`.
[[nodiscard]] bool takes_list_of_one(const Instruction& instruction,
                                     const OperandSpec& spec) noexcept;

/// The printed name of a register, without `.x` of vector registers.
[[nodiscard]] std::string name_of(const Module& module, const Function& function, Register reg);

/// The first difference in anything that PTX can express, as a sentence, or an empty string. Names
/// are compared; internal numbering and C++ call sites are not.
[[nodiscard]] std::string difference(const Module& a, const Module& b);
[[nodiscard]] inline bool equal(const Module& a, const Module& b) {
  return difference(a, b).empty();
}

}  // namespace ptxgen::inline v0::ptx
