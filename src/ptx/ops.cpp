// src/ptx/ops.cpp - decodes the rows of the op table at compile time
#include "ptxgen/ptx/ops.hpp"

#include <algorithm>
#include <utility>

#include "ptx/row_shape.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

struct Row {
  std::string_view id, mnemonic, pattern, operands, needs, doc, group;
  Flag flags;
};

constexpr std::string_view kGroups[] = {
    "",
#define PTXGEN_GROUP(id, title) title,
#define PTXGEN_OP(id, mnemonic, pattern, operands, needs, flags, doc)
#include "ptxgen/ptx/ops.def"
};
enum Group : std::uint8_t {
  kNoGroup,
#define PTXGEN_GROUP(id, title) id,
#define PTXGEN_OP(id, mnemonic, pattern, operands, needs, flags, doc)
#include "ptxgen/ptx/ops.def"
};

// Within this list a group heading sets the group of the rows after it.
struct Entry {
  Group group;
  Row row;
};
constexpr auto kEntries = [] {
  using enum Flag;
  return std::to_array<Entry>({
#define PTXGEN_GROUP(id, title) {id, {}},
#define PTXGEN_OP(id, mnemonic, pattern, operands, needs, flags, doc) \
  {kNoGroup, {#id, mnemonic, pattern, operands, needs, doc, {}, flags}},
#include "ptxgen/ptx/ops.def"
  });
}();

constexpr std::size_t kRowCount = static_cast<std::size_t>(std::count_if(
    kEntries.begin(), kEntries.end(), [](const Entry& entry) { return entry.group == kNoGroup; }));

constexpr auto kRows = [] {
  std::array<Row, kRowCount> rows{};
  std::size_t count = 0;
  std::string_view group;
  for (const Entry& entry : kEntries) {
    if (entry.group != kNoGroup) {
      group = kGroups[entry.group];
    } else {
      rows[count] = entry.row;
      rows[count++].group = group;
    }
  }
  return rows;
}();

constexpr std::string_view kModifierNames[] = {
    "",
#define PTXGEN_TYPE(id, text, bits, kind) text,
#include "ptxgen/ptx/types.def"
#define PTXGEN_MODIFIER(id, text) text,
#include "ptxgen/ptx/modifiers.def"
};
constexpr std::size_t kModifierCount = std::size(kModifierNames);

constexpr std::size_t kTypeCount = 1
#define PTXGEN_TYPE(id, text, bits, kind) +1
#include "ptxgen/ptx/types.def"
    ;

struct TypeRow {
  unsigned bits;
  TypeKind kind;
};
constexpr TypeRow kTypes[] = {
    {0, TypeKind::None},
#define PTXGEN_TYPE(id, text, bits, kind) {bits, TypeKind::kind},
#include "ptxgen/ptx/types.def"
};

struct FieldRow {
  std::string_view id, pattern_name, modifiers;
};
constexpr FieldRow kFields[] = {
#define PTXGEN_FIELD(id, pattern_name, modifiers) {#id, pattern_name, modifiers},
#include "ptxgen/ptx/fields.def"
};

// Modifiers by text, for binary search.
constexpr auto kSortedModifiers = [] {
  std::array<Modifier, kModifierCount> sorted{};
  for (std::size_t i = 0; i < kModifierCount; ++i) sorted[i] = static_cast<Modifier>(i);
  std::sort(sorted.begin(), sorted.end(), [](Modifier a, Modifier b) {
    return kModifierNames[static_cast<std::size_t>(a)] <
           kModifierNames[static_cast<std::size_t>(b)];
  });
  return sorted;
}();

constexpr Modifier find_modifier(std::string_view text) {
  const auto at = std::lower_bound(kSortedModifiers.begin(), kSortedModifiers.end(), text,
                                   [](Modifier m, std::string_view t) {
                                     return kModifierNames[static_cast<std::size_t>(m)] < t;
                                   });
  if (at == kSortedModifiers.end() || kModifierNames[static_cast<std::size_t>(*at)] != text) {
    return Modifier::none;
  }
  return *at;
}

// Reached only while the table is decoded, where it stops the compiler with the row's text.
[[noreturn]] void malformed_row(std::string_view, const char* reason) { throw reason; }

constexpr std::size_t kPoolLimit = 24000;
constexpr std::size_t kNeedLimit = 4000;

struct Table {
  std::array<OpInfo, kRowCount> rows{};
  std::array<Modifier, kPoolLimit> pool{};
  std::size_t pool_size = 0;
  std::array<Need, kNeedLimit> needs{};
  std::size_t need_size = 0;
  std::array<std::uint16_t, kRowCount> source_addresses{};  ///< memory operands `:from`, as bits
};

class Decoder {
 public:
  constexpr explicit Decoder(Table& table) : table_(table) {}

  constexpr void decode(std::size_t number) {
    const Row& row = kRows[number];
    OpInfo& info = table_.rows[number];
    info.op = static_cast<Op>(number);
    info.id = row.id;
    info.mnemonic = row.mnemonic;
    info.pattern = row.pattern;
    info.operand_pattern = row.operands;
    info.needs_pattern = row.needs;
    info.doc = row.doc;
    info.group = row.group;
    info.flags = row.flags;
    decode_pattern(info);
    decode_operands(info);
    decode_needs(info);
  }

 private:
  constexpr Modifier modifier(const OpInfo& info, std::string_view text) {
    const Modifier found = find_modifier(text);
    if (found == Modifier::none) malformed_row(info.id, "unknown modifier");
    return found;
  }

  constexpr std::uint16_t add_modifiers(const OpInfo& info, std::string_view text, char separator) {
    std::uint16_t count = 0;
    while (!text.empty()) {
      const auto end = text.find(separator);
      const auto piece = text.substr(0, end);
      if (!piece.empty()) {
        table_.pool[table_.pool_size++] = modifier(info, piece);
        ++count;
      }
      text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
    return count;
  }

  // `.modifier`, `.<field>`, `.<field:a|b>`, each with an optional `?` or `?field`.
  constexpr void decode_pattern(OpInfo& info) {
    std::string_view rest = info.pattern;
    while (!rest.empty()) {
      if (rest.front() != '.') malformed_row(info.id, "a pattern is made of dotted modifiers");
      rest.remove_prefix(1);
      if (info.slot_count == kMaxModifiers) malformed_row(info.id, "too many modifiers");
      ModifierSlot& slot = info.slots[info.slot_count];
      slot.first = static_cast<std::uint16_t>(table_.pool_size);
      if (rest.front() == '<') {
        const auto end = rest.find('>');
        std::string_view inner = rest.substr(1, end - 1);
        rest.remove_prefix(end + 1);
        const auto colon = inner.find(':');
        slot.field = field(info, inner.substr(0, colon));
        slot.count =
            colon == std::string_view::npos
                ? add_modifiers(info, kFields[static_cast<std::size_t>(slot.field)].modifiers, ' ')
                : add_modifiers(info, inner.substr(colon + 1), '|');
      } else {
        const auto end = rest.find_first_of(".?");
        slot.count = add_modifiers(info, rest.substr(0, end), '.');
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end);
        if (as_type_index(table_.pool[slot.first]) != 0) slot.field = Field::Type;
      }
      if (slot.count == 0) malformed_row(info.id, "a slot without modifiers");
      if (!rest.empty() && rest.front() == '?') {
        slot.optional = true;
        rest.remove_prefix(1);
        const auto end = std::min(rest.find('.'), rest.size());
        if (end != 0) slot.with = field(info, rest.substr(0, end));
        rest.remove_prefix(end);
      }
      if (slot.field == Field::Type) {
        if (info.type_count == kMaxTypes) malformed_row(info.id, "too many types");
        info.type_slots[info.type_count++] = info.slot_count;
      }
      ++info.slot_count;
    }
  }

  constexpr Field field(const OpInfo& info, std::string_view pattern_name) {
    for (std::size_t i = 1; i < std::size(kFields); ++i) {
      if (kFields[i].pattern_name == pattern_name) return static_cast<Field>(i);
    }
    malformed_row(info.id, "unknown field");
  }

  static constexpr std::size_t as_type_index(Modifier modifier) {
    const auto index = static_cast<std::size_t>(modifier);
    return index < kTypeCount ? index : 0;
  }

  constexpr void decode_operands(OpInfo& info) {
    std::string_view rest = info.operand_pattern;
    while (!rest.empty()) {
      if (info.operand_count == kMaxOperands) malformed_row(info.id, "too many operands");
      const auto end = rest.find_first_of(",|");
      OperandSpec& spec = info.operands[info.operand_count];
      decode_operand(info, spec, trimmed(rest.substr(0, end)));
      ++info.operand_count;
      if (!spec.optional) info.required_operands = info.operand_count;
      if (end == std::string_view::npos) break;
      if (rest[end] == '|') info.operands[info.operand_count].joined = true;
      rest.remove_prefix(end + 1);
    }
  }

  // [~+_%#&!] [ [ { ] name [ *count ] [ ] } ] [ :type ] [?] [field]
  constexpr void decode_operand(OpInfo& info, OperandSpec& spec, std::string_view text) {
    const auto question = text.find('?');
    if (question != std::string_view::npos) {
      spec.optional = true;
      if (question + 1 < text.size()) spec.with = field(info, text.substr(question + 1));
      text = text.substr(0, question);
    }
    const auto colon = text.find(':');
    if (colon != std::string_view::npos && text.starts_with('[')) {
      if (field(info, text.substr(colon + 1)) != Field::SourceSpace || !has_source_space(info)) {
        malformed_row(info.id, "an address may be ':from' if the row has that field");
      }
      table_.source_addresses[static_cast<std::size_t>(info.op)] |=
          static_cast<std::uint16_t>(1u << (&spec - info.operands.data()));
      text = text.substr(0, colon);
    } else if (colon != std::string_view::npos) {
      decode_operand_type(info, spec, text.substr(colon + 1));
      text = text.substr(0, colon);
    } else if (info.type_count == 0) {
      spec.type_source = TypeSource::Any;
    }
    bool has_role = decode_prefixes(spec, text);
    const bool braces = text.starts_with('{');
    if (text.starts_with('[')) {
      spec.role = OperandRole::Memory;
      has_role = true;
      spec.type_source = TypeSource::Any;
    }
    if (braces || text.starts_with('[')) text = text.substr(1, text.size() - 2);
    const auto star = text.find('*');
    spec.list_of_one = braces && star == std::string_view::npos;
    if (star != std::string_view::npos) {
      decode_elements(spec, text.substr(star + 1));
      text = text.substr(0, star);
    }
    constexpr std::pair<std::string_view, OperandRole> kNamedRoles[] = {
        {"label", OperandRole::Label},         {"table", OperandRole::Table},
        {"callee", OperandRole::Callee},       {"returns", OperandRole::Returns},
        {"arguments", OperandRole::Arguments},
    };
    for (const auto& [named, value] : kNamedRoles) {
      if (text == named) {
        spec.role = value;
        spec.type_source = TypeSource::Any;
        return;
      }
    }
    if (text.empty() || text.size() > 2)
      malformed_row(info.id, "operand names have one or two letters");
    std::copy(text.begin(), text.end(), spec.label);
    if (!has_role && (text.front() == 'd' || (spec.joined && !braces)))
      spec.role = OperandRole::Destination;
  }

  // Removes the prefixes `~+_%#&!`. True if one of them sets the role.
  static constexpr bool decode_prefixes(OperandSpec& spec, std::string_view& text) {
    bool has_role = false;
    const auto role = [&](OperandRole value) {
      spec.role = value;
      has_role = true;
    };
    for (; !text.empty(); text.remove_prefix(1)) {
      switch (text.front()) {
        case '~':
          spec.relaxed = true;
          break;
        case '+':
          spec.updates = true;
          break;
        case '_':
          spec.sink = true;
          break;
        case '%':
          role(OperandRole::RegisterSource);
          break;
        case '#':
          role(OperandRole::Immediate);
          break;
        case '&':
          role(OperandRole::Value);
          break;
        case '!':
          role(OperandRole::Predicate);
          break;
        default:
          return has_role;
      }
    }
    return has_role;
  }

  // The number of elements, or the letter of what decides it.
  static constexpr void decode_elements(OperandSpec& spec, std::string_view count) {
    spec.vector_from_slot = count == "v";
    if (spec.vector_from_slot) return;
    constexpr std::pair<std::string_view, ElementCount> kCounts[] = {
        {"h", ElementCount::HalfColumns}, {"q", ElementCount::QuarterColumns},
        {"t", ElementCount::Dimensions},  {"f", ElementCount::Offsets},
        {"g", ElementCount::Coordinates}, {"i", ElementCount::Gradient},
    };
    for (const auto& [letter, value] : kCounts) {
      if (count != letter) continue;
      spec.elements = value;
      return;
    }
    for (const char digit : count) {
      spec.vector = static_cast<std::uint8_t>(spec.vector * 10 + (digit - '0'));
    }
  }

  static constexpr bool has_source_space(const OpInfo& info) {
    for (std::size_t i = 0; i < info.slot_count; ++i) {
      if (info.slots[i].field == Field::SourceSpace) return true;
    }
    return false;
  }

  constexpr void decode_operand_type(OpInfo& info, OperandSpec& spec, std::string_view text) {
    const auto digit = [&](std::string_view number) {
      const auto index = static_cast<std::uint8_t>(number.front() - '0');
      if (number.size() != 1 || index >= info.type_count) malformed_row(info.id, "no such type");
      return index;
    };
    if (text == "*") {
      spec.type_source = TypeSource::Any;
    } else if (text.front() == 'w' && text.size() == 2) {
      spec.type_source = TypeSource::Wide;
      spec.index = digit(text.substr(1));
    } else if (text.front() == 'x' && text.size() == 2) {
      spec.type_source = TypeSource::Bits;
      spec.index = digit(text.substr(1));
    } else if (text.front() >= '0' && text.front() <= '9') {
      spec.index = digit(text);
    } else {
      spec.type_source = TypeSource::Fixed;
      spec.fixed = static_cast<Type>(as_type_index(modifier(info, text)));
      if (spec.fixed == Type::none) malformed_row(info.id, "unknown type");
    }
  }

  // `7.0/80; bf16:7.8/90; v8:8.8/100; ftz+f16:4.2/53`; the first has no condition.
  constexpr void decode_needs(OpInfo& info) {
    info.first_need = static_cast<std::uint16_t>(table_.need_size);
    std::string_view rest = info.needs_pattern;
    while (!rest.empty()) {
      const auto end = rest.find(';');
      std::string_view text = trimmed(rest.substr(0, end));
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
      const auto colon = text.rfind(':');
      if (colon == std::string_view::npos) {
        add_need(info, {}, text);
      } else {
        add_needs(info, text.substr(0, colon), text.substr(colon + 1));
      }
    }
    if (info.need_count == 0 || table_.needs[info.first_need].condition_count != 0) {
      malformed_row(info.id, "the first need is unconditional");
    }
  }

  // `a|b+c|d`: a need for each choice of one modifier per piece.
  constexpr void add_needs(OpInfo& info, std::string_view condition, std::string_view requirement) {
    std::size_t choices = 1;
    for (std::size_t choice = 0; choice < choices; ++choice) {
      const auto first = static_cast<std::uint16_t>(table_.pool_size);
      std::size_t left = choice;
      choices = 1;
      for (std::string_view rest = condition; !rest.empty();) {
        const auto end = rest.find('+');
        std::string_view piece = rest.substr(0, end);
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
        const auto alternatives =
            static_cast<std::size_t>(std::count(piece.begin(), piece.end(), '|')) + 1;
        for (std::size_t skip = left % alternatives; skip > 0; --skip) {
          piece.remove_prefix(piece.find('|') + 1);
        }
        left /= alternatives;
        choices *= alternatives;
        add_modifiers(info, piece.substr(0, piece.find('|')), '+');
      }
      add_need(info, first, requirement);
    }
  }

  // `8.6/100a|8.8/100f`: a need for each alternative.
  constexpr void add_need(OpInfo& info, std::uint16_t first_condition, std::string_view text) {
    while (!text.empty()) {
      const auto end = text.find('|');
      Need& need = table_.needs[table_.need_size++];
      ++info.need_count;
      if (first_condition != 0) {
        need.first_condition = first_condition;
        need.condition_count = static_cast<std::uint16_t>(table_.pool_size - first_condition);
        for (std::size_t i = first_condition; i < table_.pool_size; ++i) {
          need.filter |= modifier_filter(table_.pool[i]);
        }
      }
      decode_requirement(info, need.requirement, text.substr(0, end));
      text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
  }

  constexpr void decode_requirement(OpInfo& info, Requirement& out, std::string_view text) {
    if (text == "never") {
      out = {{255, 255}, 0xffff, Variant::None};
      return;
    }
    const auto dot = text.find('.');
    const auto slash = text.find('/');
    if (dot == std::string_view::npos) malformed_row(info.id, "a need is version/sm");
    out.version.major = static_cast<std::uint8_t>(number(info, text.substr(0, dot)));
    out.version.minor = static_cast<std::uint8_t>(number(
        info, text.substr(dot + 1, slash == std::string_view::npos ? slash : slash - dot - 1)));
    if (slash == std::string_view::npos) return;
    text = text.substr(slash + 1);
    if (text.ends_with('a')) out.variant = Variant::Architecture;
    if (text.ends_with('f')) out.variant = Variant::Family;
    if (out.variant != Variant::None) text.remove_suffix(1);
    out.sm = static_cast<std::uint16_t>(number(info, text));
  }

  constexpr unsigned number(const OpInfo& info, std::string_view text) {
    unsigned value = 0;
    if (text.empty()) malformed_row(info.id, "a number is missing");
    for (const char digit : text) {
      if (digit < '0' || digit > '9') malformed_row(info.id, "not a number");
      value = value * 10 + static_cast<unsigned>(digit - '0');
    }
    return value;
  }

  static constexpr std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
  }

  Table& table_;
};

constexpr Table decode_table() {
  Table table;
  Decoder decoder(table);
  for (std::size_t i = 0; i < kRowCount; ++i) decoder.decode(i);
  return table;
}

constexpr Table kTable = decode_table();

constexpr auto kShapes = [] {
  std::array<RowShape, kRowCount> shapes{};
  for (std::size_t r = 0; r < shapes.size(); ++r) {
    const OpInfo& row = kTable.rows[r];
    RowShape& shape = shapes[r];
    shape.from_source = kTable.source_addresses[r];
    bool plain = true;
    for (std::size_t i = 0; i < row.operand_count; ++i) {
      const OperandSpec& spec = row.operands[i];
      const bool tied = spec.with != Field::Literal;
      plain = plain && !tied && !spec.optional && !spec.joined;
      if (plain) shape.plain = static_cast<std::uint8_t>(i + 1);
      if (!plain && !tied && !spec.optional) shape.more = true;
      if (!tied) continue;
      for (std::size_t s = 0; s < row.slot_count; ++s) {
        if (row.slots[s].field == spec.with)
          shape.ties = static_cast<std::uint16_t>(shape.ties | 1u << s);
      }
    }
  }
  return shapes;
}();

// Rows ordered by mnemonic (table order within one), for lookup.
constexpr auto kByMnemonic = [] {
  std::array<Op, kRowCount> sorted{};
  for (std::size_t i = 0; i < kRowCount; ++i) sorted[i] = static_cast<Op>(i);
  std::sort(sorted.begin(), sorted.end(), [](Op a, Op b) {
    const auto& left = kRows[static_cast<std::size_t>(a)];
    const auto& right = kRows[static_cast<std::size_t>(b)];
    return left.mnemonic != right.mnemonic ? left.mnemonic < right.mnemonic : a < b;
  });
  return sorted;
}();

}  // namespace

std::string_view name(Type type) noexcept { return kModifierNames[static_cast<std::size_t>(type)]; }
unsigned bits(Type type) noexcept { return kTypes[static_cast<std::size_t>(type)].bits; }
TypeKind kind(Type type) noexcept { return kTypes[static_cast<std::size_t>(type)].kind; }
unsigned bytes(Type type) noexcept { return type == Type::pred ? 0 : (bits(type) + 7) / 8; }

Type untyped(unsigned width) noexcept {
  switch (width) {
    case 8:
      return Type::b8;
    case 16:
      return Type::b16;
    case 32:
      return Type::b32;
    case 64:
      return Type::b64;
    case 128:
      return Type::b128;
    default:
      return Type::none;
  }
}

std::string_view name(Modifier modifier) noexcept {
  return kModifierNames[static_cast<std::size_t>(modifier)];
}

Type as_type(Modifier modifier) noexcept {
  const auto index = static_cast<std::size_t>(modifier);
  return index < kTypeCount ? static_cast<Type>(index) : Type::none;
}

std::string_view name(Field field) noexcept { return kFields[static_cast<std::size_t>(field)].id; }

std::string_view name(Space space) noexcept {
  static constexpr std::string_view kNames[] = {"",      "reg",   "global", "shared",
                                                "local", "const", "param",  "tex"};
  return kNames[static_cast<std::size_t>(space)];
}

Space space_of(Modifier modifier) noexcept {
  switch (modifier) {
    case Modifier::global:
      return Space::Global;
    case Modifier::shared:
    case Modifier::shared_cta:
    case Modifier::shared_cluster:
      return Space::Shared;
    case Modifier::local:
      return Space::Local;
    case Modifier::const_:
      return Space::Const;
    case Modifier::param:
    case Modifier::param_entry:
    case Modifier::param_func:
      return Space::Param;
    default:
      return Space::Generic;
  }
}

const RowShape& row_shape(Op op) noexcept { return kShapes[static_cast<std::size_t>(op)]; }

std::span<const OpInfo> op_table() noexcept { return kTable.rows; }
const OpInfo& info(Op op) noexcept { return kTable.rows[static_cast<std::size_t>(op)]; }

std::span<const Op> ops_with_mnemonic(std::string_view mnemonic) noexcept {
  const auto less = [](Op op, std::string_view text) { return info(op).mnemonic < text; };
  const auto greater = [](std::string_view text, Op op) { return text < info(op).mnemonic; };
  const auto first = std::lower_bound(kByMnemonic.begin(), kByMnemonic.end(), mnemonic, less);
  const auto last = std::upper_bound(first, kByMnemonic.end(), mnemonic, greater);
  return {first, last};
}

std::span<const Modifier> allowed_modifiers(const ModifierSlot& slot) noexcept {
  return {kTable.pool.data() + slot.first, slot.count};
}
std::span<const Need> needs(const OpInfo& row) noexcept {
  return {kTable.needs.data() + row.first_need, row.need_count};
}
std::span<const Modifier> condition(const Need& need) noexcept {
  return {kTable.pool.data() + need.first_condition, need.condition_count};
}
Modifier modifier_from_text(std::string_view text) noexcept { return find_modifier(text); }

}  // namespace ptxgen::inline v0::ptx
