// src/qa/playbook/draw.cpp - a state machine for graphviz and as SVG
#include <algorithm>
#include <cmath>
#include <map>

#include "qa/playbook/playbook.hpp"
#include "support/format.hpp"
#include "support/markup.hpp"

namespace ptxgen::qa {

namespace {

std::string dot_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

// Transitions as they are drawn: one line for all that `from: "*"` stands for.
std::vector<const Transition*> drawn_transitions(const Playbook& playbook) {
  std::vector<const Transition*> drawn;
  for (const Transition& step : playbook.transitions) {
    const bool again = step.wildcard && std::ranges::any_of(drawn, [&](const Transition* other) {
                         return other->wildcard && other->id == step.id;
                       });
    if (!again) drawn.push_back(&step);
  }
  return drawn;
}

constexpr std::string_view kAnyNode = "any state that is not final";

// Geometry in pixels.
constexpr double kRowPitch = 96;
constexpr double kBoxHeight = 46;
constexpr double kColumnGap = 210;
constexpr double kMargin = 24;
constexpr double kLetter = 7.2;  // of the font's 13 px, on the safe side
constexpr double kMinBox = 150;

struct Box {
  std::string title;
  std::string text;
  bool final = false;
  bool dashed = false;
  unsigned row = 0;
  unsigned column = 0;
  double x = 0, y = 0, width = 0;  // top left

  [[nodiscard]] double middle() const { return x + width / 2; }
  [[nodiscard]] double bottom() const { return y + kBoxHeight; }
};

struct Point {
  double x = 0, y = 0;
};

class SvgDrawing {
 public:
  explicit SvgDrawing(const Playbook& playbook) : playbook_(playbook) {
    rank();
    place();
  }

  std::string text() {
    for (const Transition* step : drawn_transitions(playbook_)) draw(*step);
    const Box& first = boxes_.at(playbook_.initial);
    body_ += format_text(
        "<circle cx=\"{0:.0f}\" cy=\"{1:.0f}\" r=\"6\"/>\n"
        "<path class=\"edge\" d=\"M{0:.0f} {2:.0f} L{0:.0f} {3:.0f}\"/>\n",
        first.middle(), first.y - 28, first.y - 22, first.y - 2);
    for (const auto& [name, box] : boxes_) draw(box);
    return format_text(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
               "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n",
               width_, height_, escaped_markup(playbook_.id)) +
           std::string(kStyle) + body_ + "</svg>\n";
  }

 private:
  // The row of a state is its distance from the initial one. States that only `*` leads to, and
  // those that nothing leads to, are in a column of their own.
  void rank() {
    std::vector<std::string> open = {playbook_.initial};
    rows_[playbook_.initial] = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
      for (const Transition& step : playbook_.transitions) {
        if (step.wildcard || step.from != open[i] || rows_.contains(step.to)) continue;
        rows_[step.to] = rows_[open[i]] + 1;
        open.push_back(step.to);
      }
    }
  }

  void place() {
    std::map<unsigned, unsigned> used;
    for (const MachineState& state : playbook_.states) {
      if (!rows_.contains(state.name)) continue;
      const unsigned row = rows_[state.name];
      add(state, row, used[row]++);
      columns_ = std::max(columns_, used[row]);
    }
    const bool any = std::ranges::any_of(playbook_.transitions, &Transition::wildcard);
    unsigned row = 0;
    if (any) {
      Box& box = boxes_[std::string(kAnyNode)];
      box.title = kAnyNode;
      box.dashed = true;
      box.row = row++;
      box.column = columns_;
    }
    for (const MachineState& state : playbook_.states) {
      if (!rows_.contains(state.name)) add(state, row++, columns_);
    }
    set_positions();
  }

  void add(const MachineState& state, unsigned row, unsigned column) {
    Box& box = boxes_[state.name];
    box.title = state.name;
    box.text = state.description;
    box.final = state.final;
    box.row = row;
    box.column = column;
  }

  void set_positions() {
    std::map<unsigned, double> widths;
    for (auto& [name, box] : boxes_) {
      const std::size_t letters = std::max(box.title.size(), box.text.size());
      box.width = std::max(kMinBox, static_cast<double>(letters) * kLetter + 24);
      widths[box.column] = std::max(widths[box.column], box.width);
    }
    // Lines back to earlier rows are left of the first column.
    double x = kMargin + 90;
    std::map<unsigned, double> left;
    for (const auto& [column, width] : widths) {
      left[column] = x;
      x += width + kColumnGap;
    }
    width_ = x - kColumnGap + 90 + kMargin;  // lines on the right of the last column
    for (auto& [name, box] : boxes_) {
      box.x = left[box.column] + (widths[box.column] - box.width) / 2;
      box.y = kMargin + 34 + box.row * kRowPitch;
      height_ = std::max(height_, box.bottom() + kMargin);
    }
  }

  void draw(const Box& box) {
    body_ += format_text(
        "<rect class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" "
        "rx=\"8\"/>\n",
        box.dashed ? "any" : "state", box.x, box.y, box.width, kBoxHeight);
    if (box.final) {
      body_ += format_text(
          "<rect class=\"inner\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" "
          "rx=\"5\"/>\n",
          box.x + 4, box.y + 4, box.width - 8, kBoxHeight - 8);
    }
    const double title = box.text.empty() ? box.y + 28 : box.y + 20;
    body_ += format_text("<text class=\"name\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", box.middle(),
                         title, escaped_markup(box.title));
    if (box.text.empty()) return;
    body_ += format_text("<text class=\"note\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", box.middle(),
                         box.y + 37, escaped_markup(box.text));
  }

  void draw(const Transition& step) {
    const Box& from = boxes_.at(step.wildcard ? std::string(kAnyNode) : step.from);
    const Box& to = boxes_.at(step.to);
    // Several lines between two states are side by side.
    const double shift = 26.0 * parallel_[{from.title, to.title}]++;
    Point label;
    if (&from == &to) {
      label = self_loop(from, shift);
    } else if (to.row == from.row + 1) {
      label = downward(from, to, shift);
    } else if (from.row == to.row) {
      label = sideways(from, to, shift);
    } else {
      label = bent(from, to, shift);
    }
    body_ += format_text("<text class=\"event\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", label.x,
                         label.y, escaped_markup(step.event));
    if (!step.guard) return;
    body_ += format_text("<text class=\"guard\" x=\"{:.0f}\" y=\"{:.0f}\">[{}]</text>\n", label.x,
                         label.y + 14, escaped_markup(to_text(*step.guard)));
  }

  void line(Point a, Point control, Point b) {
    body_ +=
        format_text("<path class=\"edge\" d=\"M{:.0f} {:.0f} Q{:.0f} {:.0f} {:.0f} {:.0f}\"/>\n",
                    a.x, a.y, control.x, control.y, b.x, b.y);
  }

  Point downward(const Box& from, const Box& to, double shift) {
    const Point a{from.middle() + shift, from.bottom()};
    const Point b{to.middle() + shift, to.y - 2};
    line(a, {(a.x + b.x) / 2, (a.y + b.y) / 2}, b);
    return {(a.x + b.x) / 2 + 8, (a.y + b.y) / 2};
  }

  Point sideways(const Box& from, const Box& to, double shift) {
    const bool right = to.x > from.x;
    const double y = from.y + kBoxHeight / 2 + (right ? -6 : 8) + shift;
    const Point a{right ? from.x + from.width : from.x, y};
    const Point b{right ? to.x - 2 : to.x + to.width + 2, y};
    line(a, {(a.x + b.x) / 2, y}, b);
    return {std::min(a.x, b.x) + 8, y - 6};
  }

  // Over several rows: outside of the boxes between.
  Point bent(const Box& from, const Box& to, double shift) {
    const bool right = to.column > from.column || (to.column == from.column && to.row > from.row);
    const Point a{right ? from.x + from.width : from.x, from.y + kBoxHeight / 2};
    const Point b{right && to.column == from.column ? to.x + to.width + 2
                  : right                           ? to.x - 2
                                                    : to.x - 2,
                  to.y + kBoxHeight / 2 + shift};
    const double side = right ? std::max(a.x, b.x) + (to.column == from.column ? 90.0 : -60.0)
                              : std::min(a.x, b.x) - 90.0;
    const Point control{side, (a.y + b.y) / 2};
    line(a, control, b);
    return {(a.x + 2 * control.x + b.x) / 4 + 6, (a.y + b.y) / 2};
  }

  Point self_loop(const Box& box, double shift) {
    const double x = box.x + box.width;
    const double y = box.y + kBoxHeight / 2;
    body_ += format_text(
        "<path class=\"edge\" d=\"M{0:.0f} {1:.0f} C{2:.0f} {3:.0f} {2:.0f} {4:.0f} {5:.0f} "
        "{6:.0f}\"/>\n",
        x, y - 10, x + 50 + shift, y - 26, y + 26, x + 2, y + 10);
    return {x + 44 + shift, y};
  }

  static constexpr std::string_view kStyle =
      "<defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" "
      "markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 L10 5 L0 10 z\"/></marker></defs>\n"
      "<style>text{font:13px sans-serif}.name{font-weight:bold;text-anchor:middle}"
      ".note{font-size:11px;text-anchor:middle;fill:#555}.guard{font-size:11px;fill:#06c}"
      ".event,.guard{paint-order:stroke;stroke:#fff;stroke-width:4px}"
      ".state{fill:#eef4fb;stroke:#234}.inner{fill:none;stroke:#234}"
      ".any{fill:#fff;stroke:#234;stroke-dasharray:4 3}"
      ".edge{fill:none;stroke:#234;marker-end:url(#arrow)}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";

  const Playbook& playbook_;
  std::map<std::string, unsigned> rows_;
  std::map<std::string, Box> boxes_;
  std::map<std::pair<std::string, std::string>, unsigned> parallel_;
  unsigned columns_ = 0;
  double width_ = 0;
  double height_ = 0;
  std::string body_;
};

}  // namespace

std::string to_dot(const Playbook& playbook) {
  std::string text = format_text(
      "digraph {} {{\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n"
      "  edge [fontname=\"sans-serif\", fontsize=11];\n"
      "  \"*initial\" [shape=point, label=\"\"];\n",
      dot_string(playbook.id));
  for (const MachineState& state : playbook.states) {
    text += format_text(
        "  {} [label={}{}];\n", dot_string(state.name),
        dot_string(state.name) +
            (state.description.empty() ? "" : " + \"\\n\" + " + dot_string(state.description)),
        state.final ? ", peripheries=2" : "");
  }
  const std::vector<const Transition*> drawn = drawn_transitions(playbook);
  if (std::ranges::any_of(drawn, &Transition::wildcard)) {
    text += format_text("  \"*\" [label={}, style=\"rounded,dashed\"];\n", dot_string(kAnyNode));
  }
  text += format_text("  \"*initial\" -> {};\n", dot_string(playbook.initial));
  for (const Transition* step : drawn) {
    const std::string label =
        step->guard ? step->event + " [" + to_text(*step->guard) + "]" : step->event;
    text += format_text("  {} -> {} [label={}];\n", dot_string(step->wildcard ? "*" : step->from),
                        dot_string(step->to), dot_string(label));
  }
  return text + "}\n";
}

std::string to_svg(const Playbook& playbook) { return SvgDrawing(playbook).text(); }

}  // namespace ptxgen::qa
