// src/kernels/gemm/staged_operand.hpp - tiles of A or B from global memory to fragments
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/gemm/emit.hpp"
#include "kernels/parts/products.hpp"
#include "ptxgen/kernels/gemm/mma.hpp"

namespace ptxgen::inline v0::gemm {

/// A tile of one operand in shared memory: `rows` rows of `width` elements as they are
/// stored in global memory. The 16 bytes at column 8 c of row r are at chunk `c ^ swizzle(r)`:
/// eight consecutive rows have their chunks of equal c in different banks.
struct TileLayout {
  bool along_k = true;        ///< the terms of a sum are adjacent: A, or a transposed B
  std::uint32_t outputs = 0;  ///< rows of A or columns of B in the tile
  std::uint32_t terms = 0;
  std::uint32_t element = 2;  ///< bytes: 2, 4 for tf32, 1 for e4m3 along k

  [[nodiscard]] std::uint32_t rows() const noexcept { return along_k ? outputs : terms; }
  [[nodiscard]] std::uint32_t width() const noexcept { return along_k ? terms : outputs; }
  [[nodiscard]] std::uint32_t row_bytes() const noexcept { return element * width(); }
  [[nodiscard]] std::uint32_t bytes() const noexcept { return rows() * row_bytes(); }
  /// Whether a fragment is loaded by `ldmatrix`; it cannot transpose elements of 4 bytes.
  [[nodiscard]] bool by_ldmatrix() const noexcept { return along_k || element == 2; }
  /// Terms of a fragment: 32 bytes of a row along k.
  [[nodiscard]] std::uint32_t fragment_terms() const noexcept { return 32 / element; }
  /// Of row `row`; depends on `row % 8` alone.
  [[nodiscard]] Value<u32> swizzle(const Value<u32>& row) const;
};

/// How a tile is copied.
struct TileCopy {
  std::uint32_t threads = 0;
  std::uint32_t load_bytes = 16;  ///< 16, 8, 4, or 2 or 1 without `async`
  bool async = true;              ///< by cp.async
  std::uint64_t pitch = 0;        ///< elements from one stored row to the next
  std::uint32_t terms = 0;        ///< of a full sum
  /// Where several blocks share a sum, the block's terms begin at `part` times as many. Then all
  /// steps are complete. 0: one block has all.
  std::uint32_t shared_terms = 0;
  std::optional<Value<u32>> part{};
  std::uint32_t outputs = 0;  ///< of the matrix if known, else 0
  /// Types of the stored matrix and of the tile if they differ, f16 or bf16: rows along k, `terms`
  /// a multiple of the layout's. Each load is eight values.
  std::optional<ElementType> from;
  ElementType to = ElementType::f16;
};

/// The copies of one operand by a thread. The first step has the last `terms % layout.terms` terms,
/// if that is not 0; the others follow from the first term on.
class StagedCopy {
 public:
  /// `first` is the block's first output, `outputs` their number in the matrix, `to` the tile of
  /// stage 0.
  StagedCopy(KernelBuilder& k, const TileLayout& layout, const TileCopy& copy,
             const Ptr<b8>& matrix, const Value<u32>& first, const Value<u32>& outputs,
             const Ptr<b8, Shared>& to);
  /// Copies the next step to the stage that begins `stage` bytes from the first.
  void request(std::uint64_t stage);

 private:
  /// Of one pass over the tile by all threads.
  struct Pass {
    std::uint32_t row = 0;  ///< rows from the thread's first to that of the pass
    /// Bytes that are in the matrix; empty: all.
    std::optional<Value<u32>> bytes;
    std::optional<Pred> inside;  ///< without `async`: whether they are
  };
  void place(const Value<u32>& thread, const Ptr<b8, Shared>& to);
  void find_guards(const Value<u32>& first, const Value<u32>& outputs);
  void start(const Ptr<b8>& matrix, const Value<u32>& first);
  [[nodiscard]] Pass with_tail(const Pass& pass);
  [[nodiscard]] Value<u32> bytes_before(const Value<u32>& place, const Value<u32>& end);
  [[nodiscard]] Ptr<b8, Shared> destination(std::size_t pass) const;
  [[nodiscard]] Ptr<b8> source(std::size_t pass) const;
  void copy(std::size_t pass, std::uint64_t stage, const Pass& how);
  [[nodiscard]] std::vector<Value<u32>> load_if(std::size_t pass, const Pred& inside);
  void copy_through_registers(std::uint64_t stage, const std::vector<Pass>& passes);
  void start_conversion(const Ptr<b8>& matrix, const Value<u32>& first, const Value<u32>& outputs);
  void convert(std::uint64_t stage);
  void advance();

  KernelBuilder& k_;
  TileLayout layout_;
  TileCopy copy_;
  std::uint32_t pass_rows_ = 0;  ///< rows that all threads copy at a time
  std::vector<Pass> passes_;
  std::vector<Ptr<b8, Shared>> to_;  ///< for each pass up to that which repeats the first's swizzle
  std::vector<Var<Ptr<b8>>> from_;   ///< one, or where offsets are too large, one for each pass
  Value<u32> row_, column_;          ///< the thread's, in loads of `load_bytes`
  std::vector<Ptr<b8>> rows_;        ///< of each pass, of another type than the tile
  std::optional<Var<u32>> run_;      ///< the thread's next eight terms in these rows
  bool tail_next_ = false;
};

/// Blocks of an SM for which `gemm_mma` leaves registers. Without cp.async the values of a step are
/// in registers beside its products; if they are decoded too, half as many blocks fit.
[[nodiscard]] inline std::uint32_t resident_blocks(const GemmMma& kernel, std::uint16_t sm) {
  const std::uint32_t blocks = kernel.shape().blocks_per_sm;
  return sm < kAsyncSm && kernel.converts_b() ? std::max(1u, blocks / 2) : blocks;
}

/// The addresses of a lane for fragments: 16 outputs x 32 bytes of terms of a warp's part of the
/// tile.
class FragmentRows {
 public:
  /// `is_a`: rows of an A come first in the order of its registers. `first` is the warp's first
  /// output in the tile, a multiple of 16.
  FragmentRows(KernelBuilder& k, const TileLayout& layout, bool is_a, const Value<u32>& first,
               std::uint32_t outputs, const Ptr<b8, Shared>& tile);
  /// The registers of outputs `16 * output` and fragment `term` along k, in the stage at `stage`.
  [[nodiscard]] std::array<Value<b32>, 4> load(std::uint32_t output, std::uint32_t term,
                                               std::uint64_t stage) const;

 private:
  void place_matrices(const Value<u32>& first, std::uint32_t outputs, const Ptr<b8, Shared>& tile);
  void place_elements(const Value<u32>& first, std::uint32_t outputs, const Ptr<b8, Shared>& tile);
  [[nodiscard]] std::array<Value<b32>, 4> load_elements(std::uint32_t output, std::uint32_t term,
                                                        std::uint64_t stage) const;

  KernelBuilder& k_;
  TileLayout layout_;
  bool is_a_;
  /// For each 32 bytes along a stored row; without `ldmatrix` for each 8 outputs.
  std::vector<Ptr<b8, Shared>> rows_;
};

}  // namespace ptxgen::inline v0::gemm
