// src/kernels/gemv/repacked_dot.cpp - units of repacked rows, by a lane
#include "kernels/gemv/block_dot.hpp"

namespace ptxgen::inline v0::gemv {

RepackedDecoder::RepackedDecoder(KernelBuilder& k, const BlockFormat& format,
                                 const Value<u32>& lane)
    : BlockProducts(k, format, lane) {
  const bool six = format.type == ElementType::q6_k;
  if (!six && format.type != ElementType::q8_0) return;
  for (std::uint32_t part = 0; part < format.parts; ++part) {
    const Value<u32> from = block(part);
    // The lanes of a row are the lower or the upper half of the warp.
    from_.push_back(format.lanes == 32 ? from : from | (lane & format.lanes));
  }
  if (!six) return;
  const Value<u32> odd = lane_ & 1u;
  odd_.emplace(odd != 0u);
  shift_.emplace(odd << 3u);
  next_shift_.emplace(*shift_ + 16u);
}

void RepackedDecoder::exchange(RepackedUnit& unit) const {
  if (from_.empty()) return;
  const Value<f32> loaded = unit.d[0];
  unit.d.clear();
  for (const Value<u32>& from : from_) unit.d.push_back(k_.shfl_idx(loaded, from));
  if (!odd_) return;
  const Value<u32> own = unit.scales[0];
  const Value<u32> other = k_.shfl_bfly(own, 1u);
  unit.scales.clear();
  unit.scales.push_back(k_.selp(other, own, *odd_));
  unit.scales.push_back(k_.selp(own, other, *odd_));
}

BlockProducts::Quants RepackedDecoder::quants(const RepackedUnit& unit, std::uint32_t part) const {
  switch (format_.type) {
    case ElementType::q8_0:
      return {unit.integers[part]};
    case ElementType::q6_k:
      return six_bits(unit.integers[0], unit.integers[1], *unit.high);
    case ElementType::q5_0:
    case ElementType::q5_1:
      return five_bits(unit.integers[0], *unit.bits);
    default:
      return four_bits(unit.integers[0]);
  }
}

DecodedPart RepackedDecoder::decode(const RepackedUnit& unit, std::uint32_t part) const {
  DecodedPart decoded{quants(unit, part), unit.d[part], unit.min, {}, {}};
  if (unit.scales.empty()) return decoded;
  for (std::uint32_t group = 0; group < format_.groups; ++group) {
    const Value<s32> two = k_.bitcast<s32>(unit.scales[group / 2]);
    const Value<u32>& bit = group % 2 == 0 ? *shift_ : *next_shift_;
    decoded.scales.push_back(k_.convert<f32>(k_.bfe(two, bit, 8u)));
  }
  return decoded;
}

}  // namespace ptxgen::inline v0::gemv
