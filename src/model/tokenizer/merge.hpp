// src/model/tokenizer/merge.hpp - adjacent symbols merged in the order of a priority
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/tokenizer/vocabulary.hpp"

namespace ptxgen::inline v0::model {

/// A part of a text that is one token, or none yet.
struct Symbol {
  std::uint32_t begin = 0;  ///< in the text, in bytes
  std::uint32_t end = 0;    ///< `begin` once it is part of the symbol before
  std::uint32_t token = kNoToken;
  std::uint32_t previous = 0;  ///< places in the list; `kNone` at its ends
  std::uint32_t next = 0;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
};

/// What a pair of adjacent symbols may become. The greatest priority is merged first, of equal ones
/// the leftmost.
struct PairMerge {
  double priority = 0;
  std::uint32_t token = kNoToken;
};

/// Merges symbols of one text; keeps its memory for the next text.
class SymbolList {
 public:
  void clear() noexcept { symbols_.clear(); }
  void add(std::uint32_t begin, std::uint32_t end, std::uint32_t token) {
    const auto place = static_cast<std::uint32_t>(symbols_.size());
    if (place != 0) symbols_.back().next = place;
    symbols_.push_back({begin, end, token, place == 0 ? Symbol::kNone : place - 1, Symbol::kNone});
  }

  /// Until no pair can be merged: n log n steps. `merge_of(left, right)` is the optional
  /// `PairMerge` of two symbols.
  template <class MergeOf>
  void merge(const MergeOf& merge_of) {
    queue_.clear();
    for (std::uint32_t i = 1; i < symbols_.size(); ++i) consider(i - 1, i, merge_of);
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end());
      const Candidate best = queue_.back();
      queue_.pop_back();
      Symbol& left = symbols_[best.left];
      if (left.begin == left.end || left.next != best.right) continue;
      Symbol& right = symbols_[best.right];
      // One of the two has grown since.
      if (right.end - left.begin != best.bytes) continue;
      left.end = right.end;
      left.token = best.token;
      left.next = right.next;
      right.begin = right.end;
      if (left.next != Symbol::kNone) symbols_[left.next].previous = best.left;
      consider(left.previous, best.left, merge_of);
      consider(best.left, left.next, merge_of);
    }
  }

  /// Calls `use(symbol)` for each that is left, in order.
  template <class Use>
  void each(const Use& use) const {
    for (std::uint32_t i = symbols_.empty() ? Symbol::kNone : 0; i != Symbol::kNone;
         i = symbols_[i].next) {
      use(symbols_[i]);
    }
  }

 private:
  struct Candidate {
    double priority = 0;
    std::uint32_t left = 0;
    std::uint32_t right = 0;
    std::uint32_t bytes = 0;  // of both
    std::uint32_t token = 0;  // of the merged symbol
    [[nodiscard]] bool operator<(const Candidate& other) const noexcept {
      return priority != other.priority ? priority < other.priority : left > other.left;
    }
  };

  template <class MergeOf>
  void consider(std::uint32_t left, std::uint32_t right, const MergeOf& merge_of) {
    if (left == Symbol::kNone || right == Symbol::kNone) return;
    const std::optional<PairMerge> merge = merge_of(symbols_[left], symbols_[right]);
    if (!merge) return;
    const std::uint32_t bytes = symbols_[right].end - symbols_[left].begin;
    queue_.push_back({merge->priority, left, right, bytes, merge->token});
    std::push_heap(queue_.begin(), queue_.end());
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;
};

}  // namespace ptxgen::inline v0::model
