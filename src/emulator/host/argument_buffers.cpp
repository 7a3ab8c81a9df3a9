// src/emulator/host/argument_buffers.cpp - buffers of arguments: typed specs, contents
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iostream>
#include <optional>

#include "emulator/host/argument_text.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/half.hpp"
#include "support/npy.hpp"
#include "support/numbers.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Type;

constexpr std::string_view kTypeNames =
    "u8, u16, u32, u64, s8, s16, s32, s64, f16, bf16, f32 or f64";

struct NpyRow {
  std::string_view name;
  Type type;
};
// NumPy has no bf16. `|` is no byte order, `=` that of the host.
constexpr NpyRow kNpyTypes[] = {
    {"|u1", Type::u8},  {"<u2", Type::u16}, {"<u4", Type::u32}, {"<u8", Type::u64},
    {"|i1", Type::s8},  {"<i2", Type::s16}, {"<i4", Type::s32}, {"<i8", Type::s64},
    {"<f2", Type::f16}, {"<f4", Type::f32}, {"<f8", Type::f64}, {"|b1", Type::u8},
};

std::string_view npy_name(Type type) noexcept {
  for (const NpyRow& row : kNpyTypes) {
    if (row.type == type) return row.name;
  }
  return {};
}

Type npy_type(std::string_view name) noexcept {
  for (const NpyRow& row : kNpyTypes) {
    if (row.name.substr(1) == name.substr(1)) return row.type;
  }
  return Type::none;
}

// The form of a spec, for messages.
std::string_view form_of(std::string_view prefix) {
  if (prefix == "random") return "random:TYPE:SHAPE[:SEED]";
  if (prefix == "iota") return "iota:TYPE:SHAPE[:START[:STEP]]";
  if (prefix == "fill") return "fill:TYPE:SHAPE:VALUE";
  if (prefix == "print") return "print:TYPE:SHAPE, or print: before npy:, random:, iota: or fill:";
  return "npy:FILE, npy:FILE:FILE2 or npy:TYPE:SHAPE:FILE";
}

// The fields of a spec, from left to right.
class Fields {
 public:
  Fields(const ArgumentSpec& spec, std::string_view prefix, std::string_view rest)
      : spec_(spec), prefix_(prefix), rest_(rest) {}

  [[nodiscard]] bool empty() const noexcept { return done_; }
  [[nodiscard]] std::string_view next() {
    const std::size_t colon = rest_.find(':');
    const std::string_view field = rest_.substr(0, colon);
    done_ = colon == std::string_view::npos;
    rest_.remove_prefix(done_ ? rest_.size() : colon + 1);
    return field;
  }
  [[nodiscard]] std::string_view rest() {
    done_ = true;
    return rest_;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    refuse_argument(spec_.text, format_text("{}; write {}", why, form_of(prefix_)));
  }

 private:
  const ArgumentSpec& spec_;
  std::string_view prefix_;
  std::string_view rest_;
  bool done_ = false;
};

// `TYPE:SHAPE`
void read_layout(ArgumentSpec& spec, Fields& fields) {
  const std::string_view type = fields.next();
  spec.type = value_type(type);
  if (spec.type == Type::none) {
    fields.refuse(format_text("'{}' is not a TYPE, which is {}", type, kTypeNames));
  }
  if (fields.empty()) fields.refuse("the SHAPE is missing");
  const std::string_view shape = fields.next();
  spec.bytes = ptx::bytes(spec.type);
  for (std::size_t at = 0; at <= shape.size();) {
    const std::size_t end = std::min(shape.find('x', at), shape.size());
    const auto extent = parse_number<std::uint64_t>(shape.substr(at, end - at)).value_or(0);
    if (extent == 0 || spec.bytes > ~std::uint64_t{0} / extent) {
      fields.refuse(
          format_text("'{}' is not a SHAPE, which is N, NxM, ... with numbers of at "
                      "least 1",
                      shape));
    }
    spec.bytes *= extent;
    spec.shape.push_back(extent);
    at = end + 1;
  }
}

void read_npy(ArgumentSpec& spec, Fields fields, std::string_view rest) {
  const bool typed = value_type(rest.substr(0, rest.find(':'))) != Type::none &&
                     rest.find(':') != std::string_view::npos;
  if (typed) {
    spec.kind = ArgumentKind::Typed;
    read_layout(spec, fields);
    if (!fields.empty()) spec.output = std::string(fields.rest());
    if (spec.output.empty()) fields.refuse("the FILE is missing");
    if (npy_name(spec.type).empty()) {
      fields.refuse("NumPy has no bf16; use u16 for its bits");
    }
    return;
  }
  spec.kind = ArgumentKind::Npy;
  const std::size_t last = rest.rfind(':');
  spec.input = std::string(rest.substr(0, last));
  if (last != std::string_view::npos) spec.output = std::string(rest.substr(last + 1));
  if (spec.input.empty() || (last != std::string_view::npos && spec.output.empty())) {
    fields.refuse("the FILE is missing");
  }
}

void read_random(ArgumentSpec& spec, Fields fields) {
  spec.kind = ArgumentKind::Random;
  read_layout(spec, fields);
  if (fields.empty()) return;
  spec.first = value_bits(spec.text, fields.next(), Type::u64);
  spec.seeded = true;
  if (!fields.empty()) fields.refuse("nothing follows the SEED");
}

// The value 1 of that type, or 0.
std::uint64_t bits_of(Type type, std::string_view value) { return value_bits(value, value, type); }

void read_iota(ArgumentSpec& spec, Fields fields) {
  spec.kind = ArgumentKind::Iota;
  read_layout(spec, fields);
  spec.step = bits_of(spec.type, "1");
  if (!fields.empty()) spec.first = value_bits(spec.text, fields.next(), spec.type);
  if (!fields.empty()) spec.step = value_bits(spec.text, fields.next(), spec.type);
  if (!fields.empty()) fields.refuse("nothing follows the STEP");
}

void read_fill(ArgumentSpec& spec, Fields fields) {
  spec.kind = ArgumentKind::Fill;
  read_layout(spec, fields);
  if (fields.empty()) fields.refuse("the VALUE is missing");
  spec.first = value_bits(spec.text, fields.rest(), spec.type);
}

// Word `i` of splitmix64, whose state is a sum.
std::uint64_t random_word(std::uint64_t seed, std::uint64_t index) noexcept {
  std::uint64_t word = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
  word = (word ^ word >> 27) * 0x94d049bb133111ebu;
  return word ^ word >> 31;
}

double as_double(std::uint64_t bits, Type type) noexcept {
  switch (type) {
    case Type::f16:
      return f16_to_float(static_cast<std::uint16_t>(bits));
    case Type::bf16:
      return bf16_to_float(static_cast<std::uint16_t>(bits));
    case Type::f32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    default:
      return std::bit_cast<double>(bits);
  }
}

std::uint64_t as_bits(double value, Type type) noexcept {
  switch (type) {
    case Type::f16:
      return float_to_f16(static_cast<float>(value));
    case Type::bf16:
      return float_to_bf16(static_cast<float>(value));
    case Type::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    default:
      return std::bit_cast<std::uint64_t>(value);
  }
}

// The bits of element `i`.
std::uint64_t element(const ArgumentSpec& spec, std::uint64_t seed, std::uint64_t i) noexcept {
  const bool is_float = ptx::kind(spec.type) == ptx::TypeKind::Float;
  switch (spec.kind) {
    case ArgumentKind::Random: {
      const std::uint64_t word = random_word(seed, i);
      if (!is_float) return word;
      // f32 holds 24 bits exactly, f64 53.
      return spec.type == Type::f64
                 ? as_bits(static_cast<double>(word >> 11) * 0x1p-52 - 1, spec.type)
                 : as_bits(static_cast<double>(word >> 40) * 0x1p-23 - 1, spec.type);
    }
    case ArgumentKind::Iota:
      if (!is_float) return spec.first + i * spec.step;
      return as_bits(as_double(spec.first, spec.type) +
                         static_cast<double>(i) * as_double(spec.step, spec.type),
                     spec.type);
    default:
      return spec.first;
  }
}

void make_elements(BufferContent& content, const ArgumentSpec& spec, std::uint64_t seed) {
  const std::size_t size = ptx::bytes(spec.type);
  content.data.resize(static_cast<std::size_t>(content.bytes));
  const std::uint64_t count = content.bytes / size;
  char* at = content.data.data();
  for (std::uint64_t i = 0; i < count; ++i, at += size) {
    const std::uint64_t bits = element(spec, seed, i);
    for (std::size_t b = 0; b < size; ++b) at[b] = static_cast<char>(bits >> (8 * b));
  }
}

std::string content_of(const std::string& path, std::uint64_t max_bytes) {
  if (path != "-") return read_file(path, max_bytes);
  return read_stream(std::cin, "<stdin>", std::min(max_bytes, kMaxStreamBytes));
}

void read_npy_file(BufferContent& content, const ArgumentSpec& spec, std::string text) {
  const std::string name = spec.input == "-" ? "<stdin>" : spec.input;
  NpyArray array = parse_npy(std::move(text), name);
  content.type = npy_type(array.type);
  if (content.type == Type::none) {
    Error error(
        Stage::Io, "npy",
        format_text("cannot use the .npy file: its elements are '{}'; expected one of i1 to i8, "
                    "u1 to u8, f2, f4, f8, b1",
                    array.type));
    error.file = name;
    throw error.refresh();
  }
  if (!spec.output.empty()) content.output_header = npy_header(array.type, array.shape);
  content.shape = std::move(array.shape);
  content.data = std::move(array.data);
}

}  // namespace

bool is_typed_buffer(std::string_view prefix) noexcept {
  constexpr std::array<std::string_view, 5> kPrefixes = {"npy", "random", "iota", "fill", "print"};
  return std::ranges::find(kPrefixes, prefix) != kPrefixes.end();
}

void parse_typed_buffer(ArgumentSpec& spec, std::string_view prefix, std::string_view rest) {
  const Fields fields(spec, prefix, rest);
  if (prefix == "npy") return read_npy(spec, fields, rest);
  if (prefix == "random") return read_random(spec, fields);
  if (prefix == "iota") return read_iota(spec, fields);
  if (prefix == "fill") return read_fill(spec, fields);
  spec.print = true;
  const std::string_view inner = rest.substr(0, rest.find(':'));
  if (inner != "print" && is_typed_buffer(inner)) {
    return parse_typed_buffer(spec, inner, rest.substr(std::min(inner.size() + 1, rest.size())));
  }
  spec.kind = ArgumentKind::Typed;
  Fields layout = fields;
  read_layout(spec, layout);
  if (!layout.empty()) layout.refuse("nothing follows the SHAPE");
}

BufferContent buffer_content(const ArgumentSpec& spec, std::size_t number,
                             std::string_view parameter, std::uint64_t max_bytes) {
  BufferContent content;
  content.bytes = spec.bytes;
  content.type = spec.type;
  content.shape = spec.shape;
  if (!spec.input.empty()) {
    std::string text = content_of(spec.input, max_bytes);
    if (spec.kind == ArgumentKind::Npy) {
      read_npy_file(content, spec, std::move(text));
    } else {
      content.data = std::move(text);
    }
    content.bytes = content.data.size();
    if (content.bytes == 0) {
      throw Error(Stage::Launch, "argument",
                  format_text("argument {} (parameter {}): the file '{}' is empty; a buffer has at "
                              "least 1 byte",
                              number, parameter, spec.input));
    }
    return content;
  }
  // Check before the host generates the elements; the device itself refuses other buffers.
  if (spec.kind >= ArgumentKind::Random && content.bytes > max_bytes) {
    throw Error(Stage::Launch, "argument",
                format_text("argument {} (parameter {}): '{}' has {} bytes, the GPU has {}", number,
                            parameter, spec.text, content.bytes, max_bytes));
  }
  if (spec.kind >= ArgumentKind::Random) {
    make_elements(content, spec, spec.seeded ? spec.first : number);
  }
  if (spec.kind == ArgumentKind::Typed && !spec.output.empty()) {
    content.output_header = npy_header(npy_name(spec.type), spec.shape);
  }
  return content;
}

}  // namespace ptxgen::inline v0::emulator
