// src/emulator/profile.cpp - the counters of a launch as text
#include "ptxgen/emulator/profile.hpp"
#include "support/count.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

namespace ptxgen::inline v0::emulator {
namespace {

struct Column {
  std::string_view head;
  std::size_t least;  // characters
};
constexpr std::array<Column, 5> kColumns = {{{"executions", 10},
                                             {"lanes", 5},
                                             {"divergent", 9},
                                             {"sectors/ideal", 13},
                                             {"wavefronts/ideal", 16}}};
using Row = std::array<std::string, kColumns.size()>;

// Several instructions may stand on one line.
struct LineSum {
  std::uint64_t executions = 0;
  std::uint64_t lanes = 0;
  std::uint64_t divergent = 0;
  bool branch = false;
  MemoryCounters memory;
  SharedCounters shared;
};

std::string one_decimal(double value) {
  char text[32];
  const int length = std::snprintf(text, sizeof text, "%.1f", value);
  std::string made(text, static_cast<std::size_t>(std::max(length, 0)));
  // The locale's decimal separator is none of ours.
  std::ranges::replace(made, ',', '.');
  return made;
}

std::string pair_of(std::uint64_t first, std::uint64_t second) {
  return std::to_string(first) + "/" + std::to_string(second);
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

std::string percent(double share) { return one_decimal(100.0 * share) + " %"; }

void append_line(std::string& text, std::string_view name, std::string_view value) {
  text += name;
  text.append(name.size() < 20 ? 20 - name.size() : 1, ' ');
  text += value;
  text += '\n';
}

std::string described(const MemoryCounters& group) {
  return count_text(group.requests, "request") + ", " + std::to_string(group.sectors) +
         " sectors where " + std::to_string(group.ideal_sectors) + " would do (" +
         percent(Counters::coalescing_efficiency(group)) + "), " + count_text(group.bytes, "byte");
}

std::string described(const SharedCounters& group) {
  return count_text(group.requests, "request") + ", " + std::to_string(group.wavefronts) +
         " wavefronts where " + std::to_string(group.ideal_wavefronts) + " would do, " +
         std::to_string(group.bank_conflicts) + " bank conflicts, " +
         count_text(group.bytes, "byte");
}

}  // namespace

std::string annotate(std::string_view ptx, const Counters& counters) {
  std::map<std::uint32_t, Row> rows;
  std::array<std::size_t, kColumns.size()> widths{};
  for (std::size_t i = 0; i < kColumns.size(); ++i) widths[i] = kColumns[i].least;
  for (const auto& [line, sum] : sums_of(counters)) {
    const Row& row = rows.emplace(line, row_of(sum)).first->second;
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::size_t margin = 2 * (kColumns.size() - 1);
  for (const std::size_t width : widths) margin += width;

  std::string text;
  const auto append_row = [&](const auto& cell_of) {
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      if (i != 0) text += "  ";
      append_right(text, cell_of(i), widths[i]);
    }
  };
  append_row([](std::size_t i) { return kColumns[i].head; });
  text += " | PTX\n";
  text.append(margin, '-');
  text += "-+----\n";
  std::uint32_t number = 0;
  while (!ptx.empty()) {
    ++number;
    const std::size_t end = ptx.find('\n');
    std::string_view line = ptx.substr(0, end);
    ptx.remove_prefix(end == std::string_view::npos ? ptx.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (const auto row = rows.find(number); row != rows.end()) {
      append_row([&](std::size_t i) { return std::string_view(row->second[i]); });
    } else {
      text.append(margin, ' ');
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
              std::to_string(counters.thread_instructions) + " (" +
                  percent(counters.warp_execution_efficiency()) + " of the lanes active)");
  append_line(text, "branches",
              std::to_string(counters.branches) + ", " +
                  std::to_string(counters.divergent_branches) + " divergent");
  append_line(text, "barriers", std::to_string(counters.barriers));
  append_line(text, "atomics", std::to_string(counters.atomics));
  append_line(text, "waves",
              one_decimal(counters.waves) + " at most, with " +
                  count_text(counters.blocks_per_sm, "block") + " at a time on an SM");
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
                std::to_string(group.copies) + " copies, " + count_text(group.bytes, "byte") +
                    (sectors ? ", " + std::to_string(group.sectors) + " sectors" : ""));
  };
  bulk("bulk loads", counters.bulk_load, true);
  bulk("bulk stores", counters.bulk_store, true);
  bulk("bulk copies in the cluster", counters.bulk_peer, false);
  const auto peer = [&](std::string_view name, const PeerCounters& group) {
    if (group.requests == 0) return;
    append_line(text, name,
                count_text(group.requests, "request") + ", " + count_text(group.bytes, "byte"));
  };
  peer("loads from the cluster", counters.peer_load);
  peer("stores to the cluster", counters.peer_store);
  return text;
}

}  // namespace ptxgen::inline v0::emulator
