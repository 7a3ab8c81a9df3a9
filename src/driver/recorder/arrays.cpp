// src/driver/recorder/arrays.cpp - CUDA arrays, texture and surface objects of a recorded program
#include <algorithm>
#include <bit>

#include "driver/recorder/recorder.hpp"

namespace ptxgen::inline v0::driver::recorder {
namespace {

StepArray array_of(const CUDA_ARRAY3D_DESCRIPTOR& from) {
  StepArray array;
  array.width = from.Width;
  array.height = from.Height;
  array.depth = from.Depth;
  array.format = static_cast<std::uint32_t>(from.Format);
  array.channels = from.NumChannels;
  array.flags = from.Flags;
  return array;
}

/// An array was created. Its address in steps has a gap of 512 bytes before the next.
void add_array(Recorder& all, bool now, CUarray handle, const CUDA_ARRAY3D_DESCRIPTOR& from) {
  Recorder::Array array;
  array.step = array_of(from);
  if (!image_of(array.step, array.image) || all.base.memcpy_3d == nullptr) {
    all.note("an array of an element format that ptxgen does not know is not recorded");
    all.suspect = true;
    return;
  }
  array.image.handle = handle;
  array.address = all.next_array;
  const std::uint64_t bytes = array.image.bytes();
  all.next_array += (bytes + 1023) / 512 * 512;
  all.arrays[handle] = array;
  allocated_in(all, now, {array.address, bytes, StepMemory::Array});
}

CUresult create_array(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR& from, const Call& call) {
  return entry([&]() -> CUresult {
    const CallScope scope;
    const CUresult result = call();
    if (result != CUDA_SUCCESS) return result;
    scope.record([&](bool now) { add_array(scope.recorder(), now, *array, from); });
    return result;
  });
}

void replace_creation(Table& table) {
  table.array_create = [](CUarray* array, const CUDA_ARRAY_DESCRIPTOR* from) -> CUresult {
    CUDA_ARRAY3D_DESCRIPTOR all{};
    if (from != nullptr) all = {from->Width, from->Height, 0, from->Format, from->NumChannels, 0};
    return create_array(array, all, [=] { return active()->base.array_create(array, from); });
  };
  table.array_3d_create = [](CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* from) -> CUresult {
    const CUDA_ARRAY3D_DESCRIPTOR all = from == nullptr ? CUDA_ARRAY3D_DESCRIPTOR{} : *from;
    return create_array(array, all, [=] { return active()->base.array_3d_create(array, from); });
  };
  table.array_destroy = [](CUarray array) -> CUresult {
    return entry([&]() -> CUresult {
      const CallScope scope;
      Recorder& all = scope.recorder();
      const CUresult result = all.base.array_destroy(array);
      if (result != CUDA_SUCCESS) return result;
      scope.record([&](bool) {
        const auto found = all.arrays.find(array);
        if (found == all.arrays.end()) return;
        freed(all, found->second.address);
        all.arrays.erase(found);
      });
      return result;
    });
  };
}

// Objects ----------------------------------------------------------------------------------------

/// False for memory that steps do not describe.
bool resource_of(const Recorder& all, const CUDA_RESOURCE_DESC& from, StepResource& resource) {
  if (from.resType == CU_RESOURCE_TYPE_ARRAY) {
    const auto found = all.arrays.find(from.res.array.hArray);
    if (found == all.arrays.end()) return false;
    resource.address = found->second.address;
    return true;
  }
  if (from.resType == CU_RESOURCE_TYPE_LINEAR) {
    const auto& linear = from.res.linear;
    resource = {StepResource::Kind::Linear,
                linear.devPtr,
                static_cast<std::uint32_t>(linear.format),
                linear.numChannels,
                linear.sizeInBytes,
                0,
                0};
    return true;
  }
  if (from.resType != CU_RESOURCE_TYPE_PITCH2D) return false;
  const auto& rows = from.res.pitch2D;
  resource = {StepResource::Kind::Pitched,
              rows.devPtr,
              static_cast<std::uint32_t>(rows.format),
              rows.numChannels,
              rows.width,
              rows.height,
              rows.pitchInBytes};
  return true;
}

StepSampler sampler_of(const CUDA_TEXTURE_DESC& from) {
  StepSampler sampler;
  for (std::size_t i = 0; i < 3; ++i) {
    sampler.address_modes[i] = static_cast<std::uint32_t>(from.addressMode[i]);
  }
  sampler.filter = static_cast<std::uint32_t>(from.filterMode);
  sampler.flags = from.flags;
  sampler.anisotropy = from.maxAnisotropy;
  for (std::size_t i = 0; i < 4; ++i) {
    sampler.border[i] = std::bit_cast<std::uint32_t>(from.borderColor[i]);
  }
  sampler.mipmap[0] = static_cast<std::uint32_t>(from.mipmapFilterMode);
  sampler.mipmap[1] = std::bit_cast<std::uint32_t>(from.mipmapLevelBias);
  sampler.mipmap[2] = std::bit_cast<std::uint32_t>(from.minMipmapLevelClamp);
  sampler.mipmap[3] = std::bit_cast<std::uint32_t>(from.maxMipmapLevelClamp);
  return sampler;
}

StepView view_of(const CUDA_RESOURCE_VIEW_DESC& from) {
  return {{static_cast<std::uint64_t>(from.format), from.width, from.height, from.depth,
           from.firstMipmapLevel, from.lastMipmapLevel, from.firstLayer, from.lastLayer}};
}

constexpr const char* kUnknownObject =
    "a texture or surface object of memory that no recorded call has created is not recorded: a "
    "launch that uses it replays otherwise";

/// A call that creates an object; `step` has all but handle and resource.
CUresult create_object(ObjectStep step, const unsigned long long* object,
                       const CUDA_RESOURCE_DESC* resource, const Call& call) {
  return entry([&]() -> CUresult {
    const CallScope scope;
    const CUresult result = call();
    if (result != CUDA_SUCCESS) return result;
    scope.record([&](bool now) {
      Recorder& all = scope.recorder();
      step.object = *object;
      if (!resource_of(all, *resource, step.resource)) {
        all.note(kUnknownObject);
        all.suspect = true;
      } else if (now) {
        write_object(all, step);
      } else {
        all.pending_objects.push_back(step);
      }
    });
    return result;
  });
}

CUresult destroy_object(bool surface, unsigned long long object, const Call& call) {
  return entry([&]() -> CUresult {
    const CallScope scope;
    const CUresult result = call();
    if (result != CUDA_SUCCESS) return result;
    scope.record([&](bool) {
      Recorder& all = scope.recorder();
      std::erase_if(all.pending_objects, [&](const ObjectStep& one) {
        return one.surface == surface && one.object == object;
      });
      if (all.objects.erase({surface, object}) != 0) all.sink.write(DestroyStep{surface, object});
    });
    return result;
  });
}

void replace_objects(Table& table) {
  table.tex_object_create = [](CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                               const CUDA_TEXTURE_DESC* texture,
                               const CUDA_RESOURCE_VIEW_DESC* view) -> CUresult {
    ObjectStep step;
    if (texture != nullptr) step.sampler = sampler_of(*texture);
    if (view != nullptr) step.view = view_of(*view);
    return create_object(step, object, resource, [=] {
      return active()->base.tex_object_create(object, resource, texture, view);
    });
  };
  table.tex_object_destroy = [](CUtexObject object) -> CUresult {
    return destroy_object(false, object, [=] { return active()->base.tex_object_destroy(object); });
  };
  if (table.surf_object_create == nullptr) return;
  table.surf_object_create = [](CUsurfObject* object,
                                const CUDA_RESOURCE_DESC* resource) -> CUresult {
    ObjectStep step;
    step.surface = true;
    return create_object(step, object, resource,
                         [=] { return active()->base.surf_object_create(object, resource); });
  };
  table.surf_object_destroy = [](CUsurfObject object) -> CUresult {
    return destroy_object(true, object, [=] { return active()->base.surf_object_destroy(object); });
  };
}

}  // namespace

const Recorder::Array* array_at(const Recorder& recorder, CUdeviceptr address) {
  const auto found = std::ranges::find_if(
      recorder.arrays, [&](const auto& one) { return one.second.address == address; });
  return found == recorder.arrays.end() ? nullptr : &found->second;
}

void write_object(Recorder& recorder, const ObjectStep& step) {
  if (recorder.shadow.find(step.resource.address) == nullptr) {
    recorder.note(kUnknownObject);
    recorder.suspect = true;
    return;
  }
  recorder.objects.emplace(step.surface, step.object);
  recorder.sink.write(step);
}

void replace_arrays(Table& table) {
  if (table.array_create != nullptr && table.array_3d_create != nullptr &&
      table.array_destroy != nullptr) {
    replace_creation(table);
  }
  if (table.tex_object_create != nullptr) replace_objects(table);
}

}  // namespace ptxgen::inline v0::driver::recorder
