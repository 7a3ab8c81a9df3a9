// src/emulator/report/profile.cpp - the counters of a launch as text
#include "ptxgen/emulator/report/profile.hpp"
#include "support/count.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "emulator/report/counting.hpp"
#include "ptxgen/ptx/source_map.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

struct Column {
  std::string_view head;
  std::size_t min_width;  // characters
};
constexpr std::array<Column, 5> kColumns = {{{"executions", 10},
                                             {"lanes", 5},
                                             {"divergent", 9},
                                             {"sectors/ideal", 13},
                                             {"wavefronts/ideal", 16}}};
using Row = std::array<std::string, kColumns.size()>;

// Sums over the instructions of one line.
struct LineSum {
  std::uint64_t executions = 0;
  std::uint64_t lanes = 0;
  std::uint64_t divergent = 0;
  bool branch = false;
  MemoryCounters memory;
  SharedCounters shared;
};

std::string one_decimal(double value) { return format_text("{:.1f}", value); }

std::string pair_of(std::uint64_t first, std::uint64_t second) {
  return format_text("{}/{}", first, second);
}

std::map<std::uint32_t, LineSum> sums_of(const Counters& counters) {
  std::map<std::uint32_t, LineSum> sums;
  for (const LineCounters& line : counters.lines) {
    LineSum& sum = sums[line.line];
    sum.executions += line.executions;
    sum.lanes += line.thread_executions;
    sum.divergent += line.divergent;
    sum.branch = sum.branch || line.opcode.starts_with("bra") || line.opcode.starts_with("brx");
    sum.memory.requests += line.memory.requests;
    sum.memory.sectors += line.memory.sectors;
    sum.memory.ideal_sectors += line.memory.ideal_sectors;
    sum.shared.requests += line.shared.requests;
    sum.shared.wavefronts += line.shared.wavefronts;
    sum.shared.ideal_wavefronts += line.shared.ideal_wavefronts;
  }
  return sums;
}

Row row_of(const LineSum& sum) {
  Row row;
  row[0] = std::to_string(sum.executions);
  if (sum.executions != 0) {
    row[1] = one_decimal(static_cast<double>(sum.lanes) / static_cast<double>(sum.executions));
  }
  if (sum.branch) row[2] = std::to_string(sum.divergent);
  if (sum.memory.requests != 0) row[3] = pair_of(sum.memory.sectors, sum.memory.ideal_sectors);
  if (sum.shared.requests != 0) {
    row[4] = pair_of(sum.shared.wavefronts, sum.shared.ideal_wavefronts);
  }
  return row;
}

void append_right(std::string& text, std::string_view cell, std::size_t width) {
  text.append(width - std::min(width, cell.size()), ' ');
  text += cell;
}

/// The columns in front of a line, as wide as their widest cell.
class Margin {
 public:
  Margin() {
    for (std::size_t i = 0; i < kColumns.size(); ++i) widths_[i] = kColumns[i].min_width;
  }
  void widen(const Row& row) {
    for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
  }
  [[nodiscard]] std::size_t width() const {
    std::size_t sum = 2 * (kColumns.size() - 1);
    for (const std::size_t width : widths_) sum += width;
    return sum;
  }
  void append_head(std::string& text, std::string_view what) const {
    Row head;
    for (std::size_t i = 0; i < kColumns.size(); ++i) head[i] = kColumns[i].head;
    append(text, head);
    text += " | ";
    text += what;
    text += '\n';
    text.append(width(), '-');
    text += "-+-";
    text.append(what.size(), '-');
    text += '\n';
  }
  void append(std::string& text, const Row& row) const {
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      if (i != 0) text += "  ";
      append_right(text, row[i], widths_[i]);
    }
  }

 private:
  std::array<std::size_t, kColumns.size()> widths_{};
};

LineSum sum_of(const SourceCounters& line) {
  LineSum sum;
  sum.executions = line.executions;
  sum.lanes = line.thread_executions;
  sum.divergent = line.divergent;
  sum.branch = line.divergent != 0;
  sum.memory = line.memory;
  sum.shared = line.shared;
  return sum;
}

std::string percent(double share) { return format_text("{:.1f} %", 100.0 * share); }

void append_line(std::string& text, std::string_view name, std::string_view value) {
  text += name;
  text.append(name.size() < 20 ? 20 - name.size() : 1, ' ');
  text += value;
  text += '\n';
}

std::string described(const MemoryCounters& group) {
  return format_text("{}, {} sectors, ideally {} ({}), {}", count_text(group.requests, "request"),
                     group.sectors, group.ideal_sectors,
                     percent(Counters::coalescing_efficiency(group)),
                     count_text(group.bytes, "byte"));
}

std::string described(const SharedCounters& group) {
  return format_text("{}, {} wavefronts, ideally {}, {} bank conflicts, {}",
                     count_text(group.requests, "request"), group.wavefronts,
                     group.ideal_wavefronts, group.bank_conflicts, count_text(group.bytes, "byte"));
}

}  // namespace

std::string annotate(std::string_view ptx, const Counters& counters) {
  std::map<std::uint32_t, Row> rows;
  Margin margin;
  for (const auto& [line, sum] : sums_of(counters)) {
    margin.widen(rows.emplace(line, row_of(sum)).first->second);
  }
  std::string text;
  margin.append_head(text, "PTX");
  std::uint32_t number = 0;
  while (!ptx.empty()) {
    ++number;
    const std::size_t end = ptx.find('\n');
    std::string_view line = ptx.substr(0, end);
    ptx.remove_prefix(end == std::string_view::npos ? ptx.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (const auto row = rows.find(number); row != rows.end()) {
      margin.append(text, row->second);
    } else {
      text.append(margin.width(), ' ');
    }
    text += " |";
    if (!line.empty()) text += " ";
    text += line;
    text += '\n';
  }
  return text;
}

std::string to_text(const Counters& counters) {
  std::string text;
  append_line(text, "warp instructions", std::to_string(counters.warp_instructions));
  append_line(text, "lane instructions",
              format_text("{} ({} of the lanes active)", counters.thread_instructions,
                          percent(counters.warp_execution_efficiency())));
  append_line(text, "branches",
              format_text("{}, {} divergent", counters.branches, counters.divergent_branches));
  append_line(text, "barriers", std::to_string(counters.barriers));
  append_line(text, "atomics", std::to_string(counters.atomics));
  append_line(text, "waves",
              format_text("{:.1f} at most, with {} at a time on an SM", counters.waves,
                          count_text(counters.blocks_per_sm, "block")));
  const auto memory = [&](std::string_view name, const MemoryCounters& group) {
    if (group.requests != 0) append_line(text, name, described(group));
  };
  memory("global loads", counters.global_load);
  memory("global stores", counters.global_store);
  memory("local loads", counters.local_load);
  memory("local stores", counters.local_store);
  const auto shared = [&](std::string_view name, const SharedCounters& group) {
    if (group.requests != 0) append_line(text, name, described(group));
  };
  shared("shared loads", counters.shared_load);
  shared("shared stores", counters.shared_store);
  const auto bulk = [&](std::string_view name, const BulkCounters& group, bool sectors) {
    if (group.copies == 0) return;
    append_line(text, name,
                format_text("{} copies, {}{}", group.copies, count_text(group.bytes, "byte"),
                            sectors ? format_text(", {} sectors", group.sectors) : ""));
  };
  bulk("bulk loads", counters.bulk_load, true);
  bulk("bulk stores", counters.bulk_store, true);
  bulk("bulk copies in the cluster", counters.bulk_peer, false);
  const auto peer = [&](std::string_view name, const PeerCounters& group) {
    if (group.requests == 0) return;
    append_line(text, name,
                format_text("{}, {}", count_text(group.requests, "request"),
                            count_text(group.bytes, "byte")));
  };
  peer("loads from the cluster", counters.peer_load);
  peer("stores to the cluster", counters.peer_store);
  return text;
}

std::vector<SourceCounters> by_source(const Counters& counters, const ptx::Module& module) {
  using Place = std::pair<std::string, std::uint32_t>;
  std::map<std::string_view, std::map<std::uint32_t, Place>> functions;  // PTX line -> source
  for (const ptx::Function& function : module.functions) {
    if (function.declaration) continue;
    const ptx::SourceMap map(module, function);
    std::map<std::uint32_t, Place>& places = functions[module.text(function.name)];
    for (std::size_t i = 0; i < function.body.size(); ++i) {
      if (function.body[i].kind != ptx::StatementKind::Instruction) continue;
      SourcePosition position = map.position(i);
      places.try_emplace(function.body[i].line, std::move(position.file), position.line);
    }
  }
  std::map<Place, SourceCounters> sums;
  for (const LineCounters& line : counters.lines) {
    const Place& place = functions[line.function][line.line];
    SourceCounters& sum = sums[place];
    sum.file = place.first;
    sum.line = place.second;
    ++sum.instructions;
    sum.executions += line.executions;
    sum.thread_executions += line.thread_executions;
    sum.predicated_on += line.predicated_on;
    sum.divergent += line.divergent;
    add(sum.memory, line.memory);
    add(sum.shared, line.shared);
    add(sum.bulk, line.bulk);
    add(sum.peer, line.peer);
  }
  std::vector<SourceCounters> all;
  for (auto& [place, sum] : sums) all.push_back(std::move(sum));
  return all;
}

std::string to_text(std::span<const SourceCounters> lines) {
  if (lines.empty()) return {};
  Margin margin;
  for (const SourceCounters& line : lines) margin.widen(row_of(sum_of(line)));
  std::string text;
  margin.append_head(text, "source line");
  for (const SourceCounters& line : lines) {
    margin.append(text, row_of(sum_of(line)));
    text += " | ";
    text += line.line == 0 ? "(no source line)" : format_text("{}:{}", line.file, line.line);
    text += '\n';
  }
  return text;
}

}  // namespace ptxgen::inline v0::emulator
