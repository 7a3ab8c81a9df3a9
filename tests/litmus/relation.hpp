// tests/litmus/relation.hpp - relations between up to 64 events
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace ptxgen::litmus {

/// A set of events, a bit for each.
using Events = std::uint64_t;
inline constexpr std::uint32_t kMaxEvents = 64;

[[nodiscard]] constexpr Events bit(std::uint32_t event) noexcept { return Events{1} << event; }

template <class Body>
void for_each(Events events, Body&& body) {
  for (; events != 0; events &= events - 1) {
    body(static_cast<std::uint32_t>(std::countr_zero(events)));
  }
}

/// A relation between events: `after(a)` are the events that a is related to.
class Relation {
 public:
  [[nodiscard]] bool has(std::uint32_t a, std::uint32_t b) const noexcept {
    return (rows_[a] & bit(b)) != 0;
  }
  [[nodiscard]] Events after(std::uint32_t a) const noexcept { return rows_[a]; }
  void add(std::uint32_t a, std::uint32_t b) noexcept { rows_[a] |= bit(b); }
  void add_all(std::uint32_t a, Events b) noexcept { rows_[a] |= b; }

  [[nodiscard]] Relation operator|(const Relation& other) const noexcept {
    Relation result = *this;
    for (std::uint32_t a = 0; a < kMaxEvents; ++a) result.rows_[a] |= other.rows_[a];
    return result;
  }
  [[nodiscard]] Relation operator&(const Relation& other) const noexcept {
    Relation result = *this;
    for (std::uint32_t a = 0; a < kMaxEvents; ++a) result.rows_[a] &= other.rows_[a];
    return result;
  }
  /// Adds (a, b) for every path from a to b whose inner events are in `through`.
  [[nodiscard]] Relation closure(Events through = ~Events{0}) const noexcept {
    Relation result = *this;
    for_each(through, [&](std::uint32_t middle) {
      if (result.rows_[middle] == 0) return;
      for (Events& row : result.rows_) {
        if ((row & bit(middle)) != 0) row |= result.rows_[middle];
      }
    });
    return result;
  }
  [[nodiscard]] bool irreflexive() const noexcept {
    for (std::uint32_t a = 0; a < kMaxEvents; ++a) {
      if (has(a, a)) return false;
    }
    return true;
  }
  [[nodiscard]] bool acyclic() const noexcept { return closure().irreflexive(); }

 private:
  std::array<Events, kMaxEvents> rows_{};
};

}  // namespace ptxgen::litmus
