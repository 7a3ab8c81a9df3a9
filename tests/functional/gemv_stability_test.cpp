// tests/functional/gemv_stability_test.cpp - GEMV again and again: F1 to F4
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <limits>

#include "functional/gemv_cases.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::functional;

namespace {

bool same_bits(const std::vector<float>& left, const std::vector<float>& right) {
  return std::ranges::equal(left, right, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

// Device memory for one shape, filled anew for each problem.
struct Memory {
  Memory(const Place& place, Shape shape)
      : y(place.context, shape.n),
        a(place.context, std::uint64_t{shape.k} * shape.n),
        x(place.context, shape.k) {}
  void write(const Problem& problem) {
    const std::vector<float> nans(y.size(), std::numeric_limits<float>::quiet_NaN());
    y.write(nans);
    a.write(problem.a);
    x.write(problem.x);
  }
  [[nodiscard]] std::vector<float> result() const {
    std::vector<float> values(y.size());
    y.read(values);
    return values;
  }
  Buffer<f32> y, a, x;
};

}  // namespace

TEST_CASE("F1: the same input gives the same bits a thousand times") {
  on_every_place([](Place& place) {
    const Problem problem = random_problem({300, 40}, 21);
    for (const GemvChoice choice : choices(place)) {
      INFO("gemv " << to_string(choice));
      const Launcher launcher = place.with_gemv(choice);
      Memory memory(place, problem.shape);
      memory.write(problem);
      std::vector<float> first;
      std::size_t different = 0;
      for (int i = 0; i < 1000; ++i) {
        memory.y.fill_bytes(0xff, &place.stream);
        launcher.gemv(memory.y, memory.a, memory.x, 300, 40, place.stream);
        place.stream.synchronize();
        const std::vector<float> y = memory.result();
        if (i == 0) first = y;
        different += !same_bits(y, first);
      }
      CHECK(different == 0);
      check_gemv(problem, first, roundings(choice, problem.shape));
    }
  });
}

TEST_CASE("F2: a sequence of different inputs gives what a fresh launcher gives for each") {
  on_every_place([](Place& place) {
    const std::vector<Shape> shapes = {{300, 70}, {1, 1}, {70, 300}, {300, 70}, {257, 5}, {1, 1}};
    for (const GemvChoice choice : choices(place)) {
      INFO("gemv " << to_string(choice));
      const Launcher used = place.with_gemv(choice);
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        const Problem problem = random_problem(shapes[i], 200 + i);
        const std::vector<float> again = run_guarded(place, used, problem);
        CHECK(same_bits(again, run_guarded(place, place.with_gemv(choice), problem)));
        check_gemv(problem, again, roundings(choice, shapes[i]));
      }
    }
  });
}

TEST_CASE("F3, F4: ten thousand calls are all right and leak no memory") {
  on_every_place([](Place& place) {
    constexpr Shape kShape{33, 9};
    // Eight inputs in turn, so that a result left over from the call before is noticed.
    std::vector<Problem> problems;
    std::vector<std::vector<float>> expected;
    for (std::uint64_t i = 0; i < 8; ++i) {
      problems.push_back(random_problem(kShape, 300 + i));
      expected.push_back(run_guarded(place, place.launcher, problems.back()));
      check_gemv(problems.back(), expected.back(), kShape.k);
    }
    place.context.synchronize();
    const std::uint64_t free_before = place.context.memory().free;
    {
      const Buffer<f32> y(place.context, std::uint64_t{8} * kShape.n);
      std::vector<Memory> memory;
      for (const Problem& problem : problems) {
        memory.emplace_back(place, kShape).write(problem);
      }
      CHECK(place.context.memory().free <= free_before);
      const DeviceSpan<f32> all = y;
      std::vector<float> results(y.size());
      std::size_t wrong = 0;
      // Eight calls, one wait: each result is looked at.
      for (int round = 0; round < 10000 / 8; ++round) {
        for (std::size_t i = 0; i < 8; ++i) {
          place.launcher.gemv(all.subspan(i * kShape.n, kShape.n), memory[i].a, memory[i].x,
                              kShape.k, kShape.n, place.stream);
        }
        place.stream.synchronize();
        y.read(results);
        for (std::size_t i = 0; i < 8; ++i) {
          const auto from = results.begin() + static_cast<std::ptrdiff_t>(i * kShape.n);
          wrong += !same_bits({from, from + kShape.n}, expected[i]);
        }
      }
      CHECK(wrong == 0);
    }
    place.context.synchronize();
    CHECK(place.context.memory().free == free_before);
  });
}
