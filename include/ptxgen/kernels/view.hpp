// ptxgen/kernels/view.hpp - views of tensors in host and device memory
#pragma once

#include "ptxgen/support/language.hpp"

#include <cstdint>
#include <span>

#include "ptxgen/kernels/operand.hpp"
#include "ptxgen/tile/view.hpp"

namespace ptxgen::inline v0 {

namespace detail {

/// T and const T as elements of views.
template <class T>
struct ViewedElement {
  using Element = T;
  using Host = HostType<T>;
  static constexpr bool kReadOnly = false;
};
template <class T>
struct ViewedElement<const T> {
  using Element = T;
  using Host = const HostType<T>;
  static constexpr bool kReadOnly = true;
};

/// Throws `Error` (Stage::Build, "out-of-bounds") unless the memory has the view's elements, "view"
/// for a dynamic view, and for a view that may only be read where `writes`.
void check_view(const TensorLayout& layout, std::uint64_t element_bytes, std::uint64_t memory_bytes,
                bool writes);
/// Throws "view" unless the view is contiguous and starts at element 0 of its memory.
void check_contiguous(const TensorLayout& layout);

/// What host and device views have in common. `Self` is made of the same memory and a layout.
template <class Self, class ReadOnly>
class ViewOf {
 public:
  [[nodiscard]] const TensorLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::size_t rank() const noexcept { return layout_.rank(); }
  [[nodiscard]] std::int64_t size(std::size_t dim) const noexcept { return layout_.size(dim); }
  [[nodiscard]] std::int64_t stride(std::size_t dim) const noexcept { return layout_.stride(dim); }
  [[nodiscard]] bool is_contiguous() const noexcept { return layout_.is_contiguous(); }

  // As the functions of TensorLayout; nothing is copied.
  [[nodiscard]] Self slice(const Dims& first, const Dims& sizes) const {
    return self().with(layout_.slice(first, sizes));
  }
  [[nodiscard]] Self slice_dim(std::size_t dim, std::int64_t first, std::int64_t size) const {
    return self().with(layout_.slice_dim(dim, first, size));
  }
  [[nodiscard]] Self permute(const Dims& order) const {
    return self().with(layout_.permute(order));
  }
  [[nodiscard]] Self transpose() const { return self().with(layout_.transpose()); }
  [[nodiscard]] Self reshape(const Dims& sizes) const {
    return self().with(layout_.reshape(sizes));
  }
  /// A view of const elements.
  [[nodiscard]] ReadOnly broadcast(const Dims& sizes) const {
    return ReadOnly(self().memory(), layout_.broadcast(sizes));
  }

 protected:
  explicit ViewOf(const TensorLayout& layout) : layout_(layout) {}

  TensorLayout layout_;

 private:
  [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

}  // namespace detail

/// A tensor in the caller's host memory: `HostView<f32>` of floats, `HostView<const f32>` to read
/// only. No memory of its own; every access is checked ("out-of-bounds").
template <class T>
class HostView : public detail::ViewOf<HostView<T>,
                                       HostView<const typename detail::ViewedElement<T>::Element>> {
  using Traits = detail::ViewedElement<T>;

 public:
  using Element = typename Traits::Element;
  using Host = typename Traits::Host;

  /// `layout` counts from the first element of `memory`.
  HostView(std::span<Host> memory, const TensorLayout& layout)
      : detail::ViewOf<HostView, HostView<const Element>>(layout), memory_(memory) {
    detail::check_view(layout, sizeof(Host), memory.size_bytes(), !Traits::kReadOnly);
  }
  operator HostView<const Element>() const {
    return HostView<const Element>(memory_, this->layout_);
  }

  /// The element at an index of one number for each dim.
  template <class... I>
  [[nodiscard]] Host& operator()(I... index) const {
    return at(Dims{static_cast<std::int64_t>(index)...});
  }
  [[nodiscard]] Host& at(const Dims& index) const {
    const std::span<const std::int64_t> numbers(index.begin(), index.size());
    return memory_[static_cast<std::size_t>(this->layout_.linear_index(numbers))];
  }
  [[nodiscard]] Partition partition(const Dims& tile, Padding padding = Padding::None,
                                    const Dims& dim_map = {}) const {
    return Partition(this->layout_, Element::kType, tile, padding, dim_map);
  }

  [[nodiscard]] std::span<Host> memory() const noexcept { return memory_; }
  /// Another view of the same memory.
  [[nodiscard]] HostView with(const TensorLayout& layout) const { return {memory_, layout}; }

 private:
  std::span<Host> memory_;
};

/// A tensor in device memory: what a launch passes for a `Ptr<T>` is the address of element 0 of
/// the view. `DeviceView<const f32>` is not written by copies.
template <class T>
class DeviceView
    : public detail::ViewOf<DeviceView<T>,
                            DeviceView<const typename detail::ViewedElement<T>::Element>> {
  using Traits = detail::ViewedElement<T>;

 public:
  using Element = typename Traits::Element;

  DeviceView(DeviceSpan<Element> memory, const TensorLayout& layout)
      : detail::ViewOf<DeviceView, DeviceView<const Element>>(layout), memory_(memory) {
    detail::check_view(layout, Element::kBytes, memory.bytes(), !Traits::kReadOnly);
  }
  operator DeviceView<const Element>() const {
    return DeviceView<const Element>(memory_, this->layout_);
  }

  /// Of the view's first element.
  [[nodiscard]] DeviceAddress<Element> address() const noexcept {
    return {memory_.address.value +
            static_cast<std::uint64_t>(this->layout_.offset()) * Element::kBytes};
  }
  /// The elements as an operand of a kernel that takes contiguous memory; throws "view" for others.
  [[nodiscard]] DeviceSpan<Element> contiguous() const {
    detail::check_contiguous(this->layout_);
    return {address(), this->layout_.count()};
  }
  [[nodiscard]] Partition partition(const Dims& tile, Padding padding = Padding::None,
                                    const Dims& dim_map = {}) const {
    return Partition(this->layout_, Element::kType, tile, padding, dim_map);
  }

  [[nodiscard]] const DeviceSpan<Element>& memory() const noexcept { return memory_; }
  [[nodiscard]] DeviceView with(const TensorLayout& layout) const { return {memory_, layout}; }

 private:
  DeviceSpan<Element> memory_;
};

}  // namespace ptxgen::inline v0
