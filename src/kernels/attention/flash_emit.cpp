// src/kernels/attention/flash_emit.cpp - parameters, ranges and rows of the flash kernels
#include "kernels/attention/flash_emit.hpp"

#include <bit>
#include <cmath>

#include "kernels/parts/geometry.hpp"
#include "ptxgen/builder/math.hpp"

namespace ptxgen::inline v0::flash {

LaunchGeometry grid_of(std::string_view kernel, const FlashProblem& problem,
                       std::uint32_t tile_queries, std::uint32_t threads) {
  const bool empty = problem.rows == 0 || problem.kv_heads == 0 || problem.keys == 0;
  LaunchGeometry geometry =
      one_dimensional(kernel, empty ? 0 : problem.queries, tile_queries, threads);
  geometry.grid.y = static_cast<std::uint32_t>(problem.heads());
  geometry.grid.z = problem.rows;
  return geometry;
}

detail::FlashRoundings tensor_roundings(const FlashProblem& p, std::uint32_t tile_keys,
                                        double score_error, double sum_error) {
  const double exp2 =
      2 * math_bound("exp2", p.precise ? Accuracy::Precise : Accuracy::Approximate).ulp;
  const bool half = p.cache == ElementType::f16;
  const double rounding = half ? 0x1p-11 / 0x1p-24 : 0x1p-8 / 0x1p-24;
  const double steps = std::ceil(static_cast<double>(p.keys) / tile_keys) + 1;
  detail::FlashRoundings roundings;
  roundings.score = score_error / 0x1p-24 + 8;
  if (p.type != p.cache) roundings.score += rounding;
  roundings.sum =
      sum_error / 0x1p-24 + 2 * (steps * (exp2 + 2) + exp2) + rounding + p.keys / 4.0 + 12;
  roundings.weight = half ? 0.5 : 0;
  return roundings;
}

Kit::Kit(KernelBuilder& builder, const FlashProblem& p, std::uint32_t tile_queries,
         std::uint32_t splits)
    : k(builder), problem(p), splits_(splits) {
  for (const char* name : {"q", "k", "v"}) k.declare_param<Ptr<b8>>(name);
  for (const char* name : {"key_lengths", "query_lengths", "table"}) {
    k.declare_param<Ptr<u32>>(name);
  }
  k.declare_param<Ptr<b8>>("out");
  for (const char* name : {"queries", "keys", "max_seq", "window", "pages"}) {
    k.declare_param<u32>(name);
  }
  k.declare_param<f32>("scale");
  all_queries_.emplace(k.load_param<u32>("queries"));
  queries_.emplace(length("query_lengths", *all_queries_));
  keys_.emplace(length("key_lengths", k.load_param<u32>("keys")));
  max_seq_.emplace(k.load_param<u32>("max_seq"));
  if (p.causal) window_.emplace(k.load_param<u32>("window"));
  scale_.emplace(k.load_param<f32>("scale"));
  place_block(tile_queries);
  kv_head_.emplace(p.group == 1 ? k.ctaid_y() : k.ctaid_y() / p.group);
  place_heads();
  place_cache();
}

void Kit::place_block(std::uint32_t tile_queries) {
  const Value<u32> blocks = splits_ == 1 ? k.nctaid_x() : k.nctaid_x() / splits_;
  const Value<u32> last_block = blocks - 1u;
  block_.emplace(splits_ == 1 ? k.ctaid_x() : k.ctaid_x() / splits_);
  if (splits_ != 1) part_.emplace(k.ctaid_x() % splits_);
  const Value<u32> tile = problem.causal ? last_block - *block_ : *block_;
  first_.emplace(k.mul_lo(tile, tile_queries));
}

Value<u32> Kit::tile_number() const {
  const Value<u32> head = k.ctaid_y();
  const Value<u32> heads = k.nctaid_y();
  const Value<u32> strip = k.mad_lo(k.ctaid_z(), heads, head);
  return k.mad_lo(strip, k.nctaid_x() / splits_, *block_);
}
Value<u32> Kit::tiles() const {
  const Value<u32> heads = k.nctaid_y();
  const Value<u32> strips = k.mul_lo(k.nctaid_z(), heads);
  return k.mul_lo(strips, k.nctaid_x() / splits_);
}

Value<u32> Kit::length(const char* name, const Value<u32>& limit) const {
  if (!problem.variable) return limit;
  const Ptr<u32> lengths = k.load_param<Ptr<u32>>(name);
  const Value<u32> stored = lengths[k.ctaid_z()];
  return k.min(stored, limit);
}

void Kit::place_heads() {
  const std::uint32_t vector = problem.head_size * bytes(problem.type);
  const Value<u32> heads = k.nctaid_y();
  const Value<u32> head = k.ctaid_y();
  const Value<u32> row = k.ctaid_z();
  // Vectors of head_size elements before the head's first, and between its queries.
  std::optional<Value<u64>> before;
  if (problem.tokens_first) {
    const Value<u64> tokens = k.mul_wide(row, *all_queries_);
    const Value<u64> wide_heads = k.convert<u64>(heads);
    before.emplace(k.mad_lo(tokens, wide_heads, k.convert<u64>(head)));
    query_pitch_.emplace(k.mul_wide(heads, vector));
  } else {
    const Value<u32> strip = k.mad_lo(row, heads, head);
    before.emplace(k.mul_wide(strip, *all_queries_));
    query_pitch_.emplace(k.constant<u64>(vector));
  }
  const Value<u64> offset = k.mul_lo(*before, std::uint64_t{vector});
  q_.emplace(k.load_param<Ptr<b8>>("q").offset_bytes(offset));
  out_.emplace(k.load_param<Ptr<b8>>("out").offset_bytes(offset));
}

void Kit::place_cache() {
  const Ptr<b8> keys = k.load_param<Ptr<b8>>("k");
  const Ptr<b8> values = k.load_param<Ptr<b8>>("v");
  const Value<u32> row = k.ctaid_z();
  const Value<u32> heads = k.nctaid_y();
  kv_heads_.emplace(problem.group == 1 ? heads : heads / problem.group);
  std::optional<Value<u64>> offset;
  if (problem.page != 0) {
    offset.emplace(k.mul_wide(*kv_head_, problem.page * cache_pitch()));
    const Value<u32> last = *max_seq_ - 1u;
    const auto log2 = static_cast<unsigned>(std::countr_zero(problem.page));
    const Value<u32> width = (last >> log2) + 1u;
    const Value<u64> before = k.mul_wide(row, width);
    table_.emplace(k.load_param<Ptr<u32>>("table") + before);
    last_page_.emplace(k.load_param<u32>("pages") - 1u);
  } else {
    cache_strip_.emplace(problem.shared_cache ? *kv_head_ : k.mad_lo(row, *kv_heads_, *kv_head_));
    const Value<u64> strip_bytes = k.mul_wide(*max_seq_, cache_pitch());
    offset.emplace(k.mul_lo(k.convert<u64>(*cache_strip_), strip_bytes));
  }
  k_cache_.emplace(keys.offset_bytes(*offset));
  v_cache_.emplace(values.offset_bytes(*offset));
}

Value<f32> Kit::factor() const {
  const auto usual = static_cast<float>(1 / std::sqrt(static_cast<double>(problem.head_size)));
  const Value<f32> scale = k.selp(usual, *scale_, *scale_ == 0.0f);
  return scale * kLog2E;
}

// Without causal all keys. The end is 0 where keys are fewer than the queries after this one.
KeyRange Kit::range(const Value<u32>& query) const {
  const Pred exists = query < *queries_;
  if (!problem.causal) return {k.constant<u32>(0u), k.selp(*keys_, 0u, exists)};
  const Value<u32> sum = query + 1u + *keys_;
  const Value<s32> end = k.max(k.bitcast<s32>(sum - *queries_), 0);
  const Value<s32> begin = k.max(end - k.bitcast<s32>(*window_), 0);
  return {k.selp(k.bitcast<u32>(begin), 0u, exists), k.selp(k.bitcast<u32>(end), 0u, exists)};
}

// The last of `count` queries that the row has; any if it has none of them.
Value<u32> Kit::last_of(const Value<u32>& from, std::uint32_t count) const {
  const Value<u32> some = k.max(*queries_, 1u);
  return k.min(from + count, some) - 1u;
}

// Begins and ends of ranges rise with the query.
KeyRange Kit::range_of(const Value<u32>& from, std::uint32_t count, std::uint32_t step) const {
  const Value<u32> begin = range(from).begin & ~(step - 1);
  const Value<u32> end = range(last_of(from, count)).end;
  return {begin, k.selp(end, 0u, from < *queries_)};
}

KeyRange Kit::common_range(const Value<u32>& from, std::uint32_t count) const {
  const Value<u32> begin = range(last_of(from, count)).begin;
  return {begin, range(from).end};
}

Value<u32> Kit::query_or_last(const Value<u32>& query) const {
  const Value<u32> last = *queries_ - 1u;
  return k.selp(query, last, query < *queries_);
}

Ptr<b8> Kit::row_of(const Ptr<b8>& heads, const Value<u32>& query) const {
  const Value<u64> offset = k.mul_lo(k.convert<u64>(query), *query_pitch_);
  return heads.offset_bytes(offset);
}

Value<u64> Kit::cache_row(const Value<u32>& position) const {
  if (problem.page == 0) return k.mul_wide(position, cache_pitch());
  const auto log2 = static_cast<unsigned>(std::countr_zero(problem.page));
  // The table is read where there are keys.
  const Value<u32> last = *keys_ - 1u;
  const Value<u32> known = k.selp(position, last, position < *keys_);
  const Value<u32> entry = (*table_)[known >> log2];
  const Value<u32> page = k.min(entry, *last_page_);
  const Value<u64> strip = k.mul_wide(page, *kv_heads_);
  const Value<u64> first = k.mul_lo(strip, std::uint64_t{problem.page} * cache_pitch());
  return first + k.mul_wide(position & (problem.page - 1), cache_pitch());
}

Value<f32> Kit::quotient(const Value<f32>& value, const Value<f32>& sum) const {
  const Value<f32> safe = k.selp(1.0f, sum, sum == 0.0f);
  return k.div(value, safe, {.approx = !problem.precise});
}

}  // namespace ptxgen::inline v0::flash
