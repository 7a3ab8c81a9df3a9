// src/tile/partition.cpp - tensors cut into tiles
#include <algorithm>
#include <limits>
#include <vector>

#include "ptxgen/support/error.hpp"
#include "ptxgen/tile/shape.hpp"
#include "ptxgen/tile/view.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "tile/checked.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint64_t kWide = std::numeric_limits<std::int32_t>::max();
// Partitions have no cap along a dim but that of a 32-bit coordinate.
constexpr tile::TileCaps kCaps{.dim = {kWide, kWide, kWide}};

bool is_float(ptx::Type element) {
  return ptx::kind(element) == ptx::TypeKind::Float || ptx::kind(element) == ptx::TypeKind::Packed;
}

}  // namespace

std::string_view to_string(Padding padding) noexcept {
  constexpr std::string_view kNames[] = {"none", "zero", "neg_zero", "nan", "pos_inf", "neg_inf"};
  return kNames[static_cast<std::size_t>(padding)];
}

void Partition::refuse(std::string_view code, std::string what, std::string_view rule,
                       std::string_view cure) const {
  throw_view(
      code,
      format_text("partition of view {} into tiles {}: {}", tensor_.text(), tile_.text(), what),
      rule, cure);
}

Partition::Partition(const TensorLayout& tensor, ptx::Type element, const Dims& tile,
                     Padding padding, const Dims& dim_map)
    : tensor_(tensor), tile_(tile), dim_map_(dim_map), padding_(padding) {
  if (tile.size() == 0) {
    refuse("partition", "the tile has rank 0", "a tile has 1 dim or more",
           "load the element itself");
  }
  if (tile.size() != tensor.rank()) {
    refuse("partition",
           format_text("the tile has rank {}, the view {}", tile.size(), tensor.rank()),
           "a tile has the rank of its view", "use 1 for the dims that a tile does not span");
  }
  for (std::size_t i = 0; i < tile.size(); ++i) {
    if (tile[i] <= static_cast<std::int64_t>(kWide)) continue;
    refuse("partition", format_text("tile dim {} is {}", i, tile[i]),
           "tile dims are at most 2^31 - 1", "choose a smaller power of two");
  }
  tile::require_valid({.name = "tile",
                       .level = tile::TileLevel::Grid,
                       .element = element,
                       .shape = {tile.begin(), tile.end()}},
                      kCaps);
  if (dim_map_.size() == 0) {
    dim_map_ = tile;
    for (std::size_t i = 0; i < tile.size(); ++i) dim_map_[i] = static_cast<std::int64_t>(i);
  }
  check_dim_map();
  if (padding > Padding::Zero && !is_float(element)) {
    refuse("partition",
           format_text("padding {} for elements .{}", to_string(padding), ptx::name(element)),
           "elements that are no floats are padded with zero", "use Padding::Zero");
  }
  tiles_ = tile;
  for (std::size_t i = 0; i < rank(); ++i) {
    const std::int64_t size = tensor.size(static_cast<std::size_t>(dim_map_[i]));
    tiles_[i] = size == kDynamicDim ? kDynamicDim : size / tile[i] + (size % tile[i] != 0 ? 1 : 0);
  }
}

void Partition::check_dim_map() {
  const auto count = static_cast<std::int64_t>(rank());
  if (dim_map_.size() != rank()) {
    refuse(
        "partition",
        format_text("the dim map {} has {}", dim_map_.text(), count_text(dim_map_.size(), "entry")),
        "a dim map names the tensor's dim of each tile dim",
        format_text("give {}", count_text(rank(), "entry")));
  }
  std::array<bool, kMaxRank> seen{};
  for (std::size_t i = 0; i < rank(); ++i) {
    const std::int64_t dim = dim_map_[i];
    if (dim < 0 || dim >= count) {
      refuse("partition", format_text("entry {} of the dim map {} is {}", i, dim_map_.text(), dim),
             format_text("entries are 0 to {}", count - 1), "name dims of the view");
    }
    bool& there = seen[static_cast<std::size_t>(dim)];
    if (there) {
      refuse("partition", format_text("the dim map {} names dim {} twice", dim_map_.text(), dim),
             "each tile dim walks a dim of its own", "name each dim once");
    }
    there = true;
  }
}

std::uint64_t Partition::count() const {
  (void)tensor_.count();  // throws where a size is dynamic, and where 64 bits are too few
  std::uint64_t all = 1;
  for (const std::int64_t n : tiles_) all *= static_cast<std::uint64_t>(n);
  return all;
}

TileInfo Partition::tile(std::span<const std::int64_t> index) const {
  if (index.size() != rank()) {
    refuse("partition", "an index of " + count_text(index.size(), "number"),
           "a tile is named by one index for each dim",
           format_text("give {}", count_text(rank(), "number")));
  }
  (void)tensor_.count();  // throws where a size is dynamic
  TileInfo info;
  info.index = Dims(index);
  info.first = tile_;
  info.sizes = tile_;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (index[i] < 0 || index[i] >= tiles_[i]) {
      refuse("out-of-bounds",
             format_text("index {} in dim {} of {}", index[i], i, count_text(tiles_[i], "tile")),
             "an index is at least 0 and below the number of tiles",
             "check the bounds before the access");
    }
    const auto dim = static_cast<std::size_t>(dim_map_[i]);
    const std::int64_t first = index[i] * tile_[i];
    info.first[dim] = first;
    info.sizes[i] = std::min(tile_[i], tensor_.size(dim) - first);
    info.is_edge = info.is_edge || info.sizes[i] < tile_[i];
  }
  Dims sizes = tile_;
  for (std::size_t i = 0; i < rank(); ++i)
    sizes[static_cast<std::size_t>(dim_map_[i])] = info.sizes[i];
  info.view = tensor_.slice(info.first, sizes).permute(dim_map_);
  return info;
}

Dims Partition::index_of(std::uint64_t number, const Traversal& traversal) const {
  const std::uint64_t all = count();
  if (number >= all) {
    refuse("out-of-bounds", format_text("place {} of {}", number, count_text(all, "tile")),
           "a place is below the number of tiles", "check the bounds before the access");
  }
  Dims index = tiles_;
  const auto take = [&](std::size_t dim, std::uint64_t n) {
    index[dim] = static_cast<std::int64_t>(number % n);
    number /= n;
  };
  const auto size = [&](std::size_t dim) { return static_cast<std::uint64_t>(tiles_[dim]); };
  if (traversal.kind == Traversal::Kind::ColumnMajor) {
    for (std::size_t i = 0; i < rank(); ++i) take(i, size(i));
    return index;
  }
  std::size_t left = rank();
  if (traversal.kind == Traversal::Kind::Grouped && rank() >= 2) {
    if (traversal.rows == 0) {
      refuse("partition", "bands of 0 rows", "a band has 1 row of tiles or more", "use 1 or more");
    }
    const std::uint64_t rows = size(rank() - 2);
    const std::uint64_t columns = size(rank() - 1);
    std::uint64_t in_plane = number % (rows * columns);
    number /= rows * columns;
    const std::uint64_t in_band = std::min<std::uint64_t>(traversal.rows, rows);
    const std::uint64_t band = in_plane / (in_band * columns);
    in_plane -= band * in_band * columns;
    const std::uint64_t height = std::min(in_band, rows - band * in_band);
    index[rank() - 2] = static_cast<std::int64_t>(band * in_band + in_plane % height);
    index[rank() - 1] = static_cast<std::int64_t>(in_plane / height);
    left -= 2;
  }
  for (std::size_t i = left; i-- > 0;) take(i, size(i));
  return index;
}

}  // namespace ptxgen::inline v0
