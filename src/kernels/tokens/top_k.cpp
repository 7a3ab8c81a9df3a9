// src/kernels/tokens/top_k.cpp - the largest elements of rows, in descending order
#include "ptxgen/kernels/tokens/top_k.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/parts/geometry.hpp"
#include "kernels/parts/last_block.hpp"
#include "kernels/parts/order_key.hpp"
#include "kernels/parts/words.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kMaxPicked = 256;
constexpr std::uint32_t kKeys = TopK::kMaxKeys / TopK::kThreads;  // of a thread
constexpr std::uint32_t kGroup = 2;                               // that are skipped together
// Bits of a key that differ: of the element, and of an index below 2^18.
constexpr std::uint32_t kIndexBits = 18;
constexpr std::uint32_t kSteps = 32 + kIndexBits;
constexpr std::uint32_t kEqualBits = ~0u << kIndexBits;

/// Keys of a thread; 0 where there is none.
using Keys = std::vector<Value<u64>>;

/// What the threads of a block do together.
struct Selection {
  KernelBuilder& k;
  Value<u32> thread, wanted;

  // How many of the thread's keys are not below `bound`. The block has `count` of them: key i of
  // the thread is the block's 1024 i + thread.
  [[nodiscard]] Value<u32> not_below(const Keys& keys, const Value<u64>& bound,
                                     const Value<u32>& count) const {
    auto sum = k.var<u32>(0u);
    const auto add = [&](std::uint32_t first) {
      for (std::uint32_t i = first; i < first + kGroup; ++i) {
        sum += one_if(k, keys[i] >= bound);
      }
    };
    add(0);
    for (std::uint32_t i = kGroup; i < kKeys; i += kGroup) {
      k.if_(count > i * TopK::kThreads, [&] { add(i); });
    }
    return sum;
  }
  // The sum of these over the block: four bits, two where threads have at most three keys.
  [[nodiscard]] Value<u32> all_not_below(const Keys& keys, const Value<u64>& bound,
                                         const Value<u32>& count) const {
    const Value<u32> own = not_below(keys, bound, count);
    auto sum = k.var(block_sum(k, own, 2));
    k.if_(count > 3 * TopK::kThreads, [&] { sum += block_sum(k, own >> 2u, 2) << 2u; });
    return sum;
  }

  // A number that exactly `wanted` keys of the block are not below, or all if there are fewer.
  [[nodiscard]] Value<u64> threshold(const Keys& keys, const Value<u32>& count) const {
    auto bound = k.var<u64>(std::uint64_t{kEqualBits});
    auto step = k.var<u32>(0u);
    auto found = k.var<u32>(0u);
    const auto goes_on = [&] {
      const Pred has_bits = step < kSteps;
      return has_bits & (found == 0u);
    };
    k.while_(goes_on, [&] {
      const Value<u32> at = step;
      const Value<u32> of_element = 63u - at;
      const Value<u32> of_index = (kSteps - 1) - at;
      const Value<u32> bit = k.selp(of_element, of_index, at < 32u);
      const Value<u64> higher = bound | (k.constant<u64>(std::uint64_t{1}) << bit);
      const Value<u32> sum = all_not_below(keys, higher, count);
      bound = k.selp(higher, bound, sum >= wanted);
      found = one_if(k, sum == wanted);
      step = at + 1u;
    });
    return bound;
  }

  // Stores `wanted` keys: the largest, in no order that matters, and 0 if there are fewer.
  template <class Place>
  void pick(const Keys& keys, const Value<u32>& count, const Place& place_of_keys) const {
    const Value<u64> bound = threshold(keys, count);
    const Ptr<u64> to = place_of_keys();
    k.if_(thread < wanted, [&] { to[thread] = std::uint64_t{0}; });
    const Value<u32> own = not_below(keys, bound, count);
    // Its barriers are between the zeros and the keys.
    const Value<u32> up_to_here = k.block_scan(own, TopK::kThreads);
    auto place = k.var(up_to_here - own);
    for (const Value<u64>& key : keys) {
      const Pred takes = key >= bound;
      const Ptr<u64> at = to + place;
      k.guarded(takes, [&] { k.st(at, key); });
      place += one_if(k, takes);
    }
  }
};

// Elements of a block: at most 8192 keys are merged. As `TopK::chunk`.
Value<u32> chunk_of(KernelBuilder& k, const Value<u32>& wanted) {
  const Pred few = wanted <= 64u;
  const Pred some = wanted <= 128u;
  const Value<u32> of_few = k.constant<u32>(2048u);
  return k.selp(k.selp(of_few, 4096u, few), 8192u, some);
}

// The keys of this block's elements.
Keys load_keys(KernelBuilder& k, ElementType type, const Ptr<b8>& row, const Value<u32>& columns,
               const Value<u32>& chunk) {
  Keys keys;
  const Value<u32> first = k.mul_lo(k.ctaid_x(), chunk);
  const Value<u32> end = k.min(columns, first + chunk);
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    const Value<u32> index = first + k.tid_x() + i * TopK::kThreads;
    const Pred inside = index < end;
    const Ptr<b8> at = row.offset_bytes(k.mul_wide(index, bytes(type)));
    const Value<f32> element = expand(k, load_floats_if(k, at, type, 1, inside), 1)[0];
    keys.push_back(k.selp(order_key(k, element, index), std::uint64_t{0}, inside));
  }
  return keys;
}

// The keys that the row's blocks picked.
Keys load_parts(KernelBuilder& k, const Ptr<u64>& parts, const Value<u32>& count) {
  Keys keys;
  const Value<u32> thread = k.tid_x();
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    const Value<u32> index = thread + i * TopK::kThreads;
    const Pred exists = index < count;
    keys.push_back(
        k.ld_global_predicated(parts + index, exists, std::uint64_t{0}, {.cache = Cache::cg}));
  }
  return keys;
}

// An element's place is the number of keys that are larger.
void store_picked(const Selection& selection, ElementType type, const Ptr<u64, Shared>& picked,
                  const Ptr<b8>& row, const Ptr<b8>& values, const Ptr<u32>& indices) {
  KernelBuilder& k = selection.k;
  const Value<u64> key = k.ld(picked + selection.thread);
  auto rank = k.var<u32>(0u);
  k.for_(
      0u, selection.wanted, 1u,
      [&](Value<u32> i) {
        const Value<u64> other = k.ld(picked + i);
        rank += one_if(k, other > key);
      },
      Unroll{4});
  const Value<u32> place = rank;
  const Value<u32> index = index_of_key(k, key);
  k.st(indices + place, index);
  const Ptr<b8> from = row.offset_bytes(k.mul_wide(index, bytes(type)));
  const Ptr<b8> to = values.offset_bytes(k.mul_wide(place, bytes(type)));
  if (type == ElementType::f32) {
    k.st(to.cast<u32>(), k.ld(from.cast<u32>()));
  } else {
    k.st(to.cast<u16>(), k.ld(from.cast<u16>()));
  }
}

/// The kernel's operands. Addresses in a row are computed where they are used: the keys take most
/// of the registers.
struct TopKOperands {
  ElementType type;
  Ptr<b8> x, values;
  Ptr<u32> indices;
  RowWorkspace workspace;
  Value<u32> columns;
};

// Sorts the keys that the row's parts begin with.
void finish_row(const Selection& selection, const TopKOperands& operands) {
  KernelBuilder& k = selection.k;
  const SharedArray<u64> picked = k.shared<u64>(kMaxPicked);
  const Ptr<u64> parts = operands.workspace.parts(selection.wanted << 3u).cast<u64>();
  const Pred has_key = selection.thread < selection.wanted;
  k.bar_sync();
  k.if_(has_key, [&] {
    const Value<u64> key = k.ld(parts + selection.thread, {.cache = Cache::cg});
    k.st(picked.base() + selection.thread, key);
  });
  k.bar_sync();
  k.if_(has_key, [&] {
    const Value<u32> row = k.ctaid_y();
    const std::uint64_t element = bytes(operands.type);
    const Value<u64> first = k.mul_wide(row, operands.columns) * element;
    const Value<u64> results = k.mul_wide(row, selection.wanted);
    const Ptr<b8> x = operands.x.offset_bytes(first);
    const Ptr<b8> values = operands.values.offset_bytes(results * element);
    store_picked(selection, operands.type, picked.base(), x, values, operands.indices + results);
  });
}

// The last block picks from the keys of all. They are in registers before the picked ones are
// stored in their place.
void merge_row(const Selection& selection, const TopKOperands& operands) {
  KernelBuilder& k = selection.k;
  k.if_(operands.workspace.arrive(), [&] {
    const Value<u32> count = k.mul_lo(k.nctaid_x(), selection.wanted);
    const auto parts = [&] { return operands.workspace.parts(selection.wanted << 3u).cast<u64>(); };
    const Keys keys = load_parts(k, parts(), count);
    selection.pick(keys, count, parts);
    finish_row(selection, operands);
  });
}

}  // namespace

BuiltKernel TopK::build(const ptx::Target& target) const {
  check_parameters(*this);
  return build_kernel(
      kernel_name<TopK>, target.name,
      params(param<Ptr<b8>>("x"), param<Ptr<b8>>("values"), param<Ptr<u32>>("indices"),
             param<Ptr<b8>>("workspace"), param<u32>("columns"), param<u32>("k")),
      [&](KernelBuilder& b, Ptr<b8> x, Ptr<b8> values, Ptr<u32> indices, Ptr<b8> memory,
          Value<u32> width, Value<u32> wanted) {
        b.required_threads(kThreads);
        const Selection selection{b, b.tid_x(), wanted};
        const TopKOperands operands{type, x, values, indices, {b, memory}, width};
        const Value<u64> first = b.mul_wide(b.ctaid_y(), width) * std::uint64_t{bytes(type)};
        const Value<u32> chunk = chunk_of(b, wanted);
        const Keys keys = load_keys(b, type, x.offset_bytes(first), width, chunk);
        selection.pick(keys, chunk, [&] {
          const Ptr<u64> parts = operands.workspace.parts(wanted << 3u).cast<u64>();
          return parts + b.mul_lo(b.ctaid_x(), wanted);
        });
        b.if_(
            b.nctaid_x() == 1u, [&] { finish_row(selection, operands); },
            [&] { merge_row(selection, operands); });
      });
}

LaunchGeometry TopK::geometry() const {
  if (k > columns && columns != 0) {
    Error error(
        Stage::Launch, "bad-parameter",
        format_text("k is {}, but a row has {} elements; pick no more than there are", k, columns));
    error.kernel = kernel_name<TopK>;
    throw error.refresh();
  }
  const bool empty = rows == 0 || k == 0;
  LaunchGeometry geometry = one_dimensional(kernel_name<TopK>, empty ? 0 : blocks(), 1, kThreads);
  geometry.grid.y = rows;
  return geometry;
}

KernelCost TopK::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * columns;
  const std::uint64_t picked = std::uint64_t{rows} * k;
  return {.bytes_read = elements * bytes(type),
          .bytes_written = picked * (4 + bytes(type)),
          .flops = elements};
}

WorkspaceNeed Describe<TopK>::workspace(const TopK& spec) {
  return row_workspace(spec.rows, spec.blocks(), std::uint64_t{8} * spec.k);
}

void Describe<TopK>::reference(const TopK& spec, HostOperands& host) {
  const std::vector<double>& x = host.input("x");
  std::vector<std::uint32_t> order(spec.columns);
  for (std::size_t row = 0; row < spec.rows; ++row) {
    const double* elements = &x[row * spec.columns];
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return elements[a] > elements[b] || (!std::isnan(elements[a]) && std::isnan(elements[b]));
    });
    for (std::size_t i = 0; i < spec.k; ++i) {
      host["values"].values[row * spec.k + i] = elements[order[i]];
      host["indices"].values[row * spec.k + i] = order[i];
    }
  }
}

}  // namespace ptxgen::inline v0
