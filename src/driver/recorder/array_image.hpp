// src/driver/recorder/array_image.hpp - CUDA arrays as bytes
#pragma once

#include <cstddef>
#include <cstdint>

#include "ptxgen/driver/steps.hpp"
#include "ptxgen/driver/table.hpp"

namespace ptxgen::inline v0::driver::recorder {

/// All bytes of an array: rows, slices and layers without gaps.
struct ArrayImage {
  CUarray handle = nullptr;
  std::uint64_t row_bytes = 0;
  std::uint64_t rows = 1;    ///< of a slice
  std::uint64_t slices = 1;  ///< or layers
  std::uint32_t element_bytes = 1;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return row_bytes * rows * slices; }
};

/// Fills all but the handle. False for a format whose size is not known, and for an array of 2^48
/// bytes and more, which no device has.
[[nodiscard]] bool image_of(const StepArray& array, ArrayImage& image);

/// One side of a copy that a driver does: rows at an address of the host or the device, or a box of
/// an array.
struct CopyPlace {
  CUmemorytype kind = CU_MEMORYTYPE_HOST;
  StepRows rows;  ///< of an array only their size
  CUarray array = nullptr;
  std::uint64_t x = 0, y = 0, z = 0;  ///< of the box: byte, row, slice
};
/// The box that rows are which begin at byte `offset` of the array. False if they are no box of
/// whole elements.
[[nodiscard]] bool place_in(const ArrayImage& image, std::uint64_t offset, const StepRows& rows,
                            CopyPlace& place);
/// The size is that of `to`.
[[nodiscard]] CUDA_MEMCPY3D copy_between(const CopyPlace& to, const CopyPlace& from);

/// Copies all bytes of an array, with the context current and its work done.
[[nodiscard]] CUresult read_image(const Table& table, const ArrayImage& image, std::byte* to);
[[nodiscard]] CUresult write_image(const Table& table, const ArrayImage& image,
                                   const std::byte* from);

}  // namespace ptxgen::inline v0::driver::recorder
