// ptxgen/builder/options.hpp - options of instructions besides their operands
#pragma once

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0 {

/// Rounding of a floating-point result; `none` leaves the modifier out.
enum class Rounding : std::uint16_t {
  none = static_cast<std::uint16_t>(ptx::Modifier::none),
  rn = static_cast<std::uint16_t>(ptx::Modifier::rn),
  rz = static_cast<std::uint16_t>(ptx::Modifier::rz),
  rm = static_cast<std::uint16_t>(ptx::Modifier::rm),
  rp = static_cast<std::uint16_t>(ptx::Modifier::rp),
  rna = static_cast<std::uint16_t>(ptx::Modifier::rna),
  rni = static_cast<std::uint16_t>(ptx::Modifier::rni),
  rzi = static_cast<std::uint16_t>(ptx::Modifier::rzi),
  rmi = static_cast<std::uint16_t>(ptx::Modifier::rmi),
  rpi = static_cast<std::uint16_t>(ptx::Modifier::rpi),
};

/// Whether passes may make one fused operation, rounded once, of a multiplication and an addition.
using ptx::Contract;

/// How `add`, `sub`, `mul`, `fma`, `div` and the like compute on floats. The rounding is always
/// written: an `add` or `mul` without one may be fused by ptxas.
struct Float {
  Rounding rounding = Rounding::rn;
  bool ftz = false;     ///< subnormal inputs and results become zero (f32, f16)
  bool sat = false;     ///< result clamped to [0, 1], NaN to 0
  bool approx = false;  ///< `.approx` instead of a rounding (div, rcp, sqrt)
  bool relu = false;    ///< negative results become 0 (f16, bf16)
  /// Of `add`, `sub` and `mul`: Contract::Forbid keeps this one apart, Contract::Allow gives it
  /// free in a kernel that forbids (see KernelBuilder::contract).
  Contract contract = Contract::Default;
};

/// How `min` and `max` treat floats.
struct MinMax {
  bool ftz = false;
  bool nan = false;  ///< a NaN operand gives NaN; otherwise the other operand
};

/// How `cvt` converts. Rounding modifiers are `rn rz rm rp` towards floats, `rni rzi rmi rpi`
/// towards integers and integral values.
struct Convert {
  Rounding rounding = Rounding::none;
  bool ftz = false;
  bool sat = false;
  bool satfinite = false;
  bool relu = false;
};

/// The comparison of `setp`. `lo ls hi hs` are the unsigned ones by another name; those that end in
/// `u` hold for NaN too.
enum class Comparison : std::uint16_t {
  eq = static_cast<std::uint16_t>(ptx::Modifier::eq),
  ne = static_cast<std::uint16_t>(ptx::Modifier::ne),
  lt = static_cast<std::uint16_t>(ptx::Modifier::lt),
  le = static_cast<std::uint16_t>(ptx::Modifier::le),
  gt = static_cast<std::uint16_t>(ptx::Modifier::gt),
  ge = static_cast<std::uint16_t>(ptx::Modifier::ge),
  lo = static_cast<std::uint16_t>(ptx::Modifier::lo),
  ls = static_cast<std::uint16_t>(ptx::Modifier::ls),
  hi = static_cast<std::uint16_t>(ptx::Modifier::hi),
  hs = static_cast<std::uint16_t>(ptx::Modifier::hs),
  equ = static_cast<std::uint16_t>(ptx::Modifier::equ),
  neu = static_cast<std::uint16_t>(ptx::Modifier::neu),
  ltu = static_cast<std::uint16_t>(ptx::Modifier::ltu),
  leu = static_cast<std::uint16_t>(ptx::Modifier::leu),
  gtu = static_cast<std::uint16_t>(ptx::Modifier::gtu),
  geu = static_cast<std::uint16_t>(ptx::Modifier::geu),
  num = static_cast<std::uint16_t>(ptx::Modifier::num),
  nan = static_cast<std::uint16_t>(ptx::Modifier::nan),
};

enum class Order : std::uint16_t {
  none = static_cast<std::uint16_t>(ptx::Modifier::none),
  weak = static_cast<std::uint16_t>(ptx::Modifier::weak),
  volatile_ = static_cast<std::uint16_t>(ptx::Modifier::volatile_),
  relaxed = static_cast<std::uint16_t>(ptx::Modifier::relaxed),
  acquire = static_cast<std::uint16_t>(ptx::Modifier::acquire),
  release = static_cast<std::uint16_t>(ptx::Modifier::release),
  acq_rel = static_cast<std::uint16_t>(ptx::Modifier::acq_rel),
  sc = static_cast<std::uint16_t>(ptx::Modifier::sc),
};

enum class Scope : std::uint16_t {
  none = static_cast<std::uint16_t>(ptx::Modifier::none),
  cta = static_cast<std::uint16_t>(ptx::Modifier::cta),
  cluster = static_cast<std::uint16_t>(ptx::Modifier::cluster),
  gpu = static_cast<std::uint16_t>(ptx::Modifier::gpu),
  sys = static_cast<std::uint16_t>(ptx::Modifier::sys),
};

/// Cache operators: `ca cg cs lu cv` of loads, `wb cg cs wt` of stores.
enum class Cache : std::uint16_t {
  none = static_cast<std::uint16_t>(ptx::Modifier::none),
  ca = static_cast<std::uint16_t>(ptx::Modifier::ca),
  cg = static_cast<std::uint16_t>(ptx::Modifier::cg),
  cs = static_cast<std::uint16_t>(ptx::Modifier::cs),
  lu = static_cast<std::uint16_t>(ptx::Modifier::lu),
  cv = static_cast<std::uint16_t>(ptx::Modifier::cv),
  wb = static_cast<std::uint16_t>(ptx::Modifier::wb),
  wt = static_cast<std::uint16_t>(ptx::Modifier::wt),
};

/// Eviction priority in L1.
enum class L1 : std::uint16_t {
  none = static_cast<std::uint16_t>(ptx::Modifier::none),
  evict_normal = static_cast<std::uint16_t>(ptx::Modifier::L1_evict_normal),
  evict_unchanged = static_cast<std::uint16_t>(ptx::Modifier::L1_evict_unchanged),
  evict_first = static_cast<std::uint16_t>(ptx::Modifier::L1_evict_first),
  evict_last = static_cast<std::uint16_t>(ptx::Modifier::L1_evict_last),
  no_allocate = static_cast<std::uint16_t>(ptx::Modifier::L1_no_allocate),
};

/// Eviction priority in L2 (32-byte accesses, sm_100 and later).
enum class L2 : std::uint16_t {
  none = static_cast<std::uint16_t>(ptx::Modifier::none),
  evict_normal = static_cast<std::uint16_t>(ptx::Modifier::L2_evict_normal),
  evict_first = static_cast<std::uint16_t>(ptx::Modifier::L2_evict_first),
  evict_last = static_cast<std::uint16_t>(ptx::Modifier::L2_evict_last),
};

/// How many bytes around a load the L2 may fetch.
enum class Prefetch : std::uint16_t {
  none = static_cast<std::uint16_t>(ptx::Modifier::none),
  L2_64B = static_cast<std::uint16_t>(ptx::Modifier::L2_64B),
  L2_128B = static_cast<std::uint16_t>(ptx::Modifier::L2_128B),
  L2_256B = static_cast<std::uint16_t>(ptx::Modifier::L2_256B),
};

/// Modifiers of a load. `read_only` is `.nc`: the memory is not written while the kernel runs.
struct Load {
  bool read_only = false;
  Cache cache = Cache::none;
  L1 l1 = L1::none;
  L2 l2 = L2::none;
  Prefetch prefetch = Prefetch::none;
  Order order = Order::none;
  Scope scope = Scope::none;
};

/// Modifiers of a store.
struct Store {
  Cache cache = Cache::none;
  L1 l1 = L1::none;
  L2 l2 = L2::none;
  Order order = Order::none;
  Scope scope = Scope::none;
};

/// Modifiers of an atomic operation; without an order it is relaxed, without a scope `.gpu`.
struct Atomic {
  Order order = Order::none;
  Scope scope = Scope::none;
};

/// Whether the pass `loop_split` may write a loop twice for a condition in it that changes once:
/// given to the condition, to the loop, or to the kernel; the first of these that says something
/// counts. 0: no. 1: yes. n: if the condition decides about n instructions or more, or about one
/// that touches memory, works with other threads or branches.
struct Split {
  std::int16_t threshold = -1;  ///< -1: not set
};

/// How many copies of a loop's body are emitted per iteration.
struct Unroll {
  unsigned factor = 1;
};

}  // namespace ptxgen::inline v0
