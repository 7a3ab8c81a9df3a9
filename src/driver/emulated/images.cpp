// src/driver/emulated/images.cpp - texture and surface objects
#include <bit>

#include "driver/emulated/arrays.hpp"
#include "driver/emulated/entries.hpp"
#include "driver/emulated/memory.hpp"
#include "emulator/state/address_space.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

using emulator::AddressMode;
using emulator::ImageObject;
using emulator::Sampler;
using emulator::Texels;

constexpr std::uint64_t kTextureAlignment = 512;  ///< CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT
constexpr std::uint64_t kRowAlignment = 32;       ///< CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT
constexpr std::uint64_t kMaxLinear = std::uint64_t{1} << 28;
constexpr std::uint64_t kMaxLinearWidth = 131072;
constexpr std::uint64_t kMaxLinearHeight = 65000;
constexpr std::uint64_t kMaxLinearPitch = 2097120;

CUresult invalid(const char* call, const std::string& text) {
  return refuse(CUDA_ERROR_INVALID_VALUE, format_text("{}: {}", call, text));
}

CUresult unsupported(const char* call, std::string_view text) {
  return refuse(CUDA_ERROR_NOT_SUPPORTED, format_text("{}: {}", call, text));
}

CUresult take_memory(const char* call, CUctx_st& context, CUdeviceptr address, std::uint64_t bytes,
                     Texels& texels) {
  if (address % kTextureAlignment != 0) {
    return invalid(call, format_text("the address {:#x} is not a multiple of {}, the texture "
                                     "alignment",
                                     address, kTextureAlignment));
  }
  texels.address = address;
  return check_range(context, call, address, bytes);
}

CUresult take_linear(const char* call, CUctx_st& context, const CUDA_RESOURCE_DESC& from,
                     Texels& texels) {
  const auto& linear = from.res.linear;
  if (!take_format(linear.format, linear.numChannels, texels)) {
    return refuse(CUDA_ERROR_INVALID_VALUE, format_rule(call, linear.format, linear.numChannels));
  }
  const std::uint64_t elements = linear.sizeInBytes / texels.element_bytes();
  if (elements == 0 || elements > kMaxLinear) {
    return invalid(call, format_text("{} elements of linear memory; 1 to {} are allowed", elements,
                                     kMaxLinear));
  }
  texels.linear = true;
  texels.width = static_cast<std::uint32_t>(elements);
  texels.pitch = texels.slice = elements * texels.element_bytes();
  return take_memory(call, context, linear.devPtr, texels.pitch, texels);
}

CUresult take_rows(const char* call, CUctx_st& context, const CUDA_RESOURCE_DESC& from,
                   Texels& texels) {
  const auto& rows = from.res.pitch2D;
  if (!take_format(rows.format, rows.numChannels, texels)) {
    return refuse(CUDA_ERROR_INVALID_VALUE, format_rule(call, rows.format, rows.numChannels));
  }
  if (rows.width == 0 || rows.width > kMaxLinearWidth || rows.height == 0 ||
      rows.height > kMaxLinearHeight) {
    return invalid(call, format_text("{} x {} elements of pitched memory; the maximum is {} x {}",
                                     rows.width, rows.height, kMaxLinearWidth, kMaxLinearHeight));
  }
  const std::uint64_t row_bytes = rows.width * texels.element_bytes();
  if (rows.pitchInBytes % kRowAlignment != 0 || rows.pitchInBytes < row_bytes ||
      rows.pitchInBytes > kMaxLinearPitch) {
    return invalid(call, format_text("a pitch of {} bytes for rows of {}; it must be a multiple of "
                                     "{}, as cuMemAllocPitch gives it, and at most {}",
                                     rows.pitchInBytes, row_bytes, kRowAlignment, kMaxLinearPitch));
  }
  texels.dimensions = 2;
  texels.width = static_cast<std::uint32_t>(rows.width);
  texels.height = static_cast<std::uint32_t>(rows.height);
  texels.pitch = rows.pitchInBytes;
  texels.slice = rows.pitchInBytes * rows.height;
  return take_memory(call, context, rows.devPtr, (rows.height - 1) * texels.pitch + row_bytes,
                     texels);
}

CUresult take_array(CUctx_st& context, CUarray handle, bool surface, const char* call,
                    Texels& texels) {
  const std::shared_ptr<CUarray_st> array = hold(handle);
  if (!array || array->context != &context) return CUDA_ERROR_INVALID_HANDLE;
  if (surface && (array->descriptor.Flags & kArraySurface) == 0) {
    return invalid(call, array->name +
                             " was created without CUDA_ARRAY3D_SURFACE_LDST "
                             "(cudaArraySurfaceLoadStore)");
  }
  texels = array->texels;
  return CUDA_SUCCESS;
}

CUresult take_resource(const char* call, CUctx_st& context, const CUDA_RESOURCE_DESC& from,
                       bool surface, Texels& texels) {
  if (from.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (from.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return take_array(context, from.res.array.hArray, surface, call, texels);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return unsupported(call,
                         "mipmapped arrays are not emulated; use an array, which has level 0");
    case CU_RESOURCE_TYPE_LINEAR:
      if (surface) break;
      return take_linear(call, context, from, texels);
    case CU_RESOURCE_TYPE_PITCH2D:
      if (surface) break;
      return take_rows(call, context, from, texels);
  }
  return surface ? invalid(call, "a surface object is of an array") : CUDA_ERROR_INVALID_VALUE;
}

bool take_mode(CUaddress_mode from, AddressMode& mode) {
  switch (from) {
    case CU_TR_ADDRESS_MODE_WRAP:
      mode = AddressMode::Wrap;
      return true;
    case CU_TR_ADDRESS_MODE_CLAMP:
      mode = AddressMode::Clamp;
      return true;
    case CU_TR_ADDRESS_MODE_MIRROR:
      mode = AddressMode::Mirror;
      return true;
    case CU_TR_ADDRESS_MODE_BORDER:
      mode = AddressMode::Border;
      return true;
  }
  return false;
}

/// cuTexObjectCreate. Anisotropy and what else is about mipmaps has no effect without them.
CUresult take_sampler(const char* call, const CUDA_TEXTURE_DESC& from, const Texels& texels,
                      Sampler& sampler) {
  constexpr unsigned kKnown = kTextureAsInteger | kTextureNormalized | kTextureSrgb |
                              kTextureNoTrilinear | kTextureSeamless;
  if ((from.flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((from.flags & kTextureSrgb) != 0) {
    return unsupported(call, "conversion from sRGB is not emulated; convert in the kernel");
  }
  sampler.as_integer = (from.flags & kTextureAsInteger) != 0;
  if (texels.linear) {
    // Neither filtered nor addressed otherwise: elements outside are 0.
    sampler.address.fill(AddressMode::Border);
    return CUDA_SUCCESS;
  }
  for (std::size_t i = 0; i < sampler.address.size(); ++i) {
    if (!take_mode(from.addressMode[i], sampler.address[i])) return CUDA_ERROR_INVALID_VALUE;
  }
  if (from.filterMode != CU_TR_FILTER_MODE_POINT && from.filterMode != CU_TR_FILTER_MODE_LINEAR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  sampler.linear = from.filterMode == CU_TR_FILTER_MODE_LINEAR;
  sampler.normalized = (from.flags & kTextureNormalized) != 0;
  for (std::size_t i = 0; i < sampler.border.size(); ++i) {
    sampler.border[i] = std::bit_cast<std::uint32_t>(from.borderColor[i]);
  }
  if (sampler.linear && !emulator::reads_float(texels, sampler)) {
    return invalid(call,
                   "the linear filter is for elements that are read as floats; use the "
                   "filter mode point, or read 8- and 16-bit integers as normalised floats");
  }
  return CUDA_SUCCESS;
}

/// The view format of the memory's own elements.
int view_format(const Texels& texels) {
  // Formats are in this order, each with 1, 2 and 4 channels.
  int row = texels.channel_bytes == 1 ? 0 : texels.channel_bytes == 2 ? 2 : 4;
  if (texels.kind == emulator::ChannelKind::Signed) ++row;
  if (texels.kind == emulator::ChannelKind::Float) row = texels.channel_bytes == 2 ? 6 : 7;
  return CU_RES_VIEW_FORMAT_UINT_1X8 + 3 * row + (texels.channels == 4 ? 2 : texels.channels - 1);
}

/// Only the view that changes nothing.
CUresult check_view(const char* call, const CUDA_RESOURCE_VIEW_DESC& view, const Texels& texels) {
  const auto same = [](std::size_t size, std::uint32_t own) { return size == 0 || size == own; };
  const bool own_format =
      view.format == CU_RES_VIEW_FORMAT_NONE || view.format == view_format(texels);
  const std::uint32_t depth = texels.layers != 0 ? texels.layers : texels.depth;
  const bool own_layers =
      view.firstLayer == 0 && (view.lastLayer == 0 || std::uint64_t{view.lastLayer} + 1 == depth);
  if (own_format && same(view.width, texels.width) && same(view.height, texels.height) &&
      same(view.depth, depth) && view.firstMipmapLevel == 0 && view.lastMipmapLevel == 0 &&
      own_layers) {
    return CUDA_SUCCESS;
  }
  return unsupported(call,
                     "a resource view of another format, size or range of layers is not "
                     "emulated; pass null");
}

/// `make(context, object)` checks and fills the object.
template <class Make>
CUresult make_object(unsigned long long* out, const CUDA_RESOURCE_DESC* resource,
                     const CUDA_TEXTURE_DESC& texture, Make&& make) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context)) return result;
    if (out == nullptr || resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
    ImageObject object;
    if (const CUresult result = make(*context, object)) return result;
    const std::lock_guard memory_lock(context->memory_mutex);
    *out = context->memory.space().images().add(object);
    context->images[*out] = {*resource, texture};
    return CUDA_SUCCESS;
  });
}

CUresult destroy_object(unsigned long long handle, ImageObject::Kind kind) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context)) return result;
    // Queued kernels may use it.
    const CUresult result = wait_for_all(context.get());
    const std::lock_guard memory_lock(context->memory_mutex);
    if (!context->memory.space().images().remove(handle, kind)) return CUDA_ERROR_INVALID_VALUE;
    context->images.erase(handle);
    return result;
  });
}

/// `get(description)` answers a question about a living object.
template <class Get>
CUresult describe_object(unsigned long long handle, ImageObject::Kind kind, Get&& get) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context)) return result;
    const std::lock_guard memory_lock(context->memory_mutex);
    const ImageObject* const object = context->memory.space().images().find(handle);
    if (object == nullptr || object->kind != kind) return CUDA_ERROR_INVALID_VALUE;
    return get(context->images.at(handle));
  });
}

CUresult get_resource(CUDA_RESOURCE_DESC* out, unsigned long long handle, ImageObject::Kind kind) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return describe_object(handle, kind, [&](const ImageDescription& description) {
    *out = description.resource;
    return CUDA_SUCCESS;
  });
}

}  // namespace

namespace entries {

CUresult tex_object_create(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  constexpr const char* kCall = "cuTexObjectCreate";
  if (texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return make_object(object, resource, *texture, [&](CUctx_st& context, ImageObject& image) {
    image.kind = ImageObject::Kind::Texture;
    if (const CUresult result = take_resource(kCall, context, *resource, false, image.texels)) {
      return result;
    }
    if (view != nullptr) {
      if (const CUresult result = check_view(kCall, *view, image.texels)) return result;
    }
    return take_sampler(kCall, *texture, image.texels, image.sampler);
  });
}

CUresult tex_object_destroy(CUtexObject object) {
  return destroy_object(object, ImageObject::Kind::Texture);
}

CUresult tex_object_get_resource_desc(CUDA_RESOURCE_DESC* resource, CUtexObject object) {
  return get_resource(resource, object, ImageObject::Kind::Texture);
}

CUresult tex_object_get_texture_desc(CUDA_TEXTURE_DESC* texture, CUtexObject object) {
  if (texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return describe_object(object, ImageObject::Kind::Texture,
                         [&](const ImageDescription& description) {
                           *texture = description.texture;
                           return CUDA_SUCCESS;
                         });
}

CUresult surf_object_create(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
  return make_object(object, resource, {}, [&](CUctx_st& context, ImageObject& image) {
    image.kind = ImageObject::Kind::Surface;
    return take_resource("cuSurfObjectCreate", context, *resource, true, image.texels);
  });
}

CUresult surf_object_destroy(CUsurfObject object) {
  return destroy_object(object, ImageObject::Kind::Surface);
}

CUresult surf_object_get_resource_desc(CUDA_RESOURCE_DESC* resource, CUsurfObject object) {
  return get_resource(resource, object, ImageObject::Kind::Surface);
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
