// src/kernels/parts/packed_rows.cpp - units of rows of floats or q8_0 blocks
#include "kernels/parts/packed_rows.hpp"

#include <bit>

namespace ptxgen::inline v0 {

namespace {

constexpr ElementInfo kBlock = info(ElementType::q8_0);
constexpr std::uint32_t kStepBytes = 2;
// The cache is not written while the kernel runs.
constexpr Load kReadOnly{.read_only = true};

}  // namespace

// Byte b + 128 in the mantissa of 2^23 is 2^23 + 128 + b as a signed byte.
std::vector<Value<f32>> signed_bytes(KernelBuilder& k, const Value<u32>& word) {
  const Value<u32> biased = word ^ 0x80808080u;
  std::vector<Value<f32>> values;
  for (std::uint32_t byte = 0; byte < 4; ++byte) {
    const Value<u32> bits = k.prmt(biased, 0x4b000000u, 0x7540u + byte);
    values.push_back(k.bitcast<f32>(bits) - 8388736.0f);
  }
  return values;
}

std::optional<Pred> unit_within(const Value<u32>& lane, std::uint32_t units, std::uint32_t lanes,
                                std::uint32_t i) {
  if ((i + 1) * lanes <= units) return std::nullopt;
  return lane < units - i * lanes;
}

PackedRows::PackedRows(KernelBuilder& k, const Shape& shape, const Value<u32>& lane)
    : k_(k), shape_(shape), lane_(lane) {
  if (shape.type != ElementType::q8_0) {
    first_.emplace(k.mul_wide(lane, shape.unit * bytes(shape.type)));
    return;
  }
  const std::uint32_t units_of_block = kBlock.block_values / shape.unit;
  const Value<u32> block = lane >> static_cast<unsigned>(std::countr_zero(units_of_block));
  first_.emplace(k.mul_wide(block, std::uint32_t{kBlock.block_bytes}));
  const Value<u32> inside = lane & (units_of_block - 1);
  run_.emplace(k.mul_wide(inside, shape.unit));
}

PackedUnit PackedRows::load_floats_of(const Ptr<b8>& row, std::uint32_t i,
                                      const std::optional<Pred>& exists) const {
  const Ptr<b8> at = row + i * shape_.lanes * shape_.unit * bytes(shape_.type);
  PackedUnit unit;
  const std::optional<Pred> inside = within(i, exists);
  unit.floats = inside ? load_floats_if(k_, at, shape_.type, shape_.unit, *inside, kReadOnly)
                       : load_floats(k_, at, shape_.type, shape_.unit, kReadOnly);
  return unit;
}

template <class T>
Value<T> PackedRows::load_word(const Ptr<b8>& at, const std::optional<Pred>& inside) const {
  const Ptr<T> from = at.cast<T>();
  return inside ? k_.ld_predicated(from, *inside, 0, kReadOnly) : k_.ld(from, kReadOnly);
}

// A unit begins at an even address. The words from the multiple of 4 at or before it, which the
// block's step precedes, cover all but its last two bytes.
std::vector<PackedUnit> PackedRows::load_blocks(const Ptr<b8>& row,
                                                const std::optional<Pred>& exists) const {
  KernelBuilder& k = k_;
  const Ptr<b8> block = row + *first_;
  const Ptr<b8> run = block + *run_;
  const Value<u64> odd = k.address_of(run + kStepBytes) & std::uint64_t{2};
  const Ptr<b8> even_words = run - odd;
  const Ptr<b8> odd_words = run + odd;
  const Value<u32> shift = k.cvt<u32>(odd);
  const Value<u32> even_selector = k.mad_lo(shift, 0x1111u, 0x3210u);
  const Value<u32> odd_selector = k.sub(0x3210u + 0x5432u, even_selector);
  const std::uint32_t units_of_block = kBlock.block_values / shape_.unit;
  const std::uint32_t stride = shape_.lanes / units_of_block * kBlock.block_bytes;
  std::vector<PackedUnit> units;
  for (std::uint32_t i = 0; i < shape_.units; ++i) {
    const std::uint32_t offset = i * stride + kStepBytes;
    const bool flipped = i * stride % 4 != 0;
    const Ptr<b8> words = flipped ? odd_words + (offset - 2) : even_words + offset;
    const std::optional<Pred> inside = within(i, exists);
    PackedUnit& unit = units.emplace_back();
    for (std::uint32_t w = 0; w < shape_.unit; w += 4) {
      unit.words.push_back(load_word<u32>(words + w, inside));
    }
    const Ptr<b8> tail = run + (offset + shape_.unit - 2);
    unit.words.push_back(k.cvt<u32>(load_word<u16>(tail, inside)));
    unit.selector.emplace(flipped ? odd_selector : even_selector);
    unit.step.emplace(load_word<u16>(block + i * stride, inside));
  }
  return units;
}

std::vector<PackedUnit> PackedRows::load(const Ptr<b8>& row,
                                         const std::optional<Pred>& exists) const {
  if (shape_.type == ElementType::q8_0) return load_blocks(row, exists);
  const Ptr<b8> first = row + *first_;
  std::vector<PackedUnit> units;
  for (std::uint32_t i = 0; i < shape_.units; ++i)
    units.push_back(load_floats_of(first, i, exists));
  return units;
}

std::vector<Value<f32>> PackedRows::values(const PackedUnit& unit) const {
  if (shape_.type != ElementType::q8_0) return expand(k_, unit.floats, shape_.unit);
  std::vector<Value<f32>> all;
  for (std::size_t w = 0; w + 1 < unit.words.size(); ++w) {
    const Value<u32> quants = k_.prmt(unit.words[w], unit.words[w + 1], *unit.selector);
    for (const Value<f32>& value : signed_bytes(k_, quants)) all.push_back(value);
  }
  return all;
}

std::optional<Value<f32>> PackedRows::step(const PackedUnit& unit) const {
  if (!unit.step) return std::nullopt;
  return k_.cvt<f32>(k_.bitcast<f16>(*unit.step));
}

}  // namespace ptxgen::inline v0
