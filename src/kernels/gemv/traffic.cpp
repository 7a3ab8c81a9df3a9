// src/kernels/gemv/traffic.cpp - what a GEMV asks of global memory
#include <algorithm>
#include <numeric>

#include "kernels/gemv/model.hpp"
#include "kernels/gemv/partition.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

constexpr std::uint64_t kSector = 32;
constexpr std::uint64_t kWarp = 32;

// Sectors that `bytes` bytes touch which begin `offset` bytes behind a sector's first.
std::uint64_t sectors(std::uint64_t offset, std::uint64_t bytes) noexcept {
  return bytes == 0 ? 0 : (offset % kSector + bytes - 1) / kSector + 1;
}

// A row of the matrix as the warps' loads cut it up: windows of 32 lanes, then what is left.
struct Row {
  std::uint64_t windows = 0;  // whole ones
  std::uint64_t lanes = 0;    // of the last one that load a whole vector
  std::uint64_t tail = 0;     // elements behind them
};

Row row_of(std::uint64_t length, std::uint64_t lane) noexcept {
  return {length / (kWarp * lane), length % (kWarp * lane) / lane, length % lane};
}

}  // namespace

Weights weights(const GemvProblem& problem, std::uint32_t load_bytes) noexcept {
  const std::uint64_t rows = problem.layout == GemvLayout::T ? problem.k : problem.n;
  const std::uint64_t length = problem.layout == GemvLayout::T ? problem.n : problem.k;
  const std::uint64_t element = bytes(problem.weights);
  const std::uint64_t pitch = problem.leading_dimension() * element;
  const std::uint64_t start = problem.a_alignment < 16 ? problem.a_alignment : 0;
  const Row row = row_of(length, load_bytes / element);
  Weights made;
  made.bytes = rows * length * element;
  // The elements behind the last whole vector: layout R has them side by side in one load, with
  // layout T they are the work of one lane, one load each.
  const bool by_lane = problem.layout == GemvLayout::T;
  const std::uint64_t tail_loads = by_lane ? row.tail : std::min<std::uint64_t>(row.tail, 1);
  made.requests = rows * (row.windows + (row.lanes != 0 ? 1 : 0) + tail_loads);
  // Rows that begin at the same place of a sector are alike: at most 16 kinds.
  const std::uint64_t period = kSector / std::gcd(pitch, kSector);
  for (std::uint64_t kind = 0; kind < period && kind < rows; ++kind) {
    const std::uint64_t offset = (start + kind * pitch) % kSector;
    const std::uint64_t count = ceil_div(rows - kind, period);
    const std::uint64_t behind = offset + row.lanes * load_bytes;
    const std::uint64_t of_row = row.windows * sectors(offset, kWarp * load_bytes) +
                                 sectors(offset, row.lanes * load_bytes) +
                                 (by_lane ? row.tail : sectors(behind, row.tail * element));
    made.sectors += count * of_row;
    made.matrix_bytes += count * sectors(offset, length * element) * kSector;
  }
  const std::uint64_t span = sectors(start, problem.matrix_elements() * element) * kSector;
  made.matrix_bytes = std::min(made.matrix_bytes, span);
  return made;
}

Traffic traffic(const GemvPlan& plan, const Weights& weights, const Division& division) noexcept {
  const GemvProblem& problem = plan.problem;
  const std::uint64_t k = problem.k;
  const std::uint64_t n = problem.n;
  // x by every lane that has columns, or once by the lanes of every warp that has rows.
  const std::uint64_t readers =
      ceil_div(n, problem.layout == GemvLayout::T ? lane_elements(plan) : plan.rows);
  const std::uint64_t operands =
      (problem.scaled ? 1u : 0u) + (problem.bias ? 1u : 0u) + (problem.residual ? 1u : 0u);
  // A part is the sums of a whole strip, whatever of it lies beyond n, and a ticket.
  const std::uint64_t parts = division.parts * plan.strip_outputs() * sizeof(float);
  Traffic traffic;
  traffic.bytes_read =
      weights.bytes + readers * k * bytes(problem.x) + operands * n * bytes(problem.y) + parts;
  traffic.bytes_written = n * bytes(problem.y) + parts + division.parts * sizeof(std::uint32_t);
  return traffic;
}

}  // namespace ptxgen::inline v0::gemv
