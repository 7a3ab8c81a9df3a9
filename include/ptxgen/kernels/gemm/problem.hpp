// ptxgen/kernels/gemm/problem.hpp - a matrix product, and the operands of its kernels
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// What is applied to each output before the residual is added.
enum class GemmActivation : std::uint8_t {
  None,
  Silu,        ///< x * sigmoid(x)
  Gelu,        ///< x * (1 + erf(x / sqrt(2))) / 2
  GeluByTanh,  ///< its approximation by tanh
};

/// Operands of a launch. Leave those that the problem does not have empty, and alpha and beta at 1
/// and 0. c must not overlap the others, but the residual may be c itself.
struct GemmOperands {
  DeviceRange c{}, a{}, b{}, bias{}, residual{};
  float alpha = 1;
  float beta = 0;
};

/// `C = activation(alpha * A B + beta * C + bias) + residual` for each matrix of a batch, each term
/// optional. Sums are f32. Each step is rounded once, in this order: `t = alpha * sum; t =
/// fma(beta, c, t); t = t + bias[j]; t = activation(t); t = t + residual; c = round(t)`.
///
/// All matrices are row-major: `A[m x k]`, transposed `A[k x m]`; `B[k x n]`, transposed `B[n x
/// k]`; `C[m x n]`; the residual as C; the bias has n elements.
///
/// B may have a type of its own. In a block format (docs/formats.md) it is stored `[n x k]`, as
/// weights are in GGUF files, with blocks along k: k, ldb and stride_b are multiples of the values
/// of a block. Kernels without tensor cores multiply the exact values as f32; those on tensor cores
/// round each to the type of A first, and one that is too large for f16 becomes infinite.
///
/// e4m3 is a type of A and B together, of kernels on tensor cores: A is stored `[m x k]`, B
/// `[n x k]`, since tensor cores multiply 8-bit elements that are adjacent along k.
struct GemmProblem {
  using Operands = GemmOperands;

  std::uint32_t m = 512;  ///< rows of C; a number of the launch, not of the code
  std::uint32_t n = 512;
  std::uint32_t k = 512;
  std::uint32_t batch = 1;              ///< matrices; the grid's z
  ElementType type = ElementType::f16;  ///< of A: f32, f16, bf16 or e4m3
  /// Of B: f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k or q6_k. Empty: as A.
  std::optional<ElementType> b{};
  ElementType c = ElementType::f32;  ///< of C, bias and residual: f32, f16 or bf16
  bool transpose_a = false;          ///< A is stored as `[k x m]`
  bool transpose_b = false;          ///< B is stored as `[n x k]`
  /// Elements from one row of the stored matrix to the next; 0: the row length. That of a
  /// transposed A is m, which is then part of the code.
  std::uint64_t lda = 0, ldb = 0, ldc = 0;
  /// Elements from one matrix of the batch to the next; 0: all use the same one. `stride_c` (also
  /// of the residual) 0: m * ldc.
  std::uint64_t stride_a = 0, stride_b = 0, stride_c = 0;
  bool scaled = false;    ///< alpha and beta; otherwise 1 and 0, and C is not read
  bool bias = false;      ///< n elements, added to each row
  bool residual = false;  ///< as C; may be C itself
  GemmActivation activation = GemmActivation::None;
  /// Bytes that the addresses are aligned to: of A and B, and of C, bias and residual. A power of
  /// two; values above 16 count as 16, those below an element as an element.
  std::uint32_t alignment = 16;
  std::uint32_t c_alignment = 16;

  [[nodiscard]] constexpr ElementType type_b() const noexcept { return b.value_or(type); }
  [[nodiscard]] constexpr std::uint64_t row_a() const noexcept { return transpose_a ? m : k; }
  [[nodiscard]] constexpr std::uint64_t row_b() const noexcept { return transpose_b ? k : n; }
  [[nodiscard]] constexpr std::uint64_t pitch_a() const noexcept {
    return lda != 0 ? lda : row_a();
  }
  [[nodiscard]] constexpr std::uint64_t pitch_b() const noexcept {
    return ldb != 0 ? ldb : row_b();
  }
  [[nodiscard]] constexpr std::uint64_t pitch_c() const noexcept { return ldc != 0 ? ldc : n; }
  /// From one matrix C to the next.
  [[nodiscard]] constexpr std::uint64_t step_c() const noexcept {
    return stride_c != 0 ? stride_c : m * pitch_c();
  }
  /// Elements from the first to the last one.
  [[nodiscard]] constexpr std::uint64_t elements_a() const noexcept {
    return extent(transpose_a ? k : m, row_a(), pitch_a(), stride_a);
  }
  [[nodiscard]] constexpr std::uint64_t elements_b() const noexcept {
    return extent(transpose_b ? n : k, row_b(), pitch_b(), stride_b);
  }
  [[nodiscard]] constexpr std::uint64_t elements_c() const noexcept {
    return extent(m, n, pitch_c(), step_c());
  }
  friend bool operator==(const GemmProblem&, const GemmProblem&) = default;

 private:
  [[nodiscard]] constexpr std::uint64_t extent(std::uint64_t rows, std::uint64_t row,
                                               std::uint64_t pitch,
                                               std::uint64_t stride) const noexcept {
    return rows == 0 || batch == 0 ? 0 : (batch - 1) * stride + (rows - 1) * pitch + row;
  }
};

/// Throws `Error` (Stage::Build, "bad-problem") naming the member, its value and what it may be.
void check(const GemmProblem& problem);
/// "f16 128x4096x4096" (m x n x k), then what differs from the default: "tn f16 17x33x65 lda 72",
/// "nt f16 * q4_k 64x512x512".
[[nodiscard]] std::string to_text(const GemmProblem& problem);

inline constexpr Word<GemmActivation> kGemmActivations[] = {
    {"none", GemmActivation::None},
    {"silu", GemmActivation::Silu},
    {"gelu", GemmActivation::Gelu},
    {"gelu_tanh", GemmActivation::GeluByTanh}};
inline constexpr Word<ElementType> kGemmTypes[] = {{"f32", ElementType::f32},
                                                   {"f16", ElementType::f16},
                                                   {"bf16", ElementType::bf16},
                                                   {"e4m3", ElementType::e4m3}};
inline constexpr Word<std::optional<ElementType>> kGemmTypesOfB[] = {
    {"as_a", std::nullopt},      {"f32", ElementType::f32},   {"f16", ElementType::f16},
    {"bf16", ElementType::bf16}, {"q4_0", ElementType::q4_0}, {"q4_1", ElementType::q4_1},
    {"q5_0", ElementType::q5_0}, {"q5_1", ElementType::q5_1}, {"q8_0", ElementType::q8_0},
    {"q4_k", ElementType::q4_k}, {"q5_k", ElementType::q5_k}, {"q6_k", ElementType::q6_k}};
inline constexpr Word<std::uint32_t> kGemmAlignments[] = {{"16", 16}, {"8", 8}, {"4", 4}, {"2", 2}};

namespace detail {

using GemmRow = ParameterRow<GemmProblem>;
inline constexpr std::uint64_t kMaxGemmPitch = std::uint64_t{1} << 31;
inline constexpr std::uint64_t kMaxGemmStride = (std::uint64_t{1} << 40) - 1;

/// The parameters that all kernels of the family have.
inline constexpr std::array kGemmParameters = {
    number<&GemmProblem::m>("m", 1, 0x7fffffffu, "rows of C"),
    number<&GemmProblem::n>("n", 1, 0x7fffffffu, "columns of C").specializes(),
    number<&GemmProblem::k>("k", 1, 0x7fffffffu, "terms of a sum").specializes(),
    number<&GemmProblem::batch>("batch", 1, 65535, "matrices, the grid's z"),
    choice<&GemmProblem::type, kGemmTypes>("type", "of A").specializes(),
    choice<&GemmProblem::b, kGemmTypesOfB>("b", "type of B; a block format needs tb").specializes(),
    choice<&GemmProblem::c, kFloatTypes>("c", "type of C, bias and residual").specializes(),
    flag<&GemmProblem::transpose_a>("ta", "A is stored as [k x m]").specializes(),
    flag<&GemmProblem::transpose_b>("tb", "B is stored as [n x k]").specializes(),
    number<&GemmProblem::lda>("lda", 0, kMaxGemmPitch,
                              "elements from row to row of A as stored; 0: the row length")
        .specializes(),
    number<&GemmProblem::ldb>("ldb", 0, kMaxGemmPitch, "the same of B").specializes(),
    number<&GemmProblem::ldc>("ldc", 0, kMaxGemmPitch, "the same of C and the residual")
        .specializes(),
    number<&GemmProblem::stride_a>("stride_a", 0, kMaxGemmStride,
                                   "elements from matrix to matrix of a batch; 0: one for all")
        .specializes(),
    number<&GemmProblem::stride_b>("stride_b", 0, kMaxGemmStride, "the same of B").specializes(),
    number<&GemmProblem::stride_c>("stride_c", 0, kMaxGemmStride,
                                   "the same of C and the residual; 0: m * ldc")
        .specializes(),
    flag<&GemmProblem::scaled>("scaled", "alpha and beta").specializes(),
    flag<&GemmProblem::bias>("bias", "n elements are added to each row").specializes(),
    flag<&GemmProblem::residual>("residual", "as C, added after the activation").specializes(),
    choice<&GemmProblem::activation, kGemmActivations>("activation", "of the sum with its bias")
        .specializes()};

inline const GemmProblem& gemm_of(const GemmProblem& problem) { return problem; }
template <class K>
requires requires(const K& k) { k.problem; }
const GemmProblem& gemm_of(const K& kernel) { return kernel.problem; }

/// A row of the problem as one of K, which has a member `problem`.
template <class K, std::size_t kIndex>
constexpr ParameterRow<K> gemm_row() {
  return {kGemmParameters[kIndex].info,
          [](const K& spec) { return kGemmParameters[kIndex].get(spec.problem); },
          [](K& spec, std::uint64_t value) { kGemmParameters[kIndex].set(spec.problem, value); }};
}
/// The place of the type of B.
inline constexpr std::size_t kGemmTypeOfB = [] {
  std::size_t place = 0;
  while (kGemmParameters[place].info.name != "b") ++place;
  return place;
}();
template <class K, std::size_t... kIndex, class... More>
constexpr auto gemm_rows(std::index_sequence<kIndex...>, const More&... more) {
  return std::array{gemm_row<K, kIndex>()..., more...};
}
template <class K, std::size_t... kIndex, class... More>
constexpr auto gemm_rows_of_one_type(std::index_sequence<kIndex...>, const More&... more) {
  return std::array{gemm_row < K, kIndex < kGemmTypeOfB ? kIndex : kIndex + 1 > ()..., more...};
}
/// Those of all kernels, then the kernel's own.
template <class K, class... More>
constexpr auto gemm_parameters(const More&... more) {
  return gemm_rows<K>(std::make_index_sequence<kGemmParameters.size()>(), more...);
}
/// The same of a kernel whose B has the type of A.
template <class K, class... More>
constexpr auto gemm_parameters_of_one_type(const More&... more) {
  return gemm_rows_of_one_type<K>(std::make_index_sequence<kGemmParameters.size() - 1>(), more...);
}

template <auto kMember, auto& kWords>
inline constexpr auto kGemmChoice = choice<kMember, kWords>("", "");
/// A parameter of the problem that not every kernel has, as one of K.
template <class K, auto kMember, auto& kWords>
constexpr ParameterRow<K> gemm_choice(std::string_view name, std::string_view doc) {
  return {
      choice<kMember, kWords>(name, doc).specializes().info,
      [](const K& spec) { return kGemmChoice<kMember, kWords>.get(spec.problem); },
      [](K& spec, std::uint64_t value) { kGemmChoice<kMember, kWords>.set(spec.problem, value); }};
}

/// Alignments that a kernel needs, in bytes; null: an element's.
template <class K>
struct GemmAlignments {
  std::uint32_t (*a)(const K&) = nullptr;
  std::uint32_t (*b)(const K&) = nullptr;
  std::uint32_t (*outputs)(const K&) = nullptr;
};

/// Without a workspace, as most kernels have none.
template <class Row, std::size_t... kIndex>
constexpr auto without_workspace(const std::array<Row, sizeof...(kIndex) + 1>& rows,
                                 std::index_sequence<kIndex...>) {
  return std::array{rows[kIndex < 5 ? kIndex : kIndex + 1]...};
}
/// The arguments of K, in the order of the PTX parameters.
template <class K, bool kWorkspace = false>
constexpr auto gemm_arguments(const GemmAlignments<K>& aligned = {}) {
  using Row = ArgumentRow<K>;
  using O = GemmOperands;
  constexpr auto type = [](auto of) { return OperandType<K>(of); };
  constexpr auto a = [](const K& spec) { return gemm_of(spec).elements_a(); };
  constexpr auto b = [](const K& spec) { return gemm_of(spec).elements_b(); };
  constexpr auto c = [](const K& spec) { return gemm_of(spec).elements_c(); };
  constexpr auto n = [](const K& spec) { return std::uint64_t{gemm_of(spec).n}; };
  constexpr auto in_type = [](const K& spec) { return gemm_of(spec).type; };
  constexpr auto b_type = [](const K& spec) { return gemm_of(spec).type_b(); };
  constexpr auto out_type = [](const K& spec) { return gemm_of(spec).c; };
  constexpr auto bias = [](const K& spec) { return gemm_of(spec).bias; };
  constexpr auto residual = [](const K& spec) { return gemm_of(spec).residual; };
  constexpr auto scaled = [](const K& spec) { return gemm_of(spec).scaled; };
  // What is between rows or matrices stays as it is.
  constexpr auto read = [](const K& spec) {
    const GemmProblem& p = gemm_of(spec);
    return p.scaled || p.elements_c() != std::uint64_t{p.m} * p.n * p.batch;
  };
  Row m;
  m.info.name = "m";
  m.info.role = ArgumentRole::Shape;
  m.info.doc = "the parameter of that name";
  m.info.scalar = ptx::Type::u32;
  m.bits = [](const K& spec, const O&) { return std::uint64_t{gemm_of(spec).m}; };
  const std::array rows{
      Row::output("c", &O::c, type(out_type), c, "result; read too if the problem is scaled")
          .may_alias("residual")
          .read_if(read)
          .aligned(aligned.outputs),
      Row::input("a", &O::a, type(in_type), a, "left matrix").aligned(aligned.a),
      Row::input("b", &O::b, type(b_type), b, "right matrix").aligned(aligned.b),
      Row::input("bias", &O::bias, type(out_type), n, "added to each row")
          .only_if(bias)
          .aligned(aligned.outputs),
      Row::input("residual", &O::residual, type(out_type), c, "added to the result; may be c")
          .only_if(residual)
          .aligned(aligned.outputs),
      Row::workspace(),
      Row::template scalar<&O::alpha>("alpha", "factor of the sum; 1 unless scaled")
          .only_if(scaled),
      Row::template scalar<&O::beta>("beta", "factor of the old c; 0 unless scaled")
          .only_if(scaled),
      m};
  if constexpr (kWorkspace) {
    return rows;
  } else {
    return without_workspace(rows,
                             std::make_index_sequence<std::tuple_size_v<decltype(rows)> - 1>());
  }
}

/// Throws "bad-problem" for e4m3, which the kernel without tensor cores does not have.
void refuse_eight_bits(const GemmProblem& problem, std::string_view kernel);
/// The same for e4m3 that is not adjacent along k, or a B of another type.
void check_eight_bits(const GemmProblem& problem, std::string_view kernel);
/// Throws `Error` (Stage::Launch, "arguments") for factors of a problem that is not scaled.
void check_gemm_operands(const GemmProblem& problem, const GemmOperands& operands);
/// What the problem adds to a module's key; the kernel's own choices are `plan`.
[[nodiscard]] KernelKey gemm_key(const GemmProblem& problem, std::uint64_t plan) noexcept;
/// Magnitudes count an element of B as `min_b` at least, for kernels that round it to a type whose
/// smallest normal number that is.
void gemm_reference(const GemmProblem& problem, HostOperands& host, double min_b = 0);
/// The smallest normal f16 where B is rounded to f16, else 0.
[[nodiscard]] constexpr double min_rounded_b(const GemmProblem& p) noexcept {
  return p.type == ElementType::f16 && p.type_b() != p.type ? 0x1p-14 : 0;
}
/// Of a rounding of B to the type of A, as a share; 0 if they are the same.
[[nodiscard]] constexpr double b_rounding(const GemmProblem& p) noexcept {
  if (p.type_b() == p.type) return 0;
  return p.type == ElementType::f16 ? 0x1p-11 : p.type == ElementType::bf16 ? 0x1p-8 : 0;
}
/// Of sums that are off by at most `sum` times the sum of the terms' magnitudes.
[[nodiscard]] ErrorBound gemm_bound(const GemmProblem& problem, double sum);
/// Reads each element once, writes C once.
[[nodiscard]] KernelCost gemm_cost(const GemmProblem& problem) noexcept;

}  // namespace detail

}  // namespace ptxgen::inline v0
