// src/driver/recorder/copies.cpp - copies and fills of a recorded program
#include <algorithm>
#include <cstring>

#include "driver/copy_2d.hpp"
#include "driver/recorder/recorder.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0::driver::recorder {
namespace {

StepRows linear(std::uint64_t address, std::uint64_t bytes) {
  return {address, bytes, 1, 1, bytes, 1};
}

bool is_empty(const StepRows& rows) {
  return rows.width == 0 || rows.height == 0 || rows.depth == 0;
}

/// Whether an address is one of device memory, which may be there later only: of a node of a graph,
/// or allocated while a stream is captured.
bool is_device_memory(const Recorder& recorder, CUdeviceptr address) {
  if (recorder.shadow.find(address) != nullptr) return true;
  const auto pending = [&](const Recorder::Pending& one) {
    return address - one.address < one.bytes;
  };
  const auto of_graph = [&](const auto& one) { return address - one.first < one.second.bytes; };
  return std::ranges::any_of(recorder.pending, pending) ||
         std::ranges::any_of(recorder.graph_memory, of_graph);
}

/// Pinned and registered memory counts as device memory: a replay has no host's.
Side side_at(const Recorder& recorder, CUmemorytype kind, StepRows rows) {
  if (kind == CU_MEMORYTYPE_UNIFIED || kind == CU_MEMORYTYPE_DEVICE) {
    if (kind == CU_MEMORYTYPE_DEVICE || is_device_memory(recorder, rows.address)) {
      return {CU_MEMORYTYPE_DEVICE, rows};
    }
  }
  const auto* const host = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(rows.address));
  if (const CUdeviceptr device = recorder.shadow.device_address(host)) {
    rows.address = device;
    return {CU_MEMORYTYPE_DEVICE, rows};
  }
  if (is_device_memory(recorder, rows.address)) return {CU_MEMORYTYPE_DEVICE, rows};
  return {CU_MEMORYTYPE_HOST, rows};
}

std::vector<std::byte> packed(const StepRows& rows) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows.width * rows.height * rows.depth));
  std::byte* to = bytes.data();
  for (std::uint64_t z = 0; z < rows.depth; ++z) {
    for (std::uint64_t y = 0; y < rows.height; ++y, to += rows.width) {
      const std::uint64_t from = rows.address + (z * rows.slice_height + y) * rows.pitch;
      std::memcpy(to, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(from)),
                  static_cast<std::size_t>(rows.width));
    }
  }
  return bytes;
}

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// A copy of bytes. Kinds are as the call has them.
CopyWork linear_copy(const Recorder& recorder, CUmemorytype to_kind, std::uint64_t to,
                     CUmemorytype from_kind, std::uint64_t from, std::uint64_t bytes) {
  return {side_at(recorder, to_kind, linear(to, bytes)),
          side_at(recorder, from_kind, linear(from, bytes))};
}

/// Where a side of a 2D or 3D copy begins, as the call has it.
struct Begin {
  CUmemorytype kind = CU_MEMORYTYPE_HOST;
  const void* host = nullptr;
  CUdeviceptr device = 0;
  CUarray array = nullptr;
  std::uint64_t x = 0, y = 0, z = 0;
};

/// False for an array that is not recorded.
bool side_of(const Recorder& recorder, const Begin& begin, StepRows rows, Side& side) {
  if (begin.kind == CU_MEMORYTYPE_ARRAY) {
    const auto found = recorder.arrays.find(begin.array);
    if (found == recorder.arrays.end()) return false;
    rows.address = found->second.address;
    rows.pitch = found->second.image.row_bytes;
    rows.slice_height = found->second.image.rows;
  } else {
    rows.address = begin.kind == CU_MEMORYTYPE_HOST ? number(begin.host) : begin.device;
  }
  rows.address += (begin.z * rows.slice_height + begin.y) * rows.pitch + begin.x;
  const bool array = begin.kind == CU_MEMORYTYPE_ARRAY;
  side = side_at(recorder, array ? CU_MEMORYTYPE_DEVICE : begin.kind, rows);
  return true;
}

bool copy_of_3d(const Recorder& recorder, const CUDA_MEMCPY3D& copy, CopyWork& work) {
  const auto rows = [&](std::uint64_t pitch, std::uint64_t height) {
    StepRows built{0, copy.WidthInBytes, copy.Height, copy.Depth, 0, 0};
    built.pitch = pitch != 0 ? pitch : built.width;
    built.slice_height = height != 0 ? height : built.height;
    return built;
  };
  const Begin to{copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstArray,
                 copy.dstXInBytes,   copy.dstY,    copy.dstZ};
  const Begin from{copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcArray,
                   copy.srcXInBytes,   copy.srcY,    copy.srcZ};
  return side_of(recorder, to, rows(copy.dstPitch, copy.dstHeight), work.to) &&
         side_of(recorder, from, rows(copy.srcPitch, copy.srcHeight), work.from);
}

std::uint64_t row_address(const StepRows& rows, std::uint64_t z, std::uint64_t y) {
  return rows.address + (z * rows.slice_height + y) * rows.pitch;
}

bool in_one_region(const Recorder& all, const StepRows& rows) {
  const Region* const region = all.shadow.find(rows.address);
  const std::uint64_t last = row_address(rows, rows.depth - 1, rows.height - 1) + rows.width - 1;
  return region != nullptr && region->holds(last);
}

/// Bytes of a row.
struct Part {
  std::uint64_t z = 0, y = 0, x = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] StepRows of(const StepRows& rows) const {
    return linear(row_address(rows, z, y) + x, bytes);
  }
};

/// Rows of one size by the regions that they are in, which may be adjacent mappings of virtual
/// memory. None if a byte is in no region.
std::vector<Part> parts_of(const Recorder& all, const std::vector<const StepRows*>& sides) {
  std::vector<Part> parts;
  const StepRows& size = *sides.front();
  for (std::uint64_t row = 0; row < size.depth * size.height; ++row) {
    Part part{row / size.height, row % size.height, 0, 0};
    for (; part.x < size.width; part.x += part.bytes) {
      part.bytes = size.width - part.x;
      for (const StepRows* const rows : sides) {
        const std::uint64_t at = row_address(*rows, part.z, part.y) + part.x;
        const Region* const region = all.shadow.find(at);
        if (region == nullptr) return {};
        part.bytes = std::min<std::uint64_t>(part.bytes, region->end() - at);
      }
      parts.push_back(part);
    }
  }
  return parts;
}

/// Writes what is done with rows, whose `sides` are device memory, as one step or as more:
/// `write(null)` or `write(part)`.
template <class Write>
void write_by_region(Recorder& all, const std::vector<const StepRows*>& sides, Write&& write) {
  const auto in_one = [&](const StepRows* rows) { return in_one_region(all, *rows); };
  if (std::ranges::all_of(sides, in_one)) return write(nullptr);
  const std::vector<Part> parts = parts_of(all, sides);
  for (const Part& part : parts) write(&part);
  if (!parts.empty()) return;
  all.note("a copy or fill of memory that no recorded call has allocated is not recorded");
  all.suspect = true;
}

/// A copy in a stream: a step, a node, or neither. `work_of` is asked with the recorder locked.
template <class WorkOf>
CUresult copy_in(CUstream stream, WorkOf&& work_of, const Call& call) {
  return entry([&]() -> CUresult {
    const CallScope scope(stream);
    Recorder& all = scope.recorder();
    CopyWork work;
    if (scope.captured()) {
      const CUresult result = call();
      const std::lock_guard lock(all.mutex);
      const bool known = result == CUDA_SUCCESS && work_of(all, work);
      if (result == CUDA_SUCCESS) captured(all, stream, known ? Work(work) : Work());
      return result;
    }
    if (!scope.records()) {
      scope.pass_on();
      return call();
    }
    if (work_of(all, work)) return record_copy(scope, work, call);
    all.note("a copy of an array that no recorded call has created is not recorded");
    all.suspect = true;
    return call();
  });
}

template <class From>
CUresult copy_linear(CUmemorytype to_kind, std::uint64_t to, CUmemorytype from_kind, From from,
                     std::size_t bytes, CUstream stream, const Call& call) {
  return copy_in(
      stream,
      [&](const Recorder& all, CopyWork& work) {
        work = linear_copy(all, to_kind, to, from_kind, from, bytes);
        return true;
      },
      call);
}

CUresult copy_3d(const CUDA_MEMCPY3D* copy, CUstream stream, const Call& call) {
  return copy_in(
      stream,
      [&](const Recorder& all, CopyWork& work) {
        return copy != nullptr && copy_of_3d(all, *copy, work);
      },
      call);
}

CUresult copy_2d(const CUDA_MEMCPY2D* copy, CUstream stream, const Call& call) {
  CUDA_MEMCPY3D all = {};
  if (copy != nullptr) all = in_3d(*copy);
  return copy_3d(copy == nullptr ? nullptr : &all, stream, call);
}

/// The copies of a batch. The driver does all or none of them, and refuses them in a capture.
template <class WorksOf>
CUresult copy_batch(CUstream stream, WorksOf&& works_of, const Call& call) {
  return entry([&]() -> CUresult {
    const CallScope scope(stream);
    Recorder& all = scope.recorder();
    if (!scope.records()) {
      if (!scope.captured()) scope.pass_on();
      return call();
    }
    std::vector<CopyWork> works;
    if (works_of(all, works)) return record_copies(scope, works, call);
    all.note("a batch with a copy of an array is not recorded");
    all.suspect = true;
    return call();
  });
}

bool side_of(const Recorder& recorder, const CUmemcpy3DOperand& operand, const CUextent3D& extent,
             Side& side) {
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return false;
  const auto& pointer = operand.op.ptr;
  StepRows rows;
  rows.address = pointer.ptr;
  rows.width = extent.width;
  rows.height = extent.height;
  rows.depth = extent.depth;
  rows.pitch = pointer.rowLength != 0 ? pointer.rowLength : extent.width;
  rows.slice_height = pointer.layerHeight != 0 ? pointer.layerHeight : extent.height;
  side = side_at(recorder, CU_MEMORYTYPE_UNIFIED, rows);
  return true;
}

/// Adjacent bytes of a 1D array, or at an address if there is no array.
struct Bytes {
  CUmemorytype kind = CU_MEMORYTYPE_ARRAY;
  std::uint64_t at = 0;
  CUarray array = nullptr;
};

CUresult copy_bytes(const Bytes& to, const Bytes& from, std::size_t count, CUstream stream,
                    const Call& call) {
  const auto side = [&](const Recorder& all, const Bytes& bytes, Side& filled) {
    if (bytes.kind == CU_MEMORYTYPE_ARRAY) {
      return side_of(all, {bytes.kind, nullptr, 0, bytes.array, bytes.at, 0, 0}, linear(0, count),
                     filled);
    }
    filled = side_at(all, bytes.kind, linear(bytes.at, count));
    return true;
  };
  return copy_in(
      stream,
      [&](const Recorder& all, CopyWork& work) {
        return side(all, to, work.to) && side(all, from, work.from);
      },
      call);
}

Bytes of_array(CUarray array, std::size_t offset) { return {CU_MEMORYTYPE_ARRAY, offset, array}; }
Bytes of_host(const void* memory) { return {CU_MEMORYTYPE_HOST, number(memory), nullptr}; }
Bytes of_device(CUdeviceptr address) { return {CU_MEMORYTYPE_DEVICE, address, nullptr}; }

void replace_array_copies(Table& table) {
  if (table.memcpy_device_to_array == nullptr) return;
  table.memcpy_device_to_array = [](CUarray to, std::size_t offset, CUdeviceptr from,
                                    std::size_t bytes) -> CUresult {
    return copy_bytes(of_array(to, offset), of_device(from), bytes, nullptr, [=] {
      return active()->base.memcpy_device_to_array(to, offset, from, bytes);
    });
  };
  table.memcpy_array_to_device = [](CUdeviceptr to, CUarray from, std::size_t offset,
                                    std::size_t bytes) -> CUresult {
    return copy_bytes(of_device(to), of_array(from, offset), bytes, nullptr, [=] {
      return active()->base.memcpy_array_to_device(to, from, offset, bytes);
    });
  };
  table.memcpy_host_to_array = [](CUarray to, std::size_t offset, const void* from,
                                  std::size_t bytes) -> CUresult {
    return copy_bytes(of_array(to, offset), of_host(from), bytes, nullptr,
                      [=] { return active()->base.memcpy_host_to_array(to, offset, from, bytes); });
  };
  table.memcpy_array_to_host = [](void* to, CUarray from, std::size_t offset,
                                  std::size_t bytes) -> CUresult {
    return copy_bytes(of_host(to), of_array(from, offset), bytes, nullptr,
                      [=] { return active()->base.memcpy_array_to_host(to, from, offset, bytes); });
  };
  table.memcpy_array_to_array = [](CUarray to, std::size_t to_offset, CUarray from,
                                   std::size_t from_offset, std::size_t bytes) -> CUresult {
    return copy_bytes(of_array(to, to_offset), of_array(from, from_offset), bytes, nullptr, [=] {
      return active()->base.memcpy_array_to_array(to, to_offset, from, from_offset, bytes);
    });
  };
  if (table.memcpy_host_to_array_async == nullptr) return;
  table.memcpy_host_to_array_async = [](CUarray to, std::size_t offset, const void* from,
                                        std::size_t bytes, CUstream stream) -> CUresult {
    return copy_bytes(of_array(to, offset), of_host(from), bytes, stream, [=] {
      return active()->base.memcpy_host_to_array_async(to, offset, from, bytes, stream);
    });
  };
  table.memcpy_array_to_host_async = [](void* to, CUarray from, std::size_t offset,
                                        std::size_t bytes, CUstream stream) -> CUresult {
    return copy_bytes(of_host(to), of_array(from, offset), bytes, stream, [=] {
      return active()->base.memcpy_array_to_host_async(to, from, offset, bytes, stream);
    });
  };
}

void replace_batches(Table& table) {
  if (table.memcpy_batch_async == nullptr || table.memcpy_3d_batch_async == nullptr) return;
  table.memcpy_batch_async = [](CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes,
                                std::size_t count, CUmemcpyAttributes* attributes,
                                std::size_t* first_copies, std::size_t num_attributes,
                                CUstream stream) -> CUresult {
    return copy_batch(
        stream,
        [=](const Recorder& all, std::vector<CopyWork>& works) {
          // The driver refuses null pointers.
          const bool known = to != nullptr && from != nullptr && sizes != nullptr;
          for (std::size_t i = 0; known && i < count; ++i) {
            works.push_back(linear_copy(all, CU_MEMORYTYPE_UNIFIED, to[i], CU_MEMORYTYPE_UNIFIED,
                                        from[i], sizes[i]));
          }
          return true;
        },
        [=] {
          return active()->base.memcpy_batch_async(to, from, sizes, count, attributes, first_copies,
                                                   num_attributes, stream);
        });
  };
  table.memcpy_3d_batch_async = [](std::size_t count, CUDA_MEMCPY3D_BATCH_OP* copies,
                                   unsigned long long flags, CUstream stream) -> CUresult {
    return copy_batch(
        stream,
        [=](const Recorder& all, std::vector<CopyWork>& works) {
          for (std::size_t i = 0; copies != nullptr && i < count; ++i) {
            CopyWork& work = works.emplace_back();
            if (!side_of(all, copies[i].dst, copies[i].extent, work.to) ||
                !side_of(all, copies[i].src, copies[i].extent, work.from)) {
              return false;
            }
          }
          return true;
        },
        [=] { return active()->base.memcpy_3d_batch_async(count, copies, flags, stream); });
  };
}

CUresult fill_in(CUstream stream, CUdeviceptr to, std::uint32_t value, std::uint32_t element_bytes,
                 std::size_t width, std::size_t height, std::size_t pitch, const Call& call) {
  return entry([&]() -> CUresult {
    FillStep step;
    step.to = {to,    width * element_bytes, height, 1, pitch != 0 ? pitch : width * element_bytes,
               height};
    step.value = value;
    step.element_bytes = element_bytes;
    const CallScope scope(stream);
    if (scope.captured()) {
      const CUresult result = call();
      const std::lock_guard lock(scope.recorder().mutex);
      if (result == CUDA_SUCCESS) captured(scope.recorder(), stream, FillWork{step});
      return result;
    }
    if (scope.records()) return record_fill(scope, step, call);
    scope.pass_on();
    return call();
  });
}

void replace_linear_copies(Table& table) {
  constexpr auto kHost = CU_MEMORYTYPE_HOST;
  constexpr auto kDevice = CU_MEMORYTYPE_DEVICE;
  table.memcpy_to_device = [](CUdeviceptr to, const void* from, std::size_t bytes) -> CUresult {
    return copy_linear(kDevice, to, kHost, number(from), bytes, nullptr,
                       [=] { return active()->base.memcpy_to_device(to, from, bytes); });
  };
  table.memcpy_to_host = [](void* to, CUdeviceptr from, std::size_t bytes) -> CUresult {
    return copy_linear(kHost, number(to), kDevice, from, bytes, nullptr,
                       [=] { return active()->base.memcpy_to_host(to, from, bytes); });
  };
  table.memcpy_within_device = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes) -> CUresult {
    return copy_linear(kDevice, to, kDevice, from, bytes, nullptr,
                       [=] { return active()->base.memcpy_within_device(to, from, bytes); });
  };
  table.memcpy_to_device_async = [](CUdeviceptr to, const void* from, std::size_t bytes,
                                    CUstream stream) -> CUresult {
    return copy_linear(kDevice, to, kHost, number(from), bytes, stream, [=] {
      return active()->base.memcpy_to_device_async(to, from, bytes, stream);
    });
  };
  table.memcpy_to_host_async = [](void* to, CUdeviceptr from, std::size_t bytes,
                                  CUstream stream) -> CUresult {
    return copy_linear(kHost, number(to), kDevice, from, bytes, stream, [=] {
      return active()->base.memcpy_to_host_async(to, from, bytes, stream);
    });
  };
  table.memcpy_within_device_async = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                        CUstream stream) -> CUresult {
    return copy_linear(kDevice, to, kDevice, from, bytes, stream, [=] {
      return active()->base.memcpy_within_device_async(to, from, bytes, stream);
    });
  };
}

void replace_unified_copies(Table& table) {
  constexpr auto kUnified = CU_MEMORYTYPE_UNIFIED;
  if (table.memcpy_unified == nullptr) return;
  table.memcpy_unified = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes) -> CUresult {
    return copy_linear(kUnified, to, kUnified, from, bytes, nullptr,
                       [=] { return active()->base.memcpy_unified(to, from, bytes); });
  };
  table.memcpy_unified_async = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                  CUstream stream) -> CUresult {
    return copy_linear(kUnified, to, kUnified, from, bytes, stream, [=] {
      return active()->base.memcpy_unified_async(to, from, bytes, stream);
    });
  };
}

void replace_copies_of_rows(Table& table) {
  if (table.memcpy_2d == nullptr) return;
  table.memcpy_2d = [](const CUDA_MEMCPY2D* copy) -> CUresult {
    return copy_2d(copy, nullptr, [=] { return active()->base.memcpy_2d(copy); });
  };
  table.memcpy_2d_unaligned = [](const CUDA_MEMCPY2D* copy) -> CUresult {
    return copy_2d(copy, nullptr, [=] { return active()->base.memcpy_2d_unaligned(copy); });
  };
  table.memcpy_2d_async = [](const CUDA_MEMCPY2D* copy, CUstream stream) -> CUresult {
    return copy_2d(copy, stream, [=] { return active()->base.memcpy_2d_async(copy, stream); });
  };
  table.memcpy_3d = [](const CUDA_MEMCPY3D* copy) -> CUresult {
    return copy_3d(copy, nullptr, [=] { return active()->base.memcpy_3d(copy); });
  };
  table.memcpy_3d_async = [](const CUDA_MEMCPY3D* copy, CUstream stream) -> CUresult {
    return copy_3d(copy, stream, [=] { return active()->base.memcpy_3d_async(copy, stream); });
  };
}

template <auto Member, class Value>
CUresult fill_now(CUdeviceptr to, Value value, std::size_t count) {
  return fill_in(nullptr, to, value, sizeof(Value), count, 1, 0,
                 [=] { return (active()->base.*Member)(to, value, count); });
}

template <auto Member, class Value>
CUresult fill_later(CUdeviceptr to, Value value, std::size_t count, CUstream stream) {
  return fill_in(stream, to, value, sizeof(Value), count, 1, 0,
                 [=] { return (active()->base.*Member)(to, value, count, stream); });
}

template <auto Member, class Value>
CUresult fill_rows_now(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,
                       std::size_t height) {
  return fill_in(nullptr, to, value, sizeof(Value), width, height, pitch,
                 [=] { return (active()->base.*Member)(to, pitch, value, width, height); });
}

template <auto Member, class Value>
CUresult fill_rows_later(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,
                         std::size_t height, CUstream stream) {
  return fill_in(stream, to, value, sizeof(Value), width, height, pitch,
                 [=] { return (active()->base.*Member)(to, pitch, value, width, height, stream); });
}

template <class... Parameters>
void replace(CUresult (*&function)(Parameters...), CUresult (*by)(Parameters...)) {
  if (function != nullptr) function = by;
}

void replace_fills(Table& table) {
  using Byte = unsigned char;
  using Half = unsigned short;
  replace(table.memset_d8, &fill_now<&Table::memset_d8, Byte>);
  replace(table.memset_d16, &fill_now<&Table::memset_d16, Half>);
  replace(table.memset_d32, &fill_now<&Table::memset_d32, unsigned>);
  replace(table.memset_d8_async, &fill_later<&Table::memset_d8_async, Byte>);
  replace(table.memset_d16_async, &fill_later<&Table::memset_d16_async, Half>);
  replace(table.memset_d32_async, &fill_later<&Table::memset_d32_async, unsigned>);
  replace(table.memset_2d_d8, &fill_rows_now<&Table::memset_2d_d8, Byte>);
  replace(table.memset_2d_d16, &fill_rows_now<&Table::memset_2d_d16, Half>);
  replace(table.memset_2d_d32, &fill_rows_now<&Table::memset_2d_d32, unsigned>);
  replace(table.memset_2d_d8_async, &fill_rows_later<&Table::memset_2d_d8_async, Byte>);
  replace(table.memset_2d_d16_async, &fill_rows_later<&Table::memset_2d_d16_async, Half>);
  replace(table.memset_2d_d32_async, &fill_rows_later<&Table::memset_2d_d32_async, unsigned>);
}

}  // namespace

Work copy_work(const Recorder& recorder, const CUDA_MEMCPY3D& copy) {
  CopyWork work;
  return copy_of_3d(recorder, copy, work) ? Work(work) : Work();
}

static void write_copy_step(Recorder& all, const CopyWork& copy, bool in_graph) {
  const bool to_device = copy.to.kind == CU_MEMORYTYPE_DEVICE;
  const bool from_device = copy.from.kind == CU_MEMORYTYPE_DEVICE;
  if (to_device && from_device) {
    all.sink.write(CopyStep{copy.to.rows, copy.from.rows});
  } else if (to_device) {
    all.sink.write(WriteStep{copy.to.rows, all.sink.keep(packed(copy.from.rows)), false});
  } else if (from_device) {
    all.sink.write(ReadStep{copy.from.rows, to_hex(hash128(packed(copy.to.rows)))});
  }
  if (to_device && !in_graph) (void)all.shadow.refresh(copy.to.rows);
}

/// A copy that is done, as steps.
static void write_copy(Recorder& all, const CopyWork& copy, bool in_graph = false) {
  if (is_empty(copy.to.rows)) return;
  std::vector<const StepRows*> sides;
  for (const Side* const side : {&copy.to, &copy.from}) {
    if (side->kind == CU_MEMORYTYPE_DEVICE) sides.push_back(&side->rows);
  }
  write_by_region(all, sides, [&](const Part* part) {
    CopyWork one = copy;
    if (part != nullptr) {
      one.to.rows = part->of(copy.to.rows);
      one.from.rows = part->of(copy.from.rows);
    }
    write_copy_step(all, one, in_graph);
  });
}

CUresult record_copies(const CallScope& scope, std::span<const CopyWork> copies, const Call& call) {
  Recorder& all = scope.recorder();
  const auto reads = [](const CopyWork& copy) { return copy.from.kind == CU_MEMORYTYPE_DEVICE; };
  if (std::ranges::any_of(copies, reads)) all.catch_up();
  const CUresult result = call();
  const auto empty = [](const CopyWork& copy) { return is_empty(copy.to.rows); };
  if (result != CUDA_SUCCESS || std::ranges::all_of(copies, empty)) return result;
  if (const CUresult waited = scope.wait()) {
    all.lost(waited);
    return result;
  }
  for (const CopyWork& copy : copies) write_copy(all, copy);
  return result;
}

CUresult record_copy(const CallScope& scope, const CopyWork& copy, const Call& call) {
  return record_copies(scope, {&copy, 1}, call);
}

static void write_fill(Recorder& all, const FillStep& fill, bool in_graph) {
  if (is_empty(fill.to)) return;
  write_by_region(all, {&fill.to}, [&](const Part* part) {
    FillStep one = fill;
    if (part != nullptr) one.to = part->of(fill.to);
    all.sink.write(one);
    if (!in_graph) (void)all.shadow.refresh(one.to);
  });
}

void write_in_graph(Recorder& all, const CopyWork& copy) { write_copy(all, copy, true); }

void write_in_graph(Recorder& all, const FillStep& fill) { write_fill(all, fill, true); }

CUresult record_fill(const CallScope& scope, const FillStep& fill, const Call& call) {
  Recorder& all = scope.recorder();
  const CUresult result = call();
  if (result != CUDA_SUCCESS || is_empty(fill.to)) return result;
  if (const CUresult waited = scope.wait()) {
    all.lost(waited);
    return result;
  }
  write_fill(all, fill, false);
  return result;
}

void replace_copies(Table& table) {
  replace_linear_copies(table);
  replace_unified_copies(table);
  replace_copies_of_rows(table);
  replace_array_copies(table);
  replace_batches(table);
  replace_fills(table);
}

}  // namespace ptxgen::inline v0::driver::recorder
