// src/emulator/state/textures.cpp - texture and surface objects, which elements a fetch reads
#include "emulator/state/textures.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "support/format.hpp"
#include "support/half.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// Far outside of every texture, and exact in f64 with 8 bits of fraction.
constexpr double kFar = 0x1p40;
constexpr std::int64_t kSteps = 256;  ///< of a weight

/// Wrapping and mirroring are for normalised coordinates; cudaTextureDesc: otherwise they clamp.
AddressMode mode_of(const Sampler& sampler, unsigned axis, bool normalized) noexcept {
  const AddressMode mode = sampler.address[axis];
  return normalized || mode == AddressMode::Border ? mode : AddressMode::Clamp;
}

/// The coordinate in elements.
double position(AddressMode mode, bool normalized, std::uint32_t size, float coordinate) noexcept {
  double x = coordinate;
  if (normalized && (mode == AddressMode::Wrap || mode == AddressMode::Mirror)) {
    const double lower = std::floor(x);
    const bool back = mode == AddressMode::Mirror && std::fmod(lower, 2.0) != 0.0;
    x = back ? 1.0 - (x - lower) : x - lower;
  }
  if (normalized) x *= size;
  return std::isnan(x) ? 0.0 : std::clamp(x, -kFar, kFar);
}

std::int64_t inside(AddressMode mode, std::uint32_t size, std::int64_t index) noexcept {
  const std::int64_t end = size;
  if (index >= 0 && index < end) return index;
  switch (mode) {
    case AddressMode::Border:
      return AxisTexels::kBorder;
    case AddressMode::Wrap:
      return (index % end + end) % end;
    case AddressMode::Mirror: {
      const std::int64_t place = (index % (2 * end) + 2 * end) % (2 * end);
      return place < end ? place : 2 * end - 1 - place;
    }
    case AddressMode::Clamp:
      break;
  }
  return std::clamp<std::int64_t>(index, 0, end - 1);
}

/// The elements on both sides of a position, which is first rounded to 8 bits of fraction.
AxisTexels both_sides(AddressMode mode, std::uint32_t size, double place) noexcept {
  const auto fixed = static_cast<std::int64_t>(std::floor((place - 0.5) * kSteps + 0.5));
  const std::int64_t index = fixed >> 8;
  AxisTexels texels;
  texels.weight = static_cast<std::uint32_t>(fixed & (kSteps - 1));
  texels.index = {inside(mode, size, index), inside(mode, size, index + 1)};
  return texels;
}

std::string_view channel_name(const Texels& texels) noexcept {
  const unsigned index = texels.channel_bytes == 1 ? 0 : texels.channel_bytes == 2 ? 1 : 2;
  constexpr std::string_view kNames[3][3] = {
      {"u8", "u16", "u32"}, {"s8", "s16", "s32"}, {"f8", "f16", "f32"}};
  return kNames[static_cast<std::size_t>(texels.kind)][index];
}

}  // namespace

std::string Texels::text() const {
  std::string sizes = std::to_string(width);
  if (dimensions > 1) sizes += format_text(" x {}", height);
  if (dimensions > 2) sizes += format_text(" x {}", depth);
  std::string elements(channel_name(*this));
  if (channels > 1) elements = format_text("{} x {}", channels, elements);
  std::string text = format_text("{}D, {}, {}", dimensions, sizes, elements);
  if (layers != 0) text += format_text(", layers: {}", layers);
  return text;
}

std::uint64_t ImageObjects::add(const ImageObject& object) {
  objects_.emplace(last_ + 1, object);
  return ++last_;
}

bool ImageObjects::remove(std::uint64_t handle, ImageObject::Kind kind) {
  const auto found = objects_.find(handle);
  if (found == objects_.end() || found->second.kind != kind) return false;
  objects_.erase(found);
  return true;
}

const ImageObject* ImageObjects::find(std::uint64_t handle) const noexcept {
  const auto found = objects_.find(handle);
  return found == objects_.end() ? nullptr : &found->second;
}

AxisTexels axis_texels(const Sampler& sampler, unsigned axis, std::uint32_t size,
                       float coordinate) {
  const AddressMode mode = mode_of(sampler, axis, sampler.normalized);
  const double place = position(mode, sampler.normalized, size, coordinate);
  if (sampler.linear) return both_sides(mode, size, place);
  AxisTexels texels;
  texels.index[0] = inside(mode, size, static_cast<std::int64_t>(std::floor(place)));
  return texels;
}

AxisTexels axis_texel(const Sampler& sampler, unsigned axis, std::uint32_t size,
                      std::int32_t coordinate) {
  AxisTexels texels;
  texels.index[0] = inside(mode_of(sampler, axis, false), size, coordinate);
  return texels;
}

AxisTexels axis_footprint(const Sampler& sampler, unsigned axis, std::uint32_t size,
                          float coordinate) {
  const AddressMode mode = mode_of(sampler, axis, sampler.normalized);
  return both_sides(mode, size, position(mode, sampler.normalized, size, coordinate));
}

bool reads_float(const Texels& texels, const Sampler& sampler) noexcept {
  return texels.kind == ChannelKind::Float || (texels.channel_bytes < 4 && !sampler.as_integer);
}

std::uint32_t channel_bits(const Texels& texels, const Sampler& sampler, const std::byte* element,
                           unsigned channel) noexcept {
  std::uint32_t bits = 0;
  std::memcpy(&bits, element + std::size_t{channel} * texels.channel_bytes, texels.channel_bytes);
  if (texels.channel_bytes == 4) return bits;
  const unsigned width = texels.channel_bytes * 8u;
  if (texels.kind == ChannelKind::Float) {
    return std::bit_cast<std::uint32_t>(f16_to_float(static_cast<std::uint16_t>(bits)));
  }
  const unsigned unused = 32 - width;
  const auto value = static_cast<std::int32_t>(bits << unused) >> unused;
  const bool is_signed = texels.kind == ChannelKind::Signed;
  if (sampler.as_integer) return is_signed ? static_cast<std::uint32_t>(value) : bits;
  // The guide maps the full range of the integers to 0 to 1, and to -1 to 1.
  const double limit = (std::uint32_t{1} << (is_signed ? width - 1 : width)) - 1;
  const double real = is_signed ? std::max(value / limit, -1.0) : bits / limit;
  return std::bit_cast<std::uint32_t>(static_cast<float>(real));
}

}  // namespace ptxgen::inline v0::emulator
