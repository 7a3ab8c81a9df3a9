// src/emulator/memory/atomic.cpp - atom and red
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>

#include "emulator/memory/access.hpp"
#include "emulator/memory/steps.hpp"
#include "emulator/state/address_space.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Modifier;
using ptx::Type;

// The canonical NaN of PTX's float operations.
constexpr std::uint32_t kNan32 = 0x7fffffffu;
constexpr std::uint64_t kNan64 = 0xfff8'0000'0000'0000u;
constexpr std::uint16_t kNan16 = 0x7fff;

/// The value of a 16-bit float with `ExponentBits` exponent bits.
template <int ExponentBits>
double widened(std::uint16_t bits) noexcept {
  constexpr int kFraction = 15 - ExponentBits;
  constexpr int kMax = (1 << ExponentBits) - 1;
  constexpr int kBias = kMax / 2;
  const int exponent = bits >> kFraction & kMax;
  const int fraction = bits & ((1 << kFraction) - 1);
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  if (exponent == kMax) {
    return fraction != 0 ? std::nan("") : sign * INFINITY;
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - kBias - kFraction);
  return sign * std::ldexp(fraction + (1 << kFraction), exponent - kBias - kFraction);
}

/// Rounded to nearest even, subnormals kept. A sum of two such numbers in double and then rounded
/// is the sum rounded once, because 53 >= 2 * 11 + 2.
template <int ExponentBits>
std::uint16_t narrowed(double value) noexcept {
  constexpr int kFraction = 15 - ExponentBits;
  constexpr int kMax = (1 << ExponentBits) - 1;
  constexpr int kBias = kMax / 2;
  if (std::isnan(value)) return kNan16;
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000u : 0u);
  const double size = std::fabs(value);
  if (size == 0) return sign;
  if (std::isinf(size)) return static_cast<std::uint16_t>(sign | kMax << kFraction);
  const int exponent = std::max(std::ilogb(size), 1 - kBias);
  // In units of the last place; a carry out of the fraction increments the exponent.
  const double units = std::nearbyint(std::ldexp(size, kFraction - exponent));
  const auto code = static_cast<int>(units) + ((exponent + kBias - 1) << kFraction);
  return static_cast<std::uint16_t>(sign | std::min(code, kMax << kFraction));
}

template <int ExponentBits>
std::uint16_t half_op(Modifier action, std::uint16_t a, std::uint16_t b) noexcept {
  const double x = widened<ExponentBits>(a);
  const double y = widened<ExponentBits>(b);
  if (action == Modifier::add) return narrowed<ExponentBits>(x + y);
  // min and max of a number and a NaN give the number; -0 is below +0.
  if (std::isnan(x) && std::isnan(y)) return kNan16;
  if (std::isnan(x)) return b;
  if (std::isnan(y)) return a;
  const bool less = x < y || (x == y && std::signbit(x));
  return less == (action == Modifier::min) ? a : b;
}

template <int ExponentBits>
std::uint32_t pair_op(Modifier action, std::uint32_t a, std::uint32_t b) noexcept {
  const auto low =
      half_op<ExponentBits>(action, static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(b));
  const auto high = half_op<ExponentBits>(action, static_cast<std::uint16_t>(a >> 16),
                                          static_cast<std::uint16_t>(b >> 16));
  return std::uint32_t{high} << 16 | low;
}

float flushed(float value) noexcept {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

/// PTX ISA, atom: .add.f32 flushes subnormals on global memory and keeps them on shared memory.
std::uint32_t add_f32(std::uint32_t a, std::uint32_t b, bool flush) noexcept {
  float x = std::bit_cast<float>(a);
  float y = std::bit_cast<float>(b);
  if (flush) {
    x = flushed(x);
    y = flushed(y);
  }
  float sum = x + y;
  if (std::isnan(sum)) return kNan32;
  if (flush) sum = flushed(sum);
  return std::bit_cast<std::uint32_t>(sum);
}

std::uint64_t add_f64(std::uint64_t a, std::uint64_t b) noexcept {
  const double sum = std::bit_cast<double>(a) + std::bit_cast<double>(b);
  return std::isnan(sum) ? kNan64 : std::bit_cast<std::uint64_t>(sum);
}

template <class T>
T integer_op(Modifier action, bool is_signed, T a, T b, T c) noexcept {
  using S = std::make_signed_t<T>;
  switch (action) {
    case Modifier::add:
      return static_cast<T>(a + b);
    case Modifier::and_:
      return static_cast<T>(a & b);
    case Modifier::or_:
      return static_cast<T>(a | b);
    case Modifier::xor_:
      return static_cast<T>(a ^ b);
    case Modifier::exch:
      return b;
    case Modifier::cas:
      return a == b ? c : a;
    case Modifier::inc:
      return a >= b ? T{0} : static_cast<T>(a + 1);
    case Modifier::dec:
      return a == 0 || a > b ? b : static_cast<T>(a - 1);
    case Modifier::min:
      return (is_signed ? static_cast<S>(a) < static_cast<S>(b) : a < b) ? a : b;
    case Modifier::max:
      return (is_signed ? static_cast<S>(a) > static_cast<S>(b) : a > b) ? a : b;
    default:
      return a;
  }
}

/// Computes the new value of an element.
struct Change {
  Modifier action;
  Type type;
  bool flush;

  template <class T>
  [[nodiscard]] T operator()(T old, T b, T c) const noexcept {
    if constexpr (sizeof(T) == 8) {
      if (type == Type::f64) return add_f64(old, b);
    } else if constexpr (sizeof(T) == 4) {
      if (type == Type::f32) return add_f32(old, b, flush);
      if (type == Type::f16x2) return pair_op<5>(action, old, b);
      if (type == Type::bf16x2) return pair_op<8>(action, old, b);
    } else {
      if (type == Type::f16) return half_op<5>(action, old, b);
      if (type == Type::bf16) return half_op<8>(action, old, b);
    }
    return integer_op<T>(action, ptx::kind(type) == ptx::TypeKind::Signed, old, b, c);
  }
};

/// Several workers may update a global word concurrently; only one accesses shared memory.
template <class T>
T update(std::byte* memory, const Change& change, bool concurrent, std::uint64_t b,
         std::uint64_t c) noexcept {
  T* const word = reinterpret_cast<T*>(memory);
  if (!concurrent) {
    T old;
    std::memcpy(&old, memory, sizeof(T));
    const T changed = change(old, static_cast<T>(b), static_cast<T>(c));
    std::memcpy(memory, &changed, sizeof(T));
    return old;
  }
  T old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, change(old, static_cast<T>(b), static_cast<T>(c)),
                                      false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

/// 16 bytes: exch and cas. Locked, since not every host has 16-byte atomics.
void update_wide(AddressSpace& space, std::byte* memory, Modifier action, const std::byte* b,
                 const std::byte* c, std::byte* old) {
  const std::scoped_lock lock(space.wide_atomics());
  load_bytes(old, memory, 16);
  if (action == Modifier::exch) {
    store_bytes(memory, b, 16);
  } else if (std::memcmp(old, b, 16) == 0) {
    store_bytes(memory, c, 16);
  }
}

}  // namespace

void run_atomic(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const MemoryDetail& detail = context.code->memory[step.detail];
  const AtomicDetail& atomic = detail.as<AtomicDetail>();
  context.warp->failed_poll.consecutive = 0;
  std::uint64_t addresses[32];
  compute_addresses(context, detail.address, addresses);
  AccessRequest request;
  request.space = detail.space;
  request.addresses = addresses;
  request.mask = mask;
  request.bytes = request.alignment = unsigned{detail.element_bytes} * detail.elements;
  request.reads = true;
  request.writes = true;
  request.kind = RaceAccess::Kind::Atomic;
  AccessTargets found;
  resolve_access(context, step, detail, request, found);
  const unsigned bytes = detail.element_bytes;
  for_each_lane(mask, [&](unsigned lane) {
    const bool reached = (found.mask >> lane & 1u) != 0;
    const ptx::Space space =
        detail.space == ptx::Space::Generic ? window_of(addresses[lane]) : detail.space;
    const Change change{atomic.operation, atomic.type, space == ptx::Space::Global};
    for (unsigned i = 0; i < detail.elements; ++i) {
      std::byte old[16] = {};
      if (reached) {
        std::byte* const memory = found.host[lane] + i * bytes;
        std::byte b[16] = {};
        std::byte c[16] = {};
        get_element(context, detail.sources[i], lane, b, bytes);
        if (atomic.operation == Modifier::cas) {
          get_element(context, detail.sources[1], lane, c, bytes);
        }
        if (bytes == 16) {
          update_wide(*context.grid->space, memory, atomic.operation, b, c, old);
        } else {
          std::uint64_t b_bits = 0;
          std::uint64_t c_bits = 0;
          std::memcpy(&b_bits, b, 8);
          std::memcpy(&c_bits, c, 8);
          const bool concurrent = space == ptx::Space::Global;
          std::uint64_t bits = 0;
          if (bytes == 8) {
            bits = update<std::uint64_t>(memory, change, concurrent, b_bits, c_bits);
          } else if (bytes == 4) {
            bits = update<std::uint32_t>(memory, change, concurrent, b_bits, c_bits);
          } else {
            bits = update<std::uint16_t>(memory, change, concurrent, b_bits, c_bits);
          }
          std::memcpy(old, &bits, 8);
        }
      }
      if (i < detail.data.size()) set_element(context, detail.data[i], lane, old, bytes);
    }
  });
}

}  // namespace ptxgen::inline v0::emulator
