// ptxgen/builder/vector_loop.hpp - loops over arrays, 16 bytes a thread
#pragma once

#include "ptxgen/support/language.hpp"

#include <array>
#include <bit>
#include <cstdint>

#include "ptxgen/builder/kernel_builder.hpp"

namespace ptxgen::inline v0 {

/// Bytes that a thread loads or stores at once.
inline constexpr std::uint32_t kVectorBytes = 16;

/// Spreads [0, n) over all threads of the grid: `wide(v)` for each full group `v` of 16 bytes,
/// 2^`group_log2` elements, where `addresses`, the bitwise or of all arrays' addresses, is a
/// multiple of 16; `single(i)` for each element i that is left, or for all of them. Grid-strided:
/// any grid and block computes everything. Below 2^31 threads in the grid.
template <class Wide, class Single>
void for_each_group(KernelBuilder& k, const Value<u32>& n, const Value<u64>& addresses,
                    unsigned group_log2, Wide&& wide, Single&& single) {
  const Value<u32> thread = k.global_thread_x();
  const Value<u32> block_threads = k.ntid_x();
  const Value<u32> blocks = k.nctaid_x();
  const Value<u32> threads = k.mul_lo(block_threads, blocks);
  const Value<u64> misaligned = addresses & std::uint64_t{kVectorBytes - 1};
  const Pred aligned = misaligned == 0u;
  const Value<u32> all_groups = n >> group_log2;
  const Value<u32> groups = k.selp(all_groups, 0u, aligned);
  k.for_(thread, groups, threads, wide);
  // Counted from the first remaining element, so no index overflows.
  const Value<u32> first = groups << group_log2;
  const Value<u32> left = n - first;
  k.for_(thread, left, threads, [&](Value<u32> i) {
    const Value<u32> element = first + i;
    single(element);
  });
}

/// `kCount` consecutive elements, the same of each array.
template <unsigned kCount>
class Elements {
 public:
  static constexpr unsigned kSize = kCount;

  Elements(KernelBuilder& k, const Value<u32>& first) : k_(k), first_(first) {}

  /// The index of the first.
  [[nodiscard]] const Value<u32>& first() const noexcept { return first_; }
  /// One load.
  template <class T, class S>
  [[nodiscard]] std::array<Value<T>, kCount> load(const Ptr<T, S>& p) const {
    if constexpr (kCount == 1) {
      return {k_.ld(p + first_)};
    } else {
      return k_.template ld<kCount>(p + first_);
    }
  }
  /// One store.
  template <class T, class S>
  void store(const Ptr<T, S>& p, const std::array<Value<T>, kCount>& values) const {
    if constexpr (kCount == 1) {
      k_.st(p + first_, values[0]);
    } else {
      k_.st(p + first_, values);
    }
  }

 private:
  KernelBuilder& k_;
  Value<u32> first_;
};

/// Elements [0, n) of `arrays`, all of one size, over all threads of the grid. `body` is emitted
/// twice: with the `Elements` of 16 bytes (of 8 for elements of 16 bits), executed while all arrays
/// are aligned to 16 bytes, and with single ones for the rest, or for everything:
///
///     for_each_vector(k, n, [&](auto at) {
///       auto xs = at.load(x);
///       for (auto& one : xs) one.rebind(one * a);
///       at.store(y, xs);
///     }, x, y);
template <class Body, class T, class... Others>
void for_each_vector(KernelBuilder& k, const Value<u32>& n, const Body& body, const Ptr<T>& array,
                     const Ptr<Others>&... others) {
  static_assert(((T::kBytes == Others::kBytes) && ...),
                "for_each_vector: the arrays have elements of different sizes");
  static_assert(T::kBytes == 2 || T::kBytes == 4 || T::kBytes == 8,
                "for_each_vector: elements of 2, 4 or 8 bytes");
  constexpr unsigned kCount = T::kBytes == 8 ? 2 : 4;
  Value<u64> addresses = k.address_of(array);
  (addresses.rebind(addresses | k.address_of(others)), ...);
  for_each_group(
      k, n, addresses, std::bit_width(kCount) - 1,
      [&](Value<u32> group) { body(Elements<kCount>(k, group * kCount)); },
      [&](Value<u32> i) { body(Elements<1>(k, i)); });
}

}  // namespace ptxgen::inline v0
