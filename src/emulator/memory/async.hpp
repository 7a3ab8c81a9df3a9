// src/emulator/memory/async.hpp - cp.async copies that are not carried out
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// The cp.async copies of one block. A copy is carried out when its thread waits for it, not
/// before: a read of the destination before the wait gets the old bytes.
class AsyncCopies {
 public:
  /// One warp-level cp.async.
  struct Copy {
    std::uint32_t lanes = 0;  ///< not carried out yet
    std::uint32_t uncommitted = 0;
    std::uint8_t bytes = 0;  ///< written
    std::uint32_t statement = 0;
    std::uint64_t ticket = 0;
    std::array<std::uint32_t, 32> to;  ///< shared offset
    std::array<const std::byte*, 32> from;
    std::array<std::uint8_t, 32> from_bytes;  ///< read; the rest is zero
    std::array<std::uint32_t, 32> group;      ///< of its lane, once committed
  };

  /// The copies of the running block.
  [[nodiscard]] static AsyncCopies& of(Context& context);

  /// Tickets increase.
  [[nodiscard]] std::uint64_t new_ticket() noexcept { return ++tickets_; }
  void add(const Warp& warp, const Copy& copy);
  void commit(const Warp& warp, std::uint32_t lanes);
  /// Carries out all groups but the last `newest`. With `all` also uncommitted copies.
  void finish(Context& context, std::uint32_t lanes, std::uint64_t newest, bool all);

 private:
  struct WarpCopies {
    std::vector<Copy> copies;
    std::array<std::uint32_t, 32> groups{};  ///< committed by each lane
  };
  std::uint64_t tickets_ = 0;
  std::uint64_t order_ = ~std::uint64_t{0};
  std::vector<WarpCopies> warps_;
};

}  // namespace ptxgen::inline v0::emulator
