// ptxgen/builder/warpgroup.hpp - wgmma, and copies of tiles of tensors
#pragma once

#include "ptxgen/support/language.hpp"

#include <array>
#include <utility>

#include "ptxgen/builder/cluster.hpp"
#include "ptxgen/builder/matrix.hpp"

// Not part of ptxgen/builder.hpp: kernels for sm_90a include it. Products are executed by all 128
// threads of a warpgroup (warps 4 i to 4 i + 3), tensor copies by one thread. Every function emits
// one statement where it does not say otherwise, and checks as KernelBuilder does.

namespace ptxgen::inline v0 {

/// 8-bit floats: elements of matrices only.
struct e4m3 : detail::TypeTag<ptx::Type::e4m3, 8, ptx::TypeKind::Packed, detail::RegisterClass::rs,
                              ptx::Type::b8> {};
struct e5m2 : detail::TypeTag<ptx::Type::e5m2, 8, ptx::TypeKind::Packed, detail::RegisterClass::rs,
                              ptx::Type::b8> {};

// Matrices in shared memory --------------------------------------------------------------------

/// How 16-byte pieces of a matrix in shared memory are permuted: rows of that many bytes, whose
/// piece p is at p xor a number of the row. The values are the bytes.
enum class Swizzle : std::uint8_t { None = 0, Bytes32 = 32, Bytes64 = 64, Bytes128 = 128 };

/// The layout of a matrix operand of `wgmma` (PTX ISA, "Matrix Descriptor Format").
struct MatrixLayout {
  Swizzle swizzle = Swizzle::Bytes128;
  /// Bytes, multiples of 16. Rows contiguous along k: `leading` is the distance of core matrices
  /// (8 rows of 16 bytes) along k and is ignored with a swizzle; `stride` that of groups of 8 rows
  /// along m or n. Rows contiguous along m or n: `leading` is the distance of groups of 8 rows of k
  /// without a swizzle, that of the next bytes of a row with one; `stride` is the distance of core
  /// matrices along m or n, or that of groups of 8 rows of k.
  unsigned leading = 0;
  unsigned stride = 1024;
};

/// The descriptor of the matrix that begins at p: 5 statements. p is aligned to 16 bytes; with a
/// swizzle the array is aligned to 8 times its bytes. A step of k within a row adds its bytes / 16
/// to the descriptor.
template <class T>
Value<u64> matrix_descriptor(KernelBuilder& k, const Ptr<T, Shared>& p, const MatrixLayout& layout,
                             SourceLocation site = SourceLocation::current()) {
  constexpr unsigned kAddressBits = 0x3ffff;
  if (layout.leading % 16 != 0 || layout.stride % 16 != 0 || layout.leading > kAddressBits ||
      layout.stride > kAddressBits) {
    k.refuse(
        "bad-operand",
        "matrix_descriptor: a leading offset of " + std::to_string(layout.leading) +
            " and a stride offset of " + std::to_string(layout.stride) +
            " bytes; rule: both are multiples of 16 below 2^18; cure: pad the rows to 16 bytes",
        site);
  }
  constexpr auto kMode = [](Swizzle swizzle) -> std::uint64_t {
    return swizzle == Swizzle::None       ? 0
           : swizzle == Swizzle::Bytes128 ? 1
           : swizzle == Swizzle::Bytes64  ? 2
                                          : 3;
  };
  const std::uint64_t fields = std::uint64_t{layout.leading / 16} << 16 |
                               std::uint64_t{layout.stride / 16} << 32 |
                               kMode(layout.swizzle) << 62;
  detail::Transaction transaction(k);
  const Value<u32> encoded = k.shr(k.and_(k.address_of(p, site), kAddressBits, site), 4, site);
  const Value<u64> field_bits = k.constant<u64>(fields, site);
  Value<u64> descriptor = k.or_(k.template cvt<u64>(encoded, Convert{}, site), field_bits, site);
  transaction.keep();
  return descriptor;
}

// Products -------------------------------------------------------------------------------------

/// The accumulator of a warpgroup, 64 x kN elements of f32, s32 or f16, in variables of each
/// thread. Between `wgmma` and a `wgmma_wait` for its group no other statement may name them.
template <unsigned kN_, class T>
class WarpgroupAccumulator {
  static_assert(kN_ % 8 == 0 && kN_ >= 8 && kN_ <= 256, "n is a multiple of 8 from 8 to 256");
  static_assert(detail::kSame<T, f32> || detail::kSame<T, s32> || detail::kSame<T, f16>,
                "wgmma accumulates f32, f16 or s32");

 public:
  using Element = T;
  using Register = typename detail::FragmentRegister<T>::type;
  static constexpr unsigned kM = 64, kN = kN_;
  static constexpr unsigned kPerRegister = 32 / T::kBits;
  static constexpr unsigned kRegisters = kN / 2 / kPerRegister;

  struct Place {
    unsigned row = 0, column = 0;
  };
  /// Where element `element` of thread `thread` of the warpgroup is.
  [[nodiscard]] static constexpr Place place(unsigned thread, unsigned element) noexcept {
    const unsigned lane = thread % 32;
    return {thread / 32 * 16 + lane / 4 + element / 2 % 2 * 8,
            element / 4 * 8 + lane % 4 * 2 + element % 2};
  }

  /// Starts at zero: a statement for each register.
  explicit WarpgroupAccumulator(KernelBuilder& k, SourceLocation site = SourceLocation::current())
      : WarpgroupAccumulator(k, site, std::make_index_sequence<kRegisters>()) {}

  [[nodiscard]] const std::array<Var<Register>, kRegisters>& variables() const noexcept {
    return variables_;
  }

 private:
  template <std::size_t... kIndex>
  WarpgroupAccumulator(KernelBuilder& k, SourceLocation site, std::index_sequence<kIndex...>)
      : variables_{variable(k, site, kIndex)...} {}
  static Var<Register> variable(KernelBuilder& k, SourceLocation site, std::size_t) {
    return k.var<Register>(detail::zero_register<Register>(k, site), site);
  }
  std::array<Var<Register>, kRegisters> variables_;
};

/// What a product does besides multiplying.
struct WarpgroupProduct {
  bool accumulate = true;  ///< d = a b + d, else d = a b
  bool negate_a = false;   ///< not of integers
  bool negate_b = false;
  bool transpose_a = false;  ///< a in shared memory is contiguous along m; 16-bit elements only
  bool transpose_b = false;  ///< b is contiguous along n; 16-bit elements only
  bool satfinite = false;    ///< clamps sums of integers
};

/// Orders accesses to accumulators and fragments of a before the products that have them.
inline void wgmma_fence(KernelBuilder& k, SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::wgmma_fence, {}, {}, site);
}
/// Makes a group of the products since the last one.
inline void wgmma_commit(KernelBuilder& k, SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::wgmma_commit_group, {}, {}, site);
}
/// Until at most the `pending` latest groups are unfinished.
inline void wgmma_wait(KernelBuilder& k, unsigned pending,
                       SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::wgmma_wait_group, {}, {pending}, site);
}

namespace detail {

template <class T>
inline constexpr bool kIsFp8 = T::kType == ptx::Type::e4m3 || T::kType == ptx::Type::e5m2;
template <class T>
inline constexpr bool kIsByte = kSame<T, s8> || kSame<T, u8>;

/// The row with a in shared memory; that with a in registers follows it.
template <class A, class B, class D>
[[nodiscard]] constexpr ptx::Op wgmma_row() noexcept {
  if (kSame<A, f16> && kSame<B, f16>) {
    return kSame<D, f16>   ? ptx::Op::wgmma_f16_f16_shared
           : kSame<D, f32> ? ptx::Op::wgmma_f16_f32_shared
                           : kNoMma;
  }
  if (kSame<D, f32> && kSame<A, bf16> && kSame<B, bf16>) return ptx::Op::wgmma_bf16_shared;
  if (kSame<D, f32> && kSame<A, tf32> && kSame<B, tf32>) return ptx::Op::wgmma_tf32_shared;
  if (kIsFp8<A> && kIsFp8<B>) {
    return kSame<D, f16>   ? ptx::Op::wgmma_fp8_f16_shared
           : kSame<D, f32> ? ptx::Op::wgmma_fp8_f32_shared
                           : kNoMma;
  }
  if (kIsByte<A> && kIsByte<B> && kSame<D, s32>) return ptx::Op::wgmma_s8_shared;
  return kNoMma;
}

/// `.m64nNkK` of elements of that many bits.
[[nodiscard]] constexpr ptx::Modifier warpgroup_shape(unsigned n, unsigned element_bits) noexcept {
  const auto first = static_cast<unsigned>(element_bits == 32   ? ptx::Modifier::m64n8k8
                                           : element_bits == 16 ? ptx::Modifier::m64n8k16
                                                                : ptx::Modifier::m64n8k32);
  return static_cast<ptx::Modifier>(first + n / 8 - 1);
}

template <class A, class B, unsigned kN, class D>
void emit_wgmma(KernelBuilder& k, const WarpgroupAccumulator<kN, D>& d, const Operand& a,
                bool in_registers, const Value<u64>& b, const WarpgroupProduct& how,
                SourceLocation site) {
  constexpr ptx::Op kRow = wgmma_row<A, B, D>();
  static_assert(kRow != kNoMma,
                "PTX has no such wgmma: there are f16 x f16 to f32 or f16, bf16 x bf16 and tf32 x "
                "tf32 to f32, e4m3 or e5m2 x e4m3 or e5m2 to f32 or f16, s8 or u8 x s8 or u8 to "
                "s32");
  constexpr unsigned kBits = A::kBits;
  const auto d_list = operands_of(d.variables(), site);
  std::array<ptx::Modifier, 4> modifiers{};
  std::size_t modifier_count = 0;
  modifiers[modifier_count++] = warpgroup_shape(kN, kBits);
  if constexpr (kBits == 8) {
    modifiers[modifier_count++] = kTypeModifier<A>;
    modifiers[modifier_count++] = kTypeModifier<B>;
  }
  if (how.satfinite) modifiers[modifier_count++] = ptx::Modifier::satfinite;
  std::array<Operand, 8> operands{Vec(d_list),
                                  a,
                                  Operand(b, site),
                                  Operand(how.accumulate ? 1 : 0, site),
                                  Operand(how.negate_a ? -1 : 1, site),
                                  Operand(how.negate_b ? -1 : 1, site),
                                  Operand(how.transpose_a ? 1 : 0, site),
                                  Operand(how.transpose_b ? 1 : 0, site)};
  std::size_t count = kIsByte<A> ? 4 : 6;
  if constexpr (kBits == 16) {
    count = in_registers ? 7 : 8;
    if (in_registers) operands[6] = operands[7];
  }
  const auto op = static_cast<ptx::Op>(static_cast<unsigned>(kRow) + (in_registers ? 1 : 0));
  k.emit(op, std::span(modifiers.data(), modifier_count), std::span(operands.data(), count), site);
}

}  // namespace detail

/// `d += a b` (or `d = a b`), of elements A and B, both in shared memory: descriptors of 64 rows of
/// m, and kN rows of n, with 32 bytes of k. Complete after `wgmma_commit` and a `wgmma_wait`.
template <class A, class B, unsigned kN, class D>
void wgmma(KernelBuilder& k, const WarpgroupAccumulator<kN, D>& d, const Value<u64>& a,
           const Value<u64>& b, const WarpgroupProduct& how = {},
           SourceLocation site = SourceLocation::current()) {
  detail::emit_wgmma<A, B>(k, d, Operand(a, site), false, b, how, site);
}
/// The same with a in registers: rows 16 w to 16 w + 15 in warp w, as fragment a of an
/// mma.m16n8 with 32 bytes of k.
template <class A, class B, unsigned kN, class D, class R>
void wgmma(KernelBuilder& k, const WarpgroupAccumulator<kN, D>& d, const std::array<Value<R>, 4>& a,
           const Value<u64>& b, const WarpgroupProduct& how = {},
           SourceLocation site = SourceLocation::current()) {
  const auto a_list = detail::operands_of(a, site);
  detail::emit_wgmma<A, B>(k, d, Vec(a_list), true, b, how, site);
}

// Tensor maps ----------------------------------------------------------------------------------

/// A tensor map, as a parameter of the kernel: what cuTensorMapEncodeTiled made, 128 bytes.
class TensorMap {
 public:
  explicit TensorMap(Ptr<b8, Global> address) noexcept : address_(address) {}
  /// Generic; typed as global since the instructions count it so.
  [[nodiscard]] const Ptr<b8, Global>& address() const noexcept { return address_; }

 private:
  Ptr<b8, Global> address_;
};

/// Declares a parameter (`.param .align 64 .b8 name[128]`) and takes its address: two statements.
inline TensorMap tensor_map_param(KernelBuilder& k, Name name) {
  const SourceLocation site = name.site;
  return TensorMap(k.pointer<b8, Global>(k.tensor_map_address(name), site));
}

namespace detail {

template <std::size_t kRank>
[[nodiscard]] constexpr ptx::Modifier tensor_dimensions() noexcept {
  static_assert(kRank >= 1 && kRank <= 5, "a tensor has 1 to 5 dimensions");
  return static_cast<ptx::Modifier>(static_cast<unsigned>(ptx::Modifier::dim_1d) + kRank - 1);
}

}  // namespace detail

/// The box at these coordinates (dimension 0, the contiguous one, first) to shared memory, counted
/// by `bar`, which expects the bytes of the box. `to` is aligned to 128 bytes, with a swizzle to 8
/// times its bytes.
template <class T, std::size_t kRank>
void copy_tensor(KernelBuilder& k, const Ptr<T, Shared>& to, const TensorMap& map,
                 const std::array<Value<s32>, kRank>& at, const Mbarrier& bar,
                 SourceLocation site = SourceLocation::current()) {
  const auto list = detail::operands_of(at, site);
  const Operand operands[] = {Operand(to, site), Operand(map.address(), site),
                              Operand(Vec(list)).joined(), Operand(bar, site)};
  const ptx::Modifier modifiers[] = {detail::tensor_dimensions<kRank>(),
                                     ptx::Modifier::shared_cluster, ptx::Modifier::global};
  k.emit(ptx::Op::cp_async_bulk_tensor_load, modifiers, operands, site);
}
/// The same to the blocks of the cluster whose bits of `ranks` are set, at the same offsets.
template <class T, std::size_t kRank>
void copy_tensor(KernelBuilder& k, const Ptr<T, Shared>& to, const TensorMap& map,
                 const std::array<Value<s32>, kRank>& at, const Mbarrier& bar,
                 const Value<u16>& ranks, SourceLocation site = SourceLocation::current()) {
  const auto list = detail::operands_of(at, site);
  const Operand operands[] = {Operand(to, site), Operand(map.address(), site),
                              Operand(Vec(list)).joined(), Operand(bar, site),
                              Operand(ranks, site)};
  const ptx::Modifier modifiers[] = {detail::tensor_dimensions<kRank>(),
                                     ptx::Modifier::shared_cluster, ptx::Modifier::global,
                                     ptx::Modifier::multicast_cluster};
  k.emit(ptx::Op::cp_async_bulk_tensor_load, modifiers, operands, site);
}
/// A box from shared memory to the tensor, without what is out of its bounds. Needs
/// `fence_proxy_async` after the stores to shared memory; ends with `copy_bulk_commit` and
/// `copy_bulk_wait`.
template <class T, std::size_t kRank>
void copy_tensor(KernelBuilder& k, const TensorMap& map, const std::array<Value<s32>, kRank>& at,
                 const Ptr<T, Shared>& from, SourceLocation site = SourceLocation::current()) {
  const auto list = detail::operands_of(at, site);
  const Operand operands[] = {Operand(map.address(), site), Operand(Vec(list)).joined(),
                              Operand(from, site)};
  const ptx::Modifier modifiers[] = {detail::tensor_dimensions<kRank>(), ptx::Modifier::global,
                                     ptx::Modifier::shared_cta};
  k.emit(ptx::Op::cp_async_bulk_tensor_store, modifiers, operands, site);
}
/// Brings a tensor map into the cache before its first use.
inline void prefetch_map(KernelBuilder& k, const TensorMap& map,
                         SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::prefetch_tensormap, {}, {k.pointer<b8, Generic>(k.address_of(map.address()))},
         site);
}

}  // namespace ptxgen::inline v0
