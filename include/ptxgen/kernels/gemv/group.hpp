// ptxgen/kernels/gemv/group.hpp - several matrices times one vector
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemv/operands.hpp"

namespace ptxgen::inline v0 {

/// What becomes of the products with the first and the second matrix.
enum class GemvGate : std::uint8_t {
  None,         ///< each is an output
  Silu,         ///< `silu(a) * b`: SwiGLU
  Gelu,         ///< `gelu(a) * b` with the tanh form: GeGLU
  SiluPrecise,  ///< the same with the precise forms of exp and division
  GeluPrecise,  ///< the same with the precise tanh
};

/// One to three matrices times one x in one launch, such as those of q, k and v, or of gate and up:
/// `y_i = W_i x + bias_i`, `W_i[n_i x k]` row-major, f32 sums. The matrices may differ in n and in
/// type (`GemvProblem::weights` with layout R). With a gate the first two have one n and one
/// output, `y0 = act(W_0 x) * (W_1 x)`, rounded once, with the biases added before.
///
/// Entry `gemv_group(y0, y1, y2, w0, w1, w2, bias0, bias1, bias2, x)`; operands that are not there
/// are 0, matrices and x are aligned to 16 bytes. Blocks have 16 rows of a matrix and 256 threads
/// (8 and 128 with long rows of q6_k), one matrix after the other; with a gate a block has the same
/// rows of both. Sums are those of the GEMV `plan(i)`.
///
/// With `lane_rows` every lane has rows of its own, and a block 96 threads. Nothing is reduced, and
/// no lane idles at the end of a row, but a warp's loads are spread over 32 rows: for the emulated
/// device, where an instruction has one price.
struct GemvGroup {
  std::uint32_t k = 4096;   ///< a multiple of each type's block
  std::uint32_t n0 = 4096;  ///< rows of the matrices
  std::uint32_t n1 = 4096;  ///< 0: there is only one, without a gate
  std::uint32_t n2 = 4096;  ///< 0: there is no third one
  ElementType w0 = ElementType::q4_k, w1 = ElementType::q4_k, w2 = ElementType::q4_k;
  ElementType x = ElementType::f32;  ///< with blocks any float or q8_1, otherwise f32 or w0
  ElementType y =
      ElementType::f32;  ///< of outputs and biases: f32, f16 or bf16, as `GemvProblem::y`
  GemvGate gate = GemvGate::None;
  bool bias = false;  ///< each matrix has one, of its n values
  /// Of a matrix for each warp. With more, x is read less often and takes more registers.
  std::uint32_t warp_rows = 2;
  /// Matrices whose type has a repacked form are repacked rows, as `GemvProblem::repacked`; the
  /// others are as stored.
  bool repacked = false;
  /// Rows of a lane: 1, 2 or 4 of blocks as stored, of which k has a multiple (of q4_0, q5_0, q8_0
  /// and q6_k of two), with a float x. 0: the lanes of a warp share rows.
  std::uint32_t lane_rows = 0;

  struct Operands {
    DeviceRange y0{}, y1{}, y2{}, w0{}, w1{}, w2{}, bias0{}, bias1{}, bias2{}, x{};
  };

  /// 1, 2 or 3.
  [[nodiscard]] std::uint32_t matrices() const noexcept { return n1 == 0 ? 1 : n2 == 0 ? 2 : 3; }
  [[nodiscard]] ElementType type(std::uint32_t i) const noexcept {
    return i == 0 ? w0 : i == 1 ? w1 : w2;
  }
  [[nodiscard]] std::uint32_t rows(std::uint32_t i) const noexcept {
    return i == 0 ? n0 : i == 1 ? n1 : n2;
  }
  [[nodiscard]] bool is_repacked(std::uint32_t i) const noexcept;
  /// Values of matrix i; bytes if it is repacked.
  [[nodiscard]] std::uint64_t elements(std::uint32_t i) const noexcept;
  /// The plan of matrix i: its sums are those of `Gemv{plan}`.
  [[nodiscard]] GemvPlan plan(std::uint32_t i) const;
  /// Throws `Error` (Stage::Build, "bad-parameter", or what `check` throws of a plan) if the target
  /// cannot run the group.
  void check_layout(const ptx::Target& target) const;
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads all matrices and x once.
  [[nodiscard]] KernelCost cost() const noexcept;
};

inline constexpr Word<GemvGate> kGemvGates[] = {{"none", GemvGate::None},
                                                {"silu", GemvGate::Silu},
                                                {"gelu", GemvGate::Gelu},
                                                {"silu_precise", GemvGate::SiluPrecise},
                                                {"gelu_precise", GemvGate::GeluPrecise}};

namespace detail {

/// Matrix `i` of a group.
template <std::uint32_t i>
constexpr ArgumentRow<GemvGroup> group_matrix(std::string_view name,
                                              DeviceRange GemvGroup::Operands::*memory,
                                              std::string_view doc) {
  using K = GemvGroup;
  constexpr auto type = [](const K& spec) {
    return spec.is_repacked(i) ? ElementType::b8 : spec.type(i);
  };
  constexpr auto elements = [](const K& spec) { return spec.elements(i); };
  constexpr auto rows = [](const K& spec) {
    return spec.is_repacked(i) ? RepackedRows{spec.type(i), spec.k} : RepackedRows{};
  };
  constexpr auto load = [](const K&) -> std::uint32_t { return 16; };
  return ArgumentRow<K>::input(name, memory, OperandType<K>(type), ElementCount<K>(elements), doc)
      .aligned(load)
      .repacked(rows);
}

}  // namespace detail

template <>
struct Describe<GemvGroup> {
  using K = GemvGroup;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{
      "gemv_group", "y_i = W_i x + bias_i for up to three matrices, or act(y_0) * y_1",
      "wide: consecutive lanes read consecutive 16 bytes of a row, each weight once"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::k>("k", 1, 0x7fffffffu, "elements of x").specializes(),
      number<&K::n0>("n0", 1, 0x7fffffffu, "rows of the first matrix").specializes(),
      number<&K::n1>("n1", 0, 0x7fffffffu, "of the second; 0: there is none").specializes(),
      number<&K::n2>("n2", 0, 0x7fffffffu, "of the third; 0: there is none").specializes(),
      choice<&K::w0, kGemvWeights>("w0", "type of the first matrix").specializes(),
      choice<&K::w1, kGemvWeights>("w1", "of the second").specializes(),
      choice<&K::w2, kGemvWeights>("w2", "of the third").specializes(),
      choice<&K::x, kGemvX>("x", "type of x: f32, or the weights'; with blocks any, or q8_1")
          .specializes(),
      choice<&K::y, kFloatTypes>("y", "type of outputs and biases").specializes(),
      choice<&K::gate, kGemvGates>("gate", "silu or gelu: y0 = act(y0) * y1").specializes(),
      flag<&K::bias>("bias", "n elements are added to each").specializes(),
      number<&K::warp_rows>("warp_rows", 2, 8, "rows of a matrix for each warp: 2, 4 or 8")
          .specializes(),
      flag<&K::repacked>("repacked", "matrices of a type that repack has are repacked rows")
          .specializes(),
      number<&K::lane_rows>("lane_rows", 0, 4, "rows of each lane: 1, 2, 4; 0: lanes share rows")
          .specializes()};
  static constexpr auto kTwo = [](const K& spec) { return spec.n1 != 0; };
  static constexpr auto kSecond = [](const K& spec) {
    return spec.n1 != 0 && spec.gate == GemvGate::None;
  };
  static constexpr auto kThird = [](const K& spec) { return spec.n2 != 0; };
  static constexpr auto kBias = [](const K& spec) { return spec.bias; };
  static constexpr auto kSecondBias = [](const K& spec) { return spec.bias && spec.n1 != 0; };
  static constexpr auto kThirdBias = [](const K& spec) { return spec.bias && spec.n2 != 0; };
  static constexpr auto kLoad = [](const K&) -> std::uint32_t { return 16; };
  static constexpr Row arguments[] = {
      Row::output("y0", &O::y0, &K::y, &K::n0, "first result"),
      Row::output("y1", &O::y1, &K::y, &K::n1, "second result").only_if(kSecond),
      Row::output("y2", &O::y2, &K::y, &K::n2, "third result").only_if(kThird),
      detail::group_matrix<0>("w0", &O::w0, "first matrix"),
      detail::group_matrix<1>("w1", &O::w1, "second matrix").only_if(kTwo),
      detail::group_matrix<2>("w2", &O::w2, "third matrix").only_if(kThird),
      Row::input("bias0", &O::bias0, &K::y, &K::n0, "added to the first").only_if(kBias),
      Row::input("bias1", &O::bias1, &K::y, &K::n1, "added to the second").only_if(kSecondBias),
      Row::input("bias2", &O::bias2, &K::y, &K::n2, "added to the third").only_if(kThirdBias),
      Row::input("x", &O::x, &K::x, &K::k, "vector").aligned(kLoad)};
  static KernelKey key(const K& spec);
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec);
  static constexpr ElementType kQ4 = ElementType::q4_k;
  static constexpr ElementType kQ6 = ElementType::q6_k;
  static constexpr ElementType kHalf = ElementType::bf16;
  static constexpr K cases[] = {{1, 1, 1, 0, ElementType::f32, ElementType::f32, ElementType::f32},
                                {1024, 70, 33, 40, kQ4, kQ4, kQ4},
                                {.k = 2048,
                                 .n0 = 64,
                                 .n1 = 20,
                                 .n2 = 33,
                                 .w0 = kQ4,
                                 .w1 = kQ6,
                                 .w2 = ElementType::q8_0,
                                 .bias = true},
                                {.k = 1280,
                                 .n0 = 45,
                                 .n1 = 45,
                                 .n2 = 21,
                                 .w0 = kQ4,
                                 .w1 = kQ4,
                                 .w2 = kQ6,
                                 .gate = GemvGate::Silu,
                                 .bias = true},
                                {.k = 640,
                                 .n0 = 40,
                                 .n1 = 40,
                                 .n2 = 0,
                                 .w0 = ElementType::q5_0,
                                 .w1 = ElementType::q8_0,
                                 .x = ElementType::q8_1,
                                 .y = ElementType::f16,
                                 .gate = GemvGate::Gelu},
                                {.k = 999,
                                 .n0 = 33,
                                 .n1 = 50,
                                 .n2 = 7,
                                 .w0 = kHalf,
                                 .w1 = kHalf,
                                 .w2 = kHalf,
                                 .x = kHalf,
                                 .bias = true},
                                {.k = 70144, .n0 = 3, .n1 = 2, .n2 = 0, .w0 = kQ4, .w1 = kQ4},
                                {.k = 576,
                                 .n0 = 100,
                                 .n1 = 100,
                                 .n2 = 0,
                                 .w0 = ElementType::q4_1,
                                 .w1 = ElementType::q5_0,
                                 .gate = GemvGate::GeluPrecise,
                                 .bias = true,
                                 .warp_rows = 8},
                                {.k = 1280,
                                 .n0 = 45,
                                 .n1 = 45,
                                 .n2 = 21,
                                 .w0 = ElementType::q5_1,
                                 .w1 = kQ4,
                                 .w2 = kQ6,
                                 .gate = GemvGate::Silu,
                                 .repacked = true},
                                // Of the first matrix more steps than of the second, and fewer.
                                {.k = 512,
                                 .n0 = 40,
                                 .n1 = 40,
                                 .n2 = 0,
                                 .w0 = ElementType::f32,
                                 .w1 = ElementType::f16,
                                 .gate = GemvGate::Silu},
                                {.k = 1280,
                                 .n0 = 21,
                                 .n1 = 21,
                                 .n2 = 9,
                                 .w0 = kQ6,
                                 .w1 = ElementType::f32,
                                 .w2 = kQ4,
                                 .gate = GemvGate::Silu,
                                 .bias = true},
                                {.k = 512,
                                 .n0 = 70,
                                 .n1 = 33,
                                 .n2 = 100,
                                 .w0 = kQ4,
                                 .w1 = kQ6,
                                 .w2 = ElementType::q8_0,
                                 .bias = true,
                                 .lane_rows = 2},
                                {.k = 256,
                                 .n0 = 50,
                                 .n1 = 50,
                                 .n2 = 0,
                                 .w0 = ElementType::q4_1,
                                 .w1 = ElementType::q5_k,
                                 .gate = GemvGate::SiluPrecise,
                                 .lane_rows = 1},
                                {.k = 192,
                                 .n0 = 200,
                                 .n1 = 0,
                                 .n2 = 0,
                                 .w0 = ElementType::q5_0,
                                 .x = kHalf,
                                 .y = ElementType::f16,
                                 .lane_rows = 4},
                                {.k = 576,
                                 .n0 = 21,
                                 .n1 = 128,
                                 .n2 = 7,
                                 .w0 = ElementType::q5_1,
                                 .w1 = ElementType::q4_0,
                                 .w2 = ElementType::q4_1,
                                 .lane_rows = 1}};
};

}  // namespace ptxgen::inline v0
