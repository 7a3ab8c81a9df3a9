// tests/launcher/gemv_launch_test.cpp - planned GEMVs: problems, choices, refusals, measured plans
#include <catch2/catch.hpp>

#include "launcher/gemv_operands.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

LauncherOptions choosing(GemvChoice choice) {
  LauncherOptions options = plain_options();
  options.gemv = choice;
  return options;
}

// Plans of the test's own; counts how often it is asked.
struct Source final : GemvPlanSource {
  std::optional<TunedGemv> find(const GemvProblem& problem) const override {
    ++asked;
    if (plan.problem.k != problem.k) return std::nullopt;
    return TunedGemv{plan, "tuned by a test"};
  }
  GemvPlan plan;
  mutable int asked = 0;
};

}  // namespace

TEST_CASE("a GEMV of every layout and type is right, wherever its operands are") {
  const Rig rig;
  int count = 0;
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
      for (const std::uint32_t off : {0u, 2u, 4u, 8u}) {
        if (off % bytes(type) != 0) continue;
        GemvProblem problem = gemv_problem(67, 141, layout, type);
        // What the problem says of alignments is not looked at.
        problem.a_alignment = 16;
        problem.x = off % 4 == 2 ? type : ElementType::f32;
        problem.y = off % 4 == 2 ? type : ElementType::f32;
        problem.lda = off == 4 ? 151 : 0;
        problem.scaled = off == 2 || off == 8;
        problem.bias = count % 2 == 1;
        problem.residual = count % 3 == 1;
        const GemvCase one(rig.context, problem, 10, off);
        const LaunchRecord record = rig.launcher.launch(problem, one.operands(), rig.stream);
        rig.stream.synchronize();
        INFO(to_text(problem) << " off " << off);
        CHECK(record.kernel == "gemv");
        CHECK(gemv_choice(record.implementation) != GemvChoice::Auto);
        CHECK(record.reason.starts_with("auto: fastest plan by prediction, "));
        CHECK_FALSE(record.cached);
        CHECK(one.right());
        CHECK(rig.launcher.launch(problem, one.operands(), rig.stream).cached);
        ++count;
      }
    }
  }
  CHECK(count == 22);
}

TEST_CASE("the plain call and the general one launch the same kernel") {
  const Rig rig;
  const GemvProblem problem = gemv_problem(40, 60);
  const GemvCase one(rig.context, problem);
  const GemvOperands o = one.operands();
  const LaunchRecord general = rig.launcher.launch(problem, o, rig.stream);
  GemvProblem wordy = problem;
  wordy.lda = 60;  // which is as long as a row
  CHECK(rig.launcher.launch(wordy, o, rig.stream).cached);
  const LaunchRecord plain = rig.launcher.gemv({{o.y.address}, 60}, {{o.a.address}, 2400},
                                               {{o.x.address}, 40}, 40, 60, rig.stream);
  CHECK(plain.cached);
  CHECK(plain.geometry == general.geometry);
  CHECK(rig.launcher.cache().statistics().compiles == 1);
  rig.stream.synchronize();
  CHECK(one.right());
}

TEST_CASE("names of choices, and what each can serve") {
  CHECK(gemv_choice_names() == "auto, direct, async, bulk, coalesced, strided, cublas");
  CHECK(gemv_choice("bulk") == GemvChoice::Bulk);
  CHECK(to_string(GemvChoice::Async) == "async");

  const Rig rig;
  const GemvProblem problem = gemv_problem(40, 60, GemvLayout::R, ElementType::bf16);
  const GemvCase one(rig.context, problem);
  for (const GemvChoice choice : {GemvChoice::Coalesced, GemvChoice::Strided, GemvChoice::Cublas}) {
    const Launcher launcher(rig.context, choosing(choice));
    const Error error = error_of([&] { launcher.launch(problem, one.operands(), rig.stream); });
    CHECK(error.code == "bad-choice");
    CHECK(error.message == "the GEMV " + std::string(to_string(choice)) +
                               " serves y = A^T x with layout T, f32 and tight rows only, not R "
                               "bf16 60x40; choose auto or direct");
    CHECK_FALSE(launcher.gemv_plan(gemv_problem(40, 60)));
  }
  const Launcher direct(rig.context, choosing(GemvChoice::Direct));
  const LaunchRecord record = direct.launch(problem, one.operands(), rig.stream);
  CHECK(record.implementation == "direct");
  CHECK(record.reason.starts_with("requested: fastest direct plan by prediction, "));
  rig.stream.synchronize();
  CHECK(one.right());
}

TEST_CASE("a path that the device has not is refused in words") {
  const Device device = Device::open("emulator:t4");
  const Context context(device);
  const Stream stream(context);
  const Launcher launcher(context, choosing(GemvChoice::Bulk));
  const GemvCase one(context, gemv_problem(40, 60));
  const Error error = error_of([&] { launcher.launch(one.problem, one.operands(), stream); });
  CHECK(error.code == "bad-choice");
  CHECK(error.message ==
        "no plan of path bulk serves T f32 40x60 on NVIDIA T4 (emulated), sm_75; choose auto or "
        "direct");
}

TEST_CASE("what does not fit a GEMV is refused before anything is launched") {
  const Rig rig;
  GemvProblem problem = gemv_problem(40, 60, GemvLayout::R, ElementType::f16);
  problem.lda = 50;
  const GemvCase one(rig.context, problem);
  const auto refused = [&](const auto& change) {
    GemvOperands operands = one.operands();
    GemvProblem changed = problem;
    change(changed, operands);
    return error_of([&] { rig.launcher.launch(changed, operands, rig.stream); });
  };
  CHECK(refused([](auto&, auto& o) { o.a.bytes -= 2; }).message ==
        "a holds 2989 elements (5978 bytes), but k = 40, n = 60, lda = 50, layout = R, "
        "dtype = f16 needs 2990 "
        "elements (5980 bytes); pass a larger buffer or a smaller shape");
  CHECK(refused([](auto&, auto& o) { o.x.address += 2; }).code == "misaligned");
  CHECK(refused([](auto&, auto& o) { o.y.address = 0; }).code == "null-pointer");
  CHECK(refused([](auto&, auto& o) { o.y = {o.a.address + 1000, 240}; }).code == "aliasing");
  CHECK(refused([](auto&, auto& o) { o.bias = o.y; }).message ==
        "there is bias, but k = 40, n = 60, lda = 50, layout = R, dtype = f16 has no such operand; "
        "leave it empty, or set the parameter that adds it");
  CHECK(refused([](auto&, auto& o) { o.residual = o.y; }).message ==
        "there is residual, but k = 40, n = 60, lda = 50, layout = R, dtype = f16 has no such "
        "operand; leave it empty, or set the parameter that adds it");
  CHECK(refused([](auto&, auto& o) { o.beta = 1; }).message ==
        "alpha is not 1 or beta not 0, but the problem is not scaled; set GemvProblem::scaled");
  CHECK(refused([](auto& p, auto& o) {
          p.bias = true;
          o.bias = o.y;
        }).code == "aliasing");
  CHECK(refused([](auto& p, auto&) { p.n = 0; }).code == "empty-grid");
  CHECK(refused([](auto& p, auto&) { p.lda = 39; }).code == "bad-problem");
  CHECK(refused([](auto& p, auto&) { p.lda = ~std::uint64_t{0}; }).code == "bad-parameter");
  CHECK(rig.launcher.cache().statistics().compiles == 0);
}

TEST_CASE("the residual may be y itself, a shifted part of it not") {
  const Rig rig;
  GemvProblem problem = gemv_problem(40, 60);
  problem.residual = true;
  const GemvCase one(rig.context, problem);
  GemvOperands operands = one.operands();
  // The residual's numbers are in y.
  std::vector<float> residual(60);
  std::memcpy(residual.data(), one.residual.read().data(), 240);
  const Buffer<f32> y(rig.context, residual);
  operands.y = y;
  operands.residual = y;
  rig.launcher.launch(problem, operands, rig.stream);
  rig.stream.synchronize();
  const std::vector<float> result = read(y);
  CHECK(std::memcmp(result.data(), one.expected().data(), 240) == 0);
  operands.residual.address += 4;
  CHECK(error_of([&] { rig.launcher.launch(problem, operands, rig.stream); }).code == "aliasing");
}

TEST_CASE("a given plan is launched as it is, and must fit problem, addresses and target") {
  const Rig rig;
  const GemvCase one(rig.context, gemv_problem(64, 256), 1, 4);
  GemvPlan plan = split_plan(gemv_problem(64, 256), 4);
  const Error error =
      error_of([&] { rig.launcher.launch(Gemv{plan}, one.operands(), rig.stream); });
  CHECK(error.code == "misaligned");
  CHECK(error.message.starts_with("y is at 0x"));
  CHECK(error.message.ends_with(
      ", but kernel gemv needs an alignment of 16 bytes; pass an aligned address, or choose a "
      "kernel for a smaller alignment"));
  plan.problem.a_alignment = plan.problem.x_alignment = plan.problem.y_alignment = 4;
  CHECK(error_of([&] { rig.launcher.launch(Gemv{plan}, one.operands(), rig.stream); }).code ==
        "bad-plan");
  plan = split_plan(plan.problem, 4);
  const LaunchRecord record = rig.launcher.launch(Gemv{plan}, one.operands(), rig.stream);
  CHECK(record.reason == "requested: the caller's plan");
  CHECK(record.geometry.grid.x == plan.blocks);
  rig.stream.synchronize();
  CHECK(one.right());
}

TEST_CASE("a GEMV starts before the kernel in front of it has ended only where that is allowed") {
  const Rig rig;
  const GemvCase one(rig.context, gemv_problem(64, 256));
  GemvOperands operands = one.operands();
  const std::optional<GemvPlan> plan = rig.launcher.gemv_plan(one.problem);
  REQUIRE(plan);
  REQUIRE(plan->programmatic);  // on an H200
  CHECK_FALSE(rig.launcher.launch(one.problem, operands, rig.stream).geometry.programmatic);
  CHECK_FALSE(rig.launcher.plan(one.problem, operands, rig.stream).record().geometry.programmatic);
  operands.constant_weights = true;
  CHECK(rig.launcher.launch(one.problem, operands, rig.stream).geometry.programmatic);
  const LaunchPlan frozen = rig.launcher.plan(one.problem, operands, rig.stream);
  CHECK(frozen.record().geometry.programmatic);
  frozen.launch();
  operands.constant_weights = false;
  CHECK(rig.launcher.launch(Gemv{*plan}, operands, rig.stream).geometry.programmatic);
  CHECK(rig.launcher.cache().statistics().compiles == 1);
  rig.stream.synchronize();
  CHECK(one.right());
}

TEST_CASE("measured plans come before the planner's, once for each problem") {
  const LogOfTest log;
  Source source;
  source.plan = split_plan(gemv_problem(64, 256), 2);
  LauncherOptions options = plain_options();
  options.gemv_plans = &source;
  const Rig rig(options);
  const GemvCase one(rig.context, gemv_problem(64, 256));
  for (int i = 0; i < 3; ++i) {
    const LaunchRecord record = rig.launcher.launch(one.problem, one.operands(), rig.stream);
    CHECK(record.reason == "auto: tuned by a test");
    CHECK(record.geometry.grid.x == source.plan.blocks);
  }
  CHECK(source.asked == 1);
  CHECK(rig.launcher.gemv_plan(one.problem) == source.plan);
  rig.stream.synchronize();
  CHECK(one.right());
  // Another problem with the same k: the source's plan is not for it.
  const GemvCase other(rig.context, gemv_problem(64, 128));
  CHECK(rig.launcher.launch(other.problem, other.operands(), rig.stream).reason !=
        "auto: tuned by a test");
  CHECK(log.text().find("the measured plan for T f32 64x128 is not used: it is for T f32 64x256") !=
        std::string::npos);
  // One that cannot be.
  source.plan.problem = gemv_problem(64, 64);
  const GemvCase third(rig.context, gemv_problem(64, 64));
  source.plan.warps_k = 77;
  rig.launcher.launch(third.problem, third.operands(), rig.stream);
  CHECK(log.text().find("the measured plan for T f32 64x64 is not used: warps_k is 77") !=
        std::string::npos);
  rig.stream.synchronize();
  CHECK(third.right());
}
