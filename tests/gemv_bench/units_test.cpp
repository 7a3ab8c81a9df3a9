// tests/gemv_bench/units_test.cpp - shapes, rotation, interleaving, checks of gemv-bench
#include <catch2/catch.hpp>
#include <cstring>

#include "bench/gemv/decode_chain.hpp"
#include "bench/gemv/run.hpp"
#include "bench/gemv/tune.hpp"
#include "cli_common/files.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/device/core.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::gemv_bench;

TEST_CASE("shapes of words, each once, with all who have them") {
  const auto squares = bench_shapes("grid");
  REQUIRE(squares.size() == 5);
  CHECK(squares.front().k == 1024);
  CHECK(squares.back().n == 16384);

  const auto model = bench_shapes("llama-2-7b,4096x4096");
  // qkv, o, gate_up, down, head; q, k and v are squares as o is; gate and up are one shape.
  REQUIRE(model.size() == 6);
  CHECK(model[0].n == 3 * 4096);
  CHECK(model[1].who == "llama-2-7b o, llama-2-7b q, llama-2-7b k, llama-2-7b v, given");
  CHECK(model[5].who == "llama-2-7b gate, llama-2-7b up");
  CHECK(bench_shapes("decode").size() > 50);
  CHECK(split_list(",a,,b,") == std::vector<std::string>{"a", "b"});
  CHECK_THROWS_AS(bench_shapes("4096x0"), cli::UsageError);
  CHECK_THROWS_AS(bench_shapes("4096x4096x1"), cli::UsageError);
}

TEST_CASE("a rotation is cold where memory allows it, and chains are whole rounds") {
  constexpr std::uint64_t kMega = 1u << 20;
  const auto check = [](const Rotation& rotation, std::uint64_t matrices, std::uint32_t chain,
                        bool cold) {
    CHECK(rotation.matrices == matrices);
    CHECK(rotation.chain == chain);
    CHECK(rotation.cold() == cold);
    CHECK(rotation.chain % rotation.matrices == 0);
  };
  check(rotation_of(64 * kMega, 240 * kMega, 64, 1000 * kMega), 4, 64, true);
  check(rotation_of(16 * kMega, 240 * kMega, 64, 1000 * kMega), 15, 75, true);
  check(rotation_of(2 * kMega, 240 * kMega, 64, 1000 * kMega), 120, 120, true);
  // Never the same matrix twice in a row, however large it is.
  check(rotation_of(900 * kMega, 240 * kMega, 64, 4000 * kMega), 2, 64, true);
  check(rotation_of(64 * kMega, 240 * kMega, 64, 130 * kMega), 2, 64, false);
  check(rotation_of(900 * kMega, 240 * kMega, 64, 100 * kMega), 1, 64, true);
  CHECK(rotation_of(100, 0, 1, 1000).matrix_bytes == 256);
}

namespace {

// A device with data for a small product, and arms that note in which order they were launched.
struct Bench {
  explicit Bench(ElementType type = ElementType::f32)
      : device(Device::open("emulator", Settings{})),
        context(device),
        launcher(context),
        maker(context, launcher, settings),
        lead(context, maker, 256),
        data(context, bench_problem({48, 40, "given"}, GemvLayout::T, type),
             rotation_of(48 * 40 * bytes(type), 3 * 48 * 40 * bytes(type), 6, 1u << 20), 7),
        verify(maker.roofline_arm(matrix_bytes(data.problem()))) {}

  [[nodiscard]] Arm planned() const {
    return maker.plan_arm("planned", plan_gemv(data.problem(), maker.gpu()));
  }
  // `arm` under another name; `before` is called for each launch and may change where it writes.
  template <class Before>
  [[nodiscard]] Arm wrapped(Arm arm, const std::string& name, Before before) {
    arm.name = name;
    arm.queue = [inner = arm.queue, before](const ptxgen::Stream& stream, const ArmSite& at) {
      ArmSite site = at;
      if (before(site)) inner(stream, site);
    };
    arm.queue_alone = nullptr;
    return arm;
  }
  [[nodiscard]] std::vector<ArmResult> measure(std::vector<Arm> arms,
                                               std::vector<Metric> metrics) const {
    MeasureOptions options;
    options.samples = 3;
    options.metrics = std::move(metrics);
    return measure_arms(context, data, std::move(arms), verify, lead, options);
  }

  Settings settings;
  Device device;
  Context context;
  Launcher launcher;
  ArmMaker maker;
  Lead lead;
  GemvData data;
  Arm verify;
};

}  // namespace

TEST_CASE("arms take turns, and isolated launches go round the matrices") {
  Bench bench;
  REQUIRE(bench.data.rotation().matrices == 3);
  std::vector<std::string> order;
  std::vector<std::uint64_t> matrices;
  const auto note = [&](const std::string& name) {
    return bench.wrapped(bench.planned(), name, [&, name](const ArmSite& at) {
      order.push_back(name);
      matrices.push_back((at.a - bench.data.matrix(0)) / bench.data.rotation().matrix_bytes);
      return true;
    });
  };
  const auto results = bench.measure({note("A"), note("B")}, {Metric::Isolated});
  // Each matrix once for either, to be compared with fp64; then A B A B A B.
  const std::vector<std::string> expected = {"A", "A", "A", "B", "B", "B",
                                             "A", "B", "A", "B", "A", "B"};
  CHECK(order == expected);
  CHECK(std::vector<std::uint64_t>(matrices.begin() + 6, matrices.end()) ==
        std::vector<std::uint64_t>{0, 1, 2, 0, 1, 2});
  REQUIRE(results.size() == 2);
  for (const ArmResult& result : results) {
    CHECK(result.wrong.empty());
    REQUIRE(result.find(Metric::Isolated) != nullptr);
    CHECK(result.find(Metric::Isolated)->checked == 3);
    CHECK(result.find(Metric::Isolated)->us.n == 3);
    CHECK(result.find(Metric::Chained) == nullptr);
  }
}

TEST_CASE("an arm that is wrong once has no times, and the others go on") {
  Bench bench;
  const std::uint64_t matrices = bench.data.rotation().matrices;
  SECTION("it does nothing at all") {
    const auto results =
        bench.measure({bench.wrapped(bench.planned(), "idle", [](const ArmSite&) { return false; }),
                       bench.planned()},
                      {Metric::Isolated, Metric::Chained});
    CHECK(results[0].wrong ==
          "the first launch with matrix 0 of 3: 40 of 40 outputs are outside their error bound");
    CHECK(results[0].metrics.empty());
    CHECK(results[1].wrong.empty());
    CHECK(results[1].metrics.size() == 2);
    CHECK(results[1].find(Metric::Chained)->checked == 3 * bench.data.rotation().chain);
  }
  SECTION("it stops working after a while: what it wrote before is not taken for a result") {
    std::uint64_t launches = 0;
    const auto results =
        bench.measure({bench.wrapped(bench.planned(), "tired",
                                     [&](const ArmSite&) { return ++launches <= matrices + 1; })},
                      {Metric::Isolated});
    CHECK(results[0].wrong ==
          "an isolated launch with matrix 1 of 3: 40 of 40 outputs are outside their error bound");
  }
  SECTION("it takes another matrix") {
    std::uint64_t launches = 0;
    const auto results = bench.measure({bench.wrapped(bench.planned(), "astray",
                                                      [&](ArmSite& at) {
                                                        if (++launches == matrices + 2)
                                                          at.a = bench.data.matrix(2);
                                                        return true;
                                                      })},
                                       {Metric::Chained});
    CHECK(results[0].wrong.starts_with("a launch of a chain with matrix 1 of 3: "));
  }
  SECTION("it cannot be launched, at once or in a capture") {
    const auto refuse = [](const ArmSite&) -> bool {
      throw Error(Stage::Launch, "cublas-failed", "cublasGemmEx says no");
    };
    std::uint64_t launches = 0;
    const auto results = bench.measure(
        {bench.wrapped(bench.planned(), "refused", refuse), bench.planned(),
         bench.wrapped(bench.planned(), "not captured",
                       [&](const ArmSite&) -> bool {
                         if (++launches <= matrices + 1) return true;
                         throw Error(Stage::Launch, "capture", "not while it is captured");
                       })},
        {Metric::Chained});
    CHECK(results[0].failed == "cublasGemmEx says no");
    CHECK(results[0].metrics.empty());
    CHECK(results[1].failed.empty());
    CHECK(results[1].find(Metric::Chained)->us.n == 3);
    CHECK(results[2].failed == "not while it is captured");
    CHECK(results[2].metrics.empty());
  }
  SECTION("a copy that copies nothing, a roofline that reads too little") {
    const auto lazy = [](const ArmSite&) { return false; };
    Arm shorter = bench.maker.roofline_arm(matrix_bytes(bench.data.problem()) - 64);
    const auto results = bench.measure(
        {bench.wrapped(bench.maker.copy_arm(matrix_bytes(bench.data.problem())), "copy", lazy),
         shorter},
        {Metric::Isolated});
    CHECK(results[0].wrong == "the first launch with matrix 0 of 3: its words have another sum");
    CHECK(results[1].wrong == "the first launch with matrix 0 of 3: its words have another sum");
  }
}

TEST_CASE("a result that is right in other bits is counted, not refused") {
  Bench bench;
  // The same product in another order of additions, now and then.
  GemvPlan other = plan_gemv(bench.data.problem(), bench.maker.gpu());
  other.unroll = 1;
  other.cluster = 1;
  other.warps_k = 4;
  other.blocks = static_cast<std::uint32_t>(other.units());
  const Arm second = bench.maker.plan_arm("second", other);
  Arm mixed = bench.planned();
  mixed.exactness.roundings = 64;
  mixed.queue_alone = nullptr;
  std::uint64_t launches = 0;
  mixed.queue = [first = mixed.queue, next = second.queue, &launches](const ptxgen::Stream& stream,
                                                                      const ArmSite& at) {
    (++launches > 4 ? next : first)(stream, at);
  };
  const auto results = bench.measure({mixed}, {Metric::Isolated});
  CHECK(results[0].wrong.empty());
  CHECK(results[0].find(Metric::Isolated)->checked == 3);
  CHECK(results[0].find(Metric::Isolated)->differing == 2);
}

TEST_CASE("a product is checked against its own bound, in the type of y") {
  GemvReference reference;
  reference.y = {1.0, 100.0};
  reference.magnitude = {10.0, 200.0};
  const auto floats = [](std::vector<float> values) {
    std::vector<std::byte> raw(values.size() * 4);
    std::memcpy(raw.data(), values.data(), raw.size());
    return raw;
  };
  const Exactness exactness{16, false};
  const float off = static_cast<float>(gemv_error_bound(200.0, 16) * 0.9);
  CHECK(check_product(ElementType::f32, floats({1.0f, 100.0f + off}), reference, exactness).ok());
  CHECK(check_product(ElementType::f32, floats({1.0f, 100.0f + 2 * off}), reference, exactness)
            .outside == 1);
  CHECK(check_product(ElementType::f32, floats({std::nanf(""), 100.0f}), reference, exactness)
            .outside == 1);
  // bf16 100.5 is one step above 100: half a step is allowed.
  const std::vector<std::byte> halves = [] {
    const std::uint16_t bits[] = {0x3f80, 0x42c9};
    std::vector<std::byte> raw(4);
    std::memcpy(raw.data(), bits, 4);
    return raw;
  }();
  CHECK(check_product(ElementType::bf16, halves, reference, exactness).outside == 1);
  CHECK(check_product(ElementType::bf16, halves, reference, {16, true}).outside == 0);
}

TEST_CASE("the planner's first choice is kept unless another is faster beyond doubt") {
  const auto candidate = [](const std::string& name, double low, double median, double high) {
    ArmResult arm_result;
    arm_result.arm.name = name;
    MetricResult metric;
    metric.metric = Metric::Chained;
    metric.us.low = low;
    metric.us.median = median;
    metric.us.high = high;
    arm_result.metrics.push_back(metric);
    return arm_result;
  };
  const auto best = [](const std::vector<ArmResult>& results) {
    const ArmResult* const found = best_candidate(results, Metric::Chained);
    return found == nullptr ? std::string("none") : found->arm.name;
  };
  const ArmResult first = candidate("first", 9.9, 10, 10.1);
  CHECK(best({first, candidate("near", 9.7, 9.8, 9.95)}) == "first");
  CHECK(best({first, candidate("fast", 9.5, 9.6, 9.7), candidate("faster", 9.2, 9.3, 9.4)}) ==
        "faster");
  ArmResult wrong = candidate("wrong", 1, 1, 1);
  wrong.wrong = "the first launch";
  CHECK(best({wrong, first}) == "first");
  CHECK(best({wrong}) == "none");
  CHECK(best({}) == "none");
}

TEST_CASE("problems to tune: x and y as the weights and f32, each once") {
  const auto problems = tune_problems({{64, 32, ""}}, {GemvLayout::T, GemvLayout::R},
                                      {ElementType::f32, ElementType::bf16}, {"same", "f32"});
  std::vector<std::string> texts;
  for (const GemvProblem& problem : problems) texts.push_back(to_text(problem));
  CHECK(texts.size() == 6);
  CHECK(problems[2].x == ElementType::bf16);
  CHECK(problems[3].weights == ElementType::bf16);
  CHECK(problems[3].y == ElementType::f32);
}

TEST_CASE("a token is a chain of all its matrices, in order, all of them checked") {
  const Device device = Device::open("emulator", Settings{});
  const ptx::Gpu gpu = gpu_of(device.info());
  const auto shape = [&](std::uint32_t k, std::uint32_t n, std::uint32_t count, const char* name) {
    GemvProblem problem = bench_problem({k, n, ""}, GemvLayout::R, ElementType::f16);
    problem.x = problem.y = ElementType::f32;
    return ChainShape{plan_gemv(problem, gpu), count, name};
  };
  const std::vector<ChainShape> shapes = {shape(64, 96, 3, "qkv"), shape(32, 64, 3, "o"),
                                          shape(64, 40, 1, "head")};
  CHECK(chain_order(shapes) == std::vector<std::size_t>{0, 1, 0, 1, 0, 1, 2});
  const ChainMeasurement found = measure_chain(device, shapes, 2, 256, 3, Settings{});
  CHECK(found.wrong.empty());
  CHECK(found.kernels == 7);
  // Before the capture and in each of two samples.
  CHECK(found.checked == 3 * 7);
  CHECK(found.us.n == 2);
  CHECK(found.tokens_per_s() > 0);
  CHECK(found.weight_bytes == 3 * 64 * 96 * 2 + 3 * 32 * 64 * 2 + 64 * 40 * 2);

  GemvProblem large = bench_problem({1u << 20, 1u << 20, ""}, GemvLayout::R, ElementType::f32);
  const std::vector<ChainShape> model = {{plan_gemv(large, gpu), 1000, "all"}};
  CHECK_THROWS_WITH(measure_chain(device, model, 1, 256, 0, Settings{}),
                    Catch::Contains("the weights have 4398046511104000 bytes, and of the device's "
                                    "memory "));
}
