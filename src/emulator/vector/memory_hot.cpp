// src/emulator/vector/memory_hot.cpp - ld and st of global and shared memory, fast
//
// Compiled once for each instruction set, in a namespace of its own. Nothing with external linkage
// may be instantiated here, no function of the standard library and no inline function of ours:
// the linker would be free to use this copy in files for lesser processors.
//
// A handler does an access here if everything about it is usual; else, having changed nothing, it
// calls the one that can do everything (memory_load_store.cpp).

#include "emulator/memory/steps.hpp"
#include "emulator/vector/isa_parts.hpp"
#include "emulator/memory/written_bits.hpp"

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

// A kernel with a race is a kernel to run, not a fault of this program: two workers may touch the
// same guest bytes without order, and ThreadSanitizer is not to blame the host for it. So every
// function of this file carries the attribute.

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

/// An element as the lanes of its register hold it.
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

/// Which 32 addresses: `first + lane * Bytes`, all equal to `first`, or others.
enum class Pattern { Neighbours, Equal, Other };

template <unsigned Bytes, class Address>
__attribute__((no_sanitize("thread"))) inline Pattern pattern_of(const Address* lanes) {
  // Two loops, each with a constant distance: a product with a variable one costs more than all
  // the rest.
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

/// Whether each address is `gap` behind the one before it.
template <class Address>
__attribute__((no_sanitize("thread"))) inline bool evenly_apart(const Address* lanes, Address gap) {
  Address different = 0;
  for (u32 lane = 0; lane < 28; ++lane) different |= (lanes[lane + 1] - lanes[lane]) ^ gap;
  // Once more 27, so that both loops are whole vectors.
  for (u32 lane = 27; lane < 31; ++lane) different |= (lanes[lane + 1] - lanes[lane]) ^ gap;
  return different == 0;
}

// Eight words; the compiler makes of them what the instruction set has.
using Words4 = u32 __attribute__((vector_size(16)));
using Words8 = u32 __attribute__((vector_size(32)));

// By reference: how such vectors are passed by value differs from one instruction set to the next.
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

// The data of 32 lanes that lie one after the other, to and from registers.

template <unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"))) inline void load_neighbours(std::byte* frame,
                                                                   const MemoryDetail& detail,
                                                                   const std::byte* from) {
  using T = typename Bits<Bytes>::type;
  const u32 register_mask = detail.register_mask;
  if constexpr (Count == 1) {
    Lane* __restrict to = reinterpret_cast<Lane*>(frame + detail.data_offset[0]);
    for (u32 lane = 0; lane < 32; ++lane) {
      to[lane] = extend<Bytes, Signed, Lane>(get<T>(from + lane * Bytes), register_mask);
    }
  } else if constexpr (Bytes == 4 && Count == 4) {
    const u32* const to = detail.data_offset;
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
      __builtin_memcpy(frame + detail.data_offset[i], rows[i], sizeof(rows[i]));
    }
  }
}

template <unsigned Bytes, unsigned Count, class Lane>
__attribute__((no_sanitize("thread"))) inline void store_neighbours(const std::byte* frame,
                                                                    const MemoryDetail& detail,
                                                                    std::byte* to) {
  using T = typename Bits<Bytes>::type;
  if constexpr (Count == 1) {
    const Lane* from = reinterpret_cast<const Lane*>(frame + detail.data_offset[0]);
    for (u32 lane = 0; lane < 32; ++lane) put<T>(to + lane * Bytes, static_cast<T>(from[lane]));
  } else if constexpr (Bytes == 4 && Count == 4) {
    const u32* const from = detail.data_offset;
    transpose_to(to, frame + from[0], frame + from[1], frame + from[2], frame + from[3]);
  } else {
    Lane rows[Count][32];
    for (u32 i = 0; i < Count; ++i) {
      __builtin_memcpy(rows[i], frame + detail.data_offset[i], sizeof(rows[i]));
    }
    for (u32 lane = 0; lane < 32; ++lane) {
      for (u32 i = 0; i < Count; ++i) {
        put<T>(to + (lane * Count + i) * Bytes, static_cast<T>(rows[i][lane]));
      }
    }
  }
}

/// All lanes get the same bytes.
template <unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"))) inline void load_equal(std::byte* frame,
                                                              const MemoryDetail& detail,
                                                              const std::byte* from) {
  using T = typename Bits<Bytes>::type;
  for (u32 i = 0; i < Count; ++i) {
    const Lane value = extend<Bytes, Signed, Lane>(get<T>(from + i * Bytes), detail.register_mask);
    Lane* to = reinterpret_cast<Lane*>(frame + detail.data_offset[i]);
    for (u32 lane = 0; lane < 32; ++lane) to[lane] = value;
  }
}

template <unsigned Bytes, unsigned Count, bool Signed, class Lane>
__attribute__((no_sanitize("thread"))) inline void load_lane(std::byte* frame,
                                                             const MemoryDetail& detail, u32 lane,
                                                             const std::byte* from) {
  using T = typename Bits<Bytes>::type;
  for (u32 i = 0; i < Count; ++i) {
    reinterpret_cast<Lane*>(frame + detail.data_offset[i])[lane] =
        extend<Bytes, Signed, Lane>(get<T>(from + i * Bytes), detail.register_mask);
  }
}

template <unsigned Bytes, unsigned Count, class Lane>
__attribute__((no_sanitize("thread"))) inline void store_lane(const std::byte* frame,
                                                              const MemoryDetail& detail, u32 lane,
                                                              std::byte* to) {
  using T = typename Bits<Bytes>::type;
  for (u32 i = 0; i < Count; ++i) {
    put<T>(to + i * Bytes,
           static_cast<T>(reinterpret_cast<const Lane*>(frame + detail.data_offset[i])[lane]));
  }
}

__attribute__((no_sanitize("thread"))) inline void count_global(AccessCounters& counters,
                                                                u64 sectors, u64 ideal, u64 bytes) {
  ++counters.memory.requests;
  counters.memory.sectors += sectors;
  counters.memory.ideal_sectors += ideal;
  counters.memory.bytes += bytes;
}

/// Distinct sectors of `count` aligned accesses in ascending order; 0 if they are in another order.
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
  if (pattern == Pattern::Neighbours) return RaceAccess::Shape::Neighbours;
  return pattern == Pattern::Equal ? RaceAccess::Shape::Equal : RaceAccess::Shape::Unknown;
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
  const u64 first = lane0 + detail.offset;
  const u64 lowest = gap == distance ? first : first + 31 * gap;
  const u64 length = 31 * distance + kWidth;
  const u64 inside = lowest - last.start;
  if (inside >= last.bytes || last.bytes - inside < length) return false;
  if ((first | distance) % kWidth != 0) return false;
  if (!Store && view.check_written) {
    // Near strides: every byte between is asked as well, which nearly always is as good.
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
    // Less than a sector apart: none between the first and the last is left out.
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
  if (mask == 0xffffffffu) {
    const Pattern pattern = pattern_of<kWidth>(lanes);
    if (pattern != Pattern::Other && !(Store && pattern == Pattern::Equal)) {
      const u64 length = pattern == Pattern::Equal ? kWidth : 32 * kWidth;
      const u64 first = lanes[0] + detail.offset;
      const u64 inside = first - last.start;
      if (inside >= last.bytes || last.bytes - inside < length) return false;
      if (first % kWidth != 0) return false;
      const u64 offset = first - kGlobalBase;
      if constexpr (!Store) {
        if (view.check_written && !all_written(view.written, offset, length)) return false;
      }
      if (races) {
        u64 reached[32];
        for (u32 lane = 0; lane < 32; ++lane) reached[lane] = lanes[lane] + detail.offset;
        alignas(16) std::byte values[32 * kWidth];
        if constexpr (Store) store_neighbours<Bytes, Count, Lane>(context.frame, detail, values);
        note_global_access(context, step, reached, mask, kWidth, Store ? values : nullptr,
                           shape_of(pattern));
      }
      if constexpr (Store) mark_written<true>(view.written, offset, length);
      if (context.counting && !detail.uncounted) {
        count_global(counters, (first % 32 + length + 31) / 32, (length + 31) / 32, 32 * kWidth);
      }
      std::byte* const host = view.global + offset;
      if constexpr (Store) {
        store_neighbours<Bytes, Count, Lane>(context.frame, detail, host);
      } else if (pattern == Pattern::Equal) {
        load_equal<Bytes, Count, Signed, Lane>(context.frame, detail, host);
      } else {
        load_neighbours<Bytes, Count, Signed, Lane>(context.frame, detail, host);
      }
      return true;
    }
  }
  if (mask == 0xffffffffu && !races) {
    const u64 gap = lanes[1] - lanes[0];
    const u64 distance = gap >> 63 != 0 ? u64{0} - gap : gap;
    if (distance >= kWidth && distance < (u64{1} << 32) && evenly_apart(lanes, gap)) {
      return access_strided<Store, Bytes, Count, Signed, Lane>(context, counters, detail, lanes[0],
                                                               gap, distance);
    }
  }
  // Any addresses, all within the allocation that was reached last.
  u64 addresses[32];
  u32 active[32];
  u32 count = 0;
  if (mask == 0xffffffffu) {
    for (; count < 32; ++count) {
      active[count] = count;
      addresses[count] = lanes[count] + detail.offset;
    }
  }
  for (u32 rest = count == 0 ? mask : 0; rest != 0; rest &= rest - 1) {
    const u32 lane = static_cast<u32>(__builtin_ctz(rest));
    active[count] = lane;
    addresses[count++] = lanes[lane] + detail.offset;
  }
  if (last.bytes < kWidth) return false;
  const u64 most = last.bytes - kWidth;
  u32 outside = 0;
  u64 low = 0;
  for (u32 i = 0; i < count; ++i) {
    outside |= addresses[i] - last.start > most;
    low |= addresses[i];
  }
  if (outside != 0 || low % kWidth != 0) return false;
  if (!Store && view.check_written) {
    u64 missing = 0;
    for (u32 i = 0; i < count; ++i) {
      const u64 offset = addresses[i] - kGlobalBase;
      const u64 word = __atomic_load_n(view.written + offset / 64, __ATOMIC_RELAXED);
      missing |= (~word >> offset % 64) & low_mask(kWidth);
    }
    if (missing != 0) return false;
  }
  if (races) {
    u64 by_lane[32];
    for (u32 i = 0; i < count; ++i) by_lane[active[i]] = addresses[i];
    alignas(16) std::byte values[32 * kWidth];
    if constexpr (Store) store_neighbours<Bytes, Count, Lane>(context.frame, detail, values);
    note_global_access(context, step, by_lane, mask, kWidth, Store ? values : nullptr,
                       RaceAccess::Shape::Unknown);
  }
  if (context.counting && !detail.uncounted &&
      !count_ascending<kWidth>(counters, addresses, count)) {
    u64 by_lane[32];
    for (u32 i = 0; i < count; ++i) by_lane[active[i]] = addresses[i];
    count_scattered_global(counters, by_lane, mask, kWidth);
  }
  for (u32 i = 0; i < count; ++i) {
    const u64 offset = addresses[i] - kGlobalBase;
    if constexpr (Store) {
      mark_word<true>(view.written + offset / 64, low_mask(kWidth) << offset % 64);
      store_lane<Bytes, Count, Lane>(context.frame, detail, active[i], view.global + offset);
    } else {
      load_lane<Bytes, Count, Signed, Lane>(context.frame, detail, active[i], view.global + offset);
    }
  }
  return true;
}

/// Wavefronts of 32 lanes that lie evenly apart, each at its own place; 0 for all others. With
/// accesses of `Width` bytes as units, a phase of n lanes, s units apart, falls on n / gcd(s, n)
/// places of n.
template <unsigned Width>
__attribute__((no_sanitize("thread"))) inline u64 strided_wavefronts(const u64* offsets, u32 mask) {
  if constexpr (Width < 4) {
    return 0;
  } else {
    if (mask != 0xffffffffu) return 0;
    const u64 gap = offsets[1] - offsets[0];
    if (gap == 0 || gap % Width != 0 || !evenly_apart(offsets, gap)) return 0;
    constexpr u64 kLanesOfPhase = 128 / Width;
    const u64 common = (gap / Width) & (u64{0} - gap / Width);
    return Width / 4 * (common < kLanesOfPhase ? common : kLanesOfPhase);
  }
}

/// Shared loads and stores. Width: up to 16 bytes of a lane.
template <bool Store, unsigned Bytes, unsigned Count, bool Signed, class Lane, class Address>
__attribute__((no_sanitize("thread"))) inline bool access_shared(Context& context, const Step& step,
                                                                 u32 mask,
                                                                 const MemoryDetail& detail) {
  constexpr unsigned kWidth = Bytes * Count;
  constexpr unsigned kPhases = kWidth <= 4 ? 1 : kWidth / 4;
  const MemoryView& view = context.worker->memory;
  if (view.counters == nullptr) return false;
  const Cta& cta = *context.cta;
  if (cta.shared_bytes < kWidth) return false;
  const u64 most = cta.shared_bytes - kWidth;
  const Address* const lanes = reinterpret_cast<const Address*>(context.frame + step.source[0]);
  const Address plus = static_cast<Address>(detail.offset);
  const Pattern pattern = mask == 0xffffffffu ? pattern_of<kWidth>(lanes) : Pattern::Other;
  const u64 first = static_cast<Address>(lanes[0] + plus);
  u64 offsets[32];
  if (pattern != Pattern::Other) {
    const u64 length = pattern == Pattern::Equal ? kWidth : 32 * kWidth;
    if (first > most || cta.shared_bytes - first < length || first % kWidth != 0) return false;
    if (!Store && view.check_written && !all_written(cta.shared_written, first, length)) {
      return false;
    }
    if (view.shared_races || (Store && pattern == Pattern::Equal)) {
      const u64 gap = pattern == Pattern::Equal ? 0 : kWidth;
      for (u32 lane = 0; lane < 32; ++lane) offsets[lane] = first + lane * gap;
    }
  } else {
    u64 outside = 0;
    u64 low = 0;
    // Lanes that are off have the first byte, which nobody looks at.
    for (u32 lane = 0; lane < 32; ++lane) {
      const u64 on = (mask >> lane & 1u) != 0 ? ~u64{0} : 0;
      const u64 offset = static_cast<Address>(lanes[lane] + plus) & on;
      offsets[lane] = offset;
      // Both are far below 2^63, unless the offset is wrong anyway.
      outside |= (most - offset) | offset;
      low |= offset;
    }
    if (outside >> 63 != 0 || low % kWidth != 0) return false;
    if (!Store && view.check_written) {
      u64 missing = 0;
      for (u32 rest = mask; rest != 0; rest &= rest - 1) {
        const u64 offset = offsets[__builtin_ctz(rest)];
        missing |= (~cta.shared_written[offset / 64] >> offset % 64) & low_mask(kWidth);
      }
      if (missing != 0) return false;
    }
  }
  if (view.shared_races) {
    alignas(16) std::byte values[32 * kWidth];
    if constexpr (Store) store_neighbours<Bytes, Count, Lane>(context.frame, detail, values);
    note_shared_access(context, step, offsets, mask, kWidth, Store ? values : nullptr,
                       shape_of(pattern));
  }
  if (context.counting) {
    SharedCounters& counters = view.counters[step.source[1]].shared;
    const u64 wavefronts =
        pattern != Pattern::Other ? kPhases : strided_wavefronts<kWidth>(offsets, mask);
    if (wavefronts != 0) {
      ++counters.requests;
      counters.wavefronts += wavefronts;
      counters.ideal_wavefronts += kPhases;
      counters.bank_conflicts += wavefronts - kPhases;
      counters.bytes += 32 * kWidth;
    } else {
      count_scattered_shared(view.counters[step.source[1]], offsets, mask, kWidth);
    }
  }
  if (pattern == Pattern::Neighbours) {
    std::byte* const host = cta.shared + first;
    if constexpr (Store) {
      mark_written<false>(cta.shared_written, first, 32 * kWidth);
      store_neighbours<Bytes, Count, Lane>(context.frame, detail, host);
    } else {
      load_neighbours<Bytes, Count, Signed, Lane>(context.frame, detail, host);
    }
    return true;
  }
  if constexpr (!Store) {
    if (pattern == Pattern::Equal) {
      load_equal<Bytes, Count, Signed, Lane>(context.frame, detail, cta.shared + first);
      return true;
    }
  }
  for (u32 rest = mask; rest != 0; rest &= rest - 1) {
    const u32 lane = static_cast<u32>(__builtin_ctz(rest));
    const u64 offset = offsets[lane];
    if constexpr (Store) {
      mark_word<false>(cta.shared_written + offset / 64, low_mask(kWidth) << offset % 64);
      store_lane<Bytes, Count, Lane>(context.frame, detail, lane, cta.shared + offset);
    } else {
      load_lane<Bytes, Count, Signed, Lane>(context.frame, detail, lane, cta.shared + offset);
    }
  }
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
