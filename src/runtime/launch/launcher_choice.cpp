// src/runtime/launch/launcher_choice.cpp - choice of implementation and plan of a GEMV
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/launch/launcher_state.hpp"
#include "runtime/launch/tuned_plans.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::inline v0 {

namespace {

struct ChoiceName {
  GemvChoice choice;
  std::string_view name;
  bool planned;
  GemvPath path;  ///< of what is planned; Auto takes any
};
constexpr ChoiceName kChoices[] = {{GemvChoice::Auto, "auto", true, GemvPath::Direct},
                                   {GemvChoice::Direct, "direct", true, GemvPath::Direct},
                                   {GemvChoice::Async, "async", true, GemvPath::Async},
                                   {GemvChoice::Bulk, "bulk", true, GemvPath::Bulk},
                                   {GemvChoice::Coalesced, "coalesced", false, {}},
                                   {GemvChoice::Strided, "strided", false, {}},
                                   {GemvChoice::Cublas, "cublas", false, {}}};

const ChoiceName& row_of_choice(GemvChoice choice) noexcept {
  for (const ChoiceName& row : kChoices) {
    if (row.choice == choice) return row;
  }
  return kChoices[0];
}

/// Maximum length of a reason in a record.
constexpr std::size_t kMaxReason = 190;  // ptxgen_launch_record has 192 characters

std::string shortened(std::string text) {
  if (text.size() <= kMaxReason) return text;
  const std::size_t end = text.rfind(' ', kMaxReason - 4);
  text.resize(end == std::string::npos ? kMaxReason - 4 : end);
  return text + " ...";
}

std::unique_ptr<PlannedGemv> with_reason(PlannedGemv planned, std::string reason) {
  planned.why = std::make_unique<const std::string>(shortened(std::move(reason)));
  planned.reason = *planned.why;
  return std::make_unique<PlannedGemv>(std::move(planned));
}

// Reason for this plan, then its bottleneck.
std::string reason_of(GemvChoice choice, const GemvCandidate& candidate) {
  std::array<char, 32> time{};
  std::snprintf(time.data(), time.size(), "%.1f us", candidate.prediction.chained_us);
  const std::string chosen = choice == GemvChoice::Auto
                                 ? "auto: fastest plan"
                                 : format_text("requested: fastest {} plan", to_string(choice));
  return format_text("{} by prediction, {}; its limit: {}", chosen, time.data(), candidate.why);
}

[[noreturn]] void refuse_gemv(const char* code, std::string message) {
  Error error(Stage::Launch, code, std::move(message));
  error.kernel = Gemv::kName;
  throw error.refresh();
}

std::uint64_t elements_of(const DeviceRange& range, GemvType type) noexcept {
  return range.bytes / bytes(type);
}

BufferArgument argument(std::string_view name, const DeviceRange& range, GemvType type,
                        std::uint64_t needs) noexcept {
  return {name, range.address, elements_of(range, type), needs, bytes(type)};
}

/// `problem.matrix_elements()`, saturated.
std::uint64_t matrix_elements(const GemvProblem& problem) noexcept {
  const std::uint64_t lda = problem.leading_dimension();
  const std::uint64_t rows = problem.layout == GemvLayout::T ? problem.k : problem.n;
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  if (lda >> 31 != 0 && rows != 0 && lda > kMax / rows) [[unlikely]] {
    return kMax;
  }
  return problem.matrix_elements();
}

std::string problem_text(const GemvProblem& problem) {
  const std::string sizes = shape_text(problem.k, problem.n);
  return is_plain(problem) ? sizes : format_text("{} ({})", sizes, to_text(problem));
}

void refuse_extra_operands(const GemvProblem& problem, const GemvOperands& operands) {
  if (!problem.bias && operands.bias.address != 0) {
    refuse_gemv("arguments", "there is a bias, but the problem has none; set GemvProblem::bias");
  }
  if (!problem.residual && operands.residual.address != 0) {
    refuse_gemv("arguments",
                "there is a residual, but the problem has none; set GemvProblem::residual");
  }
  if (!problem.scaled && !(operands.alpha == 1 && operands.beta == 0)) {
    refuse_gemv("arguments",
                "alpha is not 1 or beta not 0, but the problem is not scaled; set "
                "GemvProblem::scaled");
  }
}

}  // namespace

std::string_view to_string(GemvChoice choice) noexcept { return row_of_choice(choice).name; }

std::string gemv_choice_names() { return join_text(kChoices, ", ", &ChoiceName::name); }

GemvChoice gemv_choice(std::string_view name) {
  for (const ChoiceName& row : kChoices) {
    if (row.name == name) return row.choice;
  }
  throw Error(Stage::Launch, "bad-choice",
              format_text("there is no GEMV '{}'; there are: {}", name, gemv_choice_names()));
}

void check_gemv(const GemvProblem& problem, const GemvOperands& operands) {
  const BufferArgument y = argument("y", operands.y, problem.y, problem.n);
  const BufferArgument a = argument("a", operands.a, problem.weights, matrix_elements(problem));
  const BufferArgument x = argument("x", operands.x, problem.x, problem.k);
  const BufferArgument bias =
      argument("bias", operands.bias, problem.y, problem.bias ? problem.n : 0);
  const BufferArgument residual =
      argument("residual", operands.residual, problem.y, problem.residual ? problem.n : 0);
  const auto shape = [&] { return problem_text(problem); };
  check_buffers(Gemv::kName, Overlap::None, shape, y, a, x, bias);
  check_buffers(Gemv::kName, Overlap::Same, shape, y, residual);
  const bool matches = (problem.bias || operands.bias.address == 0) &&
                       (problem.residual || operands.residual.address == 0) &&
                       (problem.scaled || (operands.alpha == 1 && operands.beta == 0));
  if (!matches) [[unlikely]] {
    refuse_extra_operands(problem, operands);
  }
}

bool Launcher::State::plans_gemv() const noexcept { return row_of_choice(choice).planned; }

void Launcher::State::need_plain(const GemvProblem& problem) const {
  if (is_plain(problem)) [[likely]] {
    return;
  }
  refuse_gemv("bad-choice", format_text("the GEMV {} serves y = A^T x with layout T, f32 and tight "
                                        "rows only, not {}; choose auto or direct",
                                        to_string(choice), to_text(problem)));
}

const GemvPlanSource* Launcher::State::measured_plans() const {
  if (options.gemv_plans != nullptr) return options.gemv_plans;
  // Times measured on the emulator are meaningless.
  const Device& device = context.device();
  if (device.info().kind == DeviceKind::Emulator && options.settings.tuned.empty()) return nullptr;
  std::call_once(tuned_read, [&] {
    const std::string folder = tuned_folder(options.settings);
    if (!folder.empty()) tuned = std::make_unique<const TunedPlans>(device, folder);
  });
  return tuned.get();
}

// A measured plan that cannot be used is logged, and the problem is planned again.
std::unique_ptr<PlannedGemv> Launcher::State::tuned_plan(const GemvPlanSource& source,
                                                         const GemvProblem& problem) const {
  std::optional<TunedGemv> found = source.find(problem);
  if (!found) return nullptr;
  const auto ignore = [&](const std::string& because) {
    core.log().warn(
        format_text("the measured plan for {} is not used: {}", to_text(problem), because));
    return nullptr;
  };
  if (found->plan.problem != problem) return ignore("it is for " + to_text(found->plan.problem));
  try {
    check(found->plan, *pipeline.target);
  } catch (const Error& error) {
    return ignore(error.message);
  }
  return with_reason(planned_gemv(found->plan, keys.gemv, context.device().info().limits),
                     "auto: " + found->why);
}

std::unique_ptr<PlannedGemv> Launcher::State::ranked_plan(const GemvProblem& problem) const {
  const ChoiceName& row = row_of_choice(choice);
  for (GemvCandidate& candidate : rank_gemv_plans(problem, gpu)) {
    if (choice != GemvChoice::Auto && candidate.plan.path != row.path) continue;
    return with_reason(planned_gemv(candidate.plan, keys.gemv, context.device().info().limits),
                       reason_of(choice, candidate));
  }
  refuse_gemv("bad-choice",
              format_text("no plan of path {} serves {} on {}, {}; choose auto or direct", row.name,
                          to_text(problem), context.device().info().name, pipeline.target->name));
}

const PlannedGemv& Launcher::State::choose_plan(const GemvProblem& problem) const {
  if (problem.n == 0) {
    refuse_gemv("empty-grid",
                "n is 0, which leaves no block to launch; skip the launch for an empty output");
  }
  check(problem);
  std::unique_ptr<PlannedGemv> made;
  const GemvPlanSource* const source = choice == GemvChoice::Auto ? measured_plans() : nullptr;
  if (source != nullptr) made = tuned_plan(*source, problem);
  if (made == nullptr) made = ranked_plan(problem);
  check(made->plan, *pipeline.target);
  made->shape = shape_of(problem, problem.a_alignment, problem.x_alignment, problem.y_alignment);
  core.log().debug([&] {
    return format_text("gemv {}: {}; {}", to_text(problem), to_text(made->plan), *made->why);
  });
  return plans.add(std::move(made));
}

PlannedGemv Launcher::State::caller_plan(const GemvPlan& plan, const GemvAddresses& at) const {
  check(plan, *pipeline.target);
  const auto aligned = [](std::string_view name, std::uint64_t addresses, std::uint32_t alignment) {
    const std::uint32_t needs = std::min(alignment, 16u);
    if (addresses % needs == 0) return;
    refuse_gemv(
        "misaligned",
        format_text("{} is not aligned to the {} of the plan; make a plan for a smaller alignment",
                    name, count_text(needs, "byte")));
  };
  aligned("a", at.a, plan.problem.a_alignment);
  aligned("x", at.x, plan.problem.x_alignment);
  aligned("y", at.y, plan.problem.y_alignment);
  aligned("bias", at.bias, plan.problem.y_alignment);
  aligned("residual", at.residual, plan.problem.y_alignment);
  return planned_gemv(plan, keys.gemv, context.device().info().limits);
}

std::optional<GemvPlan> Launcher::gemv_plan(const GemvProblem& problem) const {
  if (!state_->plans_gemv()) return std::nullopt;
  check(problem);
  return state_
      ->planned(problem,
                {.y = problem.y_alignment, .a = problem.a_alignment, .x = problem.x_alignment})
      .plan;
}

}  // namespace ptxgen::inline v0
