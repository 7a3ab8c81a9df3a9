// ptxgen/kernels/quantization/repack.hpp - a kernel that repacks rows of blocks
#pragma once

#include <cstdint>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"

namespace ptxgen::inline v0 {

inline constexpr Word<ElementType> kRepackedTypes[] = {
    {"q4_0", ElementType::q4_0}, {"q4_1", ElementType::q4_1}, {"q5_0", ElementType::q5_0},
    {"q5_1", ElementType::q5_1}, {"q8_0", ElementType::q8_0}, {"q6_k", ElementType::q6_k}};

/// `repack_row` of each row, bit for bit. Entry `repack(w, y, rows, columns)`: w has the rows as
/// stored, one after another, aligned to 2 bytes; y the repacked rows, aligned to 16. A block for
/// each row; a thread writes 2 bytes at a time.
struct Repack {
  std::uint32_t rows = 1;
  std::uint32_t columns = 4096;  ///< of a row, a multiple of 32; the last block may have more
  ElementType type = ElementType::q6_k;  ///< q4_0, q4_1, q5_0, q5_1, q8_0 or q6_k

  struct Operands {
    DeviceRange y{}, w{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// rows = 0 or columns = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<Repack> {
  using K = Repack;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"repack", "y = rows of blocks of w as arrays of their fields",
                                  "coalesced: consecutive lanes on consecutive 2 bytes of y"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 0x7fffffffu, "rows"),
      number<&K::columns>("columns", 32, 0x7fffffe0u, "values of a row").multiple_of(32),
      choice<&K::type, kRepackedTypes>("type", "of the blocks").specializes()};
  static constexpr auto kStored = [](const K& spec) {
    return spec.rows * bytes(spec.type, spec.columns);
  };
  static constexpr auto kRepacked = [](const K& spec) {
    return spec.rows * repacked_bytes(spec.type, spec.columns);
  };
  static constexpr Row arguments[] = {
      Row::input("w", &O::w, ElementType::b8, kStored, "rows of blocks, as stored")
          .aligned([](const K&) -> std::uint32_t { return 2; })
          .values(0, 255),
      Row::output("y", &O::y, ElementType::b8, kRepacked, "repacked rows")
          .aligned([](const K&) -> std::uint32_t { return 16; }),
      Row::shape<&K::rows>("rows"), Row::shape<&K::columns>("columns")};
  static void reference(const K& spec, HostOperands& host);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{1, 32, ElementType::q4_0},    {3, 96, ElementType::q4_1},
                                {2, 4128, ElementType::q5_0},  {5, 320, ElementType::q5_1},
                                {2, 70016, ElementType::q8_0}, {3, 2304, ElementType::q6_k},
                                {2, 288, ElementType::q6_k}};
};

}  // namespace ptxgen::inline v0
