// src/tile/shape.cpp - rules of tile shapes
#include "ptxgen/tile/shape.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "tile/limit_finding.hpp"

namespace ptxgen::inline v0::tile {

namespace {

constexpr std::uint64_t kTooMany = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept {
  return a != 0 && b > kTooMany / a ? kTooMany : a * b;
}
constexpr bool power_of_two(std::int64_t dim) noexcept {
  return std::has_single_bit(static_cast<std::uint64_t>(dim));
}

std::string text(std::int64_t dim) { return dim == kDynamicDim ? "dynamic" : std::to_string(dim); }

std::string shape_text(const Tile& tile) {
  std::string shape = "[";
  for (std::size_t i = 0; i < tile.shape.size(); ++i) {
    shape += (i == 0 ? "" : ", ") + text(tile.shape[i]);
  }
  return format_text("{}]", shape);
}

/// The checks of one tile. Each returns whether it found nothing.
class ShapeCheck {
 public:
  ShapeCheck(const Tile& tile, const TileCaps& caps) : tile_(tile), caps_(caps) {}

  std::vector<Finding> run() {
    // In this order, since each rule relies on the ones before it.
    (void)(positive() && powers() && count() && whole_bytes() && level() && paddings());
    return std::move(findings_);
  }

 private:
  bool positive() { return each_dim(&ShapeCheck::dim_positive); }
  bool powers() { return each_dim(&ShapeCheck::dim_power); }
  bool level() { return each_dim(&ShapeCheck::dim_level); }

  bool each_dim(void (ShapeCheck::*check)(std::size_t, std::int64_t)) {
    for (std::size_t i = 0; i < tile_.shape.size(); ++i) (this->*check)(i, tile_.shape[i]);
    return findings_.empty();
  }

  void dim_positive(std::size_t i, std::int64_t dim) {
    if (dim > 0) return;
    if (dim == kDynamicDim) {
      report(format_text("dim {} is dynamic", i),
             "a tile's shape is known when the kernel is built",
             "choose a power of two, and let the bounds cut off the last tile");
      return;
    }
    report(format_text("dim {} is {}", i, text(dim)), "every dim of a tile is at least 1",
           "the nearest legal dim is 1");
  }

  void dim_power(std::size_t i, std::int64_t dim) {
    if (power_of_two(dim)) return;
    const auto value = static_cast<std::uint64_t>(dim);
    const std::uint64_t below = std::bit_floor(value);
    const std::uint64_t cap = caps_.dim[static_cast<std::size_t>(tile_.level)];
    std::string cure = "the nearest legal dim is ";
    if (below > cap) {
      cure += std::to_string(cap);
    } else if (const std::uint64_t above = below * 2; above > cap) {
      cure += std::to_string(below);
    } else if (value - below == above - value) {
      cure = format_text("the nearest legal dims are {} and {}", below, above);
    } else {
      cure += std::to_string(value - below < above - value ? below : above);
    }
    report(format_text("dim {} is {}, which is not a power of two", i, text(dim)),
           "every dim of a tile is a power of two", cure);
  }

  bool count() {
    const std::uint64_t limit = caps_.elements;
    std::uint64_t product = 1;
    for (std::size_t i = 0; i < tile_.shape.size(); ++i) {
      const auto dim = static_cast<std::uint64_t>(tile_.shape[i]);
      if (dim <= limit / product) {
        product *= dim;
        continue;
      }
      const std::uint64_t all = elements(tile_);
      report(format_text("it has {} elements, beyond the limit at dim {}, which is {}",
                         (all == kTooMany ? "2^64 or more" : std::to_string(all)), i,
                         text(tile_.shape[i])),
             format_text("a tile has at most {}", count_text(limit, "element")),
             format_text("make dim {} at most {}{}", i, std::bit_floor(limit / product),
                         (i + 1 == tile_.shape.size() ? "" : " and the dims after it 1")));
      return false;
    }
    return true;
  }

  // Two elements of 4 bits share a byte; four of 2 bits, eight of 1.
  bool whole_bytes() {
    const unsigned bits = ptx::bits(tile_.element);
    if (bits == 0 || bits >= 8 || tile_.shape.empty()) return true;
    const std::size_t last = tile_.shape.size() - 1;
    const std::int64_t in_byte = 8 / bits;
    if (tile_.shape[last] % in_byte == 0) return true;
    report(format_text("dim {} is {}, and an element .{} has {} bits", last,
                       text(tile_.shape[last]), ptx::name(tile_.element), bits),
           "the last dim of a tile fills whole bytes",
           format_text("the nearest legal dim is {}", in_byte));
    return false;
  }

  void dim_level(std::size_t i, std::int64_t dim) {
    const std::uint64_t cap = caps_.dim[static_cast<std::size_t>(tile_.level)];
    if (static_cast<std::uint64_t>(dim) <= cap) return;
    report(format_text("dim {} is {}", i, text(dim)),
           format_text("a dim of a {}'s tile is at most {}", to_string(tile_.level), cap),
           format_text("the nearest legal dim is {}; process the rest in a loop",
                       std::bit_floor(cap)));
  }

  bool paddings() {
    if (!tile_.padding.empty() && tile_.padding.size() != tile_.shape.size()) {
      report(
          format_text("it has {} paddings for {} dims", tile_.padding.size(), tile_.shape.size()),
          "each dim has a padding, or none has", "give one for each dim, 0 where there is none");
      return false;
    }
    for (std::size_t i = 0; i < tile_.padding.size(); ++i) {
      if (tile_.padding[i] >= 0) continue;
      report(format_text("the padding of dim {} is {}", i, text(tile_.padding[i])),
             "a padding is a number of elements, 0 or more", "the nearest legal padding is 0");
    }
    return findings_.empty();
  }

  void report(std::string what, std::string rule, std::string cure) {
    findings_.push_back(limit_finding(
        Severity::Error,
        format_text("tile '{}' of shape {}: {}", tile_.name, shape_text(tile_), std::move(what)),
        std::move(rule), std::move(cure)));
  }

  const Tile& tile_;
  const TileCaps& caps_;
  std::vector<Finding> findings_;
};

std::uint64_t product(const Tile& tile, bool padded) noexcept {
  std::uint64_t all = 1;
  for (std::size_t i = 0; i < tile.shape.size(); ++i) {
    const std::int64_t dim = tile.shape[i];
    const std::int64_t free = padded && i < tile.padding.size() ? tile.padding[i] : 0;
    if (dim < 0 || free < 0) return kTooMany;
    all = times(all, static_cast<std::uint64_t>(dim) + static_cast<std::uint64_t>(free));
  }
  return all;
}

}  // namespace

std::string_view to_string(TileLevel level) noexcept {
  constexpr std::string_view kNames[] = {"grid", "block", "warp"};
  return kNames[static_cast<std::size_t>(level)];
}

std::uint64_t elements(const Tile& tile) noexcept { return product(tile, false); }

std::uint64_t bytes(const Tile& tile) noexcept {
  const std::uint64_t count = product(tile, true);
  const unsigned bits = ptx::bits(tile.element);
  if (bits < 8) return count == kTooMany ? kTooMany : count / 8 * bits + (count % 8 * bits + 7) / 8;
  return times(count, bits / 8);
}

std::vector<Finding> validate(const Tile& tile, const TileCaps& caps) {
  return ShapeCheck(tile, caps).run();
}

void require_none(const std::vector<Finding>& findings, std::string_view kernel,
                  std::string_view target) {
  if (findings.empty()) return;
  const Finding& first = findings.front();
  std::string message = first.message;
  for (const std::string& detail : first.details) message += format_text("; {}", detail);
  Error error(Stage::Build, "tile-limits", std::move(message));
  error.kernel = kernel;
  error.target = target;
  for (const Finding& finding : findings) error.log += format_text("{}\n", to_text(finding));
  throw error.refresh();
}

void require_valid(const Tile& tile, const TileCaps& caps) {
  require_none(validate(tile, caps), {}, {});
}

}  // namespace ptxgen::inline v0::tile
