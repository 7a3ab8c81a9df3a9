// src/cli/output/coverage_text.cpp - coverage as text and pictures
#include "cli/output/coverage_text.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>

#include "cli_common/files.hpp"
#include "cli_common/text_table.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

using coverage::CaseCounts;
using coverage::CellMap;
using coverage::Coverage;
using coverage::KernelCoverage;
using coverage::Missed;
using coverage::Share;
using coverage::Shares;

constexpr std::size_t kWorst = 10;         // kernels of the overview's list
constexpr std::size_t kGapsOfWorst = 3;    // lines of each
constexpr std::size_t kMaxCodeText = 100;  // characters of a missed statement

std::string share_text(const Share& share) {
  return share.all == 0 ? "-" : format_text("{}/{}", share.covered, share.all);
}

std::vector<std::string> cells_of(const Shares& shares) {
  return {share_text(shares.blocks),
          share_text(shares.edges),
          share_text(shares.branches),
          share_text(shares.guards),
          format_text("{:.1f} %", shares.outcomes().percent()),
          share_text(shares.cells)};
}

std::vector<std::string> heading(std::vector<std::string> first) {
  for (const char* const name : {"blocks", "edges", "branches", "guards", "outcomes", "cells"}) {
    first.emplace_back(name);
  }
  return first;
}

void add_row(TextTable& table, std::vector<std::string> first, const Shares& shares) {
  for (std::string& cell : cells_of(shares)) first.push_back(std::move(cell));
  table.add(std::move(first));
}

std::string text_of_table(const TextTable& table) {
  std::string text;
  for (std::size_t i = 0; i < table.rows(); ++i) text += table.line(i) + "\n";
  return text;
}

// "gemv_coalesced", with the start of the hash where a kernel has several codes.
std::string name_of_code(const Coverage& all, const KernelCoverage& kernel) {
  const auto same = std::ranges::count(all.kernels, kernel.kernel, &KernelCoverage::kernel);
  return same == 1 ? kernel.kernel : kernel.kernel + "#" + kernel.code.substr(0, 6);
}

std::string gap_text(const Missed& gap) {
  std::string text = format_text("{}: {}", gap.line, gap.text);
  if (text.size() > kMaxCodeText) text = text.substr(0, kMaxCodeText - 4) + " ...";
  return text;
}

// Buffers of all kernels, by name; the cases are added up.
std::vector<CellMap> all_cells(const Coverage& all) {
  std::vector<CellMap> maps;
  for (const KernelCoverage& kernel : all.kernels) {
    for (const CellMap& map : coverage::total(kernel).cells) coverage::add(maps, map);
  }
  return maps;
}

std::string heat_map_of_largest(const Coverage& all) {
  const std::vector<CellMap> maps = all_cells(all);
  const auto largest =
      std::ranges::max_element(maps, {}, [](const CellMap& map) { return map.cells.size(); });
  return largest == maps.end() ? "" : "\n" + coverage::heat_map_text(*largest);
}

/// The codes of one described kernel, or of one kernel of a file.
struct OverviewRow {
  std::string name;
  std::size_t codes = 0;
  std::size_t cases = 0;
  Shares shares;
  std::vector<std::string> gaps;
};

std::vector<OverviewRow> overview_rows(const Coverage& all) {
  std::map<std::string, OverviewRow> rows;
  for (const KernelCoverage& kernel : all.kernels) {
    OverviewRow& row = rows[kernel.of.empty() ? kernel.kernel : kernel.of];
    row.name = kernel.of.empty() ? kernel.kernel : kernel.of;
    ++row.codes;
    row.cases += kernel.cases.size();
    const CaseCounts sum = coverage::total(kernel);
    row.shares += coverage::shares(kernel);
    for (const Missed& gap : coverage::missed(kernel, sum)) {
      row.gaps.push_back(name_of_code(all, kernel) + ":" + gap_text(gap));
    }
  }
  std::vector<OverviewRow> list;
  for (auto& [name, row] : rows) list.push_back(std::move(row));
  return list;
}

}  // namespace

std::string coverage_text(const Coverage& all) {
  TextTable table(heading({"kernel", "case"}));
  Shares sum;
  std::string gaps;
  for (const KernelCoverage& kernel : all.kernels) {
    const std::string name = name_of_code(all, kernel);
    for (const CaseCounts& counts : kernel.cases) {
      add_row(table, {name, counts.name}, coverage::shares(kernel, counts));
    }
    const CaseCounts merged = coverage::total(kernel);
    const Shares shares = coverage::shares(kernel);
    if (kernel.cases.size() > 1) {
      add_row(table, {name, format_text("all {} cases", kernel.cases.size())}, shares);
    }
    sum += shares;
    for (const Missed& gap : coverage::missed(kernel, merged)) {
      gaps += format_text("  {}:{}\n", name, gap_text(gap));
    }
  }
  if (all.kernels.size() > 1) add_row(table, {"all", ""}, sum);
  std::string text = text_of_table(table);
  text += gaps.empty() ? "\nevery block and outcome is executed\n"
                       : "\nno case executes (line of the PTX):\n" + gaps;
  return text + heat_map_of_largest(all);
}

std::string coverage_overview(const Coverage& all) {
  std::vector<OverviewRow> rows = overview_rows(all);
  TextTable table(heading({"kernel", "codes", "cases"}));
  Shares sum;
  std::size_t codes = 0;
  std::size_t cases = 0;
  for (const OverviewRow& row : rows) {
    add_row(table, {row.name, std::to_string(row.codes), std::to_string(row.cases)}, row.shares);
    sum += row.shares;
    codes += row.codes;
    cases += row.cases;
  }
  add_row(table, {"all", std::to_string(codes), std::to_string(cases)}, sum);
  std::string text = text_of_table(table);
  std::ranges::stable_sort(rows, {},
                           [](const OverviewRow& row) { return row.shares.outcomes().percent(); });
  text += "\nfewest outcomes executed:\n";
  for (const OverviewRow& row : std::span(rows).first(std::min(rows.size(), kWorst))) {
    text += format_text("  {}: {:.1f} %, {} not executed\n", row.name,
                        row.shares.outcomes().percent(), count_text(row.gaps.size(), "part"));
    for (std::size_t i = 0; i < std::min(row.gaps.size(), kGapsOfWorst); ++i) {
      text += format_text("    {}\n", row.gaps[i]);
    }
  }
  return text;
}

std::vector<std::string> write_coverage(const std::string& folder, const Coverage& all) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error(Stage::Io, "write",
                format_text("cannot make the folder {}: {}", folder, error.message()));
  }
  std::vector<std::string> names;
  const auto write = [&](const std::string& name, const std::string& bytes) {
    names.push_back(folder + "/" + name);
    write_output(names.back(), bytes);
  };
  write("coverage.json", coverage::to_json(all));
  for (const KernelCoverage& kernel : all.kernels) {
    const std::string name = name_of_code(all, kernel);
    for (const CellMap& map : coverage::total(kernel).cells) {
      std::string stem = format_text("{}-{}-{}x{}", name, map.buffer, map.rows, map.columns);
      std::ranges::replace(stem, '#', '-');
      write(stem + ".svg", coverage::heat_map_svg(map, name));
      if (coverage::has_png()) write(stem + ".png", coverage::heat_map_png(map));
    }
  }
  return names;
}

}  // namespace ptxgen::cli
