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
#include "emulator/state/textures.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "support/virtual_memory.hpp"

namespace ptxgen::inline v0::emulator {

inline constexpr std::uint64_t kAllocationAlignment = 256;

class GlobalShadow;  // state/race_shadow.hpp

enum class AllocationKind : std::uint8_t {
  Buffer,     ///< of the host
  Variable,   ///< `.global` of a module
  Constant,   ///< `.const` of a module
  Heap,       ///< malloc of a kernel
  Condition,  ///< a handle of a condition, set by cudaGraphSetConditional (ConditionCell)
};

struct Allocation {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  std::string name;  ///< for findings, may be empty
  AllocationKind kind = AllocationKind::Buffer;
  bool read_only = false;
  bool freed = false;  ///< no access; also the parts of a reservation without memory
  // For findings about an access while it is freed.
  std::string_view state = "which was freed";
  std::string_view remedy = "free it after the last kernel that uses it";
  [[nodiscard]] bool holds(std::uint64_t address) const noexcept { return address - start < bytes; }
};

/// A part of a reservation: with memory, or without and why.
struct Part {
  std::uint64_t bytes = 0;
  bool live = false;
  bool read_only = false;
  // As in Allocation, if not live; of static storage.
  std::string_view state;
  std::string_view remedy;
};

/// Memory without an address (`AddressSpace::show`), and which of its bytes were written.
struct Pages {
  SharedPages data;
  SharedPages written;
};

/// All device memory is one reservation of addresses: a host address is a device address plus a
/// constant. A second reservation has a written bit for each byte. Allocations have red zones;
/// freed ones are reused last.
///
/// Thread safety: `allocate` with AllocationKind::Heap, `free`, `find` and `nearest` from any
/// thread; everything else as emulator::Device. The result of `find` is valid until the next
/// `allocate` of another kind, or `divide`.
class AddressSpace {
 public:
  /// Throws `Error` (Stage::Emulate, code "out-of-memory") if the system gives no address space.
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
  /// Moves the reservation to the device addresses: host(address) becomes the address itself. Only
  /// before the first allocation. False, with nothing changed, if that range is in use by another
  /// AddressSpace, a sanitizer, or the system.
  bool unify() noexcept;
  /// As Device::free.
  void free(std::uint64_t address);
  /// As Device::protect.
  void protect(std::uint64_t address);

  /// Addresses for memory that comes and goes; at first one part, which is not live. Throws as
  /// `allocate`.
  [[nodiscard]] std::uint64_t reserve(std::uint64_t bytes, std::string_view name, const Part& part,
                                      std::uint64_t alignment);
  /// Divides a reservation into parts, from its start to its end. Its bytes keep their values.
  void divide(std::uint64_t reservation, std::span<const Part> parts);
  /// Gives the addresses back. It must show no pages.
  void end_reservation(std::uint64_t reservation);
  /// Counts the memory of reservations as used; throws as `allocate` if the GPU has no more.
  void claim(std::uint64_t bytes, std::string_view name);
  void unclaim(std::uint64_t bytes) noexcept;
  /// Makes bytes of a reservation uninitialised again and gives their memory back.
  void discard(std::uint64_t address, std::uint64_t bytes);
  /// Pages for `show`; empty if the system does not provide them. `bytes`: a multiple of
  /// kPageBytes.
  [[nodiscard]] static Pages make_pages(std::uint64_t bytes);
  /// Bytes of a reservation, multiples of kPageBytes, are those of `pages` until `hide`. False if
  /// the system refuses.
  [[nodiscard]] bool show(std::uint64_t address, std::uint64_t bytes, const Pages& pages);
  [[nodiscard]] bool hide(std::uint64_t address, std::uint64_t bytes);

  /// The allocation, live or freed, that holds an address, or nullptr.
  [[nodiscard]] const Allocation* find(std::uint64_t address) const;
  /// The allocation, live or freed, whose first or last byte is closest to an address, if less than
  /// `within` bytes away; of two at the same distance the live one.
  [[nodiscard]] const Allocation* nearest(std::uint64_t address, std::uint64_t within) const;
  /// Whether a GPU maps these bytes although no allocation holds them all: each of their pages
  /// (kPageBytes) has a live allocation, for writes a writable one.
  [[nodiscard]] bool mapped(std::uint64_t address, std::uint64_t bytes, bool writes) const;
  /// Increases when an allocation is freed or protected: earlier lookups are outdated.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    return __atomic_load_n(&generation_, __ATOMIC_ACQUIRE);
  }
  [[nodiscard]] const std::uint64_t* generation_word() const noexcept { return &generation_; }

  /// Host address of a device address; only for addresses inside of allocations.
  [[nodiscard]] std::byte* host(std::uint64_t address) const noexcept {
    return data_.data() + (address - kGlobalBase);
  }
  /// The same for `mapped` bytes. With `writes`, marks those of an allocation as written.
  [[nodiscard]] std::byte* slack(std::uint64_t address, std::uint64_t bytes, bool writes);
  /// Bit `address - kGlobalBase`: whether the byte was ever written (written_bits.hpp).
  [[nodiscard]] std::uint64_t* written() const noexcept {
    return reinterpret_cast<std::uint64_t*>(written_.data());
  }
  /// Device addresses are kGlobalBase .. kGlobalBase + reserved_bytes().
  [[nodiscard]] std::uint64_t reserved_bytes() const noexcept { return data_.size(); }
  /// Bytes of all live allocations.
  [[nodiscard]] std::uint64_t used_bytes() const;
  /// The end of all addresses ever allocated.
  [[nodiscard]] std::uint64_t end() const noexcept { return kGlobalBase + next_; }

  void write(std::uint64_t address, std::span<const std::byte> bytes);
  void read(std::uint64_t address, std::span<std::byte> bytes) const;
  void fill(std::uint64_t address, std::byte value, std::uint64_t bytes);
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  /// Marks bytes as initialised without changing them.
  void mark(std::uint64_t address, std::uint64_t bytes);
  /// As Device::track_initialised.
  void track_initialised(bool on);

  /// Locked by 16-byte atomics.
  [[nodiscard]] std::mutex& wide_atomics() const noexcept { return wide_atomics_; }

  /// Texture and surface objects.
  [[nodiscard]] ImageObjects& images() noexcept { return images_; }

  /// Shadow of the global race check; null until a launch needs it.
  [[nodiscard]] std::shared_ptr<GlobalShadow>& race_shadow() noexcept { return race_shadow_; }

  /// Host bytes of written bits, allocation records and race shadow.
  [[nodiscard]] std::uint64_t overhead_bytes() const noexcept;

 private:
  struct Block {
    std::uint64_t offset = 0;  ///< start of the red zone before it
    std::uint64_t bytes = 0;   ///< with red zones
  };
  [[nodiscard]] const Allocation& inside(std::uint64_t address, std::uint64_t bytes,
                                         std::string_view what) const;
  [[nodiscard]] bool place(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t& offset);
  void give_back(std::uint64_t offset, std::uint64_t bytes);
  void note_written(std::uint64_t address, std::uint64_t bytes);
  void insert(std::unique_ptr<Allocation> allocation);
  void replace(std::uint64_t start, std::uint64_t bytes,
               std::vector<std::unique_ptr<Allocation>> by);
  void recycle_oldest();
  [[nodiscard]] std::size_t after(std::uint64_t address) const noexcept;
  [[noreturn]] void out_of_memory(std::uint64_t bytes, std::string_view name) const;

  ptx::Gpu gpu_;
  VirtualMemory data_;
  VirtualMemory written_;
  bool tracks_ = true;
  ImageObjects images_;
  std::shared_ptr<GlobalShadow> race_shadow_;
  std::uint64_t next_ = 0;        ///< offset of addresses never allocated
  std::uint64_t used_ = 0;        ///< bytes of live allocations
  std::uint64_t generation_ = 1;  ///< accessed atomically
  mutable std::shared_mutex mutex_;
  mutable std::mutex wide_atomics_;
  std::vector<std::unique_ptr<Allocation>> allocations_;  ///< sorted by start, with freed ones
  std::deque<std::uint64_t> quarantine_;                  ///< starts, oldest first
  std::map<std::uint64_t, std::uint64_t> free_;           ///< offset -> bytes, of recycled blocks
  std::vector<std::unique_ptr<Allocation>> forgotten_;    ///< recycled, but may still be referenced
  struct Reservation {
    std::uint64_t bytes = 0;
    std::string name;
  };
  std::map<std::uint64_t, Reservation> reservations_;  ///< by start
};

}  // namespace ptxgen::inline v0::emulator
