// src/kernels/gemv/traffic.cpp - global memory traffic of a GEMV
#include <algorithm>
#include <numeric>

#include "kernels/gemv/model.hpp"
#include "kernels/gemv/partition.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

constexpr std::uint64_t kSector = 32;
constexpr std::uint64_t kWarp = 32;

// Sectors that `bytes` bytes at `offset` bytes from a sector's start touch.
std::uint64_t sectors(std::uint64_t offset, std::uint64_t bytes) noexcept {
  return bytes == 0 ? 0 : (offset % kSector + bytes - 1) / kSector + 1;
}

// The loads of a row of the matrix: windows of 32 lanes, then the rest.
struct Row {
  std::uint64_t windows = 0;  // whole ones
  std::uint64_t lanes = 0;    // of the last one that load a whole vector
  std::uint64_t tail = 0;     // elements after them
};

Row row_of(std::uint64_t length, std::uint64_t lane) noexcept {
  return {length / (kWarp * lane), length % (kWarp * lane) / lane, length % lane};
}

// The full steps that bulk copies load, row by row of each strip; empty on other paths.
struct Copies {
  std::uint64_t rows = 0;      // of the matrix, in which there are copies
  std::uint64_t elements = 0;  // of each row that they bring (layout R)
  std::uint64_t of_row = 0;    // copies
  std::uint64_t full = 0;      // of these with `bytes` each
  std::uint64_t bytes = 0;
  std::uint64_t last_bytes = 0;  // of one more
};

Copies copies_of(const GemvPlan& plan) noexcept {
  Copies copies;
  if (plan.path != GemvPath::Bulk) return copies;
  const GemvProblem& problem = plan.problem;
  const std::uint64_t element = bytes(problem.weights);
  const std::uint64_t steps = problem.k / plan.step_elements();
  if (steps == 0) return copies;
  if (problem.layout == GemvLayout::R) {
    copies.rows = problem.n;
    copies.elements = steps * plan.step_elements();
    copies.of_row = copies.full = steps;
    copies.bytes = plan.step_elements() * element;
    return copies;
  }
  // Columns that do not fill a load are read by their lane.
  const std::uint64_t columns = problem.n - problem.n % lane_elements(plan);
  copies.rows = steps * plan.step_elements();
  copies.of_row = plan.strips();
  copies.full = columns / plan.strip_outputs();
  copies.bytes = plan.strip_outputs() * element;
  copies.last_bytes = columns % plan.strip_outputs() * element;
  return copies;
}

// Elements of x that lanes load: all k for every lane that has columns, or for the lanes of every
// warp that has rows; during steps from a ring of bulk copies, for every lane.
std::uint64_t factors_read(const GemvPlan& plan) noexcept {
  const GemvProblem& problem = plan.problem;
  const std::uint64_t k = problem.k;
  const bool by_lane = problem.layout == GemvLayout::T;
  // Blocks of threads read x for all their rows together.
  if (is_block_format(problem.weights)) return (keeps_x(plan) ? plan.blocks : plan.strips()) * k;
  const std::uint64_t readers = ceil_div(problem.n, by_lane ? lane_elements(plan) : plan.rows);
  if (plan.path != GemvPath::Bulk) return readers * k;
  const std::uint64_t copied = k / plan.step_elements() * plan.step_elements();
  const std::uint64_t all = plan.strips() * plan.warps_out * (by_lane ? kWarp : 1);
  // A lane with fewer columns than a load goes through k once more by itself.
  const std::uint64_t apart = by_lane && problem.n % lane_elements(plan) != 0 ? 1 : 0;
  return all * copied + (readers - apart) * (k - copied) + apart * k;
}

// Rows of blocks: each step's panels, in loads of 32 lanes.
Weights weights_of_blocks(const GemvPlan& plan, const BlockFormat& format) noexcept {
  const GemvProblem& problem = plan.problem;
  const std::uint64_t row = bytes(problem.weights, problem.k);
  const std::uint64_t pitch = bytes(problem.weights, problem.leading_dimension());
  const std::uint64_t load = std::uint64_t{kWarp} * plan.load_bytes;
  const std::uint64_t start = problem.a_alignment < 16 ? problem.a_alignment : 0;
  const std::uint64_t period = kSector / std::gcd(pitch, kSector);
  Weights all;
  all.bytes = problem.n * row;
  for (std::uint64_t kind = 0; kind < period && kind < problem.n; ++kind) {
    const std::uint64_t rows = ceil_div(problem.n - kind, period);
    const std::uint64_t first = start + kind * pitch;
    all.matrix_bytes += rows * sectors(first, row) * kSector;
    for (std::uint64_t panel = 0; panel < row; panel += format.panel_bytes()) {
      const std::uint64_t end = std::min<std::uint64_t>(row, panel + format.panel_bytes());
      for (std::uint64_t at = panel; at < end; at += load) {
        all.requests += rows;
        all.sectors += rows * sectors(first + at, std::min(end - at, load));
      }
    }
  }
  const std::uint64_t span = (problem.n - 1) * pitch + row;
  all.matrix_bytes = std::min(all.matrix_bytes, sectors(start, span) * kSector);
  return all;
}

// Repacked rows: of each part of a step, a load of each array and one more of the low bits of q6_k.
// Rows and arrays begin at sectors. A load has a row, or one for each half of the warp.
Weights weights_of_repacked(const GemvPlan& plan, const BlockFormat& format) noexcept {
  const GemvProblem& problem = plan.problem;
  const std::span<const BlockField> fields = repacked_fields(format.type);
  const std::uint64_t blocks = problem.k / info(format.type).block_values;
  const std::uint64_t step = std::uint64_t{format.parts} * format.part_blocks();
  std::uint64_t loads = 0;
  std::uint64_t row_sectors = 0;
  // Blocks of a load of the array, which begins with a multiple of them.
  const auto add = [&](const BlockField& field, std::uint64_t of_load, std::uint64_t times) {
    for (std::uint64_t at = 0; at < blocks; at += of_load) {
      loads += times;
      row_sectors += sectors(at * field.bytes, std::min(of_load, blocks - at) * field.bytes);
    }
  };
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const bool low_bits = f == 0 && format.type == ElementType::q6_k;
    add(fields[f], f == 0 ? format.part_blocks() : step, low_bits ? 2 : 1);
  }
  Weights all;
  all.bytes = problem.n * bytes(problem.weights, problem.k);
  all.requests = ceil_div(problem.n, kWarp / format.lanes) * loads;
  all.sectors = problem.n * row_sectors;
  all.matrix_bytes = problem.n * problem.row_bytes();
  return all;
}

}  // namespace

Weights weights(const GemvPlan& plan) noexcept {
  const GemvProblem& problem = plan.problem;
  if (const BlockFormat* format = block_format(problem)) {
    return format->repacked ? weights_of_repacked(plan, *format) : weights_of_blocks(plan, *format);
  }
  const bool by_lane = problem.layout == GemvLayout::T;
  const std::uint64_t rows = by_lane ? problem.k : problem.n;
  const std::uint64_t length = by_lane ? problem.n : problem.k;
  const std::uint64_t element = bytes(problem.weights);
  const std::uint64_t pitch = problem.leading_dimension() * element;
  const std::uint64_t start = problem.a_alignment < 16 ? problem.a_alignment : 0;
  const Copies copies = copies_of(plan);
  // The part of a row that lanes load: all of it, or the rest after bulk copies.
  const std::uint64_t left = by_lane ? length : length - copies.elements;
  const std::uint64_t direct_rows = by_lane ? rows - copies.rows : rows;
  const Row row = row_of(left, lane_elements(plan));
  // The elements after the last full vector: layout R reads them with one load of consecutive
  // lanes, layout T with one lane and one load each.
  const std::uint64_t tail_loads = by_lane ? row.tail : std::min<std::uint64_t>(row.tail, 1);
  const std::uint64_t vector_loads = row.windows + (row.lanes != 0 ? 1 : 0);
  Weights result;
  result.bytes = rows * length * element;
  result.requests = copies.rows * copies.of_row + direct_rows * vector_loads + rows * tail_loads;
  // Rows with the same offset in a sector are equal: at most 16 kinds.
  const std::uint64_t period = kSector / std::gcd(pitch, kSector);
  for (std::uint64_t kind = 0; kind < period && kind < rows; ++kind) {
    const auto of_kind = [&](std::uint64_t all) {
      return all > kind ? ceil_div(all - kind, period) : 0;
    };
    const std::uint64_t offset = (start + kind * pitch) % kSector;
    const std::uint64_t direct = offset + (by_lane ? 0 : copies.elements * element);
    const std::uint64_t after = direct + row.lanes * plan.load_bytes;
    const std::uint64_t vectors = row.windows * sectors(direct, kWarp * plan.load_bytes) +
                                  sectors(direct, row.lanes * plan.load_bytes);
    const std::uint64_t tail = by_lane ? row.tail : sectors(after, row.tail * element);
    const std::uint64_t copied =
        copies.full * sectors(offset, copies.bytes) + sectors(offset, copies.last_bytes);
    result.sectors += of_kind(copies.rows) * copied + of_kind(rows) * tail +
                      (of_kind(rows) - (by_lane ? of_kind(copies.rows) : 0)) * vectors;
    result.matrix_bytes += of_kind(rows) * sectors(offset, length * element) * kSector;
  }
  const std::uint64_t span = sectors(start, problem.matrix_elements() * element) * kSector;
  result.matrix_bytes = std::min(result.matrix_bytes, span);
  return result;
}

Traffic traffic(const GemvPlan& plan, const Weights& weights, const Division& division) noexcept {
  const GemvProblem& problem = plan.problem;
  const std::uint64_t n = problem.n;
  const std::uint64_t operands =
      (problem.scaled ? 1u : 0u) + (problem.bias ? 1u : 0u) + (problem.residual ? 1u : 0u);
  // A part is the sums of a full strip, including outputs beyond n, and a ticket.
  const std::uint64_t parts = division.parts * plan.strip_outputs() * sizeof(float);
  Traffic traffic;
  traffic.bytes_read = weights.bytes + bytes(problem.x, factors_read(plan)) +
                       operands * n * bytes(problem.y) + parts;
  traffic.bytes_written = n * bytes(problem.y) + parts + division.parts * sizeof(std::uint32_t);
  return traffic;
}

}  // namespace ptxgen::inline v0::gemv
