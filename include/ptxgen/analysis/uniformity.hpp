// ptxgen/analysis/uniformity.hpp - which values and branches agree between threads
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/analysis/cfg.hpp"
#include "ptxgen/analysis/registers.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::analysis {

/// Between which threads something agrees; each level implies those before it.
enum class Agreement : std::uint8_t {
  None,   ///< lanes of a warp may differ
  Warp,   ///< the lanes of a warp agree
  Block,  ///< the threads of a block (CTA) agree
  Grid,   ///< all threads agree
};

[[nodiscard]] std::string_view to_string(Agreement agreement) noexcept;

struct UniformityOptions {
  /// Threads of a block in x, y, z; zeros if it is not known. A function's `.reqntid` says it too.
  std::array<std::uint32_t, 3> block{0, 0, 0};
};

/// Which registers hold the same value in threads that execute a statement together, and which
/// branches may therefore part threads. May say less agreement than there is, never more.
///
/// Lanes of a warp execute together what they come to together, where of a warp's parted groups the
/// lowest in `Cfg::order()` runs first and groups at the same statement become one. Where groups
/// are run otherwise, only statements of blocks that are not `may_be_split` keep to this.
///
/// A value agrees as far as what it is computed from, and in a warp where the bits in which its
/// lanes differ are shifted or masked away or do not decide a comparison: `%tid.x / 32` and
/// `%tid.x < 64` where the shape of the block is known, `%laneid & -32`. It does not where threads
/// that a branch parted meet again, if it was written in between, nor behind a loop that threads
/// leave at different times, if it was written in the loop. A register has the least agreement of
/// all its writes. What may differ:
///   - %tid, %laneid, %lanemask_*, %smid, clocks and counters; %tid.y, %tid.z unless the shape of
///     the block makes them agree; %ctaid, %clusterid between blocks; addresses of shared memory
///     between blocks; addresses of local memory;
///   - results of atomics, shuffles, activemask, elect, match.any, matrix instructions, calls;
///   - loads that are volatile, ordered, or from local or unknown memory. Loads of kernel
///     parameters and constants agree as their addresses do. Other loads agree in a warp only, if
///     the address does and lanes cannot have been parted before (`may_be_split`);
///   - votes, reductions and match.all agree in a warp under the same condition; bar.red in a block
///     if the block comes to it together;
///   - parameters and everything read from parameters of a device function;
///   - a register that is never written.
///
/// Keeps no reference to its arguments. Time is near-linear for structured code; beyond a fixed
/// amount of work (hostile graphs), and with instructions outside the op table, it gives up and
/// says None of everything.
class Uniformity {
 public:
  Uniformity() = default;
  Uniformity(const ptx::Module& module, const ptx::Function& function, const Cfg& cfg,
             const RegisterIndex& index, const UniformityOptions& options = {});

  /// By number in the RegisterIndex.
  [[nodiscard]] Agreement of(std::uint32_t reg) const noexcept { return registers_[reg]; }
  /// Whether threads that disagree about a branch may find different writes in the register.
  [[nodiscard]] bool chosen_by_thread(std::uint32_t reg) const noexcept { return chosen_[reg]; }

  /// Of the choice at the end of a block: Grid if there is none. Below Warp it may part the lanes.
  [[nodiscard]] Agreement of_branch(std::uint32_t block) const noexcept { return branches_[block]; }

  /// Whether threads agree that control comes to the block, from the start of the function: the
  /// least of the branches that decide about it (Cfg::deciders). Leaving the function early counts.
  /// Warp means: whole warps come or do not.
  [[nodiscard]] Agreement of_control(std::uint32_t block) const noexcept { return control_[block]; }

  /// Whether lanes that were parted may have met again on the way to the block (so that they may
  /// run it at different times, where threads are scheduled independently). Always so in a device
  /// function, behind and beside calls.
  [[nodiscard]] bool may_be_split(std::uint32_t block) const noexcept { return split_[block]; }

  /// Nothing is said to agree.
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_; }

 private:
  friend class UniformitySolver;
  std::vector<Agreement> registers_, branches_, control_;
  std::vector<bool> chosen_, split_;
  bool gave_up_ = false;
};

/// Agreement of an operand's value (for Memory: of its address).
[[nodiscard]] Agreement agreement(const ptx::Module& module, const ptx::Function& function,
                                  const RegisterIndex& index, const Uniformity& uniformity,
                                  const ptx::Operand& operand,
                                  const UniformityOptions& options = {});

/// A barrier of the block that some of the threads which it waits for may not come to.
struct DivergentBarrier {
  std::uint32_t statement = 0;
  Agreement agreement = Agreement::None;  ///< with which threads come to it
  /// The terminators, by statement, at which threads that disagree part on the way to it; and the
  /// barrier itself if its guard does.
  std::vector<std::uint32_t> deciders;
};

/// `bar` and `barrier` (not bar.warp.sync) under control that a block does not agree on, or, where
/// they name a number of threads, a warp does not agree on. They may be harmless; that none is
/// found proves that all threads come to each barrier together, of those that came to the function.
[[nodiscard]] std::vector<DivergentBarrier> divergent_barriers(const ptx::Function& function,
                                                               const Cfg& cfg,
                                                               const RegisterIndex& index,
                                                               const Uniformity& uniformity);

/// Registers by agreement, and one line for each branch that is not Grid.
[[nodiscard]] std::string to_text(const Uniformity& uniformity, const Cfg& cfg,
                                  const RegisterIndex& index, const ptx::Module& module,
                                  const ptx::Function& function);

}  // namespace ptxgen::inline v0::analysis
