// src/cli_common/nearest.cpp - suggestions for misspelt names
#include "cli_common/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace ptxgen::cli {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the table of Wagner and Fischer: of the prefix before the last, of the last, of this.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view text, std::span<const std::string> names) {
  const std::string wanted = lower(text);
  std::string best;
  std::size_t best_distance = ~std::size_t{0};
  for (const std::string& name : names) {
    const std::string candidate = lower(name);
    std::size_t distance = edit_distance(wanted, candidate);
    const std::size_t letters = std::max(wanted.size(), candidate.size());
    const bool begins = wanted.size() >= 3 && candidate.size() >= 3 &&
                        (candidate.starts_with(wanted) || wanted.starts_with(candidate));
    if (!begins && distance > std::max<std::size_t>(1, letters / 3)) continue;
    if (letters <= distance) continue;
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view text, std::span<const std::string> names) {
  const std::string name = nearest(text, names);
  return name.empty() ? "" : "; did you mean '" + name + "'?";
}

}  // namespace ptxgen::cli
