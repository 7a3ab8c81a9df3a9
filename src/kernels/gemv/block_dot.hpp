// src/kernels/gemv/block_dot.hpp - products of blocks and integers, by a lane
#pragma once

#include <array>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "kernels/gemv/block_format.hpp"
#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0::gemv {

/// Four bytes times four: 16 weights, or 16 bytes of a digit of x.
using Piece16 = std::array<Value<u32>, 4>;

/// The elements of x that belong to a part of a lane's unit, loaded once for all rows.
struct XPart {
  std::vector<std::vector<Piece16>> digits;  ///< the lowest first; a piece after the other
  std::vector<Value<f32>> scales, sums;      ///< of each group
};
/// Where a lane's integers and floats of a step of x begin in shared memory.
struct XPlace {
  Ptr<b8, Shared> integers, floats;
};
[[nodiscard]] XPart load_x_part(KernelBuilder& k, const StagedX& layout, const XPlace& at,
                                std::uint32_t part);

/// Where blocks are read: their copy in shared memory, or the matrix itself.
class BlockPlace {
 public:
  BlockPlace(const Ptr<b8, Shared>& at) : at_(at) {}
  BlockPlace(const Ptr<b8>& at, const Load& how) : at_(at), how_(how) {}

  [[nodiscard]] BlockPlace operator+(std::uint32_t bytes) const;
  /// 1, 2 or 4 words, to whose size the place is aligned.
  [[nodiscard]] std::vector<Value<u32>> words(KernelBuilder& k, std::uint32_t count) const;
  [[nodiscard]] const Ptr<b8, Shared>& shared() const { return std::get<Ptr<b8, Shared>>(at_); }

 private:
  std::variant<Ptr<b8, Shared>, Ptr<b8>> at_;
  Load how_{};
};

/// A lane's unit in a row's step. Each word is loaded once.
class Unit {
 public:
  /// `widest` is the bytes of a load: 4, 8 or 16.
  Unit(KernelBuilder& k, const BlockPlace& at, std::uint32_t widest)
      : k_(k), at_(at), widest_(widest) {}

  /// The word at byte `at`, a multiple of 2.
  [[nodiscard]] Value<u32> word(std::uint32_t at);
  [[nodiscard]] Piece16 piece(std::uint32_t at);
  /// The f16 at byte `at`.
  [[nodiscard]] Value<f32> half(std::uint32_t at);
  /// Words from `at` to `at + bytes` are loaded for each half of the warp apart.
  void load_by_halves(std::uint32_t at, std::uint32_t bytes, const Pred& lower);

 private:
  [[nodiscard]] Value<u32> aligned_word(std::uint32_t index);

  KernelBuilder& k_;
  BlockPlace at_;
  std::uint32_t widest_;
  std::map<std::uint32_t, Value<u32>> words_;  ///< by index
  std::map<std::uint32_t, std::array<Value<u16>, 2>> halves_;
};

/// A part of a unit as integers, and what they are multiplied with.
struct DecodedPart {
  std::vector<Piece16> quants;
  Value<f32> d;
  std::optional<Value<f32>> min;         ///< of q4_1, q5_1; the negated one of q4_k, q5_k
  std::vector<Value<f32>> scales, mins;  ///< of groups
};

/// What a lane does with decoded parts, with its constants.
class BlockProducts {
 public:
  /// The lane, of those of a row.
  [[nodiscard]] const Value<u32>& lane() const noexcept { return lane_; }
  /// The block of a part, of those of a step.
  [[nodiscard]] Value<u32> block(std::uint32_t part) const;
  /// Adds its products with x.
  void add(const DecodedPart& part, const XPart& x, Var<f32>& sum) const;

 protected:
  using Quants = std::vector<Piece16>;
  BlockProducts(KernelBuilder& k, const BlockFormat& format, const Value<u32>& lane);
  [[nodiscard]] Quants four_bits(const Piece16& both) const;
  [[nodiscard]] Quants five_bits(const Piece16& both, const Value<u32>& bits) const;
  /// Pieces of two low halves and two high halves, with the upper two bits of each.
  [[nodiscard]] Quants six_bits(const Piece16& first, const Piece16& second,
                                const Piece16& bits) const;

  KernelBuilder& k_;
  const BlockFormat& format_;
  Value<u32> lane_;
  Value<s32> zero_;

 private:
  [[nodiscard]] Piece16 with_fifth_bits(const Piece16& low, const Value<u32>& bits,
                                        unsigned first) const;
  [[nodiscard]] Value<f32> dot(const Quants& quants, const XPart& x, std::uint32_t group) const;
};

/// A lane's unit of a step of a repacked row, as it was loaded.
struct RepackedUnit {
  std::vector<Piece16> integers;   ///< q8_0: of both parts; q6_k: low bits of two 32
  std::optional<Piece16> high;     ///< q6_k: the upper bits
  std::optional<Value<u32>> bits;  ///< q5_0, q5_1
  std::vector<Value<u32>> scales;  ///< q6_k: the two words of its half of the block
  std::vector<Value<f32>> d;       ///< of each part
  std::optional<Value<f32>> min;
};

/// Decodes units of repacked rows.
class RepackedDecoder : public BlockProducts {
 public:
  RepackedDecoder(KernelBuilder& k, const BlockFormat& format, const Value<u32>& lane);
  /// Whether a lane has loaded d of another's block (q8_0, half a warp a row).
  [[nodiscard]] bool exchanges() const noexcept { return !from_.empty(); }
  /// From what each lane has loaded to what it needs, by all lanes of the warp.
  void exchange(RepackedUnit& unit) const;
  [[nodiscard]] DecodedPart decode(const RepackedUnit& unit, std::uint32_t part) const;

 private:
  [[nodiscard]] Quants quants(const RepackedUnit& unit, std::uint32_t part) const;

  std::vector<Value<u32>> from_;                  ///< of each part: the lane that has loaded its d
  std::optional<Value<u32>> shift_, next_shift_;  ///< q6_k: which of two scales
};

/// What a lane decodes, with its constants.
class BlockDecoder : public BlockProducts {
 public:
  /// `steps` is where the steps of the lane's rows are in shared memory.
  BlockDecoder(KernelBuilder& k, const BlockFormat& format, const Value<u32>& lane,
               const Ptr<b8, Shared>& steps);
  /// Of the units of a step of four lanes, number `lane`, by whichever lane has the row. `set_row`
  /// says where the step is.
  BlockDecoder(KernelBuilder& k, const BlockFormat& format, std::uint32_t lane);
  void set_row(const BlockPlace& step);

  /// Part `part` of the lane's unit, in the row's step that begins `at` bytes after `steps`.
  [[nodiscard]] DecodedPart decode(std::uint32_t at, std::uint32_t part) const;

 private:
  using Place = BlockPlace;
  void place_quarter();
  void place_sixteenth();
  [[nodiscard]] Quants small_quants(Unit& unit, std::uint32_t at) const;
  [[nodiscard]] Quants k_quants(Unit& unit, std::uint32_t at) const;
  [[nodiscard]] Quants q6_k_quants(std::uint32_t at) const;
  [[nodiscard]] DecodedPart decode_small(std::uint32_t at) const;
  [[nodiscard]] DecodedPart decode_k(std::uint32_t at) const;
  [[nodiscard]] DecodedPart decode_q6_k(std::uint32_t at) const;
  [[nodiscard]] std::array<Value<f32>, 4> scales_and_mins(Unit& header) const;
  [[nodiscard]] Unit unit_at(const Place& place, std::uint32_t at) const {
    return {k_, place + at, widest_};
  }

  std::uint32_t widest_;
  std::optional<std::uint32_t> number_;  ///< of the unit, where the lane does not decide
  std::optional<Place> unit_;            ///< the block, or the first of two
  std::optional<Place> low_, high_;  ///< q4_k, q5_k: the quarter's bytes; q6_k: ql, qh of the part
  std::optional<Place> scales_;      ///< q6_k: of its half of a block
  // q4_k, q5_k: the bytes of the quarter's scales and the masks of their bits; q5_k: its fifth
  // bits. q6_k: which of two scales.
  std::optional<Value<u32>> selector_, early_, late_high_, late_low_, shift_, next_shift_;
  std::optional<Pred> lower_;  ///< q6_k: the lower half of the warp
};

}  // namespace ptxgen::inline v0::gemv
