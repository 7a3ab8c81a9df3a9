// src/kernels/gemv/choice.cpp - which kernel serves a GEMV
#include "kernels/gemv/choice.hpp"

#include <algorithm>

#include "ptxgen/kernels/gemv/coalesced.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/kernels/gemv/strided.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kCublas = "cublas";
constexpr std::string_view kRequested = "requested";
// In the order of `GemvChoice`.
constexpr std::string_view kNames[] = {kAuto,       "direct",  "async", "bulk",
                                       "coalesced", "strided", kCublas};

[[noreturn]] void refuse(const char* code, std::string message) {
  Error error(Stage::Launch, code, std::move(message));
  error.kernel = kernel_name<GemvProblem>;
  throw error.refresh();
}

std::uint64_t outputs(const GemvOperands& o) noexcept {
  return o.y.address | o.bias.address | o.residual.address;
}

/// The problem in normal form: `lda` is 0 for tight rows, alignments are those of the addresses.
GemvProblem normalised(GemvProblem problem, const GemvOperands& at) noexcept {
  if (problem.lda == (problem.layout == GemvLayout::T ? problem.n : problem.k)) problem.lda = 0;
  problem.a_alignment = 1u << alignment_log2(at.a.address);
  problem.x_alignment = 1u << alignment_log2(at.x.address);
  problem.y_alignment = 1u << alignment_log2(outputs(at));
  return problem;
}

void need_plain(const GemvProblem& problem, std::string_view name) {
  if (is_plain(problem)) return;
  refuse("bad-choice", format_text("the GEMV {} serves y = A^T x with layout T, f32 and tight rows "
                                   "only, not {}; choose auto or direct",
                                   name, to_text(problem)));
}

KernelChoice with_plan(const GemvPlan& plan, std::string reason) {
  KernelChoice choice;
  choice.kernel = &kDescription<Gemv>;
  choice.spec = ErasedValue::of(Gemv{plan});
  choice.implementation = to_string(plan.path);
  choice.reason = std::move(reason);
  choice.pack = kDescription<Gemv>.pack_of;
  return choice;
}

template <class Baseline>
KernelChoice baseline(const GemvProblem& problem, std::string_view name) {
  need_plain(problem, name);
  KernelChoice choice;
  choice.kernel = &kDescription<Baseline>;
  choice.spec = ErasedValue::of(Baseline{problem.k, problem.n});
  choice.implementation = name;
  choice.reason = kRequested;
  choice.pack = [](const void* spec, const void* operands, std::uint64_t workspace,
                   std::byte* block) {
    const auto& all = *static_cast<const GemvOperands*>(operands);
    const GemvVectors vectors{all.y, all.a, all.x};
    kDescription<Baseline>.pack_of(spec, &vectors, workspace, block);
  };
  return choice;
}

// A measured plan that cannot be used is reported, and the problem is planned again.
std::optional<KernelChoice> measured(const GemvProblem& problem, const ChoiceRequest& request) {
  if (request.measured == nullptr) return {};
  const auto& source = static_cast<const GemvPlanSource&>(*request.measured);
  const std::optional<TunedGemv> found = source.find(problem);
  if (!found) return {};
  const auto ignore = [&](const std::string& because) {
    request.warn(request.user, format_text("the measured plan for {} is not used: {}",
                                           to_text(problem), because));
    return std::optional<KernelChoice>();
  };
  if (found->plan.problem != problem) return ignore("it is for " + to_text(found->plan.problem));
  try {
    check(found->plan, request.target);
  } catch (const Error& error) {
    return ignore(error.message);
  }
  return with_plan(found->plan, "auto: " + found->why);
}

// Reason for this plan, then its bottleneck.
std::string reason_of(std::string_view wanted, const GemvCandidate& candidate) {
  const std::string chosen =
      wanted == kAuto ? "auto: fastest plan" : format_text("requested: fastest {} plan", wanted);
  return format_text("{} by prediction, {:.1f} us; its limit: {}", chosen,
                     candidate.prediction.chained_us, candidate.why);
}

KernelChoice ranked(const GemvProblem& problem, const ChoiceRequest& request) {
  for (const GemvCandidate& candidate : rank_gemv_plans(problem, request.gpu)) {
    if (request.implementation != kAuto &&
        to_string(candidate.plan.path) != request.implementation) {
      continue;
    }
    check(candidate.plan, request.target);
    return with_plan(candidate.plan, reason_of(request.implementation, candidate));
  }
  refuse("bad-choice", format_text("no plan of path {} serves {} on {}, {}; choose auto or direct",
                                   request.implementation, to_text(problem), request.device,
                                   request.target.name));
}

ChoiceKey key_of(const void* spec, const void* operands) {
  const auto& at = *static_cast<const GemvOperands*>(operands);
  return shape_of(*static_cast<const GemvProblem*>(spec), at.a.address, at.x.address, outputs(at));
}

KernelChoice choose(const void* spec, const void* operands, const ChoiceRequest& request) {
  const GemvProblem problem = normalised(*static_cast<const GemvProblem*>(spec),
                                         *static_cast<const GemvOperands*>(operands));
  const std::string_view wanted = request.implementation;
  if (problem.n == 0) {
    refuse("empty-grid",
           "n is 0, which leaves no block to launch; skip the launch for an empty output");
  }
  if (wanted == "coalesced") return baseline<GemvCoalesced>(problem, wanted);
  if (wanted == "strided") return baseline<GemvStrided>(problem, wanted);
  if (wanted == kCublas) {
    need_plain(problem, wanted);
    KernelChoice choice;
    choice.implementation = kCublas;
    choice.reason = kRequested;
    return choice;
  }
  check(problem);
  if (wanted != kAuto) return ranked(problem, request);
  std::optional<KernelChoice> choice = measured(problem, request);
  if (!choice) choice = ranked(problem, request);
  if (is_plain(problem)) choice->fallback = kCublas;
  return std::move(*choice);
}

}  // namespace

GemvOperands aligned_operands(const GemvProblem& problem) noexcept {
  GemvOperands at;
  at.a.address = problem.a_alignment;
  at.x.address = problem.x_alignment;
  at.y.address = problem.y_alignment;
  return at;
}

constinit const KernelFamily Describe<GemvProblem>::family{kNames, key_of, choose};

}  // namespace ptxgen::inline v0
