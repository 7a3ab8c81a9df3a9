// src/emulator/vector/memory_hot.cpp - fast ld and st; long because one unit is built per ISA
//
// Compiled once for each instruction set, in a namespace of its own. This file must not instantiate
// functions with external linkage, neither of the standard library nor inline functions of ptxgen:
// the linker could use this copy in files for processors without the instruction set.
//
// A handler performs common accesses; otherwise it changes nothing and calls the general handler
// (memory/load_store.cpp).

#include "emulator/memory/steps.hpp"
#include "emulator/state/written_bits.hpp"
#include "emulator/vector/isa_parts.hpp"

#ifndef PTXGEN_ISA_NAMESPACE
#define PTXGEN_ISA_NAMESPACE isa_baseline
#endif

namespace ptxgen::inline v0::emulator::PTXGEN_ISA_NAMESPACE {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <unsigned Bytes>
struct Bits;
template <>
struct Bits<1> {
  using type = u8;
  using signed_type = std::int8_t;
};
template <>
struct Bits<2> {
  using type = u16;
  using signed_type = std::int16_t;
};
template <>
struct Bits<4> {
  using type = u32;
  using signed_type = std::int32_t;
};
template <>
struct Bits<8> {
  using type = u64;
  using signed_type = std::int64_t;
};

// A race in a kernel is no error of this program: two workers may access the same guest bytes
// unordered. The attribute of every function of this file keeps ThreadSanitizer from reporting it.

template <class T>
__attribute__((no_sanitize("thread"))) inline T get(const std::byte* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
__attribute__((no_sanitize("thread"))) inline void put(std::byte* to, T value) {
  __builtin_memcpy(to, &value, sizeof(T));
}

__attribute__((no_sanitize("thread"))) inline u32 mask_of(const Context& context,
                                                          const Step& step) {
  return context.active &
         (*reinterpret_cast<const u32*>(context.frame + step.guard) ^ step.guard_flip);
}

/// An element, extended to a lane of its register.
template <unsigned Bytes, bool Signed, class Lane>
__attribute__((no_sanitize("thread"))) inline Lane extend(typename Bits<Bytes>::type value,
                                                          u32 register_mask) {
  if constexpr (Signed) {
    return static_cast<Lane>(static_cast<u32>(static_cast<std::int32_t>(
                                 static_cast<typename Bits<Bytes>::signed_type>(value))) &
                             register_mask);
  } else {
    static_cast<void>(register_mask);
    return static_cast<Lane>(value);
  }
}

/// The addresses of the lanes before `count`: `first + lane * Bytes`, all `first`, each a constant
/// distance after the one before, or others.
enum class Pattern { Neighbours, Equal, Strided, Other };

/// The number of lanes of a mask without gaps from lane 0 on; 0 for other masks.
__attribute__((no_sanitize("thread"))) inline u32 first_lanes(u32 mask) {
  return (mask & (mask + 1)) == 0 ? 32 - static_cast<u32>(__builtin_clz(mask | 1u)) : 0;
}

/// Neighbours, Equal or Other.
template <unsigned Bytes, class Address>
__attribute__((no_sanitize("thread"))) inline Pattern pattern_of(const Address* lanes) {
  // Two loops, each with a constant distance: a multiplication by a variable one would dominate.
  const Address first = lanes[0];
  Address different = 0;
  if (lanes[1] == static_cast<Address>(first + Bytes)) {
    for (u32 lane = 0; lane < 32; ++lane) {
      different |= lanes[lane] ^ static_cast<Address>(first + Address{lane} * Bytes);
    }
    return different == 0 ? Pattern::Neighbours : Pattern::Other;
  }
  if (lanes[1] != first) return Pattern::Other;
  for (u32 lane = 0; lane < 32; ++lane) different |= lanes[lane] ^ first;
  return different == 0 ? Pattern::Equal : Pattern::Other;
}

/// The same for fewer lanes.
template <unsigned Bytes, class Address>
__attribute__((no_sanitize("thread"))) inline Pattern pattern_of(const Address* lanes, u32 count) {
  if (count == 32) return pattern_of<Bytes>(lanes);
  if (count < 2) return count == 1 ? Pattern::Neighbours : Pattern::Other;
  const Address first = lanes[0];
  Address different = 0;
  if (lanes[1] == static_cast<Address>(first + Bytes)) {
    for (u32 lane = 0; lane < 32; ++lane) {
      const Address wrong = lanes[lane] ^ static_cast<Address>(first + Address{lane} * Bytes);
      different |= lane < count ? wrong : 0;
    }
    return different == 0 ? Pattern::Neighbours : Pattern::Other;
  }
  if (lanes[1] != first) return Pattern::Other;
  for (u32 lane = 0; lane < 32; ++lane) different |= lane < count ? lanes[lane] ^ first : 0;
  return different == 0 ? Pattern::Equal : Pattern::Other;
}

/// Whether each address is the one before plus `gap`.
template <class Address>
__attribute__((no_sanitize("thread"))) inline bool evenly_apart(const Address* lanes, Address gap) {
  Address different = 0;
  for (u32 lane = 0; lane < 28; ++lane) different |= (lanes[lane + 1] - lanes[lane]) ^ gap;
  // 27 again: both loops are multiples of the vector length.
  for (u32 lane = 27; lane < 31; ++lane) different |= (lanes[lane + 1] - lanes[lane]) ^ gap;
  return different == 0;
}

/// The same of the lanes before `count`, at least 2.
__attribute__((no_sanitize("thread"))) inline bool evenly_apart(const u64* lanes, u64 gap,
                                                                u32 count) {
  if (count == 32) return evenly_apart(lanes, gap);
  u64 different = 0;
  for (u32 lane = 0; lane < 28; ++lane) {
    different |= lane + 1 < count ? (lanes[lane + 1] - lanes[lane]) ^ gap : 0;
  }
  for (u32 lane = 27; lane < 31; ++lane) {
    different |= lane + 1 < count ? (lanes[lane + 1] - lanes[lane]) ^ gap : 0;
  }
  return different == 0;
}

// Eight words, in whatever vectors the instruction set has.
using Words4 = u32 __attribute__((vector_size(16)));
using Words8 = u32 __attribute__((vector_size(32)));

// By reference: passing such vectors by value differs between instruction sets.
__attribute__((no_sanitize("thread"))) inline void get_pair(Words8& to, const std::byte* low,
                                                            const std::byte* high) {
  Words4 halves[2];
  __builtin_memcpy(&halves[0], low, 16);
  __builtin_memcpy(&halves[1], high, 16);
  to = __builtin_shufflevector(halves[0], halves[1], 0, 1, 2, 3, 4, 5, 6, 7);
}

__attribute__((no_sanitize("thread"))) inline void put_words(std::byte* to, const Words8& words) {
  __builtin_memcpy(to, &words, 32);
}

/// Four words of each of 32 lanes, lane after lane, to four rows of 32.
__attribute__((no_sanitize("thread"))) inline void transpose_from(const std::byte* from,
                                                                  std::byte* x, std::byte* y,
                                                                  std::byte* z, std::byte* w) {
  for (u32 lane = 0; lane < 32; lane += 8) {
    const std::byte* const at = from + lane * 16;
    Words8 a, b, c, d;
    get_pair(a, at, at + 64);
    get_pair(b, at + 16, at + 80);
    get_pair(c, at + 32, at + 96);
    get_pair(d, at + 48, at + 112);
    const Words8 ab_low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
    const Words8 ab_high = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
    const Words8 cd_low = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13);
    const Words8 cd_high = __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
    put_words(x + lane * 4, __builtin_shufflevector(ab_low, cd_low, 0, 1, 8, 9, 4, 5, 12, 13));
    put_words(y + lane * 4, __builtin_shufflevector(ab_low, cd_low, 2, 3, 10, 11, 6, 7, 14, 15));
    put_words(z + lane * 4, __builtin_shufflevector(ab_high, cd_high, 0, 1, 8, 9, 4, 5, 12, 13));
    put_words(w + lane * 4, __builtin_shufflevector(ab_high, cd_high, 2, 3, 10, 11, 6, 7, 14, 15));
  }
}

/// And back.
__attribute__((no_sanitize("thread"))) inline void transpose_to(std::byte* to, const std::byte* x,
                                                                const std::byte* y,
                                                                const std::byte* z,
                                                                const std::byte* w) {
  for (u32 lane = 0; lane < 32; lane += 8) {
    Words8 a, b, c, d;
    get_pair(a, x + lane * 4, x + lane * 4 + 16);
    get_pair(b, y + lane * 4, y + lane * 4 + 16);
    get_pair(c, z + lane * 4, z + lane * 4 + 16);
    get_pair(d, w + lane * 4, w + lane * 4 + 16);
    const Words8 ab_low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
    const Words8 ab_high = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
    const Words8 cd_low = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13);
    const Words8 cd_high = __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
    // Lanes 0 and 4, 1 and 5, 2 and 6, 3 and 7.
    const Words8 l04 = __builtin_shufflevector(ab_low, cd_low, 0, 1, 8, 9, 4, 5, 12, 13);
    const Words8 l15 = __builtin_shufflevector(ab_low, cd_low, 2, 3, 10, 11, 6, 7, 14, 15);
    const Words8 l26 = __builtin_shufflevector(ab_high, cd_high, 0, 1, 8, 9, 4, 5, 12, 13);
    const Words8 l37 = __builtin_shufflevector(ab_high, cd_high, 2, 3, 10, 11, 6, 7, 14, 15);
    std::byte* const at = to + lane * 16;
    put_words(at, __builtin_shufflevector(l04, l15, 0, 1, 2, 3, 8, 9, 10, 11));
    put_words(at + 32, __builtin_shufflevector(l26, l37, 0, 1, 2, 3, 8, 9, 10, 11));
    put_words(at + 64, __builtin_shufflevector(l04, l15, 4, 5, 6, 7, 12, 13, 14, 15));
    put_words(at + 96, __builtin_shufflevector(l26, l37, 4, 5, 6, 7, 12, 13, 14, 15));
  }
}

template <unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"))) inline void load_lane(std::byte* frame,
                                                             const MemoryDetail& detail, u32 lane,
                                                             const std::byte* from) {
  using T = typename Bits<Bytes>::type;
  for (u32 i = 0; i < Count; ++i) {
    reinterpret_cast<Lane*>(frame + detail.registers.offset[i])[lane] =
        extend<Bytes, Signed, Lane>(get<T>(from + i * Bytes), detail.registers.mask);
  }
}

template <unsigned Bytes, unsigned Count, class Lane>
__attribute__((no_sanitize("thread"))) inline void store_lane(const std::byte* frame,
                                                              const MemoryDetail& detail, u32 lane,
                                                              std::byte* to) {
  using T = typename Bits<Bytes>::type;
  for (u32 i = 0; i < Count; ++i) {
    put<T>(to + i * Bytes,
           static_cast<T>(reinterpret_cast<const Lane*>(frame + detail.registers.offset[i])[lane]));
  }
}

// Consecutive data of 32 lanes, to and from registers.

template <unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"))) inline void load_neighbours(std::byte* frame,
                                                                   const MemoryDetail& detail,
                                                                   const std::byte* from) {
  using T = typename Bits<Bytes>::type;
  const u32 register_mask = detail.registers.mask;
  if constexpr (Count == 1) {
    Lane* __restrict to = reinterpret_cast<Lane*>(frame + detail.registers.offset[0]);
    for (u32 lane = 0; lane < 32; ++lane) {
      to[lane] = extend<Bytes, Signed, Lane>(get<T>(from + lane * Bytes), register_mask);
    }
  } else if constexpr (Bytes == 4 && Count == 4) {
    const u32* const to = detail.registers.offset;
    transpose_from(from, frame + to[0], frame + to[1], frame + to[2], frame + to[3]);
  } else {
    Lane rows[Count][32];
    for (u32 lane = 0; lane < 32; ++lane) {
      for (u32 i = 0; i < Count; ++i) {
        rows[i][lane] =
            extend<Bytes, Signed, Lane>(get<T>(from + (lane * Count + i) * Bytes), register_mask);
      }
    }
    for (u32 i = 0; i < Count; ++i) {
      __builtin_memcpy(frame + detail.registers.offset[i], rows[i], sizeof(rows[i]));
    }
  }
}

template <unsigned Bytes, unsigned Count, class Lane>
__attribute__((no_sanitize("thread"))) inline void store_neighbours(const std::byte* frame,
                                                                    const MemoryDetail& detail,
                                                                    std::byte* to) {
  using T = typename Bits<Bytes>::type;
  if constexpr (Count == 1) {
    const Lane* from = reinterpret_cast<const Lane*>(frame + detail.registers.offset[0]);
    for (u32 lane = 0; lane < 32; ++lane) put<T>(to + lane * Bytes, static_cast<T>(from[lane]));
  } else if constexpr (Bytes == 4 && Count == 4) {
    const u32* const from = detail.registers.offset;
    transpose_to(to, frame + from[0], frame + from[1], frame + from[2], frame + from[3]);
  } else {
    Lane rows[Count][32];
    for (u32 i = 0; i < Count; ++i) {
      __builtin_memcpy(rows[i], frame + detail.registers.offset[i], sizeof(rows[i]));
    }
    for (u32 lane = 0; lane < 32; ++lane) {
      for (u32 i = 0; i < Count; ++i) {
        put<T>(to + (lane * Count + i) * Bytes, static_cast<T>(rows[i][lane]));
      }
    }
  }
}

/// Of the lanes before `count`. `readable`: bytes after `from` that may be read.
template <unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"))) inline void load_neighbours(std::byte* frame,
                                                                   const MemoryDetail& detail,
                                                                   const std::byte* from, u32 count,
                                                                   u64 readable) {
  if (count == 32) return load_neighbours<Bytes, Count, Signed, Lane>(frame, detail, from);
  if (readable < 32 * Bytes * Count) {
    for (u32 lane = 0; lane < count; ++lane) {
      load_lane<Bytes, Count, Signed, Lane>(frame, detail, lane, from + lane * Bytes * Count);
    }
    return;
  }
  // All lanes, then the others back.
  alignas(64) Lane before[Count][32];
  for (u32 i = 0; i < Count; ++i) {
    __builtin_memcpy(before[i], frame + detail.registers.offset[i], sizeof(before[i]));
  }
  load_neighbours<Bytes, Count, Signed, Lane>(frame, detail, from);
  for (u32 i = 0; i < Count; ++i) {
    Lane* const to = reinterpret_cast<Lane*>(frame + detail.registers.offset[i]);
    for (u32 lane = 0; lane < 32; ++lane) to[lane] = lane < count ? to[lane] : before[i][lane];
  }
}

template <unsigned Bytes, unsigned Count, class Lane>
__attribute__((no_sanitize("thread"))) inline void store_neighbours(const std::byte* frame,
                                                                    const MemoryDetail& detail,
                                                                    std::byte* to, u32 count) {
  if (count == 32) return store_neighbours<Bytes, Count, Lane>(frame, detail, to);
  for (u32 lane = 0; lane < count; ++lane) {
    store_lane<Bytes, Count, Lane>(frame, detail, lane, to + lane * Bytes * Count);
  }
}

/// The lanes before `count` get the same bytes.
template <unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"))) inline void load_equal(std::byte* frame,
                                                              const MemoryDetail& detail,
                                                              const std::byte* from, u32 count) {
  using T = typename Bits<Bytes>::type;
  for (u32 i = 0; i < Count; ++i) {
    const Lane value = extend<Bytes, Signed, Lane>(get<T>(from + i * Bytes), detail.registers.mask);
    Lane* to = reinterpret_cast<Lane*>(frame + detail.registers.offset[i]);
    if (count == 32) {
      for (u32 lane = 0; lane < 32; ++lane) to[lane] = value;
    } else {
      for (u32 lane = 0; lane < 32; ++lane) to[lane] = lane < count ? value : to[lane];
    }
  }
}

__attribute__((no_sanitize("thread"))) inline void count_global(AccessCounters& counters,
                                                                u64 sectors, u64 ideal, u64 bytes) {
  ++counters.memory.requests;
  counters.memory.sectors += sectors;
  counters.memory.ideal_sectors += ideal;
  counters.memory.bytes += bytes;
}

/// Counts `count` aligned accesses in ascending order. False if they are in another order.
template <unsigned Width>
__attribute__((no_sanitize("thread"))) inline bool count_ascending(AccessCounters& counters,
                                                                   const u64* addresses,
                                                                   u32 count) {
  u32 sectors = 1;
  u32 distinct = 1;
  u32 descents = 0;
  for (u32 i = 1; i < count; ++i) {
    descents += addresses[i] < addresses[i - 1];
    distinct += addresses[i] != addresses[i - 1];
    sectors += addresses[i] / 32 != addresses[i - 1] / 32;
  }
  if (descents != 0) return false;
  count_global(counters, sectors, (u64{distinct} * Width + 31) / 32, u64{count} * Width);
  return true;
}

constexpr RaceAccess::Shape shape_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::Neighbours:
      return RaceAccess::Shape::Neighbours;
    case Pattern::Equal:
      return RaceAccess::Shape::Equal;
    case Pattern::Strided:
      return RaceAccess::Shape::Ascending;
    default:
      return RaceAccess::Shape::Unknown;
  }
}

/// All lanes, `gap` bytes apart; `distance` is the same without its sign, at least Width.
template <bool Store, unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"))) inline bool access_strided(Context& context,
                                                                  AccessCounters& counters,
                                                                  const MemoryDetail& detail,
                                                                  u64 lane0, u64 gap,
                                                                  u64 distance) {
  constexpr unsigned kWidth = Bytes * Count;
  const MemoryView& view = context.worker->memory;
  const LastAllocation& last = counters.last;
  const u64 first = lane0 + detail.address.offset;
  const u64 lowest = gap == distance ? first : first + 31 * gap;
  const u64 length = 31 * distance + kWidth;
  const u64 inside = lowest - last.start;
  if (inside >= last.bytes || last.bytes - inside < length) return false;
  if ((first | distance) % kWidth != 0) return false;
  if (!Store && view.check_written) {
    // Small strides: checking the bytes in between too is faster and rarely fails.
    if (distance > 128 || !all_written(view.written, lowest - kGlobalBase, length)) {
      u64 missing = 0;
      for (u32 lane = 0; lane < 32; ++lane) {
        const u64 offset = lowest + lane * distance - kGlobalBase;
        const u64 word = __atomic_load_n(view.written + offset / 64, __ATOMIC_RELAXED);
        missing |= (~word >> offset % 64) & low_mask(kWidth);
      }
      if (missing != 0) return false;
    }
  }
  if (context.counting && !detail.uncounted) {
    // Strides below a sector touch every sector in between.
    const u64 sectors = distance >= 32 ? 32 : (lowest + length - 1) / 32 - lowest / 32 + 1;
    count_global(counters, sectors, kWidth, 32 * kWidth);
  }
  for (u32 lane = 0; lane < 32; ++lane) {
    const u64 offset = first + lane * gap - kGlobalBase;
    if constexpr (Store) {
      mark_word<true>(view.written + offset / 64, low_mask(kWidth) << offset % 64);
      store_lane<Bytes, Count, Lane>(context.frame, detail, lane, view.global + offset);
    } else {
      load_lane<Bytes, Count, Signed, Lane>(context.frame, detail, lane, view.global + offset);
    }
  }
  return true;
}

/// The lanes before `count` at consecutive or equal addresses.
template <bool Store, unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"), always_inline)) inline bool access_regular(
    Context& context, const Step& step, const MemoryDetail& detail, AccessCounters& counters,
    const u64* lanes, u32 count, Pattern pattern, bool races) {
  constexpr unsigned kWidth = Bytes * Count;
  const MemoryView& view = context.worker->memory;
  const LastAllocation& last = counters.last;
  const u64 length = pattern == Pattern::Equal ? kWidth : u64{count} * kWidth;
  const u64 first = lanes[0] + detail.address.offset;
  const u64 inside = first - last.start;
  if (inside >= last.bytes || last.bytes - inside < length) return false;
  if (first % kWidth != 0) return false;
  const u64 offset = first - kGlobalBase;
  if constexpr (!Store) {
    if (view.check_written && !all_written(view.written, offset, length)) return false;
  }
  if (races) {
    u64 reached[32];
    for (u32 lane = 0; lane < 32; ++lane) reached[lane] = lanes[lane] + detail.address.offset;
    alignas(16) std::byte values[32 * kWidth];
    if constexpr (Store) store_neighbours<Bytes, Count, Lane>(context.frame, detail, values);
    note_global_access(context, step, reached, ~u32{0} >> (32 - count), kWidth,
                       Store ? values : nullptr, shape_of(pattern));
  }
  if constexpr (Store) mark_written<true>(view.written, offset, length);
  if (context.counting && !detail.uncounted) {
    count_global(counters, (first % 32 + length + 31) / 32, (length + 31) / 32,
                 u64{count} * kWidth);
  }
  std::byte* const host = view.global + offset;
  if constexpr (Store) {
    store_neighbours<Bytes, Count, Lane>(context.frame, detail, host, count);
  } else if (pattern == Pattern::Equal) {
    load_equal<Bytes, Count, Signed, Lane>(context.frame, detail, host, count);
  } else {
    load_neighbours<Bytes, Count, Signed, Lane>(context.frame, detail, host, count,
                                                last.bytes - inside);
  }
  return true;
}

/// Active lanes and their addresses.
struct ActiveLanes {
  u64 addresses[32];
  u32 lanes[32];
  u32 count = 0;
};

__attribute__((no_sanitize("thread"), always_inline)) inline void collect_lanes(ActiveLanes& active,
                                                                                const u64* lanes,
                                                                                u64 offset,
                                                                                u32 mask) {
  if (mask == 0xffffffffu) {
    for (; active.count < 32; ++active.count) {
      active.lanes[active.count] = active.count;
      active.addresses[active.count] = lanes[active.count] + offset;
    }
    return;
  }
  for (u32 rest = mask; rest != 0; rest &= rest - 1) {
    const u32 lane = static_cast<u32>(__builtin_ctz(rest));
    active.lanes[active.count] = lane;
    active.addresses[active.count++] = lanes[lane] + offset;
  }
}

/// Whether all bytes of all lanes were written.
template <unsigned Width>
__attribute__((no_sanitize("thread"), always_inline)) inline bool are_written(
    const ActiveLanes& active, const u64* written) {
  u64 missing = 0;
  for (u32 i = 0; i < active.count; ++i) {
    const u64 offset = active.addresses[i] - kGlobalBase;
    const u64 word = __atomic_load_n(written + offset / 64, __ATOMIC_RELAXED);
    missing |= (~word >> offset % 64) & low_mask(Width);
  }
  return missing == 0;
}

/// Any lanes and addresses, all in the allocation that was accessed last.
template <bool Store, unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"), always_inline)) inline bool access_scattered(
    Context& context, const Step& step, u32 mask, const MemoryDetail& detail,
    AccessCounters& counters, const u64* lanes, bool races) {
  constexpr unsigned kWidth = Bytes * Count;
  const MemoryView& view = context.worker->memory;
  const LastAllocation& last = counters.last;
  ActiveLanes active;
  collect_lanes(active, lanes, detail.address.offset, mask);
  const u32 count = active.count;
  if (last.bytes < kWidth) return false;
  const u64 max_offset = last.bytes - kWidth;
  u32 outside = 0;
  u64 low = 0;
  for (u32 i = 0; i < count; ++i) {
    outside |= active.addresses[i] - last.start > max_offset;
    low |= active.addresses[i];
  }
  if (outside != 0 || low % kWidth != 0) return false;
  if (!Store && view.check_written && !are_written<kWidth>(active, view.written)) return false;
  if (races) {
    u64 by_lane[32];
    for (u32 i = 0; i < count; ++i) by_lane[active.lanes[i]] = active.addresses[i];
    alignas(16) std::byte values[32 * kWidth];
    if constexpr (Store) store_neighbours<Bytes, Count, Lane>(context.frame, detail, values);
    note_global_access(context, step, by_lane, mask, kWidth, Store ? values : nullptr,
                       RaceAccess::Shape::Unknown);
  }
  if (context.counting && !detail.uncounted &&
      !count_ascending<kWidth>(counters, active.addresses, count)) {
    u64 by_lane[32];
    for (u32 i = 0; i < count; ++i) by_lane[active.lanes[i]] = active.addresses[i];
    count_scattered_global(counters, by_lane, mask, kWidth);
  }
  for (u32 i = 0; i < count; ++i) {
    const u64 offset = active.addresses[i] - kGlobalBase;
    const u32 lane = active.lanes[i];
    if constexpr (Store) {
      mark_word<true>(view.written + offset / 64, low_mask(kWidth) << offset % 64);
      store_lane<Bytes, Count, Lane>(context.frame, detail, lane, view.global + offset);
    } else {
      load_lane<Bytes, Count, Signed, Lane>(context.frame, detail, lane, view.global + offset);
    }
  }
  return true;
}

/// Global loads and stores. Width: bytes of a lane, a power of two up to 32.
template <bool Store, unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"))) inline bool access_global(Context& context, const Step& step,
                                                                 u32 mask,
                                                                 const MemoryDetail& detail) {
  constexpr unsigned kWidth = Bytes * Count;
  const MemoryView& view = context.worker->memory;
  if (view.counters == nullptr) return false;
  AccessCounters& counters = view.counters[step.source[1]];
  const LastAllocation& last = counters.last;
  if (last.generation != __atomic_load_n(view.generation, __ATOMIC_ACQUIRE)) return false;
  if (Store && !last.writable) return false;
  const bool races = view.global_races && last.watched;
  if (Store && view.global_races && !races) return false;
  const u64* const lanes = reinterpret_cast<const u64*>(context.frame + step.source[0]);
  const u32 lane_count = first_lanes(mask);
  const Pattern pattern = pattern_of<kWidth>(lanes, lane_count);
  if (pattern != Pattern::Other && !(Store && pattern == Pattern::Equal)) {
    return access_regular<Store, Bytes, Count, Signed, Lane>(context, step, detail, counters, lanes,
                                                             lane_count, pattern, races);
  }
  if (mask == 0xffffffffu) {
    const u64 gap = lanes[1] - lanes[0];
    const u64 distance = gap >> 63 != 0 ? u64{0} - gap : gap;
    if (!races && distance >= kWidth && distance < (u64{1} << 32) && evenly_apart(lanes, gap)) {
      return access_strided<Store, Bytes, Count, Signed, Lane>(context, counters, detail, lanes[0],
                                                               gap, distance);
    }
  }
  return access_scattered<Store, Bytes, Count, Signed, Lane>(context, step, mask, detail, counters,
                                                             lanes, races);
}

/// The shared offsets of a warp's lanes.
struct SharedOffsets {
  Pattern pattern = Pattern::Other;
  u32 count = 0;  ///< lanes; 0: of a mask with gaps
  u64 first = 0;  ///< of lane 0
  u64 gap = 0;    ///< between lanes; Equal: 0
  u64 of[32];     ///< of inactive lanes 0; for regular patterns only filled where needed
};

/// Consecutive or equal offsets. False if the access is not valid.
template <bool Store, unsigned Width>
__attribute__((no_sanitize("thread"), always_inline)) inline bool check_regular(
    SharedOffsets& offsets, const Cta& cta, const MemoryView& view) {
  const u64 first = offsets.first;
  const u64 gap = offsets.gap;
  const u64 length = (offsets.count - 1) * gap + Width;
  if (first > cta.shared_bytes - Width || cta.shared_bytes - first < length || first % Width != 0) {
    return false;
  }
  if (!Store && view.check_written && !all_written(cta.shared_written, first, length)) return false;
  if (view.shared_races || (Store && offsets.pattern == Pattern::Equal)) {
    for (u32 lane = 0; lane < 32; ++lane) offsets.of[lane] = first + lane * gap;
  }
  return true;
}

/// Whether the bytes of all lanes were written.
template <unsigned Width>
__attribute__((no_sanitize("thread"), always_inline)) inline bool are_written(
    const SharedOffsets& offsets, const Cta& cta, u32 mask) {
  // Small strides: checking the bytes in between too is faster and rarely fails.
  if (offsets.pattern == Pattern::Strided && offsets.gap <= 128 &&
      all_written(cta.shared_written, offsets.first, (offsets.count - 1) * offsets.gap + Width)) {
    return true;
  }
  u64 missing = 0;
  for (u32 rest = mask; rest != 0; rest &= rest - 1) {
    const u64 offset = offsets.of[__builtin_ctz(rest)];
    missing |= (~cta.shared_written[offset / 64] >> offset % 64) & low_mask(Width);
  }
  return missing == 0;
}

/// Other offsets. False if the access is not valid.
template <bool Store, unsigned Width, class Address>
__attribute__((no_sanitize("thread"), always_inline)) inline bool check_scattered(
    SharedOffsets& offsets, const Cta& cta, const MemoryView& view, const Address* lanes,
    Address plus, u32 mask) {
  const u64 max_offset = cta.shared_bytes - Width;
  u64 outside = 0;
  u64 low = 0;
  for (u32 lane = 0; lane < 32; ++lane) {
    const u64 on = (mask >> lane & 1u) != 0 ? ~u64{0} : 0;
    const u64 offset = static_cast<Address>(lanes[lane] + plus) & on;
    offsets.of[lane] = offset;
    // Valid offsets are far below 2^63: bit 63 shows the others.
    outside |= (max_offset - offset) | offset;
    low |= offset;
  }
  if (outside >> 63 != 0 || low % Width != 0) return false;
  if (offsets.count > 1) {
    const u64 gap = offsets.of[1] - offsets.of[0];
    if (gap >= Width && gap <= max_offset && evenly_apart(offsets.of, gap, offsets.count)) {
      offsets.pattern = Pattern::Strided;
      offsets.gap = gap;
    }
  }
  return Store || !view.check_written || are_written<Width>(offsets, cta, mask);
}

/// Wavefronts of lanes from 0 on with a constant stride of at least Width, which is 4 or more. In
/// units of `Width` bytes, a phase of n lanes with stride s uses n / gcd(s, n) of n places.
template <unsigned Width>
__attribute__((no_sanitize("thread"))) inline u64 strided_wavefronts(u64 gap, u32 count) {
  constexpr u32 kLanesOfPhase = 128 / Width;
  const u64 stride = gap / Width;
  const u64 common = stride & (u64{0} - stride);
  const u32 sharing = common < kLanesOfPhase ? static_cast<u32>(common) : kLanesOfPhase;
  const u32 shift = static_cast<u32>(__builtin_ctz(kLanesOfPhase / sharing));
  u64 wavefronts = count / kLanesOfPhase * sharing;
  const u32 rest = count % kLanesOfPhase;
  wavefronts += (rest + (1u << shift) - 1) >> shift;
  return wavefronts;
}

template <unsigned Width>
__attribute__((no_sanitize("thread"), always_inline)) inline void count_shared(
    AccessCounters& counters, const SharedOffsets& offsets, u32 mask) {
  constexpr u32 kLanesOfPhase = Width <= 4 ? 32 : 128 / Width;
  if (offsets.pattern == Pattern::Other || (offsets.pattern == Pattern::Strided && Width < 4)) {
    return count_scattered_shared(counters, offsets.of, mask, Width);
  }
  const u64 phases = (offsets.count + kLanesOfPhase - 1) / kLanesOfPhase;
  u64 wavefronts = phases;
  if constexpr (Width >= 4) {
    if (offsets.pattern == Pattern::Strided) {
      wavefronts = strided_wavefronts<Width>(offsets.gap, offsets.count);
    }
  }
  ++counters.shared.requests;
  counters.shared.wavefronts += wavefronts;
  counters.shared.ideal_wavefronts += phases;
  counters.shared.bank_conflicts += wavefronts - phases;
  counters.shared.bytes += u64{offsets.count} * Width;
}

template <bool Store, unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"), always_inline)) inline void move_shared(
    const Context& context, const MemoryDetail& detail, const SharedOffsets& offsets, u32 mask) {
  const Cta& cta = *context.cta;
  const u32 count = offsets.count;
  if (offsets.pattern == Pattern::Neighbours) {
    std::byte* const host = cta.shared + offsets.first;
    if constexpr (Store) {
      mark_written<false>(cta.shared_written, offsets.first, u64{count} * Bytes * Count);
      store_neighbours<Bytes, Count, Lane>(context.frame, detail, host, count);
    } else {
      load_neighbours<Bytes, Count, Signed, Lane>(context.frame, detail, host, count,
                                                  cta.shared_bytes - offsets.first);
    }
    return;
  }
  if constexpr (!Store) {
    if (offsets.pattern == Pattern::Equal) {
      return load_equal<Bytes, Count, Signed, Lane>(context.frame, detail,
                                                    cta.shared + offsets.first, count);
    }
  }
  for (u32 rest = mask; rest != 0; rest &= rest - 1) {
    const u32 lane = static_cast<u32>(__builtin_ctz(rest));
    const u64 offset = offsets.of[lane];
    if constexpr (Store) {
      mark_word<false>(cta.shared_written + offset / 64, low_mask(Bytes * Count) << offset % 64);
      store_lane<Bytes, Count, Lane>(context.frame, detail, lane, cta.shared + offset);
    } else {
      load_lane<Bytes, Count, Signed, Lane>(context.frame, detail, lane, cta.shared + offset);
    }
  }
}

/// Shared loads and stores. Width: up to 16 bytes of a lane.
template <bool Store, unsigned Bytes, unsigned Count, bool Signed, class Lane, class Address>
__attribute__((no_sanitize("thread"))) inline bool access_shared(Context& context, const Step& step,
                                                                 u32 mask,
                                                                 const MemoryDetail& detail) {
  constexpr unsigned kWidth = Bytes * Count;
  const MemoryView& view = context.worker->memory;
  if (view.counters == nullptr) return false;
  const Cta& cta = *context.cta;
  if (cta.shared_bytes < kWidth) return false;
  const Address* const lanes = reinterpret_cast<const Address*>(context.frame + step.source[0]);
  const Address plus = static_cast<Address>(detail.address.offset);
  SharedOffsets offsets;
  offsets.count = first_lanes(mask);
  offsets.pattern = pattern_of<kWidth>(lanes, offsets.count);
  offsets.gap = offsets.pattern == Pattern::Equal ? 0 : kWidth;
  offsets.first = static_cast<Address>(lanes[0] + plus);
  const bool valid =
      offsets.pattern != Pattern::Other
          ? check_regular<Store, kWidth>(offsets, cta, view)
          : check_scattered<Store, kWidth, Address>(offsets, cta, view, lanes, plus, mask);
  if (!valid) return false;
  if (view.shared_races) {
    alignas(16) std::byte values[32 * kWidth];
    if constexpr (Store) store_neighbours<Bytes, Count, Lane>(context.frame, detail, values);
    note_shared_access(context, step, offsets.of, mask, kWidth, Store ? values : nullptr,
                       shape_of(offsets.pattern));
  }
  if (context.counting) count_shared<kWidth>(view.counters[step.source[1]], offsets, mask);
  move_shared<Store, Bytes, Count, Signed, Lane>(context, detail, offsets, mask);
  return true;
}

template <bool Store, unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"))) void hot_global(Context& context, const Step& step) {
  const u32 mask = mask_of(context, step);
  if (mask == 0) return;
  const MemoryDetail& detail = *reinterpret_cast<const MemoryDetail*>(step.immediate);
  if (access_global<Store, Bytes, Count, Signed, Lane>(context, step, mask, detail)) return;
  if constexpr (Store) {
    run_store(context, step);
  } else {
    run_load(context, step);
  }
}

template <bool Store, unsigned Bytes, unsigned Count, bool Signed, class Lane, class Address>
__attribute__((no_sanitize("thread"))) void hot_shared(Context& context, const Step& step) {
  const u32 mask = mask_of(context, step);
  if (mask == 0) return;
  const MemoryDetail& detail = *reinterpret_cast<const MemoryDetail*>(step.immediate);
  if (access_shared<Store, Bytes, Count, Signed, Lane, Address>(context, step, mask, detail)) {
    return;
  }
  if constexpr (Store) {
    run_store(context, step);
  } else {
    run_load(context, step);
  }
}

template <bool Store, unsigned Bytes, unsigned Count, bool Signed>
Handler choose(const HotAccess& access) noexcept {
  using Lane = typename Bits<(Bytes < 4 ? 4 : Bytes)>::type;
  if (access.lane_bytes != sizeof(Lane)) return nullptr;
  if (!access.shared) {
    return access.base_is_64bit ? &hot_global<Store, Bytes, Count, Signed, Lane> : nullptr;
  }
  if constexpr (Bytes * Count <= 16) {
    return access.base_is_64bit ? &hot_shared<Store, Bytes, Count, Signed, Lane, u64>
                                : &hot_shared<Store, Bytes, Count, Signed, Lane, u32>;
  }
  return nullptr;
}

template <bool Store, unsigned Bytes, bool Signed>
Handler choose_count(const HotAccess& access) noexcept {
  switch (access.elements) {
    case 1:
      return choose<Store, Bytes, 1, Signed>(access);
    case 2:
      return choose<Store, Bytes, 2, Signed>(access);
    case 4:
      return choose<Store, Bytes, 4, Signed>(access);
    default:
      return nullptr;
  }
}

template <bool Store>
Handler choose_width(const HotAccess& access) noexcept {
  switch (access.element_bytes) {
    case 1:
      return access.is_signed && !Store ? choose_count<Store, 1, true>(access)
                                        : choose_count<Store, 1, false>(access);
    case 2:
      return access.is_signed && !Store ? choose_count<Store, 2, true>(access)
                                        : choose_count<Store, 2, false>(access);
    case 4:
      return choose_count<Store, 4, false>(access);
    case 8:
      return choose_count<Store, 8, false>(access);
    default:
      return nullptr;
  }
}

}  // namespace

Handler hot_memory_handler(const HotAccess& access) noexcept {
  return access.store ? choose_width<true>(access) : choose_width<false>(access);
}

}  // namespace ptxgen::inline v0::emulator::PTXGEN_ISA_NAMESPACE
