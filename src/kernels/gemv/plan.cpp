// src/kernels/gemv/plan.cpp - derived figures of a GEMV plan
#include "ptxgen/kernels/gemv/plan.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "kernels/gemv/partition.hpp"
#include "ptx/occupancy.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"
#include "ptxgen/ptx/limits.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

using gemv::ceil_div;

namespace gemv {

namespace {

// Of a lane that decodes a part: its integers and scales, addresses.
constexpr std::uint32_t kBlockRegisters = 48;

}  // namespace

Items items(const GemvPlan& plan) noexcept {
  Items items;
  const std::uint64_t steps = plan.steps();
  items.steps = plan.chunk_steps == 0 ? 1 : std::min<std::uint64_t>(plan.chunk_steps, steps);
  items.per_strip = ceil_div(steps, items.steps);
  const std::uint64_t strips = plan.strips();
  items.all = strips * items.per_strip;
  items.blocks_in_strip = plan.blocks % strips == 0;
  items.full_strips = strips % plan.blocks == 0;
  return items;
}

// floor(b * all / blocks) without a product that may pass 64 bits: all = quotient * blocks + rest.
std::uint64_t first_item(const Items& items, std::uint64_t blocks, std::uint64_t block) noexcept {
  return block * (items.all / blocks) + block * (items.all % blocks) / blocks;
}

bool uses_workspace(const GemvPlan& plan) noexcept { return plan.max_parts() > 1; }

std::uint64_t slots(const GemvPlan& plan) noexcept {
  const Items parts = items(plan);
  if (plan.chunk_steps != 0) return parts.all;
  if (parts.blocks_in_strip) return plan.blocks / plan.cluster;
  return plan.blocks + plan.strips() - 1;
}

std::uint64_t slot_bytes(const GemvPlan& plan) noexcept {
  return ceil_div(std::uint64_t{4} * plan.strip_outputs(), 16) * 16;
}

std::uint64_t stack_bytes(const GemvPlan& plan) noexcept {
  return (std::uint64_t{plan.warps_k} - 1) * slot_bytes(plan);
}

std::uint64_t mbarrier_bytes(const GemvPlan& plan) noexcept {
  return plan.path == GemvPath::Bulk ? std::uint64_t{16} * plan.stages : 0;
}

namespace {

// Shared memory for x: about what lets two blocks of a kernel stay on a multiprocessor.
constexpr std::uint64_t kWindowBytes = 48 << 10;

std::uint64_t x_step_bytes(const GemvPlan& plan, const BlockFormat& format) noexcept {
  return std::uint64_t{plan.warps_k} * plan.unroll * plan.batch *
         staged_x(format, plan.problem.x).step_bytes();
}

}  // namespace

std::uint64_t ring_bytes(const GemvPlan& plan) noexcept {
  const BlockFormat* format = block_format(plan.problem);
  if (format == nullptr) return step_bytes(plan) * plan.stages;
  if (format->repacked) return 0;
  return std::uint64_t{plan.threads() / 32} * plan.warp_outputs() * format->slot_bytes() *
         std::max(1u, plan.stages);
}

std::uint64_t max_segment_steps(const GemvPlan& plan) noexcept {
  const Items parts = items(plan);
  if (plan.chunk_steps != 0) return parts.steps;
  return parts.full_strips ? plan.steps()
                           : std::min(plan.steps(), ceil_div(parts.all, plan.blocks));
}

std::uint32_t window_steps(const GemvPlan& plan) noexcept {
  const BlockFormat* format = block_format(plan.problem);
  if (format == nullptr) return 0;
  const std::uint64_t fit = std::max<std::uint64_t>(1, kWindowBytes / x_step_bytes(plan, *format));
  return static_cast<std::uint32_t>(std::min(fit, max_segment_steps(plan)));
}

std::uint64_t window_bytes(const GemvPlan& plan) noexcept {
  const BlockFormat* format = block_format(plan.problem);
  return format == nullptr ? 0 : window_steps(plan) * x_step_bytes(plan, *format);
}

bool keeps_x(const GemvPlan& plan) noexcept {
  if (block_format(plan.problem) == nullptr || plan.batch > 1) return false;
  const Items parts = items(plan);
  const bool full = parts.per_strip == 1 || (plan.chunk_steps == 0 && parts.full_strips);
  return full && plan.blocks < plan.strips() && plan.steps() <= window_steps(plan);
}

std::uint64_t dynamic_bytes(const GemvPlan& plan) noexcept {
  return ring_bytes(plan) + window_bytes(plan);
}

std::uint32_t min_registers(const GemvPlan& plan) noexcept {
  constexpr std::uint32_t kOthers = 20;
  if (const BlockFormat* blocks = block_format(plan.problem)) {
    const std::uint32_t x = staged_x(*blocks, plan.problem.x).digits * blocks->part_pieces() * 4;
    // A batch has all rows decoded while it goes through x.
    const std::uint32_t decoded = plan.batch == 1 ? 0 : plan.rows * blocks->part_pieces() * 4;
    const std::uint32_t loaded = blocks->repacked ? plan.rows * plan.unroll * blocks->words() : 0;
    return x + kBlockRegisters + plan.rows * plan.batch + std::max(decoded, loaded);
  }
  const bool r = plan.problem.layout == GemvLayout::R;
  const std::uint32_t factors = plan.unroll * (r ? lane_elements(plan) : 1);
  const std::uint32_t sums = r ? plan.rows : lane_elements(plan);
  return std::max(1u, plan.load_bytes / 4) * plan.unroll * plan.rows +
         (factors * bytes(plan.problem.x) + 3) / 4 + sums + kOthers;
}

std::uint32_t resident_blocks(const GemvPlan& plan) noexcept {
  if (block_format(plan.problem) == nullptr) return plan.blocks_per_sm;
  // More registers would only serve to decode several rows at a time.
  constexpr std::uint32_t kMaxRegisters = 128;
  const std::uint32_t all = ptx::Limits{}.registers_per_sm;
  return std::max({1u, plan.blocks_per_sm, all / (kMaxRegisters * plan.threads())});
}

std::uint32_t max_registers(const GemvPlan& plan) noexcept {
  return ptx::max_registers(ptx::Limits{}.registers_per_sm, plan.threads(), resident_blocks(plan));
}

std::uint64_t rank_bytes(const GemvPlan& plan) noexcept {
  return (std::uint64_t{plan.cluster} - 1) * slot_bytes(plan);
}

std::uint64_t step_bytes(const GemvPlan& plan) noexcept {
  return plan.strip_outputs() * bytes(plan.problem.weights, plan.step_elements());
}

}  // namespace gemv

std::string_view to_string(GemvLayout layout) noexcept {
  return layout == GemvLayout::T ? "T" : "R";
}

std::string_view to_string(GemvPath path) noexcept {
  switch (path) {
    case GemvPath::Async:
      return "async";
    case GemvPath::Bulk:
      return "bulk";
    case GemvPath::Direct:
      break;
  }
  return "direct";
}

std::uint64_t GemvProblem::row_bytes() const noexcept {
  return repacked ? repacked_bytes(weights, k) : bytes(weights, leading_dimension());
}

std::uint64_t GemvProblem::matrix_bytes() const noexcept {
  return repacked ? n * row_bytes() : bytes(weights, matrix_elements());
}

std::uint32_t widest_load(const GemvProblem& problem) noexcept {
  const std::uint32_t rows = problem.layout == GemvLayout::T ? problem.k : problem.n;
  const std::uint64_t pitch = problem.row_bytes();
  const bool shares_loads = is_block_format(problem.weights) && !problem.repacked;
  const std::uint64_t row = shares_loads ? bytes(problem.weights, problem.k) : 16;
  const std::uint64_t granule = (rows > 1 ? pitch : 16) | row | problem.a_alignment | 16;
  return std::uint32_t{1} << std::countr_zero(granule);
}

std::uint32_t GemvPlan::warp_outputs() const noexcept {
  if (problem.layout == GemvLayout::T) return 32 * gemv::lane_elements(*this);
  const gemv::BlockFormat* format = gemv::block_format(problem);
  return format != nullptr ? 32 / format->lanes * rows : rows;
}

std::uint32_t GemvPlan::strip_outputs() const noexcept { return warps_out * warp_outputs(); }

std::uint32_t GemvPlan::step_elements() const noexcept {
  const gemv::BlockFormat* format = gemv::block_format(problem);
  if (format != nullptr) return warps_k * unroll * format->step_weights();
  return warps_k * unroll * (problem.layout == GemvLayout::T ? 1 : 32 * gemv::lane_elements(*this));
}

std::uint64_t GemvPlan::strips() const noexcept { return ceil_div(problem.n, strip_outputs()); }

std::uint64_t GemvPlan::steps() const noexcept {
  return std::max<std::uint64_t>(1, ceil_div(problem.k, step_elements()));
}

std::uint64_t GemvPlan::first_unit(std::uint64_t block) const noexcept {
  const gemv::Items parts = gemv::items(*this);
  const std::uint64_t item = gemv::first_item(parts, blocks, block);
  return item / parts.per_strip * steps() + item % parts.per_strip * parts.steps;
}

bool GemvPlan::is_split() const noexcept {
  const gemv::Items parts = gemv::items(*this);
  return parts.per_strip > 1 && !parts.full_strips;
}

// Strip s has the units [s * steps, (s + 1) * steps), unit u belongs to block floor(((u + 1) *
// blocks - 1) / units). With r = s * blocks mod strips the strip's blocks are ceil((r + blocks) /
// strips) - floor((r * steps + blocks - 1) / units). r takes the multiples of gcd(blocks, strips);
// both terms grow with it, so the maximum is where the first has just grown.
std::uint64_t GemvPlan::max_parts() const noexcept {
  const gemv::Items parts = gemv::items(*this);
  if (chunk_steps != 0) return parts.per_strip;
  if (!is_split()) return 1;
  const std::uint64_t all_strips = strips();
  if (parts.blocks_in_strip) return blocks / all_strips / cluster;
  const auto contributors = [&](std::uint64_t r) {
    return ceil_div(r + blocks, all_strips) - (r * parts.per_strip + blocks - 1) / parts.all;
  };
  const std::uint64_t step = std::gcd<std::uint64_t, std::uint64_t>(blocks, all_strips);
  const std::uint64_t grown = ceil_div(blocks, all_strips) * all_strips - blocks + 1;
  const std::uint64_t r = ceil_div(grown, step) * step;
  const std::uint64_t first = contributors(0);
  return r < all_strips ? std::max(first, contributors(r)) : first;
}

std::uint64_t GemvPlan::shared_bytes() const noexcept {
  const std::uint64_t verdict = gemv::uses_workspace(*this) ? gemv::kVerdictBytes : 0;
  return gemv::stack_bytes(*this) + gemv::rank_bytes(*this) + verdict +
         gemv::mbarrier_bytes(*this) + gemv::dynamic_bytes(*this);
}

std::uint64_t GemvPlan::ticket_bytes() const noexcept {
  // Partial sums after them start at a 32-byte sector.
  return gemv::uses_workspace(*this) ? ceil_div(4 * strips(), 32) * 32 : 0;
}

std::uint64_t GemvPlan::workspace_bytes() const noexcept {
  if (!gemv::uses_workspace(*this)) return 0;
  return ticket_bytes() + gemv::slots(*this) * gemv::slot_bytes(*this);
}

std::uint64_t GemvPlan::bytes_in_flight() const noexcept {
  return gemv::step_bytes(*this) * (stages > 1 ? stages - 1 : 1);
}

// One per fused multiply-add of a lane, one per later addition.
std::uint64_t GemvPlan::roundings() const noexcept {
  const bool r = problem.layout == GemvLayout::R;
  const std::uint64_t part_steps = gemv::max_segment_steps(*this);
  const std::uint64_t v = gemv::lane_elements(*this);
  const std::uint64_t loads = part_steps * unroll;
  const std::uint64_t lane = r ? loads * v + (problem.k % v != 0 ? 1 : 0) : loads;
  const std::uint64_t epilogue =
      (problem.scaled ? 2u : 0u) + (problem.bias ? 1u : 0u) + (problem.residual ? 1u : 0u);
  return std::min<std::uint64_t>(problem.k, lane) + (r ? 5 : 0) + (warps_k - 1) + (cluster - 1) +
         (max_parts() - 1) + epilogue;
}

std::string to_text(const GemvProblem& problem) {
  const bool t = problem.layout == GemvLayout::T;
  const std::uint32_t row = t ? problem.n : problem.k;
  std::string text = format_text("{} {} {}x{}", to_string(problem.layout),
                                 to_string(problem.weights), t ? problem.k : problem.n, row);
  if (problem.repacked) text += " repacked";
  if (problem.leading_dimension() != row) text += format_text(" lda {}", problem.lda);
  if (problem.x != ElementType::f32) text += " x " + std::string(to_string(problem.x));
  if (problem.y != ElementType::f32) text += " y " + std::string(to_string(problem.y));
  const auto aligned = [&](std::string_view name, std::uint32_t alignment) {
    if (alignment < 16) text += format_text(" {} at {} B", name, alignment);
  };
  aligned("a", problem.a_alignment);
  aligned("x", problem.x_alignment);
  aligned("y", problem.y_alignment);
  if (problem.scaled) text += " scaled";
  if (problem.bias) text += " bias";
  if (problem.residual) text += " residual";
  return text;
}

std::string to_text(const GemvPlan& plan) {
  const std::uint64_t strips = plan.strips();
  std::string text = format_text("{} {} B, {}x{} warps, ", to_string(plan.path), plan.load_bytes,
                                 plan.warps_out, plan.warps_k);
  if (plan.rows != 1) text += count_text(plan.rows, "row") + ", ";
  text += format_text("{} in flight, {} (", plan.unroll, count_text(plan.blocks, "block"));
  if (plan.blocks % strips == 0) {
    text += format_text("{} per strip)", plan.blocks / strips);
  } else if (strips % plan.blocks == 0) {
    text += count_text(strips / plan.blocks, "strip") + " each)";
  } else {
    text += count_text(strips, "strip") + " in line)";
  }
  if (plan.chunk_steps != 0) {
    text += ", chunks of " + count_text(plan.chunk_steps, "step");
  }
  if (plan.cluster != 1) text += format_text(", clusters of {}", plan.cluster);
  if (plan.stages != 0) text += format_text(", {} stages", plan.stages);
  if (plan.programmatic) text += ", programmatic";
  if (!plan.streaming) text += ", through L1";
  if (plan.blocks_per_sm != 1) text += format_text(", {} per SM", plan.blocks_per_sm);
  return text;
}

}  // namespace ptxgen::inline v0
