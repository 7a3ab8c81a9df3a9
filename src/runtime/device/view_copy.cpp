// src/runtime/device/view_copy.cpp - strided copies between host and device
#include "ptxgen/runtime/device/view_copy.hpp"

#include <algorithm>
#include <vector>

#include "runtime/device/core.hpp"
#include "runtime/device/owned.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::detail {

using driver::Table;

namespace {

// CU_DEVICE_ATTRIBUTE_MAX_PITCH of every GPU: 2^31 - 1.
constexpr std::uint64_t kMaxPitch = (std::uint64_t{1} << 31) - 1;

/// One dim of a copy: how often, and the bytes from one to the next on each side.
struct Step {
  std::uint64_t count = 1;
  std::uint64_t to = 0, from = 0;
};

/// The dims, outermost first, the fastest of the target last; dims that follow each other without
/// gaps on both sides are one. The last one moves bytes.
std::vector<Step> steps_of(const TensorLayout& to, const TensorLayout& from,
                           std::uint64_t element_bytes) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < to.rank(); ++i) {
    if (to.size(i) == 1) continue;
    steps.push_back({static_cast<std::uint64_t>(to.size(i)),
                     static_cast<std::uint64_t>(to.stride(i)) * element_bytes,
                     static_cast<std::uint64_t>(from.stride(i)) * element_bytes});
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.to > b.to; });
  steps.push_back({element_bytes, 1, 1});
  for (std::size_t i = steps.size() - 1; i-- > 0;) {
    Step& outer = steps[i];
    const Step& inner = steps[i + 1];
    if (outer.to != inner.count * inner.to || outer.from != inner.count * inner.from) continue;
    outer = {outer.count * inner.count, inner.to, inner.from};
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return steps;
}

/// A copy as one call: rows of `width` bytes, `height` rows, `depth` planes.
struct Box {
  std::uint64_t width = 1, height = 1, depth = 1;
  std::uint64_t to_pitch = 0, from_pitch = 0;
  std::uint64_t to_rows = 0, from_rows = 0;  ///< rows from plane to plane
};

bool rows_fit(std::uint64_t width, const Step& rows) {
  return rows.to >= width && rows.from >= width && rows.to <= kMaxPitch && rows.from <= kMaxPitch;
}
bool planes_fit(const Step& rows, const Step& planes) {
  return planes.to % rows.to == 0 && planes.from % rows.from == 0 &&
         planes.to / rows.to >= rows.count && planes.from / rows.from >= rows.count;
}

/// The inner steps that one call makes; the number of those that are left for loops.
std::size_t box_of(const std::vector<Step>& steps, Box& box) {
  std::size_t left = steps.size() - 1;
  box.width = steps[left].count;
  if (left == 0 || !rows_fit(box.width, steps[left - 1])) return left;
  const Step& rows = steps[--left];
  box.height = rows.count;
  box.to_pitch = rows.to;
  box.from_pitch = rows.from;
  if (left == 0 || !planes_fit(rows, steps[left - 1])) return left;
  const Step& planes = steps[--left];
  box.depth = planes.count;
  box.to_rows = planes.to / rows.to;
  box.from_rows = planes.from / rows.from;
  return left;
}

/// Makes the calls.
class Copier {
 public:
  Copier(const ContextCore& core, const Stream* stream, bool to_device)
      : core_(core), stream_(stream), to_device_(to_device) {}

  void linear(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) const {
    const auto size = static_cast<std::size_t>(bytes);
    if (to_device_ && stream_ == nullptr) {
      core_.call(Stage::Device, &Table::memcpy_to_device, to, host(from), size);
    } else if (to_device_) {
      core_.call(Stage::Device, &Table::memcpy_to_device_async, to, host(from), size,
                 stream_->handle());
    } else if (stream_ == nullptr) {
      core_.call(Stage::Device, &Table::memcpy_to_host, host(to), from, size);
    } else {
      core_.call(Stage::Device, &Table::memcpy_to_host_async, host(to), from, size,
                 stream_->handle());
    }
  }
  void rectangle(std::uint64_t to, std::uint64_t from, const Box& box) const {
    driver::CUDA_MEMCPY2D copy = {};
    place(copy, to, from);
    copy.dstPitch = box.to_pitch;
    copy.srcPitch = box.from_pitch;
    copy.WidthInBytes = box.width;
    copy.Height = box.height;
    if (stream_ == nullptr) {
      core_.call(Stage::Device, &Table::memcpy_2d_unaligned, &copy);
    } else {
      core_.call(Stage::Device, &Table::memcpy_2d_async, &copy, stream_->handle());
    }
  }
  void volume(std::uint64_t to, std::uint64_t from, const Box& box) const {
    driver::CUDA_MEMCPY3D copy = {};
    place(copy, to, from);
    copy.dstPitch = box.to_pitch;
    copy.dstHeight = box.to_rows;
    copy.srcPitch = box.from_pitch;
    copy.srcHeight = box.from_rows;
    copy.WidthInBytes = box.width;
    copy.Height = box.height;
    copy.Depth = box.depth;
    if (stream_ == nullptr) {
      core_.call(Stage::Device, &Table::memcpy_3d, &copy);
    } else {
      core_.call(Stage::Device, &Table::memcpy_3d_async, &copy, stream_->handle());
    }
  }

 private:
  static void* host(std::uint64_t address) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  }
  template <class Copy>
  void place(Copy& copy, std::uint64_t to, std::uint64_t from) const {
    copy.dstMemoryType = to_device_ ? driver::CU_MEMORYTYPE_DEVICE : driver::CU_MEMORYTYPE_HOST;
    copy.srcMemoryType = to_device_ ? driver::CU_MEMORYTYPE_HOST : driver::CU_MEMORYTYPE_DEVICE;
    if (to_device_) {
      copy.dstDevice = to;
      copy.srcHost = host(from);
    } else {
      copy.dstHost = host(to);
      copy.srcDevice = from;
    }
  }

  const ContextCore& core_;
  const Stream* stream_;
  bool to_device_;
};

}  // namespace

std::uint64_t copy_view(const Context& context, const CopySide& to, const CopySide& from,
                        std::uint32_t element_bytes, const Stream* stream) {
  if (to.layout->sizes() != from.layout->sizes()) {
    throw Error(Stage::Device, "copy-size",
                format_text("the copy has sizes {} and {}; rule: both views have the same sizes; "
                            "cure: slice the larger one",
                            from.layout->sizes().text(), to.layout->sizes().text()));
  }
  to.layout->require_writable("a copy");
  if (to.layout->count() == 0) return 0;
  const std::vector<Step> steps = steps_of(*to.layout, *from.layout, element_bytes);
  Box box;
  const std::size_t loops = box_of(steps, box);
  const ContextCore& core = context.core();
  if (stream != nullptr) core.same(Stage::Device, stream->core(), "the stream");
  Span span(core.trace(), "copy", "runtime");
  span.argument("bytes", to.layout->count() * element_bytes);
  core.alive(Stage::Device);
  const Current current(core, Stage::Device);
  const Copier copier(core, stream, to.device);
  std::uint64_t calls = 1;
  for (std::size_t i = 0; i < loops; ++i) calls *= steps[i].count;
  for (std::uint64_t call = 0; call < calls; ++call) {
    std::uint64_t number = call;
    std::uint64_t to_at = to.address;
    std::uint64_t from_at = from.address;
    for (std::size_t i = loops; i-- > 0;) {
      to_at += number % steps[i].count * steps[i].to;
      from_at += number % steps[i].count * steps[i].from;
      number /= steps[i].count;
    }
    if (box.depth > 1) {
      copier.volume(to_at, from_at, box);
    } else if (box.height > 1) {
      copier.rectangle(to_at, from_at, box);
    } else {
      copier.linear(to_at, from_at, box.width);
    }
  }
  if (stream == nullptr && !to.device) core.waited();
  return calls;
}

}  // namespace ptxgen::inline v0::detail
