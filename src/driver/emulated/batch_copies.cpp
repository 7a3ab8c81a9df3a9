// src/driver/emulated/batch_copies.cpp - several copies in one call
#include <vector>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/memory.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

/// A copy of a batch, and whether its source may be gone when the call returns.
struct BatchCopy {
  Copy copy;
  bool during_call = false;
};

CUresult refuse_copy(const char* call, std::size_t index, CUresult result, const char* why) {
  return refuse(result, format_text("{}: copy {}: {}", call, index, why));
}

bool is_order(CUmemcpySrcAccessOrder order) {
  return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/// Queues the copies in their order, one of those that are allowed; all are checked before the
/// first.
CUresult queue_batch(const char* call, std::vector<BatchCopy> parts, CUstream handle) {
  std::shared_ptr<CUstream_st> stream;
  if (const CUresult result = resolve(handle, stream)) return result;
  const std::shared_ptr<CUctx_st> context = hold(stream->context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (stream == context->legacy) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("{}: the stream must not be the legacy default stream", call));
  }
  if (const CUresult result = not_in_capture(stream)) return result;
  bool during_call = false;
  for (const BatchCopy& part : parts) {
    Copy checked = part.copy;
    if (const CUresult result = check_copy(*context, call, checked)) return result;
    during_call = during_call || part.during_call;
  }
  for (BatchCopy& part : parts) {
    if (const CUresult result = copy_later(call, std::move(part.copy), handle)) return result;
  }
  return during_call ? wait_for(stream) : CUDA_SUCCESS;
}

/// One batch_side of a 3D copy.
CUresult batch_side(const char* call, std::size_t index, const CUmemcpy3DOperand& operand,
                    const CUextent3D& extent, Place& place, std::uint64_t& pitch,
                    std::uint64_t& height) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    return refuse_copy(call, index, CUDA_ERROR_NOT_SUPPORTED,
                       "the emulated driver does not support CUDA arrays in batches");
  }
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return CUDA_ERROR_INVALID_VALUE;
  const auto& pointer = operand.op.ptr;
  pitch = pointer.rowLength != 0 ? pointer.rowLength : extent.width;
  height = pointer.layerHeight != 0 ? pointer.layerHeight : extent.height;
  if (pitch < extent.width || height < extent.height) {
    return refuse_copy(call, index, CUDA_ERROR_INVALID_VALUE,
                       "rowLength and layerHeight are 0 or at least the extent's width and height");
  }
  place = {CU_MEMORYTYPE_UNIFIED, pointer.ptr};
  return CUDA_SUCCESS;
}

CUresult batch_part(const char* call, std::size_t index, const CUDA_MEMCPY3D_BATCH_OP& from,
                    BatchCopy& part) {
  if (!is_order(from.srcAccessOrder) || from.extent.width == 0 || from.extent.height == 0 ||
      from.extent.depth == 0) {
    return refuse_copy(call, index, CUDA_ERROR_INVALID_VALUE,
                       "its extent has a 0, or its srcAccessOrder is not valid");
  }
  Copy& copy = part.copy;
  if (const CUresult result =
          batch_side(call, index, from.dst, from.extent, copy.to, copy.to_pitch, copy.to_height)) {
    return result;
  }
  if (const CUresult result = batch_side(call, index, from.src, from.extent, copy.from,
                                         copy.from_pitch, copy.from_height)) {
    return result;
  }
  copy.width = from.extent.width;
  copy.height = from.extent.height;
  copy.depth = from.extent.depth;
  part.during_call = from.srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  return CUDA_SUCCESS;
}

}  // namespace

namespace entries {

CUresult memcpy_batch_async(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes,
                            std::size_t count, CUmemcpyAttributes* attributes,
                            std::size_t* first_copies, std::size_t num_attributes,
                            CUstream stream) {
  constexpr const char* kCall = "cuMemcpyBatchAsync";
  return guarded([&]() -> CUresult {
    if (to == nullptr || from == nullptr || sizes == nullptr || attributes == nullptr ||
        first_copies == nullptr || count == 0 || num_attributes == 0 || num_attributes > count) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::vector<BatchCopy> parts(count);
    std::size_t attribute = 0;
    for (std::size_t i = 0; i < num_attributes; ++i) {
      const bool rises = i == 0 ? first_copies[i] == 0 : first_copies[i] > first_copies[i - 1];
      if (!rises || first_copies[i] >= count || !is_order(attributes[i].srcAccessOrder)) {
        return refuse(
            CUDA_ERROR_INVALID_VALUE,
            format_text("{}: attributes {}: their first copies begin with 0 and rise, and "
                        "srcAccessOrder is valid",
                        kCall, i));
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      while (attribute + 1 < num_attributes && first_copies[attribute + 1] <= i) ++attribute;
      Copy& copy = parts[i].copy;
      copy.to = {CU_MEMORYTYPE_UNIFIED, to[i]};
      copy.from = {CU_MEMORYTYPE_UNIFIED, from[i]};
      copy.width = sizes[i];
      parts[i].during_call =
          attributes[attribute].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    }
    return queue_batch(kCall, std::move(parts), stream);
  });
}

CUresult memcpy_3d_batch_async(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* copies,
                               unsigned long long flags, CUstream stream) {
  constexpr const char* kCall = "cuMemcpy3DBatchAsync";
  return guarded([&]() -> CUresult {
    if (count == 0 || copies == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    std::vector<BatchCopy> parts(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (const CUresult result = batch_part(kCall, i, copies[i], parts[i])) return result;
    }
    return queue_batch(kCall, std::move(parts), stream);
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
