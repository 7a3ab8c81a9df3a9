// ptxgen/tile/view.hpp - shapes, strides and tiles of tensors
#pragma once

#include "ptxgen/support/language.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/ptx/types.hpp"
#include "ptxgen/tile/dynamic.hpp"

namespace ptxgen::inline v0 {

using tile::kDynamicDim;

/// The largest rank of a view.
inline constexpr std::size_t kMaxRank = 5;

/// One number for each dim of a view: sizes, strides, coordinates. Up to kMaxRank of them, more
/// throw `Error` (Stage::Build, "view").
class Dims {
 public:
  constexpr Dims() = default;
  Dims(std::initializer_list<std::int64_t> values)
      : Dims(std::span<const std::int64_t>(values.begin(), values.size())) {}
  explicit Dims(std::span<const std::int64_t> values);
  /// `count` times `value`.
  [[nodiscard]] static Dims filled(std::size_t count, std::int64_t value);

  [[nodiscard]] constexpr std::size_t size() const noexcept { return count_; }
  [[nodiscard]] constexpr std::int64_t operator[](std::size_t i) const noexcept {
    return values_[i];
  }
  [[nodiscard]] constexpr std::int64_t& operator[](std::size_t i) noexcept { return values_[i]; }
  [[nodiscard]] constexpr const std::int64_t* begin() const noexcept { return values_.data(); }
  [[nodiscard]] constexpr const std::int64_t* end() const noexcept {
    return values_.data() + count_;
  }
  /// "[4, dynamic]"
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Dims&, const Dims&) = default;

 private:
  std::array<std::int64_t, kMaxRank> values_{};
  std::size_t count_ = 0;
};

/// How the elements of a view are stored.
enum class StorageOrder : std::uint8_t { RowMajor, ColumnMajor, Strided };

/// Whether two indices of a view may name one element.
enum class Overlap : std::uint8_t {
  None,     ///< no two do
  Some,     ///< two do
  Unknown,  ///< a size or stride is dynamic, or the question is too large to decide
};

/// The rules of a tensor's view: element (i0, i1, ...) is at offset + i0 * stride0 + i1 * stride1 +
/// ..., counted in elements. Plain data, no memory; the host's views, the views of kernels and
/// copies all use it. A size, a stride or the offset may be dynamic (`kDynamicDim`).
///
/// Everything is computed in 64 bits, and what does not fit is an error. Mistakes throw `Error`
/// (Stage::Build): "view" for a shape, "view-overflow", "out-of-bounds" for an index.
class TensorLayout {
 public:
  /// One element: rank 0.
  TensorLayout() = default;
  /// Sizes and strides are positive or dynamic; views that overlap are legal.
  [[nodiscard]] static TensorLayout strided(const Dims& sizes, const Dims& strides,
                                            std::int64_t offset = 0);
  /// Without gaps, the last dim varies fastest.
  [[nodiscard]] static TensorLayout row_major(const Dims& sizes, std::int64_t offset = 0);
  /// Without gaps, the first dim varies fastest.
  [[nodiscard]] static TensorLayout column_major(const Dims& sizes, std::int64_t offset = 0);

  [[nodiscard]] std::size_t rank() const noexcept { return sizes_.size(); }
  [[nodiscard]] const Dims& sizes() const noexcept { return sizes_; }
  [[nodiscard]] const Dims& strides() const noexcept { return strides_; }
  [[nodiscard]] std::int64_t size(std::size_t dim) const noexcept { return sizes_[dim]; }
  [[nodiscard]] std::int64_t stride(std::size_t dim) const noexcept { return strides_[dim]; }
  [[nodiscard]] std::int64_t offset() const noexcept { return offset_; }
  /// Whether elements may only be read: a broadcast repeats them.
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }
  /// Whether no size, stride or offset is dynamic.
  [[nodiscard]] bool is_static() const noexcept;

  /// Elements; throws "view" where a size is dynamic.
  [[nodiscard]] std::uint64_t count() const;
  /// Elements from the offset to the last element, 0 if there is none; throws as `count`.
  [[nodiscard]] std::uint64_t extent() const;
  /// offset + extent() in bytes of elements of `element_bytes`: what the memory must have. Throws
  /// "view-overflow" beyond 2^63 - 1.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t element_bytes) const;
  /// Whether the elements follow each other in row-major order; dims of size 1 do not matter, and
  /// a view without elements is contiguous. False where that is not known.
  [[nodiscard]] bool is_contiguous() const noexcept;
  [[nodiscard]] StorageOrder order() const noexcept;
  [[nodiscard]] Overlap overlap() const;
  /// Throws "view" if the view is read-only or known to overlap: no store may go through it.
  void require_writable(std::string_view what) const;

  /// The position of an element, checked.
  [[nodiscard]] std::int64_t linear_index(std::span<const std::int64_t> index) const;
  [[nodiscard]] std::int64_t linear_index(std::initializer_list<std::int64_t> index) const {
    return linear_index(std::span<const std::int64_t>(index.begin(), index.size()));
  }

  /// The part from `first` on, `sizes` elements; strides stay.
  [[nodiscard]] TensorLayout slice(const Dims& first, const Dims& sizes) const;
  [[nodiscard]] TensorLayout slice_dim(std::size_t dim, std::int64_t first,
                                       std::int64_t size) const;
  /// Dim i of the result is dim `order[i]`, a permutation.
  [[nodiscard]] TensorLayout permute(const Dims& order) const;
  /// The last two dims swapped; rank 2 or more.
  [[nodiscard]] TensorLayout transpose() const;
  /// The same elements in row-major order with other sizes; contiguous views only.
  [[nodiscard]] TensorLayout reshape(const Dims& sizes) const;
  /// Dims of size 1, and new dims in front, repeated: a read-only view.
  [[nodiscard]] TensorLayout broadcast(const Dims& sizes) const;
  /// With numbers for dynamic sizes and strides; those that are static must agree. A size may be 0
  /// here: there is nothing to do at this launch.
  [[nodiscard]] TensorLayout bind(const Dims& sizes, const Dims& strides,
                                  std::int64_t offset = 0) const;

  /// Offset 0: for a base pointer that was moved by the offset.
  void rebase() noexcept { offset_ = 0; }

  /// "[4, 8]:[8, 1]+0", with "?" for what is dynamic and " read-only" at the end.
  [[nodiscard]] std::string text() const;
  /// The inverse; throws "view" for another text.
  [[nodiscard]] static TensorLayout parse(std::string_view text);

  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;

 private:
  void check_reach() const;
  [[noreturn]] void refuse(std::string_view code, std::string what, std::string_view rule,
                           std::string_view cure) const;
  [[nodiscard]] bool decide_overlap(std::span<const std::size_t> dims) const;

  Dims sizes_;
  Dims strides_;
  std::int64_t offset_ = 0;
  bool read_only_ = false;
};

/// Storage in tiles: the elements of a tile follow each other in row-major order, tiles follow each
/// other in row-major order, and edge tiles take as much memory as others. Tile dims as for
/// Partition.
class TiledLayout {
 public:
  TiledLayout(const Dims& sizes, const Dims& tile, ptx::Type element);

  [[nodiscard]] std::int64_t linear_index(std::span<const std::int64_t> index) const;
  /// Elements of memory, the unused ones of edge tiles included.
  [[nodiscard]] std::uint64_t extent() const noexcept { return extent_; }
  /// The tile of an index of the tile grid, as a view of all its elements.
  [[nodiscard]] TensorLayout tile_view(std::span<const std::int64_t> index) const;

 private:
  TensorLayout shape_;  ///< of the tensor, row-major
  TensorLayout grid_;   ///< of the tiles
  TensorLayout tile_;   ///< of a tile's elements
  std::uint64_t extent_ = 0;
};

/// What a load gives for elements of a tile that the tensor does not have.
enum class Padding : std::uint8_t {
  None,  ///< nothing is said: they may not be used
  Zero,
  NegativeZero,
  NaN,
  PositiveInfinity,
  NegativeInfinity,
};
/// "none", "zero", "neg_zero", "nan", "pos_inf", "neg_inf"
[[nodiscard]] std::string_view to_string(Padding padding) noexcept;

/// The order in which tiles are visited.
struct Traversal {
  enum class Kind : std::uint8_t {
    RowMajor,     ///< the last dim first
    ColumnMajor,  ///< the first dim first
    Grouped,      ///< in the last two dims: bands of `rows` tiles, each column of a band in turn
  };
  Kind kind = Kind::RowMajor;
  std::uint32_t rows = 8;
};

/// A tile of a partition.
struct TileInfo {
  Dims index;            ///< in the index space
  Dims first;            ///< coordinates in the tensor of its first element, by tensor dim
  Dims sizes;            ///< elements that the tensor has, by tile dim
  bool is_edge = false;  ///< the tensor ends before the tile does
  TensorLayout view;     ///< of those elements, dims in the tile's order
};

/// A tensor's view cut into tiles: tile dim i walks the tensor's dim `dim_map[i]`. Every element of
/// the tensor is in exactly one tile.
class Partition {
 public:
  /// The rank of the tile is that of the view, 1 or more; its dims obey the rules of tile shapes
  /// (`tile::validate`) and are at most 2^31 - 1. Padding other than zero is for floats. An empty
  /// `dim_map` is the identity. Throws `Error` (Stage::Build, "partition", "tile-limits").
  Partition(const TensorLayout& tensor, ptx::Type element, const Dims& tile,
            Padding padding = Padding::None, const Dims& dim_map = {});

  [[nodiscard]] std::size_t rank() const noexcept { return tile_.size(); }
  [[nodiscard]] const TensorLayout& tensor() const noexcept { return tensor_; }
  [[nodiscard]] const Dims& tile_shape() const noexcept { return tile_; }
  [[nodiscard]] Padding padding() const noexcept { return padding_; }
  [[nodiscard]] const Dims& dim_map() const noexcept { return dim_map_; }
  /// Tiles along each dim: ceil(size / tile), dynamic where the size is.
  [[nodiscard]] const Dims& tiles() const noexcept { return tiles_; }
  /// Tiles; 0 where a size is 0. Throws "view" where a size is dynamic.
  [[nodiscard]] std::uint64_t count() const;
  /// The tile at an index. Throws "out-of-bounds", and "partition" for another number of indices.
  [[nodiscard]] TileInfo tile(std::span<const std::int64_t> index) const;
  [[nodiscard]] TileInfo tile(std::initializer_list<std::int64_t> index) const {
    return tile(std::span<const std::int64_t>(index.begin(), index.size()));
  }
  /// The index that is visited at place `number` of [0, count()).
  [[nodiscard]] Dims index_of(std::uint64_t number, const Traversal& traversal = {}) const;

 private:
  [[noreturn]] void refuse(std::string_view code, std::string what, std::string_view rule,
                           std::string_view cure) const;
  void check_dim_map();

  TensorLayout tensor_;
  Dims tile_;
  Dims dim_map_;
  Dims tiles_;
  Padding padding_;
};

}  // namespace ptxgen::inline v0
