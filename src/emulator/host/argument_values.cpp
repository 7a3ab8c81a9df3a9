// src/emulator/host/argument_values.cpp - parses argument specs and checks them
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "emulator/host/argument_text.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Type;

constexpr std::string_view kForms =
    "u8:VALUE to u64:VALUE, s8:VALUE to s64:VALUE, f16:VALUE, bf16:VALUE, f32:VALUE, f64:VALUE, "
    "bytes:HEX, null, in:FILE, out:BYTES:FILE, inout:FILE:FILE2, zero:BYTES:FILE, npy:FILE, "
    "random:TYPE:SHAPE, iota:TYPE:SHAPE, fill:TYPE:SHAPE:VALUE or print:TYPE:SHAPE";

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  refuse_argument(text, why);
}

std::vector<std::byte> little_endian(std::uint64_t value, unsigned count) {
  std::vector<std::byte> bytes(count);
  for (unsigned i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return bytes;
}

bool is_hex(std::string_view text) {
  return text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

// Digits, or 0x and hexadecimal digits, of a number below 2^64.
std::optional<std::uint64_t> whole_number(std::string_view text) {
  return is_hex(text) ? parse_number<std::uint64_t>(text.substr(2), 16)
                      : parse_number<std::uint64_t>(text);
}

std::uint64_t mask_of(unsigned bits) { return bits == 64 ? ~0ull : (1ull << bits) - 1; }

std::uint64_t pattern(std::string_view text, std::string_view digits_text, unsigned bits) {
  const auto value = parse_number<std::uint64_t>(digits_text, 16);
  if (!value || *value > mask_of(bits)) {
    refuse(text, format_text("expected at most {} hexadecimal digits after 0x", bits / 4));
  }
  return *value;
}

std::uint64_t integer(std::string_view text, std::string_view value_text, Type type) {
  const unsigned bits = ptx::bits(type);
  const bool is_signed = ptx::kind(type) == ptx::TypeKind::Signed;
  if (is_hex(value_text)) return pattern(text, value_text.substr(2), bits);
  const bool minus = value_text.starts_with('-');
  const std::string_view magnitude_text = value_text.substr(minus ? 1 : 0);
  const bool hex = is_hex(magnitude_text);
  const std::uint64_t max_magnitude =
      is_signed ? mask_of(bits) / 2 + (minus ? 1 : 0) : mask_of(bits);
  const bool is_number = !magnitude_text.empty() &&
                         magnitude_text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_number && !hex) {
    refuse(text, format_text("'{}' is not an integer; write it in decimal or as 0x and digits",
                             value_text));
  }
  const auto magnitude = whole_number(magnitude_text);
  if (!magnitude || *magnitude > max_magnitude || (!is_signed && minus && *magnitude != 0)) {
    const std::uint64_t max = is_signed ? mask_of(bits) / 2 : mask_of(bits);
    refuse(text, format_text("a .{} value is between {} and {}", ptx::name(type),
                             is_signed ? format_text("-{}", max + 1) : "0", max));
  }
  return (minus ? std::uint64_t{0} - *magnitude : *magnitude) & mask_of(bits);
}

// A decimal number as digits d with the value 0.d * 10^exponent; no zeros at either end.
struct Decimal {
  std::string digits;
  long exponent = 0;
};

// False if the text is not an unsigned decimal number.
bool read_decimal(std::string_view text, Decimal& out) {
  std::size_t at = 0;
  bool seen = false;
  bool point = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      seen = true;
      if (!point) ++out.exponent;
      if (c == '0' && out.digits.empty()) {
        --out.exponent;
      } else {
        out.digits += c;
      }
    } else {
      break;
    }
  }
  if (!seen) return false;
  if (at < text.size()) {
    if (text[at] != 'e' && text[at] != 'E') return false;
    std::string_view power = text.substr(at + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    long shift = 0;
    const auto [end, code] = std::from_chars(power.data(), power.data() + power.size(), shift);
    if (power.empty() || end != power.data() + power.size()) return false;
    // Beyond any valid exponent, yet far from overflow in the sum below.
    constexpr long kFar = 1'000'000'000;
    if (code == std::errc::result_out_of_range) shift = power.starts_with('-') ? -kFar : kFar;
    out.exponent += std::max(-kFar, std::min(kFar, shift));
  }
  while (!out.digits.empty() && out.digits.back() == '0') out.digits.pop_back();
  return true;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.digits.empty() || b.digits.empty()) {
    return static_cast<int>(!a.digits.empty()) - static_cast<int>(!b.digits.empty());
  }
  if (a.exponent != b.exponent) return a.exponent < b.exponent ? -1 : 1;
  return a.digits.compare(b.digits);
}

// All digits of a finite, positive double. Values half way between two of a narrow format have at
// most 160 digits.
Decimal exact(double value) {
  char text[256];
  const auto result =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, 200);
  Decimal decimal;
  (void)read_decimal({text, static_cast<std::size_t>(result.ptr - text)}, decimal);
  return decimal;
}

// A binary format narrower than f32, or with its range.
struct Format {
  unsigned mantissa_bits;  // without the implied one
  int lowest_exponent;     // of a normal number
  int highest_exponent;
};

// The bits of a positive decimal number in a format, rounded once; ~0 if beyond its range. `near`:
// the nearest double.
std::uint64_t round_to(const Format& format, const Decimal& decimal, double near) {
  if (near == 0) return 0;
  int exponent = std::ilogb(near);
  exponent = std::max(exponent, format.lowest_exponent);
  const double ulp = std::ldexp(1.0, exponent - static_cast<int>(format.mantissa_bits));
  const double units = near / ulp;  // exact: a power of two
  double integer = std::floor(units);
  const double rest = units - integer;
  bool up = rest > 0.5;
  if (rest == 0.5) {
    // The double may have been rounded to the middle: compare the decimal number.
    const int side = compare(decimal, exact(near));
    up = side > 0 || (side == 0 && std::fmod(integer, 2.0) != 0);
  }
  if (up) integer += 1;
  // A carry out of the mantissa increments the exponent.
  const auto mantissa = static_cast<std::uint64_t>(integer);
  const std::uint64_t one = 1ull << format.mantissa_bits;
  if (mantissa < one) return mantissa;
  const std::uint64_t bits =
      mantissa - one +
      (static_cast<std::uint64_t>(exponent - format.lowest_exponent + 1) << format.mantissa_bits);
  const std::uint64_t infinity =
      static_cast<std::uint64_t>(format.highest_exponent - format.lowest_exponent + 2)
      << format.mantissa_bits;
  return bits >= infinity ? ~0ull : bits;
}

struct FloatRow {
  Type type;
  std::uint64_t infinity;
  std::uint64_t nan;
  std::string_view largest;
};
constexpr FloatRow kFloats[] = {
    {Type::f16, 0x7c00, 0x7e00, "65504"},
    {Type::bf16, 0x7f80, 0x7fc0, "3.3895314e38"},
    {Type::f32, 0x7f800000, 0x7fc00000, "3.40282347e38"},
    {Type::f64, 0x7ff0000000000000, 0x7ff8000000000000, "1.7976931348623157e308"},
};

const FloatRow& float_row(Type type) {
  for (const FloatRow& row : kFloats) {
    if (row.type == type) return row;
  }
  return kFloats[3];
}

// The bits of a positive decimal number, rounded to nearest even; ~0 if beyond the range.
std::uint64_t float_bits(std::string_view text, Type type, const Decimal& decimal) {
  const std::uint64_t out_of_range = decimal.exponent > 0 ? ~0ull : 0;
  if (type == Type::f32) {
    const auto value = take_number<float>(text);
    if (!value) return out_of_range;
    return std::isinf(*value) ? ~0ull : std::bit_cast<std::uint32_t>(*value);
  }
  const auto value = take_number<double>(text);
  if (!value) return out_of_range;
  if (std::isinf(*value)) return ~0ull;
  if (type == Type::f64) return std::bit_cast<std::uint64_t>(*value);
  constexpr Format kHalf{10, -14, 15};
  constexpr Format kBrain{7, -126, 127};
  return round_to(type == Type::f16 ? kHalf : kBrain, decimal, *value);
}

std::uint64_t floating(std::string_view text, std::string_view value_text, Type type) {
  const unsigned bits = ptx::bits(type);
  const FloatRow& row = float_row(type);
  const std::uint64_t sign = 1ull << (bits - 1);
  if (is_hex(value_text)) return pattern(text, value_text.substr(2), bits);
  if (value_text == "nan") return row.nan;
  if (value_text == "inf") return row.infinity;
  if (value_text == "-inf") return row.infinity | sign;
  const bool minus = value_text.starts_with('-');
  const std::string_view magnitude = value_text.substr(minus ? 1 : 0);
  Decimal decimal;
  if (!read_decimal(magnitude, decimal)) {
    refuse(text, format_text("'{}' is not a number; write a decimal number, nan, inf, -inf, or 0x "
                             "and the bit pattern",
                             value_text));
  }
  const std::uint64_t result = float_bits(magnitude, type, decimal);
  if (result == ~0ull) {
    refuse(text, format_text("beyond the largest .{} value, {}; write inf for infinity",
                             ptx::name(type), row.largest));
  }
  return result | (minus ? sign : 0);
}

std::vector<std::byte> hex_bytes(std::string_view text, std::string_view hex) {
  std::vector<std::byte> bytes;
  if (hex.empty() || hex.size() % 2 != 0) {
    refuse(text, "expected two hexadecimal digits for each byte, at least one byte");
  }
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const auto value = parse_number<std::uint8_t>(hex.substr(i, 2), 16);
    if (!value) {
      refuse(text, format_text("'{}' is not a pair of hexadecimal digits", hex.substr(i, 2)));
    }
    bytes.push_back(std::byte{*value});
  }
  return bytes;
}

// `BYTES[:FILE]`
void sized_buffer(ArgumentSpec& spec, std::string_view rest) {
  const std::size_t colon = rest.find(':');
  const std::string_view size = rest.substr(0, colon);
  spec.bytes = whole_number(size).value_or(0);
  if (spec.bytes == 0) {
    refuse(spec.text, format_text("'{}' is not a size in bytes, a number of at least 1; write "
                                  "{}:BYTES:FILE",
                                  size, spec.kind == ArgumentKind::Out ? "out" : "zero"));
  }
  if (colon == std::string_view::npos) return;
  spec.output = std::string(rest.substr(colon + 1));
  if (spec.output.empty()) refuse(spec.text, "the file after the last colon is missing");
}

std::string declared(const Program::Kernel::Parameter& parameter) {
  const unsigned element = ptx::bytes(parameter.type);
  return element != 0 && parameter.bytes > element
             ? format_text(".{}[{}]", ptx::name(parameter.type), parameter.bytes / element)
             : format_text(".{}", ptx::name(parameter.type));
}

// The spec to write for a parameter.
std::string advice(const Program::Kernel::Parameter& parameter) {
  const unsigned element = ptx::bytes(parameter.type);
  const char* const address = element == 8 ? ", null or a buffer" : "";
  if (parameter.bytes != element) {
    return format_text("bytes: and {} hexadecimal digits", 2 * parameter.bytes);
  }
  switch (ptx::kind(parameter.type)) {
    case ptx::TypeKind::Float:
      return format_text("{}:VALUE", ptx::name(parameter.type));
    case ptx::TypeKind::Unsigned:
    case ptx::TypeKind::Signed:
      return format_text("{}:VALUE{}", ptx::name(parameter.type), address);
    default:
      return format_text("u{}:VALUE{}{}", 8 * element,
                         element > 1 ? format_text(", f{}:VALUE", 8 * element) : "", address);
  }
}

}  // namespace

void refuse_argument(std::string_view spec, std::string_view why) {
  throw Error(Stage::Launch, "argument", format_text("argument '{}': {}", spec, why));
}

Type value_type(std::string_view prefix) noexcept {
  constexpr Type kTypes[] = {Type::u8,  Type::u16, Type::u32, Type::u64,  Type::s8,  Type::s16,
                             Type::s32, Type::s64, Type::f16, Type::bf16, Type::f32, Type::f64};
  for (const Type type : kTypes) {
    if (ptx::name(type) == prefix) return type;
  }
  return Type::none;
}

std::uint64_t value_bits(std::string_view spec, std::string_view value, Type type) {
  const bool is_float = ptx::kind(type) == ptx::TypeKind::Float;
  return is_float ? floating(spec, value, type) : integer(spec, value, type);
}

ArgumentSpec parse_argument(std::string_view text) {
  ArgumentSpec spec;
  spec.text = std::string(text);
  if (text == "null") {
    spec.kind = ArgumentKind::Null;
    spec.value.assign(8, std::byte{0});
    return spec;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) refuse(text, format_text("expected {}", kForms));
  const std::string_view prefix = text.substr(0, colon);
  const std::string_view rest = text.substr(colon + 1);
  spec.type = value_type(prefix);
  if (spec.type != Type::none) {
    const bool is_float = ptx::kind(spec.type) == ptx::TypeKind::Float;
    spec.kind = is_float ? ArgumentKind::Float : ArgumentKind::Integer;
    spec.value = little_endian(value_bits(text, rest, spec.type), ptx::bytes(spec.type));
  } else if (prefix == "bytes") {
    spec.kind = ArgumentKind::Bytes;
    spec.value = hex_bytes(text, rest);
  } else if (prefix == "in") {
    spec.kind = ArgumentKind::In;
    spec.input = std::string(rest);
    if (rest.empty()) refuse(text, "the file is missing; write in:FILE");
  } else if (prefix == "out" || prefix == "zero") {
    spec.kind = prefix == "out" ? ArgumentKind::Out : ArgumentKind::Zero;
    sized_buffer(spec, rest);
  } else if (prefix == "inout") {
    spec.kind = ArgumentKind::InOut;
    const std::size_t last = rest.rfind(':');
    if (last == std::string_view::npos || last == 0 || last + 1 == rest.size()) {
      refuse(text, "expected two files, one to read and one to write; write inout:FILE:FILE2");
    }
    spec.input = std::string(rest.substr(0, last));
    spec.output = std::string(rest.substr(last + 1));
  } else if (is_typed_buffer(prefix)) {
    parse_typed_buffer(spec, prefix, rest);
  } else {
    refuse(text, format_text("expected {}", kForms));
  }
  return spec;
}

void check_argument(const ArgumentSpec& spec, const Program::Kernel::Parameter& parameter,
                    std::size_t number) {
  const auto mismatch = [&](const std::string& reason) {
    throw Error(
        Stage::Launch, "argument",
        format_text("argument {} (parameter {}, {}): '{}' {}; write {}", number, parameter.name,
                    declared(parameter), spec.text, reason, advice(parameter)));
  };
  const std::uint64_t size = spec.is_buffer() ? 8 : spec.value.size();
  if (size != parameter.bytes) {
    mismatch(format_text("{} {}, the parameter has {}",
                         spec.is_buffer() ? "is an address of" : "has", count_text(size, "byte"),
                         count_text(parameter.bytes, "byte")));
  }
  // The kind of an aggregate does not follow from its element type.
  if (parameter.bytes != ptx::bytes(parameter.type)) return;
  const ptx::TypeKind kind = ptx::kind(parameter.type);
  const bool expects_float = kind == ptx::TypeKind::Float;
  const bool expects_integer = kind == ptx::TypeKind::Unsigned || kind == ptx::TypeKind::Signed;
  if (spec.kind == ArgumentKind::Bytes) return;
  if (spec.kind == ArgumentKind::Float) {
    if (expects_integer) mismatch("is a float, the parameter is an integer");
    if (expects_float && spec.type != parameter.type) {
      mismatch("has another floating-point type than the parameter");
    }
    return;
  }
  if (expects_float) {
    mismatch(spec.kind == ArgumentKind::Integer ? "is an integer, the parameter is a float"
                                                : "is an address, the parameter is a float");
  }
}

}  // namespace ptxgen::inline v0::emulator
