// src/emulator/state/textures.hpp - texture and surface objects of a device
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace ptxgen::inline v0::emulator {

/// What an element of a texture is made of.
enum class ChannelKind : std::uint8_t {
  Unsigned,
  Signed,
  Float,  ///< 2 bytes: f16
};

/// Elements in global memory that a texture or surface object reaches. Rows, slices and layers are
/// at multiples of `pitch` and `slice`.
struct Texels {
  std::uint64_t address = 0;
  std::uint64_t pitch = 0;  ///< bytes between rows
  std::uint64_t slice = 0;  ///< bytes between slices or layers
  std::uint32_t width = 1;  ///< elements
  std::uint32_t height = 1;
  std::uint32_t depth = 1;
  std::uint32_t layers = 0;     ///< 0: not layered
  std::uint8_t dimensions = 1;  ///< without the layer
  bool linear = false;          ///< a 1D buffer: reads outside of it give zeros
  ChannelKind kind = ChannelKind::Float;
  std::uint8_t channel_bytes = 4;
  std::uint8_t channels = 1;

  [[nodiscard]] std::uint32_t element_bytes() const noexcept {
    return std::uint32_t{channel_bytes} * channels;
  }
  [[nodiscard]] std::uint32_t size(unsigned axis) const noexcept {
    return axis == 0 ? width : axis == 1 ? height : depth;
  }
  /// "2D, 64 x 16, 4 x f32", with "8 layers".
  [[nodiscard]] std::string text() const;
};

enum class AddressMode : std::uint8_t { Wrap, Clamp, Mirror, Border };

/// How a texture is read; CUDA C++ programming guide, "Texture Fetching".
struct Sampler {
  std::array<AddressMode, 3> address{AddressMode::Clamp, AddressMode::Clamp, AddressMode::Clamp};
  bool linear = false;                    ///< filter; else the nearest element
  bool normalized = false;                ///< coordinates 0 to 1
  bool as_integer = false;                ///< 8- and 16-bit integers as such, not as floats up to 1
  std::array<std::uint32_t, 4> border{};  ///< bits of what is outside
};

struct ImageObject {
  enum class Kind : std::uint8_t { Texture, Surface };
  Kind kind = Kind::Texture;
  Texels texels;
  Sampler sampler;  ///< Texture
};

/// Texture and surface objects by their handles, which are never used again: an object that was
/// destroyed is told from a number that never was one. Changes only between launches.
class ImageObjects {
 public:
  /// The new object's handle.
  std::uint64_t add(const ImageObject& object);
  /// False if no living object of that kind has the handle.
  bool remove(std::uint64_t handle, ImageObject::Kind kind);
  /// nullptr if no living object has the handle.
  [[nodiscard]] const ImageObject* find(std::uint64_t handle) const noexcept;
  [[nodiscard]] bool was_destroyed(std::uint64_t handle) const noexcept {
    return handle != 0 && handle <= last_ && find(handle) == nullptr;
  }

 private:
  std::unordered_map<std::uint64_t, ImageObject> objects_;
  std::uint64_t last_ = 0;
};

/// The elements of one axis that a filter reads.
struct AxisTexels {
  static constexpr std::int64_t kBorder = -1;
  std::array<std::int64_t, 2> index{};  ///< kBorder: outside, with the border's value
  std::uint32_t weight = 0;             ///< of the second, in 1/256; 0: the second is not read
};

/// The element nearest to a coordinate, or the two that the linear filter reads.
[[nodiscard]] AxisTexels axis_texels(const Sampler& sampler, unsigned axis, std::uint32_t size,
                                     float coordinate);
/// The element at an integer coordinate, which is neither normalised nor filtered.
[[nodiscard]] AxisTexels axis_texel(const Sampler& sampler, unsigned axis, std::uint32_t size,
                                    std::int32_t coordinate);
/// The two elements of tld4, whatever the filter.
[[nodiscard]] AxisTexels axis_footprint(const Sampler& sampler, unsigned axis, std::uint32_t size,
                                        float coordinate);

/// A channel as the texture gives it: bits of f32 or of a 32-bit integer.
[[nodiscard]] std::uint32_t channel_bits(const Texels& texels, const Sampler& sampler,
                                         const std::byte* element, unsigned channel) noexcept;
/// Whether `channel_bits` are those of f32.
[[nodiscard]] bool reads_float(const Texels& texels, const Sampler& sampler) noexcept;

}  // namespace ptxgen::inline v0::emulator
