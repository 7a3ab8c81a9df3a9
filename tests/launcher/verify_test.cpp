// tests/launcher/verify_test.cpp - kernels of the catalog, and wrong ones, verified
#include "ptxgen/runtime/launch/verify.hpp"

#include <catch2/catch.hpp>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "rig.hpp"
#include "runtime/launch/output_check.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

TEST_CASE("every kernel of the catalog is right in every case, at any element") {
  const test::Rig rig;
  std::size_t cases = 0;
  std::size_t shapes = 0;
  for (const KernelDescription& kernel : catalog()) {
    const std::vector<std::vector<std::uint64_t>> all = kernel.cases();
    CHECK_FALSE(all.empty());
    double worst = 0;
    for (const std::vector<std::uint64_t>& values : all) {
      ++shapes;
      for (const std::uint32_t offset : {0u, 1u, 2u}) {
        // Every day each second shape, and the last, at one offset; sanitizers see the same code in
        // a few of them.
        const bool last = &values == &all.back() && offset == 0 && !test::kSanitized;
        if (!test::takes(shapes + offset, 6, 30) && !last) continue;
        const Verification result =
            verify(rig.launcher, rig.context, kernel, values,
                   {.seed = cases, .offset = offset % 2, .in_place = offset == 2});
        INFO(kernel.name << ", " << result.shape << ", offset " << offset << ": "
                         << result.error_text() << result.first_wrong);
        CHECK(result.ok());
        CHECK(result.findings.empty());
        worst = std::max(worst, result.worst_share);
        ++cases;
      }
    }
    WARN(kernel.name << ": " << all.size() << " cases, largest error / bound " << worst);
  }
  CHECK(cases >= (test::kSanitized && !test::full() ? 10 : 100));
}

TEST_CASE("the cases of each kernel have one element, and a row longer than 65,536") {
  for (const KernelDescription& kernel : catalog()) {
    INFO(kernel.name);
    bool one = false;
    bool many = false;
    std::uint64_t fewest = 1;
    for (const ParameterInfo& info : kernel.parameters) fewest *= info.multiple_of;
    for (const std::vector<std::uint64_t>& values : kernel.cases()) {
      const ErasedValue spec = kernel.make_spec(values);
      std::uint64_t largest = 0;
      std::uint64_t read = 0;
      for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
        if (!is_memory(kernel.arguments[i].role)) continue;
        const std::uint64_t elements = kernel.elements_of(spec.get(), i);
        largest = std::max(largest, elements);
        // The outputs of some are the bytes of more than one array.
        if (!is_written(kernel.arguments[i].role)) read = std::max(read, elements);
      }
      one = one || read <= fewest;
      many = many || largest > 65536;
    }
    CHECK(one);
    CHECK(many);
  }
}

namespace {

/// What is wrong with a described kernel on purpose.
enum class Defect { None, WrongValue, NoGuard, ShiftedOutput, ElementCount, Bound };

/// out[i] = 3 in[i], in one block of one thread per element.
template <Defect kDefect>
struct Triple {
  std::uint32_t n = 33;
  struct Operands {
    DeviceRange out{}, in{};
  };
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const {
    return build_kernel("triple", target.name,
                        params(param<Ptr<f32>>("in"), param<Ptr<f32>>("out"), param<u32>("n")),
                        [](KernelBuilder& k, Ptr<f32> in, Ptr<f32> out, Value<u32> count) {
                          const Value<u32> i = k.tid_x();
                          const auto body = [&] {
                            const Value<f32> x = in[i];
                            // Bound: one unit in the last place from what the bound says is exact.
                            const float factor = kDefect == Defect::WrongValue ? 3.0001f
                                                 : kDefect == Defect::Bound    ? 0x1.800002p+1f
                                                                               : 3.0f;
                            const Value<f32> y = x * factor;
                            if (kDefect == Defect::ShiftedOutput) {
                              out[i + 1u] = y;
                            } else {
                              out[i] = y;
                            }
                          };
                          if (kDefect == Defect::NoGuard) {
                            body();
                          } else {
                            k.if_(i < count, body);
                          }
                        });
  }
  [[nodiscard]] LaunchGeometry geometry() const { return {.grid = {1}, .block = {64}}; }
  [[nodiscard]] KernelCost cost() const noexcept { return {}; }
};

}  // namespace

template <Defect kDefect>
struct ptxgen::Describe<Triple<kDefect>> {
  using K = Triple<kDefect>;
  using Row = ArgumentRow<K>;
  using O = typename K::Operands;
  static constexpr KernelDoc text{"triple", "out[i] = 3 in[i]", "coalesced"};
  static constexpr ParameterRow<K> parameters[] = {number<&K::n>("n", 1, 64, "elements")};
  static constexpr Row arguments[] = {Row::input("in", &O::in, ElementType::f32, &K::n, "in"),
                                      Row::output(
                                          "out", &O::out, ElementType::f32,
                                          [](const K& spec) {
                                            return std::uint64_t{spec.n} +
                                                   (kDefect == Defect::ElementCount ? 1 : 0);
                                          },
                                          "out"),
                                      Row::template shape<&K::n>("n")};
  static void reference(const K&, HostOperands& host) {
    std::vector<double>& out = host["out"].values;
    out.assign(out.size(), 0);
    for (std::size_t i = 0; i < host.input("in").size(); ++i) out[i] = 3 * host.input("in")[i];
  }
  static ErrorBound bound(const K&) { return {.exact = true}; }
  static constexpr K cases[] = {{33}};
};

namespace {

template <Defect kDefect>
Verification verified(test::Rig& rig) {
  // One name for all of them, and one cache: types tell them apart.
  const std::uint64_t values[] = {33};
  return verify(rig.launcher, rig.context, kDescription<Triple<kDefect>>, values);
}

}  // namespace

TEST_CASE("a kernel, a description or a bound that is wrong is noticed") {
  test::Rig rig;
  CHECK(verified<Defect::None>(rig).ok());
  const Verification wrong = verified<Defect::WrongValue>(rig);
  CHECK(wrong.wrong > 30);
  CHECK(wrong.first_wrong.starts_with("out[0] is "));
  CHECK_FALSE(verified<Defect::Bound>(rig).ok());
  // The last element is never written: it is still NaN.
  const Verification count = verified<Defect::ElementCount>(rig);
  CHECK(count.wrong == 1);
  CHECK(count.first_wrong.starts_with("out[33] is "));
  const Verification shifted = verified<Defect::ShiftedOutput>(rig);
  CHECK(shifted.wrong > 30);
  CHECK(shifted.outside > 0);
  CHECK_FALSE(verified<Defect::NoGuard>(rig).ok());
}

TEST_CASE("blocks of values with an error are within the bound and half a step, others unchanged") {
  constexpr ElementType kType = ElementType::q8_0;
  HostOperands::Operand reference{"cache", std::vector<double>(64, 0.5), {}};
  for (std::size_t i = 0; i < 32; ++i) reference.values[i] = static_cast<double>(i) - 10.3;
  std::vector<double> old = reference.values;
  for (std::size_t i = 0; i < 32; ++i) old[i] = 3;
  // The second block of the reference is what was there.
  const std::vector<std::byte> before = to_elements(kType, old);
  const std::vector<double> stored = to_values(kType, before);
  std::copy(stored.begin() + 32, stored.end(), reference.values.begin() + 32);
  reference.magnitude.assign(64, 1);
  const ErrorBound bound{.relative = 0.01};
  const double step = 20.7 / 127;
  const auto wrong_with = [&](std::size_t i, double error, const ErrorBound& within) {
    std::vector<double> values = reference.values;
    values[i] += error;
    Verification result;
    OutputCheck check(result, within);
    check.output(kType, to_elements(kType, values), before, reference);
    return result.wrong;
  };
  CHECK(wrong_with(0, 0, bound) == 0);
  CHECK(wrong_with(3, 0.009, bound) == 0);
  CHECK(wrong_with(3, 1.5 * step, bound) == 1);
  CHECK(wrong_with(40, 0.1, bound) != 0);
  // An exact bound compares the bits of each block.
  const ErrorBound exact{.exact = true};
  CHECK(wrong_with(0, 0, exact) == 0);
  CHECK(wrong_with(3, 1.5 * step, exact) == 1);
}

TEST_CASE("a benchmark compares the results of each round, and times no wrong kernel") {
  test::Rig rig;
  const std::uint64_t values[] = {33};
  const BenchmarkOptions options{.launches = 2, .rounds = 3, .warmup = 1};
  const auto run = [&](const KernelDescription& kernel) {
    return benchmark(rig.launcher, rig.context, kernel, values, options);
  };
  const Benchmark right = run(kDescription<Triple<Defect::None>>);
  CHECK(right.verification.ok());
  CHECK(right.verification.compared == 4 * 33);  // before, and after three rounds
  REQUIRE(right.microseconds.size() == 3);
  CHECK(right.median() > 0);
  CHECK(right.geometry.block.x == 64);
  const Benchmark wrong = run(kDescription<Triple<Defect::WrongValue>>);
  CHECK(wrong.verification.wrong > 30);
  CHECK(wrong.microseconds.empty());
  CHECK(wrong.median() == 0);
}

TEST_CASE("a benchmark of a kernel that reads its output has the inputs of the reference") {
  test::Rig rig;
  const KernelDescription& gemv = kernel_named("gemv");
  std::vector<std::uint64_t> values = gemv.default_values();
  values[parameter_index(gemv, "k")] = 40;
  values[parameter_index(gemv, "n")] = 30;
  values[parameter_index(gemv, "scaled")] = 1;
  const Benchmark result =
      benchmark(rig.launcher, rig.context, gemv, values, {.launches = 3, .rounds = 2, .warmup = 2});
  INFO(result.verification.first_wrong << result.verification.error_text());
  CHECK(result.verification.ok());
  CHECK(result.verification.compared == 3 * 30);
}

TEST_CASE("a cold benchmark compares every launch, and copies as many bytes beside each") {
  test::Rig rig;
  const std::uint64_t values[] = {33};
  BenchmarkOptions options{
      .launches = 1, .rounds = 4, .warmup = 0, .cold = true, .lead_bytes = 4096};
  const auto run = [&](const KernelDescription& kernel) {
    return benchmark(rig.launcher, rig.context, kernel, values, options);
  };
  const Benchmark right = run(kDescription<Triple<Defect::None>>);
  INFO(right.verification.error_text());
  CHECK(right.verification.ok());
  CHECK(right.verification.compared == 5 * 33);  // one launch before, and one in each round
  CHECK(right.microseconds.size() == 4);
  CHECK(right.copy_microseconds.size() == 4);
  CHECK(right.copy_median() > 0);
  CHECK(right.lead_bytes == 4096);
  // In groups of 16 bytes that are read, and as many that are written.
  CHECK(right.copy_bytes >= right.cost.bytes());
  CHECK(right.copy_bytes <= right.cost.bytes() + 32);
  const Benchmark wrong = run(kDescription<Triple<Defect::WrongValue>>);
  CHECK(wrong.verification.wrong > 30);
  CHECK(wrong.microseconds.empty());
  CHECK(wrong.copy_microseconds.empty());
  options.launches = 2;
  CHECK_THROWS_WITH(run(kDescription<Triple<Defect::None>>),
                    Catch::Contains("2 launches of a cold round; the second finds what the first "
                                    "has read in the caches; ask for one launch and more rounds"));
}

TEST_CASE("a cold benchmark of a kernel that reads its output restores it before each launch") {
  test::Rig rig;
  const KernelDescription& gemv = kernel_named("gemv");
  std::vector<std::uint64_t> values = gemv.default_values();
  values[parameter_index(gemv, "k")] = 40;
  values[parameter_index(gemv, "n")] = 30;
  values[parameter_index(gemv, "scaled")] = 1;
  const Benchmark result =
      benchmark(rig.launcher, rig.context, gemv, values,
                {.launches = 1, .rounds = 3, .warmup = 1, .cold = true, .lead_bytes = 8192});
  INFO(result.verification.first_wrong << result.verification.error_text());
  CHECK(result.verification.ok());
  CHECK(result.verification.compared == 4 * 30);
}

TEST_CASE("a benchmark of nothing is refused") {
  test::Rig rig;
  const std::uint64_t values[] = {33};
  CHECK_THROWS_WITH(benchmark(rig.launcher, rig.context, kDescription<Triple<Defect::None>>, values,
                              {.launches = 0}),
                    Catch::Contains("0 launches or 0 rounds measure nothing"));
}

TEST_CASE("the median of an even number of rounds is between the middle ones") {
  Benchmark result;
  result.microseconds = {4, 1, 2, 8};
  CHECK(result.median() == 3);
}
