// src/runtime/launch/planned_gemv.hpp - GEMV plans of a launcher, by problem
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/runtime/cache/module_cache.hpp"
#include "ptxgen/runtime/launch/gemv_operands.hpp"
#include "runtime/device/workspace.hpp"

namespace ptxgen::inline v0 {

/// The lookup key of a problem with the alignments of the addresses: three 64-bit words.
struct GemvShape {
  std::uint64_t sizes = 0;
  std::uint64_t lda = 0;  ///< 0 for tight rows
  std::uint64_t rest = 0;
  friend bool operator==(const GemvShape&, const GemvShape&) = default;
  [[nodiscard]] std::uint64_t hash() const noexcept {
    std::uint64_t h = sizes * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32 ^ rest) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 29 ^ lda) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
  }
};

/// log2 of the alignment of an address, or of several that were combined by `or`; at most 4.
[[nodiscard]] constexpr std::uint64_t alignment_log2(std::uint64_t addresses) noexcept {
  return static_cast<std::uint64_t>(std::countr_zero(addresses | 16));
}

/// Addresses are those of a, of x, and of y, bias and residual together.
[[nodiscard]] inline GemvShape shape_of(const GemvProblem& p, std::uint64_t a, std::uint64_t x,
                                        std::uint64_t y) noexcept {
  const std::uint32_t row = p.layout == GemvLayout::T ? p.n : p.k;
  const auto bit = [](bool value, unsigned at) { return std::uint64_t{value} << at; };
  const auto type = [](GemvType value, unsigned at) {
    return static_cast<std::uint64_t>(value) << at;
  };
  return {std::uint64_t{p.k} << 32 | p.n, p.lda == row ? 0 : p.lda,
          bit(p.layout == GemvLayout::R, 0) | type(p.weights, 1) | type(p.x, 3) | type(p.y, 5) |
              bit(p.scaled, 7) | bit(p.bias, 8) | bit(p.residual, 9) | alignment_log2(a) << 10 |
              alignment_log2(x) << 13 | alignment_log2(y) << 16};
}

/// The problem in normal form: `lda` is 0 for tight rows, alignments are those of the addresses.
[[nodiscard]] GemvProblem normalised(GemvProblem problem, std::uint64_t a, std::uint64_t x,
                                     std::uint64_t y) noexcept;

/// A plan with the constant data of its launches.
struct PlannedGemv {
  GemvShape shape;
  GemvPlan plan;
  std::unique_ptr<const std::string> why;  ///< owner of `reason` if it is not a literal
  std::string_view reason;
  std::string_view implementation;  ///< a literal
  LaunchGeometry geometry;          ///< not programmatic
  ModuleKey key;
  WorkspaceNeed need;
  /// Within the device's limits and without launch attributes: launches are not checked.
  bool plain = false;
};

/// Plans by problem. Entries live as long as the table.
///
/// Threads: all members from any thread at once; `find` takes no lock.
class PlannedGemvs {
 public:
  PlannedGemvs();
  [[nodiscard]] const PlannedGemv* find(const GemvShape& shape) const noexcept {
    const Slots& slots = *slots_.load(std::memory_order_acquire);
    for (std::size_t at = shape.hash() & slots.mask;; at = (at + 1) & slots.mask) {
      const PlannedGemv* const entry = slots.at[at].load(std::memory_order_acquire);
      if (entry == nullptr || entry->shape == shape) return entry;
    }
  }
  /// Returns the existing entry if another thread was faster.
  const PlannedGemv& add(std::unique_ptr<const PlannedGemv> entry);

 private:
  /// Open addressing, at most half full.
  struct Slots {
    explicit Slots(std::size_t count)
        : mask(count - 1), at(std::make_unique<std::atomic<const PlannedGemv*>[]>(count)) {}
    void put(const PlannedGemv& entry) const noexcept;
    std::size_t mask;
    std::unique_ptr<std::atomic<const PlannedGemv*>[]> at;
  };
  std::atomic<const Slots*> slots_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Slots>> all_;  // outgrown ones may still be read
  std::vector<std::unique_ptr<const PlannedGemv>> entries_;
};

/// `key` with `values` and `plan` of that plan.
[[nodiscard]] ModuleKey key_of_plan(ModuleKey key, const GemvPlan& plan) noexcept;
/// All but `shape` and the reason, for a device of these limits. Throws as Gemv::geometry.
[[nodiscard]] PlannedGemv planned_gemv(const GemvPlan& plan, const ModuleKey& key,
                                       const DeviceLimits& limits);

}  // namespace ptxgen::inline v0
