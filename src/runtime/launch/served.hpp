// src/runtime/launch/served.hpp - what serves a call of a family, by shape
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/description.hpp"
#include "ptxgen/runtime/cache/module_cache.hpp"
#include "runtime/launch/routine.hpp"

namespace ptxgen::inline v0 {

/// A kernel with everything about its launch that does not depend on the operands.
struct Launchable {
  const KernelDescription* kernel = nullptr;
  const void* spec = nullptr;
  void (*pack)(const void* spec, const void* operands, std::uint64_t workspace,
               std::byte* block) = nullptr;
  HashedKey key;
  LaunchGeometry geometry;  ///< programmatic if the kernel can be
  WorkspaceNeed need;
  /// Within the device's limits, without launch attributes, and the same at every launch: the
  /// geometry is checked once per load. Only what a family chose.
  bool fits = false;
  std::string_view implementation;
  std::string_view reason;
};

/// What serves the calls of one shape.
struct Served {
  const KernelFamily* family = nullptr;
  ChoiceKey shape;
  KernelChoice choice;  ///< owner of what `launch` refers to
  Launchable launch;    ///< without a kernel: the family's routine
  FamilyState* state = nullptr;

  [[nodiscard]] bool is(const KernelFamily* of, const ChoiceKey& key) const {
    std::uint64_t different = 0;
    for (std::size_t i = 0; i < key.words.size(); ++i) different |= shape.words[i] ^ key.words[i];
    return different == 0 && family == of;
  }
};

/// Entries live as long as the table.
///
/// Threads: all members from any thread at once; `find` takes no lock.
class ServedCalls {
 public:
  ServedCalls();
  [[nodiscard]] const Served* find(const KernelFamily* family,
                                   const ChoiceKey& shape) const noexcept {
    const Slots& slots = *slots_.load(std::memory_order_acquire);
    for (std::size_t at = hash(family, shape) & slots.mask;; at = (at + 1) & slots.mask) {
      const Served* const entry = slots.at[at].load(std::memory_order_acquire);
      if (entry == nullptr || entry->is(family, shape)) return entry;
    }
  }
  /// Returns the existing entry if another thread was faster.
  const Served& add(std::unique_ptr<const Served> entry);

 private:
  [[nodiscard]] static std::uint64_t hash(const KernelFamily* family,
                                          const ChoiceKey& shape) noexcept {
    std::uint64_t h = reinterpret_cast<std::uintptr_t>(family);
    for (const std::uint64_t word : shape.words) {
      h = (h ^ word) * 0x9e3779b97f4a7c15u;
      h ^= h >> 32;
    }
    return h;
  }
  /// Open addressing, at most half full.
  struct Slots {
    explicit Slots(std::size_t count)
        : mask(count - 1), at(std::make_unique<std::atomic<const Served*>[]>(count)) {}
    void put(const Served& entry) const noexcept;
    std::size_t mask;
    std::unique_ptr<std::atomic<const Served*>[]> at;
  };
  std::atomic<const Slots*> slots_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Slots>> all_;  // outgrown ones may still be read
  std::vector<std::unique_ptr<const Served>> entries_;
};

}  // namespace ptxgen::inline v0
