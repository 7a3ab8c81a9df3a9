// bench/validation/sweeps.cpp - the result files of gpu-benches
#include <fstream>
#include <sstream>

#include "bench/validation/kernels.hpp"
#include "cli_common/program.hpp"
#include "support/format.hpp"

namespace ptxgen::validation {

namespace {

// Its names of the GPUs; "h200" is a GH200, as the size of its plateau says.
struct Part {
  std::string_view file;
  std::string_view gpu;
};
constexpr Part kParts[] = {{"h200", "gh200"},   {"h100_pcie", "h100-pcie"},
                           {"a100_80", "a100"}, {"a100_40", "a100-40"},
                           {"l40", "l40"},      {"a40", "a40"}};

struct Column {
  std::string_view name;
  std::size_t index;
  std::uint32_t read;
  std::uint32_t written;
  Regime regime;
};
constexpr Column kColumns[] = {{"read", 1, 1, 0, Regime::Reads},
                               {"scale", 2, 1, 1, Regime::Mixed},
                               {"triad", 3, 2, 1, Regime::Mixed}};

std::vector<double> numbers_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<double> numbers;
  for (double value = 0; in >> value;) numbers.push_back(value);
  return numbers;
}

// "    32    4224    3 %  |  GB/s:    297    123 ..": the block size, and a rate per column.
void add_streams(const std::filesystem::path& file, const Part& part, std::vector<Series>& all) {
  std::ifstream in(file);
  std::vector<Series> result;
  for (const Column& column : kColumns) {
    Series series;
    series.name = format_text("gpu-stream {}", column.name);
    series.gpu = part.gpu;
    series.source = file.filename().string();
    series.regime = column.regime;
    series.options = {Boundary::Stream, false};
    result.push_back(std::move(series));
  }
  for (std::string line; std::getline(in, line);) {
    const std::size_t rates = line.find("GB/s:");
    if (rates == std::string::npos) continue;
    const std::vector<double> numbers = numbers_of(line.substr(rates + 5));
    const auto block = static_cast<std::uint32_t>(std::stoul(line));
    for (std::size_t i = 0; i < result.size(); ++i) {
      const Column& column = kColumns[i];
      if (column.index >= numbers.size()) continue;
      result[i].points.push_back(
          stream_point(block, column.read, column.written, numbers[column.index]));
    }
  }
  for (Series& series : result) {
    if (!series.points.empty()) all.push_back(std::move(series));
  }
}

// "4096  64kB     26     26 ..": elements, bytes and a rate for each block size up to 1024.
void add_small(const std::filesystem::path& file, const Part& part, Boundary boundary,
               std::vector<Series>& all) {
  constexpr std::uint32_t kWarp = 32;
  std::ifstream in(file);
  Series series;
  series.name = "gpu-small-kernels scale";
  series.gpu = part.gpu;
  series.source = file.filename().string();
  series.regime = Regime::Repeated;
  series.options = {boundary, true};
  const ptx::Gpu& gpu = *ptx::find_gpu(part.gpu);
  std::size_t columns = 0;
  for (std::string line; std::getline(in, line);) {
    const std::size_t unit = line.find("kB");
    if (unit == std::string::npos) continue;
    const std::vector<double> rates = numbers_of(line.substr(unit + 2));
    if (columns == 0) columns = rates.size();
    if (rates.size() != columns) continue;  // an unfinished line
    for (std::size_t i = 0; i < columns; ++i) {
      const std::uint32_t block = 1024u >> (columns - 1 - i);
      if (block < kWarp) continue;
      series.points.push_back(small_point(gpu, std::stoull(line), block, rates[i]));
    }
  }
  if (!series.points.empty()) all.push_back(std::move(series));
}

}  // namespace

std::vector<Series> read_sweeps(const std::filesystem::path& folder) {
  std::vector<Series> all;
  for (const Part& part : kParts) {
    const std::string name(part.file);
    add_streams(folder / "gpu-stream" / (name + ".txt"), part, all);
    const std::filesystem::path small = folder / "gpu-small-kernels";
    add_small(small / (name + ".txt"), part, Boundary::Stream, all);
    add_small(small / (name + "_graph.txt"), part, Boundary::Graph, all);
  }
  if (all.empty()) {
    throw cli::UsageError(format_text(
        "--data {}: no gpu-stream/*.txt or gpu-small-kernels/*.txt is there; name a checkout of "
        "github.com/te42kyfo/gpu-benches",
        folder.string()));
  }
  return all;
}

}  // namespace ptxgen::validation
