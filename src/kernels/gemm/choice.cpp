// src/kernels/gemm/choice.cpp - which kernel serves a matrix product
#include <algorithm>
#include <bit>
#include <optional>

#include "kernels/gemv/choice.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels/gemm/gemm.hpp"
#include "ptxgen/kernels/gemm/planner.hpp"
#include "ptxgen/kernels/gemv/batched.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kGemv = "gemv";
constexpr std::string_view kBatched = "batched_gemv";
constexpr std::string_view kNames[] = {kAuto, "mma", "tiled", "naive", "wgmma", kGemv, kBatched};
constexpr std::uint32_t kBatchedPass = 8;  // rows for which the batched GEMV reads the matrix once

[[noreturn]] void refuse(std::string message) {
  Error error(Stage::Launch, "bad-choice", std::move(message));
  error.kernel = kernel_name<GemmProblem>;
  throw error.refresh();
}

std::uint64_t outputs(const GemmOperands& o) noexcept {
  return o.c.address | o.bias.address | o.residual.address;
}

/// The problem with the alignments of these addresses. Those of blocks do not matter.
GemmProblem aligned(GemmProblem problem, const GemmOperands& at) noexcept {
  const bool blocks = info(problem.type_b()).block_values != 1;
  problem.alignment = 1u << alignment_log2(at.a.address | (blocks ? 0 : at.b.address));
  problem.c_alignment = 1u << alignment_log2(outputs(at));
  return problem;
}

/// Whether a GEMV has these types: any floats beside weights in blocks, else f32 or the weights'.
bool gemv_types(const GemmProblem& p) {
  const ElementType weights = p.type_b();
  if (weights == ElementType::e4m3) return false;
  const auto fits = [&](ElementType type) { return type == ElementType::f32 || type == weights; };
  return info(weights).block_values != 1 || (fits(p.type) && fits(p.c));
}

/// The same product as a GEMV of B by a row of A; nothing if it is none.
std::optional<GemvProblem> as_gemv(const GemmProblem& p, const GemmOperands& at) {
  const bool adjacent = !p.transpose_a || p.pitch_a() == 1;
  if (!gemv_types(p)) return std::nullopt;
  if (p.m != 1 || p.batch != 1 || p.activation != GemmActivation::None || !adjacent) {
    return std::nullopt;
  }
  GemvProblem gemv;
  gemv.k = p.k;
  gemv.n = p.n;
  gemv.layout = p.transpose_b ? GemvLayout::R : GemvLayout::T;
  gemv.weights = p.type_b();
  gemv.x = p.type;
  gemv.y = p.c;
  gemv.lda = p.pitch_b() == p.row_b() ? 0 : p.pitch_b();
  gemv.a_alignment = 1u << alignment_log2(at.b.address);
  gemv.x_alignment = 1u << alignment_log2(at.a.address);
  gemv.y_alignment = 1u << alignment_log2(outputs(at));
  gemv.scaled = p.scaled;
  gemv.bias = p.bias;
  gemv.residual = p.residual;
  return gemv;
}

/// The same product as rows of a batched GEMV; nothing if it is none.
std::optional<BatchedGemv> as_batched(const GemmProblem& p, const GemmOperands& at) {
  constexpr unsigned kAligned = 4;  // log2 of bytes
  const bool tight = p.pitch_a() == p.k && p.pitch_b() == p.k && p.pitch_c() == p.n;
  const bool bare = !p.scaled && !p.bias && !p.residual && p.activation == GemmActivation::None;
  if (p.m > BatchedGemv::kMaxRows || p.batch != 1 || p.transpose_a || !p.transpose_b || !tight ||
      !bare || p.alignment < 16 || alignment_log2(at.b.address) < kAligned || !gemv_types(p)) {
    return std::nullopt;
  }
  // One module serves all m up to the next power of two.
  return BatchedGemv{p.k, p.n, std::bit_ceil(p.m), p.type_b(), p.type, p.c};
}

void pack_gemv(const void* spec, const void* operands, std::uint64_t workspace, std::byte* block) {
  const auto& all = *static_cast<const GemmOperands*>(operands);
  GemvOperands gemv{all.c, all.b, all.a, all.bias, all.residual};
  gemv.alpha = all.alpha;
  gemv.beta = all.beta;
  kDescription<Gemv>.pack_of(spec, &gemv, workspace, block);
}

/// A batched GEMV that knows the rows of this launch.
struct PackedRows {
  template <std::uint32_t kRows>
  static void pack(const void* spec, const void* operands, std::uint64_t workspace,
                   std::byte* block) {
    const auto& all = *static_cast<const GemmOperands*>(operands);
    const BatchedGemv::Operands rows{all.c, all.b, all.a, kRows};
    kDescription<BatchedGemv>.pack_of(spec, &rows, workspace, block);
  }
  using Pack = decltype(KernelChoice::pack);
  template <std::size_t... kRows>
  static constexpr std::array<Pack, sizeof...(kRows)> all(std::index_sequence<kRows...>) {
    return {pack<static_cast<std::uint32_t>(kRows)>...};
  }
};
constexpr auto kPackRows = PackedRows::all(std::make_index_sequence<BatchedGemv::kMaxRows + 1>());

KernelChoice one_row(const GemvProblem& problem, const ChoiceRequest& request) {
  const GemvCandidate best = rank_gemv_plans(problem, request.gpu).front();
  check(best.plan, request.target);
  KernelChoice choice;
  choice.kernel = &kDescription<Gemv>;
  choice.spec = ErasedValue::of(Gemv{best.plan});
  choice.implementation = kGemv;
  choice.reason = format_text("one row: the GEMV, {} path, {:.1f} us by prediction; its limit: {}",
                              to_string(best.plan.path), best.prediction.chained_us, best.why);
  choice.pack = pack_gemv;
  return choice;
}

std::uint32_t passes(std::uint32_t rows) { return (rows - 1) / kBatchedPass + 1; }

KernelChoice few_rows(const BatchedGemv& kernel, const GemmProblem& p, std::string reason) {
  KernelChoice choice;
  choice.kernel = &kDescription<BatchedGemv>;
  choice.spec = ErasedValue::of(kernel);
  choice.implementation = kBatched;
  choice.reason = std::move(reason);
  choice.pack = kPackRows[p.m];
  return choice;
}

template <class Kernel>
KernelChoice with_kernel(const Kernel& kernel, std::string_view name, std::string reason) {
  KernelChoice choice;
  choice.kernel = &kDescription<Kernel>;
  choice.spec = ErasedValue::of(kernel);
  choice.implementation = name;
  choice.reason = std::move(reason);
  choice.pack = kDescription<Kernel>.pack_of;
  return choice;
}

std::string_view name_of(const GemmKernel& kernel) { return kNames[1 + kernel.index()]; }

KernelChoice with_plan(const GemmCandidate& candidate, std::string_view wanted) {
  const std::string chosen =
      wanted == kAuto ? "auto: fastest plan" : format_text("requested: fastest {} plan", wanted);
  std::string reason =
      format_text("{}, {}, {:.1f} us by prediction; {}", chosen, to_text(candidate.kernel),
                  candidate.prediction.us, candidate.why);
  return std::visit(
      [&](const auto& kernel) {
        return with_kernel(kernel, name_of(candidate.kernel), std::move(reason));
      },
      candidate.kernel);
}

// The first plan of that kind.
GemmCandidate ranked(const GemmProblem& problem, const ChoiceRequest& request) {
  ptx::Gpu gpu = request.gpu;
  if (request.specific != nullptr) gpu.target = request.specific->name;
  for (GemmCandidate& candidate : rank_gemm_plans(problem, gpu)) {
    const bool wanted =
        request.implementation == kAuto || request.implementation == name_of(candidate.kernel);
    if (!wanted) continue;
    if (const auto* mma = std::get_if<GemmMma>(&candidate.kernel)) check(*mma, request.target);
    return std::move(candidate);
  }
  refuse(format_text("no kernel {} serves {} on {}, {}; choose auto or tiled",
                     request.implementation, to_text(problem), request.device,
                     request.target.name));
}

// Two mixers of 64 bits (splitmix64's finaliser, by seed): what is only hashed rarely differs.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
  return hash ^ hash >> 31;
}

ChoiceKey key_of(const void* spec, const void* operands) {
  const GemmProblem p =
      aligned(*static_cast<const GemmProblem*>(spec), *static_cast<const GemmOperands*>(operands));
  const auto& at = *static_cast<const GemmOperands*>(operands);
  const std::uint64_t alignments = alignment_log2(at.a.address) << 3 | alignment_log2(at.b.address);
  const KernelKey module = detail::gemm_key(p, 0);
  ChoiceKey key;
  key.words[0] = std::uint64_t{p.m} << 32 | p.n;
  key.words[1] = std::uint64_t{p.k} << 32 | p.batch << 8 | alignments;
  key.words[2] = 1;
  key.words[3] = 2;
  for (const std::uint64_t value : module.values) {
    key.words[2] = mixed(key.words[2], value);
    key.words[3] = mixed(key.words[3], value);
  }
  return key;
}

KernelChoice choose(const void* spec, const void* operands, const ChoiceRequest& request) {
  const auto& at = *static_cast<const GemmOperands*>(operands);
  const GemmProblem problem = aligned(*static_cast<const GemmProblem*>(spec), at);
  const std::string_view wanted = request.implementation;
  check(problem);
  const std::optional<GemvProblem> gemv = as_gemv(problem, at);
  if (gemv && (wanted == kAuto || wanted == kGemv)) return one_row(*gemv, request);
  if (wanted == kGemv) refuse(format_text("{} is not a GEMV; choose auto", to_text(problem)));
  const std::optional<BatchedGemv> batched = as_batched(problem, at);
  if (wanted == kBatched) {
    if (batched) return few_rows(*batched, problem, "requested");
    refuse(format_text("{} is not a batched GEMV; choose auto", to_text(problem)));
  }
  const GemmCandidate best = ranked(problem, request);
  if (wanted == kAuto && batched) {
    // No kernel reads the matrix faster than the GEMV that does nothing else.
    const double one_pass = predict(batched->single(), request.gpu).chained_us;
    const double us = one_pass * passes(problem.m);
    if (us <= std::max(best.prediction.us, one_pass)) {
      return few_rows(*batched, problem,
                      format_text("{} rows: the batched GEMV, {:.1f} us by prediction; {} is not "
                                  "faster",
                                  problem.m, us, to_text(best.kernel)));
    }
  }
  return with_plan(best, wanted);
}

}  // namespace

ptx::Module Describe<GemmProblem>::build(const GemmProblem& problem, const ptx::Target& target) {
  ptx::Gpu gpu = emulator::default_gpu(target.name);
  gpu.target = target.name;
  const GemmCandidate best = rank_gemm_plans(problem, gpu).front();
  return std::visit([&](const auto& kernel) { return kernel.build(target).module(); }, best.kernel);
}

LaunchGeometry Describe<GemmProblem>::geometry(const GemmProblem& problem, const ptx::Gpu& gpu) {
  const GemmCandidate best = rank_gemm_plans(problem, gpu).front();
  return std::visit([&](const auto& kernel) { return kernel.geometry(); }, best.kernel);
}

ErrorBound Describe<GemmProblem>::bound(const GemmProblem& problem) {
  const double chain = (static_cast<double>(problem.k) + 64) * 0x1p-24;
  const std::uint64_t k = problem.k;
  const double cores = problem.type == ElementType::e4m3
                           ? std::max(eight_bit_error(k), warpgroup_eight_bit_error(k))
                           : tensor_core_error(k);
  // With the sums of divided tiles.
  const double tensor_cores =
      cores + detail::b_rounding(problem) + static_cast<double>(k / 64 + 64) * 0x1p-24;
  return detail::gemm_bound(problem, std::max(chain, tensor_cores));
}

constinit const KernelFamily Describe<GemmProblem>::family{kNames, key_of, choose};

}  // namespace ptxgen::inline v0
