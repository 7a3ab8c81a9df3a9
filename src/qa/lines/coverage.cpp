// src/qa/lines/coverage.cpp - 4: coverage of the GEMV kernels, recorded from their execution
#include "coverage/coverage.hpp"

#include <algorithm>
#include <cstring>

#include "coverage/recorder.hpp"
#include "ptxgen/kernels.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"
#include "support/numbers.hpp"

namespace ptxgen::qa {

namespace covering {
namespace {

using coverage::CellMap;
using coverage::Coverage;
using coverage::KernelCoverage;

struct Shape {
  std::uint32_t k = 0;  // rows of A
  std::uint32_t n = 0;  // columns
};
// Those of the specification.
constexpr Shape kShapes[] = {{16, 8},   {256, 256}, {512, 512}, {4096, 4096},
                             {127, 63}, {1, 4096},  {4096, 1}};
constexpr Shape kDomain{256, 256};
constexpr double kThreshold = 90.0;  // percent, of the specification

std::string text_of(const Shape& shape) { return format_text("{} x {}", shape.k, shape.n); }

// One launch of a GEMV kernel: its code, and the cells of A and y.
template <Described K>
void record_gemv(Fixture& fixture, const Shape& shape, Tally& tally, Coverage& all) {
  const K spec{shape.k, shape.n};
  const Problem problem = random_problem(shape.k, shape.n, 24);
  Emulation emulation(gpu_of(fixture.device().info()));
  const std::uint64_t y_bytes = std::uint64_t{4} * shape.n;
  const std::uint64_t a_bytes = y_bytes * shape.k;
  const std::uint64_t y = emulation.allocate(y_bytes);
  const std::uint64_t a = emulation.upload(problem.a);
  const std::uint64_t arguments[] = {y, a, emulation.upload(problem.x), shape.k, shape.n};
  emulator::Program program = emulator::Program::load(emulation.device(), fixture.build(spec));
  const emulator::Program::Kernel& kernel = program.kernels().front();
  std::vector<std::byte> block(kernel.parameter_bytes);
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    std::memcpy(block.data() + kernel.parameters[i].offset, &arguments[i],
                kernel.parameters[i].bytes);
  }
  const LaunchGeometry geometry = spec.geometry();
  emulator::Launch launch;
  launch.kernel = kernel.name;
  launch.grid = {geometry.grid.x, geometry.grid.y, geometry.grid.z};
  launch.block = {geometry.block.x, geometry.block.y, geometry.block.z};
  launch.parameters = block;
  coverage::CellRecorder recorder(
      {{"a", a, a_bytes, 4, shape.k, shape.n}, {"y", y, y_bytes, 4, 1, shape.n}});
  const emulator::Result result = emulator::observe(program, launch, recorder);
  tally.check(result.status == emulator::Status::Ok, "{} {}: {}", kernel.name, text_of(shape),
              first_error(result));
  KernelCoverage code =
      coverage::of_launch(program.module(), kernel.name, result.counters, text_of(shape));
  code.cases.front().cells = recorder.take();
  coverage::add(all, std::move(code));
}

Coverage recorded(Fixture& fixture, std::span<const Shape> shapes, Tally& tally) {
  Coverage all;
  for (const Shape& shape : shapes) {
    record_gemv<GemvCoalesced>(fixture, shape, tally, all);
    record_gemv<GemvStrided>(fixture, shape, tally, all);
  }
  return all;
}

const CellMap* find_cells(const coverage::CaseCounts& counts, std::string_view buffer) {
  const auto found = std::ranges::find(counts.cells, buffer, &CellMap::buffer);
  return found == counts.cells.end() ? nullptr : &*found;
}

coverage::Share covered(const CellMap& map) { return {map.covered(), map.cells.size()}; }

// C1 ----------------------------------------------------------------------------------------------

struct Sums {
  coverage::Share cells, outcomes;
};

// Cells of the domain in A, and outcomes, of both kernels; of one case or of all.
Sums sums_of(const Coverage& all, std::string_view only = {}) {
  Sums sums;
  for (const KernelCoverage& kernel : all.kernels) {
    const auto one = std::ranges::find(kernel.cases, only, &coverage::CaseCounts::name);
    const coverage::CaseCounts counts = one == kernel.cases.end() ? coverage::total(kernel) : *one;
    sums.outcomes += coverage::shares(kernel, counts).outcomes();
    if (const CellMap* const map = find_cells(counts, "a")) {
      sums.cells += covered(coverage::domain(*map, kDomain.k, kDomain.n));
    }
  }
  return sums;
}

Outcome cells_and_outcomes(Fixture& fixture, const Line&) {
  Tally tally;
  const std::span<const Shape> shapes =
      fixture.changed() ? std::span(&kDomain, 1) : std::span(kShapes);
  const Coverage all = recorded(fixture, shapes, tally);
  const Sums sums = sums_of(all);
  const Sums reduced = sums_of(all, text_of(kDomain));
  tally.check(sums.cells.all != 0 && sums.cells.percent() >= kThreshold,
              "{} of {} cells of 16 x 16 in {} are accessed", sums.cells.covered, sums.cells.all,
              text_of(kDomain));
  tally.check(sums.outcomes.all != 0 && sums.outcomes.percent() >= kThreshold,
              "{} of {} outcomes are executed, {:.1f} %", sums.outcomes.covered, sums.outcomes.all,
              sums.outcomes.percent());
  tally.check(reduced.outcomes.covered < sums.outcomes.covered,
              "{} alone executes as many outcomes as all cases, {}", text_of(kDomain),
              sums.outcomes.covered);
  tally.figure("{} of {} cells, {} of {} outcomes ({:.1f} %); {} alone: {} ({:.1f} %)",
               sums.cells.covered, sums.cells.all, sums.outcomes.covered, sums.outcomes.all,
               sums.outcomes.percent(), text_of(kDomain), reduced.outcomes.covered,
               reduced.outcomes.percent());
  return tally.outcome();
}

// C2 ----------------------------------------------------------------------------------------------

// The numbers of an attribute of an SVG, in the order of its elements.
std::vector<std::uint64_t> attributes_of(std::string_view svg, std::string_view name) {
  const std::string begin = format_text(" {}=\"", name);
  std::vector<std::uint64_t> values;
  for (auto at = svg.find(begin); at != svg.npos; at = svg.find(begin, at)) {
    at += begin.size();
    std::string_view rest = std::string_view(svg).substr(at);
    values.push_back(take_number<std::uint64_t>(rest).value_or(0));
  }
  return values;
}

// Each element of A is read once in each case: how many reads a cell has.
std::uint64_t expected_reads(std::uint64_t row, std::uint64_t column, const Shape& shape) {
  const auto overlap = [](std::uint64_t cell, std::uint64_t extent) {
    return std::min(cell * 16 + 16, extent) - std::min(cell * 16, extent);
  };
  return overlap(row, shape.k) * overlap(column, shape.n);
}

void compare_picture(const CellMap& map, Tally& tally) {
  const coverage::Grid grid = coverage::grid_of(map, 128, 128);
  const std::string svg = coverage::heat_map_svg(map, "gemv");
  const std::vector<std::uint64_t> drawn = attributes_of(svg, "data-accesses");
  const coverage::Pixels pixels = coverage::read_png(coverage::heat_map_png(map));
  const std::string text = coverage::heat_map_text(map);
  if (!tally.check(drawn.size() == map.cells.size(), "the SVG has {} fields for {} cells",
                   drawn.size(), map.cells.size()) ||
      !tally.check(pixels.width == 8 * grid.columns && pixels.height == 8 * grid.rows,
                   "the PNG has {} x {} pixels", pixels.width, pixels.height)) {
    return;
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    const std::size_t pixel = i / grid.columns * 8 * pixels.width + i % grid.columns * 8;
    wrong += drawn[i] != map.cells[i].accesses() ||
             pixels.colours[pixel] != coverage::colour_of(grid, grid.fields[i]);
  }
  tally.check(wrong == 0, "{} fields of SVG and PNG are not those of the recorder", wrong);
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
  tally.check(lines == grid.rows + 2, "the heat map of the terminal has {} lines", lines);
}

Outcome heat_map(Fixture& fixture, const Line&) {
  if (!coverage::has_png()) return skipped(Need::Tool, "this build has no libpng");
  Tally tally;
  constexpr Shape kDrawn[] = {kDomain, {127, 63}};
  Coverage all;
  for (const Shape& shape : kDrawn) record_gemv<GemvCoalesced>(fixture, shape, tally, all);
  const coverage::CaseCounts recorder = coverage::total(all.kernels.front());
  if (fixture.changed()) ++all.kernels.front().cases.front().cells.front().cells[17].reads;
  const Coverage file = coverage::parse(coverage::to_json(all), "coverage.json");
  const CellMap* const found = find_cells(recorder, "a");
  const coverage::CaseCounts read = coverage::total(file.kernels.front());
  const CellMap* const written = find_cells(read, "a");
  if (!tally.check(found != nullptr && written != nullptr, "no cells were recorded")) {
    return tally.outcome();
  }
  tally.check(*written == *found, "the file's cells are not the recorder's");
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < found->cells.size(); ++i) {
    std::uint64_t expected = 0;
    for (const Shape& shape : kDrawn) {
      expected += expected_reads(i / found->cell_columns(), i % found->cell_columns(), shape);
    }
    wrong += found->cells[i].reads != expected || found->cells[i].writes != 0;
  }
  tally.check(wrong == 0, "{} cells have other counts than their elements, each read once", wrong);
  compare_picture(*written, tally);
  tally.figure("{} cells in JSON, SVG, PNG and text as recorded; each element read once per case",
               found->cells.size());
  return tally.outcome();
}

// C3 ----------------------------------------------------------------------------------------------

Outcome all_configurations(Fixture& fixture, const Line&) {
  Tally tally;
  const Coverage all = recorded(fixture, kShapes, tally);
  tally.check(all.kernels.size() == 2, "{} kernels were recorded", all.kernels.size());
  for (const KernelCoverage& kernel : all.kernels) {
    tally.check(kernel.cases.size() == std::size(kShapes), "{}: {} of {} cases", kernel.kernel,
                kernel.cases.size(), std::size(kShapes));
    for (const coverage::CaseCounts& counts : kernel.cases) {
      for (const CellMap& map : counts.cells) {
        const coverage::Share share = covered(map);
        tally.check(share.covered == share.all, "{} {}: {} of {} cells of {} are accessed",
                    kernel.kernel, counts.name, share.covered, share.all, map.buffer);
      }
    }
    for (const coverage::Missed& gap : coverage::missed(kernel, coverage::total(kernel))) {
      tally.figure("not executed: {}:{}: {}", kernel.kernel, gap.line, gap.text);
    }
  }
  return tally.outcome();
}

// The number of the block no longer counts.
void same_columns_in_every_block(ptx::Module& module) {
  if (module.text(module.functions.front().name) != GemvCoalesced::kName) return;
  set_operand(module, ptx::Op::mad, 0, 2, ptx::Operand::integer(0));
}

constexpr Line kLines[] = {
    {"4.C1",
     Section::Coverage,
     5,
     "90 % of cells and of branch outcomes are executed",
     "gemv_coalesced and gemv_strided, seven shapes: cells of 16 x 16 in 256 x 256 of A, outcomes "
     "of branches and guards, from execution; fewer outcomes in 256 x 256 alone",
     Means::Emulator,
     cells_and_outcomes,
     {"256 x 256 is the only shape"},
     "ptxgen coverage gemv_coalesced --cases"},
    {"4.C2",
     Section::Coverage,
     3,
     "the heat map has the recorder's counts",
     "JSON, SVG, PNG and text of two cases, field by field; each element of A is read once",
     Means::Emulator,
     heat_map,
     {"the file has one read more in one cell"},
     "ptxgen coverage gemv_coalesced -p k=256 -p n=256 --out coverage"},
    {"4.C3",
     Section::Coverage,
     2,
     "all configurations are exercised",
     "seven shapes of two kernels: every cell of A and y is accessed in each; what no shape "
     "executes is listed",
     Means::Emulator,
     all_configurations,
     {"every block of gemv_coalesced works on the first columns", same_columns_in_every_block},
     "ptxgen coverage gemv_coalesced --cases"},
};

}  // namespace
}  // namespace covering

std::span<const Line> coverage_lines() { return covering::kLines; }

}  // namespace ptxgen::qa
