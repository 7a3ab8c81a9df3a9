// src/driver/recorder/array_image.cpp - CUDA arrays as bytes
#include "driver/recorder/array_image.hpp"

#include <algorithm>

namespace ptxgen::inline v0::driver::recorder {
namespace {

constexpr std::uint64_t kMaxArrayBytes = std::uint64_t{1} << 48;

/// 0: not known.
std::uint32_t channel_bytes(std::uint32_t format) {
  switch (static_cast<CUarray_format>(format)) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
  }
  return 0;
}

StepRows all_rows(const ArrayImage& image, std::uintptr_t address) {
  return {address, image.row_bytes, image.rows, image.slices, image.row_bytes, image.rows};
}

CopyPlace host_rows(const ArrayImage& image, const std::byte* memory) {
  CopyPlace place;
  place.rows = all_rows(image, reinterpret_cast<std::uintptr_t>(memory));
  return place;
}

CopyPlace full_box(const ArrayImage& image) {
  CopyPlace place;
  place.kind = CU_MEMORYTYPE_ARRAY;
  place.rows = all_rows(image, 0);
  place.array = image.handle;
  return place;
}

CUresult copy_now(const Table& table, const CopyPlace& to, const CopyPlace& from) {
  if (table.memcpy_3d == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const CUDA_MEMCPY3D copy = copy_between(to, from);
  return table.memcpy_3d(&copy);
}

}  // namespace

bool image_of(const StepArray& array, ArrayImage& image) {
  const std::uint32_t bytes = channel_bytes(array.format);
  if (bytes == 0 || array.channels == 0 || array.channels > 4 || array.width == 0) return false;
  image.element_bytes = bytes * array.channels;
  image.rows = std::max<std::uint64_t>(array.height, 1);
  image.slices = std::max<std::uint64_t>(array.depth, 1);
  std::uint64_t total = 0;
  return !__builtin_mul_overflow(array.width, image.element_bytes, &image.row_bytes) &&
         !__builtin_mul_overflow(image.row_bytes, image.rows, &total) &&
         !__builtin_mul_overflow(total, image.slices, &total) && total < kMaxArrayBytes;
}

bool place_in(const ArrayImage& image, std::uint64_t offset, const StepRows& rows,
              CopyPlace& place) {
  place.kind = CU_MEMORYTYPE_ARRAY;
  place.array = image.handle;
  place.rows = rows;
  place.x = offset % image.row_bytes;
  place.y = offset / image.row_bytes % image.rows;
  place.z = offset / image.row_bytes / image.rows;
  const bool elements = place.x % image.element_bytes == 0 && rows.width % image.element_bytes == 0;
  const bool own_rows = rows.pitch == image.row_bytes || (rows.height == 1 && rows.depth == 1);
  const bool own_slices = rows.slice_height == image.rows || rows.depth == 1;
  return elements && own_rows && own_slices && rows.width <= image.row_bytes - place.x &&
         rows.height <= image.rows - place.y && place.z < image.slices &&
         rows.depth <= image.slices - place.z;
}

CUDA_MEMCPY3D copy_between(const CopyPlace& to, const CopyPlace& from) {
  const auto host = [](const CopyPlace& place) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(place.rows.address));
  };
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = from.kind;
  copy.dstMemoryType = to.kind;
  if (from.kind == CU_MEMORYTYPE_ARRAY) {
    copy.srcArray = from.array;
    copy.srcXInBytes = from.x;
    copy.srcY = from.y;
    copy.srcZ = from.z;
  } else {
    copy.srcDevice = from.rows.address;
    copy.srcHost = host(from);
    copy.srcPitch = from.rows.pitch;
    copy.srcHeight = from.rows.slice_height;
  }
  if (to.kind == CU_MEMORYTYPE_ARRAY) {
    copy.dstArray = to.array;
    copy.dstXInBytes = to.x;
    copy.dstY = to.y;
    copy.dstZ = to.z;
  } else {
    copy.dstDevice = to.rows.address;
    copy.dstHost = host(to);
    copy.dstPitch = to.rows.pitch;
    copy.dstHeight = to.rows.slice_height;
  }
  copy.WidthInBytes = to.rows.width;
  copy.Height = to.rows.height;
  copy.Depth = to.rows.depth;
  return copy;
}

CUresult read_image(const Table& table, const ArrayImage& image, std::byte* to) {
  return copy_now(table, host_rows(image, to), full_box(image));
}

CUresult write_image(const Table& table, const ArrayImage& image, const std::byte* from) {
  return copy_now(table, full_box(image), host_rows(image, from));
}

}  // namespace ptxgen::inline v0::driver::recorder
