// ptxgen/ptx/ops.hpp - the op table: every instruction form the library knows
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "ptxgen/ptx/types.hpp"

namespace ptxgen::inline v0::ptx {

/// One row of the op table. A mnemonic may have several rows (`mov`, `mov_pack`).
enum class Op : std::uint16_t {
#define PTXGEN_GROUP(id, title)
#define PTXGEN_OP(id, mnemonic, pattern, operands, needs, flags, doc) id,
#include "ptxgen/ptx/ops.def"
};

/// Properties of a row, for passes, gates and the emulator.
enum class Flag : std::uint16_t {
  None = 0,
  ReadsMemory = 1 << 0,
  WritesMemory = 1 << 1,
  Barrier = 1 << 2,      ///< waits for, or signals, other threads
  Convergent = 1 << 3,   ///< meaning depends on which lanes execute it together
  Commutative = 1 << 4,  ///< the first two sources may be swapped
  Terminator = 1 << 5,   ///< unguarded, control never reaches the next instruction
  Branch = 1 << 6,       ///< may jump to a label
  Call = 1 << 7,
  Volatile = 1 << 8,       ///< has side effects beyond its operands and memory
  Fence = 1 << 9,          ///< orders memory accesses
  Asynchronous = 1 << 10,  ///< its memory accesses complete after it has retired
};

[[nodiscard]] constexpr Flag operator|(Flag a, Flag b) noexcept {
  return static_cast<Flag>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
[[nodiscard]] constexpr bool has(Flag set, Flag flag) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(flag)) != 0;
}

inline constexpr std::size_t kMaxModifiers = 14;
inline constexpr std::size_t kMaxOperands = 10;
inline constexpr std::size_t kMaxTypes = 5;

/// A position of an opcode: a fixed modifier, or a choice of several, possibly optional.
struct ModifierSlot {
  Field field = Field::Literal;
  bool optional = false;
  Field with = Field::Literal;  ///< optional: present exactly if the opcode has this field
  std::uint16_t first = 0;      ///< index into the table's pool of modifiers
  std::uint16_t count = 0;
};

/// The role of an operand.
enum class OperandRole : std::uint8_t {
  Destination,     ///< register written
  Source,          ///< register, immediate or special register
  RegisterSource,  ///< register only
  Immediate,       ///< integer constant only
  Value,           ///< source, or the address of a symbol (`mov`, `cvta`)
  Predicate,       ///< predicate source that may be negated with `!`
  Memory,          ///< `[base+offset]`
  Label,
  Table,      ///< label of a `.branchtargets`, `.calltargets` or `.callprototype`
  Callee,     ///< function name, or register of an indirect call
  Returns,    ///< `(a, b)` results of a call
  Arguments,  ///< `(a, b)` arguments of a call
};

/// How an operand's register type follows from the opcode.
enum class TypeSource : std::uint8_t {
  Fixed,  ///< `fixed` below
  Slot,   ///< the opcode's type number `index`
  Wide,   ///< twice the width of type number `index`, same kind (`mul.wide`)
  Bits,   ///< untyped bits of the width of type number `index`
  Any,
};

/// What decides how many elements an operand in braces has, other than `vector`.
enum class ElementCount : std::uint8_t {
  Fixed,           ///< `OperandSpec::vector`
  HalfColumns,     ///< n / 2 of a shape m64nNkK
  QuarterColumns,  ///< n / 4
  Dimensions,      ///< of the tensor
  Offsets,         ///< two fewer
  Coordinates,     ///< of the texture's or surface's geometry
  Gradient,        ///< the same without the layer
};

struct OperandSpec {
  OperandRole role = OperandRole::Source;
  TypeSource type_source = TypeSource::Slot;
  std::uint8_t index = 0;
  Type fixed = Type::none;
  std::uint8_t vector = 0;  ///< number of elements in braces; 0 a plain operand
  bool vector_from_slot =
      false;  ///< elements as in `.v2`, `.v4`, `.v8` of the opcode; none = plain
  ElementCount elements = ElementCount::Fixed;
  bool updates = false;  ///< Destination: the register is read too
  bool optional = false;
  Field with = Field::Literal;  ///< optional: present exactly if the opcode has this field
  bool joined = false;          ///< second half of `d|p`, or `{c}` of `[a, {c}]`
  bool relaxed = false;         ///< the register may be wider than the type (ld, st, cvt)
  bool sink = false;            ///< may be `_`
  bool list_of_one = false;     ///< untyped bits that may be written in braces of its own
  char label[3] = {};           ///< name in the pattern, for messages and docs
};

/// How strongly an instruction is tied to a target.
enum class Variant : std::uint8_t {
  None,          ///< any target from that sm on
  Architecture,  ///< exactly that sm with suffix `a`
  Family,        ///< suffix `f` or `a` within the same family from that sm on
};

/// Minimum requirements of a form, or of a form with certain modifiers.
struct Requirement {
  Version version;
  std::uint16_t sm = 0;
  Variant variant = Variant::None;
  /// The modifiers are never legal together, on any target (`never` in the table).
  [[nodiscard]] constexpr bool never() const noexcept { return sm == 0xffff; }
};

/// A requirement of opcodes that have all modifiers of `condition`. Several needs with the same
/// condition are alternatives.
struct Need {
  std::uint16_t first_condition = 0;  ///< index into the table's pool of modifiers
  std::uint16_t condition_count = 0;  ///< 0: always
  Requirement requirement;
  std::uint64_t filter = 0;  ///< `modifier_filter` of the condition, for a fast rejection
};

/// One of 64 bits for a modifier (a Bloom filter). If a set lacks a bit of another set, it lacks
/// one of its modifiers.
[[nodiscard]] constexpr std::uint64_t modifier_filter(Modifier modifier) noexcept {
  return modifier == Modifier::none ? 0
                                    : std::uint64_t{1} << (static_cast<unsigned>(modifier) % 64);
}

/// A row, decoded. All views point to constant data.
struct OpInfo {
  Op op{};
  std::string_view id;        ///< the enumerator's name, also in the docs
  std::string_view mnemonic;  ///< the text before the first dot
  std::string_view pattern;
  std::string_view operand_pattern;
  std::string_view needs_pattern;
  std::string_view doc;
  std::string_view group;  ///< heading in the ISA page
  Flag flags = Flag::None;
  std::uint8_t slot_count = 0;
  std::uint8_t operand_count = 0;
  std::uint8_t required_operands = 0;
  std::uint8_t type_count = 0;
  std::uint16_t need_count = 0;
  std::uint16_t first_need = 0;
  std::array<ModifierSlot, kMaxModifiers> slots{};
  std::array<OperandSpec, kMaxOperands> operands{};
  std::array<std::uint8_t, kMaxTypes> type_slots{};  ///< which slots hold the opcode's types

  [[nodiscard]] std::span<const ModifierSlot> modifier_slots() const noexcept {
    return {slots.data(), slot_count};
  }
  [[nodiscard]] std::span<const OperandSpec> operand_specs() const noexcept {
    return {operands.data(), operand_count};
  }
};

/// All rows in the order of `Op`.
[[nodiscard]] std::span<const OpInfo> op_table() noexcept;
[[nodiscard]] const OpInfo& info(Op op) noexcept;
/// Rows with that mnemonic, in table order; empty if there is none.
[[nodiscard]] std::span<const Op> ops_with_mnemonic(std::string_view mnemonic) noexcept;
/// The modifiers allowed in a slot.
[[nodiscard]] std::span<const Modifier> allowed_modifiers(const ModifierSlot& slot) noexcept;
/// The requirements of a row; the first is unconditional.
[[nodiscard]] std::span<const Need> needs(const OpInfo& row) noexcept;
[[nodiscard]] std::span<const Modifier> condition(const Need& need) noexcept;
/// The modifier or type with that text, or `Modifier::none`.
[[nodiscard]] Modifier modifier_from_text(std::string_view text) noexcept;

}  // namespace ptxgen::inline v0::ptx
