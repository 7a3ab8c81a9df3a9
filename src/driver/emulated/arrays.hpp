// src/driver/emulated/arrays.hpp - CUDA arrays
#pragma once

#include <string>

#include "driver/emulated/state.hpp"
#include "emulator/state/textures.hpp"

namespace ptxgen::inline v0::driver {

/// Device memory whose elements, rows and slices have no gaps. The API's allocations do not include
/// it: it has no address that a caller could use.
struct CUarray_st {
  CUcontext context = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  emulator::Texels texels;
  std::string name;  ///< "array 3", as findings call it

  [[nodiscard]] std::uint64_t row_bytes() const noexcept { return texels.pitch; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return texels.height; }
  /// Slices or layers.
  [[nodiscard]] std::uint64_t slices() const noexcept {
    return texels.layers != 0 ? texels.layers : texels.depth;
  }
};

namespace emulated {

/// Kind and size of an element's channels; false for formats that are not emulated.
[[nodiscard]] bool take_format(CUarray_format format, unsigned channels, emulator::Texels& texels);
/// "an array of ..., expected ..."; the message for `take_format`.
[[nodiscard]] std::string format_rule(const char* call, CUarray_format format, unsigned channels);

/// A box of an array as one side of a copy: where it begins, bytes between rows, rows between
/// slices. CUDA_ERROR_INVALID_VALUE with a line in the log unless it is inside of the array.
struct ArrayBox {
  std::uint64_t x = 0;  ///< bytes
  std::uint64_t y = 0, z = 0;
  std::uint64_t width = 0;  ///< bytes
  std::uint64_t height = 1, depth = 1;
};
[[nodiscard]] CUresult array_side(CUarray handle, const ArrayBox& box, Place& place,
                                  std::uint64_t& pitch, std::uint64_t& slice_rows);
/// The same for bytes of a 1D array.
[[nodiscard]] CUresult array_bytes(CUarray handle, std::uint64_t offset, std::uint64_t bytes,
                                   Place& place);

}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
