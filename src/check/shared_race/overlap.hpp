// src/check/shared_race/overlap.hpp - overlap of two accesses by different threads
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "check/shared_race/ranges.hpp"

namespace ptxgen::inline v0::gates {

/// Which pairs of threads are compared.
enum class Pairs : std::uint8_t {
  Different,   ///< any two
  OtherWarps,  ///< of two warps
  SameWarp,    ///< of one warp
  All,         ///< and a thread with itself, for copies in progress
};

enum class Conflict : std::uint8_t {
  No,        ///< proved: no two such threads access a common byte
  Maybe,     ///< an address or a condition is not known well enough
  Possible,  ///< two threads do, if both execute their access
};

struct Overlap {
  Conflict conflict = Conflict::No;
  std::uint32_t first = 0;   ///< an example: thread of the first access
  std::uint32_t second = 0;  ///< and of the second
  SymbolKey unknown{ptx::kNone, ptx::kNone, ptx::kNone};  ///< Maybe: an unknown symbol, if any
};

/// Classes of threads that do not race with each other, by thread.
using Classes = std::vector<std::uint64_t>;

/// Two accesses to compare.
struct Comparison {
  const AccessForm* a = nullptr;
  const AccessForm* b = nullptr;
  std::uint32_t bytes_a = 0;
  std::uint32_t bytes_b = 0;
  Pairs pairs = Pairs::Different;
  /// Whether a product of symbols has the same value in two threads at the two accesses.
  std::function<bool(const SymbolKey&)> same;
  SymbolRanges* ranges = nullptr;
  const Classes* harmless = nullptr;
};

[[nodiscard]] Overlap overlap(const AddressList& a, std::uint32_t bytes_a, AddressList b,
                              std::uint32_t bytes_b, Pairs pairs, std::uint64_t& budget,
                              const Classes* harmless = nullptr);

/// What is to be added to the addresses of the first access for each value of the symbols in the
/// difference, where the distance stays below `reach`; nothing if there are too many. `a` and `b`:
/// coefficient * key of the accesses.
using Terms = std::vector<std::pair<SymbolKey, std::int64_t>>;
[[nodiscard]] std::optional<std::vector<std::int64_t>> shifts(const Terms& a, const Terms& b,
                                                              const Comparison& comparison,
                                                              const analysis::AffineRange& reach);

/// `budget`: pairs of threads that may still be compared; is used up.
[[nodiscard]] Overlap overlap(const Comparison& comparison, std::uint64_t& budget);

}  // namespace ptxgen::inline v0::gates
