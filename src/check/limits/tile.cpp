// src/check/limits/tile.cpp - rules of tile shapes and targets
#include "ptxgen/check/tile.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <string>

#include "check/limits/limit_findings.hpp"
#include "ptxgen/ptx/limits.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

namespace {

constexpr std::uint64_t kTooMany = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept {
  return a != 0 && b > kTooMany / a ? kTooMany : a * b;
}
constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b) noexcept {
  return b > kTooMany - a ? kTooMany : a + b;
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
    const std::uint64_t most = caps_.elements;
    std::uint64_t product = 1;
    for (std::size_t i = 0; i < tile_.shape.size(); ++i) {
      const auto dim = static_cast<std::uint64_t>(tile_.shape[i]);
      if (dim <= most / product) {
        product *= dim;
        continue;
      }
      const std::uint64_t all = elements(tile_);
      report(format_text("it has {} elements, beyond the limit at dim {}, which is {}",
                         (all == kTooMany ? "2^64 or more" : std::to_string(all)), i,
                         text(tile_.shape[i])),
             format_text("a tile has at most {}", count_text(most, "element")),
             format_text("make dim {} at most {}{}", i, std::bit_floor(most / product),
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

/// The checks of a kernel's resources.
class ResourceCheck {
 public:
  ResourceCheck(const KernelTiles& kernel, const ptx::Target& target)
      : kernel_(kernel), target_(target), limits_(ptx::limits(target.name)) {}

  std::vector<Finding> run(bool shapes_are_legal) {
    threads();
    registers();
    static_shared();
    all_shared();
    if (shapes_are_legal) shared_tiles();
    return std::move(findings_);
  }

 private:
  void threads() {
    if (kernel_.block == std::array<std::uint64_t, 3>{0, 0, 0}) return;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint64_t count = kernel_.block[i];
      const std::string side =
          format_text("a block has {} in {}", count_text(count, "thread"), "xyz"[i]);
      if (count == 0) {
        report(side, "a block has at least 1 thread along each side", "make it 1");
      } else if (count > limits_.block[i]) {
        report(side,
               format_text("{}{} in {}", "a block has at most ",
                           count_text(limits_.block[i], "thread"), "xyz"[i]),
               format_text("make it at most {}", limits_.block[i]));
      }
    }
    if (!findings_.empty()) return;
    threads_ = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
    if (threads_ <= limits_.threads_per_block) return;
    report(format_text("a block has {}", count_text(threads_, "thread")),
           format_text("a block has at most {}", count_text(limits_.threads_per_block, "thread")),
           format_text("make it at most {}, and let each work on more elements",
                       count_text(limits_.threads_per_block, "thread")));
    threads_ = 0;
  }

  void registers() {
    const std::uint64_t own = kernel_.registers_per_thread;
    if (own > limits_.registers_per_thread) {
      report(format_text("a thread has {}", count_text(own, "register")),
             format_text("a thread has at most {} of 32 bits",
                         count_text(limits_.registers_per_thread, "register")),
             "keep less alive at once; the assembler spills the rest to local memory");
      return;
    }
    if (threads_ == 0 || own == 0) return;
    // Hardware allocates registers by warp, in steps of 8 per thread.
    const std::uint64_t taken = (threads_ + 31) / 32 * 32 * ((own + 7) / 8 * 8);
    if (taken <= limits_.registers_per_block) return;
    const std::uint64_t fitting = limits_.registers_per_block / ((threads_ + 31) / 32 * 32) / 8 * 8;
    report(
        format_text("{} of {} take {}", count_text(threads_, "thread"), count_text(own, "register"),
                    taken),
        format_text("a block has at most {}", count_text(limits_.registers_per_block, "register")),
        format_text("with that many threads at most {} fit", count_text(fitting, "register")));
  }

  void static_shared() {
    if (kernel_.static_shared_bytes <= target_.shared_per_block) return;
    findings_.push_back(
        static_shared_finding(kernel_.kernel, kernel_.static_shared_bytes, target_));
  }

  void all_shared() {
    const std::uint64_t all = plus(kernel_.static_shared_bytes, kernel_.dynamic_shared_bytes);
    if (all <= target_.shared_per_block_opt_in) return;
    report(format_text("{} static and {} dynamic bytes of shared memory",
                       kernel_.static_shared_bytes, kernel_.dynamic_shared_bytes),
           format_text("a block on {} has at most {}, static and dynamic together", target_.name,
                       count_text(target_.shared_per_block_opt_in, "byte")),
           "make the tiles smaller, or keep fewer of them at once");
  }

  void shared_tiles() {
    std::uint64_t sum = 0;
    for (const Tile& tile : kernel_.tiles) {
      if (tile.storage == TileStorage::Shared) sum = plus(sum, bytes(tile));
    }
    const std::uint64_t there = plus(kernel_.static_shared_bytes, kernel_.dynamic_shared_bytes);
    if (sum <= there) return;
    report(
        format_text("its shared tiles take {} bytes",
                    (sum == kTooMany ? "2^64 or more" : std::to_string(sum))),
        format_text("the tiles are in the kernel's {} of shared memory", count_text(there, "byte")),
        "declare or launch with as many bytes as the tiles and their padding take");
  }

  void report(std::string what, std::string rule, std::string cure) {
    Finding finding = limit_finding(Severity::Error,
                                    format_text("kernel '{}': {}", kernel_.kernel, std::move(what)),
                                    std::move(rule), std::move(cure));
    finding.kernel = kernel_.kernel;
    findings_.push_back(std::move(finding));
  }

  const KernelTiles& kernel_;
  const ptx::Target& target_;
  const ptx::Limits& limits_;
  std::uint64_t threads_ = 0;
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

std::vector<Finding> validate(const KernelTiles& kernel, const ptx::Target& target,
                              const TileCaps& caps) {
  std::vector<Finding> all;
  const auto add = [&](std::vector<Finding> found) {
    all.insert(all.end(), std::make_move_iterator(found.begin()),
               std::make_move_iterator(found.end()));
  };
  for (const Tile& tile : kernel.tiles) add(validate(tile, caps));
  for (Finding& finding : all) finding.kernel = kernel.kernel;
  add(ResourceCheck(kernel, target).run(all.empty()));
  return all;
}

void require_valid(const KernelTiles& kernel, const ptx::Target& target, const TileCaps& caps) {
  const std::vector<Finding> findings = validate(kernel, target, caps);
  if (findings.empty()) return;
  const Finding& first = findings.front();
  std::string message = first.message;
  for (const std::string& detail : first.details) message += format_text("; {}", detail);
  Error error(Stage::Build, "tile-limits", std::move(message));
  error.kernel = kernel.kernel;
  error.target = target.name;
  for (const Finding& finding : findings) error.log += format_text("{}\n", to_text(finding));
  throw error.refresh();
}

}  // namespace ptxgen::inline v0::gates
