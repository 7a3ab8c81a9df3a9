// tests/functional/gemv_options_test.cpp - which kernel is launched: choices, matmul, capture
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "functional/gemv_cases.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using namespace ptxgen::functional;

namespace {

// A problem in device memory.
struct Loaded {
  Loaded(const Place& place, const Problem& problem)
      : y(place.context, problem.shape.n),
        a(place.context, problem.a),
        x(place.context, problem.x) {
    y.fill_bytes(0xff);
  }
  [[nodiscard]] std::vector<float> result(const Place& place) const {
    place.stream.synchronize();
    std::vector<float> values(y.size());
    y.read(values);
    return values;
  }
  Buffer<f32> y, a, x;
};

template <class Work>
Error error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return Error(Stage::Io, "no error", "");
}

GemvProblem aligned_problem(std::uint32_t k, std::uint32_t n) {
  GemvProblem problem;
  problem.k = k;
  problem.n = n;
  return problem;
}

struct Expected {
  GemvChoice choice;
  std::string_view kernel;
  std::string_view implementation;
  LaunchGeometry geometry;
};

}  // namespace

TEST_CASE("options and PTXGEN_GEMV choose the kernel, the record says which, results agree") {
  const Problem problem = random_problem({260, 300}, 41);
  const std::uint32_t k = problem.shape.k;
  const std::uint32_t n = problem.shape.n;
  const LaunchGeometry coalesced = GemvCoalesced{k, n}.geometry();
  const Expected all[] = {
      {GemvChoice::Auto, "gemv", {}, {}},
      {GemvChoice::Direct, "gemv", "direct", {}},
      {GemvChoice::Coalesced, "gemv_coalesced", "coalesced", coalesced},
      {GemvChoice::Strided, "gemv_strided", "strided", GemvStrided{k, n}.geometry()},
      {GemvChoice::Cublas, "cublasSgemv", "cublas", {}},
  };
  on_every_place([&](Place& place) {
    const std::vector<GemvChoice> possible = choices(place);
    for (const Expected& expected : all) {
      if (expected.choice != GemvChoice::Auto &&
          std::find(possible.begin(), possible.end(), expected.choice) == possible.end()) {
        continue;
      }
      for (const bool by_setting : {false, true}) {
        INFO("gemv " << to_string(expected.choice) << (by_setting ? " by setting" : " by option"));
        LauncherOptions options = Place::launcher_options();
        if (by_setting) {
          options.settings.gemv = to_string(expected.choice);
        } else {
          options.gemv = expected.choice;
        }
        const Launcher launcher(place.context, options);
        CHECK(launcher.gemv_choice() == expected.choice);
        const Loaded memory(place, problem);
        const LaunchRecord record = launcher.gemv(memory.y, memory.a, memory.x, k, n, place.stream);
        CHECK(record.kernel == expected.kernel);
        const std::optional<GemvPlan> plan = launcher.gemv_plan(aligned_problem(k, n));
        CHECK(plan.has_value() == (expected.kernel == "gemv"));
        CHECK(record.implementation == (plan ? to_string(plan->path) : expected.implementation));
        CHECK_FALSE(record.reason.empty());
        LaunchGeometry geometry = plan ? Gemv{*plan}.geometry() : expected.geometry;
        geometry.programmatic = false;  // no promise of constant weights
        CHECK(record.geometry == geometry);
        CHECK(record.launches == 1);
        CHECK_FALSE(record.cached);
        check_gemv(problem, memory.result(place), roundings(expected.choice, problem.shape));
        CHECK(launcher.gemv(memory.y, memory.a, memory.x, k, n, place.stream).cached);
        place.stream.synchronize();
      }
    }
  });
}

TEST_CASE(
    "an option of the launcher outweighs PTXGEN_GEMV, and a wrong name lists the right ones") {
  on_every_place([](Place& place) {
    LauncherOptions options = Place::launcher_options();
    options.settings.gemv = "strided";
    options.gemv = GemvChoice::Coalesced;
    CHECK(Launcher(place.context, options).gemv_choice() == GemvChoice::Coalesced);
    options.gemv = GemvChoice::Auto;
    options.settings.gemv = "fastest";
    const Error error = error_of([&] { Launcher(place.context, options); });
    CHECK(error.code == "bad-choice");
    CHECK(error.message ==
          "there is no GEMV 'fastest'; there are: auto, direct, async, bulk, coalesced, strided, "
          "cublas");
  });
}

TEST_CASE("cuBLAS on the emulated device is refused in words") {
  Place place("emulator");
  const Launcher launcher = place.with_gemv(GemvChoice::Cublas);
  const Loaded memory(place, random_problem({4, 4}, 42));
  const Error error =
      error_of([&] { launcher.gemv(memory.y, memory.a, memory.x, 4, 4, place.stream); });
  CHECK(error.stage == Stage::Launch);
  CHECK(error.code == "no-cublas");
  CHECK(error.message == "cuBLAS needs a GPU, and this device is emulated; choose the GEMV auto");
}

TEST_CASE("matmul with one row is the GEMV, with more rows one launch of a product") {
  on_every_place([](Place& place) {
    constexpr std::uint32_t k = 70;
    constexpr std::uint32_t n = 90;
    for (const std::uint32_t m : {1u, 2u, 3u, 17u}) {
      INFO("m = " << m);
      const Problem problem = random_problem({k, n}, 43 + m);
      Numbers numbers(m);
      const std::vector<float> rows = numbers.list(std::size_t{m} * k, -1, 1);
      const Buffer<f32> a(place.context, rows);
      const Buffer<f32> b(place.context, problem.a);
      Buffer<f32> c(place.context, std::uint64_t{m} * n);
      c.fill_bytes(0xff);
      const LaunchRecord record =
          place.launcher.matmul(c, a, b, {.m = m, .k = k, .n = n}, place.stream);
      CHECK((record.kernel == "gemv") == (m == 1));
      CHECK(record.launches == 1);
      place.stream.synchronize();
      std::vector<float> result(c.size());
      c.read(result);
      for (std::size_t row = 0; row < m; ++row) {
        const auto at = [&](std::size_t width) { return static_cast<std::ptrdiff_t>(row * width); };
        Problem one{{k, n}, problem.a, {rows.begin() + at(k), rows.begin() + at(k) + k}};
        check_gemv(one, {result.begin() + at(n), result.begin() + at(n) + n}, k);
      }
    }
  });
}

TEST_CASE("prepared launches are captured, a miss leaves the capture as it was") {
  on_every_place([](Place& place) {
    const Problem problem = random_problem({50, 60}, 44);
    Loaded memory(place, problem);
    const KernelRequest wanted[] = {{"gemv", {50, 60}}};
    place.launcher.prepare(wanted);
    place.stream.begin_capture();
    const LaunchRecord record =
        place.launcher.gemv(memory.y, memory.a, memory.x, 50, 60, place.stream);
    CHECK(record.cached);
    const Error error =
        error_of([&] { place.launcher.gemv(memory.y, memory.a, memory.x, 50, 59, place.stream); });
    CHECK(error.code == "capture-miss");
    CHECK(error.kernel == "gemv");
    CHECK(error.message.find("prepare()") != std::string::npos);
    CHECK(place.stream.capturing());
    const Graph graph = place.stream.end_capture();
    CHECK(graph.nodes() == 1);
    for (int i = 0; i < 2; ++i) {
      memory.y.fill_bytes(0xff);
      graph.launch(place.stream);
      check_gemv(problem, memory.result(place), 50);
    }
  });
}

TEST_CASE("plans repeat a launch with the same result, on their own stream and on another") {
  on_every_place([](Place& place) {
    const Problem problem = random_problem({123, 77}, 45);
    const Stream other(place.context);
    for (const GemvChoice choice : choices(place)) {
      INFO("gemv " << to_string(choice));
      Loaded memory(place, problem);
      const Launcher launcher = place.with_gemv(choice);
      const LaunchPlan plan =
          launcher.plan(GemvProblem{.k = 123, .n = 77},
                        {.y = memory.y, .a = memory.a, .x = memory.x}, place.stream);
      CHECK(plan.record().implementation == to_string(choice));
      for (const Stream* const stream :
           std::initializer_list<const Stream*>{&place.stream, &other}) {
        memory.y.fill_bytes(0xff);
        if (stream == &other) {
          plan.launch(other);
        } else {
          plan.launch();
        }
        stream->synchronize();
        check_gemv(problem, memory.result(place), roundings(choice, problem.shape));
      }
    }
  });
}
