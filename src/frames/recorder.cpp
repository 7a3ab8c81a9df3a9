// src/frames/recorder.cpp - the frames of a launch
#include "ptxgen/frames/recorder.hpp"

#include <algorithm>

namespace ptxgen::inline v0::frames {

void BlockMarks::see(const emulator::Moment& moment) {
  if (blocks_.empty()) {
    const std::uint64_t count = moment.grid_size().count();
    if (count > kMaxShownBlocks) return;
    blocks_.assign(count, Frame::Block::Waiting);
  }
  const std::uint64_t block = moment.block_number();
  if (block == current_) return;
  if (current_ < blocks_.size()) blocks_[current_] = Frame::Block::Ran;
  blocks_[block] = Frame::Block::Current;
  current_ = block;
}

FrameRecorder::FrameRecorder(const emulator::Device& device, FrameOptions options)
    : device_(device), options_(std::move(options)) {
  options_.max_frames = std::max<std::size_t>(options_.max_frames, 1);
  options_.every = std::max<std::uint64_t>(options_.every, 1);
}

FrameRecorder::~FrameRecorder() = default;

std::span<const Frame> FrameRecorder::frames() const noexcept {
  return std::span(frames_).subspan(first_);
}

bool FrameRecorder::selects(const emulator::Moment& moment) const {
  if (options_.one_block && moment.block_number() != options_.block) return false;
  if (options_.one_warp && moment.warp() != options_.warp) return false;
  if (options_.lines.empty() && !options_.barriers) return true;
  if (options_.barriers && is_barrier(moment.instruction())) return true;
  return std::ranges::find(options_.lines, moment.line()) != options_.lines.end();
}

bool FrameRecorder::before(const emulator::Moment& moment) {
  marks_.see(moment);
  instructions_ = moment.number() + 1;
  if (kernel_.empty()) {
    kernel_ = std::string(moment.module().text(moment.function().name));
    grid_ = moment.grid_size();
    block_size_ = moment.block_size();
  }
  if (!selects(moment) || selected_++ % options_.every != 0) return true;
  Frame frame = capture(moment, device_, options_.watches, options_.buffers);
  frame.blocks = marks_.blocks();
  add(std::move(frame));
  return true;
}

void FrameRecorder::finish(const emulator::Result& result) {
  Frame frame = final_frame(result, device_, options_.watches, options_.buffers);
  frame.number = instructions_;
  frame.kernel = kernel_;
  frame.grid = grid_;
  frame.block_size = block_size_;
  frame.blocks.assign(marks_.blocks().size(), Frame::Block::Ran);
  add(std::move(frame));
}

void FrameRecorder::add(Frame frame) {
  frames_.push_back(std::move(frame));
  if (frames_.size() - first_ <= options_.max_frames) return;
  ++first_;
  ++dropped_;
  // Dropped frames are freed together, which keeps the cost of one constant.
  if (first_ < options_.max_frames) return;
  frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(first_));
  first_ = 0;
}

const Frame* FrameRecorder::at(std::uint64_t number) const noexcept {
  const std::span<const Frame> kept = frames();
  if (kept.empty()) return nullptr;
  const auto after = std::ranges::upper_bound(kept, number, {}, &Frame::number);
  return after == kept.begin() ? kept.data() : &*(after - 1);
}

Frame final_frame(const emulator::Result& result, const emulator::Device& device,
                  std::span<const Watch> watches, std::span<const Buffer> buffers) {
  Frame frame;
  frame.finished = true;
  frame.watched = read_watches(device, watches, buffers);
  frame.findings = result.findings.size();
  if (!result.findings.empty()) {
    frame.finding = finding_line(result.findings.back().finding);
  }
  return frame;
}

}  // namespace ptxgen::inline v0::frames
