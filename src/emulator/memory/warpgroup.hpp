// src/emulator/memory/warpgroup.hpp - wgmma instructions of a block that are not carried out
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/matrix/warpgroup.hpp"
#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// The wgmma instructions of a block's warpgroups, four consecutive warps each.
///
/// The four warps of a warpgroup issue one wgmma one after another. It is carried out when one of
/// them waits for its group: it then reads shared memory and the registers of a of all warps, and
/// writes d of all of them. Until a warp has waited, its registers are in flight: an access to them
/// is a finding.
class WarpgroupMatrices {
 public:
  /// One wgmma.mma_async of a warpgroup.
  struct Operation {
    struct Part {  ///< of a warp
      Frame* frame = nullptr;
      std::uint32_t lanes = 0;  ///< 0: not issued yet
    };
    const Step* step = nullptr;
    const MemoryDetail* detail = nullptr;
    std::uint64_t number = 0;  ///< in the block, for race checks
    std::uint64_t a = 0;       ///< descriptors
    std::uint64_t b = 0;
    bool accumulate = false;
    bool valid = true;  ///< its descriptors are
    bool done = false;
    std::array<Part, kWarpgroupWarps> parts;
    std::vector<std::uint32_t> pieces;  ///< of shared memory that it reads
  };
  /// A register that was accessed since the warp's last wgmma.fence.
  struct Touch {
    std::uint32_t statement = kNoIndex;
    bool writes = false;
  };
  struct WarpState {
    std::uint64_t issued = 0;
    std::uint64_t waited = 0;                          ///< operations below it have been waited for
    std::vector<std::uint64_t> committed;              ///< operations before the end of each group
    bool fenced = false;                               ///< has executed a wgmma.fence
    std::unordered_map<std::uint32_t, Touch> touched;  ///< by frame offset
  };
  struct Group {
    std::deque<Operation> operations;
    std::uint64_t first = 0;  ///< number of the first of `operations`
    [[nodiscard]] Operation* find(std::uint64_t number) noexcept {
      if (number < first || number - first >= operations.size()) return nullptr;
      return &operations[number - first];
    }
  };

  explicit WarpgroupMatrices(std::size_t count)
      : groups((count + kWarpgroupWarps - 1) / kWarpgroupWarps), warps(count) {}

  [[nodiscard]] static WarpgroupMatrices& of(Cta& cta);
  [[nodiscard]] Group& group_of(const Warp& warp) { return groups[warp.index / kWarpgroupWarps]; }
  /// The last operation in flight of the warp that has the register in d, or in a (`in_a`).
  [[nodiscard]] const Operation* in_flight(const Warp& warp, std::uint32_t offset, bool& in_a);

  std::vector<Group> groups;
  std::vector<WarpState> warps;
  std::uint64_t numbers = 0;
  std::set<std::pair<std::uint64_t, std::uint64_t>> valid;  ///< descriptors and their use
};

/// Whether a wgmma.wait_group of the warp need not wait for other warps of its warpgroup.
[[nodiscard]] bool can_finish_wait(Context& context, const Step& step);
/// The other warps of the warpgroup, which a wait of the warp waits for.
[[nodiscard]] std::string missing_warps(Context& context, const Step& step);
/// Forgets all; the block has ended.
void forget_matrices(Cta& cta);

/// Carries out an operation for the warps that have issued it.
void carry_out(Context& context, WarpgroupMatrices::Operation& operation);

// Handlers. step.detail is the index in Code::memory.
void run_warpgroup_fence(Context& context, const Step& step);
void run_warpgroup_product(Context& context, const Step& step);
void run_warpgroup_commit(Context& context, const Step& step);
void run_warpgroup_wait(Context& context, const Step& step);
/// Before an instruction that names registers of a wgmma; step.detail is the index in
/// Code::warpgroup_accesses.
void run_warpgroup_access(Context& context, const Step& step);
/// fence.proxy.async.
void run_proxy_fence(Context& context, const Step& step);

}  // namespace ptxgen::inline v0::emulator
