// src/cli_common/text_table.hpp - right-aligned cells under their headings
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ptxgen::cli {

/// All rows have as many cells as there are headings, which are row 0.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headings) : widths_(headings.size()) {
    add(std::move(headings));
  }
  void add(std::vector<std::string> cells) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      widths_[i] = std::max(widths_[i], cells[i].size());
    rows_.push_back(std::move(cells));
  }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_.size(); }
  /// Without a line break.
  [[nodiscard]] std::string line(std::size_t row) const {
    std::string text;
    for (std::size_t i = 0; i < rows_[row].size(); ++i) {
      const std::string& cell = rows_[row][i];
      text += (i == 0 ? "" : "  ") + std::string(widths_[i] - cell.size(), ' ') + cell;
    }
    return text;
  }

 private:
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ptxgen::cli
