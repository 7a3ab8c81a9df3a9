// src/kernels/attention/flash_emit.hpp - parameters, ranges and rows of the flash kernels
#pragma once

#include <limits>
#include <optional>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/attention/flash_problem.hpp"

namespace ptxgen::inline v0::flash {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kLog2E = 1.44269504f;

/// A block of `threads` for each `tile_queries` queries (x), head (y) and row (z). Throws `Error`
/// (Stage::Launch, "empty-grid") for a problem without queries, heads or rows.
[[nodiscard]] LaunchGeometry grid_of(std::string_view kernel, const FlashProblem& problem,
                                     std::uint32_t tile_queries, std::uint32_t threads);

/// Roundings of a kernel on tensor cores with steps of `tile_keys` keys, whose products have these
/// errors as shares of their terms: of a score, and of a sum over the keys. Weights are rounded to
/// the type of the cache, and q is if it has another one. Weights of f16 below 2^-14 have an
/// absolute error.
[[nodiscard]] detail::FlashRoundings tensor_roundings(const FlashProblem& problem,
                                                      std::uint32_t tile_keys, double score_error,
                                                      double sum_error);

/// Keys [begin, end) that a query attends.
struct KeyRange {
  Value<u32> begin, end;
};

/// A block's part of the problem: the parameters, and where its rows are. Block x of the grid has
/// queries from `first` on; those with the most keys are in the first blocks.
class Kit {
 public:
  /// Declares and reads the parameters. With `splits` so many blocks of the grid's x have the same
  /// queries.
  Kit(KernelBuilder& k, const FlashProblem& problem, std::uint32_t tile_queries,
      std::uint32_t splits = 1);

  KernelBuilder& k;
  const FlashProblem& problem;

  [[nodiscard]] const Value<u32>& first() const noexcept { return *first_; }
  /// The block's place among those with the same queries; only with `splits`.
  [[nodiscard]] const Value<u32>& part() const noexcept { return *part_; }
  /// The number of the block's queries, head and row among those of the grid, and how many there
  /// are.
  [[nodiscard]] Value<u32> tile_number() const;
  [[nodiscard]] Value<u32> tiles() const;
  /// Of the row: at most the numbers of the launch.
  [[nodiscard]] const Value<u32>& queries() const noexcept { return *queries_; }
  [[nodiscard]] const Value<u32>& keys() const noexcept { return *keys_; }
  /// Of the launch: queries from `queries()` to this are outputs of 0.
  [[nodiscard]] const Value<u32>& all_queries() const noexcept { return *all_queries_; }
  /// Factor of q . k for exponents of 2.
  [[nodiscard]] Value<f32> factor() const;

  /// Of query `query`; no keys if it is not one of the row.
  [[nodiscard]] KeyRange range(const Value<u32>& query) const;
  /// All keys that the queries [first, first + count) attend, `count` at least 1, from a multiple
  /// of `step` on.
  [[nodiscard]] KeyRange range_of(const Value<u32>& from, std::uint32_t count,
                                  std::uint32_t step) const;

  /// The keys that all queries [from, from + count) of the row attend; none if there is no query.
  [[nodiscard]] KeyRange common_range(const Value<u32>& from, std::uint32_t count) const;

  /// `query`, or the last one if there is none of that number; there is one at least.
  [[nodiscard]] Value<u32> query_or_last(const Value<u32>& query) const;
  /// Query `query` of the block's head, in q or out.
  [[nodiscard]] Ptr<b8> query_row(const Value<u32>& query) const { return row_of(*q_, query); }
  [[nodiscard]] Ptr<b8> out_row(const Value<u32>& query) const { return row_of(*out_, query); }
  /// Where key and value of a position are, bytes from the start of `k_cache()` and `v_cache()`; of
  /// positions without a key anywhere.
  [[nodiscard]] Value<u64> cache_row(const Value<u32>& position) const;
  /// Of the block's heads of k and v among all that the cache has; not with pages.
  [[nodiscard]] const Value<u32>& cache_strip() const noexcept { return *cache_strip_; }
  [[nodiscard]] const Ptr<b8>& k_cache() const noexcept { return *k_cache_; }
  [[nodiscard]] const Ptr<b8>& v_cache() const noexcept { return *v_cache_; }
  /// Bytes of a row of the cache.
  [[nodiscard]] std::uint32_t cache_pitch() const noexcept {
    return static_cast<std::uint32_t>(bytes(problem.cache, problem.head_size));
  }

  [[nodiscard]] Accuracy accuracy() const noexcept {
    return problem.precise ? Accuracy::Precise : Accuracy::Approximate;
  }
  /// `value / sum`, and 0 where the sum is: no key was attended.
  [[nodiscard]] Value<f32> quotient(const Value<f32>& value, const Value<f32>& sum) const;

 private:
  [[nodiscard]] Ptr<b8> row_of(const Ptr<b8>& heads, const Value<u32>& query) const;
  [[nodiscard]] Value<u32> last_of(const Value<u32>& from, std::uint32_t count) const;
  [[nodiscard]] Value<u32> length(const char* name, const Value<u32>& limit) const;
  void place_block(std::uint32_t tile_queries);
  void place_heads();
  void place_cache();

  std::optional<Ptr<b8>> q_, k_cache_, v_cache_, out_;  ///< of the block's head
  std::optional<Ptr<u32>> table_;                       ///< of the row
  std::optional<Value<u32>> queries_, keys_, all_queries_, max_seq_, window_, first_;
  std::optional<Value<u32>> kv_head_, kv_heads_, cache_strip_, last_page_;
  std::uint32_t splits_;
  std::optional<Value<u32>> block_, part_;  ///< block: of those with other queries
  std::optional<Value<u64>> query_pitch_;   ///< bytes
  std::optional<Value<f32>> scale_;
};

}  // namespace ptxgen::inline v0::flash
