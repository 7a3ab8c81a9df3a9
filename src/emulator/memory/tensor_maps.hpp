// src/emulator/memory/tensor_maps.hpp - tensor maps in memory that kernels change
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// Tensor maps in global memory that instructions of a block have changed. Tensor copies read maps
/// through a proxy of their own, which sees a change after a release by the thread that made it and
/// an acquire of the map by the block (PTX ISA, "Proxies"; the CUDA programming guide, "Usage of a
/// Modified Tensor Map"). Changes by other blocks are not followed.
class ChangedMaps {
 public:
  struct Change {
    std::uint64_t address = 0;
    std::uint32_t statement = kNoIndex;  ///< the last one that changed it
    bool released = false;
    bool acquired = false;
  };

  [[nodiscard]] static ChangedMaps& of(Cta& cta);
  void change(std::uint64_t address, std::uint32_t statement, bool released);
  void release() noexcept;
  void acquire(std::uint64_t address) noexcept;
  /// A change that copies need not see, or nullptr.
  [[nodiscard]] const Change* hidden(std::uint64_t address) const noexcept;

 private:
  std::vector<Change> changes_;
};

/// Forgets all; the block has ended.
void forget_changed_maps(Cta& cta);

/// Reports a tensor copy of the lane that uses a map whose change it need not see.
void check_map_fences(Context& context, const Step& step, unsigned lane, std::uint64_t address);

// Handlers. step.detail is the index in Code::memory.
/// tensormap.replace.
void run_replace_map(Context& context, const Step& step);
/// tensormap.cp_fenceproxy.
void run_copy_map(Context& context, const Step& step);
// fence.proxy.tensormap::generic.release and .acquire.
void run_release_maps(Context& context, const Step& step);
void run_acquire_map(Context& context, const Step& step);

}  // namespace ptxgen::inline v0::emulator
