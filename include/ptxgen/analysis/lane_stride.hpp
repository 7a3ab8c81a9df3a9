// ptxgen/analysis/lane_stride.hpp - differences of values between neighbouring lanes
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ptxgen/analysis/registers.hpp"
#include "ptxgen/analysis/uniformity.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::analysis {

/// For integer values: the value of a thread minus the value of the thread whose %tid.x is one
/// less, if this is the same for all threads of a row of the block. Follows mov, cvta, cvt, add,
/// sub, mul, mad and shl; ignores wrap-around. Unknown where threads may hold the results of
/// different writes. Keeps a reference to `index` only.
class LaneStrides {
 public:
  LaneStrides(const ptx::Function& function, const RegisterIndex& index,
              const Uniformity& uniformity);

  /// The stride of an operand's value (for Memory: of its address), if it is a known constant.
  [[nodiscard]] std::optional<std::int64_t> of(const ptx::Operand& operand) const;

 private:
  friend class LaneStrideSolver;
  enum class Kind : std::uint8_t { Unset, Constant, Unknown };
  struct Stride {
    Kind kind = Kind::Unset;
    std::int64_t value = 0;
  };
  [[nodiscard]] Stride stride(const ptx::Operand& operand) const;

  const RegisterIndex* index_;
  std::vector<Stride> strides_;
};

}  // namespace ptxgen::inline v0::analysis
