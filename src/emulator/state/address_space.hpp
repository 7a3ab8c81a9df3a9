// src/emulator/state/address_space.hpp - the global memory of an emulated GPU
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/state/machine.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "support/virtual_memory.hpp"

namespace ptxgen::inline v0::emulator {

inline constexpr std::uint64_t kAllocationAlignment = 256;

class GlobalShadow;  // race_shadow.hpp

enum class AllocationKind : std::uint8_t {
  Buffer,    ///< of the host
  Variable,  ///< `.global` of a module
  Constant,  ///< `.const` of a module
  Heap,      ///< malloc of a kernel
};

struct Allocation {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  std::string name;  ///< what findings call it, may be empty
  AllocationKind kind = AllocationKind::Buffer;
  bool read_only = false;
  bool freed = false;
  [[nodiscard]] bool holds(std::uint64_t address) const noexcept { return address - start < bytes; }
};

/// All device memory is one reservation, so that the host address of a byte is one addition; a
/// second one has a bit for each byte, which says whether it was ever written. Around each
/// allocation lie bytes that belong to none; freed ones stay unused until nothing else is left.
///
/// Threads: `allocate` with AllocationKind::Heap, `free`, `find` and `nearest` from any; everything
/// else as emulator::Device says. What `find` returns lives until the next `allocate` of another
/// kind.
class AddressSpace {
 public:
  /// Throws `Error` (Stage::Emulate, code "out-of-memory") if the system gives no addresses at all.
  explicit AddressSpace(const ptx::Gpu& gpu);
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  ~AddressSpace() = default;

  [[nodiscard]] const ptx::Gpu& gpu() const noexcept { return gpu_; }

  /// As Device::allocate. AllocationKind::Constant is read-only from the start. `alignment`: a
  /// power of two, at least kAllocationAlignment.
  [[nodiscard]] std::uint64_t allocate(std::uint64_t bytes, std::string_view name,
                                       AllocationKind kind = AllocationKind::Buffer,
                                       std::uint64_t alignment = kAllocationAlignment);
  /// Moves the reservation to where the device addresses say, so that host(address) is the address
  /// itself. Only before the first allocation. False, and nothing has changed, where that range is
  /// taken: by another AddressSpace, a sanitizer, or the system.
  bool unify() noexcept;
  /// As Device::free.
  void free(std::uint64_t address);
  /// As Device::protect.
  void protect(std::uint64_t address);

  /// The allocation, living or freed, that holds an address, or nullptr.
  [[nodiscard]] const Allocation* find(std::uint64_t address) const;
  /// The allocation, living or freed, whose first or last byte is closest to an address, if that is
  /// less than `within` bytes away; a living one if two are as close.
  [[nodiscard]] const Allocation* nearest(std::uint64_t address, std::uint64_t within) const;
  /// Whether a GPU has memory at these bytes though no allocation holds them all: they lie in pages
  /// (kPageBytes) with a living allocation, to be written with a writable one.
  [[nodiscard]] bool mapped(std::uint64_t address, std::uint64_t bytes, bool writes) const;
  /// Grows whenever an allocation goes: what was found before is to be looked up again.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    return __atomic_load_n(&generation_, __ATOMIC_ACQUIRE);
  }
  [[nodiscard]] const std::uint64_t* generation_word() const noexcept { return &generation_; }

  /// Host address of a device address; only for addresses inside of allocations.
  [[nodiscard]] std::byte* host(std::uint64_t address) const noexcept {
    return data_.data() + (address - kGlobalBase);
  }
  /// The same for `mapped` bytes; what an allocation holds of them becomes written if `writes`.
  [[nodiscard]] std::byte* slack(std::uint64_t address, std::uint64_t bytes, bool writes);
  /// Bit `address - kGlobalBase` says whether the byte was ever written (written_bits.hpp).
  [[nodiscard]] std::uint64_t* written() const noexcept {
    return reinterpret_cast<std::uint64_t*>(written_.data());
  }
  /// Device addresses are kGlobalBase .. kGlobalBase + reserved_bytes().
  [[nodiscard]] std::uint64_t reserved_bytes() const noexcept { return data_.size(); }
  /// Bytes of all living allocations.
  [[nodiscard]] std::uint64_t used_bytes() const;
  /// Beyond it nothing was ever allocated.
  [[nodiscard]] std::uint64_t end() const noexcept { return kGlobalBase + next_; }

  void write(std::uint64_t address, std::span<const std::byte> bytes);
  void read(std::uint64_t address, std::span<std::byte> bytes) const;
  void fill(std::uint64_t address, std::byte value, std::uint64_t bytes);
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  /// Marks bytes as initialised without changing them.
  void mark(std::uint64_t address, std::uint64_t bytes);

  /// Held while 16 bytes are updated as one.
  [[nodiscard]] std::mutex& wide_atomics() const noexcept { return wide_atomics_; }

  /// Who touched which byte last; null until a launch asks for it.
  [[nodiscard]] std::shared_ptr<GlobalShadow>& race_shadow() noexcept { return race_shadow_; }

  /// Of the written-bits, allocation records and race shadow included.
  [[nodiscard]] std::uint64_t overhead_bytes() const noexcept;

 private:
  struct Block {
    std::uint64_t offset = 0;  ///< of the red zone before it
    std::uint64_t bytes = 0;   ///< red zones included
  };
  [[nodiscard]] const Allocation& inside(std::uint64_t address, std::uint64_t bytes,
                                         std::string_view what) const;
  [[nodiscard]] bool place(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t& offset);
  void give_back(std::uint64_t offset, std::uint64_t bytes);
  void recycle_oldest();
  [[nodiscard]] std::size_t after(std::uint64_t address) const noexcept;
  [[noreturn]] void out_of_memory(std::uint64_t bytes, std::string_view name) const;

  ptx::Gpu gpu_;
  VirtualMemory data_;
  VirtualMemory written_;
  std::shared_ptr<GlobalShadow> race_shadow_;
  std::uint64_t next_ = 0;        ///< offset of what was never given out
  std::uint64_t used_ = 0;        ///< bytes of living allocations
  std::uint64_t generation_ = 1;  ///< accessed atomically
  mutable std::shared_mutex mutex_;
  mutable std::mutex wide_atomics_;
  std::vector<std::unique_ptr<Allocation>> allocations_;  ///< sorted by start, freed ones too
  std::deque<std::uint64_t> quarantine_;                  ///< starts, oldest first
  std::map<std::uint64_t, std::uint64_t> free_;           ///< offset -> bytes, of recycled blocks
  std::vector<std::unique_ptr<Allocation>> forgotten_;    ///< recycled, someone may look at them
};

}  // namespace ptxgen::inline v0::emulator
