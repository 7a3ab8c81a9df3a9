// src/kernels/gemv/number.cpp - numbers known at build time or run time
#include <algorithm>
#include <bit>

#include "kernels/gemv/emit.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

const Value<u32>& running(const Number& n) { return std::get<Value<u32>>(n); }

}  // namespace

Value<u32> value(KernelBuilder& k, const Number& n) {
  return known(n) != nullptr ? k.constant<u32>(*known(n)) : running(n);
}

Number add(KernelBuilder& k, const Number& a, const Number& b) {
  if (known(a) != nullptr && known(b) != nullptr) return *known(a) + *known(b);
  if (known(a) != nullptr) return add(k, b, a);
  if (known(b) == nullptr) return running(a) + running(b);
  return *known(b) == 0 ? a : Number(running(a) + *known(b));
}

Number subtract(KernelBuilder& k, const Number& a, const Number& b) {
  if (known(a) != nullptr && known(b) != nullptr) return *known(a) - *known(b);
  if (known(b) != nullptr) return *known(b) == 0 ? a : Number(running(a) - *known(b));
  return known(a) != nullptr ? k.sub(*known(a), running(b)) : running(a) - running(b);
}

Number min_of(KernelBuilder& k, const Number& a, const Number& b) {
  if (known(a) != nullptr && known(b) != nullptr) return std::min(*known(a), *known(b));
  if (known(a) != nullptr) return min_of(k, b, a);
  return known(b) != nullptr ? k.min(running(a), *known(b)) : k.min(running(a), running(b));
}

Number times(KernelBuilder& k, const Number& a, std::uint32_t factor) {
  if (known(a) != nullptr) return *known(a) * factor;
  return factor == 1 ? a : Number(k.mul_lo(running(a), factor));
}

// A product with m / 2^s, slightly more than 1 / divisor, is exact as long as n times the excess of
// m is below 2^s (Granlund, Montgomery, Division by invariant integers using multiplication, 1994).
Value<u32> quotient(KernelBuilder& k, const Value<u32>& n, std::uint64_t max_n,
                    std::uint64_t divisor) {
  if (divisor == 1) return n;
  const auto log2 = static_cast<unsigned>(std::bit_width(divisor) - 1);
  if (std::has_single_bit(divisor)) return n >> log2;
  const std::uint64_t power = std::uint64_t{1} << 32 << log2;
  const std::uint64_t m = power / divisor + 1;
  const std::uint64_t excess = m * divisor - power;
  if (m >> 32 != 0 || max_n >= power / excess) return n / static_cast<std::uint32_t>(divisor);
  return k.mul_hi(n, static_cast<std::uint32_t>(m)) >> log2;
}

Value<u32> remainder(KernelBuilder& k, const Value<u32>& n, const Value<u32>& quotient,
                     std::uint32_t divisor) {
  if (std::has_single_bit(divisor)) return n & (divisor - 1);
  const Value<u32> before = k.mul_lo(quotient, divisor);
  return n - before;
}

Ptr<b8> moved(KernelBuilder& k, const Ptr<b8>& p, const Number& n, std::uint64_t bytes) {
  if (known(n) != nullptr) {
    return p.offset_bytes(static_cast<std::int64_t>(bytes * *known(n)));
  }
  if (bytes == 0) return p;
  if (bytes >> 32 == 0) {
    return p.offset_bytes(k.mul_wide(running(n), static_cast<std::uint32_t>(bytes)));
  }
  return p.offset_bytes(k.mul_lo(k.cvt<u64>(running(n)), bytes));
}

void repeat(KernelBuilder& k, const Number& n, const std::function<void()>& body) {
  if (known(n) != nullptr) {
    k.for_(0u, *known(n), 1u, [&] { body(); });
  } else {
    k.for_(0u, running(n), 1u, [&] { body(); });
  }
}

void if_any(KernelBuilder& k, const Number& n, const std::function<void()>& body) {
  if (known(n) == nullptr) {
    k.if_(running(n) != 0u, [&] { body(); });
  } else if (*known(n) != 0) {
    body();
  }
}

void prefetch(KernelBuilder& k, const Ptr<b8>& p) {
  k.emit(ptx::Op::prefetch, {ptx::Modifier::global, ptx::Modifier::L2}, {p});
}

}  // namespace ptxgen::inline v0::gemv
