// src/runtime/launch/planned_gemv.cpp - GEMV plans of a launcher, by problem
#include "runtime/launch/planned_gemv.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::size_t kFirstSlots = 64;

}  // namespace

GemvProblem normalised(GemvProblem problem, std::uint64_t a, std::uint64_t x,
                       std::uint64_t y) noexcept {
  if (problem.lda == (problem.layout == GemvLayout::T ? problem.n : problem.k)) problem.lda = 0;
  problem.a_alignment = 1u << alignment_log2(a);
  problem.x_alignment = 1u << alignment_log2(x);
  problem.y_alignment = 1u << alignment_log2(y);
  return problem;
}

PlannedGemvs::PlannedGemvs() {
  all_.push_back(std::make_unique<const Slots>(kFirstSlots));
  slots_.store(all_.back().get(), std::memory_order_release);
}

void PlannedGemvs::Slots::put(const PlannedGemv& entry) const noexcept {
  std::size_t to = entry.shape.hash() & mask;
  while (at[to].load(std::memory_order_relaxed) != nullptr) to = (to + 1) & mask;
  at[to].store(&entry, std::memory_order_release);
}

const PlannedGemv& PlannedGemvs::add(std::unique_ptr<const PlannedGemv> entry) {
  const std::lock_guard lock(mutex_);
  if (const PlannedGemv* const known = find(entry->shape)) return *known;
  entries_.push_back(std::move(entry));
  const Slots& now = *slots_.load(std::memory_order_relaxed);
  if (2 * entries_.size() <= now.mask + 1) {
    now.put(*entries_.back());
    return *entries_.back();
  }
  auto larger = std::make_unique<const Slots>(2 * (now.mask + 1));
  for (const auto& one : entries_) larger->put(*one);
  all_.push_back(std::move(larger));
  slots_.store(all_.back().get(), std::memory_order_release);
  return *entries_.back();
}

ModuleKey key_of_plan(ModuleKey key, const GemvPlan& plan) noexcept {
  const GemvProblem& p = plan.problem;
  const GemvShape shape = shape_of(p, p.a_alignment, p.x_alignment, p.y_alignment);
  const auto pair = [](std::uint64_t high, std::uint32_t low) { return high << 32 | low; };
  const std::uint64_t bits = shape.rest | static_cast<std::uint64_t>(plan.path) << 20 |
                             std::uint64_t{plan.programmatic} << 22 |
                             std::uint64_t{plan.streaming} << 23;
  key.values = {shape.sizes,
                shape.lda,
                pair(bits, plan.load_bytes),
                pair(plan.warps_out, plan.warps_k),
                pair(plan.rows, plan.unroll),
                pair(plan.blocks, plan.chunk_steps)};
  // 21 bits each are enough for the blocks and stages of any target.
  key.plan =
      std::uint64_t{plan.cluster} << 42 ^ std::uint64_t{plan.stages} << 21 ^ plan.blocks_per_sm;
  return key;
}

PlannedGemv planned_gemv(const GemvPlan& plan, const ModuleKey& key, const DeviceLimits& limits) {
  PlannedGemv made;
  made.plan = plan;
  made.implementation = to_string(plan.path);
  made.geometry = Gemv{plan}.geometry();
  // The caller decides it at the launch.
  made.geometry.programmatic = false;
  made.key = key_of_plan(key, plan);
  made.need.tickets = plan.ticket_bytes();
  made.need.parts = plan.workspace_bytes() - plan.ticket_bytes();
  const LaunchGeometry& g = made.geometry;
  made.plain = g.grid.x <= limits.grid[0] && g.block.x <= limits.threads_per_block &&
               g.dynamic_shared_bytes == 0 && g.cluster == Dim3{};
  return made;
}

}  // namespace ptxgen::inline v0
