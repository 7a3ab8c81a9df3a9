// src/emulator/state/tensor_map.cpp - tensor maps of the emulated driver
#include "emulator/state/tensor_map.hpp"

#include <cstring>

#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// The bytes of a map. Hardware has another layout, which NVIDIA does not document.
struct Packed {
  std::uint64_t magic;
  std::uint64_t address;
  std::uint64_t strides[kMaxTensorRank - 1];
  std::uint32_t last[kMaxTensorRank];  ///< dims - 1
  std::uint16_t box[kMaxTensorRank];
  std::uint8_t steps[kMaxTensorRank];
  std::uint8_t type;
  std::uint8_t rank;
  std::uint8_t swizzle;  ///< in units of 32 bytes
  std::uint8_t flush;
  std::uint8_t fill_nan;
  std::uint8_t unused[32];
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
  for (std::uint32_t i = 0; i < rank; ++i) {
    if (i > 0) packed.strides[i - 1] = strides[i];
    packed.last[i] = static_cast<std::uint32_t>(dims[i] - 1);
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
  for (std::uint32_t i = 0; i < map.rank; ++i) {
    if (i > 0) map.strides[i] = packed.strides[i - 1];
    map.dims[i] = std::uint64_t{packed.last[i]} + 1;
    map.box[i] = packed.box[i];
    map.steps[i] = packed.steps[i];
  }
  return map;
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
