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

/// A tensor map for copies: what cuTensorMapEncodeTiled made, 128 bytes, as a parameter of the
/// kernel, or in global memory, where `acquire_map` precedes the copies.
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

// Changes of tensor maps -----------------------------------------------------------------------

// A thread copies a map (or 128 bytes of zero) to shared memory aligned to 128 bytes and changes
// the copy there; after `bar_warp_sync` its warp publishes it in global memory, and threads that
// use it acquire it. Earlier copies by the map have ended reading: `copy_bulk_wait`. sm_90a and the
// targets with suffix of Blackwell.

namespace detail {

template <class Space>
[[nodiscard]] constexpr ptx::Modifier map_space() noexcept {
  static_assert(
      Space::kModifier == ptx::Modifier::shared || Space::kModifier == ptx::Modifier::global,
      "tensormap.replace changes maps in shared or global memory");
  return Space::kModifier == ptx::Modifier::shared ? ptx::Modifier::shared_cta
                                                   : ptx::Modifier::global;
}

/// Refuses a number beyond the dimensions of a tensor.
inline void check_dimension(KernelBuilder& k, ptx::Modifier field, unsigned dimension,
                            unsigned first, SourceLocation site) {
  if (dimension >= first && dimension < 5) return;
  k.refuse("bad-operand",
           std::string(ptx::name(field)) + " of dimension " + std::to_string(dimension) +
               "; rule: a tensor has dimensions 0 to 4, and dimension 0 no stride; cure: name one "
               "of dimensions " +
               std::to_string(first) + " to 4",
           site);
}

template <class Space>
void replace_size(KernelBuilder& k, const Ptr<b8, Space>& map, ptx::Modifier field,
                  unsigned dimension, const In<u32>& value, SourceLocation site) {
  check_dimension(k, field, dimension, 0, site);
  k.emit(ptx::Op::tensormap_replace_size, {field, map_space<Space>()},
         {Operand(map, site), Operand(dimension, site), Operand(value, site)}, site);
}

template <class Space>
void replace_mode(KernelBuilder& k, const Ptr<b8, Space>& map, ptx::Modifier field, unsigned number,
                  SourceLocation site) {
  k.emit(ptx::Op::tensormap_replace_mode, {field, map_space<Space>()},
         {Operand(map, site), Operand(number, site)}, site);
}

/// The number of .elemtype (PTX ISA, tensormap.replace).
template <class T>
[[nodiscard]] constexpr unsigned map_element() noexcept {
  constexpr ptx::Type kTypes[] = {ptx::Type::u8,   ptx::Type::u16, ptx::Type::u32, ptx::Type::s32,
                                  ptx::Type::u64,  ptx::Type::s64, ptx::Type::f16, ptx::Type::f32,
                                  ptx::Type::none, ptx::Type::f64, ptx::Type::bf16};
  unsigned number = 0;
  for (const ptx::Type type : kTypes) {
    if (type == T::kType) return number;
    ++number;
  }
  return number;
}

}  // namespace detail

/// The tensor's address, a multiple of 16.
template <class Space, class T>
void replace_map_address(KernelBuilder& k, const Ptr<b8, Space>& map, const Ptr<T, Global>& tensor,
                         SourceLocation site = SourceLocation::current()) {
  const Value<u64> address = k.address_of(tensor, site);
  k.emit(ptx::Op::tensormap_replace_address, {detail::map_space<Space>()},
         {Operand(map, site), Operand(address, site)}, site);
}
/// The number of dimensions, 1 to 5.
template <class Space>
void replace_map_rank(KernelBuilder& k, const Ptr<b8, Space>& map, unsigned rank,
                      SourceLocation site = SourceLocation::current()) {
  if (rank == 0 || rank > 5) {
    k.refuse("bad-operand",
             "replace_map_rank: a tensor of " + std::to_string(rank) +
                 " dimensions; rule: a tensor has 1 to 5; cure: join dimensions, or use several "
                 "tensors",
             site);
  }
  k.emit(ptx::Op::tensormap_replace_rank, {detail::map_space<Space>()},
         {Operand(map, site), Operand(rank - 1, site)}, site);
}
/// Elements of the tensor along a dimension, 1 or more.
template <class Space>
void replace_map_extent(KernelBuilder& k, const Ptr<b8, Space>& map, unsigned dimension,
                        const In<u32>& elements, SourceLocation site = SourceLocation::current()) {
  detail::replace_size(k, map, ptx::Modifier::global_dim, dimension, elements, site);
}
/// Bytes from one place to the next along dimension 1 to 4, a multiple of 16.
template <class Space>
void replace_map_stride(KernelBuilder& k, const Ptr<b8, Space>& map, unsigned dimension,
                        const In<u64>& bytes, SourceLocation site = SourceLocation::current()) {
  detail::check_dimension(k, ptx::Modifier::global_stride, dimension, 1, site);
  k.emit(ptx::Op::tensormap_replace_stride, {detail::map_space<Space>()},
         {Operand(map, site), Operand(dimension - 1, site), Operand(bytes, site)}, site);
}
/// Elements of the box along a dimension, 1 to 256.
template <class Space>
void replace_map_box(KernelBuilder& k, const Ptr<b8, Space>& map, unsigned dimension,
                     const In<u32>& elements, SourceLocation site = SourceLocation::current()) {
  detail::replace_size(k, map, ptx::Modifier::box_dim, dimension, elements, site);
}
/// Every how many elements of the box a copy moves along a dimension, 1 to 8.
template <class Space>
void replace_map_step(KernelBuilder& k, const Ptr<b8, Space>& map, unsigned dimension,
                      const In<u32>& step, SourceLocation site = SourceLocation::current()) {
  detail::replace_size(k, map, ptx::Modifier::element_stride, dimension, step, site);
}
/// The type of the elements: integers and floats of 8 to 64 bits.
template <class T, class Space>
void replace_map_type(KernelBuilder& k, const Ptr<b8, Space>& map,
                      SourceLocation site = SourceLocation::current()) {
  static_assert(detail::map_element<T>() <= 10, "no elements of tensors have this type");
  detail::replace_mode(k, map, ptx::Modifier::elemtype, detail::map_element<T>(), site);
}
/// The swizzle of the box in shared memory.
template <class Space>
void replace_map_swizzle(KernelBuilder& k, const Ptr<b8, Space>& map, Swizzle swizzle,
                         SourceLocation site = SourceLocation::current()) {
  const unsigned number = swizzle == Swizzle::None      ? 0
                          : swizzle == Swizzle::Bytes32 ? 1
                          : swizzle == Swizzle::Bytes64 ? 2
                                                        : 3;
  detail::replace_mode(k, map, ptx::Modifier::swizzle_mode, number, site);
}
/// Elements out of bounds: zero, or NaN of floats.
template <class Space>
void replace_map_fill(KernelBuilder& k, const Ptr<b8, Space>& map, bool nan,
                      SourceLocation site = SourceLocation::current()) {
  detail::replace_mode(k, map, ptx::Modifier::fill_mode, nan ? 1 : 0, site);
}
/// No interleave, for a map that begins as zeros.
template <class Space>
void replace_map_interleave_none(KernelBuilder& k, const Ptr<b8, Space>& map,
                                 SourceLocation site = SourceLocation::current()) {
  detail::replace_mode(k, map, ptx::Modifier::interleave_layout, 0, site);
}
/// Copies a map to global memory, and releases it to the tensormap proxy of the GPU. By all threads
/// of a warp.
inline void publish_map(KernelBuilder& k, const Ptr<b8, Global>& to, const Ptr<b8, Shared>& from,
                        SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::tensormap_cp_fenceproxy, {ptx::Modifier::gpu},
         {Operand(to, site), Operand(from, site), Operand(128, site)}, site);
}
/// Before copies by a map in global memory that was published: by a thread of each block, with a
/// barrier in front of the copies of others.
inline void acquire_map(KernelBuilder& k, const TensorMap& map,
                        SourceLocation site = SourceLocation::current()) {
  const auto generic = k.pointer<b8, Generic>(k.address_of(map.address(), site), site);
  k.emit(ptx::Op::fence_proxy_tensormap_acquire, {ptx::Modifier::gpu},
         {Operand(generic, site), Operand(128, site)}, site);
}

}  // namespace ptxgen::inline v0
