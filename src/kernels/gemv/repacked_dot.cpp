// src/kernels/gemv/repacked_dot.cpp - units of repacked rows, by a lane
#include "kernels/gemv/block_dot.hpp"

namespace ptxgen::inline v0::gemv {

RepackedDecoder::RepackedDecoder(KernelBuilder& k, const BlockFormat& format,
                                 const Value<u32>& lane)
    : BlockProducts(k, format, lane) {
  // Loaded for each part, d of half a warp's rows would be two requests of one sector.
  if (format.parts == 2 && format.lanes == 16) {
    for (std::uint32_t part = 0; part < format.parts; ++part) {
      // The lanes of a row are the lower or the upper half of the warp.
      from_.push_back(block(part) | (lane & format.lanes));
    }
  }
  if (format.type != ElementType::q6_k) return;
  const Value<u32> odd = lane_ & 1u;
  shift_.emplace(odd << 3u);
  next_shift_.emplace(*shift_ + 16u);
}

void RepackedDecoder::exchange(RepackedUnit& unit) const {
  const Value<f32> loaded = unit.d[0];
  unit.d.clear();
  for (const Value<u32>& from : from_) unit.d.push_back(k_.shfl_idx(loaded, from));
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
