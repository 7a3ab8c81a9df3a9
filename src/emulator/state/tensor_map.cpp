// src/emulator/state/tensor_map.cpp - tensor maps of the emulated driver
#include "emulator/state/tensor_map.hpp"

#include <cstring>
#include <iterator>

#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Modifier;

/// The bytes of a map. Hardware has another layout, which NVIDIA does not document.
struct Packed {
  std::uint64_t magic;
  std::uint64_t address;
  std::uint64_t strides[kMaxTensorRank - 1];
  std::uint32_t dims[kMaxTensorRank];  ///< the low 32 bits
  std::uint16_t box[kMaxTensorRank];
  std::uint8_t steps[kMaxTensorRank];
  std::uint8_t type;
  std::uint8_t rank;
  std::uint8_t swizzle;  ///< in units of 32 bytes
  std::uint8_t flush;
  std::uint8_t fill_nan;
  std::uint8_t full;  ///< a bit for each dimension of 2^32 elements
  std::uint8_t unused[31];
  std::uint64_t check;
};
static_assert(sizeof(Packed) == kTensorMapBytes);

constexpr std::uint64_t kMagic = 0x70616d2e6e736e74;  // "tnsn.map"

std::uint64_t check_of(const Packed& packed) noexcept {
  std::byte bytes[offsetof(Packed, check)];
  std::memcpy(bytes, &packed, sizeof bytes);
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  }
  return hash;
}

/// What the numbers of .elemtype mean that the emulator supports (PTX ISA, tensormap.replace; the
/// order is not that of CUtensorMapDataType). tf32 is moved as f32.
struct Element {
  ptx::Type type;
  bool flush = false;
};
constexpr Element kElements[] = {{ptx::Type::u8},       {ptx::Type::u16},  {ptx::Type::u32},
                                 {ptx::Type::s32},      {ptx::Type::u64},  {ptx::Type::s64},
                                 {ptx::Type::f16},      {ptx::Type::f32},  {ptx::Type::f32, true},
                                 {ptx::Type::f64},      {ptx::Type::bf16}, {ptx::Type::f32},
                                 {ptx::Type::f32, true}};

constexpr std::uint32_t kSwizzleBytes[] = {0, 32, 64, 128};

constexpr std::uint64_t kUnit = 16;
constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxBox = 256;
constexpr std::uint64_t kMaxStep = 8;

/// Of a value alone. The limits are those of cuTensorMapEncodeTiled (cuda.h).
TensorMapFault range_fault(Modifier field, std::uint32_t ordinal, std::uint64_t value) {
  const auto outside = [&](std::string_view rule, std::string_view remedy) {
    return TensorMapFault{format_text("{}[{}] becomes {}", ptx::name(field), ordinal, value),
                          std::string(rule), std::string(remedy)};
  };
  switch (field) {
    case Modifier::global_address:
      if (value != 0 && value % kUnit == 0) return {};
      return {format_text("global_address becomes {:#x}", value),
              "the tensor's address is a multiple of 16 and not null",
              "align the tensor to 16 bytes, and select a part of it by coordinates"};
    case Modifier::rank:
      if (value < kMaxTensorRank) return {};
      return {format_text("rank becomes {}, a tensor of {} dimensions", value, value + 1),
              "the field is the number of dimensions minus 1: 0 to 4", "pass the rank minus 1"};
    case Modifier::box_dim:
      if (value != 0 && value <= kMaxBox) return {};
      return outside("a box has 1 to 256 elements along each dimension",
                     "use several copies of smaller boxes");
    case Modifier::global_dim:
      if (value != 0) return {};
      return outside("a tensor has 1 element or more along each dimension",
                     "skip the copy of an empty tensor");
    case Modifier::global_stride:
      if (value % kUnit == 0 && value < kMaxStride) return {};
      return outside("strides are in bytes, multiples of 16 below 2^40",
                     "pad the rows of the tensor to a multiple of 16 bytes");
    case Modifier::element_stride:
      if (value != 0 && value <= kMaxStep) return {};
      return outside("the step along a dimension is 1 to 8 elements", "use 1 for each element");
    case Modifier::elemtype:
      if (value < std::size(kElements)) return {};
      return {format_text("elemtype becomes {}", value), "the emulator has elements 0 to 12",
              "use one of them"};
    case Modifier::swizzle_mode:
      if (value < std::size(kSwizzleBytes)) return {};
      return {format_text("swizzle_mode becomes {}", value), "the emulator has modes 0 to 3",
              "use one of them"};
    default:
      return {};
  }
}

}  // namespace

std::uint32_t TensorMap::box_bytes() const noexcept {
  std::uint32_t bytes = element_bytes();
  for (std::uint32_t i = 0; i < rank; ++i) bytes *= count(i);
  return bytes;
}

std::uint32_t TensorMap::place(std::uint32_t start, std::uint32_t offset) const noexcept {
  if (swizzle_bytes == 0) return start + offset;
  // Rows are as wide as the swizzle, whatever the box fills of them.
  const std::uint32_t row = count(0) * element_bytes();
  const std::uint32_t at = start + offset / row * swizzle_bytes + offset % row;
  // Bits 4 and up are changed by bits 7 and up of the address.
  const std::uint32_t mask = swizzle_bytes / 16 - 1;
  return at ^ (at / 128 & mask) * 16;
}

void TensorMap::pack(std::span<std::byte, kTensorMapBytes> out) const noexcept {
  Packed packed{};
  packed.magic = kMagic;
  packed.address = address;
  for (std::uint32_t i = 0; i < kMaxTensorRank; ++i) {
    if (i > 0) packed.strides[i - 1] = strides[i];
    packed.dims[i] = static_cast<std::uint32_t>(dims[i]);
    if (dims[i] >> 32 != 0) packed.full = static_cast<std::uint8_t>(packed.full | 1u << i);
    packed.box[i] = static_cast<std::uint16_t>(box[i]);
    packed.steps[i] = static_cast<std::uint8_t>(steps[i]);
  }
  packed.type = static_cast<std::uint8_t>(type);
  packed.rank = static_cast<std::uint8_t>(rank);
  packed.swizzle = static_cast<std::uint8_t>(swizzle_bytes / 32);
  packed.flush = flush ? 1 : 0;
  packed.fill_nan = fill_nan ? 1 : 0;
  packed.check = check_of(packed);
  std::memcpy(out.data(), &packed, sizeof packed);
}

std::optional<TensorMap> TensorMap::unpacked(
    std::span<const std::byte, kTensorMapBytes> bytes) noexcept {
  Packed packed;
  std::memcpy(&packed, bytes.data(), sizeof packed);
  if (packed.magic != kMagic || packed.check != check_of(packed)) return std::nullopt;
  TensorMap map;
  map.address = packed.address;
  map.type = static_cast<ptx::Type>(packed.type);
  map.rank = packed.rank;
  map.swizzle_bytes = packed.swizzle * 32u;
  map.flush = packed.flush != 0;
  map.fill_nan = packed.fill_nan != 0;
  map.strides[0] = map.element_bytes();
  for (std::uint32_t i = 0; i < kMaxTensorRank; ++i) {
    if (i > 0) map.strides[i] = packed.strides[i - 1];
    map.dims[i] = packed.dims[i] | std::uint64_t{packed.full >> i & 1u} << 32;
    map.box[i] = packed.box[i];
    map.steps[i] = packed.steps[i];
  }
  return map;
}

TensorMap TensorMap::blank() noexcept {
  TensorMap map;
  map.rank = 0;
  return map;
}

TensorMapFault TensorMap::replace(Modifier field, std::uint32_t ordinal, std::uint64_t value) {
  const std::uint32_t dimension = ordinal + (field == Modifier::global_stride ? 1 : 0);
  if (dimension >= kMaxTensorRank) {
    return {format_text("there is no {}[{}]", ptx::name(field), ordinal),
            "a tensor has up to 5 dimensions, and a stride for all but the first",
            "use an ordinal below the rank"};
  }
  TensorMapFault wrong = range_fault(field, ordinal, value);
  if (wrong.found()) return wrong;
  switch (field) {
    case Modifier::global_address:
      address = value;
      break;
    case Modifier::rank:
      rank = static_cast<std::uint32_t>(value) + 1;
      break;
    case Modifier::box_dim:
      box[dimension] = static_cast<std::uint32_t>(value);
      break;
    case Modifier::global_dim:
      dims[dimension] = value;
      break;
    case Modifier::global_stride:
      strides[dimension] = value;
      break;
    case Modifier::element_stride:
      // Dimension 0 has no stride without interleave.
      steps[dimension] = dimension == 0 ? 1 : static_cast<std::uint32_t>(value);
      break;
    case Modifier::elemtype:
      type = kElements[value].type;
      flush = kElements[value].flush;
      strides[0] = element_bytes();
      break;
    case Modifier::swizzle_mode:
      swizzle_bytes = kSwizzleBytes[value];
      break;
    case Modifier::fill_mode:
      fill_nan = value != 0;
      break;
    default:  // interleave_layout, swizzle_atomicity: 0
      break;
  }
  return {};
}

TensorMapFault TensorMap::fault() const {
  const auto lacks = [](std::string_view field) {
    return TensorMapFault{
        format_text("{} of the tensor map was never set", field),
        "128 bytes of zero have no field, and a map of cuTensorMapEncodeTiled those of its rank, "
        "until tensormap.replace sets them",
        format_text("set it with tensormap.replace.tile.{}", field.substr(0, field.find('[')))};
  };
  if (rank == 0) return lacks("rank");
  if (address == 0) return lacks("global_address");
  if (type == ptx::Type::none) return lacks("elemtype");
  for (std::uint32_t i = 0; i < rank; ++i) {
    if (dims[i] == 0) return lacks(format_text("global_dim[{}]", i));
    if (box[i] == 0) return lacks(format_text("box_dim[{}]", i));
    if (i > 0 && steps[i] == 0) return lacks(format_text("element_stride[{}]", i));
    if (i > 0 && strides[i] == kNoStride) return lacks(format_text("global_stride[{}]", i - 1));
  }
  const std::uint32_t inner = box[0] * element_bytes();
  if (inner % kUnit != 0) {
    return {format_text("box_dim[0] of the tensor map is {} of {}, {} bytes", box[0],
                        ptx::name(type), inner),
            "a row of the box is a multiple of 16 bytes",
            "change box_dim[0], or elemtype, with tensormap.replace"};
  }
  if (swizzle_bytes != 0 && inner > swizzle_bytes) {
    return {format_text("box_dim[0] of the tensor map is {} bytes, and its swizzle_mode has {}",
                        inner, swizzle_bytes),
            "a row of the box is at most as wide as the swizzle",
            "make box_dim[0] smaller, or choose a wider swizzle_mode"};
  }
  if (fill_nan && ptx::kind(type) != ptx::TypeKind::Float) {
    return {format_text("the tensor map fills elements of {} with NaN", ptx::name(type)),
            "fill_mode 1 is for floats", "use fill_mode 0"};
  }
  return {};
}

std::string TensorMap::text() const {
  const auto list = [&](const auto& values) {
    std::string text;
    for (std::uint32_t i = 0; i < rank; ++i) {
      text += format_text("{}{}", i == 0 ? "" : " x ", values[i]);
    }
    return text;
  };
  return format_text("{}D tensor of {}, {}, box {}", rank, ptx::name(type), list(dims), list(box));
}

}  // namespace ptxgen::inline v0::emulator
