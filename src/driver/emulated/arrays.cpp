// src/driver/emulated/arrays.cpp - CUDA arrays
#include "driver/emulated/arrays.hpp"

#include <algorithm>
#include <limits>

#include "driver/emulated/entries.hpp"
#include "emulator/state/address_space.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

using emulator::ChannelKind;
using emulator::Texels;

constexpr unsigned kArrayFlags = kArrayLayered | kArraySurface | kArrayGather;

/// The limits that the device's attributes name.
constexpr std::size_t kMax1d = 131072;
constexpr std::size_t kMax2dWidth = 131072;
constexpr std::size_t kMax2dHeight = 65536;
constexpr std::size_t kMax3d = 16384;
constexpr std::size_t kMaxLayeredSide = 32768;
constexpr std::size_t kMaxLayers = 2048;

CUresult wrong_array(const char* call, const std::string& text) {
  return refuse(CUDA_ERROR_INVALID_VALUE, format_text("{}: {}", call, text));
}

CUresult beyond_limit(const char* call, std::string_view what, std::size_t value,
                      std::size_t limit) {
  return wrong_array(call, format_text("the {} is {}, the maximum {}", what, value, limit));
}

CUresult check_flags(const char* call, const CUDA_ARRAY3D_DESCRIPTOR& from) {
  if ((from.Flags & kArrayCubemap) != 0) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  format_text("{}: cubemaps are not emulated; use an array of 6 layers", call));
  }
  if ((from.Flags & ~kArrayFlags) != 0) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  format_text("{}: of the flags {:#x} only layered (1), surface (2) and gather (8) "
                              "are emulated",
                              call, from.Flags));
  }
  return CUDA_SUCCESS;
}

/// cuArray3DCreate: which sizes are 0 says how many dimensions there are.
CUresult check_sizes(const char* call, const CUDA_ARRAY3D_DESCRIPTOR& from, Texels& texels) {
  const bool layered = (from.Flags & kArrayLayered) != 0;
  if (from.Width == 0) return wrong_array(call, "the width is 0");
  if (layered && from.Depth == 0) {
    return wrong_array(call, "a layered array has Depth as the number of layers, which is 0");
  }
  if (!layered && from.Height == 0 && from.Depth != 0) {
    return wrong_array(call, "the height is 0 and the depth is not");
  }
  const bool is_3d = !layered && from.Depth != 0;
  const std::size_t side = layered ? kMaxLayeredSide : is_3d ? kMax3d : kMax2dWidth;
  const std::size_t width = from.Height == 0 && !layered ? kMax1d : side;
  const std::size_t height = layered || is_3d ? side : kMax2dHeight;
  if (from.Width > width) return beyond_limit(call, "width", from.Width, width);
  if (from.Height > height) return beyond_limit(call, "height", from.Height, height);
  const std::size_t depth = layered ? kMaxLayers : kMax3d;
  if (from.Depth > depth) return beyond_limit(call, "depth", from.Depth, depth);
  texels.width = static_cast<std::uint32_t>(from.Width);
  texels.height = static_cast<std::uint32_t>(std::max<std::size_t>(from.Height, 1));
  texels.depth = is_3d ? static_cast<std::uint32_t>(from.Depth) : 1;
  texels.layers = layered ? static_cast<std::uint32_t>(from.Depth) : 0;
  texels.dimensions = static_cast<std::uint8_t>(is_3d ? 3 : from.Height != 0 ? 2 : 1);
  return CUDA_SUCCESS;
}

CUresult make_array(const char* call, CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& from) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context)) return result;
    if (const CUresult result = unsafe_during_capture()) return result;
    auto array = std::make_shared<CUarray_st>();
    Texels& texels = array->texels;
    if (const CUresult result = check_flags(call, from)) return result;
    if (!take_format(from.Format, from.NumChannels, texels)) {
      return refuse(CUDA_ERROR_INVALID_VALUE, format_rule(call, from.Format, from.NumChannels));
    }
    if (const CUresult result = check_sizes(call, from, texels)) return result;
    texels.pitch = std::uint64_t{texels.width} * texels.element_bytes();
    texels.slice = texels.pitch * texels.height;
    array->context = context.get();
    array->descriptor = from;
    {
      const std::lock_guard memory_lock(context->memory_mutex);
      const std::lock_guard lock(context->mutex);
      array->name = format_text("array {}", ++context->arrays_made);
      constexpr std::uint64_t kAlignment = 512;  ///< CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT
      texels.address =
          context->memory.space().allocate(texels.slice * array->slices(), array->name,
                                           emulator::AllocationKind::Buffer, kAlignment);
    }
    enroll(array);
    *out = array.get();
    return CUDA_SUCCESS;
  });
}

/// The array, if it lives and is of the current context.
CUresult find_array(CUarray handle, std::shared_ptr<CUctx_st>& context,
                    std::shared_ptr<CUarray_st>& array) {
  if (const CUresult result = enter(context)) return result;
  array = hold(handle);
  return array && array->context == context.get() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

bool take_format(CUarray_format format, unsigned channels, Texels& texels) {
  if (channels != 1 && channels != 2 && channels != 4) return false;
  const auto take = [&](ChannelKind kind, unsigned bytes) {
    texels.kind = kind;
    texels.channel_bytes = static_cast<std::uint8_t>(bytes);
    texels.channels = static_cast<std::uint8_t>(channels);
    return true;
  };
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
      return take(ChannelKind::Unsigned, 1);
    case CU_AD_FORMAT_UNSIGNED_INT16:
      return take(ChannelKind::Unsigned, 2);
    case CU_AD_FORMAT_UNSIGNED_INT32:
      return take(ChannelKind::Unsigned, 4);
    case CU_AD_FORMAT_SIGNED_INT8:
      return take(ChannelKind::Signed, 1);
    case CU_AD_FORMAT_SIGNED_INT16:
      return take(ChannelKind::Signed, 2);
    case CU_AD_FORMAT_SIGNED_INT32:
      return take(ChannelKind::Signed, 4);
    case CU_AD_FORMAT_HALF:
      return take(ChannelKind::Float, 2);
    case CU_AD_FORMAT_FLOAT:
      return take(ChannelKind::Float, 4);
  }
  return false;
}

std::string format_rule(const char* call, CUarray_format format, unsigned channels) {
  return format_text(
      "{}: format {:#x} with {} is not emulated; use integers of 8, 16 or 32 bits, half or float, "
      "with 1, 2 or 4 channels",
      call, static_cast<unsigned>(format), count_text(channels, "channel"));
}

CUresult array_side(CUarray handle, const ArrayBox& box, Place& place, std::uint64_t& pitch,
                    std::uint64_t& slice_rows) {
  const std::shared_ptr<CUarray_st> array = hold(handle);
  if (!array) return CUDA_ERROR_INVALID_VALUE;
  const Texels& texels = array->texels;
  const auto outside = [](std::uint64_t start, std::uint64_t count, std::uint64_t size) {
    return start > size || count > size - start;
  };
  if (outside(box.x, box.width, array->row_bytes()) || outside(box.y, box.height, array->rows()) ||
      outside(box.z, box.depth, array->slices())) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("a copy of {} x {} x {} from byte {} of row {} of slice {} on is not "
                              "inside of {} ({})",
                              count_text(box.width, "byte"), box.height, box.depth, box.x, box.y,
                              box.z, array->name, texels.text()));
  }
  if (box.x % texels.element_bytes() != 0 || box.width % texels.element_bytes() != 0) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("a copy of {} from byte {} of a row of {} on: both must be multiples "
                              "of the {} of an element",
                              count_text(box.width, "byte"), box.x, array->name,
                              count_text(texels.element_bytes(), "byte")));
  }
  pitch = texels.pitch;
  slice_rows = texels.height;
  place.kind = CU_MEMORYTYPE_DEVICE;
  place.address = texels.address + box.z * texels.slice + box.y * texels.pitch + box.x;
  place.in_array = true;
  return CUDA_SUCCESS;
}

CUresult array_bytes(CUarray handle, std::uint64_t offset, std::uint64_t bytes, Place& place) {
  const std::shared_ptr<CUarray_st> array = hold(handle);
  if (!array) return CUDA_ERROR_INVALID_VALUE;
  if (array->texels.dimensions != 1 || array->texels.layers != 0) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("a copy of adjacent bytes needs a 1D array, but {} is {}; use "
                              "cuMemcpy2D or cuMemcpy3D",
                              array->name, array->texels.text()));
  }
  std::uint64_t pitch = 0;
  std::uint64_t rows = 0;
  return array_side(handle, {offset, 0, 0, bytes, 1, 1}, place, pitch, rows);
}

namespace entries {

CUresult array_create(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  if (array == nullptr || descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return make_array(
      "cuArrayCreate", array,
      {descriptor->Width, descriptor->Height, 0, descriptor->Format, descriptor->NumChannels, 0});
}

CUresult array_3d_create(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  if (array == nullptr || descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return make_array("cuArray3DCreate", array, *descriptor);
}

CUresult array_get_descriptor(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray handle) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    std::shared_ptr<CUarray_st> array;
    if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = find_array(handle, context, array)) return result;
    const CUDA_ARRAY3D_DESCRIPTOR& from = array->descriptor;
    *descriptor = {from.Width, from.Height, from.Format, from.NumChannels};
    return CUDA_SUCCESS;
  });
}

CUresult array_3d_get_descriptor(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray handle) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    std::shared_ptr<CUarray_st> array;
    if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = find_array(handle, context, array)) return result;
    *descriptor = array->descriptor;
    return CUDA_SUCCESS;
  });
}

CUresult array_destroy(CUarray handle) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    std::shared_ptr<CUarray_st> array;
    if (const CUresult result = find_array(handle, context, array)) return result;
    if (const CUresult result = unsafe_during_capture()) return result;
    if (!gone(handle)) return CUDA_ERROR_INVALID_HANDLE;
    // As with cuMemFree, after all queued work, which may use it.
    const CUresult result = wait_for_all(context.get());
    const std::lock_guard memory_lock(context->memory_mutex);
    context->memory.free(array->texels.address);
    return result;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
