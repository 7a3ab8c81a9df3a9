// tests/launcher/programmatic_test.cpp - programmatic dependent launch of chains of kernels
#include <catch2/catch.hpp>

#include <algorithm>

#include "ptxgen/kernels.hpp"
#include "ptxgen/optimize.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "rig.hpp"
#include "support/random_values.hpp"
#include "support/served_target.hpp"

using namespace ptxgen;

namespace {

const ptx::Instruction& first_statement(const ptx::Module& module) {
  const auto entry = std::ranges::find_if(
      module.functions, [](const ptx::Function& f) { return f.entry && !f.declaration; });
  return entry->body.front();
}

bool is_wait(const ptx::Instruction& statement) {
  return statement.is(ptx::Op::griddepcontrol) &&
         statement.get(ptx::Field::GridAction) == ptx::Modifier::wait;
}

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

// Launches that the driver saw, with and without the attribute.
struct Seen {
  int programmatic = 0;
  int plain = 0;
};
Seen seen;

driver::CUresult launch_ex(const driver::CUlaunchConfig* config, driver::CUfunction function,
                           void** parameters, void** extra) {
  bool programmatic = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    programmatic |=
        config->attrs[i].id == driver::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
        config->attrs[i].value.programmaticStreamSerializationAllowed == 1;
  }
  (programmatic ? seen.programmatic : seen.plain) += 1;
  return driver::emulated::table().launch_kernel_ex(config, function, parameters, extra);
}
driver::CUresult launch(driver::CUfunction function, unsigned grid_x, unsigned grid_y,
                        unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                        unsigned shared, driver::CUstream stream, void** parameters, void** extra) {
  ++seen.plain;
  return driver::emulated::table().launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y,
                                                 block_z, shared, stream, parameters, extra);
}

driver::Table counting_table() {
  driver::Table table = driver::emulated::table();
  table.launch_kernel_ex = launch_ex;
  table.launch_kernel = launch;
  return table;
}

LauncherOptions options(bool programmatic) {
  LauncherOptions all = test::plain_options();
  all.programmatic = programmatic;
  return all;
}

/// Norm, product, norm of the product: launched, planned and captured.
struct Chain {
  explicit Chain(bool programmatic)
      : rig(options(programmatic), counting_table()),
        weights(rig.context, random_values(64 * 64, 1)),
        weight(rig.context, random_values(64, 2)),
        x(rig.context, random_values(64, 3)),
        y(rig.context, 64),
        z(rig.context, 64) {
    problem.layout = GemvLayout::R;
    problem.k = problem.n = 64;
    seen = {};
  }

  template <class Call>
  void each(const Call& call) const {
    call(norm, RmsNorm::Operands{.y = y, .x = x, .weight = weight});
    GemvProblem::Operands product;
    product.y = z;
    product.a = weights;
    product.x = y;
    product.constant_weights = constant_weights;
    call(problem, product);
    call(norm, RmsNorm::Operands{.y = x, .x = z, .weight = weight});
  }
  void launch_all() const {
    each([&](const auto& kernel, const auto& operands) {
      (void)rig.launcher.launch(kernel, operands, rig.stream);
    });
    rig.stream.synchronize();
  }

  test::Rig rig;
  RmsNorm norm{1, 64};
  GemvProblem problem;
  bool constant_weights = true;
  Buffer<f32> weights, weight, x, y, z;
};

}  // namespace

TEST_CASE("with a wait every kernel of the catalog waits before all else, and assumes no memory") {
  for (const KernelDescription& kernel : catalog()) {
    if (kernel.family != nullptr) continue;
    INFO(kernel.name);
    ptx::Module module =
        kernel.build(kernel.default_values(), test::served_target(kernel, "sm_90"));
    const std::string before = ptx::print(module);
    optimize::wait_for_previous_grid(module);
    const std::string text = ptx::print(module);
    CHECK(is_wait(first_statement(module)));
    CHECK(count(text, "griddepcontrol") == 1);
    CHECK(count(text, ".nc.") == 0);
    CHECK(count(text, "\n") == count(before, "\n") + 1);
    CHECK(ptx::verify(module).empty());
    // Again nothing changes.
    optimize::wait_for_previous_grid(module);
    CHECK(ptx::print(module) == text);
    if (!kernel.serves(ptx::target("sm_89"))) continue;
    ptx::Module older = kernel.build(kernel.default_values(), ptx::target("sm_89"));
    const std::string as_built = ptx::print(older);
    optimize::wait_for_previous_grid(older);
    CHECK(ptx::print(older) == as_built);
  }
}

TEST_CASE("loads of read-only memory become plain loads, with all their modifiers") {
  const GemvGroup group{.k = 4096, .n0 = 64, .n1 = 64, .n2 = 64};
  ptx::Module module = group.build(ptx::target("sm_90")).module();
  const std::string before = ptx::print(module);
  REQUIRE(count(before, ".nc.") > 0);
  optimize::wait_for_previous_grid(module);
  const std::string after = ptx::print(module);
  CHECK(count(after, "ld.global") == count(before, "ld.global"));
  CHECK(count(after, "L1::no_allocate") == count(before, "L1::no_allocate"));
  CHECK(count(after, "@") == count(before, "@"));
}

TEST_CASE("a kernel with a wait of its own is unchanged") {
  const ptx::Gpu& gpu = *ptx::find_gpu("h200");
  GemvProblem problem;
  problem.layout = GemvLayout::R;
  const GemvPlan plan = plan_gemv(problem, gpu);
  REQUIRE(plan.programmatic);
  ptx::Module module = Gemv{plan}.build(ptx::target("sm_90")).module();
  const std::string before = ptx::print(module);
  REQUIRE(!is_wait(first_statement(module)));
  optimize::wait_for_previous_grid(module);
  CHECK(ptx::print(module) == before);
}

TEST_CASE("every launch of a programmatic launcher has the attribute, and the same results") {
  const Chain plain(false);
  plain.launch_all();
  CHECK(seen.programmatic == 1);  // the GEMV, whose weights are constant
  CHECK(seen.plain == 2);
  const std::vector<float> expected = test::read(plain.x);

  const Chain chain(true);
  chain.launch_all();
  CHECK(seen.programmatic == 3);
  CHECK(seen.plain == 0);
  CHECK(test::read(chain.x) == expected);
  CHECK(chain.rig.device.findings().empty());
}

TEST_CASE("a GEMV whose weights may be written before starts after the kernel ahead of it") {
  Chain chain(true);
  chain.constant_weights = false;
  chain.launch_all();
  CHECK(seen.programmatic == 2);
  CHECK(seen.plain == 1);
}

TEST_CASE("plans and captured launches of a programmatic launcher have the attribute") {
  const Chain chain(true);
  std::vector<LaunchPlan> plans;
  chain.each([&](const auto& kernel, const auto& operands) {
    plans.push_back(chain.rig.launcher.plan(kernel, operands, chain.rig.stream));
    CHECK(plans.back().record().geometry.programmatic);
  });
  for (const LaunchPlan& plan : plans) plan.launch();
  chain.rig.stream.synchronize();
  CHECK(seen.programmatic == 3);
  CHECK(seen.plain == 0);
  const std::vector<float> once = test::read(chain.x);
  chain.rig.stream.begin_capture();
  for (const LaunchPlan& plan : plans) plan.launch();
  const Graph graph = chain.rig.stream.end_capture();
  CHECK(seen.programmatic == 6);
  graph.launch(chain.rig.stream);
  chain.rig.stream.synchronize();

  const Chain plain(false);
  plain.launch_all();
  CHECK(test::read(plain.x) == once);
  plain.launch_all();
  CHECK(test::read(plain.x) == test::read(chain.x));
}

TEST_CASE("a programmatic launcher has modules of its own, and none on older GPUs") {
  const Chain chain(true);
  const LaunchRecord record = chain.rig.launcher.launch(
      chain.norm, {.y = chain.y, .x = chain.x, .weight = chain.weight}, chain.rig.stream);
  CHECK(record.geometry.programmatic);
  CHECK(!record.cached);
  Settings settings;
  settings.emulated_gpu = "rtx4090";
  const Device device = Device::open("emulator", settings);
  const Context context(device);
  const Stream stream(context);
  const Launcher launcher(context, options(true));
  const Buffer<f32> x(context, std::vector<float>(64, 1.0f));
  const Buffer<f32> y(context, 64);
  const LaunchRecord older = launcher.launch(RmsNorm{1, 64}, {.y = y, .x = x, .weight = x}, stream);
  CHECK(!older.geometry.programmatic);
  stream.synchronize();
}
