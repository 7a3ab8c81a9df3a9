// src/builder/tile/tensor.cpp - views of tensors in kernels
#include <algorithm>
#include <bit>
#include <numeric>

#include "ptxgen/builder/tile.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::detail {

namespace {

/// Runs `rules`, whose errors become errors of the builder's call.
template <class Rules>
auto checked(KernelBuilder& k, SourceLocation site, const Rules& rules) {
  try {
    return rules();
  } catch (const Error& error) {
    k.refuse(error.code, error.message, site);
  }
}

Dims constants(std::span<const Extent> extents) {
  std::vector<std::int64_t> values;
  for (const Extent& extent : extents) values.push_back(extent.constant());
  return Dims(values);
}

void check_known(KernelBuilder& k, const Extent& extent, SourceLocation site) {
  const Known& known = extent.known();
  if (known.divisible_by != 0 && known.at_least <= known.at_most) return;
  k.refuse("view",
           format_text("a number that is divisible by {}, at least {} and at most {}; rule: some "
                       "number is all of this; cure: correct what is known of it",
                       known.divisible_by, known.at_least, known.at_most),
           site);
}

Extent row_stride(KernelBuilder& k, const Extent& inner_size, const Extent& inner_stride,
                  SourceLocation site) {
  if (inner_size.is_constant() && inner_stride.is_constant()) {
    return Extent(inner_size.constant() * inner_stride.constant());
  }
  if (inner_stride.is_constant() && inner_stride.constant() == 1) return inner_size;
  if (inner_size.is_constant() && inner_size.constant() == 1) return inner_stride;
  k.refuse("view",
           "a row-major view whose stride is a product of sizes of the launch; rule: a kernel gets "
           "such strides as parameters, since the product may not fit 32 bits; cure: give the "
           "strides",
           site);
}

}  // namespace

TensorData make_tensor(const PointerData& base, std::uint32_t bytes, std::span<const Extent> sizes,
                       std::span<const Extent> strides, SourceLocation site) {
  const bool row_major = strides.empty();
  TensorData tensor;
  tensor.k = static_cast<KernelBuilder*>(base.core);
  tensor.base = base;
  tensor.bytes = bytes;
  tensor.alignment = bytes;
  KernelBuilder& k = *tensor.k;
  tensor.layout = checked(k, site, [&] {
    const Dims all = constants(sizes);
    return row_major ? TensorLayout::row_major(all)
                     : TensorLayout::strided(all, constants(strides));
  });
  checked(k, site, [&] {
    TensorLayout known = tensor.layout;
    if (known.is_static()) (void)known.bytes(bytes);
  });
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    check_known(k, sizes[i], site);
    tensor.sizes[i] = sizes[i];
  }
  for (std::size_t i = 0; i < strides.size(); ++i) {
    check_known(k, strides[i], site);
    tensor.strides[i] = strides[i];
  }
  if (row_major) {
    for (std::size_t i = sizes.size(); i-- > 0;) {
      tensor.strides[i] = i + 1 == sizes.size()
                              ? Extent(1)
                              : row_stride(k, sizes[i + 1], tensor.strides[i + 1], site);
    }
  }
  return tensor;
}

TensorData transposed(const TensorData& tensor, SourceLocation site) {
  TensorData view = tensor;
  view.layout = checked(*tensor.k, site, [&] { return tensor.layout.transpose(); });
  const std::size_t last = tensor.layout.rank() - 1;
  std::swap(view.sizes[last], view.sizes[last - 1]);
  std::swap(view.strides[last], view.strides[last - 1]);
  return view;
}

TensorData sliced(const TensorData& tensor, std::size_t dim, const Extent& first,
                  const Extent& size, SourceLocation site) {
  TensorData view = tensor;
  KernelBuilder& k = *tensor.k;
  const TensorLayout part = checked(
      k, site, [&] { return tensor.layout.slice_dim(dim, first.constant(), size.constant()); });
  // The base pointer is moved, so the rules' offset stays 0.
  view.layout = part;
  view.layout.rebase();
  view.sizes[dim] = size;
  const Extent& stride = tensor.strides[dim];
  if (first.is_constant() && first.constant() == 0) return view;
  Transaction transaction(k);
  const unsigned bytes = tensor.bytes;
  if (first.is_constant() && stride.is_constant()) {
    view.base =
        advance(tensor.base, Index(first.constant() * stride.constant(), site), 1, bytes, false);
  } else if (stride.is_constant()) {
    const Value<u64> distance =
        k.mul_wide(first.value(), static_cast<std::uint32_t>(stride.constant()), site);
    view.base = advance(tensor.base, Index(distance, site), 1, bytes, false);
  } else {
    const Value<u64> distance =
        first.is_constant()
            ? k.mul_wide(stride.value(), static_cast<std::uint32_t>(first.constant()), site)
            : k.mul_wide(first.value(), stride.value(), site);
    view.base = advance(tensor.base, Index(distance, site), 1, bytes, false);
  }
  transaction.keep();
  // What divides both factors of the distance is left of the alignment.
  const std::uint64_t distance = first.divisor() * stride.divisor() * bytes;
  view.alignment = std::min(tensor.alignment, distance & (~distance + 1));
  return view;
}

TensorData reshaped(const TensorData& tensor, std::span<const Extent> sizes, SourceLocation site) {
  KernelBuilder& k = *tensor.k;
  const Dims to = constants(sizes);
  const auto refuse = [&](std::string_view rule, std::string_view cure) {
    k.refuse("view", format_text("reshape to {}; rule: {}; cure: {}", to.text(), rule, cure), site);
  };
  if (tensor.layout.read_only()) {
    refuse("a broadcast has the shape that it was repeated to", "reshape before the broadcast");
  }
  // With rows of the launch's number in both, the shapes of a row are compared.
  const bool rows = !sizes.empty() && !sizes[0].is_constant() && tensor.layout.rank() != 0 &&
                    !tensor.sizes[0].is_constant() &&
                    tensor.sizes[0].value().reg() == sizes[0].value().reg();
  const auto is_dynamic = [](const Extent& size) { return !size.is_constant(); };
  const std::span<const Extent> old(tensor.sizes.data(), tensor.layout.rank());
  if (std::ranges::any_of(sizes.subspan(rows ? 1 : 0), is_dynamic) ||
      std::ranges::any_of(old.subspan(rows ? 1 : 0), is_dynamic)) {
    refuse("of the sizes only the first may be a value of the kernel, and stays the first",
           "give C++ integers, or a view of the new shape");
  }
  checked(k, site, [&] {
    if (!rows || !tensor.layout.is_contiguous()) {
      (void)tensor.layout.reshape(to);
      return;
    }
    Dims row = to;
    row[0] = 1;
    (void)tensor.layout.slice_dim(0, 0, 1).reshape(row);
  });
  TensorData view = make_tensor(tensor.base, tensor.bytes, sizes, {}, site);
  view.alignment = tensor.alignment;
  return view;
}

TensorData broadcasted(const TensorData& tensor, std::span<const Extent> sizes,
                       SourceLocation site) {
  TensorData view = tensor;
  view.layout = checked(*tensor.k, site, [&] { return tensor.layout.broadcast(constants(sizes)); });
  const std::size_t added = sizes.size() - tensor.layout.rank();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    view.sizes[i] = sizes[i];
    view.strides[i] = view.layout.stride(i) == 0 ? Extent(0) : tensor.strides[i - added];
  }
  return view;
}

void check_alignment(const TensorData& tensor, std::uint64_t bytes, SourceLocation site) {
  if (std::has_single_bit(bytes) && bytes >= tensor.bytes) return;
  tensor.k->refuse("view",
                   format_text("a view of elements of {} bytes aligned to {} bytes; rule: an "
                               "alignment is a power of two and at least an element; cure: use 16 "
                               "for the widest accesses",
                               tensor.bytes, bytes),
                   site);
}

GridData make_grid(const TensorData& tensor, ptx::Type element, const Dims& tile, Padding padding,
                   const Dims& dim_map, SourceLocation site) {
  return checked(*tensor.k, site, [&] {
    const Partition rules(tensor.layout, element, tile, padding, dim_map);
    return GridData{tensor, tile, rules.dim_map(), padding};
  });
}

}  // namespace ptxgen::inline v0::detail
