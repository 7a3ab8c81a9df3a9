// src/driver/emulated/managed.cpp - managed memory: advice, prefetches, attributes of ranges
#include "driver/emulated/managed.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/memory.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {

ManagedAdvice::ManagedAdvice(std::uint64_t start, std::uint64_t bytes, CUmemLocation preferred)
    : start_(start), end_(start + bytes) {
  pieces_[start].preferred = preferred;
}

void ManagedAdvice::split(std::uint64_t address) {
  if (address <= start_ || address >= end_) return;
  const auto piece = std::prev(pieces_.upper_bound(address));
  if (piece->first != address) pieces_.emplace(address, piece->second);
}

std::vector<PageAdvice*> ManagedAdvice::pages(std::uint64_t address, std::uint64_t bytes) {
  constexpr std::uint64_t kHostPage = 4096;
  const std::uint64_t first = std::max(start_, address / kHostPage * kHostPage);
  const std::uint64_t last =
      std::min(end_, (address + bytes + kHostPage - 1) / kHostPage * kHostPage);
  split(first);
  split(last);
  std::vector<PageAdvice*> found;
  for (auto piece = pieces_.find(first); piece != pieces_.end() && piece->first < last; ++piece) {
    found.push_back(&piece->second);
  }
  return found;
}

namespace {

/// One range of managed memory and its advice.
struct ManagedRange {
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<ManagedAdvice> advice;
  CUmemLocation location{};  ///< of a prefetch
};

/// CUDA_ERROR_INVALID_VALUE with a line in the log unless the bytes are managed memory.
CUresult find_managed(CUctx_st& context, const char* call, ManagedRange& range) {
  if (const CUresult result = check_range(context, call, range.address, range.bytes)) return result;
  const emulator::Device::Extent extent = extent_of(context, range.address);
  {
    const std::lock_guard lock(context.mutex);
    const auto block = context.blocks.find(extent.start);
    if (block != context.blocks.end()) range.advice = block->second.advice;
  }
  if (range.advice) return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_INVALID_VALUE,
                format_text("{}: the memory at {:#x} is not managed; allocate it with "
                            "cuMemAllocManaged or from a pool of managed memory",
                            call, range.address));
}

template <class Work>
CUresult with_managed(Work&& work) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context)) return result;
    return work(*context);
  });
}

/// Whether memory may be there: a device, the host, its only NUMA node. Ids without a meaning
/// become 0, and the current node its number.
bool is_place(CUmemLocation& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return gpu_of(location.id) != nullptr;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
      return true;
    case CU_MEM_LOCATION_TYPE_HOST:
      location.id = 0;
      return true;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return location.id == 0;
    case CU_MEM_LOCATION_TYPE_INVALID:
      break;
  }
  return false;
}

bool is_accessor(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

/// As attributes name it: the ordinal, kDeviceCpu for any place of the host, or kDeviceInvalid.
CUdevice ordinal_of(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return location.id;
  return location.type == CU_MEM_LOCATION_TYPE_NONE ? kDeviceInvalid : kDeviceCpu;
}

void advise(PageAdvice& page, CUmem_advise advice, const CUmemLocation& location) {
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      page.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
      break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
      page.preferred = location;
      break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
      page.preferred = {};
      break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
      page.accessed_by.insert(ordinal_of(location));
      break;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      page.accessed_by.erase(ordinal_of(location));
      break;
  }
}

/// The location of all pages; NONE if they differ.
CUmemLocation common_location(const std::vector<PageAdvice*>& pages,
                              CUmemLocation PageAdvice::*which) {
  const CUmemLocation first = pages.front()->*which;
  const bool same = std::ranges::all_of(pages, [&](const PageAdvice* page) {
    return (page->*which).type == first.type && (page->*which).id == first.id;
  });
  return same ? first : CUmemLocation{};
}

CUresult put_number(void* data, std::size_t bytes, int number) {
  if (bytes != sizeof number) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(data, &number, sizeof number);
  return CUDA_SUCCESS;
}

/// The devices with the advice for all pages, then kDeviceInvalid up to the end of the array.
CUresult put_accessors(void* data, std::size_t bytes, const std::vector<PageAdvice*>& pages) {
  if (bytes == 0 || bytes % sizeof(CUdevice) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUdevice> found;
  for (const CUdevice device : pages.front()->accessed_by) {
    const bool everywhere = std::ranges::all_of(
        pages, [&](const PageAdvice* page) { return page->accessed_by.contains(device); });
    if (everywhere) found.push_back(device);
  }
  found.resize(bytes / sizeof(CUdevice), kDeviceInvalid);
  std::memcpy(data, found.data(), bytes);
  return CUDA_SUCCESS;
}

CUresult put_range_attribute(void* data, std::size_t bytes, CUmem_range_attribute attribute,
                             const std::vector<PageAdvice*>& pages) {
  const CUmemLocation preferred = common_location(pages, &PageAdvice::preferred);
  const CUmemLocation prefetched = common_location(pages, &PageAdvice::prefetched);
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      return put_number(data, bytes, std::ranges::all_of(pages, &PageAdvice::read_mostly) ? 1 : 0);
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
      return put_accessors(data, bytes, pages);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      return put_number(data, bytes, ordinal_of(preferred));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      return put_number(data, bytes, preferred.type);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      return put_number(data, bytes, preferred.id);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      return put_number(data, bytes, ordinal_of(prefetched));
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      return put_number(data, bytes, prefetched.type);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      return put_number(data, bytes, prefetched.id);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

void note_prefetch(CUctx_st& context, const ManagedRange& range) {
  const std::lock_guard lock(context.mutex);
  for (PageAdvice* const page : range.advice->pages(range.address, range.bytes)) {
    page->prefetched = range.location;
  }
}

/// The ranges of a batch, checked.
CUresult ranges_of(CUctx_st& context, const char* call, std::span<const CUdeviceptr> addresses,
                   const std::size_t* sizes, CUstream handle, std::vector<ManagedRange>& ranges) {
  std::shared_ptr<CUstream_st> stream;
  if (const CUresult result = resolve(handle, stream)) return result;
  if (stream == context.legacy) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("{}: the stream must not be the legacy default stream", call));
  }
  if (const CUresult result = not_in_capture(stream)) return result;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (sizes[i] == 0) return CUDA_ERROR_INVALID_VALUE;
    ManagedRange range{addresses[i], sizes[i], nullptr};
    if (const CUresult result = find_managed(context, call, range)) return result;
    ranges.push_back(std::move(range));
  }
  return CUDA_SUCCESS;
}

/// Gives the ranges their locations: location k holds from range `firsts[k]` on.
CUresult place_ranges(const char* call, std::vector<ManagedRange>& ranges,
                      std::span<const CUmemLocation> locations, const std::size_t* firsts) {
  if (locations.empty() || locations.size() > ranges.size() || firsts[0] != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (std::size_t k = 0; k < locations.size(); ++k) {
    const std::size_t end = k + 1 < locations.size() ? firsts[k + 1] : ranges.size();
    CUmemLocation location = locations[k];
    if (firsts[k] >= end || end > ranges.size()) {
      return refuse(CUDA_ERROR_INVALID_VALUE,
                    format_text("{}: location {}: its first range is {}, which must be less than "
                                "that of the next location and the number of ranges",
                                call, k, firsts[k]));
    }
    if (!is_place(location)) return CUDA_ERROR_INVALID_DEVICE;
    for (std::size_t i = firsts[k]; i < end; ++i) ranges[i].location = location;
  }
  return CUDA_SUCCESS;
}

CUresult prefetch_batch(const char* call, CUdeviceptr* addresses, std::size_t* sizes,
                        std::size_t count, CUmemLocation* locations, std::size_t* first_ranges,
                        std::size_t num_locations, unsigned long long flags, CUstream stream) {
  return with_managed([&](CUctx_st& context) -> CUresult {
    if (addresses == nullptr || sizes == nullptr || count == 0 || locations == nullptr ||
        first_ranges == nullptr || flags != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::vector<ManagedRange> ranges;
    if (const CUresult result =
            ranges_of(context, call, {addresses, count}, sizes, stream, ranges)) {
      return result;
    }
    if (const CUresult result =
            place_ranges(call, ranges, {locations, num_locations}, first_ranges)) {
      return result;
    }
    for (const ManagedRange& range : ranges) note_prefetch(context, range);
    return CUDA_SUCCESS;
  });
}

}  // namespace

namespace entries {

// Managed memory has one place: advice and prefetches are noted, and move nothing.

CUresult mem_advise(CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                    CUmemLocation location) {
  return with_managed([&](CUctx_st& context) -> CUresult {
    switch (advice) {
      case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        if (!is_place(location)) return CUDA_ERROR_INVALID_DEVICE;
        break;
      case CU_MEM_ADVISE_SET_ACCESSED_BY:
      case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        if (!is_accessor(location)) return CUDA_ERROR_INVALID_VALUE;
        if (!is_place(location)) return CUDA_ERROR_INVALID_DEVICE;
        break;
      case CU_MEM_ADVISE_SET_READ_MOSTLY:
      case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    ManagedRange range{address, bytes, nullptr};
    if (const CUresult result = find_managed(context, "cuMemAdvise", range)) return result;
    const std::lock_guard lock(context.mutex);
    for (PageAdvice* const page : range.advice->pages(address, bytes)) {
      advise(*page, advice, location);
    }
    return CUDA_SUCCESS;
  });
}

CUresult mem_prefetch_async(CUdeviceptr address, std::size_t bytes, CUmemLocation location,
                            unsigned flags, CUstream handle) {
  return with_managed([&](CUctx_st& context) -> CUresult {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(handle, stream)) return result;
    if (flags != 0 || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (!is_place(location)) return CUDA_ERROR_INVALID_DEVICE;
    if (const CUresult result = not_in_capture(stream)) return result;
    ManagedRange range{address, bytes, nullptr, location};
    if (const CUresult result = find_managed(context, "cuMemPrefetchAsync", range)) return result;
    note_prefetch(context, range);
    return CUDA_SUCCESS;
  });
}

CUresult mem_prefetch_batch_async(CUdeviceptr* addresses, std::size_t* sizes, std::size_t count,
                                  CUmemLocation* locations, std::size_t* first_ranges,
                                  std::size_t num_locations, unsigned long long flags,
                                  CUstream stream) {
  return prefetch_batch("cuMemPrefetchBatchAsync", addresses, sizes, count, locations, first_ranges,
                        num_locations, flags, stream);
}

CUresult mem_discard_and_prefetch_batch_async(CUdeviceptr* addresses, std::size_t* sizes,
                                              std::size_t count, CUmemLocation* locations,
                                              std::size_t* first_ranges, std::size_t num_locations,
                                              unsigned long long flags, CUstream stream) {
  return prefetch_batch("cuMemDiscardAndPrefetchBatchAsync", addresses, sizes, count, locations,
                        first_ranges, num_locations, flags, stream);
}

/// The bytes stay as they are, which is one of the values that a read may return.
CUresult mem_discard_batch_async(CUdeviceptr* addresses, std::size_t* sizes, std::size_t count,
                                 unsigned long long flags, CUstream stream) {
  return with_managed([&](CUctx_st& context) -> CUresult {
    if (addresses == nullptr || sizes == nullptr || count == 0 || flags != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::vector<ManagedRange> ranges;
    return ranges_of(context, "cuMemDiscardBatchAsync", {addresses, count}, sizes, stream, ranges);
  });
}

CUresult mem_range_get_attribute(void* data, std::size_t data_size, CUmem_range_attribute attribute,
                                 CUdeviceptr address, std::size_t bytes) {
  return mem_range_get_attributes(&data, &data_size, &attribute, 1, address, bytes);
}

CUresult mem_range_get_attributes(void** data, std::size_t* data_sizes,
                                  CUmem_range_attribute* attributes, std::size_t num_attributes,
                                  CUdeviceptr address, std::size_t bytes) {
  return with_managed([&](CUctx_st& context) -> CUresult {
    if (data == nullptr || data_sizes == nullptr || attributes == nullptr || num_attributes == 0 ||
        bytes == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    ManagedRange range{address, bytes, nullptr};
    if (const CUresult result = find_managed(context, "cuMemRangeGetAttribute", range)) {
      return result;
    }
    const std::lock_guard lock(context.mutex);
    const std::vector<PageAdvice*> pages = range.advice->pages(address, bytes);
    for (std::size_t i = 0; i < num_attributes; ++i) {
      if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      const CUresult result = put_range_attribute(data[i], data_sizes[i], attributes[i], pages);
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  });
}

CUresult stream_attach_mem_async(CUstream handle, CUdeviceptr address, std::size_t bytes,
                                 unsigned flags) {
  return with_managed([&](CUctx_st& context) -> CUresult {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(handle, stream)) return result;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
        flags != CU_MEM_ATTACH_SINGLE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult result = not_in_capture(stream)) return result;
    ManagedRange range{address, std::max<std::size_t>(bytes, 1), nullptr};
    return find_managed(context, "cuStreamAttachMemAsync", range);
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
