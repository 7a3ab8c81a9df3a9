// ptxgen/frames/frame.hpp - one step of a launch, and its picture as text
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/observer.hpp"
#include "ptxgen/frames/watch.hpp"

namespace ptxgen::inline v0::frames {

/// A launch before one of its warp instructions, or after the last one.
struct Frame {
  std::uint64_t number = 0;  ///< of the instruction in the launch, from 0; at the end their count
  bool finished = false;     ///< the launch has ended: only kernel, grid, watched and finding
  std::string kernel;        ///< or the device function that runs
  emulator::Dim3 grid;       ///< blocks
  emulator::Dim3 block_size;
  emulator::Dim3 block{0, 0, 0};           ///< %ctaid
  std::uint64_t block_number = 0;          ///< x fastest
  std::uint32_t warp = 0;                  ///< in the block
  std::uint32_t line = 0;                  ///< of the PTX
  std::string instruction;                 ///< as PTX
  bool barrier = false;                    ///< it is a barrier of the block or the cluster
  std::uint32_t active = 0;                ///< lanes at the instruction
  std::uint32_t executing = 0;             ///< of them, those whose guard is true
  std::vector<emulator::WarpState> warps;  ///< of the block
  /// By block number: not begun, has run before, or runs now.
  enum class Block : std::uint8_t { Waiting, Ran, Current };
  std::vector<Block> blocks;  ///< empty for grids of more than kMaxShownBlocks
  std::vector<WatchedValues> watched;
  std::size_t findings = 0;
  std::string finding;  ///< the newest, one line, or empty
};
inline constexpr std::uint64_t kMaxShownBlocks = 4096;

/// Columns and lines of a picture; at least kMinFrame.
struct FrameSize {
  std::size_t width = 80;
  std::size_t height = 24;
  friend bool operator==(const FrameSize&, const FrameSize&) = default;
};
inline constexpr FrameSize kMinFrame{40, 8};

/// What a line of a picture is, for colours.
enum class LineRole : std::uint8_t {
  Title,
  Blocks,
  Source,
  CurrentSource,  ///< the instruction that is executed next
  BreakSource,    ///< a line with a breakpoint
  Warp,
  CurrentWarp,
  Value,
  ChangedValue,  ///< a watch with a value that the frame before did not have
  Finding,
  Empty,
};

struct FrameLine {
  LineRole role = LineRole::Empty;
  std::string text;  ///< exactly FrameSize::width columns of ASCII
};

/// What a picture shows beside the frame itself.
struct FrameStyle {
  FrameSize size;
  std::string_view source;                     ///< the PTX text; empty: no lines around
  std::span<const std::uint32_t> breakpoints;  ///< lines
  const Frame* previous = nullptr;             ///< values that differ from it are marked `*`
  std::size_t scroll = 0;                      ///< rows of watches that are left out at the top
};

/// The picture, exactly `size.height` lines of exactly `size.width` columns. From the top: kernel,
/// block and warp; blocks of the grid (`.` not begun, `=` has run, `>` runs); source lines around
/// the next instruction (`>`, breakpoints `B`); warps of the block, one row for the lanes at each
/// place, a column for each lane (`#` executes, `o` active but its guard is false, `+` elsewhere at
/// that place, `x` exited, `.` at another place); watched values, `-` where none is known; the
/// newest finding. What has no place is counted ("3 more rows"). Throws `Error` (Stage::Emulate,
/// code "frame-size") for a size below kMinFrame.
[[nodiscard]] std::vector<FrameLine> to_lines(const Frame& frame, const FrameStyle& style = {});
/// The same as text; every line ends with a newline.
[[nodiscard]] std::string to_text(const Frame& frame, const FrameStyle& style = {});

/// The frame of a moment, without `blocks`. `device` is that of the launch.
[[nodiscard]] Frame capture(const emulator::Moment& moment, const emulator::Device& device,
                            std::span<const Watch> watches, std::span<const Buffer> buffers);

/// "line 24, out-of-bounds: thread reads 4 bytes at ..."
[[nodiscard]] std::string finding_line(const Finding& finding);

/// Whether an instruction is a barrier of the block or of the cluster.
[[nodiscard]] bool is_barrier(const ptx::Instruction& instruction) noexcept;

}  // namespace ptxgen::inline v0::frames
