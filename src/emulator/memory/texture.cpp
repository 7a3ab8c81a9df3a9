// src/emulator/memory/texture.cpp - texture fetches, surface accesses, queries of both
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "emulator/memory/access.hpp"
#include "emulator/memory/steps.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/address_space.hpp"
#include "emulator/state/textures.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/half.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Modifier;
using ImageKind = ImageObject::Kind;
using TextureAction = TextureDetail::Action;

constexpr unsigned kMaxElementBytes = 16;
constexpr unsigned kChannels = 4;

/// One instruction of a warp.
struct TextureIssue {
  Context& context;
  const Step& step;
  const MemoryDetail& detail;
  const TextureDetail& texture;

  TextureIssue(Context& of, const Step& at)
      : context(of),
        step(at),
        detail(of.code->memory[at.detail]),
        texture(detail.as<TextureDetail>()) {}

  template <class Text>
  void report(Rule rule, unsigned lane, Text&& text) const {
    context.grid->reporter->report_access(context, step.statement, rule, lane, false,
                                          std::forward<Text>(text));
  }
};

std::string_view noun(ImageKind kind) { return kind == ImageKind::Texture ? "texture" : "surface"; }

std::string_view create_call(ImageKind kind) {
  return kind == ImageKind::Texture ? "cuTexObjectCreate" : "cuSurfObjectCreate";
}

std::string shape_text(unsigned dimensions, bool layered) {
  return format_text("{}{}D", layered ? "layered " : "", dimensions);
}

/// Whether an instruction of `dimensions` reaches all of the memory: a GPU reads an array of height
/// 1, as Dr.Jit makes it, in 1D too.
bool reaches(unsigned dimensions, const Texels& texels) {
  if (dimensions > texels.dimensions) return false;
  for (unsigned axis = dimensions; axis < texels.dimensions; ++axis) {
    if (texels.size(axis) != 1) return false;
  }
  return true;
}

/// Why the handle cannot be used, or an empty message.
FindingText wrong_handle(const TextureIssue& issue, std::uint64_t handle,
                         const ImageObject* object) {
  const ImageKind kind = issue.texture.surface ? ImageKind::Surface : ImageKind::Texture;
  FindingText text;
  text.subject = format_text("{} object {}", noun(kind), handle);
  if (object == nullptr && issue.context.grid->space->images().was_destroyed(handle)) {
    text.message = format_text("thread uses {} object {}, which was destroyed", noun(kind), handle);
    text.details.emplace_back("destroy it after the last kernel that uses it");
  } else if (object == nullptr) {
    text.message = format_text("thread uses {} as {} object, which no object has as its handle",
                               hex(handle), noun(kind));
    text.details.push_back(
        format_text("pass the handle that {} gave as a 64-bit argument", create_call(kind)));
  } else if (object->kind != kind) {
    text.message = format_text("thread uses object {} as a {}, but it is a {} object", handle,
                               noun(kind), noun(object->kind));
    text.details.push_back(
        format_text("create another object of the same memory with {}", create_call(kind)));
  } else if (issue.texture.action != TextureAction::Query) {
    const Texels& texels = object->texels;
    const bool layered = texels.layers != 0;
    if (reaches(issue.texture.dimensions, texels) && layered == issue.texture.layered) {
      return {};
    }
    text.message =
        format_text("the instruction is for a {} {}, but object {} is of {} memory ({})",
                    shape_text(issue.texture.dimensions, issue.texture.layered), noun(kind), handle,
                    shape_text(texels.dimensions, layered), texels.text());
    text.details.emplace_back("use the form of the instruction for the object's dimensions");
  } else {
    return {};
  }
  return text;
}

/// Calls `work(object, handle, lanes)` for the lanes of each object. The others get a finding.
template <class Work>
void for_each_object(const TextureIssue& issue, std::uint32_t mask, Work&& work) {
  std::uint64_t handles[kLanes];
  compute_addresses(issue.context, issue.detail.address, handles);
  while (mask != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(mask));
    const std::uint64_t handle = handles[first];
    std::uint32_t lanes = 0;
    for_each_lane(mask, [&](unsigned lane) {
      if (handles[lane] == handle) lanes |= 1u << lane;
    });
    mask &= ~lanes;
    const ImageObject* const object = issue.context.grid->space->images().find(handle);
    if (!wrong_handle(issue, handle, object).message.empty()) {
      for_each_lane(lanes, [&](unsigned lane) {
        issue.report(Rule::TextureObject, lane,
                     [&] { return wrong_handle(issue, handle, object); });
      });
      continue;
    }
    work(*object, handle, lanes);
  }
}

std::uint32_t coordinate_bits(const TextureIssue& issue, unsigned number, unsigned lane) {
  return static_cast<std::uint32_t>(get_lane(issue.context, issue.detail.sources[number], lane));
}

/// Reads elements of some lanes, with the checks of a load from global memory. Returns the lanes
/// whose elements were read.
std::uint32_t read_elements(const TextureIssue& issue, const std::uint64_t addresses[kLanes],
                            std::uint32_t mask, unsigned bytes,
                            std::byte elements[kLanes][kMaxElementBytes]) {
  AccessRequest request;
  request.space = ptx::Space::Global;
  request.addresses = addresses;
  request.mask = mask;
  request.bytes = bytes;
  request.alignment = 1;
  request.reads = true;
  request.kind = RaceAccess::Kind::Read;
  request.count = false;
  AccessTargets found;
  resolve_access(issue.context, issue.step, issue.detail, request, found);
  for_each_lane(found.mask,
                [&](unsigned lane) { load_bytes(elements[lane], found.host[lane], bytes); });
  return found.mask;
}

/// A fetch from one texture by some lanes.
class Fetch {
 public:
  Fetch(const TextureIssue& issue, const ImageObject& object, std::uint32_t lanes)
      : issue_(issue), texels_(object.texels), sampler_(object.sampler), lanes_(lanes) {
    const bool gathers = issue.texture.action == TextureAction::Gather;
    const unsigned first = issue.texture.layered ? 1 : 0;
    for_each_lane(lanes, [&](unsigned lane) {
      for (unsigned axis = 0; axis < issue.texture.dimensions; ++axis) {
        const std::uint32_t bits = coordinate_bits(issue, first + axis, lane);
        const std::uint32_t size = texels_.size(axis);
        axes_[lane][axis] = issue.texture.integer
                                ? axis_texel(sampler_, axis, size, static_cast<std::int32_t>(bits))
                            : gathers
                                ? axis_footprint(sampler_, axis, size, std::bit_cast<float>(bits))
                                : axis_texels(sampler_, axis, size, std::bit_cast<float>(bits));
      }
      // A layer beyond the last is the last one.
      if (issue.texture.layered) {
        layer_[lane] = std::min(coordinate_bits(issue, 0, lane), texels_.layers - 1);
      }
    });
  }

  void run() {
    if (issue_.texture.action == TextureAction::Gather) {
      // PTX ISA, tld4: (i0, j1), (i1, j1), (i1, j0), (i0, j0).
      constexpr unsigned kCorners[] = {2, 3, 1, 0};
      for (unsigned i = 0; i < kChannels; ++i) gather(kCorners[i], i);
    } else if (sampler_.linear && !issue_.texture.integer) {
      filter();
    } else {
      nearest();
    }
  }

 private:
  /// The share of a corner (a bit for each axis: its second element) in a filtered value, in units
  /// of 2^-8 for each axis.
  [[nodiscard]] std::uint32_t share(unsigned corner, unsigned lane) const {
    std::uint32_t product = 1;
    for (unsigned axis = 0; axis < issue_.texture.dimensions; ++axis) {
      const std::uint32_t second = axes_[lane][axis].weight;
      product *= (corner >> axis & 1u) != 0 ? second : 256 - second;
    }
    return product;
  }

  /// Reads the element at a corner in the lanes of `mask`; the border's value is in no memory.
  void read(unsigned corner, std::uint32_t mask) {
    std::uint64_t addresses[kLanes] = {};
    border_ = 0;
    for_each_lane(mask, [&](unsigned lane) {
      std::array<std::int64_t, 3> at{};
      for (unsigned axis = 0; axis < issue_.texture.dimensions; ++axis) {
        at[axis] = axes_[lane][axis].index[corner >> axis & 1u];
        if (at[axis] == AxisTexels::kBorder) border_ |= 1u << lane;
      }
      const auto slices = static_cast<std::uint64_t>(at[2]) + layer_[lane];
      addresses[lane] = texels_.address +
                        static_cast<std::uint64_t>(at[0]) * texels_.element_bytes() +
                        static_cast<std::uint64_t>(at[1]) * texels_.pitch + slices * texels_.slice;
    });
    read_ = read_elements(issue_, addresses, mask & ~border_, texels_.element_bytes(), elements_);
  }

  /// Of the element that `read` read; 0 for a channel that the texture lacks.
  [[nodiscard]] std::uint32_t bits(unsigned lane, unsigned channel) const {
    if (channel >= texels_.channels) return 0;
    if ((border_ >> lane & 1u) != 0) return texels_.linear ? 0 : sampler_.border[channel];
    return (read_ >> lane & 1u) != 0 ? channel_bits(texels_, sampler_, elements_[lane], channel)
                                     : 0;
  }

  void put(unsigned lane, unsigned result, std::uint32_t value) const {
    if (result >= issue_.detail.data.size()) return;
    const Slot& slot = issue_.detail.data[result];
    if (!slot.present()) return;
    if (issue_.texture.type != ptx::Type::f16) return set_lane(issue_.context, slot, lane, value);
    const bool real = reads_float(texels_, sampler_);
    set_lane(issue_.context, slot, lane,
             real ? float_to_f16(std::bit_cast<float>(value)) : value & 0xffffu);
  }

  void nearest() {
    read(0, lanes_);
    for_each_lane(lanes_, [&](unsigned lane) {
      for (unsigned c = 0; c < kChannels; ++c) put(lane, c, bits(lane, c));
    });
  }

  void gather(unsigned corner, unsigned result) {
    read(corner, lanes_);
    for_each_lane(lanes_,
                  [&](unsigned lane) { put(lane, result, bits(lane, issue_.texture.component)); });
  }

  /// Sums in f64, in which each term is exact, and rounds once.
  void filter() {
    double sums[kLanes][kChannels] = {};
    const unsigned corners = 1u << issue_.texture.dimensions;
    const double unit = std::ldexp(1.0, -8 * static_cast<int>(issue_.texture.dimensions));
    for (unsigned corner = 0; corner < corners; ++corner) {
      std::uint32_t mask = 0;
      for_each_lane(lanes_, [&](unsigned lane) {
        if (share(corner, lane) != 0) mask |= 1u << lane;
      });
      if (mask == 0) continue;
      read(corner, mask);
      for_each_lane(mask, [&](unsigned lane) {
        const double weight = share(corner, lane) * unit;
        for (unsigned c = 0; c < kChannels; ++c) {
          sums[lane][c] += weight * static_cast<double>(std::bit_cast<float>(bits(lane, c)));
        }
      });
    }
    for_each_lane(lanes_, [&](unsigned lane) {
      for (unsigned c = 0; c < kChannels; ++c) {
        put(lane, c, std::bit_cast<std::uint32_t>(static_cast<float>(sums[lane][c])));
      }
    });
  }

  const TextureIssue& issue_;
  const Texels& texels_;
  const Sampler& sampler_;
  std::uint32_t lanes_;
  AxisTexels axes_[kLanes][3];
  std::uint32_t layer_[kLanes] = {};
  std::uint32_t border_ = 0;
  std::uint32_t read_ = 0;
  std::byte elements_[kLanes][kMaxElementBytes] = {};
};

/// Accesses of some lanes to one surface.
class SurfaceAccess {
 public:
  SurfaceAccess(const TextureIssue& issue, const ImageObject& object, std::uint64_t handle)
      : issue_(issue),
        texels_(object.texels),
        handle_(handle),
        bytes_(unsigned{issue.detail.element_bytes} * issue.detail.elements) {}

  void run(std::uint32_t lanes) {
    std::uint32_t mask = lanes;
    for_each_lane(lanes, [&](unsigned lane) {
      if (!place(lane)) mask &= ~(1u << lane);
    });
    if (issue_.texture.action == TextureAction::Store) return store(mask);
    std::byte data[kLanes][kMaxElementBytes] = {};
    if (mask != 0) read_elements(issue_, addresses_, mask, bytes_, data);
    for_each_lane(lanes, [&](unsigned lane) {
      for (std::size_t i = 0; i < issue_.detail.data.size(); ++i) {
        set_element(issue_.context, issue_.detail.data[i], lane,
                    data[lane] + i * issue_.detail.element_bytes, issue_.detail.element_bytes);
      }
    });
  }

 private:
  /// Finds a lane's address; false if it accesses nothing.
  bool place(unsigned lane) {
    const TextureDetail& texture = issue_.texture;
    const unsigned first = texture.layered ? 1 : 0;
    // In bytes, rows, slices or layers.
    std::array<std::int64_t, 3> at{};
    std::array<std::int64_t, 3> last{std::int64_t{texels_.width} * texels_.element_bytes() - bytes_,
                                     std::int64_t{texels_.height} - 1,
                                     std::int64_t{texels_.depth} - 1};
    for (unsigned axis = 0; axis < texture.dimensions; ++axis) {
      at[axis] = static_cast<std::int32_t>(coordinate_bits(issue_, first + axis, lane));
    }
    if (texture.layered) {
      at[2] = static_cast<std::int32_t>(coordinate_bits(issue_, 0, lane));
      last[2] = std::int64_t{texels_.layers} - 1;
    }
    bool outside = false;
    for (unsigned i = 0; i < 3; ++i) outside |= at[i] < 0 || at[i] > last[i];
    if (outside && texture.boundary == Modifier::trap) report_outside(lane, at);
    if (outside && texture.boundary != Modifier::clamp) return false;
    for (unsigned i = 0; i < 3; ++i) at[i] = std::max<std::int64_t>(std::min(at[i], last[i]), 0);
    if (last[0] < 0) return false;
    if (at[0] % bytes_ != 0) {
      report_misaligned(lane, at[0]);
      return false;
    }
    addresses_[lane] = texels_.address + static_cast<std::uint64_t>(at[0]) +
                       static_cast<std::uint64_t>(at[1]) * texels_.pitch +
                       static_cast<std::uint64_t>(at[2]) * texels_.slice;
    return true;
  }

  [[nodiscard]] std::string_view verb() const {
    return issue_.texture.action == TextureAction::Store ? "writes" : "reads";
  }

  void report_outside(unsigned lane, const std::array<std::int64_t, 3>& at) const {
    issue_.report(Rule::OutOfBounds, lane, [&] {
      const TextureDetail& texture = issue_.texture;
      std::string where = format_text("byte {}", at[0]);
      if (texture.dimensions > 1) where += format_text(" of row {}", at[1]);
      if (texture.dimensions > 2) where += format_text(", slice {},", at[2]);
      if (texture.layered) where += format_text(", layer {},", at[2]);
      FindingText text;
      text.message =
          format_text("thread {} {} at {} of surface object {}, outside of it ({})", verb(),
                      count_text(bytes_, "byte"), where, handle_, texels_.text());
      text.details.emplace_back(
          "the first coordinate is in bytes: multiply it by the size of an element");
      text.details.emplace_back(
          "compare the coordinates with the sizes, or use .clamp or .zero instead of .trap");
      text.subject = format_text("surface object {}", handle_);
      return text;
    });
  }

  void report_misaligned(unsigned lane, std::int64_t x) const {
    issue_.report(Rule::Misaligned, lane, [&] {
      FindingText text;
      text.message = format_text(
          "thread {} {} at byte {} of a row of surface object {}, which is "
          "not a multiple of {}",
          verb(), count_text(bytes_, "byte"), x, handle_, bytes_);
      text.details.emplace_back(
          "the first coordinate is in bytes: multiply it by the size of an element");
      text.subject = format_text("surface object {}", handle_);
      return text;
    });
  }

  void store(std::uint32_t mask) {
    if (mask == 0) return;
    std::byte values[kLanes][kMaxElementBytes] = {};
    for_each_lane(mask, [&](unsigned lane) {
      for (std::size_t i = 0; i < issue_.detail.data.size(); ++i) {
        get_element(issue_.context, issue_.detail.data[i], lane,
                    values[lane] + i * issue_.detail.element_bytes, issue_.detail.element_bytes);
      }
    });
    AccessRequest request;
    request.space = ptx::Space::Global;
    request.addresses = addresses_;
    request.mask = mask;
    request.bytes = bytes_;
    request.alignment = 1;
    request.writes = true;
    request.kind = RaceAccess::Kind::Write;
    request.values = values[0];
    request.value_stride = kMaxElementBytes;
    request.count = false;
    AccessTargets found;
    resolve_access(issue_.context, issue_.step, issue_.detail, request, found);
    for_each_lane(found.mask,
                  [&](unsigned lane) { store_bytes(found.host[lane], values[lane], bytes_); });
  }

  const TextureIssue& issue_;
  const Texels& texels_;
  std::uint64_t handle_;
  unsigned bytes_;
  std::uint64_t addresses_[kLanes] = {};
};

std::uint32_t answer(const ImageObject& object, Modifier query) {
  const Texels& texels = object.texels;
  switch (query) {
    case Modifier::width:
      return texels.width;
    case Modifier::height:
      return texels.dimensions > 1 ? texels.height : 0;
    case Modifier::depth:
      return texels.dimensions > 2 ? texels.depth : 0;
    case Modifier::array_size:
      return texels.layers;
    default:
      return object.sampler.normalized ? 1 : 0;
  }
}

}  // namespace

void run_fetch(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const TextureIssue issue(context, step);
  // A destination may be a coordinate: lanes of one object are done before those of the next, and
  // a lane's coordinates are read before its results are written.
  std::uint32_t fetched = 0;
  for_each_object(issue, mask, [&](const ImageObject& object, std::uint64_t, std::uint32_t lanes) {
    Fetch(issue, object, lanes).run();
    fetched |= lanes;
  });
  for (std::size_t i = 0; i < issue.detail.data.size(); ++i) {
    const Slot& slot = issue.detail.data[i];
    if (!slot.present()) continue;
    for_each_lane(mask & ~fetched, [&](unsigned lane) { set_lane(context, slot, lane, 0); });
    // All of a texture's memory is resident.
    if (i == kChannels) {
      for_each_lane(fetched, [&](unsigned lane) { set_lane(context, slot, lane, 1); });
    }
  }
}

void run_surface(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const TextureIssue issue(context, step);
  std::uint32_t reached = 0;
  for_each_object(issue, mask,
                  [&](const ImageObject& object, std::uint64_t handle, std::uint32_t lanes) {
                    SurfaceAccess(issue, object, handle).run(lanes);
                    reached |= lanes;
                  });
  if (issue.texture.action == TextureAction::Store) return;
  for (const Slot& slot : issue.detail.data) {
    if (!slot.present()) continue;
    for_each_lane(mask & ~reached, [&](unsigned lane) { set_lane(context, slot, lane, 0); });
  }
}

void run_image_query(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const TextureIssue issue(context, step);
  const Slot& slot = issue.detail.data[0];
  std::uint32_t reached = 0;
  for_each_object(issue, mask, [&](const ImageObject& object, std::uint64_t, std::uint32_t lanes) {
    const std::uint32_t value = answer(object, issue.texture.query);
    for_each_lane(lanes, [&](unsigned lane) { set_lane(context, slot, lane, value); });
    reached |= lanes;
  });
  for_each_lane(mask & ~reached, [&](unsigned lane) { set_lane(context, slot, lane, 0); });
}

}  // namespace ptxgen::inline v0::emulator
