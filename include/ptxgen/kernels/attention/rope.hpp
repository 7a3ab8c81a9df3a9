// ptxgen/kernels/attention/rope.hpp - rotary position embedding, interleaved and NeoX
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/attention/rope_pairs.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// Rotates pair i of each head by `position * theta^(-2i / head_size)`:
/// `(x0 cos - x1 sin, x0 sin + x1 cos)`. Computed in f32 and rounded once to the type.
///
/// x and y are [row][head][head_size]; a row is a token. Its position is `position + row`, or
/// `positions[row]` from device memory with `indirect`, which a captured graph can replay;
/// otherwise positions is null. With `factors` the frequency of pair i is divided by `factors[i]`
/// (Llama 3's rope_freqs.weight), otherwise factors is null. Entries `rope` and `rope_neox`, both
/// `(x, positions, y, rows, heads, position, theta, factors)`; y may be x. The buffers of
/// `rope` are aligned to two elements. A block for each head with a thread for each pair; the
/// grid's y counts rows by stride.
template <RopePairs kPairs>
struct Rope {
  std::uint32_t rows = 1;
  std::uint32_t heads = 32;
  std::uint32_t head_size = 128;        ///< even, up to 2048
  ElementType type = ElementType::f32;  ///< f32, f16 or bf16
  bool indirect = false;                ///< positions in device memory
  /// Angles in f64 and the precise sine and cosine. Otherwise the error of an angle is up to 2^-17
  /// of it, which positions beyond some thousands feel.
  bool precise = false;
  bool inverse = false;  ///< rotates back
  bool factors = false;  ///< frequency factors in device memory

  struct Operands {
    DeviceRange y{}, x{}, positions{};
    std::uint32_t position = 0;
    float theta = 10000.0f;  ///< the base, positive
    DeviceRange factors{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads x and writes y once.
  [[nodiscard]] KernelCost cost() const noexcept;
};
using RopeInterleaved = Rope<RopePairs::Interleaved>;
using RopeNeox = Rope<RopePairs::Halves>;

extern template struct Rope<RopePairs::Interleaved>;
extern template struct Rope<RopePairs::Halves>;

template <RopePairs kPairs>
struct Describe<Rope<kPairs>> {
  using K = Rope<kPairs>;
  using Row = ArgumentRow<K>;
  using O = typename K::Operands;
  static constexpr bool kInterleaved = kPairs == RopePairs::Interleaved;
  static constexpr KernelDoc text{
      kInterleaved ? "rope" : "rope_neox",
      kInterleaved ? "rotates elements 2i and 2i + 1 of each head by position * theta^(-2i / size)"
                   : "rotates elements i and i + size / 2 of each head by position * "
                     "theta^(-2i / size)",
      "coalesced: consecutive lanes on consecutive pairs of a head"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 0xffffffffu, "rows, of one token each"),
      number<&K::heads>("heads", 1, 0x7fffffffu, "heads of a row"),
      number<&K::head_size>("head_size", 2, 2048, "elements of a head")
          .multiple_of(2)
          .specializes(),
      choice<&K::type, kFloatTypes>("type", "of x and y").specializes(),
      flag<&K::indirect>("indirect", "positions in device memory").specializes(),
      flag<&K::precise>("precise", "angles in f64, precise sine and cosine").specializes(),
      flag<&K::inverse>("inverse", "rotates back").specializes(),
      flag<&K::factors>("factors", "frequency factors in device memory").specializes()};
  static constexpr auto kElements = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.heads * spec.head_size;
  };
  static constexpr auto kAlignment = [](const K& spec) -> std::uint32_t {
    return (kInterleaved ? 2 : 1) * bytes(spec.type);
  };
  static constexpr auto kPairsOfHead = [](const K& spec) {
    return std::uint64_t{spec.head_size} / 2;
  };
  static constexpr auto kFactors = [](const K& spec) { return spec.factors; };
  static constexpr auto kIndirect = [](const K& spec) { return spec.indirect; };
  static constexpr Row arguments[] = {
      Row::input("x", &O::x, &K::type, kElements, "rows of heads").aligned(kAlignment),
      Row::input("positions", &O::positions, ElementType::u32, &K::rows, "of each row")
          .only_if(kIndirect)
          .values(0, 131071),
      Row::output("y", &O::y, &K::type, kElements, "rotated heads")
          .may_alias("x")
          .aligned(kAlignment),
      Row::template shape<&K::rows>("rows"),
      Row::template shape<&K::heads>("heads"),
      Row::template scalar<&O::position>("position", "of the first row, unless indirect")
          .values(0, 4095),
      Row::template scalar<&O::theta>("theta", "base of the frequencies").values(10000, 1000000),
      Row::input("factors", &O::factors, ElementType::f32, kPairsOfHead,
                 "divide the frequency of each pair")
          .only_if(kFactors)
          .values(1, 32)};
  static constexpr TwinOperand kRenamed[] = {{"position", "positions"}};
  static constexpr KernelBatch batch{BatchStrategy::GridY, "rows", {}, kRenamed};
  /// Takes the position by value.
  static K twin(K spec) {
    spec.rows = 1;
    spec.indirect = false;
    return spec;
  }
  static K for_layer(K spec, const LayerSizes& sizes) {
    spec.heads = sizes.heads;
    spec.head_size = sizes.head_size;
    spec.indirect = true;
    return spec;
  }
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{1, 1, 2},
                                {1, 4, 128},
                                {3, 2, 80, ElementType::f16},
                                {2, 3, 64, ElementType::bf16},
                                {5, 2, 96, ElementType::f32, true},
                                {3, 2, 128, ElementType::f32, true, true},
                                {2, 2, 128, ElementType::f32, false, true, true},
                                {1, 1, 2048, ElementType::f32, false, true},
                                {70000, 1, 2, ElementType::f32},
                                {2, 3, 64, ElementType::f32, false, false, false, true},
                                {17, 1, 128, ElementType::f16, true, true, false, true}};
};

}  // namespace ptxgen::inline v0
