// src/emulator/matrix/tensor_lanes.hpp - loops over tensor-core sums, for each instruction set
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/lane/isa.hpp"
#include "ptxgen/ptx/types.hpp"

namespace ptxgen::inline v0::emulator {

/// Rows of a product that are computed together: those of every mma.sync of floats, and of a warp
/// in wgmma.
inline constexpr unsigned kTensorRows = 16;

/// What `tensor_sum` derives from its core and types, and the matrices.
struct TensorSums {
  int fraction_bits = 0;  ///< of the aligned terms
  int shift_right = 0;    ///< of all products, where they have more fraction bits than terms
  int kept = 0;           ///< fraction bits of an f32 result
  unsigned depth = 0;     ///< k
  unsigned at_once = 0;   ///< products in a sum
  std::size_t columns = 0;
  /// Row by row of the transposed a: element (row, i) is [i * kTensorRows + row].
  const std::int32_t* a_significands = nullptr;
  const std::int32_t* a_exponents = nullptr;
  /// Column by column; significands are shifted left where terms have more fraction bits.
  const std::int32_t* b_significands = nullptr;
  const std::int32_t* b_exponents = nullptr;
};

struct TensorLanes {
  /// Elements as TensorElement has them, significands shifted left by `shift`. Whether all are
  /// finite; the results are not used otherwise.
  bool (*decode)(ptx::Type type, int shift, const std::uint32_t* bits, std::size_t count,
                 std::int32_t* significands, std::int32_t* exponents);
  /// Adds products to d, kTensorRows elements of each column; all elements of a and b are finite.
  /// A column with a sum that is not finite is left as it was, and its flag set. f32 or f16.
  void (*sums_f32)(const TensorSums& sums, std::uint32_t* d, bool* not_finite);
  void (*sums_f16)(const TensorSums& sums, std::uint32_t* d, bool* not_finite);
};
[[nodiscard]] const TensorLanes& tensor_lanes(Isa isa) noexcept;

namespace isa_baseline {
extern const TensorLanes kTensorLanes;
}
namespace isa_avx2 {
extern const TensorLanes kTensorLanes;
}
namespace isa_avx512 {
extern const TensorLanes kTensorLanes;
}

}  // namespace ptxgen::inline v0::emulator
