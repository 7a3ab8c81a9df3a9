// src/check/limits/tile.cpp - tiles and targets
#include <iterator>
#include <limits>
#include <string>

#include "check/limits/limit_findings.hpp"
#include "ptxgen/check/tile.hpp"
#include "ptxgen/ptx/limits.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

namespace {

constexpr std::uint64_t kTooMany = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b) noexcept {
  return b > kTooMany - a ? kTooMany : a + b;
}

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

}  // namespace

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
  tile::require_none(validate(kernel, target, caps), kernel.kernel, target.name);
}

}  // namespace ptxgen::inline v0::gates
