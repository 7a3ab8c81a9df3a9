// src/coverage/json.cpp - the file format of recorded coverage
#include <nlohmann/json.hpp>

#include "coverage/coverage.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/version.hpp"
#include "support/format.hpp"

namespace ptxgen::coverage {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "ptxgen coverage 1";

Json json_of(const Share& share) { return {share.covered, share.all}; }

Json json_of(const CellMap& map) {
  Json cells = Json::array();
  for (const Cell& cell : map.cells) {
    if (cell.accesses() == 0) {
      cells.push_back(Json::array());
    } else {
      cells.push_back({cell.reads, cell.writes, cell.first_block, cell.last_block,
                       cell.first_thread, cell.last_thread});
    }
  }
  return {{"buffer", map.buffer},
          {"rows", map.rows},
          {"columns", map.columns},
          {"side", map.side},
          {"covered", json_of(Share{map.covered(), map.cells.size()})},
          {"cells", std::move(cells)}};
}

Json json_of(const CaseCounts& counts) {
  Json cells = Json::array();
  for (const CellMap& map : counts.cells) cells.push_back(json_of(map));
  return {{"name", counts.name},      {"launches", counts.launches},
          {"blocks", counts.blocks},  {"edges", counts.edges},
          {"taken", counts.taken},    {"not_taken", counts.not_taken},
          {"cells", std::move(cells)}};
}

Json json_of(const KernelCoverage& kernel) {
  Json blocks = Json::array();
  for (const Block& block : kernel.blocks) {
    blocks.push_back({{"function", block.function},
                      {"line", block.line},
                      {"last_line", block.last_line},
                      {"text", block.text}});
  }
  Json edges = Json::array();
  for (const Edge& edge : kernel.edges) {
    edges.push_back({edge.from, edge.to == kExit ? Json(nullptr) : Json(edge.to), edge.counted});
  }
  Json conditions = Json::array();
  for (const Condition& condition : kernel.conditions) {
    conditions.push_back({{"block", condition.block},
                          {"line", condition.line},
                          {"text", condition.text},
                          {"branch", condition.branch}});
  }
  Json cases = Json::array();
  for (const CaseCounts& counts : kernel.cases) cases.push_back(json_of(counts));
  const CaseCounts sum = total(kernel);
  Json gaps = Json::array();
  for (const Missed& gap : missed(kernel, sum)) {
    gaps.push_back({{"line", gap.line}, {"what", gap.text}});
  }
  const Shares covered = shares(kernel);
  return {{"kernel", kernel.kernel},
          {"code", kernel.code},
          {"of", kernel.of},
          {"blocks", std::move(blocks)},
          {"edges", std::move(edges)},
          {"conditions", std::move(conditions)},
          {"cases", std::move(cases)},
          {"covered",
           {{"blocks", json_of(covered.blocks)},
            {"edges", json_of(covered.edges)},
            {"branch_outcomes", json_of(covered.branches)},
            {"guard_outcomes", json_of(covered.guards)},
            {"cells", json_of(covered.cells)}}},
          {"missed", std::move(gaps)}};
}

/// Reads one document; errors name the file and the place in it.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  [[nodiscard]] Coverage read(std::string_view text) {
    Json json;
    try {
      json = Json::parse(text);
    } catch (const Json::exception& error) {
      refuse("the file", error.what());
    }
    if (!json.is_object() || json.value("format", "") != kFormat) {
      refuse("format", format_text("expected '{}'", kFormat));
    }
    Coverage coverage;
    try {
      for (const Json& kernel : json.at("kernels")) coverage.kernels.push_back(read_kernel(kernel));
    } catch (const Json::exception& error) {
      refuse(place_, error.what());
    }
    return coverage;
  }

 private:
  [[noreturn]] void refuse(std::string_view place, std::string_view what) const {
    Error error(Stage::Io, "bad-coverage",
                format_text("{}: {}: {}; a file of `ptxgen coverage --out` has the format '{}'",
                            file_, place, what, kFormat));
    error.file = std::string(file_);
    throw error;
  }

  [[nodiscard]] KernelCoverage read_kernel(const Json& json) {
    KernelCoverage kernel;
    place_ = "a kernel";
    json.at("kernel").get_to(kernel.kernel);
    place_ = "kernel " + kernel.kernel;
    json.at("code").get_to(kernel.code);
    json.at("of").get_to(kernel.of);
    for (const Json& block : json.at("blocks")) {
      kernel.blocks.push_back(
          {block.at("function").get<std::string>(), block.at("line").get<std::uint32_t>(),
           block.at("last_line").get<std::uint32_t>(), block.at("text").get<std::string>()});
    }
    const auto block_number = [&](const Json& number) {
      const auto index = number.get<std::uint32_t>();
      if (index >= kernel.blocks.size()) {
        refuse(place_, format_text("there is no block {}", index));
      }
      return index;
    };
    for (const Json& edge : json.at("edges")) {
      kernel.edges.push_back({block_number(edge.at(0)),
                              edge.at(1).is_null() ? kExit : block_number(edge.at(1)),
                              edge.at(2).get<bool>()});
    }
    for (const Json& condition : json.at("conditions")) {
      kernel.conditions.push_back(
          {block_number(condition.at("block")), condition.at("line").get<std::uint32_t>(),
           condition.at("text").get<std::string>(), condition.at("branch").get<bool>()});
    }
    for (const Json& counts : json.at("cases")) kernel.cases.push_back(read_case(counts, kernel));
    return kernel;
  }

  [[nodiscard]] CaseCounts read_case(const Json& json, const KernelCoverage& kernel) {
    CaseCounts counts;
    json.at("name").get_to(counts.name);
    const std::string kernel_place = place_;
    place_ += ", case '" + counts.name + "'";
    json.at("launches").get_to(counts.launches);
    const auto read = [&](const char* member, std::vector<std::uint64_t>& to, std::size_t size) {
      json.at(member).get_to(to);
      if (to.size() != size) {
        refuse(place_, format_text("{} has {} numbers, expected {}", member, to.size(), size));
      }
    };
    read("blocks", counts.blocks, kernel.blocks.size());
    read("edges", counts.edges, kernel.edges.size());
    read("taken", counts.taken, kernel.conditions.size());
    read("not_taken", counts.not_taken, kernel.conditions.size());
    for (const Json& map : json.at("cells")) counts.cells.push_back(read_cells(map));
    place_ = kernel_place;
    return counts;
  }

  [[nodiscard]] CellMap read_cells(const Json& json) {
    CellMap map;
    json.at("buffer").get_to(map.buffer);
    json.at("rows").get_to(map.rows);
    json.at("columns").get_to(map.columns);
    json.at("side").get_to(map.side);
    const Json& cells = json.at("cells");
    // A side of 0 would be divided by.
    if (map.side == 0 || cells.size() != map.cell_rows() * map.cell_columns()) {
      refuse(place_, format_text("buffer {}: {} cells for {} x {} elements in cells of {}",
                                 map.buffer, cells.size(), map.rows, map.columns, map.side));
    }
    for (const Json& cell : cells) {
      Cell& to = map.cells.emplace_back();
      if (cell.empty()) continue;
      cell.at(0).get_to(to.reads);
      cell.at(1).get_to(to.writes);
      cell.at(2).get_to(to.first_block);
      cell.at(3).get_to(to.last_block);
      cell.at(4).get_to(to.first_thread);
      cell.at(5).get_to(to.last_thread);
    }
    return map;
  }

  std::string_view file_;
  std::string place_ = "kernels";
};

}  // namespace

std::string to_json(const Coverage& coverage) {
  Json kernels = Json::array();
  for (const KernelCoverage& kernel : coverage.kernels) kernels.push_back(json_of(kernel));
  return Json{{"format", kFormat},
              {"made_by", format_text("ptxgen {}", kVersion)},
              {"kernels", std::move(kernels)}}
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

Coverage parse(std::string_view text, std::string_view file) { return Reader(file).read(text); }

}  // namespace ptxgen::coverage
