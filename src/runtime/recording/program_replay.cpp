// src/runtime/recording/program_replay.cpp - a recorded program, run again step by step
#include "runtime/recording/program_replay.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "driver/recorder/array_image.hpp"
#include "driver/recorder/repeat.hpp"
#include "driver/recorder/shadow.hpp"
#include "runtime/device/core.hpp"
#include "runtime/recording/outputs.hpp"
#include "runtime/recording/program_json.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

using namespace driver;
using driver::recorder::ArrayImage;
using driver::recorder::Change;
using driver::recorder::CopyPlace;
using driver::recorder::Region;
using driver::recorder::repeat_array;
using driver::recorder::repeat_fill;
using driver::recorder::repeat_launch;
using driver::recorder::repeat_object;
using driver::recorder::Shadow;

/// Memory of the recording, and where it is now. An array keeps its address.
struct Placed {
  std::uint64_t bytes = 0;
  CUdeviceptr address = 0;
  StepMemory memory = StepMemory::Device;
  void* host = nullptr;  ///< of pinned memory
  bool variable = false;
  ArrayImage array;
};

/// The entry of a map from addresses to things with `bytes` that holds an address, or the end.
template <class Map>
auto entry_at(const Map& map, std::uint64_t address) {
  auto after = map.upper_bound(address);
  if (after == map.begin()) return map.end();
  --after;
  return address - after->first < after->second.bytes ? after : map.end();
}

class ProgramRun {
 public:
  ProgramRun(const Context& context, const Recording& recording, const ReplayOptions& options)
      : core_(context.core()),
        current_(core_, Stage::Launch),
        table_(core_.table()),
        recording_(recording),
        options_(options),
        shadow_(table_) {}
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;
  ~ProgramRun();

  Replay run();

  void operator()(const LoadStep& step);
  void operator()(const UnloadStep& step);
  void operator()(const AllocateStep& step);
  void operator()(const FreeStep& step);
  void operator()(const WriteStep& step);
  void operator()(const CopyStep& step);
  void operator()(const FillStep& step);
  void operator()(const ReadStep& step);
  void operator()(const LaunchStep& step);
  void operator()(const VirtualStep& step);
  void operator()(const ObjectStep& step);
  void operator()(const DestroyStep& step);
  void operator()(const AttributeStep& step);
  void operator()(const LimitStep& step);

 private:
  [[nodiscard]] Error bad(const std::string& what) const;
  void check(CUresult result, const char* call) const;
  [[nodiscard]] const std::vector<std::byte>& content(const std::string& hash) const;
  /// The memory of the recording that holds bytes, by its recorded address.
  [[nodiscard]] std::map<std::uint64_t, Placed>::const_iterator find(std::uint64_t address) const;
  [[nodiscard]] StepRows now(const StepRows& recorded) const;
  /// Refuses memory that a damaged recording has twice, or of no bytes.
  void check_new(std::uint64_t recorded, std::uint64_t bytes) const;
  void place(std::uint64_t recorded, const Placed& placed);
  [[nodiscard]] Placed allocate(const AllocateStep& step) const;
  [[nodiscard]] Placed create_array(const AllocateStep& step) const;
  [[nodiscard]] CUdeviceptr reserved(std::uint64_t address, std::uint64_t bytes) const;
  void reserve(const VirtualStep& step);
  void create(const VirtualStep& step);
  void set_access(const VirtualStep& step);
  void release(const Placed& placed) const noexcept;
  void write_rows(const StepRows& to, std::span<const std::byte> packed);
  void write_array(const Region& region, const StepRows& to, std::span<const std::byte> packed);
  [[nodiscard]] std::vector<std::byte> read_rows(const StepRows& from) const;
  [[nodiscard]] CopyPlace place_of(const StepRows& rows) const;
  [[nodiscard]] CUfunction function(std::uint64_t module, const std::string& kernel) const;
  [[nodiscard]] std::vector<std::byte> arguments(const LaunchStep& step) const;
  void flip();
  void compare(const LaunchStep& step);
  void compare_region(const Region& region, const StepOutput* recorded, const Change* found,
                      Divergence& divergence) const;

  const ContextCore& core_;
  const Current current_;
  const Table& table_;
  const Recording& recording_;
  const ReplayOptions& options_;
  Shadow shadow_;
  std::map<std::uint64_t, Placed> memory_;  ///< by recorded address
  struct Module {
    CUmodule handle = nullptr;
    std::vector<std::uint64_t> variables;
  };
  std::map<std::uint64_t, Module> modules_;
  struct Reservation {
    std::uint64_t bytes = 0;
    CUdeviceptr address = 0;
  };
  std::map<std::uint64_t, Reservation> reservations_;              ///< by recorded address
  std::map<std::uint64_t, CUmemGenericAllocationHandle> handles_;  ///< by number
  std::map<CUdeviceptr, std::size_t> mappings_;                    ///< here; bytes
  /// Texture and surface objects: `ObjectStep::surface` and recorded handle -> handle.
  std::map<std::pair<bool, std::uint64_t>, unsigned long long> objects_;
  std::map<std::uint64_t, std::size_t> buffers_;  ///< recorded address -> of Recording::buffers
  std::size_t next_buffer_ = 0;
  std::size_t step_ = 0;
  bool stopped_ = false;
  Replay result_;
  std::vector<std::string> hashes_;
};

ProgramRun::~ProgramRun() {
  for (const auto& [object, handle] : objects_) {
    (void)(object.first ? table_.surf_object_destroy : table_.tex_object_destroy)(handle);
  }
  for (const auto& [number, module] : modules_) (void)table_.module_unload(module.handle);
  for (const auto& [address, placed] : memory_) release(placed);
  for (const auto& [address, bytes] : mappings_) (void)table_.mem_unmap(address, bytes);
  for (const auto& [number, handle] : handles_) (void)table_.mem_release(handle);
  for (const auto& [recorded, one] : reservations_) {
    (void)table_.mem_address_free(one.address, static_cast<std::size_t>(one.bytes));
  }
}

Error ProgramRun::bad(const std::string& what) const {
  return Error(Stage::Launch, "bad-recording", format_text("recording: step {}: {}", step_, what));
}

void ProgramRun::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return;
  throw Error(Stage::Launch, "not-replayed",
              format_text("recording: step {}: {}: {}", step_, call, result_text(table_, result)));
}

const std::vector<std::byte>& ProgramRun::content(const std::string& hash) const {
  const std::vector<std::byte>* const found = find_content(recording_, hash);
  if (found == nullptr) throw bad(format_text("it has no content {}", hash));
  return *found;
}

std::map<std::uint64_t, Placed>::const_iterator ProgramRun::find(std::uint64_t address) const {
  return entry_at(memory_, address);
}

/// The bytes from the first to the last of rows. False if rows overlap, which no copy has, or are
/// beyond all addresses.
bool end_of(const StepRows& rows, std::uint64_t& end) {
  end = rows.width;
  if (rows.width == 0 || rows.height == 0 || rows.depth == 0) return true;
  if ((rows.height > 1 || rows.depth > 1) && rows.pitch < rows.width) return false;
  if (rows.depth > 1 && rows.slice_height < rows.height) return false;
  std::uint64_t last = 0;
  return !__builtin_mul_overflow(rows.depth - 1, rows.slice_height, &last) &&
         !__builtin_add_overflow(last, rows.height - 1, &last) &&
         !__builtin_mul_overflow(last, rows.pitch, &last) &&
         !__builtin_add_overflow(last, rows.width, &end);
}

StepRows ProgramRun::now(const StepRows& recorded) const {
  const auto found = find(recorded.address);
  std::uint64_t end = 0;
  if (!end_of(recorded, end) || found == memory_.end() ||
      end > found->second.bytes - (recorded.address - found->first)) {
    throw bad(format_text("{} x {} x {} bytes at {:#x} are in no memory that was allocated",
                          recorded.width, recorded.height, recorded.depth, recorded.address));
  }
  StepRows moved = recorded;
  moved.address = found->second.address + (recorded.address - found->first);
  return moved;
}

void ProgramRun::check_new(std::uint64_t recorded, std::uint64_t bytes) const {
  if (bytes != 0 && memory_.count(recorded) == 0) return;
  throw bad(
      format_text("{} at {:#x}, where memory is already", count_text(bytes, "byte"), recorded));
}

void ProgramRun::place(std::uint64_t recorded, const Placed& placed) {
  if (next_buffer_ >= recording_.buffers.size()) {
    throw bad(format_text("memory without a name: it has {}",
                          count_text(recording_.buffers.size(), "buffer")));
  }
  if (placed.address != recorded) ++result_.moved;
  memory_[recorded] = placed;
  Region region;
  region.address = placed.address;
  region.array = placed.array;
  region.name = recording_.buffers[next_buffer_].name;
  buffers_[recorded] = next_buffer_++;
  check(shadow_.add(std::move(region), placed.bytes), "cuMemcpyDtoH");
}

Placed ProgramRun::allocate(const AllocateStep& step) const {
  constexpr unsigned kMapped = 2;  // CU_MEMHOSTALLOC_DEVICEMAP
  if (step.memory == StepMemory::Array) return create_array(step);
  Placed placed{step.bytes, 0, step.memory, nullptr, false, {}};
  if (step.memory == StepMemory::Mapped) {
    placed.address = reserved(step.address, step.bytes);
    return placed;
  }
  const auto bytes = static_cast<std::size_t>(step.bytes);
  if (step.memory == StepMemory::Pinned && table_.mem_host_get_device_pointer != nullptr) {
    check(table_.mem_host_alloc(&placed.host, bytes, kMapped), "cuMemHostAlloc");
    check(table_.mem_host_get_device_pointer(&placed.address, placed.host, 0),
          "cuMemHostGetDevicePointer");
    return placed;
  }
  if (step.memory == StepMemory::Managed && table_.mem_alloc_managed != nullptr &&
      table_.mem_alloc_managed(&placed.address, bytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS) {
    return placed;
  }
  if (step.memory == StepMemory::Stream && table_.mem_alloc_async != nullptr &&
      table_.mem_alloc_async(&placed.address, bytes, nullptr) == CUDA_SUCCESS) {
    check(table_.stream_synchronize(nullptr), "cuStreamSynchronize");
    return placed;
  }
  placed.memory = StepMemory::Device;
  check(table_.mem_alloc(&placed.address, bytes), "cuMemAlloc");
  return placed;
}

Placed ProgramRun::create_array(const AllocateStep& step) const {
  Placed placed{step.bytes, step.address, step.memory, nullptr, false, {}};
  const StepArray& from = step.array;
  if (!recorder::image_of(from, placed.array) || placed.array.bytes() != step.bytes ||
      step.address < kFirstArrayAddress || step.address + step.bytes < step.address) {
    throw bad(format_text(
        "an array of {} x {} x {} elements of format {} with {}, with {} at {:#x}", from.width,
        from.height, from.depth, from.format, count_text(from.channels, "channel"),
        count_text(step.bytes, "byte"), step.address));
  }
  check(repeat_array(table_, from, placed.array.handle), "cuArray3DCreate");
  return placed;
}

void ProgramRun::release(const Placed& placed) const noexcept {
  if (placed.variable || placed.memory == StepMemory::Mapped) return;
  if (placed.array.handle != nullptr) {
    (void)table_.array_destroy(placed.array.handle);
    return;
  }
  if (placed.host != nullptr) {
    (void)table_.mem_free_host(placed.host);
  } else if (placed.memory == StepMemory::Stream) {
    (void)table_.mem_free_async(placed.address, nullptr);
    (void)table_.stream_synchronize(nullptr);
  } else {
    (void)table_.mem_free(placed.address);
  }
}

void ProgramRun::write_rows(const StepRows& to, std::span<const std::byte> packed) {
  if (packed.size() != to.width * to.height * to.depth) {
    throw bad(format_text("content of {} for rows of {}", count_text(packed.size(), "byte"),
                          to.width * to.height * to.depth));
  }
  const Region* const region = shadow_.find(to.address);
  if (region != nullptr && region->is_array()) return write_array(*region, to, packed);
  for (std::uint64_t z = 0; z < to.depth; ++z) {
    for (std::uint64_t y = 0; y < to.height; ++y) {
      const auto row = packed.first(static_cast<std::size_t>(to.width));
      check(table_.memcpy_to_device(to.address + (z * to.slice_height + y) * to.pitch, row.data(),
                                    row.size()),
            "cuMemcpyHtoD");
      packed = packed.subspan(row.size());
    }
  }
  check(shadow_.refresh(to), "cuMemcpyDtoH");
}

// Bytes that are no box of the array, as those that changed without a call, are written with all.
void ProgramRun::write_array(const Region& region, const StepRows& to,
                             std::span<const std::byte> packed) {
  CopyPlace from;
  from.rows = to;
  from.rows.pitch = to.width;
  from.rows.slice_height = to.height;
  from.rows.address = reinterpret_cast<std::uintptr_t>(packed.data());
  CopyPlace box;
  if (recorder::place_in(region.array, to.address - region.address, to, box)) {
    const CUDA_MEMCPY3D copy = recorder::copy_between(box, from);
    check(table_.memcpy_3d(&copy), "cuMemcpy3D");
  } else {
    std::vector<std::byte> all = region.seen;
    std::byte* const first = all.data() + (to.address - region.address);
    for (std::uint64_t i = 0; i < to.height * to.depth; ++i) {
      const std::uint64_t row = i / to.height * to.slice_height + i % to.height;
      std::ranges::copy(packed.subspan(i * to.width, to.width), first + row * to.pitch);
    }
    check(recorder::write_image(table_, region.array, all.data()), "cuMemcpy3D");
  }
  check(shadow_.refresh(to), "cuMemcpy3D");
}

std::vector<std::byte> ProgramRun::read_rows(const StepRows& from) const {
  std::vector<std::byte> packed(static_cast<std::size_t>(from.width * from.height * from.depth));
  std::byte* to = packed.data();
  std::vector<std::byte> all;
  const Region* const region = shadow_.find(from.address);
  if (region != nullptr && region->is_array()) {
    all.resize(region->seen.size());
    check(recorder::read_image(table_, region->array, all.data()), "cuMemcpy3D");
  }
  for (std::uint64_t z = 0; z < from.depth; ++z) {
    for (std::uint64_t y = 0; y < from.height; ++y, to += from.width) {
      const std::uint64_t row = from.address + (z * from.slice_height + y) * from.pitch;
      const auto bytes = static_cast<std::size_t>(from.width);
      if (all.empty()) {
        check(table_.memcpy_to_host(to, row, bytes), "cuMemcpyDtoH");
      } else {
        std::memcpy(to, all.data() + (row - region->address), bytes);
      }
    }
  }
  return packed;
}

CUfunction ProgramRun::function(std::uint64_t module, const std::string& kernel) const {
  const auto found = modules_.find(module);
  if (found == modules_.end()) {
    throw bad(format_text("kernel {} is in module {}, which is not loaded", kernel, module));
  }
  CUfunction function = nullptr;
  check(table_.module_get_function(&function, found->second.handle, kernel.c_str()),
        "cuModuleGetFunction");
  return function;
}

// An integer that is an address or a handle by chance becomes another one where that has changed.
std::vector<std::byte> ProgramRun::arguments(const LaunchStep& step) const {
  std::vector<std::byte> block = step.arguments;
  for (std::size_t at = 0; at + 8 <= block.size() && result_.moved != 0; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, block.data() + at, sizeof word);
    const auto found = find(word);
    if (found != memory_.end()) {
      word = found->second.address + (word - found->first);
    } else if (const auto texture = objects_.find({false, word}); texture != objects_.end()) {
      word = texture->second;
    } else if (const auto surface = objects_.find({true, word}); surface != objects_.end()) {
      word = surface->second;
    } else if (const auto range = entry_at(reservations_, word); range != reservations_.end()) {
      word = range->second.address + (word - range->first);
    }
    std::memcpy(block.data() + at, &word, sizeof word);
  }
  return block;
}

// Rows that begin at an address of this process.
CopyPlace ProgramRun::place_of(const StepRows& rows) const {
  CopyPlace place;
  place.kind = CU_MEMORYTYPE_DEVICE;
  place.rows = rows;
  const Region* const region = shadow_.find(rows.address);
  if (region == nullptr || !region->is_array()) return place;
  if (!recorder::place_in(region->array, rows.address - region->address, rows, place)) {
    throw bad(
        format_text("a copy of bytes of {} that are not whole elements of its rows", region->name));
  }
  return place;
}

// The steps --------------------------------------------------------------------------------------

void ProgramRun::operator()(const LoadStep& step) {
  const std::vector<std::byte>& bytes = content(step.ptx);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (modules_.count(step.module) != 0) {
    throw bad(format_text("module {} is loaded already", step.module));
  }
  Module module;
  check(table_.module_load_data_ex(&module.handle, text.c_str(), 0, nullptr, nullptr),
        "cuModuleLoadDataEx");
  Module& kept = modules_[step.module] = module;
  for (const StepVariable& variable : step.variables) {
    Placed placed{variable.bytes, 0, StepMemory::Device, nullptr, true, {}};
    std::size_t found = 0;
    check(table_.module_get_global(&placed.address, &found, kept.handle, variable.name.c_str()),
          "cuModuleGetGlobal");
    if (found != variable.bytes) {
      throw bad(format_text("variable {} has {} here, and had {}", variable.name,
                            count_text(found, "byte"), variable.bytes));
    }
    check_new(variable.address, variable.bytes);
    if (shadow_.find(placed.address) != nullptr) {
      throw bad(format_text("variable {} is there twice", variable.name));
    }
    kept.variables.push_back(variable.address);
    place(variable.address, placed);
  }
}

void ProgramRun::operator()(const UnloadStep& step) {
  const auto found = modules_.find(step.module);
  if (found == modules_.end()) throw bad(format_text("module {} is not loaded", step.module));
  for (const std::uint64_t address : found->second.variables) {
    shadow_.remove(memory_[address].address);
    memory_.erase(address);
  }
  check(table_.module_unload(found->second.handle), "cuModuleUnload");
  modules_.erase(found);
}

void ProgramRun::operator()(const AllocateStep& step) {
  check_new(step.address, step.bytes);
  const Placed placed = allocate(step);
  place(step.address, placed);
  // As it was in the recorded process: an output contains bytes that no kernel wrote.
  std::vector<std::byte> before;
  if (step.content.empty()) {
    before.assign(static_cast<std::size_t>(step.bytes), std::byte{step.fill});
  } else {
    before = content(step.content);
  }
  if (before == shadow_.find(placed.address)->seen) return;
  write_rows({placed.address, step.bytes, 1, 1, step.bytes, 1}, before);
}

void ProgramRun::operator()(const FreeStep& step) {
  const auto found = memory_.find(step.address);
  if (found == memory_.end()) throw bad(format_text("{:#x} is not allocated", step.address));
  shadow_.remove(found->second.address);
  release(found->second);
  memory_.erase(found);
}

void ProgramRun::operator()(const WriteStep& step) {
  write_rows(now(step.to), content(step.content));
}

void ProgramRun::operator()(const CopyStep& step) {
  const StepRows to = now(step.to);
  const StepRows from = now(step.from);
  if (to.width != from.width || to.height != from.height || to.depth != from.depth) {
    throw bad("a copy between rows of other sizes");
  }
  const CopyPlace to_place = place_of(to);
  const CopyPlace from_place = place_of(from);
  if (to_place.array != nullptr || from_place.array != nullptr) {
    const CUDA_MEMCPY3D copy = recorder::copy_between(to_place, from_place);
    check(table_.memcpy_3d(&copy), "cuMemcpy3D");
    check(shadow_.refresh(to), "cuMemcpy3D");
    return;
  }
  for (std::uint64_t z = 0; z < to.depth; ++z) {
    for (std::uint64_t y = 0; y < to.height; ++y) {
      check(table_.memcpy_within_device(to.address + (z * to.slice_height + y) * to.pitch,
                                        from.address + (z * from.slice_height + y) * from.pitch,
                                        static_cast<std::size_t>(to.width)),
            "cuMemcpyDtoD");
    }
  }
  check(table_.ctx_synchronize(), "cuCtxSynchronize");
  check(shadow_.refresh(to), "cuMemcpyDtoH");
}

void ProgramRun::operator()(const FillStep& step) {
  FillStep here = step;
  here.to = now(step.to);
  check(repeat_fill(table_, here, nullptr), "cuMemsetD8Async");
  check(table_.ctx_synchronize(), "cuCtxSynchronize");
  check(shadow_.refresh(here.to), "cuMemcpyDtoH");
}

void ProgramRun::operator()(const ReadStep& step) {
  const std::string found = hash_text(read_rows(now(step.from)));
  if (found == step.hash || result_.first) return;
  Divergence divergence;
  divergence.frame = hashes_.size();
  divergence.expected = step.hash;
  divergence.found = found;
  const auto placed = find(step.from.address);
  divergence.buffer = recording_.buffers[buffers_[placed->first]].name;
  divergence.offset = step.from.address - placed->first;
  result_.first = divergence;
}

void ProgramRun::operator()(const ObjectStep& step) {
  if (objects_.count({step.surface, step.object}) != 0) {
    throw bad(format_text("object {} exists already", step.object));
  }
  const auto found = find(step.resource.address);
  const bool array = step.resource.kind == StepResource::Kind::Array;
  const bool fits = found != memory_.end() && array == (found->second.array.handle != nullptr) &&
                    (!array || found->first == step.resource.address);
  if (!fits) {
    throw bad(format_text("an object of memory at {:#x}, where there is none of its kind",
                          step.resource.address));
  }
  ObjectStep here = step;
  here.resource.address = found->second.address + (step.resource.address - found->first);
  unsigned long long handle = 0;
  check(repeat_object(table_, here, found->second.array.handle, handle),
        step.surface ? "cuSurfObjectCreate" : "cuTexObjectCreate");
  objects_[{step.surface, step.object}] = handle;
  if (handle != step.object) ++result_.moved;
}

void ProgramRun::operator()(const DestroyStep& step) {
  const auto found = objects_.find({step.surface, step.object});
  if (found == objects_.end()) throw bad(format_text("object {} does not exist", step.object));
  const auto destroy = step.surface ? table_.surf_object_destroy : table_.tex_object_destroy;
  check(destroy(found->second), step.surface ? "cuSurfObjectDestroy" : "cuTexObjectDestroy");
  objects_.erase(found);
}

void ProgramRun::operator()(const AttributeStep& step) {
  check(table_.func_set_attribute(function(step.module, step.kernel),
                                  static_cast<CUfunction_attribute>(step.attribute), step.value),
        "cuFuncSetAttribute");
}

void ProgramRun::operator()(const LimitStep& step) {
  if (table_.ctx_set_limit == nullptr) return;
  check(
      table_.ctx_set_limit(static_cast<CUlimit>(step.limit), static_cast<std::size_t>(step.value)),
      "cuCtxSetLimit");
}

// Virtual memory ---------------------------------------------------------------------------------

// Where bytes of a recorded reservation are now.
CUdeviceptr ProgramRun::reserved(std::uint64_t address, std::uint64_t bytes) const {
  const auto found = entry_at(reservations_, address);
  if (found == reservations_.end() || bytes > found->second.bytes - (address - found->first)) {
    throw bad(format_text("{} at {:#x} are in no reservation", count_text(bytes, "byte"), address));
  }
  return found->second.address + (address - found->first);
}

void ProgramRun::reserve(const VirtualStep& step) {
  if (entry_at(reservations_, step.address) != reservations_.end()) {
    throw bad(format_text("the addresses from {:#x} on are reserved already", step.address));
  }
  Reservation placed{step.bytes, 0};
  check(table_.mem_address_reserve(&placed.address, static_cast<std::size_t>(step.bytes),
                                   static_cast<std::size_t>(step.value), step.address, 0),
        "cuMemAddressReserve");
  reservations_[step.address] = placed;
}

void ProgramRun::create(const VirtualStep& step) {
  if (handles_.count(step.handle) != 0) {
    throw bad(format_text("memory handle {} exists already", step.handle));
  }
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  check(table_.ctx_get_device(&properties.location.id), "cuCtxGetDevice");
  CUmemGenericAllocationHandle handle = 0;
  check(table_.mem_create(&handle, static_cast<std::size_t>(step.bytes), &properties, 0),
        "cuMemCreate");
  handles_[step.handle] = handle;
}

void ProgramRun::set_access(const VirtualStep& step) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  check(table_.ctx_get_device(&access.location.id), "cuCtxGetDevice");
  access.flags = static_cast<CUmemAccess_flags>(step.value);
  check(table_.mem_set_access(reserved(step.address, step.bytes),
                              static_cast<std::size_t>(step.bytes), &access, 1),
        "cuMemSetAccess");
}

void ProgramRun::operator()(const VirtualStep& step) {
  using Kind = VirtualStep::Kind;
  if (table_.mem_create == nullptr) check(CUDA_ERROR_NOT_SUPPORTED, "cuMemCreate");
  if (step.kind == Kind::Reserve) return reserve(step);
  if (step.kind == Kind::Create) return create(step);
  if (step.kind == Kind::Access) return set_access(step);
  const bool of_handle = step.kind == Kind::Release || step.kind == Kind::Map;
  const auto handle = handles_.find(step.handle);
  if (of_handle && handle == handles_.end()) {
    throw bad(format_text("memory handle {} does not exist", step.handle));
  }
  if (step.kind == Kind::Release) {
    check(table_.mem_release(handle->second), "cuMemRelease");
    handles_.erase(handle);
    return;
  }
  const CUdeviceptr address = reserved(step.address, step.bytes);
  const auto bytes = static_cast<std::size_t>(step.bytes);
  if (step.kind == Kind::Map) {
    check(table_.mem_map(address, bytes, 0, handle->second, 0), "cuMemMap");
    mappings_[address] = bytes;
  } else if (step.kind == Kind::Unmap) {
    check(table_.mem_unmap(address, bytes), "cuMemUnmap");
    mappings_.erase(mappings_.lower_bound(address), mappings_.lower_bound(address + bytes));
  } else {
    check(table_.mem_address_free(address, bytes), "cuMemAddressFree");
    reservations_.erase(step.address);
  }
}

// Launches ---------------------------------------------------------------------------------------

void ProgramRun::flip() {
  if (!options_.flip || options_.flip->frame != hashes_.size()) return;
  for (const auto& [address, placed] : memory_) {
    if (buffers_[address] != options_.flip->buffer) continue;
    const CUdeviceptr at = placed.address + options_.flip->bit / 8;
    std::byte byte = read_rows({at, 1, 1, 1, 1, 1}).front();
    byte ^= std::byte{1} << (options_.flip->bit % 8);
    write_rows({at, 1, 1, 1, 1, 1}, {&byte, 1});
    return;
  }
  throw bad(
      format_text("buffer {} is not allocated at launch {}, where a bit of it is to be "
                  "inverted",
                  recording_.buffers[options_.flip->buffer].name, hashes_.size()));
}

void ProgramRun::operator()(const LaunchStep& step) {
  flip();
  check(repeat_launch(table_, function(step.module, step.kernel), step, arguments(step), nullptr),
        "cuLaunchKernel");
  const CUresult result = table_.stream_synchronize(nullptr);
  if (result != CUDA_SUCCESS) {
    result_.failure = "device-fault: " + result_name(result);
    stopped_ = true;
    return;
  }
  compare(step);
  stopped_ = !step.failure.empty() || hashes_.size() > options_.last_launch;
}

// Each region that a launch changed, now or when it was recorded.
void ProgramRun::compare(const LaunchStep& step) {
  std::vector<Change> changes;
  check(shadow_.look(false, changes), "cuMemcpyDtoH");
  std::vector<StepOutput> outputs;
  Divergence divergence;
  for (const auto& memory : memory_) {
    // Lambdas do not take structured bindings (clang 14).
    const auto recorded = memory.first;
    const auto& placed = memory.second;
    const Region& region = *shadow_.find(placed.address);
    const auto found = std::ranges::find(changes, &region, &Change::region);
    const Change* const change = found == changes.end() ? nullptr : &*found;
    const auto before = std::ranges::find_if(
        step.outputs, [&](const StepOutput& one) { return one.address - recorded < placed.bytes; });
    const StepOutput* const output = before == step.outputs.end() ? nullptr : &*before;
    if (change != nullptr) {
      outputs.push_back(
          {recorded + change->begin, change->end - change->begin, hash_text(change->bytes())});
    }
    const bool same = change == nullptr
                          ? output == nullptr
                          : output != nullptr && output->address == outputs.back().address &&
                                output->bytes == outputs.back().bytes &&
                                output->hash == outputs.back().hash;
    if (same || !divergence.buffer.empty()) continue;
    divergence.buffer = recording_.buffers[buffers_[recorded]].name;
    if (output != nullptr) {
      divergence.expected = output->hash;
      divergence.was_first = output->address - recorded;
      divergence.was_end = divergence.was_first + output->bytes;
    }
    if (change != nullptr) divergence.found = outputs.back().hash;
    compare_region(region, output, change, divergence);
  }
  divergence.frame = hashes_.size();
  divergence.kernel = step.kernel;
  hashes_.push_back(to_hex(hash128(text_of_outputs(outputs))));
  if (divergence.buffer.empty()) return;
  ++result_.differing_launches;
  if (!result_.first) result_.first = std::move(divergence);
}

// Bytes outside of what the launch changed are as before it, in the recording, too.
void ProgramRun::compare_region(const Region& region, const StepOutput* recorded,
                                const Change* found, Divergence& divergence) const {
  if (found != nullptr) {
    divergence.first = found->begin;
    divergence.end = found->end;
  }
  std::vector<std::byte> expected = region.seen;
  if (found != nullptr) {
    std::ranges::copy(found->before, expected.begin() + static_cast<std::ptrdiff_t>(found->begin));
  }
  if (recorded != nullptr) {
    const std::vector<std::byte>* const kept = find_content(recording_, recorded->hash);
    const bool fits =
        kept != nullptr && kept->size() == recorded->bytes && divergence.was_end <= expected.size();
    if (!fits) return;
    std::ranges::copy(*kept, expected.begin() + static_cast<std::ptrdiff_t>(divergence.was_first));
  }
  for (std::size_t i = expected.size(); i-- > 0;) {
    if (expected[i] == region.seen[i]) continue;
    ++divergence.differing;
    divergence.offset = i;
    divergence.expected_byte = expected[i];
    divergence.found_byte = region.seen[i];
  }
}

Replay ProgramRun::run() {
  for (step_ = 0; step_ < recording_.steps.size() && !stopped_; ++step_) {
    std::visit(*this, recording_.steps[step_]);
  }
  result_.frames = hashes_.size();
  result_.hash = hash_of(hashes_);
  const bool all = hashes_.size() == recording_.frame_hashes.size() || stopped_;
  const bool cut = options_.last_launch < recording_.frame_hashes.size();
  const std::string_view expected = cut ? std::string_view() : recording_.failure;
  const auto kind = [](std::string_view failure) { return failure.substr(0, failure.find(':')); };
  result_.same = all && !result_.first && kind(result_.failure) == kind(expected);
  return std::move(result_);
}

std::string range_text(std::uint64_t first, std::uint64_t end) {
  return first == end ? std::string("nothing") : format_text("bytes {} to {}", first, end - 1);
}

}  // namespace

Replay replay_program(const Context& context, const Recording& recording,
                      const ReplayOptions& options) {
  return ProgramRun(context, recording, options).run();
}

std::string program_text_of(const Divergence& divergence) {
  if (divergence.kernel.empty()) {
    return format_text(
        "after {}: the program reads other bytes of {}, from byte {}: their hash is {}, and was {}",
        count_text(divergence.frame, "launch"), divergence.buffer, divergence.offset,
        divergence.found, divergence.expected);
  }
  std::string text = format_text("launch {} ({}): ", divergence.frame, divergence.kernel);
  if (divergence.differing != 0) {
    return text + format_text("{} of {} {}, the first is byte {}: {:02x}, and was {:02x}",
                              count_text(divergence.differing, "byte"), divergence.buffer,
                              count_verb(divergence.differing, "differs", "differ"),
                              divergence.offset, std::to_integer<unsigned>(divergence.found_byte),
                              std::to_integer<unsigned>(divergence.expected_byte));
  }
  return text + format_text(
                    "it changes {} of {} (hash {}), and changed {} (hash {}); the recording "
                    "has no more than their hash",
                    range_text(divergence.first, divergence.end), divergence.buffer,
                    divergence.found.empty() ? "none" : divergence.found,
                    range_text(divergence.was_first, divergence.was_end),
                    divergence.expected.empty() ? "none" : divergence.expected);
}

}  // namespace ptxgen::inline v0
