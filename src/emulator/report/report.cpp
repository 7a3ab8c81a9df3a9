// src/emulator/report/report.cpp - findings of a run: merged, suppressed, put in order
#include "emulator/report/report.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

#include "ptxgen/ptx/source_map.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// "the other: thread (0,0,0) of block (0,0,0), line 8, source a.cu:7".
std::string other_text(const RunFinding& finding, const StatementText& other) {
  std::string text = format_text("the other: thread {} of block {}", to_text(finding.other.thread),
                                 to_text(finding.other.block));
  if (!other.statement.empty()) text += format_text(", {}", other.statement);
  if (!other.place.empty()) text += (other.statement.empty() ? ", " : " at ") + other.place;
  const SourcePosition& source = finding.finding.other_source;
  if (source.known()) text += format_text(", source {}:{}", source.file, source.line);
  return text;
}

std::size_t statement_index(const Image::Place& place) {
  return static_cast<std::size_t>(place.statement - place.function->body.data());
}

}  // namespace

std::string hex(std::uint64_t value) {
  char digits[20] = "0x";
  const auto end = std::to_chars(digits + 2, digits + sizeof digits, value, 16).ptr;
  return {digits, end};
}

std::string to_text(const Dim3& position) {
  return format_text("({},{},{})", position.x, position.y, position.z);
}

Dim3 block_position(const Dim3& grid, std::uint64_t linear) {
  const std::uint64_t plane = std::uint64_t{grid.x} * grid.y;
  return {static_cast<std::uint32_t>(linear % grid.x),
          static_cast<std::uint32_t>(linear / grid.x % grid.y),
          static_cast<std::uint32_t>(linear / plane)};
}

const SharedVariable* shared_variable(const Grid& grid, std::uint64_t offset) noexcept {
  for (const SharedVariable& variable : grid.kernel_image->shared_variables) {
    if (offset - variable.offset < variable.bytes) return &variable;
  }
  return nullptr;
}

Reporter::Reporter(const Image& image, const Options& options, std::string_view kernel)
    : image_(image), options_(options), kernel_(kernel) {}

void Reporter::stop_after(std::uint64_t order) noexcept {
  std::uint64_t last = last_.load();
  while (order < last && !last_.compare_exchange_weak(last, order)) {
  }
}

RunFinding Reporter::described(Rule rule) const {
  RunFinding result;
  result.rule = rule;
  result.finding.rule = info(rule).name;
  result.finding.severity = info(rule).severity;
  result.finding.kernel = kernel_;
  result.finding.file = image_.module.file;
  return result;
}

RunFinding* Reporter::open_launch(std::uint64_t order, Rule rule) {
  if (stopped(order)) return nullptr;
  Entry& entry = entries_[Key{rule, kNoIndex, kNoIndex, false}];
  ++entry.counts[order];
  entry.order = order;
  entry.finding = described(rule);
  return &entry.finding;
}

RunFinding* Reporter::open(const Context& context, std::uint32_t statement, Rule rule,
                           unsigned lane, const OtherParty& other, bool mapped) {
  const std::uint64_t order = context.cta->order;
  if (stopped(order)) return nullptr;
  const auto [at, is_new] = entries_.try_emplace(Key{rule, statement, other.statement, mapped});
  Entry& entry = at->second;
  ++entry.counts[order];
  if (!is_new && order >= entry.order) return nullptr;
  entry.order = order;
  RunFinding& result = entry.finding;
  result = described(rule);
  const Image::Place place = image_.place(statement);
  if (place.statement != nullptr) {
    result.finding.line = place.statement->line;
    if (result.finding.line < image_.sites_by_line.size()) {
      result.finding.cpp = image_.sites_by_line[result.finding.line];
    }
    ptx::SourceMap(image_.module, *place.function).fill(result.finding, statement_index(place));
  }
  const Dim3& block = context.grid->block;
  result.block = context.cta->id;
  result.thread = thread_position(block, context.warp->first_thread + lane);
  result.has_thread = true;
  if (other.statement != kNoIndex) {
    result.has_other = true;
    result.other.line = image_.line(other.statement);
    result.other.block = block_position(context.grid->grid, other.cta);
    result.other.thread = thread_position(block, other.thread);
    result.finding.other_line = result.other.line;
    const Image::Place there = image_.place(other.statement);
    if (there.statement != nullptr) {
      result.finding.other_source =
          ptx::SourceMap(image_.module, *there.function).position(statement_index(there));
    }
  }
  if (is_new) count_new(entry);
  return &result;
}

void Reporter::count_new(const Entry& entry) {
  if (suppressed(entry.finding)) return;
  ++count_;
  newest_ = &entry;
}

std::size_t Reporter::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

RunFinding Reporter::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_->finding;
}

void Reporter::fill(RunFinding& finding, FindingText&& text) {
  finding.finding.message = std::move(text.message);
  finding.finding.details = std::move(text.details);
  finding.finding.subject = std::move(text.subject);
  if (text.severity) finding.finding.severity = *text.severity;
}

bool Reporter::suppressed(const RunFinding& finding) const {
  return std::ranges::any_of(options_.suppressions, [&](const Suppression& s) {
    return s.rule == finding.rule && (s.kernel.empty() || s.kernel == finding.finding.kernel) &&
           (s.line == 0 || s.line == finding.finding.line ||
            (finding.has_other && s.line == finding.other.line));
  });
}

std::vector<RunFinding> Reporter::take() {
  std::vector<const Entry*> kept;
  for (auto& [key, entry] : entries_) {
    if (stopped(entry.order) || suppressed(entry.finding)) continue;
    entry.finding.count = 0;
    for (const auto& [order, count] : entry.counts) {
      if (!stopped(order)) entry.finding.count += count;
    }
    kept.push_back(&entry);
  }
  std::ranges::stable_sort(kept, [](const Entry* a, const Entry* b) {
    return std::tuple(a->order, a->finding.finding.line) <
           std::tuple(b->order, b->finding.finding.line);
  });
  std::vector<RunFinding> all;
  for (const Entry* entry : kept) all.push_back(entry->finding);
  return all;
}

std::string to_text(const RunFinding& finding, const StatementText& own,
                    const StatementText& other) {
  Finding shown = finding.finding;
  if (!own.place.empty()) {
    shown.file = own.place;
    shown.line = 0;
    shown.cpp = {};
  }
  std::vector<std::string> details;
  if (!own.statement.empty()) details.push_back(own.statement);
  if (finding.has_thread) {
    details.push_back(
        format_text("by thread {} of block {}", to_text(finding.thread), to_text(finding.block)));
  }
  if (finding.has_other) details.push_back(other_text(finding, other));
  if (finding.count > 1) {
    details.push_back(format_text("found {} times; this is the first", finding.count));
  }
  shown.details.insert(shown.details.begin(), details.begin(), details.end());
  return ptxgen::to_text(shown);
}

std::string to_text(const RunFinding& finding) {
  return to_text(finding, {}, {"line " + std::to_string(finding.other.line), {}});
}

}  // namespace ptxgen::inline v0::emulator
