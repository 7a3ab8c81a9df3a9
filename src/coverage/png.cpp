// src/coverage/png.cpp - cells as PNG, by libpng
#include "coverage/cells.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

#ifdef PTXGEN_PNG
#include <png.h>
#endif

namespace ptxgen::coverage {

#ifdef PTXGEN_PNG

namespace {

constexpr std::uint32_t kChannels = 3;

Error png_error(const png_image& image, std::string_view what) {
  return Error(Stage::Io, "bad-png", format_text("{}: libpng says: {}", what, image.message));
}

std::vector<std::uint8_t> rows_of(const Grid& grid, std::uint64_t size) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(static_cast<std::size_t>(grid.rows * grid.columns * size * size * kChannels));
  for (std::uint64_t y = 0; y < grid.rows * size; ++y) {
    for (std::uint64_t x = 0; x < grid.columns * size; ++x) {
      const Colour colour = colour_of(
          grid, grid.fields[static_cast<std::size_t>(y / size * grid.columns + x / size)]);
      bytes.insert(bytes.end(), {colour.red, colour.green, colour.blue});
    }
  }
  return bytes;
}

}  // namespace

bool has_png() noexcept { return true; }

std::string heat_map_png(const CellMap& map) {
  const Grid grid = grid_of(map, 512, 512);
  const std::uint64_t size = std::max(grid.rows, grid.columns) > 128 ? 2 : 8;
  const std::vector<std::uint8_t> bytes = rows_of(grid, size);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(grid.columns * size);
  image.height = static_cast<png_uint_32>(grid.rows * size);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t length = 0;
  if (png_image_write_to_memory(&image, nullptr, &length, 0, bytes.data(), 0, nullptr) == 0) {
    throw png_error(image, "a heat map as PNG");
  }
  std::string file(length, '\0');
  if (png_image_write_to_memory(&image, file.data(), &length, 0, bytes.data(), 0, nullptr) == 0) {
    throw png_error(image, "a heat map as PNG");
  }
  file.resize(length);
  return file;
}

Pixels read_png(std::string_view bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) {
    throw png_error(image, "reading a PNG");
  }
  image.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> rows(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, rows.data(), 0, nullptr) == 0) {
    throw png_error(image, "reading a PNG");
  }
  Pixels pixels;
  pixels.width = image.width;
  pixels.height = image.height;
  for (std::size_t i = 0; i + kChannels <= rows.size(); i += kChannels) {
    pixels.colours.push_back({rows[i], rows[i + 1], rows[i + 2]});
  }
  return pixels;
}

#else

namespace {

Error no_png() {
  return Error(Stage::Io, "no-png",
               "this build has no libpng, which PNG needs; install the package libpng-dev and "
               "configure again, or use the SVG");
}

}  // namespace

bool has_png() noexcept { return false; }
std::string heat_map_png(const CellMap&) { throw no_png(); }
Pixels read_png(std::string_view) { throw no_png(); }

#endif

}  // namespace ptxgen::coverage
