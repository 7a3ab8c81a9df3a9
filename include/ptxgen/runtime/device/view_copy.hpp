// ptxgen/runtime/device/view_copy.hpp - strided copies between host and device
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/kernels/view.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/device/stream.hpp"

namespace ptxgen::inline v0 {

namespace detail {

/// One side of a copy: the address of element (0, 0, ...) and the layout.
struct CopySide {
  std::uint64_t address = 0;
  const TensorLayout* layout = nullptr;
  bool device = false;
};
/// The number of calls of the driver.
std::uint64_t copy_view(const Context& context, const CopySide& to, const CopySide& from,
                        std::uint32_t element_bytes, const Stream* stream);

template <class T>
[[nodiscard]] CopySide side_of(const HostView<T>& view) noexcept {
  const auto* const first = view.memory().data() + view.layout().offset();
  return {reinterpret_cast<std::uintptr_t>(first), &view.layout(), false};
}
template <class T>
[[nodiscard]] CopySide side_of(const DeviceView<T>& view) noexcept {
  return {view.address().value, &view.layout(), true};
}

}  // namespace detail

/// Copies a tensor from the host to the device or back; both views have the same sizes, strides
/// are their own. Rows go by cuMemcpy2D, planes by cuMemcpy3D; what has no rows goes element by
/// element of the fastest dim. Returns how many calls of the driver it took.
///
/// Without a stream the copy is complete on return; with one it is queued, and the host memory must
/// live until it has run. Throws `Error`: "copy-size" (Stage::Device) for different sizes, "view"
/// (Stage::Build) for a target that is known to overlap, and as `Context`.
template <class T>
std::uint64_t copy(const Context& context, const DeviceView<T>& to, const HostView<const T>& from,
                   const Stream* stream = nullptr) {
  return detail::copy_view(context, detail::side_of(to), detail::side_of(from), T::kBytes, stream);
}
template <class T>
std::uint64_t copy(const Context& context, const DeviceView<T>& to, const HostView<T>& from,
                   const Stream* stream = nullptr) {
  return copy(context, to, HostView<const T>(from), stream);
}
template <class T>
std::uint64_t copy(const Context& context, const HostView<T>& to, const DeviceView<const T>& from,
                   const Stream* stream = nullptr) {
  return detail::copy_view(context, detail::side_of(to), detail::side_of(from), T::kBytes, stream);
}
template <class T>
std::uint64_t copy(const Context& context, const HostView<T>& to, const DeviceView<T>& from,
                   const Stream* stream = nullptr) {
  return copy(context, to, DeviceView<const T>(from), stream);
}

}  // namespace ptxgen::inline v0
