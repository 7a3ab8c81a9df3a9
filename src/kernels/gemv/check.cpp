// src/kernels/gemv/check.cpp - validity of GEMV problems and plans
#include <algorithm>
#include <bit>
#include <string>

#include "kernels/gemv/partition.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/ptx/limits.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kMaxElements = 0x7fffffff;
constexpr std::uint64_t kMaxUnits = 0x7fffffff;
constexpr unsigned kMaxMatrixLog2 = 47;
constexpr std::uint32_t kMaxLoads = 32;
constexpr std::uint32_t kMaxRows = 8;
constexpr std::uint32_t kMaxStages = 32;

std::string number(std::uint64_t value) { return std::to_string(value); }

// "<member> is <value>; <rule>".
void demand(bool holds, std::string_view code, std::string_view member, const std::string& value,
            const std::string& rule) {
  if (holds) return;
  Error error(Stage::Build, std::string(code), format_text("{} is {}; {}", member, value, rule));
  error.kernel = "gemv";
  throw error.refresh();
}

void demand_range(std::string_view member, std::uint64_t value, std::uint64_t min,
                  std::uint64_t max, const std::string& where = {}) {
  demand(value >= min && value <= max, "bad-plan", member, number(value),
         (min == max ? format_text("it can only be {}", min)
                     : format_text("it may be {} to {}", min, max)) +
             where);
}

// Sums over blocks of rows: the other rules are those of layout R.
void check_blocks(const GemvProblem& problem) {
  const ElementInfo& weights = info(problem.weights);
  const std::string name(weights.name);
  demand(gemv::block_format(problem.weights, problem.k) != nullptr, "bad-problem", "weights", name,
         "it may be f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k or q6_k");
  demand(problem.layout == GemvLayout::R, "bad-problem", "layout", "T",
         format_text("with weights of {} it can only be R: blocks are parts of rows", name));
  demand(!problem.repacked || problem.lda == 0 || problem.lda == problem.k, "bad-problem", "lda",
         number(problem.lda), "repacked rows follow one another: it may be 0");
  const auto of_blocks = [&](std::string_view member, std::uint64_t value) {
    demand(value % weights.block_values == 0, "bad-problem", member, number(value),
           format_text("with weights of {} it may be a multiple of {}, the values of a block: pad "
                       "the rows and x with zeros",
                       name, weights.block_values));
  };
  of_blocks("k", problem.k);
  of_blocks("lda", problem.lda);
  const bool is_float = problem.x <= ElementType::bf16;
  demand(
      is_float || problem.x == ElementType::q8_1, "bad-problem", "x",
      std::string(to_string(problem.x)),
      format_text("with weights of {} it may be f32, f16, bf16, or q8_1 for the fast path", name));
  demand(problem.y <= ElementType::bf16, "bad-problem", "y", std::string(to_string(problem.y)),
         "it may be f32, f16 or bf16");
}

void check_type(std::string_view member, ElementType type, ElementType weights) {
  const std::string name(to_string(weights));
  demand(type == ElementType::f32 || type == weights, "bad-problem", member,
         std::string(to_string(type)),
         format_text("with weights of {} it may be f32{}", name,
                     weights == ElementType::f32 ? "" : " or " + name));
}

void check_alignment(std::string_view member, std::uint32_t alignment, ElementType type) {
  // Blocks of q8_1 are read as words.
  const std::uint32_t min = type == ElementType::q8_1 ? 4 : info(type).alignment;
  demand(std::has_single_bit(alignment) && alignment >= min, "bad-problem", member,
         format_text("{} B", alignment),
         format_text("it may be a power of two of at least {} B, {}", min,
                     info(type).block_values == 1 ? "an element" : "which its blocks need"));
}

void check_loads(const GemvPlan& plan) {
  const bool repacked = plan.problem.repacked;
  const std::uint32_t element = repacked ? 16 : info(plan.problem.weights).alignment;
  const bool blocks = gemv::block_format(plan.problem) != nullptr && !repacked;
  const std::uint32_t widest = widest_load(plan.problem);
  demand(std::has_single_bit(plan.load_bytes) && plan.load_bytes >= element &&
             plan.load_bytes <= widest,
         "bad-plan", "load_bytes", number(plan.load_bytes),
         format_text("it may be a power of two from {}, an element, to {}, to which the address of "
                     "every row is aligned",
                     element, widest));
  const bool r = plan.problem.layout == GemvLayout::R;
  demand_range("rows", plan.rows, 1, r ? kMaxRows : 1, r ? "" : " with layout T");
  demand_range("batch", plan.batch, 1, 8);
  demand_range("unroll", plan.unroll, 1, blocks ? 1 : kMaxLoads, blocks ? " with blocks" : "");
  demand_range("rows * unroll", plan.rows * plan.unroll, 1, kMaxLoads,
               ", the loads that a lane may have in flight");
}

void check_block(const GemvPlan& plan, const ptx::Target& target) {
  const ptx::Limits& limits = ptx::limits(target.name);
  const std::uint32_t warps = limits.threads_per_block / 32;
  demand_range("warps_out", plan.warps_out, 1, warps);
  demand_range("warps_k", plan.warps_k, 1, warps);
  demand_range("warps_out * warps_k", plan.warps_out * plan.warps_k, 1, warps);
  const std::uint32_t fit =
      std::min<std::uint32_t>(limits.blocks_per_sm, limits.threads_per_sm / plan.threads());
  demand_range(
      "blocks_per_sm", plan.blocks_per_sm, 1, fit,
      format_text(" with blocks of {} on {}", count_text(plan.threads(), "thread"), target.name));
  demand(gemv::min_registers(plan) <= gemv::max_registers(plan), "bad-plan",
         "registers of a thread", number(gemv::min_registers(plan)),
         format_text("with {} x {} threads on an SM it may have {}: take fewer loads (unroll, "
                     "rows), threads or blocks_per_sm",
                     plan.blocks_per_sm, plan.threads(), gemv::max_registers(plan)));
}

void check_partition(const GemvPlan& plan) {
  demand(plan.units() <= kMaxUnits, "bad-plan", "strips * steps", number(plan.units()),
         format_text("it may be up to {}: make strips or steps larger", kMaxUnits));
  const std::uint64_t steps =
      plan.chunk_steps == 0 ? plan.steps() : gemv::ceil_div(plan.steps(), plan.chunk_steps);
  demand_range("blocks", plan.blocks, 1, plan.strips() * steps,
               format_text(" with {} of {}", count_text(plan.strips(), "strip"),
                           count_text(steps, plan.chunk_steps == 0 ? "step" : "chunk")));
}

void check_shared(const GemvPlan& plan, const ptx::Target& target) {
  const std::string name(target.name);
  const std::string cure = ": take fewer stages, loads (unroll, rows) or warps";
  demand(plan.shared_bytes() <= target.shared_per_block_opt_in, "bad-plan", "shared memory",
         format_text("{} B", plan.shared_bytes()),
         format_text("a block on {} may have {} B{}", name, target.shared_per_block_opt_in, cure));
  const std::uint64_t fixed = plan.shared_bytes() - gemv::dynamic_bytes(plan);
  demand(
      fixed <= target.shared_per_block, "bad-plan", "shared memory for sums",
      format_text("{} B", fixed),
      format_text("a block on {} may have {} B: take fewer warps_k, or fewer blocks in a cluster",
                  name, target.shared_per_block));
  // The system reserves 1 KiB per block.
  constexpr std::uint32_t kSystem = 1024;
  const std::uint32_t per_sm = ptx::limits(target.name).shared_per_sm / plan.blocks_per_sm;
  const std::uint32_t max = per_sm > kSystem ? per_sm - kSystem : 0;
  demand(plan.shared_bytes() <= max, "bad-plan", "shared memory",
         format_text("{} B", plan.shared_bytes()),
         format_text("with {} on an SM of {} each may have {} B{}",
                     count_text(plan.blocks_per_sm, "block"), name, max, cure));
}

void check_cluster(const GemvPlan& plan, const ptx::Target& target) {
  if (plan.cluster == 1) return;
  demand_range("cluster", plan.cluster, 1, ptx::limits(target.name).cluster_blocks);
  demand(target.sm >= 90, "bad-plan", "cluster", number(plan.cluster),
         "clusters need sm_90 or newer; the target is " + std::string(target.name));
  demand(plan.chunk_steps == 0, "bad-plan", "cluster", number(plan.cluster),
         "with chunk_steps it can only be 1");
  const std::uint64_t strips = plan.strips();
  demand(plan.blocks % strips == 0 && plan.blocks / strips % plan.cluster == 0, "bad-plan",
         "cluster", number(plan.cluster),
         format_text("it may divide the blocks of a strip, if all strips have the same number: "
                     "here {} have {}",
                     count_text(plan.blocks, "block"), count_text(strips, "strip")));
}

void check_target(const GemvPlan& plan, const ptx::Target& target) {
  const std::string name(target.name);
  const std::string path(to_string(plan.path));
  const bool direct = plan.path == GemvPath::Direct;
  const bool bulk = plan.path == GemvPath::Bulk;
  const std::uint32_t oldest = bulk ? 90 : direct ? 0 : 80;
  demand(target.sm >= oldest, "bad-plan", "path", path,
         format_text("it needs sm_{} or newer; the target is {}", oldest, name));
  demand_range("stages", plan.stages, direct ? 0 : 2, direct ? 0 : kMaxStages,
               " with path " + path);
  demand(direct || !plan.problem.repacked, "bad-plan", "path", path,
         "with repacked rows it can only be direct");
  demand(!bulk || gemv::block_format(plan.problem) == nullptr, "bad-plan", "path", path,
         "with weights in blocks it may be direct or async");
  if (!direct) {
    demand_range("load_bytes", plan.load_bytes, bulk ? 16 : 4, 16, " with path " + path);
  }
  check_cluster(plan, target);
  demand(!plan.programmatic || target.sm >= 90, "bad-plan", "programmatic", "true",
         "it needs sm_90 or newer; the target is " + name);
  check_shared(plan, target);
}

}  // namespace

void check(const GemvProblem& problem) {
  const bool t = problem.layout == GemvLayout::T;
  const std::uint64_t row = t ? problem.n : problem.k;
  const std::uint64_t rows = t ? problem.k : problem.n;
  demand(problem.k <= kMaxElements, "bad-problem", "k", number(problem.k),
         format_text("it may be 0 to {}", kMaxElements));
  demand(problem.n >= 1 && problem.n <= kMaxElements, "bad-problem", "n", number(problem.n),
         format_text("it may be 1 to {}", kMaxElements));
  if (problem.weights <= ElementType::bf16) {
    check_type("x", problem.x, problem.weights);
    check_type("y", problem.y, problem.weights);
  } else {
    check_blocks(problem);
  }
  demand(!problem.repacked || gemv::block_format(problem) != nullptr, "bad-problem", "repacked",
         "true",
         format_text("{} has no repacked rows; q4_0, q4_1, q5_0, q5_1, q8_0 and q6_k do",
                     to_string(problem.weights)));
  demand(problem.lda == 0 || problem.lda >= row, "bad-problem", "lda", number(problem.lda),
         format_text("it may be 0, or at least the {} of a row", count_text(row, "element")));
  const std::uint64_t max = (std::uint64_t{1} << kMaxMatrixLog2) / bytes(problem.weights) *
                            info(problem.weights).block_values / std::max<std::uint64_t>(1, rows);
  demand(problem.leading_dimension() <= max, "bad-problem", "lda",
         number(problem.leading_dimension()),
         format_text("with {} it may be up to {}: a matrix may have 2^{} B",
                     count_text(rows, "row"), max, kMaxMatrixLog2));
  check_alignment("a_alignment", problem.a_alignment, problem.weights);
  demand(!problem.repacked || problem.a_alignment >= 16, "bad-problem", "a_alignment",
         format_text("{} B", problem.a_alignment), "with repacked rows it may be 16 B and more");
  check_alignment("x_alignment", problem.x_alignment, problem.x);
  check_alignment("y_alignment", problem.y_alignment, problem.y);
}

void check(const GemvPlan& plan, const ptx::Target& target) {
  check(plan.problem);
  check_loads(plan);
  check_block(plan, target);
  check_partition(plan);
  check_target(plan, target);
}

}  // namespace ptxgen::inline v0
