// bench/validation/main.cpp - the program validate-predictions
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/validation/errors.hpp"
#include "bench/validation/ranking.hpp"
#include "cli_common/program.hpp"
#include "support/format.hpp"
#include "support/temporary_directory.hpp"

namespace {

using namespace ptxgen;
using namespace ptxgen::validation;

constexpr std::string_view kMarker =
    "<!-- Written by validate-predictions --page from here to the end. -->\n";

struct Options {
  std::string data;
  std::string csv;
  std::string page;
  bool ranking = false;
  bool check = false;
};

std::vector<Series> series_of(const Options& options) {
  if (!options.data.empty()) return read_sweeps(options.data);
  return read_points(nlohmann::json::parse(built_in_points()));
}

void write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw cli::UsageError(format_text("{}: cannot be written", path));
}

// Brings the table at the end of a page up to date, or says that it is not.
bool page_is_current(const Options& options, const std::string& table) {
  const std::string now = read_file(options.page);
  const std::size_t marker = now.find(kMarker);
  if (marker == std::string::npos) {
    throw cli::UsageError(format_text("{}: the line '{}' is missing", options.page,
                                      kMarker.substr(0, kMarker.size() - 1)));
  }
  const std::string expected = now.substr(0, marker + kMarker.size()) + "\n" + table;
  if (now == expected) return true;
  if (!options.check) write(options.page, expected);
  return !options.check;
}

std::string page_of(const std::vector<Group>& groups) {
  return to_markdown(groups) +
         "\nThe ranking of T f32 1024 x 1024 on a V100, predicted, term by term in us alone:\n\n" +
         to_markdown(ranked_plans());
}

int run(const Options& options) {
  if (options.ranking) {
    std::cout << to_markdown(ranked_plans());
    return cli::kDone;
  }
  const std::vector<Series> series = series_of(options);
  const std::vector<Compared> compared = compare(series);
  if (compared.empty()) throw cli::UsageError("there is no timing to compare with");
  const std::vector<Group> groups = groups_of(compared);
  if (!options.csv.empty()) write(options.csv, to_csv(compared));
  if (!options.page.empty() && !page_is_current(options, page_of(groups))) {
    std::cerr << options.page << " is not up to date; run: validate-predictions --page "
              << options.page << "\n";
    return cli::kFound;
  }
  const std::string outside = outside_bands(groups);
  if (options.page.empty()) std::cout << to_text(groups);
  std::cerr << outside;
  return outside.empty() ? cli::kDone : cli::kFound;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compare predicted with published times", "validate-predictions");
  Options options;
  app.add_option(
      "--data", options.data,
      "a checkout of github.com/te42kyfo/gpu-benches: all its points, not the stored ones");
  app.add_option("--csv", options.csv, "write a row for each timing there");
  app.add_option("--page", options.page, "bring the table of docs/predictions.md up to date");
  app.add_flag("--ranking", options.ranking, "the planner's ranking of one GEMV, by terms");
  app.add_flag("--check", options.check, "with --page: exit 1 if it is not, and write nothing");
  try {
    app.parse(argc, argv);
    return run(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cli::kDone : cli::kUsage;
  } catch (const std::exception& error) {
    std::cerr << "validate-predictions: " << error.what() << "\n";
    return cli::kUsage;
  }
}
