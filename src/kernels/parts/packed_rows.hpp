// src/kernels/parts/packed_rows.hpp - units of rows of floats or q8_0 blocks
#pragma once

#include <optional>
#include <vector>

#include "kernels/parts/words.hpp"
#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

/// Four bytes as signed integers, exact: four instructions for the bytes, four subtractions.
[[nodiscard]] std::vector<Value<f32>> signed_bytes(KernelBuilder& k, const Value<u32>& word);

/// Whether unit `lane + i * lanes` is below `units`; nothing if that holds for every lane.
[[nodiscard]] std::optional<Pred> unit_within(const Value<u32>& lane, std::uint32_t units,
                                              std::uint32_t lanes, std::uint32_t i);

/// `unit` consecutive values of a row as they were loaded.
struct PackedUnit {
  Floats floats;                       ///< unless q8_0
  std::vector<Value<u32>> words;       ///< with the bytes of q8_0
  std::optional<Value<u32>> selector;  ///< of four of them in two words
  std::optional<Value<u16>> step;      ///< of the block
};

/// Reads units of rows: lane t of `lanes` those with the numbers t, t + lanes, ... so that
/// consecutive lanes read consecutive memory. Rows of floats are aligned to 16 bytes, those of q8_0
/// to 2: there a unit is loaded with words of 32 bits and one of 16, never outside of its block.
class PackedRows {
 public:
  struct Shape {
    ElementType type = ElementType::f32;  ///< f32, f16, bf16 or q8_0
    std::uint32_t values = 0;             ///< of a row
    std::uint32_t unit = 4;               ///< 4 or 8 values, at most 16 bytes
    std::uint32_t lanes = 32;             ///< for q8_0 a multiple of the units of a block
    std::uint32_t units = 1;              ///< of a lane; some of the last may be beyond the row
  };
  PackedRows(KernelBuilder& k, const Shape& shape, const Value<u32>& lane);

  /// Bytes from a row to the next.
  [[nodiscard]] std::uint32_t pitch() const noexcept {
    return static_cast<std::uint32_t>(bytes(shape_.type, shape_.values));
  }
  /// Loads the lane's units; units beyond the row, and all unless `exists`, are zeros, without an
  /// access.
  [[nodiscard]] std::vector<PackedUnit> load(const Ptr<b8>& row,
                                             const std::optional<Pred>& exists = {}) const;
  /// The values as f32, exact; of q8_0 without the step of the block.
  [[nodiscard]] std::vector<Value<f32>> values(const PackedUnit& unit) const;
  /// The step, exact; nothing for floats.
  [[nodiscard]] std::optional<Value<f32>> step(const PackedUnit& unit) const;

 private:
  [[nodiscard]] std::optional<Pred> within(std::uint32_t i,
                                           const std::optional<Pred>& exists) const {
    const std::optional<Pred> unit =
        unit_within(lane_, shape_.values / shape_.unit, shape_.lanes, i);
    if (unit && exists) return *unit & *exists;
    return unit ? unit : exists;
  }
  template <class T>
  [[nodiscard]] Value<T> load_word(const Ptr<b8>& at, const std::optional<Pred>& inside) const;
  [[nodiscard]] PackedUnit load_floats_of(const Ptr<b8>& row, std::uint32_t i,
                                          const std::optional<Pred>& exists) const;
  [[nodiscard]] std::vector<PackedUnit> load_blocks(const Ptr<b8>& row,
                                                    const std::optional<Pred>& exists) const;

  KernelBuilder& k_;
  Shape shape_;
  Value<u32> lane_;
  std::optional<Value<u64>> first_;  ///< offset of the lane's first unit, bytes; or of its block
  std::optional<Value<u64>> run_;    ///< of the unit's bytes within the block
};

}  // namespace ptxgen::inline v0
