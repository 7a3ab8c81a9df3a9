// src/tile/view.cpp - rules of shapes and strides
#include "ptxgen/tile/view.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "tile/checked.hpp"

namespace ptxgen::inline v0 {

namespace {

// Views of more elements are not searched for two equal positions.
constexpr std::uint64_t kSearched = 1u << 16;

bool is_permutation(const Dims& order, std::size_t rank) {
  std::array<bool, kMaxRank> seen{};
  if (order.size() != rank) return false;
  for (const std::int64_t dim : order) {
    if (dim < 0 || dim >= static_cast<std::int64_t>(rank)) return false;
    bool& there = seen[static_cast<std::size_t>(dim)];
    if (there) return false;
    there = true;
  }
  return true;
}

// a * b, kDynamicDim if either is or the product does not fit.
std::int64_t product_or_dynamic(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (a == kDynamicDim || b == kDynamicDim || __builtin_mul_overflow(a, b, &product)) {
    return kDynamicDim;
  }
  return product;
}

}  // namespace

Dims::Dims(std::span<const std::int64_t> values) {
  if (values.size() > kMaxRank) {
    throw_view("view", format_text("a view of rank {}", values.size()),
               format_text("a view has at most {}", count_text(kMaxRank, "dim")),
               "merge dims that follow each other, or process one of them in a loop");
  }
  std::copy(values.begin(), values.end(), values_.begin());
  count_ = values.size();
}

Dims Dims::filled(std::size_t count, std::int64_t value) {
  std::array<std::int64_t, kMaxRank + 1> values{};
  values.fill(value);
  return Dims(std::span<const std::int64_t>(values.data(), std::min(count, kMaxRank + 1)));
}

void TensorLayout::refuse(std::string_view code, std::string what, std::string_view rule,
                          std::string_view cure) const {
  throw_view(code, format_text("view {}: {}", text(), what), rule, cure);
}

TensorLayout TensorLayout::strided(const Dims& sizes, const Dims& strides, std::int64_t offset) {
  TensorLayout view;
  view.sizes_ = sizes;
  view.strides_ = strides;
  view.offset_ = offset;
  if (sizes.size() != strides.size()) {
    view.refuse("view",
                format_text("{} and {}", count_text(sizes.size(), "size"),
                            count_text(strides.size(), "stride")),
                "each dim has a size and a stride, and a view of rank 0 has neither",
                "give one stride for each size");
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 0 || sizes[i] == kDynamicDim) continue;
    view.refuse("view", format_text("dim {} has size {}", i, sizes[i]), "sizes are 1 or more",
                "make a size dynamic that may be 0 when the kernel runs");
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] > 0 || strides[i] == kDynamicDim) continue;
    view.refuse("view", format_text("dim {} has stride {}", i, strides[i]), "strides are 1 or more",
                strides[i] == 0 ? "repeat elements with broadcast(), which gives a read-only view"
                                : "strides count forwards; reverse the index where it is used");
  }
  if (offset < 0 && offset != kDynamicDim) {
    view.refuse("view", format_text("offset {}", offset), "offsets are 0 or more",
                "move the base pointer instead");
  }
  view.check_reach();
  return view;
}

void TensorLayout::check_reach() const {
  std::int64_t last = offset_ == kDynamicDim ? 0 : offset_;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (sizes_[i] == kDynamicDim || strides_[i] == kDynamicDim || sizes_[i] == 0) continue;
    std::int64_t along = 0;
    if (__builtin_mul_overflow(sizes_[i] - 1, strides_[i], &along) ||
        __builtin_add_overflow(last, along, &last)) {
      refuse("view-overflow",
             format_text("its elements reach beyond position 2^63 - 1 in dim {}", i),
             "positions of elements fit 63 bits", "make sizes or strides smaller");
    }
  }
}

TensorLayout TensorLayout::row_major(const Dims& sizes, std::int64_t offset) {
  Dims strides = sizes;
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    const std::int64_t next = product_or_dynamic(stride, sizes[i]);
    if (next == kDynamicDim && stride != kDynamicDim && sizes[i] > 0 && i > 0) {
      throw_view("view-overflow",
                 format_text("row-major view of sizes {}: the stride of dim {} is beyond 2^63 - 1",
                             sizes.text(), i - 1),
                 "positions of elements fit 63 bits", "make sizes smaller");
    }
    stride = next;
  }
  return strided(sizes, strides, offset);
}

TensorLayout TensorLayout::column_major(const Dims& sizes, std::int64_t offset) {
  Dims reversed = sizes;
  Dims order = sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    reversed[i] = sizes[sizes.size() - 1 - i];
    order[i] = static_cast<std::int64_t>(sizes.size() - 1 - i);
  }
  return row_major(reversed, offset).permute(order);
}

bool TensorLayout::is_static() const noexcept {
  const auto known = [](std::int64_t n) { return n != kDynamicDim; };
  return std::all_of(sizes_.begin(), sizes_.end(), known) &&
         std::all_of(strides_.begin(), strides_.end(), known) && known(offset_);
}

std::uint64_t TensorLayout::count() const {
  std::uint64_t all = 1;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (sizes_[i] == kDynamicDim) {
      refuse("view", format_text("dim {} is dynamic", i), "elements are counted in static views",
             "bind() the sizes of the launch first");
    }
    if (__builtin_mul_overflow(all, static_cast<std::uint64_t>(sizes_[i]), &all)) {
      // A size of 0 further on still makes it 0.
      if (std::find(sizes_.begin(), sizes_.end(), 0) != sizes_.end()) return 0;
      refuse("view-overflow", "it has 2^64 or more elements", "elements are counted in 64 bits",
             "make sizes smaller");
    }
  }
  return all;
}

std::uint64_t TensorLayout::extent() const {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (sizes_[i] == kDynamicDim || strides_[i] == kDynamicDim) {
      refuse("view", format_text("dim {} is dynamic", i), "the extent of a static view is known",
             "bind() the sizes and strides of the launch first");
    }
    if (sizes_[i] == 0) return 0;
  }
  // check_reach() excluded an overflow of the sum.
  for (std::size_t i = 0; i < rank(); ++i) last += (sizes_[i] - 1) * strides_[i];
  return static_cast<std::uint64_t>(last) + 1;
}

std::uint64_t TensorLayout::bytes(std::uint64_t element_bytes) const {
  if (offset_ == kDynamicDim) {
    refuse("view", "its offset is dynamic", "the extent of a static view is known",
           "bind() the offset of the launch first");
  }
  const std::uint64_t elements = extent();
  const std::uint64_t end = elements == 0 ? 0 : elements + static_cast<std::uint64_t>(offset_);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(end, element_bytes, &bytes) ||
      bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    refuse("view-overflow",
           format_text("its elements of {} end beyond byte 2^63 - 1",
                       count_text(element_bytes, "byte")),
           "offsets in bytes fit 63 bits", "make sizes or strides smaller");
  }
  return bytes;
}

bool TensorLayout::is_contiguous() const noexcept {
  if (std::find(sizes_.begin(), sizes_.end(), 0) != sizes_.end()) return true;
  std::int64_t stride = 1;
  for (std::size_t i = rank(); i-- > 0;) {
    if (sizes_[i] == 1) continue;
    if (stride == kDynamicDim || strides_[i] != stride) return false;
    stride = product_or_dynamic(stride, sizes_[i]);
  }
  return true;
}

StorageOrder TensorLayout::order() const noexcept {
  if (is_contiguous()) return StorageOrder::RowMajor;
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (sizes_[i] == 1) continue;
    if (stride == kDynamicDim || strides_[i] != stride) return StorageOrder::Strided;
    stride = product_or_dynamic(stride, sizes_[i]);
  }
  return StorageOrder::ColumnMajor;
}

Overlap TensorLayout::overlap() const {
  std::vector<std::size_t> dims;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (sizes_[i] == 0) return Overlap::None;
  }
  bool dynamic = false;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (sizes_[i] == 1) continue;
    dynamic = dynamic || sizes_[i] == kDynamicDim || strides_[i] == kDynamicDim;
    if (strides_[i] == 0 && sizes_[i] > 1) return Overlap::Some;
    dims.push_back(i);
  }
  if (dynamic) return Overlap::Unknown;
  std::sort(dims.begin(), dims.end(),
            [&](std::size_t a, std::size_t b) { return strides_[a] < strides_[b]; });
  // Each stride beyond what the smaller ones reach: every position has one index.
  std::int64_t reach = 0;
  bool nested = true;
  for (const std::size_t i : dims) {
    nested = nested && strides_[i] > reach;
    reach += (sizes_[i] - 1) * strides_[i];
  }
  if (nested) return Overlap::None;
  // Two dims meet where d1 * stride1 == d2 * stride2 with both distances inside the sizes.
  for (std::size_t a = 0; a < dims.size(); ++a) {
    for (std::size_t b = a + 1; b < dims.size(); ++b) {
      const std::int64_t divisor = std::gcd(strides_[dims[a]], strides_[dims[b]]);
      if (strides_[dims[b]] / divisor < sizes_[dims[a]] &&
          strides_[dims[a]] / divisor < sizes_[dims[b]]) {
        return Overlap::Some;
      }
    }
  }
  if (dims.size() <= 2) return Overlap::None;
  std::uint64_t elements = 1;
  for (const std::size_t i : dims) {
    if (static_cast<std::uint64_t>(sizes_[i]) > kSearched / elements) return Overlap::Unknown;
    elements *= static_cast<std::uint64_t>(sizes_[i]);
  }
  return decide_overlap(dims) ? Overlap::Some : Overlap::None;
}

bool TensorLayout::decide_overlap(std::span<const std::size_t> dims) const {
  std::vector<std::int64_t> positions{0};
  for (const std::size_t i : dims) {
    const std::size_t before = positions.size();
    for (std::int64_t n = 1; n < sizes_[i]; ++n) {
      for (std::size_t at = 0; at < before; ++at) {
        positions.push_back(positions[at] + n * strides_[i]);
      }
    }
  }
  std::sort(positions.begin(), positions.end());
  return std::adjacent_find(positions.begin(), positions.end()) != positions.end();
}

void TensorLayout::require_writable(std::string_view what) const {
  if (read_only_) {
    refuse("view", format_text("{} writes through it", what), "a broadcast view is read-only",
           "write to the view that was broadcast");
  }
  if (overlap() == Overlap::Some) {
    refuse("view", format_text("{} writes through it", what),
           "no store goes through a view in which two indices name one element",
           "write through a view whose strides keep its elements apart");
  }
}

std::int64_t TensorLayout::linear_index(std::span<const std::int64_t> index) const {
  if (index.size() != rank()) {
    refuse("out-of-bounds", "an index of " + count_text(index.size(), "number"),
           "an index has one number for each dim",
           format_text("give {}", count_text(rank(), "number")));
  }
  if (!is_static()) {
    refuse("view", "a size or stride is dynamic", "elements of a static view have positions",
           "bind() the sizes and strides of the launch first");
  }
  std::int64_t position = offset_;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (index[i] < 0 || index[i] >= sizes_[i]) {
      refuse("out-of-bounds", format_text("index {} in dim {} of size {}", index[i], i, sizes_[i]),
             "an index is at least 0 and below the size", "check the bounds before the access");
    }
    position += index[i] * strides_[i];
  }
  return position;
}

TensorLayout TensorLayout::slice(const Dims& first, const Dims& sizes) const {
  if (first.size() != rank() || sizes.size() != rank()) {
    refuse("view", format_text("a slice from {} of sizes {}", first.text(), sizes.text()),
           "a slice has a start and a size for each dim", format_text("give {} of each", rank()));
  }
  TensorLayout part = *this;
  for (std::size_t i = 0; i < rank(); ++i) part = part.slice_dim(i, first[i], sizes[i]);
  return part;
}

TensorLayout TensorLayout::slice_dim(std::size_t dim, std::int64_t first, std::int64_t size) const {
  if (dim >= rank()) {
    refuse("view", format_text("a slice of dim {}", dim), "a dim is below the rank",
           format_text("its rank is {}", rank()));
  }
  const bool start_known = first != kDynamicDim;
  const bool size_known = size != kDynamicDim;
  const std::int64_t has = sizes_[dim];
  if ((start_known && first < 0) || (size_known && size < 1) ||
      (has != kDynamicDim && ((start_known && first > has) || (size_known && size > has) ||
                              (start_known && size_known && size > has - first)))) {
    refuse("out-of-bounds",
           format_text("a slice of {} from {} in dim {}",
                       size_known ? count_text(size < 0 ? 0 : size, "element") : "dynamic size",
                       start_known ? std::to_string(first) : "a dynamic start", dim),
           "a slice has 1 element or more and is within the dim",
           has == kDynamicDim ? "start at 0 or later" : format_text("the dim's size is {}", has));
  }
  TensorLayout part = *this;
  part.sizes_[dim] = size;
  const std::int64_t moved = first == 0 ? 0 : product_or_dynamic(first, strides_[dim]);
  if (moved == kDynamicDim || offset_ == kDynamicDim) {
    part.offset_ = kDynamicDim;
  } else if (__builtin_add_overflow(offset_, moved, &part.offset_)) {
    refuse("view-overflow", "the slice starts beyond position 2^63 - 1",
           "positions of elements fit 63 bits", "make sizes or strides smaller");
  }
  return part;
}

TensorLayout TensorLayout::permute(const Dims& order) const {
  if (!is_permutation(order, rank())) {
    refuse("view", format_text("dims in the order {}", order.text()),
           "an order names each dim once", format_text("permute the numbers 0 to {}", rank() - 1));
  }
  TensorLayout view = *this;
  for (std::size_t i = 0; i < rank(); ++i) {
    view.sizes_[i] = sizes_[static_cast<std::size_t>(order[i])];
    view.strides_[i] = strides_[static_cast<std::size_t>(order[i])];
  }
  return view;
}

TensorLayout TensorLayout::transpose() const {
  if (rank() < 2) {
    refuse("view", "transpose()", "two dims are swapped", "use a view of rank 2 or more");
  }
  TensorLayout view = *this;
  std::swap(view.sizes_[rank() - 1], view.sizes_[rank() - 2]);
  std::swap(view.strides_[rank() - 1], view.strides_[rank() - 2]);
  return view;
}

TensorLayout TensorLayout::reshape(const Dims& sizes) const {
  if (!is_contiguous()) {
    refuse("view", format_text("reshape to {}", sizes.text()),
           "only a view that is known to be contiguous has other shapes",
           "copy it into contiguous memory first");
  }
  TensorLayout view = row_major(sizes, offset_);
  view.read_only_ = read_only_;
  if (count() != view.count()) {
    refuse(
        "view", format_text("reshape to {}", sizes.text()),
        "both shapes have the same number of elements",
        format_text("it has {}, the new shape {}", count_text(count(), "element"), view.count()));
  }
  return view;
}

TensorLayout TensorLayout::broadcast(const Dims& sizes) const {
  const std::size_t added = sizes.size() < rank() ? 0 : sizes.size() - rank();
  TensorLayout view;
  view.sizes_ = sizes;
  view.strides_ = Dims::filled(sizes.size(), 0);
  view.offset_ = offset_;
  view.read_only_ = true;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (sizes.size() < rank()) break;
    const std::int64_t wanted = sizes[added + i];
    if (sizes_[i] == wanted && wanted != 1) {
      view.strides_[added + i] = strides_[i];
    } else if (sizes_[i] != 1) {
      refuse("view", format_text("broadcast to {}", sizes.text()),
             "a dim keeps its size, or is repeated if its size is 1",
             format_text("dim {} has size {}", i, Dims{sizes_[i]}.text()));
    }
  }
  for (const std::int64_t size : sizes) {
    if (size > 0 || size == kDynamicDim) continue;
    refuse("view", format_text("broadcast to {}", sizes.text()), "sizes are 1 or more",
           "make a size dynamic that may be 0 when the kernel runs");
  }
  if (sizes.size() < rank()) {
    refuse("view", format_text("broadcast to {}", sizes.text()), "dims are added, never removed",
           format_text("give {} or more", count_text(rank(), "size")));
  }
  return view;
}

TensorLayout TensorLayout::bind(const Dims& sizes, const Dims& strides, std::int64_t offset) const {
  const auto agrees = [](std::int64_t declared, std::int64_t bound) {
    return declared == kDynamicDim || declared == bound;
  };
  if (sizes.size() != rank() || strides.size() != rank()) {
    refuse("view", format_text("sizes {} and strides {} for it", sizes.text(), strides.text()),
           "each dim gets a size and a stride", format_text("give {} of each", rank()));
  }
  TensorLayout view = *this;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (!agrees(sizes_[i], sizes[i]) || sizes[i] < 0 || !agrees(strides_[i], strides[i]) ||
        (strides[i] < 1 && !(read_only_ && strides[i] == 0))) {
      refuse("view",
             format_text("size {} and stride {} for dim {}", Dims{sizes[i]}.text(),
                         Dims{strides[i]}.text(), i),
             "a dynamic size becomes 0 or more, a dynamic stride 1 or more, others stay",
             format_text("it has size {} and stride {}", Dims{sizes_[i]}.text(),
                         Dims{strides_[i]}.text()));
    }
    view.sizes_[i] = sizes[i];
    view.strides_[i] = strides[i];
  }
  if (!agrees(offset_, offset) || offset < 0) {
    refuse("view", format_text("offset {} for it", offset),
           "a dynamic offset becomes 0 or more, others stay", "give its own offset");
  }
  view.offset_ = offset;
  view.check_reach();
  return view;
}

TiledLayout::TiledLayout(const Dims& sizes, const Dims& tile, ptx::Type element)
    : shape_(TensorLayout::row_major(sizes)) {
  const Partition parts(shape_, element, tile);
  grid_ = TensorLayout::row_major(parts.tiles());
  tile_ = TensorLayout::row_major(tile);
  if (__builtin_mul_overflow(grid_.count(), tile_.count(), &extent_) ||
      extent_ > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw_view("view-overflow",
               format_text("tiles {} of sizes {}: they have 2^63 or more elements", tile.text(),
                           sizes.text()),
               "positions of elements fit 63 bits", "make sizes smaller");
  }
}

std::int64_t TiledLayout::linear_index(std::span<const std::int64_t> index) const {
  (void)shape_.linear_index(index);  // checks the bounds
  Dims tile = tile_.sizes();
  Dims within = tile;
  for (std::size_t i = 0; i < index.size(); ++i) {
    tile[i] = index[i] / tile_.size(i);
    within[i] = index[i] % tile_.size(i);
  }
  return grid_.linear_index(tile) * static_cast<std::int64_t>(tile_.count()) +
         tile_.linear_index(within);
}

TensorLayout TiledLayout::tile_view(std::span<const std::int64_t> index) const {
  return TensorLayout::row_major(
      tile_.sizes(), grid_.linear_index(index) * static_cast<std::int64_t>(tile_.count()));
}

}  // namespace ptxgen::inline v0
