// src/driver/emulated/tensor_maps.cpp - cuTensorMapEncodeTiled
#include <span>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/state.hpp"
#include "emulator/state/tensor_map.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

using emulator::TensorMap;

constexpr std::uint64_t kMaxDim = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxBox = 256;
constexpr std::uint32_t kMaxStep = 8;
constexpr std::uint32_t kUnit = 16;
constexpr std::uintptr_t kMapAlignment = 64;

struct Element {
  ptx::Type type = ptx::Type::none;
  bool flush = false;
  bool real = false;
};

/// Type::none: packed types of 4 and 6 bits, and numbers that are no type.
Element element_of(CUtensorMapDataType type) {
  using ptx::Type;
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return {Type::u8};
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
      return {Type::u16};
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
      return {Type::u32};
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
      return {Type::s32};
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
      return {Type::u64};
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
      return {Type::s64};
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
      return {Type::f16, false, true};
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
      return {Type::f32, false, true};
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return {Type::f64, false, true};
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return {Type::bf16, false, true};
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return {Type::f32, true, true};
    default:
      return {};
  }
}

/// Bytes of a map that need not be aligned.
std::span<std::byte, sizeof(CUtensorMap)> bytes_of(CUtensorMap* map) {
  return std::span<std::byte, sizeof(CUtensorMap)>(reinterpret_cast<std::byte*>(map),
                                                   sizeof(CUtensorMap));
}

/// cuda.h asks for a multiple of 64; NVIDIA's driver takes others too: cuda.core has its maps in
/// Python objects.
void check_alignment(const char* call, const CUtensorMap* map) {
  if (reinterpret_cast<std::uintptr_t>(map) % kMapAlignment == 0) return;
  log(CU_LOG_LEVEL_WARNING,
      format_text("{}: the address of the tensorMap is not a multiple of 64, as cuda.h asks",
                  call));
}

/// The rules of cuda.h, in its order; each is a text that says which argument breaks it.
class Encoder {
 public:
  struct Arguments {
    CUtensorMap* map;
    CUtensorMapDataType type;
    std::uint32_t rank;
    void* address;
    const std::uint64_t* dims;
    const std::uint64_t* strides;
    const std::uint32_t* box;
    const std::uint32_t* steps;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
  };
  explicit Encoder(const Arguments& arguments) : in_(arguments) {}

  CUresult run() {
    if (const std::string text = unsupported(); !text.empty()) {
      return refuse(CUDA_ERROR_NOT_SUPPORTED, "cuTensorMapEncodeTiled: " + text);
    }
    std::string text = wrong_arguments();
    if (text.empty()) text = wrong_tensor();
    if (text.empty()) text = wrong_box();
    if (text.empty()) text = wrong_modes();
    if (!text.empty()) return refuse(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: " + text);
    check_alignment("cuTensorMapEncodeTiled", in_.map);
    map_.pack(bytes_of(in_.map));
    return CUDA_SUCCESS;
  }

 private:
  [[nodiscard]] std::string unsupported() const {
    if (in_.interleave == CU_TENSOR_MAP_INTERLEAVE_16B ||
        in_.interleave == CU_TENSOR_MAP_INTERLEAVE_32B) {
      return "interleaved layouts (CU_TENSOR_MAP_INTERLEAVE_16B and _32B) are not emulated; use "
             "CU_TENSOR_MAP_INTERLEAVE_NONE";
    }
    if (in_.type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B &&
        in_.type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B) {
      return "packed elements of 4 and 6 bits are not emulated; use UINT8";
    }
    if (in_.swizzle >= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B &&
        in_.swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B) {
      return "swizzles with atoms of 32 and 64 bytes are not emulated; use "
             "CU_TENSOR_MAP_SWIZZLE_128B";
    }
    return {};
  }

  [[nodiscard]] std::string wrong_arguments() const {
    if (in_.map == nullptr || in_.dims == nullptr || in_.box == nullptr || in_.steps == nullptr) {
      return "tensorMap, globalDim, boxDim and elementStrides must not be null";
    }
    if (element_of(in_.type).type == ptx::Type::none) {
      return format_text("{} is no CUtensorMapDataType", static_cast<int>(in_.type));
    }
    if (in_.rank == 0 || in_.rank > emulator::kMaxTensorRank) {
      return format_text("tensorRank is {}, but must be 1 to 5", in_.rank);
    }
    if (in_.rank > 1 && in_.strides == nullptr) {
      return "globalStrides must not be null for a tensor of several dimensions";
    }
    if (in_.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) {
      return format_text("{} is no CUtensorMapInterleave", static_cast<int>(in_.interleave));
    }
    return {};
  }

  std::string wrong_tensor() {
    const Element element = element_of(in_.type);
    map_.type = element.type;
    map_.flush = element.flush;
    map_.rank = in_.rank;
    map_.address = reinterpret_cast<std::uintptr_t>(in_.address);
    if (map_.address % kUnit != 0 || map_.address == 0) {
      return format_text("globalAddress {:#x} must be a multiple of 16 and not null", map_.address);
    }
    map_.strides[0] = map_.element_bytes();
    for (std::uint32_t i = 0; i < in_.rank; ++i) {
      if (in_.dims[i] == 0 || in_.dims[i] > kMaxDim) {
        return format_text("globalDim[{}] is {}, but must be 1 to 2^32", i, in_.dims[i]);
      }
      map_.dims[i] = in_.dims[i];
      if (i == 0) continue;
      const std::uint64_t stride = in_.strides[i - 1];
      if (stride % kUnit != 0 || stride >= kMaxStride) {
        return format_text("globalStrides[{}] is {} bytes, but must be a multiple of 16 below 2^40",
                           i - 1, stride);
      }
      map_.strides[i] = stride;
    }
    return {};
  }

  std::string wrong_box() {
    for (std::uint32_t i = 0; i < in_.rank; ++i) {
      if (in_.box[i] == 0 || in_.box[i] > kMaxBox) {
        return format_text("boxDim[{}] is {}, but must be 1 to 256", i, in_.box[i]);
      }
      if (in_.steps[i] == 0 || in_.steps[i] > kMaxStep) {
        return format_text("elementStrides[{}] is {}, but must be 1 to 8", i, in_.steps[i]);
      }
      map_.box[i] = in_.box[i];
      // Dimension 0 has no stride without interleave.
      map_.steps[i] = i == 0 ? 1 : in_.steps[i];
    }
    const std::uint32_t inner = in_.box[0] * map_.element_bytes();
    if (inner % kUnit != 0) {
      return format_text("boxDim[0] is {} elements of {} bytes, but must be a multiple of 16 bytes",
                         in_.box[0], map_.element_bytes());
    }
    return {};
  }

  std::string wrong_modes() {
    if (in_.swizzle < CU_TENSOR_MAP_SWIZZLE_NONE ||
        in_.swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B) {
      return format_text("{} is no CUtensorMapSwizzle", static_cast<int>(in_.swizzle));
    }
    constexpr std::uint32_t kBytes[] = {0, 32, 64, 128};
    map_.swizzle_bytes = kBytes[in_.swizzle];
    const std::uint32_t inner = in_.box[0] * map_.element_bytes();
    if (map_.swizzle_bytes != 0 && inner > map_.swizzle_bytes) {
      return format_text("boxDim[0] is {} bytes, more than the {} of CU_TENSOR_MAP_SWIZZLE_{}B",
                         inner, map_.swizzle_bytes, map_.swizzle_bytes);
    }
    if (in_.promotion < CU_TENSOR_MAP_L2_PROMOTION_NONE ||
        in_.promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B) {
      return format_text("{} is no CUtensorMapL2promotion", static_cast<int>(in_.promotion));
    }
    if (in_.fill < CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
        in_.fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA) {
      return format_text("{} is no CUtensorMapFloatOOBfill", static_cast<int>(in_.fill));
    }
    map_.fill_nan = in_.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    if (map_.fill_nan && !element_of(in_.type).real) {
      return "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA requires elements that are floats";
    }
    return {};
  }

  const Arguments& in_;
  TensorMap map_;
};

}  // namespace

namespace entries {

CUresult tensor_map_encode_tiled(CUtensorMap* map, CUtensorMapDataType type, std::uint32_t rank,
                                 void* address, const std::uint64_t* dims,
                                 const std::uint64_t* strides, const std::uint32_t* box,
                                 const std::uint32_t* element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    return Encoder({map, type, rank, address, dims, strides, box, element_strides, interleave,
                    swizzle, promotion, fill})
        .run();
  });
}

CUresult tensor_map_replace_address(CUtensorMap* map, void* address) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (map == nullptr) {
      return refuse(CUDA_ERROR_INVALID_VALUE, "cuTensorMapReplaceAddress: the tensorMap is null");
    }
    check_alignment("cuTensorMapReplaceAddress", map);
    std::optional<TensorMap> unpacked = TensorMap::unpacked(bytes_of(map));
    if (!unpacked) {
      return refuse(CUDA_ERROR_INVALID_VALUE,
                    "cuTensorMapReplaceAddress: the tensorMap was not made by "
                    "cuTensorMapEncodeTiled");
    }
    unpacked->address = reinterpret_cast<std::uintptr_t>(address);
    if (unpacked->address % kUnit != 0 || address == nullptr) {
      return refuse(CUDA_ERROR_INVALID_VALUE,
                    "cuTensorMapReplaceAddress: globalAddress must be a multiple of 16 and not "
                    "null");
    }
    unpacked->pack(bytes_of(map));
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
