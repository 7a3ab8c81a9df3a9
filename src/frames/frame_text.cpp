// src/frames/frame_text.cpp - the picture of a frame
#include <algorithm>

#include "ptxgen/frames/frame.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::frames {
namespace {

using emulator::LaneGroup;
using emulator::WarpState;

std::string position_text(const emulator::Dim3& p) {
  return format_text("({},{},{})", p.x, p.y, p.z);
}

/// The text in `width` columns of ASCII; one that is cut ends with `~`.
std::string fitted(std::string text, std::size_t width) {
  for (char& c : text) {
    if (c == '\t') c = ' ';
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > width) {
    text.resize(width);
    text.back() = '~';
  }
  text.resize(width, ' ');
  return text;
}

std::string_view state_name(LaneGroup::State state) {
  switch (state) {
    case LaneGroup::State::Running:
      return "running";
    case LaneGroup::State::Ready:
      return "ready";
    case LaneGroup::State::Barrier:
      return "at barrier";
    case LaneGroup::State::Lanes:
      return "waits for its warp";
    case LaneGroup::State::Warpgroup:
      return "waits for its warpgroup";
  }
  return {};
}

/// A column for each lane: see to_lines.
std::string mask_text(const Frame& frame, const WarpState& warp, const LaneGroup* group) {
  std::string text;
  const bool running = group != nullptr && group->state == LaneGroup::State::Running;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const std::uint32_t bit = 1u << lane;
    if ((warp.lanes & bit) == 0) {
      text += ' ';
    } else if ((warp.exited & bit) != 0) {
      text += 'x';
    } else if (group == nullptr || (group->lanes & bit) == 0) {
      text += '.';
    } else if (!running) {
      text += '+';
    } else {
      text += (frame.executing & bit) != 0 ? '#' : 'o';
    }
  }
  return text;
}

/// Parts of a picture before they are fitted.
using Rows = std::vector<FrameLine>;

Rows warp_rows(const Frame& frame) {
  Rows rows;
  for (std::size_t w = 0; w < frame.warps.size(); ++w) {
    const WarpState& warp = frame.warps[w];
    const std::string label = format_text("warp {:<2} ", w);
    const LineRole role = w == frame.warp ? LineRole::CurrentWarp : LineRole::Warp;
    if (warp.groups.empty()) {
      rows.push_back({role, label + mask_text(frame, warp, nullptr) + " exited"});
    }
    for (const LaneGroup& group : warp.groups) {
      std::string text = label + mask_text(frame, warp, &group);
      text += format_text(" line {} {}", group.line, state_name(group.state));
      if (group.state == LaneGroup::State::Barrier) {
        text += group.barrier == emulator::kClusterBarrierNumber
                    ? std::string(" of the cluster")
                    : format_text(" {}", group.barrier);
      }
      if (group.call_depth != 0) text += format_text(", call depth {}", group.call_depth);
      rows.push_back({role, std::move(text)});
    }
  }
  return rows;
}

/// The watch of that place in the frame before, if it has the same elements: those of another block
/// are others.
const WatchedValues* same_watch(const Frame& frame, const Frame* previous, std::size_t number) {
  if (previous == nullptr || number >= previous->watched.size()) return nullptr;
  const WatchedValues& values = frame.watched[number];
  const WatchedValues& before = previous->watched[number];
  const bool same =
      before.name == values.name && before.first == values.first && before.type == values.type &&
      before.bits.size() == values.bits.size() &&
      (values.kind == WatchedValues::Kind::Global || frame.block_number == previous->block_number);
  return same ? &before : nullptr;
}

std::string element_text(const WatchedValues& values, std::size_t i, const WatchedValues* before) {
  if (!values.known[i]) return "-";
  std::string text = value_text(values.bits[i], values.type);
  if (before != nullptr && (!before->known[i] || before->bits[i] != values.bits[i])) text += '*';
  return text;
}

/// The rows of one watch: as many elements as fit, each row with the number of its first.
void add_values(Rows& rows, const WatchedValues& values, const WatchedValues* before,
                std::size_t width) {
  if (values.kind == WatchedValues::Kind::Absent) {
    rows.push_back({LineRole::Value, values.name + " is no register of this function"});
    return;
  }
  const std::string head = format_text("{} {}", values.name, ptx::name(values.type));
  std::string row;
  LineRole role = LineRole::Value;
  const auto finish = [&] {
    if (!row.empty()) rows.push_back({role, std::move(row)});
    row.clear();
    role = LineRole::Value;
  };
  for (std::size_t i = 0; i < values.bits.size(); ++i) {
    const std::string text = element_text(values, i, before);
    if (!row.empty() && row.size() + 1 + text.size() > width) finish();
    if (row.empty()) {
      row = i == 0 ? head : std::string(head.size(), ' ');
      row += format_text(" [{}]", values.first + i);
    }
    row += ' ' + text;
    if (text.back() == '*') role = LineRole::ChangedValue;
  }
  finish();
  if (values.bits.empty()) rows.push_back({LineRole::Value, head + " has no element here"});
}

Rows value_rows(const Frame& frame, const FrameStyle& style) {
  Rows rows;
  for (std::size_t i = 0; i < frame.watched.size(); ++i) {
    add_values(rows, frame.watched[i], same_watch(frame, style.previous, i), style.size.width);
  }
  return rows;
}

/// `count` rows from `first` on; the last one counts those after it.
Rows window(const Rows& rows, std::size_t first, std::size_t count) {
  first = std::min(first, rows.size() - std::min(rows.size(), count));
  Rows shown(rows.begin() + static_cast<std::ptrdiff_t>(first),
             rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), first + count)));
  const std::size_t after = rows.size() - first - shown.size();
  if (after != 0 && !shown.empty()) {
    shown.back() = {LineRole::Empty, count_text(after + 1, "more row")};
  }
  return shown;
}

/// The rows of the warps so that the running one is among them.
Rows warp_window(const Rows& rows, std::size_t count) {
  if (rows.size() <= count) return rows;
  std::size_t current = 0;
  while (current < rows.size() && rows[current].role != LineRole::CurrentWarp) ++current;
  return window(rows, current + 1 < count ? 0 : current + 2 - count, count);
}

std::string blocks_text(const Frame& frame, std::size_t width) {
  const std::string head = format_text("blocks of {} ", position_text(frame.grid));
  const std::size_t columns = std::max<std::size_t>(width - std::min(width, head.size()), 1);
  const std::size_t each = (frame.blocks.size() + columns - 1) / columns;
  std::string text = head;
  for (std::size_t first = 0; first < frame.blocks.size(); first += each) {
    const auto last = std::min(first + each, frame.blocks.size());
    const auto at = [&](Frame::Block block) {
      return std::find(frame.blocks.begin() + static_cast<std::ptrdiff_t>(first),
                       frame.blocks.begin() + static_cast<std::ptrdiff_t>(last),
                       block) != frame.blocks.begin() + static_cast<std::ptrdiff_t>(last);
    };
    text += at(Frame::Block::Current) ? '>' : at(Frame::Block::Waiting) ? '.' : '=';
  }
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

Rows source_rows(const Frame& frame, const FrameStyle& style, std::size_t count) {
  Rows rows;
  if (frame.finished) return rows;
  const std::vector<std::string_view> lines = split_lines(style.source);
  if (frame.line == 0 || frame.line > lines.size()) {
    rows.push_back(
        {LineRole::CurrentSource, format_text("> {:>4} {}", frame.line, frame.instruction)});
    return rows;
  }
  const std::size_t before = count / 2;
  const std::size_t current = frame.line - 1;
  std::size_t first = current - std::min(current, before);
  first = std::min(first, lines.size() - std::min(lines.size(), count));
  for (std::size_t i = first; i < std::min(first + count, lines.size()); ++i) {
    const bool stop = std::ranges::find(style.breakpoints, i + 1) != style.breakpoints.end();
    const bool is_current = i == current;
    rows.push_back(
        {is_current ? LineRole::CurrentSource
         : stop     ? LineRole::BreakSource
                    : LineRole::Source,
         format_text("{}{}{:>4} {}", is_current ? '>' : ' ', stop ? 'B' : ' ', i + 1, lines[i])});
  }
  return rows;
}

std::string title(const Frame& frame) {
  if (frame.finished) {
    return format_text("{}: the launch has ended after {}", frame.kernel,
                       count_text(frame.number, "warp instruction"));
  }
  const std::uint64_t warps = (frame.block_size.count() + 31) / 32;
  return format_text("{}  step {}  block {}  warp {} of {}", frame.kernel, frame.number,
                     position_text(frame.block), frame.warp, warps);
}

/// How many rows each part gets.
struct Shares {
  std::size_t source = 0, warps = 0, values = 0;
};

Shares shares_of(std::size_t rest, std::size_t warps, std::size_t values, bool has_source) {
  Shares shares;
  const std::size_t min_source = has_source ? std::min<std::size_t>(5, rest / 3) : 1;
  const std::size_t free = rest - std::min(rest, min_source);
  shares.values = std::min(values, std::max(free / 2, free - std::min(free, warps)));
  shares.warps = std::min(warps, free - shares.values);
  shares.source = rest - shares.values - shares.warps;
  return shares;
}

}  // namespace

std::vector<FrameLine> to_lines(const Frame& frame, const FrameStyle& style) {
  const FrameSize& size = style.size;
  if (size.width < kMinFrame.width || size.height < kMinFrame.height) {
    throw Error(Stage::Emulate, "frame-size",
                format_text("a frame of {} x {} is too small for its parts; the minimum is {} x {}",
                            size.width, size.height, kMinFrame.width, kMinFrame.height));
  }
  Rows rows{{LineRole::Title, title(frame)}};
  if (frame.blocks.size() > 1) rows.push_back({LineRole::Blocks, blocks_text(frame, size.width)});
  const Rows warps = warp_rows(frame);
  const Rows values = value_rows(frame, style);
  const std::size_t rest = size.height - rows.size() - 1;
  const Shares shares = shares_of(rest, warps.size(), values.size(), !style.source.empty());
  const auto append = [&](const Rows& part, std::size_t height) {
    rows.insert(rows.end(), part.begin(), part.end());
    rows.resize(rows.size() + height - part.size());
  };
  append(source_rows(frame, style, shares.source), shares.source);
  append(warp_window(warps, shares.warps), shares.warps);
  append(window(values, style.scroll, shares.values), shares.values);
  rows.push_back(
      frame.findings == 0
          ? FrameLine{LineRole::Empty, "no finding"}
          : FrameLine{LineRole::Finding,
                      format_text("{}: {}", count_text(frame.findings, "finding"), frame.finding)});
  for (FrameLine& row : rows) row.text = fitted(std::move(row.text), size.width);
  return rows;
}

std::string to_text(const Frame& frame, const FrameStyle& style) {
  std::string text;
  for (const FrameLine& line : to_lines(frame, style)) text += line.text + '\n';
  return text;
}

}  // namespace ptxgen::inline v0::frames
