// ptxgen/builder/tensor_view.hpp - views of tensors in kernels
#pragma once

#include "ptxgen/support/language.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "ptxgen/builder/kernel_builder.hpp"
#include "ptxgen/tile/view.hpp"

// Part of ptxgen/builder/tile.hpp. The rules of views are those of the host
// (ptxgen/tile/view.hpp).

namespace ptxgen::inline v0 {

/// What is known of a number of the launch when the kernel is built. The caller promises it; vector
/// accesses and left out bounds checks rely on it.
struct Known {
  std::uint32_t divisible_by = 1;
  std::uint32_t at_least = 0;
  std::uint32_t at_most = UINT32_MAX;
};

/// A size, a stride or an index: a C++ integer, or a u32 of the kernel with what is known of it.
class Extent {
 public:
  Extent() = default;
  template <class L>
  requires detail::kIsCppInteger<L> Extent(L n)
  noexcept : constant_(static_cast<std::int64_t>(n)) {}
  Extent(const Value<u32>& value, Known known = {}) noexcept
      : constant_(kDynamicDim), value_(value), known_(known) {}
  Extent(const Extent&) = default;
  Extent& operator=(const Extent& other) noexcept {
    constant_ = other.constant_;
    value_.rebind(other.value_);
    known_ = other.known_;
    return *this;
  }
  /// Refused: values of other types.
  template <class T>
  requires(!detail::kSame<T, u32>) Extent(const Value<T>&)
  noexcept {
    static_assert(detail::kNever<T>,
                  "sizes, strides and indices of views are unsigned: a u32, or a C++ integer");
  }

  [[nodiscard]] bool is_constant() const noexcept { return constant_ != kDynamicDim; }
  /// The number, `kDynamicDim` if it is not constant.
  [[nodiscard]] std::int64_t constant() const noexcept { return constant_; }
  [[nodiscard]] const Value<u32>& value() const noexcept { return value_; }
  /// Divides the number.
  [[nodiscard]] std::uint64_t divisor() const noexcept {
    return is_constant() ? static_cast<std::uint64_t>(constant_) : known_.divisible_by;
  }
  [[nodiscard]] const Known& known() const noexcept { return known_; }

 private:
  std::int64_t constant_ = 0;
  Value<u32> value_{nullptr, ptx::Register{}};
  Known known_;
};

namespace detail {

struct TensorData {
  KernelBuilder* k = nullptr;
  PointerData base;
  TensorLayout layout;
  std::array<Extent, kMaxRank> sizes, strides;
  std::uint64_t alignment = 1;  ///< of the first element, bytes
  std::uint32_t bytes = 4;      ///< of an element
};

/// Sizes, strides or indices of a call: in braces, or a span of them.
struct Extents {
  std::span<const Extent> all;
  Extents(std::initializer_list<Extent> list) noexcept : all(list.begin(), list.size()) {}
  Extents(std::span<const Extent> list) noexcept : all(list) {}
};

[[nodiscard]] TensorData make_tensor(const PointerData& base, std::uint32_t bytes,
                                     std::span<const Extent> sizes, std::span<const Extent> strides,
                                     SourceLocation site);
[[nodiscard]] TensorData transposed(const TensorData& tensor, SourceLocation site);
[[nodiscard]] TensorData sliced(const TensorData& tensor, std::size_t dim, const Extent& first,
                                const Extent& size, SourceLocation site);
[[nodiscard]] TensorData reshaped(const TensorData& tensor, std::span<const Extent> sizes,
                                  SourceLocation site);
[[nodiscard]] TensorData broadcasted(const TensorData& tensor, std::span<const Extent> sizes,
                                     SourceLocation site);
void check_alignment(const TensorData& tensor, std::uint64_t bytes, SourceLocation site);

struct GridData {
  TensorData tensor;
  Dims tile, dim_map;
  Padding padding = Padding::None;
};
[[nodiscard]] GridData make_grid(const TensorData& tensor, ptx::Type element, const Dims& tile,
                                 Padding padding, const Dims& dim_map, SourceLocation site);

}  // namespace detail

/// A tensor's tiles in a kernel, see `TensorView::tiles`.
template <class T>
class TileGrid {
 public:
  explicit TileGrid(detail::GridData data) : data_(static_cast<detail::GridData&&>(data)) {}
  [[nodiscard]] const detail::GridData& data() const noexcept { return data_; }

 private:
  detail::GridData data_;
};

/// A tensor in global memory, of rank 0 to 5: base pointer, sizes and strides in elements. Emits
/// nothing by itself. Mistakes throw as the rules of `TensorLayout` do, with the C++ line.
template <class T>
class TensorView {
  using Site = SourceLocation;

 public:
  using Element = T;

  /// Without strides row-major without gaps; from rank 3 on only the first two sizes may then be
  /// values of the kernel.
  TensorView(const Ptr<T>& base, detail::Extents sizes, detail::Extents strides = {},
             Site site = Site::current())
      : data_(detail::make_tensor(base.data(), T::kBytes, sizes.all, strides.all, site)) {}
  explicit TensorView(detail::TensorData data) : data_(static_cast<detail::TensorData&&>(data)) {}

  /// Promises that the first element is aligned to `bytes`, a power of two. Otherwise only its own
  /// size is assumed.
  [[nodiscard]] TensorView aligned(std::uint64_t bytes, Site site = Site::current()) const {
    detail::check_alignment(data_, bytes, site);
    TensorView view = *this;
    view.data_.alignment = bytes;
    return view;
  }
  [[nodiscard]] TensorView transpose(Site site = Site::current()) const {
    return TensorView(detail::transposed(data_, site));
  }
  [[nodiscard]] TensorView slice_dim(std::size_t dim, const Extent& first, const Extent& size,
                                     Site site = Site::current()) const {
    return TensorView(detail::sliced(data_, dim, first, size, site));
  }
  /// The same elements in row-major order with other sizes. The view is contiguous and all sizes
  /// are C++ integers, or only the first one is not and stays the first.
  [[nodiscard]] TensorView reshape(detail::Extents sizes, Site site = Site::current()) const {
    return TensorView(detail::reshaped(data_, sizes.all, site));
  }
  /// Read-only.
  [[nodiscard]] TensorView broadcast(detail::Extents sizes, Site site = Site::current()) const {
    return TensorView(detail::broadcasted(data_, sizes.all, site));
  }
  /// The tensor cut into tiles, by the rules of `Partition`.
  [[nodiscard]] TileGrid<T> tiles(const Dims& tile, Padding padding = Padding::None,
                                  const Dims& dim_map = {}, Site site = Site::current()) const {
    return TileGrid<T>(detail::make_grid(data_, T::kType, tile, padding, dim_map, site));
  }

  [[nodiscard]] const TensorLayout& layout() const noexcept { return data_.layout; }
  [[nodiscard]] const detail::TensorData& data() const noexcept { return data_; }

 private:
  detail::TensorData data_;
};

}  // namespace ptxgen::inline v0
