// src/kernels/gemm/staged_operand.cpp - tiles of A or B from global memory to fragments
#include "kernels/gemm/staged_operand.hpp"

#include <algorithm>
#include <bit>

#include "kernels/gemm/block_rows.hpp"

namespace ptxgen::inline v0::gemm {

namespace {

constexpr std::uint32_t kChunkBytes = 16;
constexpr std::uint32_t kHalfBytes = 2;
constexpr std::uint32_t kByte = 1;
constexpr std::uint32_t kSwizzleRows = 8;  // after which the permutation repeats
constexpr std::uint32_t kLoadsAtATime = 8;
constexpr std::uint64_t kMaxOffset = 0x7fffffff;  // of an address, in an instruction

unsigned log2_of(std::uint32_t power) { return static_cast<unsigned>(std::bit_width(power) - 1); }

// Stores words of one load to shared memory.
void store_words(KernelBuilder& k, const Ptr<b8, Shared>& to,
                 const std::vector<Value<u32>>& words) {
  const Ptr<u32, Shared> at = to.cast<u32>();
  if (words.size() == 4) {
    k.st(at, std::array{words[0], words[1], words[2], words[3]});
  } else if (words.size() == 2) {
    k.st(at, std::array{words[0], words[1]});
  } else {
    k.st(at, words[0]);
  }
}

}  // namespace

// ldmatrix loads a chunk of eight rows; rows of less than 128 bytes fill the banks together.
// Without it a warp loads two adjacent chunks of four rows.
Value<u32> TileLayout::swizzle(const Value<u32>& row) const {
  const std::uint32_t chunks = row_bytes() / kChunkBytes;
  if (!by_ldmatrix()) return chunks >= kSwizzleRows ? (row & 3u) << 1u : row & 2u;
  if (chunks >= kSwizzleRows) return row & (kSwizzleRows - 1);
  return (row >> log2_of(kSwizzleRows / chunks)) & (chunks - 1);
}

StagedCopy::StagedCopy(KernelBuilder& k, const TileLayout& layout, const TileCopy& copy,
                       const Ptr<b8>& matrix, const Value<u32>& first, const Value<u32>& outputs,
                       const Ptr<b8, Shared>& to)
    : k_(k),
      layout_(layout),
      copy_(copy),
      row_(k.tid_x() >> log2_of(layout.row_bytes() / copy.load_bytes)),
      column_(k.tid_x() & (layout.row_bytes() / copy.load_bytes - 1)) {
  const std::uint32_t per_row = layout.row_bytes() / copy.load_bytes;
  pass_rows_ = copy.threads / per_row;
  passes_.resize(layout.rows() / pass_rows_);
  for (std::uint32_t i = 0; i < passes_.size(); ++i) passes_[i].row = i * pass_rows_;
  tail_next_ = copy.terms % layout.terms != 0;
  place(k.tid_x(), to);
  if (copy.from) {
    start_conversion(matrix, first, outputs);
  } else {
    find_guards(first, outputs);
    start(matrix, first);
  }
}

void StagedCopy::place(const Value<u32>&, const Ptr<b8, Shared>& to) {
  const std::uint32_t load = copy_.load_bytes;
  const std::uint32_t classes = std::max(1u, kSwizzleRows / pass_rows_);
  for (std::uint32_t i = 0; i < std::min<std::size_t>(classes, passes_.size()); ++i) {
    const Value<u32> row = i == 0 ? row_ : row_ + i * pass_rows_;
    const Value<u32> chunk = load == kChunkBytes ? column_ : column_ >> log2_of(kChunkBytes / load);
    const Value<u32> permuted = chunk ^ layout_.swizzle(row);
    const Value<u32> begin = k_.mul_lo(row, layout_.row_bytes());
    Value<u32> at = k_.mad_lo(permuted, kChunkBytes, begin);
    if (load != kChunkBytes) {
      const Value<u32> inside = column_ & (kChunkBytes / load - 1);
      at.rebind(k_.mad_lo(inside, load, at));
    }
    to_.push_back(to.offset_bytes(at));
  }
}

// Rows outside the matrix repeat the last one, whose results are not stored.
void StagedCopy::start_conversion(const Ptr<b8>& matrix, const Value<u32>& first,
                                  const Value<u32>& outputs) {
  const Value<u32> row = first + row_;
  const Value<u32> last = outputs - 1u;
  for (const Pass& pass : passes_) {
    const Value<u32> inside = k_.min(pass.row == 0 ? row : row + pass.row, last);
    rows_.push_back(moved(k_, matrix, inside, bytes(*copy_.from, copy_.pitch)));
  }
  const std::uint32_t runs = copy_.shared_terms / kRunValues;
  run_.emplace(k_.var(runs == 0 ? column_ : k_.mad_lo(*copy_.part, runs, column_)));
}

void StagedCopy::convert(std::uint64_t stage) {
  const Value<u32> run = run_->read();
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    const std::vector<Value<f32>> values = load_run_of_row(k_, *copy_.from, rows_[i], run);
    const Ptr<b8, Shared> to = destination(i).offset_bytes(static_cast<std::int64_t>(stage));
    store_words(k_, to, pack_floats(k_, copy_.to, values));
  }
  *run_ += layout_.terms / kRunValues;
}

// Bytes of a load at element `place` of those that end at `end`.
Value<u32> StagedCopy::bytes_before(const Value<u32>& place, const Value<u32>& end) {
  const std::uint32_t elements = copy_.load_bytes / layout_.element;
  const Pred some = place < end;
  const Value<u32> left = k_.min(end - place, elements);
  return k_.selp(left << log2_of(layout_.element), 0u, some);
}

void StagedCopy::find_guards(const Value<u32>& first, const Value<u32>& outputs) {
  const bool exact = copy_.outputs != 0 && copy_.outputs % layout_.outputs == 0;
  if (exact && copy_.async) return;
  if (!layout_.along_k) {
    const Value<u32> column = k_.mad_lo(column_, copy_.load_bytes / layout_.element, first);
    std::optional<Value<u32>> bytes;
    std::optional<Pred> inside;
    if (copy_.async) {
      bytes.emplace(bytes_before(column, outputs));
    } else {
      inside.emplace(column < outputs);
    }
    for (Pass& pass : passes_) {
      if (bytes) pass.bytes.emplace(*bytes);
      if (inside) pass.inside.emplace(*inside);
    }
    return;
  }
  const Value<u32> row = first + row_;
  for (Pass& pass : passes_) {
    const Pred inside = (pass.row == 0 ? row : row + pass.row) < outputs;
    if (copy_.async) {
      pass.bytes.emplace(k_.selp(k_.constant<u32>(copy_.load_bytes), 0u, inside));
    } else {
      pass.inside.emplace(inside);
    }
  }
}

// Where the thread's first copy of the first step is.
void StagedCopy::start(const Ptr<b8>& matrix, const Value<u32>& first) {
  const std::uint64_t pitch = copy_.pitch * layout_.element;
  const std::uint32_t full = copy_.terms / layout_.terms * layout_.terms;
  const std::uint64_t term_bytes = layout_.along_k ? std::uint64_t{layout_.element} : pitch;
  const std::uint64_t skipped = tail_next_ ? full * term_bytes : 0;
  const Ptr<b8> block =
      layout_.along_k ? moved(k_, matrix, first, pitch) : moved(k_, matrix, first, layout_.element);
  const Ptr<b8> part = copy_.shared_terms == 0
                           ? block
                           : moved(k_, block, *copy_.part, copy_.shared_terms * term_bytes);
  const Ptr<b8> row = moved(k_, part, row_, pitch);
  const Ptr<b8> begin =
      moved(k_, row, column_, copy_.load_bytes).offset_bytes(static_cast<std::int64_t>(skipped));
  const bool near = passes_.back().row * pitch <= kMaxOffset;
  for (std::size_t i = 0; i < (near ? 1 : passes_.size()); ++i) {
    from_.push_back(k_.var(begin.offset_bytes(static_cast<std::int64_t>(passes_[i].row * pitch))));
  }
}

// A pass of the incomplete step.
StagedCopy::Pass StagedCopy::with_tail(const Pass& pass) {
  const std::uint32_t tail = copy_.terms % layout_.terms;
  if (layout_.along_k) {
    const Value<u32> term = k_.mul_lo(column_, copy_.load_bytes / layout_.element);
    if (!copy_.async) return {pass.row, {}, *pass.inside & (term < tail)};
    const Value<u32> left = bytes_before(term, k_.constant<u32>(tail));
    return {pass.row, pass.bytes ? k_.min(*pass.bytes, left) : left, {}};
  }
  const Pred in_tail = (pass.row == 0 ? row_ : row_ + pass.row) < tail;
  if (!copy_.async) return {pass.row, {}, *pass.inside & in_tail};
  const Value<u32> all = pass.bytes ? *pass.bytes : k_.constant<u32>(copy_.load_bytes);
  return {pass.row, k_.selp(all, 0u, in_tail), {}};
}

Ptr<b8, Shared> StagedCopy::destination(std::size_t pass) const {
  const std::size_t same = pass % to_.size();
  return to_[same].offset_bytes(static_cast<std::int64_t>(
      std::uint64_t{passes_[pass].row - passes_[same].row} * layout_.row_bytes()));
}

Ptr<b8> StagedCopy::source(std::size_t pass) const {
  if (from_.size() > 1) return from_[pass].view();
  return from_[0].view().offset_bytes(
      static_cast<std::int64_t>(passes_[pass].row * copy_.pitch * layout_.element));
}

void StagedCopy::copy(std::size_t pass, std::uint64_t stage, const Pass& how) {
  const ptx::Modifier cache = copy_.load_bytes == 16 ? ptx::Modifier::cg : ptx::Modifier::ca;
  const ptx::Modifier modifiers[] = {ptx::Modifier::async, cache, ptx::Modifier::shared,
                                     ptx::Modifier::global, ptx::Modifier::L2_128B};
  const Ptr<b8, Shared> to = destination(pass).offset_bytes(static_cast<std::int64_t>(stage));
  if (how.bytes) {
    const Operand operands[] = {to, source(pass), copy_.load_bytes, *how.bytes};
    k_.emit(ptx::Op::cp_async_src_size, modifiers, operands);
  } else {
    const Operand operands[] = {to, source(pass), copy_.load_bytes};
    k_.emit(ptx::Op::cp_async, modifiers, operands);
  }
}

// What a pass copies, zeros outside the matrix.
std::vector<Value<u32>> StagedCopy::load_if(std::size_t pass, const Pred& inside) {
  const Ptr<b8> from = source(pass);
  if (copy_.load_bytes > kHalfBytes) {
    return load_words_if(k_, from, copy_.load_bytes / 4, inside);
  }
  if (copy_.load_bytes == kHalfBytes) {
    return load_floats_if(k_, from, ElementType::f16, 1, inside).pairs;
  }
  auto byte = k_.var<u32>(0u);
  k_.if_(inside, [&] { byte = k_.cvt<u32>(k_.ld(from.cast<u8>())); });
  return {byte.read()};
}

void StagedCopy::copy_through_registers(std::uint64_t stage, const std::vector<Pass>& passes) {
  for (std::size_t begin = 0; begin < passes.size(); begin += kLoadsAtATime) {
    const std::size_t end = std::min<std::size_t>(begin + kLoadsAtATime, passes.size());
    std::vector<std::vector<Value<u32>>> loaded;
    for (std::size_t i = begin; i < end; ++i) loaded.push_back(load_if(i, *passes[i].inside));
    for (std::size_t i = begin; i < end; ++i) {
      const Ptr<b8, Shared> to = destination(i).offset_bytes(static_cast<std::int64_t>(stage));
      if (copy_.load_bytes == kByte) {
        k_.st(to.cast<u8>(), k_.cvt<u8>(loaded[i - begin][0]));
      } else if (copy_.load_bytes == kHalfBytes) {
        k_.st(to.cast<u16>(), k_.cvt<u16>(loaded[i - begin][0]));
      } else {
        store_words(k_, to, loaded[i - begin]);
      }
    }
  }
}

// From the incomplete step back to the first term, else to the next step.
void StagedCopy::advance() {
  const std::uint64_t term_bytes =
      layout_.element * (layout_.along_k ? std::uint64_t{1} : copy_.pitch);
  const std::uint64_t full = copy_.terms / layout_.terms * layout_.terms;
  const auto bytes = tail_next_ ? -static_cast<std::int64_t>(full * term_bytes)
                                : static_cast<std::int64_t>(layout_.terms * term_bytes);
  tail_next_ = false;
  if (bytes == 0) return;
  for (Var<Ptr<b8>>& from : from_) from += bytes;
}

void StagedCopy::request(std::uint64_t stage) {
  if (copy_.from) return convert(stage);
  std::vector<Pass> passes;
  for (const Pass& pass : passes_) passes.push_back(tail_next_ ? with_tail(pass) : pass);
  if (copy_.async) {
    for (std::size_t i = 0; i < passes.size(); ++i) copy(i, stage, passes[i]);
  } else {
    copy_through_registers(stage, passes);
  }
  advance();
}

FragmentRows::FragmentRows(KernelBuilder& k, const TileLayout& layout, bool is_a,
                           const Value<u32>& first, std::uint32_t outputs,
                           const Ptr<b8, Shared>& tile)
    : k_(k), layout_(layout), is_a_(is_a) {
  if (layout.by_ldmatrix()) {
    place_matrices(first, outputs, tile);
  } else {
    place_elements(first, outputs, tile);
  }
}

// Eight lanes address the rows of one matrix of 8 x 8. Registers of A follow each other along the
// outputs first, those of two fragments of B along the terms.
void FragmentRows::place_matrices(const Value<u32>& first, std::uint32_t outputs,
                                  const Ptr<b8, Shared>& tile) {
  const Value<u32> lane = k_.tid_x() & 31u;
  const bool rows_first = is_a_ == layout_.along_k;  // whether bit 3 of the lane counts stored rows
  const Value<u32> low = lane & 7u;
  const Value<u32> eight = rows_first ? lane & 8u : (lane & 16u) >> 1u;
  const Value<u32> row = low | eight;
  const Value<u32> half = rows_first ? lane >> 4u : (lane >> 3u) & 1u;
  const Value<u32> swizzle = layout_.swizzle(row);
  // A multiple of 16 does not change the swizzle.
  const Value<u32> tile_row = layout_.along_k ? row + first : row;
  const Value<u32> chunk = layout_.along_k ? half : half + (first >> 3u);
  const Value<u32> begin = k_.mul_lo(tile_row, layout_.row_bytes());
  const std::uint32_t parts =
      layout_.along_k ? layout_.terms / layout_.fragment_terms() : outputs / 16;
  for (std::uint32_t i = 0; i < parts; ++i) {
    const Value<u32> at = (i == 0 ? chunk : chunk + 2 * i) ^ swizzle;
    rows_.push_back(tile.offset_bytes(k_.mad_lo(at, kChunkBytes, begin)));
  }
}

// A lane loads output lane / 4 and term lane % 4 of each 8 x 4; rows are terms.
void FragmentRows::place_elements(const Value<u32>& first, std::uint32_t outputs,
                                  const Ptr<b8, Shared>& tile) {
  const Value<u32> lane = k_.tid_x() & 31u;
  const Value<u32> term = lane & 3u;
  const Value<u32> output = lane >> 2u;
  const Value<u32> swizzle = layout_.swizzle(term);
  const Value<u32> row = k_.mul_lo(term, layout_.row_bytes());
  const Value<u32> begin = k_.mad_lo(output & 3u, layout_.element, row);
  const Value<u32> first_chunk = first >> 2u;
  const Value<u32> chunk = (output >> 2u) + first_chunk;
  for (std::uint32_t i = 0; i < outputs / 8; ++i) {
    const Value<u32> at = (i == 0 ? chunk : chunk + 2 * i) ^ swizzle;
    rows_.push_back(tile.offset_bytes(k_.mad_lo(at, kChunkBytes, begin)));
  }
}

std::array<Value<b32>, 4> FragmentRows::load_elements(std::uint32_t output, std::uint32_t term,
                                                      std::uint64_t stage) const {
  const auto element = [&](std::uint32_t eight, std::uint32_t half) {
    const std::uint64_t row = std::uint64_t{8} * term + 4 * half;
    const std::uint64_t offset = stage + row * layout_.row_bytes();
    return k_.ld(
        rows_[2 * output + eight].offset_bytes(static_cast<std::int64_t>(offset)).cast<b32>());
  };
  const Value<b32> first = element(0, 0);
  const Value<b32> second = is_a_ ? element(1, 0) : element(0, 1);
  const Value<b32> third = is_a_ ? element(0, 1) : element(1, 0);
  return {first, second, third, element(1, 1)};
}

std::array<Value<b32>, 4> FragmentRows::load(std::uint32_t output, std::uint32_t term,
                                             std::uint64_t stage) const {
  if (!layout_.by_ldmatrix()) return load_elements(output, term, stage);
  const std::uint32_t along = layout_.along_k ? term : output;
  const std::uint32_t across = layout_.along_k ? output : term;
  const std::uint64_t offset = stage + std::uint64_t{16} * across * layout_.row_bytes();
  return ldmatrix<4>(k_, rows_[along].offset_bytes(static_cast<std::int64_t>(offset)).cast<b16>(),
                     !layout_.along_k);
}

}  // namespace ptxgen::inline v0::gemm
