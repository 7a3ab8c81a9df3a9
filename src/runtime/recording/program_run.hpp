// src/runtime/recording/program_run.hpp - the replay of a recorded program
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "driver/recorder/array_image.hpp"
#include "driver/recorder/shadow.hpp"
#include "ptxgen/runtime/recording/recording.hpp"
#include "runtime/device/core.hpp"

// The names of steps and of the driver are those of this namespace.
namespace ptxgen::inline v0::driver::replayed {

using recorder::ArrayImage;
using recorder::Change;
using recorder::CopyPlace;
using recorder::Region;
using recorder::Shadow;

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

/// Runs the steps of a recording and compares what launches change. program_replay.cpp, and
/// program_memory.cpp for memory of every kind.
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
  void operator()(const GraphMemoryStep& step);
  void operator()(const BeginGraphStep& step);
  void operator()(const EndGraphStep& step);
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
  [[nodiscard]] CUdeviceptr allocate_in_graph(const AllocateStep& step) const;
  void refresh(const StepRows& rows, const char* call);
  void release(const Placed& placed) const noexcept;
  void write_rows(const StepRows& to, std::span<const std::byte> packed);
  void write_array(const Region& region, const StepRows& to, std::span<const std::byte> packed);
  [[nodiscard]] std::vector<std::byte> read_rows(const StepRows& from) const;
  [[nodiscard]] CopyPlace place_of(const StepRows& rows) const;
  [[nodiscard]] CUfunction function(std::uint64_t module, const std::string& kernel) const;
  [[nodiscard]] std::vector<std::byte> arguments(const LaunchStep& step) const;
  void flip();
  void compare(const std::vector<StepOutput>& recorded_outputs, const std::string& name);
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
  /// An allocation node, alone in a graph whose launch allocates.
  struct GraphMemory {
    std::uint64_t bytes = 0;
    CUdeviceptr address = 0;
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
  };
  std::map<std::uint64_t, GraphMemory> graph_memory_;  ///< by recorded address
  bool in_graph_ = false;
  /// Texture and surface objects: `ObjectStep::surface` and recorded handle -> handle.
  std::map<std::pair<bool, std::uint64_t>, unsigned long long> objects_;
  std::map<std::uint64_t, std::size_t> buffers_;  ///< recorded address -> of Recording::buffers
  std::size_t next_buffer_ = 0;
  std::size_t step_ = 0;
  bool stopped_ = false;
  Replay result_;
  std::vector<std::string> hashes_;
};

}  // namespace ptxgen::inline v0::driver::replayed
