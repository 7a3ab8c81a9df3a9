// ptxgen/builder/matrix.hpp - matrix fragments: ldmatrix, stmatrix, mma
#pragma once

#include "ptxgen/support/language.hpp"

#include <array>
#include <string>
#include <utility>

#include "ptxgen/builder/kernel_builder.hpp"

// Not part of ptxgen/builder.hpp: kernels that use tensor cores ask for it by name. All 32 lanes of
// a warp execute every function here together; each checks as KernelBuilder does.

namespace ptxgen::inline v0 {

/// An f32 of which `mma` reads the upper 19 bits; an element of fragments only. In memory it is an
/// f32; `cvt.rna.tf32.f32` rounds one.
struct tf32 : detail::TypeTag<ptx::Type::tf32, 32, ptx::TypeKind::Packed, detail::RegisterClass::r,
                              ptx::Type::b32> {};

/// d[M x N] = a[M x K] b[K x N] + c[M x N]
template <unsigned kM_, unsigned kN_, unsigned kK_>
struct MmaShape {
  static constexpr unsigned kM = kM_, kN = kN_, kK = kK_;
};
using m16n8k4 = MmaShape<16, 8, 4>;
using m16n8k8 = MmaShape<16, 8, 8>;
using m16n8k16 = MmaShape<16, 8, 16>;
using m16n8k32 = MmaShape<16, 8, 32>;

/// Which matrix of a product a fragment belongs to.
enum class MatrixRole : std::uint8_t { a, b, c, d };

enum class MatrixOrder : std::uint8_t { RowMajor, ColumnMajor };

namespace detail {

/// What a register of a fragment is in the builder.
template <class T>
struct FragmentRegister {
  using type = b32;
};
template <>
struct FragmentRegister<f32> {
  using type = f32;
};
template <>
struct FragmentRegister<s32> {
  using type = s32;
};
template <>
struct FragmentRegister<f16> {
  using type = f16x2;
};
template <>
struct FragmentRegister<bf16> {
  using type = bf16x2;
};

template <class A>
inline constexpr bool kIsFragment = false;

/// `n` times a stride that is a C++ number or a u32 value.
template <class Stride>
auto times(KernelBuilder& k, const Stride& stride, unsigned n, SourceLocation site) {
  if constexpr (kIsCppInteger<Stride>) {
    return static_cast<unsigned>(stride) * n;
  } else {
    return k.mul_lo(stride, n, site);
  }
}

/// Stands for no row.
inline constexpr auto kNoMma = static_cast<ptx::Op>(0xffff);
/// The mma row of these shapes and element types, `kNoMma` if PTX has none.
template <class Shape, class A, class B, class C>
[[nodiscard]] constexpr ptx::Op mma_row() noexcept;

}  // namespace detail

/// A lane's part of a matrix of an `mma`: 32-bit registers, which hold the elements that the PTX
/// manual's figures of m16n8k4 to m16n8k32 give the lane. A register holds two 16-bit elements or
/// four bytes, the one with the lower column (of b: row) in the low bits.
template <MatrixRole kRole_, class Shape_, class T>
class Fragment {
 public:
  using Shape = Shape_;
  using Element = T;
  /// What a register is: f32, s32, f16x2, bf16x2, else b32.
  using Register = typename detail::FragmentRegister<T>::type;
  static constexpr MatrixRole kRole = kRole_;
  static constexpr unsigned kRows = kRole == MatrixRole::b ? Shape::kK : Shape::kM;
  static constexpr unsigned kColumns = kRole == MatrixRole::a ? Shape::kK : Shape::kN;
  static constexpr unsigned kPerRegister = 32 / T::kBits;
  static constexpr unsigned kElements = kRows * kColumns / 32;  ///< of a lane
  static constexpr unsigned kRegisters = kElements / kPerRegister;
  static_assert(kRegisters != 0, "a fragment has at least one register: the shape is too small");
  using Registers = std::array<Value<Register>, kRegisters>;

  struct Place {
    unsigned row = 0, column = 0;
  };
  /// Where element `element` of lane `lane` is in the matrix.
  [[nodiscard]] static constexpr Place place(unsigned lane, unsigned element) noexcept {
    const unsigned group = lane / 4;
    const unsigned thread = lane % 4;
    if constexpr (kRole == MatrixRole::a || kRole == MatrixRole::b) {
      constexpr unsigned kBlock = 4 * kPerRegister;  // depth that the four lanes of a group span
      const unsigned index = element / kPerRegister;
      const unsigned depth = thread * kPerRegister + element % kPerRegister;
      if constexpr (kRole == MatrixRole::a) {
        return {group + 8 * (index % 2), depth + kBlock * (index / 2)};
      } else {
        return {depth + kBlock * index, group};
      }
    } else {
      return {group + 8 * (element / 2), thread * 2 + element % 2};
    }
  }

  explicit Fragment(const Registers& registers) noexcept : registers_(registers) {}
  /// The result of one product is the summand of the next; emits nothing.
  operator Fragment<MatrixRole::c, Shape, T>() const noexcept requires(kRole == MatrixRole::d) {
    return Fragment<MatrixRole::c, Shape, T>(registers_);
  }

  [[nodiscard]] const Value<Register>& operator[](std::size_t i) const { return registers_.at(i); }
  [[nodiscard]] const Registers& registers() const noexcept { return registers_; }

 private:
  Registers registers_;
};

template <class Shape, class T>
using FragmentA = Fragment<MatrixRole::a, Shape, T>;
template <class Shape, class T>
using FragmentB = Fragment<MatrixRole::b, Shape, T>;
template <class Shape, class T>
using FragmentC = Fragment<MatrixRole::c, Shape, T>;
template <class Shape, class T>
using FragmentD = Fragment<MatrixRole::d, Shape, T>;

namespace detail {

template <MatrixRole kRole, class Shape, class T>
inline constexpr bool kIsFragment<Fragment<kRole, Shape, T>> = true;

template <class Shape, class A, class B, class C>
constexpr ptx::Op mma_row() noexcept {
  constexpr auto kShape = [](unsigned k) {
    return Shape::kM == 16 && Shape::kN == 8 && Shape::kK == k;
  };
  constexpr bool kBytes =
      (kSame<A, s8> || kSame<A, u8>)&&(kSame<B, s8> || kSame<B, u8>)&&kSame<C, s32>;
  constexpr bool kHalf = kSame<A, f16> && kSame<B, f16>;
  constexpr bool kBrain = kSame<A, bf16> && kSame<B, bf16> && kSame<C, f32>;
  constexpr bool kTensor = kSame<A, tf32> && kSame<B, tf32> && kSame<C, f32>;
  if (kHalf && kSame<C, f32>) {
    if (kShape(8)) return ptx::Op::mma_m16n8k8_f16_f32;
    if (kShape(16)) return ptx::Op::mma_m16n8k16_f16_f32;
  }
  if (kHalf && kSame<C, f16>) {
    if (kShape(8)) return ptx::Op::mma_m16n8k8_f16_f16;
    if (kShape(16)) return ptx::Op::mma_m16n8k16_f16_f16;
  }
  if (kBrain && kShape(8)) return ptx::Op::mma_m16n8k8_bf16;
  if (kBrain && kShape(16)) return ptx::Op::mma_m16n8k16_bf16;
  if (kTensor && kShape(4)) return ptx::Op::mma_m16n8k4_tf32;
  if (kTensor && kShape(8)) return ptx::Op::mma_m16n8k8_tf32;
  if (kBytes && kShape(16)) return ptx::Op::mma_m16n8k16_s8;
  if (kBytes && kShape(32)) return ptx::Op::mma_m16n8k32_s8;
  return kNoMma;
}

/// A register that holds zeros.
template <class R>
Value<R> zero_register(KernelBuilder& k, SourceLocation site) {
  if constexpr (kSame<R, f32>) {
    return k.constant<f32>(0.0f, site);
  } else if constexpr (kSame<R, s32> || kSame<R, b32>) {
    return k.constant<R>(0, site);
  } else {
    return k.bitcast<R>(k.constant<b32>(0, site), site);
  }
}

template <class F, class Make, std::size_t... kIndex>
F fragment_of(const Make& make, std::index_sequence<kIndex...>) {
  return F(typename F::Registers{make(static_cast<unsigned>(kIndex))...});
}
/// `make(i)` gives register i; called in order.
template <class F, class Make>
F fragment_of(const Make& make) {
  return fragment_of<F>(make, std::make_index_sequence<F::kRegisters>());
}

/// Operands in braces.
template <class List, std::size_t... kIndex>
std::array<Operand, sizeof...(kIndex)> operands_of(const List& list, SourceLocation site,
                                                   std::index_sequence<kIndex...>) {
  return {Operand(list[kIndex], site)...};
}
template <class R, std::size_t kCount>
std::array<Operand, kCount> operands_of(const std::array<R, kCount>& list, SourceLocation site) {
  return operands_of(list, site, std::make_index_sequence<kCount>());
}

inline constexpr unsigned kMatrixRowBytes = 16;  // of the 8x8 matrices of ldmatrix and stmatrix

}  // namespace detail

/// All zeros.
template <class F>
F zero_fragment(KernelBuilder& k, SourceLocation site = SourceLocation::current()) {
  static_assert(detail::kIsFragment<F>, "zero_fragment<F>: F is a fragment type");
  detail::Transaction transaction(k);
  F zeros = detail::fragment_of<F>(
      [&](unsigned) { return detail::zero_register<typename F::Register>(k, site); });
  transaction.keep();
  return zeros;
}

// The product -----------------------------------------------------------------------------------

/// A fragment c and d in variables: what a loop sums up.
template <class Shape_, class T>
class Accumulator {
 public:
  using Shape = Shape_;
  using Element = T;
  using Result = FragmentD<Shape, T>;
  using Register = typename Result::Register;

  /// Starts at zero.
  explicit Accumulator(KernelBuilder& k, SourceLocation site = SourceLocation::current())
      : Accumulator(k, site, std::make_index_sequence<Result::kRegisters>()) {}

  /// What it holds now; copies the registers.
  [[nodiscard]] Result read(SourceLocation site = SourceLocation::current()) const {
    return detail::fragment_of<Result>([&](unsigned i) { return variables_[i].read(site); });
  }
  [[nodiscard]] const std::array<Var<Register>, Result::kRegisters>& variables() const noexcept {
    return variables_;
  }

 private:
  template <std::size_t... kIndex>
  Accumulator(KernelBuilder& k, SourceLocation site, std::index_sequence<kIndex...>)
      : variables_{variable(k, site, kIndex)...} {}
  static Var<Register> variable(KernelBuilder& k, SourceLocation site, std::size_t) {
    return k.var<Register>(detail::zero_register<Register>(k, site), site);
  }
  std::array<Var<Register>, Result::kRegisters> variables_;
};

namespace detail {

template <class Shape, class A, class B, class C>
constexpr void check_product() {
  static_assert(kIsFragment<A> && kIsFragment<B>, "mma multiplies fragments of matrices");
  static_assert(A::kRole == MatrixRole::a, "the first operand of mma is a fragment of role a");
  static_assert(B::kRole == MatrixRole::b, "the second operand of mma is a fragment of role b");
  static_assert(kSame<typename A::Shape, Shape> && kSame<typename B::Shape, Shape>,
                "the fragments of an mma belong to one shape");
  static_assert(
      mma_row<Shape, typename A::Element, typename B::Element, C>() != kNoMma,
      "PTX has no such mma: there are f16 x f16 to f32 or f16 and bf16 x bf16 to f32 (m16n8k8, "
      "m16n8k16), tf32 x tf32 to f32 (m16n8k4, m16n8k8), s8 or u8 x s8 or u8 to s32 (m16n8k16, "
      "m16n8k32); others by emit");
}

template <class Shape, class C, class A, class B, class Sum, class Result>
void emit_mma(KernelBuilder& k, const Result& d, const A& a, const B& b, const Sum& c,
              bool satfinite, SourceLocation site) {
  using TA = typename A::Element;
  using TB = typename B::Element;
  check_product<Shape, A, B, C>();
  constexpr bool kIntegers = kSame<C, s32>;
  const auto d_list = operands_of(d, site);
  const auto a_list = operands_of(a.registers(), site);
  const auto b_list = operands_of(b.registers(), site);
  const auto c_list = operands_of(c, site);
  const Operand operands[] = {Vec(d_list), Vec(a_list), Vec(b_list), Vec(c_list)};
  std::array<ptx::Modifier, 3> modifiers{};
  std::size_t count = 0;
  if constexpr (kIntegers) {
    modifiers[count++] = kTypeModifier<TA>;
    modifiers[count++] = kTypeModifier<TB>;
  }
  if (satfinite) modifiers[count++] = ptx::Modifier::satfinite;
  k.emit(mma_row<Shape, TA, TB, C>(), std::span(modifiers.data(), count), operands, site);
}

}  // namespace detail

/// `a b + c`, one instruction. Sums of integers wrap around; `satfinite` clamps them to the range
/// of s32 (of the sums of floats it says nothing: leave it out).
template <class A, class B, class C>
auto mma(KernelBuilder& k, const A& a, const B& b, const C& c, bool satfinite = false,
         SourceLocation site = SourceLocation::current()) {
  static_assert(detail::kIsFragment<C>, "the third operand of mma is a fragment of role c or d");
  static_assert(C::kRole == MatrixRole::c || C::kRole == MatrixRole::d,
                "the third operand of mma is a fragment of role c or d");
  using Shape = typename C::Shape;
  using Result = FragmentD<Shape, typename C::Element>;
  detail::Transaction transaction(k);
  const Result d = detail::fragment_of<Result>(
      [&](unsigned) { return k.undefined<typename Result::Register>(site); });
  detail::emit_mma<Shape, typename C::Element>(k, d.registers(), a, b, c.registers(), satfinite,
                                               site);
  transaction.keep();
  return d;
}

/// `sum += a b`, one instruction.
template <class Shape, class T, class A, class B>
void mma_inplace(KernelBuilder& k, Accumulator<Shape, T>& sum, const A& a, const B& b,
                 bool satfinite = false, SourceLocation site = SourceLocation::current()) {
  detail::emit_mma<Shape, T>(k, sum.variables(), a, b, sum.variables(), satfinite, site);
}

// 8x8 matrices in shared memory -----------------------------------------------------------------

/// One instruction: loads 1, 2 or 4 matrices of 8 rows of 8 16-bit elements. Lane 8 m + r passes
/// the address of row r of matrix m, aligned to 16 bytes; lanes beyond the last matrix pass any.
/// Lane l gets elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4; `transposed`: of the transposed
/// matrix.
template <unsigned kCount, class T>
std::array<Value<b32>, kCount> ldmatrix(KernelBuilder& k, const Ptr<T, Shared>& row,
                                        bool transposed = false,
                                        SourceLocation site = SourceLocation::current()) {
  static_assert(kCount == 1 || kCount == 2 || kCount == 4, "ldmatrix loads 1, 2 or 4 matrices");
  static_assert(T::kBits == 16,
                "ldmatrix loads matrices of 16-bit elements: cast<b16>() the pointer");
  using F = std::array<Value<b32>, kCount>;
  detail::Transaction transaction(k);
  const F loaded = [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return F{((void)kIndex, k.undefined<b32>(site))...};
  }
  (std::make_index_sequence<kCount>());
  const auto list = detail::operands_of(loaded, site);
  const Operand operands[] = {Vec(list), Operand(row, site)};
  constexpr ptx::Op kRow = kCount == 1   ? ptx::Op::ldmatrix_x1
                           : kCount == 2 ? ptx::Op::ldmatrix_x2
                                         : ptx::Op::ldmatrix_x4;
  const ptx::Modifier modifiers[] = {ptx::Modifier::shared, ptx::Modifier::trans};
  k.emit(kRow, std::span(modifiers, transposed ? 2 : 1), operands, site);
  transaction.keep();
  return loaded;
}

/// One instruction (sm_90): stores what `ldmatrix` loads; the addresses are passed alike.
template <class T, class R, std::size_t kCount>
void stmatrix(KernelBuilder& k, const Ptr<T, Shared>& row,
              const std::array<Value<R>, kCount>& registers, bool transposed = false,
              SourceLocation site = SourceLocation::current()) {
  static_assert(kCount == 1 || kCount == 2 || kCount == 4, "stmatrix stores 1, 2 or 4 matrices");
  static_assert(T::kBits == 16 && R::kBits == 32,
                "stmatrix stores matrices of 16-bit elements, two in each register: narrow<f16>() "
                "a fragment of f32, cast<b16>() the pointer");
  const auto list = detail::operands_of(registers, site);
  const Operand operands[] = {Operand(row, site), Vec(list)};
  constexpr ptx::Op kRow = kCount == 1   ? ptx::Op::stmatrix_x1
                           : kCount == 2 ? ptx::Op::stmatrix_x2
                                         : ptx::Op::stmatrix_x4;
  const ptx::Modifier modifiers[] = {ptx::Modifier::shared, ptx::Modifier::trans};
  k.emit(kRow, std::span(modifiers, transposed ? 2 : 1), operands, site);
}

namespace detail {

/// Each row of a tile begins at a multiple of 16 bytes from the first.
template <class T>
void check_rows(KernelBuilder& k, unsigned stride, std::string_view what, SourceLocation site) {
  if (stride * T::kBytes % kMatrixRowBytes == 0) return;
  k.refuse("misaligned",
           std::string(what) + ": rows " + std::to_string(stride * T::kBytes) +
               " bytes apart (stride " + std::to_string(stride) +
               "); rule: each row that a lane addresses is aligned to 16 bytes; cure: pad the "
               "stride to a multiple of " +
               std::to_string(kMatrixRowBytes / T::kBytes),
           site);
}

/// The row of the tile whose address a lane passes: `across` counts along the stored row in blocks
/// of 16 bytes, `down` the stored rows. `blocks_first`: the matrices follow each other along the
/// stored row first.
template <class T>
Ptr<T, Shared> lane_row(KernelBuilder& k, const Ptr<T, Shared>& tile, unsigned stride,
                        unsigned down, unsigned across, bool blocks_first, SourceLocation site) {
  const Value<u32> lane = k.laneid(site);
  Value<u32> row = k.and_(lane, 7, site);
  if (down == 1 && across == 1) return tile + Index(k.mul_lo(row, stride, site), site);
  // Bit 3 of the lane counts the faster of the two, bit 4 the slower.
  const unsigned down_bit = blocks_first && across > 1 ? 16 : 8;
  const unsigned across_bit = blocks_first || down == 1 ? 8 : 16;
  if (down > 1) {
    row.rebind(down_bit == 8 ? k.and_(lane, 15, site)
                             : k.or_(row, k.shr(k.and_(lane, 16, site), 1, site), site));
  }
  const Value<u32> begin = k.mul_lo(row, stride, site);
  if (across == 1) return tile + Index(begin, site);
  const Value<u32> block = k.shr(k.and_(lane, across_bit, site), across_bit == 8 ? 3 : 4, site);
  return tile + Index(k.mad_lo(block, kMatrixRowBytes / T::kBytes, begin, site), site);
}

}  // namespace detail

/// A fragment of a or b from a tile in shared memory: the lane's address, then one `ldmatrix`. The
/// tile's first element is element (0, 0) of the matrix. Row-major, `stride` is the distance of its
/// rows in elements, column-major that of its columns; it and the tile are aligned to 16 bytes
/// ("misaligned"). Against the grain, column-major a or row-major b, elements have 16 bits
/// (`.trans`).
template <class F, class T>
F ldmatrix(KernelBuilder& k, const Ptr<T, Shared>& tile, unsigned stride,
           MatrixOrder order = F::kRole == MatrixRole::b ? MatrixOrder::ColumnMajor
                                                         : MatrixOrder::RowMajor,
           SourceLocation site = SourceLocation::current()) {
  static_assert(detail::kIsFragment<F>, "ldmatrix<F>: F is a fragment type, or 1, 2 or 4");
  static_assert(F::kRole == MatrixRole::a || F::kRole == MatrixRole::b,
                "ldmatrix loads fragments of role a and b");
  static_assert(T::kBits == F::Element::kBits, "the tile's elements are as wide as the fragment's");
  constexpr bool kIsA = F::kRole == MatrixRole::a;
  const bool with_grain = (order == MatrixOrder::RowMajor) == kIsA;
  detail::Transaction transaction(k);
  detail::check_rows<T>(k, stride, "ldmatrix", site);
  if (!with_grain && T::kBits != 16) {
    k.refuse("bad-operand",
             "ldmatrix: this order needs .trans, and that moves elements of 16 bits only; cure: "
             "store the tile of " +
                 std::string(kIsA ? "a row-major" : "b column-major"),
             site);
  }
  // Registers of a follow each other down the rows first, those of b along the depth.
  constexpr unsigned kDeep = kIsA ? (F::kRegisters + 1) / 2 : F::kRegisters;
  constexpr unsigned kDown = kIsA ? 2 : 1;
  const Ptr<T, Shared> row = with_grain
                                 ? detail::lane_row(k, tile, stride, kDown, kDeep, !kIsA, site)
                                 : detail::lane_row(k, tile, stride, kDeep, kDown, kIsA, site);
  const auto loaded = ldmatrix<F::kRegisters>(k, row.template cast<b16>(), !with_grain, site);
  F fragment = detail::fragment_of<F>(
      [&](unsigned i) { return k.bitcast<typename F::Register>(loaded[i], site); });
  transaction.keep();
  return fragment;
}

/// A fragment d of 16-bit elements to a tile in shared memory (sm_90), as `ldmatrix` reads it.
template <class Shape, class E, class T>
void stmatrix(KernelBuilder& k, const Ptr<T, Shared>& tile, const FragmentD<Shape, E>& d,
              unsigned stride, MatrixOrder order = MatrixOrder::RowMajor,
              SourceLocation site = SourceLocation::current()) {
  static_assert(E::kBits == 16, "stmatrix stores 16-bit elements: narrow<f16>() the fragment");
  static_assert(T::kBits == 16, "the tile's elements are as wide as the fragment's");
  const bool rows = order == MatrixOrder::RowMajor;
  detail::Transaction transaction(k);
  detail::check_rows<T>(k, stride, "stmatrix", site);
  const Ptr<T, Shared> row = rows ? detail::lane_row(k, tile, stride, 2, 1, false, site)
                                  : detail::lane_row(k, tile, stride, 1, 2, true, site);
  stmatrix(k, row, d.registers(), !rows, site);
  transaction.keep();
}

/// Each element of f32 rounded to nearest f16 or bf16; one instruction for two.
template <class To, class Shape>
FragmentD<Shape, To> narrow(KernelBuilder& k, const FragmentD<Shape, f32>& d,
                            SourceLocation site = SourceLocation::current()) {
  static_assert(detail::kSame<To, f16> || detail::kSame<To, bf16>, "narrow<To>: To is f16 or bf16");
  using Result = FragmentD<Shape, To>;
  detail::Transaction transaction(k);
  Result result = detail::fragment_of<Result>([&](unsigned i) {
    return k.cvt2<typename Result::Register>(d[2 * i + 1], d[2 * i], Convert{Rounding::rn}, site);
  });
  transaction.keep();
  return result;
}

// Any memory ------------------------------------------------------------------------------------

namespace detail {

/// Calls `access(i, pointer)` for each register i of the fragment: `pointer` is where its elements
/// are, neighbours along a row of the matrix (of b: along a column).
template <class F, class T, class S, class Stride, class Access>
void each_register(KernelBuilder& k, const Ptr<T, S>& matrix, const Stride& stride,
                   const Access& access, SourceLocation site) {
  static_assert(T::kBits == F::Element::kBits,
                "the matrix's elements are as wide as the fragment's");
  constexpr bool kIsB = F::kRole == MatrixRole::b;
  const Value<u32> lane = k.laneid(site);
  const Value<u32> group = k.shr(lane, 2, site);
  const Value<u32> thread = k.and_(lane, 3, site);
  // Registers of c and d with one element: two neighbours follow each other.
  constexpr unsigned kStep = F::kRole == MatrixRole::a || kIsB ? F::kPerRegister : 2;
  const Value<u32> along = k.mul_lo(thread, kStep, site);
  const Ptr<T, S> first = matrix + Index(k.mad_lo(group, stride, along, site), site);
  constexpr bool kTwoRows = F::kRole != MatrixRole::b;
  const Ptr<T, S> second = kTwoRows ? first + Index(times(k, stride, 8, site), site) : first;
  for (unsigned i = 0; i < F::kRegisters; ++i) {
    const auto place = F::place(0, i * F::kPerRegister);
    const unsigned down = kIsB ? place.column : place.row;
    const unsigned across = kIsB ? place.row : place.column;
    access(i, (down == 0 ? first : second) + Index(across, site));
  }
}

}  // namespace detail

/// A fragment from any memory, one load of 32 bits for each register. a and c row-major, b
/// column-major; `stride` (a C++ number or a u32) is the distance of rows, of b that of columns, in
/// elements. Rows of elements below 32 bits are aligned to 4 bytes.
template <class F, class T, class S, class Stride>
F load_fragment(KernelBuilder& k, const Ptr<T, S>& matrix, const Stride& stride,
                SourceLocation site = SourceLocation::current()) {
  using R = typename F::Register;
  detail::Transaction transaction(k);
  std::vector<Value<R>> loaded;
  detail::each_register<F>(
      k, matrix, stride,
      [&](unsigned, const Ptr<T, S>& p) {
        loaded.push_back(k.ld(p.template cast<R>(), Load{}, site));
      },
      site);
  F fragment = detail::fragment_of<F>([&](unsigned i) { return loaded[i]; });
  transaction.keep();
  return fragment;
}

/// A fragment to any memory, row-major, one store of 32 bits for each register.
template <class Shape, class E, class T, class S, class Stride>
void store_fragment(KernelBuilder& k, const Ptr<T, S>& matrix, const FragmentD<Shape, E>& d,
                    const Stride& stride, SourceLocation site = SourceLocation::current()) {
  using F = FragmentD<Shape, E>;
  detail::Transaction transaction(k);
  detail::each_register<F>(
      k, matrix, stride,
      [&](unsigned i, const Ptr<T, S>& p) {
        k.st(p.template cast<typename F::Register>(), d[i], Store{}, site);
      },
      site);
  transaction.keep();
}

}  // namespace ptxgen::inline v0
