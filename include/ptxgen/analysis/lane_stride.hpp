// ptxgen/analysis/lane_stride.hpp - how far apart the values of neighbouring lanes are
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ptxgen/analysis/registers.hpp"
#include "ptxgen/analysis/uniformity.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::analysis {

/// For integer values: by how much the value of a thread is above that of the thread with %tid.x
/// less by one, where that is the same for all threads of a row of the block. Follows mov, cvta,
/// cvt, add, sub, mul, mad and shl; wrap-around is left out of account. Where threads may hold the
/// results of different writes nothing is known. Keeps no reference to its arguments but `index`,
/// which must live as long.
class LaneStrides {
 public:
  LaneStrides(const ptx::Function& function, const RegisterIndex& index,
              const Uniformity& uniformity);

  /// Of an operand's value (for Memory: of its address); nothing if it is not a known constant.
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
