// src/driver/emulated/copies.cpp - copies and fills of the emulated driver
#include <algorithm>
#include <cstring>
#include <utility>

#include "driver/copy_2d.hpp"
#include "driver/emulated/arrays.hpp"
#include "driver/emulated/entries.hpp"
#include "driver/emulated/memory.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

Place device(CUdeviceptr address) { return {CU_MEMORYTYPE_DEVICE, address}; }
Place host(const void* memory) {
  return {CU_MEMORYTYPE_HOST, reinterpret_cast<std::uintptr_t>(memory)};
}

/// Extent of a shape in bytes; false on overflow.
bool span_of(std::uint64_t width, std::uint64_t height, std::uint64_t depth, std::uint64_t pitch,
             std::uint64_t slice_height, std::uint64_t& bytes) {
  bytes = 0;
  if (width == 0 || height == 0 || depth == 0) return true;
  std::uint64_t rows = 0;
  return !__builtin_mul_overflow(depth - 1, slice_height, &rows) &&
         !__builtin_add_overflow(rows, height - 1, &rows) &&
         !__builtin_mul_overflow(rows, pitch, &bytes) &&
         !__builtin_add_overflow(bytes, width, &bytes);
}

CUresult check_side(CUctx_st& context, const char* call, Place& place, std::uint64_t bytes) {
  if (place.in_array) return CUDA_SUCCESS;
  if (place.kind == CU_MEMORYTYPE_UNIFIED) {
    place.kind =
        is_device_address(context, place.address) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  }
  if (place.kind == CU_MEMORYTYPE_DEVICE) return check_range(context, call, place.address, bytes);
  if (place.address == 0 && bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

/// Copies the source at the call: the caller may change it after the return.
void stage(Copy& copy) {
  auto staged = std::make_shared<std::vector<std::byte>>(
      static_cast<std::size_t>(copy.width * copy.height * copy.depth));
  const auto* const from =
      reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(copy.from.address));
  std::byte* to = staged->data();
  for (std::uint64_t z = 0; z < copy.depth; ++z) {
    for (std::uint64_t y = 0; y < copy.height; ++y, to += copy.width) {
      std::memcpy(to, from + (z * copy.from_height + y) * copy.from_pitch,
                  static_cast<std::size_t>(copy.width));
    }
  }
  copy.staged = std::move(staged);
  copy.from_pitch = copy.width;
  copy.from_height = copy.height;
}

bool is_empty(const Copy& copy) { return copy.width == 0 || copy.height == 0 || copy.depth == 0; }

/// The legacy stream, which synchronous calls work in.
CUresult legacy_stream(std::shared_ptr<CUstream_st>& stream) { return resolve(nullptr, stream); }

CUresult copy_now(const char* call, Copy copy) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = legacy_stream(stream); result != CUDA_SUCCESS) return result;
    const std::shared_ptr<CUctx_st> context = hold(stream->context);
    if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (context->blocking_captures.load() != 0) return not_in_legacy(context.get());
    if (const CUresult result = unsafe_during_capture(); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check_copy(*context, call, copy); result != CUDA_SUCCESS) {
      return result;
    }
    return is_empty(copy) ? CUDA_SUCCESS : perform(stream, std::move(copy));
  });
}

}  // namespace

CUresult copy_later(const char* call, Copy copy, CUstream handle) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(handle, stream); result != CUDA_SUCCESS) return result;
    const std::shared_ptr<CUctx_st> context = hold(stream->context);
    if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (const CUresult result = check_copy(*context, call, copy); result != CUDA_SUCCESS) {
      return result;
    }
    if (is_empty(copy)) return CUDA_SUCCESS;
    // A captured copy reads and writes when the graph runs.
    if (stream->capturing.load(std::memory_order_acquire)) return submit(stream, std::move(copy));
    const bool from_device = copy.from.kind == CU_MEMORYTYPE_DEVICE;
    const bool to_device = copy.to.kind == CU_MEMORYTYPE_DEVICE;
    if (!from_device && !is_pinned(*context, copy.from.address) && to_device) stage(copy);
    // As in CUDA, a copy to pageable memory is complete when the call returns.
    if (!to_device && !is_pinned(*context, copy.to.address)) {
      return perform(stream, std::move(copy));
    }
    return submit(stream, std::move(copy));
  });
}

namespace {

Copy linear(Place to, Place from, std::uint64_t bytes) {
  Copy copy;
  copy.to = to;
  copy.from = from;
  copy.width = bytes;
  return copy;
}

/// One side of a 2D or 3D copy.
struct Side {
  CUmemorytype kind = CU_MEMORYTYPE_HOST;
  const void* host_memory = nullptr;
  CUdeviceptr device_memory = 0;
  CUarray array = nullptr;
  std::uint64_t x = 0, y = 0, z = 0;
};

/// Where the side begins, and its pitch and rows of a slice, which an array has of its own.
CUresult begin(const Side& side, const Copy& copy, Place& place, std::uint64_t& pitch,
               std::uint64_t& slice_rows) {
  switch (side.kind) {
    case CU_MEMORYTYPE_HOST:
      place = host(side.host_memory);
      break;
    case CU_MEMORYTYPE_DEVICE:
      place = device(side.device_memory);
      break;
    case CU_MEMORYTYPE_UNIFIED:
      place = {CU_MEMORYTYPE_UNIFIED, side.device_memory};
      break;
    case CU_MEMORYTYPE_ARRAY:
      return array_side(side.array, {side.x, side.y, side.z, copy.width, copy.height, copy.depth},
                        place, pitch, slice_rows);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  // A position may be beyond the pitch: Dr.Jit, which runs on GPUs, counts all bytes before the
  // box.
  const bool fits = copy.width <= pitch;
  const bool rows = copy.height > 1 || copy.depth > 1;
  if (rows && (!fits || (copy.depth > 1 && slice_rows < copy.height))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::uint64_t offset = 0;
  if (__builtin_mul_overflow(side.z * slice_rows + side.y, pitch, &offset) ||
      __builtin_add_overflow(offset, side.x, &offset) ||
      __builtin_add_overflow(place.address, offset, &place.address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult fill_with(const char* call, const Fill& fill, CUstream handle, bool now) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(handle, stream); result != CUDA_SUCCESS) return result;
    const std::shared_ptr<CUctx_st> context = hold(stream->context);
    if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (now) {
      if (context->blocking_captures.load() != 0) return not_in_legacy(context.get());
      if (const CUresult result = unsafe_during_capture(); result != CUDA_SUCCESS) return result;
    }
    if (const CUresult result = check_fill(*context, call, fill); result != CUDA_SUCCESS) {
      return result;
    }
    if (fill.width == 0 || fill.height == 0) return CUDA_SUCCESS;
    return now ? perform(stream, fill) : submit(stream, fill);
  });
}

Fill filling(CUdeviceptr to, std::uint32_t value, std::uint32_t element_bytes, std::size_t count) {
  Fill fill;
  fill.to = to;
  fill.value = value;
  fill.element_bytes = element_bytes;
  fill.width = count;
  return fill;
}

CUresult fill_rows(const char* call, Fill fill, std::size_t pitch, std::size_t height,
                   CUstream stream = nullptr, bool now = true) {
  fill.height = height;
  fill.pitch = pitch;
  return fill_with(call, fill, stream, now);
}

}  // namespace

CUresult check_copy(CUctx_st& context, const char* call, Copy& copy) {
  std::uint64_t to_bytes = 0;
  std::uint64_t from_bytes = 0;
  if (!span_of(copy.width, copy.height, copy.depth, copy.to_pitch, copy.to_height, to_bytes) ||
      !span_of(copy.width, copy.height, copy.depth, copy.from_pitch, copy.from_height,
               from_bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult result = check_side(context, call, copy.to, to_bytes);
      result != CUDA_SUCCESS) {
    return result;
  }
  return check_side(context, call, copy.from, from_bytes);
}

CUresult check_fill(CUctx_st& context, const char* call, const Fill& fill) {
  std::uint64_t row = 0;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(fill.width, fill.element_bytes, &row) ||
      !span_of(row, fill.height, 1, fill.pitch, 0, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (fill.height > 1 && fill.pitch < row) return CUDA_ERROR_INVALID_VALUE;
  if (fill.to % fill.element_bytes != 0 || fill.pitch % fill.element_bytes != 0) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("{}: address and pitch must be multiples of the {} of an element",
                              call, count_text(fill.element_bytes, "byte")));
  }
  return check_range(context, call, fill.to, bytes);
}

CUresult copy_from(const CUDA_MEMCPY3D& from, Copy& copy) {
  copy.width = from.WidthInBytes;
  copy.height = from.Height;
  copy.depth = from.Depth;
  // A pitch of 0 means rows without gaps.
  copy.to_pitch = from.dstPitch != 0 ? from.dstPitch : from.dstXInBytes + from.WidthInBytes;
  copy.from_pitch = from.srcPitch != 0 ? from.srcPitch : from.srcXInBytes + from.WidthInBytes;
  copy.to_height = from.dstHeight != 0 ? from.dstHeight : from.dstY + from.Height;
  copy.from_height = from.srcHeight != 0 ? from.srcHeight : from.srcY + from.Height;
  if (from.srcLOD != 0 || from.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  const Side to{from.dstMemoryType, from.dstHost, from.dstDevice, from.dstArray,
                from.dstXInBytes,   from.dstY,    from.dstZ};
  if (const CUresult result = begin(to, copy, copy.to, copy.to_pitch, copy.to_height);
      result != CUDA_SUCCESS) {
    return result;
  }
  const Side source{from.srcMemoryType, from.srcHost, from.srcDevice, from.srcArray,
                    from.srcXInBytes,   from.srcY,    from.srcZ};
  return begin(source, copy, copy.from, copy.from_pitch, copy.from_height);
}

namespace entries {

CUresult memcpy_to_device(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy_now("cuMemcpyHtoD", linear(device(to), host(from), bytes));
}
CUresult memcpy_to_host(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy_now("cuMemcpyDtoH", linear(host(to), device(from), bytes));
}
CUresult memcpy_within_device(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_now("cuMemcpyDtoD", linear(device(to), device(from), bytes));
}
CUresult memcpy_unified(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_now("cuMemcpy",
                  linear({CU_MEMORYTYPE_UNIFIED, to}, {CU_MEMORYTYPE_UNIFIED, from}, bytes));
}
CUresult memcpy_to_device_async(CUdeviceptr to, const void* from, std::size_t bytes,
                                CUstream stream) {
  return copy_later("cuMemcpyHtoDAsync", linear(device(to), host(from), bytes), stream);
}
CUresult memcpy_to_host_async(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_later("cuMemcpyDtoHAsync", linear(host(to), device(from), bytes), stream);
}
CUresult memcpy_within_device_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                    CUstream stream) {
  return copy_later("cuMemcpyDtoDAsync", linear(device(to), device(from), bytes), stream);
}
CUresult memcpy_unified_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                              CUstream stream) {
  return copy_later("cuMemcpyAsync",
                    linear({CU_MEMORYTYPE_UNIFIED, to}, {CU_MEMORYTYPE_UNIFIED, from}, bytes),
                    stream);
}

CUresult memcpy_2d(const CUDA_MEMCPY2D* copy) {
  Copy created;
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = copy_from(in_3d(*copy), created); result != CUDA_SUCCESS) {
    return result;
  }
  return copy_now("cuMemcpy2D", std::move(created));
}
CUresult memcpy_2d_unaligned(const CUDA_MEMCPY2D* copy) { return memcpy_2d(copy); }
CUresult memcpy_2d_async(const CUDA_MEMCPY2D* copy, CUstream stream) {
  Copy created;
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = copy_from(in_3d(*copy), created); result != CUDA_SUCCESS) {
    return result;
  }
  return copy_later("cuMemcpy2DAsync", std::move(created), stream);
}
CUresult memcpy_3d(const CUDA_MEMCPY3D* copy) {
  Copy box;
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = copy_from(*copy, box); result != CUDA_SUCCESS) return result;
  return copy_now("cuMemcpy3D", std::move(box));
}
CUresult memcpy_3d_async(const CUDA_MEMCPY3D* copy, CUstream stream) {
  Copy box;
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = copy_from(*copy, box); result != CUDA_SUCCESS) return result;
  return copy_later("cuMemcpy3DAsync", std::move(box), stream);
}

CUresult memcpy_device_to_array(CUarray to, std::size_t offset, CUdeviceptr from,
                                std::size_t bytes) {
  Place place;
  if (const CUresult result = array_bytes(to, offset, bytes, place)) return result;
  return copy_now("cuMemcpyDtoA", linear(place, device(from), bytes));
}
CUresult memcpy_array_to_device(CUdeviceptr to, CUarray from, std::size_t offset,
                                std::size_t bytes) {
  Place place;
  if (const CUresult result = array_bytes(from, offset, bytes, place)) return result;
  return copy_now("cuMemcpyAtoD", linear(device(to), place, bytes));
}
CUresult memcpy_host_to_array(CUarray to, std::size_t offset, const void* from, std::size_t bytes) {
  Place place;
  if (const CUresult result = array_bytes(to, offset, bytes, place)) return result;
  return copy_now("cuMemcpyHtoA", linear(place, host(from), bytes));
}
CUresult memcpy_array_to_host(void* to, CUarray from, std::size_t offset, std::size_t bytes) {
  Place place;
  if (const CUresult result = array_bytes(from, offset, bytes, place)) return result;
  return copy_now("cuMemcpyAtoH", linear(host(to), place, bytes));
}
CUresult memcpy_array_to_array(CUarray to, std::size_t to_offset, CUarray from,
                               std::size_t from_offset, std::size_t bytes) {
  Place to_place;
  Place from_place;
  if (const CUresult result = array_bytes(to, to_offset, bytes, to_place)) return result;
  if (const CUresult result = array_bytes(from, from_offset, bytes, from_place)) return result;
  return copy_now("cuMemcpyAtoA", linear(to_place, from_place, bytes));
}
CUresult memcpy_host_to_array_async(CUarray to, std::size_t offset, const void* from,
                                    std::size_t bytes, CUstream stream) {
  Place place;
  if (const CUresult result = array_bytes(to, offset, bytes, place)) return result;
  return copy_later("cuMemcpyHtoAAsync", linear(place, host(from), bytes), stream);
}
CUresult memcpy_array_to_host_async(void* to, CUarray from, std::size_t offset, std::size_t bytes,
                                    CUstream stream) {
  Place place;
  if (const CUresult result = array_bytes(from, offset, bytes, place)) return result;
  return copy_later("cuMemcpyAtoHAsync", linear(host(to), place, bytes), stream);
}

CUresult memset_d8(CUdeviceptr to, unsigned char value, std::size_t count) {
  return fill_with("cuMemsetD8", filling(to, value, 1, count), nullptr, true);
}
CUresult memset_d16(CUdeviceptr to, unsigned short value, std::size_t count) {
  return fill_with("cuMemsetD16", filling(to, value, 2, count), nullptr, true);
}
CUresult memset_d32(CUdeviceptr to, unsigned value, std::size_t count) {
  return fill_with("cuMemsetD32", filling(to, value, 4, count), nullptr, true);
}
CUresult memset_d8_async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return fill_with("cuMemsetD8Async", filling(to, value, 1, count), stream, false);
}
CUresult memset_d16_async(CUdeviceptr to, unsigned short value, std::size_t count,
                          CUstream stream) {
  return fill_with("cuMemsetD16Async", filling(to, value, 2, count), stream, false);
}
CUresult memset_d32_async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return fill_with("cuMemsetD32Async", filling(to, value, 4, count), stream, false);
}
CUresult memset_2d_d8(CUdeviceptr to, std::size_t dst_pitch, unsigned char value, std::size_t width,
                      std::size_t height) {
  return fill_rows("cuMemsetD2D8", filling(to, value, 1, width), dst_pitch, height);
}
CUresult memset_2d_d16(CUdeviceptr to, std::size_t dst_pitch, unsigned short value,
                       std::size_t width, std::size_t height) {
  return fill_rows("cuMemsetD2D16", filling(to, value, 2, width), dst_pitch, height);
}
CUresult memset_2d_d32(CUdeviceptr to, std::size_t dst_pitch, unsigned value, std::size_t width,
                       std::size_t height) {
  return fill_rows("cuMemsetD2D32", filling(to, value, 4, width), dst_pitch, height);
}
CUresult memset_2d_d8_async(CUdeviceptr to, std::size_t dst_pitch, unsigned char value,
                            std::size_t width, std::size_t height, CUstream stream) {
  return fill_rows("cuMemsetD2D8Async", filling(to, value, 1, width), dst_pitch, height, stream,
                   false);
}
CUresult memset_2d_d16_async(CUdeviceptr to, std::size_t dst_pitch, unsigned short value,
                             std::size_t width, std::size_t height, CUstream stream) {
  return fill_rows("cuMemsetD2D16Async", filling(to, value, 2, width), dst_pitch, height, stream,
                   false);
}
CUresult memset_2d_d32_async(CUdeviceptr to, std::size_t dst_pitch, unsigned value,
                             std::size_t width, std::size_t height, CUstream stream) {
  return fill_rows("cuMemsetD2D32Async", filling(to, value, 4, width), dst_pitch, height, stream,
                   false);
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
