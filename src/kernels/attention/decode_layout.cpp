// src/kernels/attention/decode_layout.cpp - choice of the layout and of the chunk
#include "kernels/attention/decode_layout.hpp"

#include <algorithm>
#include <bit>

namespace ptxgen::inline v0 {

namespace attention {

namespace {

constexpr std::uint32_t kRegisters = 118;  // of 128: addresses take the rest
constexpr std::uint32_t kLaneBytes = 64;   // of keys that a lane loads in a step
constexpr std::uint32_t kTeamBytes = 64;   // that a team reads at once, if the row has them
constexpr std::uint32_t kMaxUnits = 8;     // that a lane loads in a step

std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

// Of a unit as it is loaded; one of q8_0 has its share of the block, about.
std::uint32_t unit_bytes(ElementType cache, const DecodeLayout& l) {
  return cache == ElementType::q8_0 ? l.unit : l.unit * bytes(cache);
}

// What is alive at once: for each head its outputs, queries, peaks, sum and scores; units of keys
// and values, those of q8_0 with the words around them; decoded keys, queries on their way.
std::uint32_t registers(const AttentionDecode& spec, const DecodeLayout& l) {
  const std::uint32_t head = l.values() * (l.query_in_registers ? 2 : 1) + 3 + l.positions;
  const std::uint32_t words =
      unit_bytes(spec.cache, l) / 4 + (spec.cache == ElementType::q8_0 ? 2 : 0);
  const std::uint32_t decoded = spec.cache == ElementType::f32 ? 0 : l.positions * l.unit;
  const std::uint32_t queries = l.query_in_registers ? 0 : 28;
  return spec.block_heads() * head + 2 * l.positions * l.units * words + decoded + queries;
}

bool is_possible(const AttentionDecode& spec, const DecodeLayout& l) {
  const std::uint32_t loaded = l.positions * l.units;
  if (loaded > kMaxUnits || loaded * unit_bytes(spec.cache, l) > kLaneBytes) return false;
  if (registers(spec, l) > kRegisters) return false;
  if (spec.cache == ElementType::q8_0) return l.lanes % (32 / l.unit) == 0;
  const std::uint32_t row = spec.head_size * bytes(spec.cache);
  return l.lanes * unit_bytes(spec.cache, l) >= std::min(row, kTeamBytes);
}

// Lane instructions per 64 positions, shuffles and shared loads at a quarter of the rate: products
// of scores and sums, decoding of k and v, the team's reduction, the softmax, queries that are
// loaded. Half as much more for a lane with nothing in flight instead of `kLaneBytes`.
std::uint32_t instructions(const AttentionDecode& spec, const DecodeLayout& l) {
  const std::uint32_t heads = spec.block_heads();
  const std::uint32_t decoding = spec.cache == ElementType::f32    ? 0
                                 : spec.cache == ElementType::q8_0 ? 5
                                                                   : 2;
  const auto steps = static_cast<std::uint32_t>(std::countr_zero(l.lanes));
  const std::uint32_t lane = l.values() * (2 * heads + decoding) + heads * (4 * steps + 12);
  const std::uint32_t queries = l.query_in_registers ? 0 : heads * l.values() / l.positions;
  const std::uint32_t loaded = l.positions * l.units * unit_bytes(spec.cache, l);
  return l.lanes * (lane + queries) * (3 * kLaneBytes - loaded);
}

}  // namespace

DecodeLayout decode_layout(const AttentionDecode& spec) noexcept {
  DecodeLayout best;
  std::uint32_t fewest = ~0u;
  const std::uint32_t widest = spec.cache == ElementType::f32 ? 4 : 8;
  for (std::uint32_t unit = widest; unit >= 4; unit /= 2) {
    for (std::uint32_t lanes = 32; lanes >= 2; lanes /= 2) {
      const std::uint32_t units = ceil_div(spec.head_size / unit, lanes);
      for (std::uint32_t positions = 8; positions != 0; positions /= 2) {
        for (const bool query_in_registers : {true, false}) {
          const DecodeLayout layout{unit, lanes, units, positions, query_in_registers};
          if (!is_possible(spec, layout)) continue;
          const std::uint32_t count = instructions(spec, layout);
          if (count >= fewest) continue;
          fewest = count;
          best = layout;
        }
      }
    }
  }
  return best;
}

}  // namespace attention

std::uint32_t attention_chunk(const AttentionDecode& spec, std::uint32_t sms) noexcept {
  constexpr std::uint64_t kMinBytes = 65536;
  constexpr std::uint64_t kMaxChunks = 64;
  constexpr std::uint64_t kBlocksPerSm = 4;
  if (!attention::fits(spec) || spec.head_size == 0) return spec.positions();
  const std::uint64_t positions = spec.positions();
  const std::uint64_t strips =
      std::max<std::uint64_t>(1, std::uint64_t{spec.rows} * spec.strips_of_row());
  const std::uint64_t min_positions = kMinBytes / (2 * bytes(spec.cache, spec.head_size)) + 1;
  const std::uint64_t useful = (positions + min_positions - 1) / min_positions;
  const std::uint64_t wanted = (kBlocksPerSm * sms + strips - 1) / strips;
  const std::uint64_t chunks = std::max<std::uint64_t>(1, std::min({wanted, useful, kMaxChunks}));
  const std::uint64_t tile = attention::decode_layout(spec).tile();
  return static_cast<std::uint32_t>(((positions + chunks - 1) / chunks + tile - 1) / tile * tile);
}

std::uint32_t AttentionDecode::chunk_positions() const noexcept {
  constexpr std::uint32_t kUsualSms = 132;
  const std::uint32_t wanted = chunk != 0 ? chunk : attention_chunk(*this, kUsualSms);
  return std::max(1u, std::min(wanted, positions()));
}

std::uint32_t AttentionDecode::chunks() const noexcept {
  const std::uint32_t each = chunk_positions();
  return (positions() + each - 1) / each;
}

}  // namespace ptxgen::inline v0
