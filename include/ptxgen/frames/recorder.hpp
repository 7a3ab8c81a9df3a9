// ptxgen/frames/recorder.hpp - the frames of a launch
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/emulator/observer.hpp"
#include "ptxgen/frames/frame.hpp"

namespace ptxgen::inline v0::frames {

/// Which frames are recorded, and what they show.
struct FrameOptions {
  std::vector<Watch> watches;
  std::vector<Buffer> buffers;  ///< that watches name
  /// Frames before instructions of these PTX lines, and before barriers if `barriers`. Without
  /// both, before all instructions.
  std::vector<std::uint32_t> lines;
  bool barriers = false;
  bool one_block = false;  ///< only those of block number `block`
  std::uint64_t block = 0;
  bool one_warp = false;  ///< only those of warp `warp` of the block
  std::uint32_t warp = 0;
  std::uint64_t every = 1;  ///< of these, each N-th
  /// The newest frames that are kept, at least 1.
  std::size_t max_frames = 1024;
};

/// Marks the blocks of a grid that have run.
class BlockMarks {
 public:
  void see(const emulator::Moment& moment);
  /// For Frame::blocks; empty for large grids.
  [[nodiscard]] const std::vector<Frame::Block>& blocks() const noexcept { return blocks_; }

 private:
  std::vector<Frame::Block> blocks_;
  std::uint64_t current_ = ~std::uint64_t{0};
};

/// Records frames of a launch: `emulator::observe(program, launch, recorder)`, then `finish`. For
/// one launch. `device` is that of the launch.
class FrameRecorder : public emulator::Observer {
 public:
  FrameRecorder(const emulator::Device& device, FrameOptions options);
  ~FrameRecorder() override;

  bool before(const emulator::Moment& moment) override;
  /// Adds the frame after the launch: the buffers among the watches, the findings.
  void finish(const emulator::Result& result);

  /// In the order of execution; the oldest may have been dropped (FrameOptions::max_frames).
  [[nodiscard]] std::span<const Frame> frames() const noexcept;
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
  /// The last kept frame at or before an instruction of the launch, by its number; the first kept
  /// one if all are later, null without frames.
  [[nodiscard]] const Frame* at(std::uint64_t number) const noexcept;

 private:
  [[nodiscard]] bool selects(const emulator::Moment& moment) const;
  void add(Frame frame);

  const emulator::Device& device_;
  FrameOptions options_;
  BlockMarks marks_;
  std::uint64_t selected_ = 0;
  std::uint64_t instructions_ = 0;
  std::string kernel_;
  emulator::Dim3 grid_, block_size_;
  std::vector<Frame> frames_;
  std::size_t first_ = 0;  ///< of `frames_`, that is kept
  std::uint64_t dropped_ = 0;
};

/// The frame after a launch.
[[nodiscard]] Frame final_frame(const emulator::Result& result, const emulator::Device& device,
                                std::span<const Watch> watches, std::span<const Buffer> buffers);

}  // namespace ptxgen::inline v0::frames
