// tests/functional/gemv_shapes_test.cpp - GEMV over shapes: D6, D10, odd, prime, one
#include <catch2/catch.hpp>

#include "functional/gemv_cases.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::functional;

namespace {

// How many elements of a matrix an everyday run spends on one shape.
std::uint64_t max_elements(const Place& place) {
  if (test::full()) return std::uint64_t{1} << 32;
  return place.emulated() ? 1u << 17 : 1u << 22;
}

}  // namespace

TEST_CASE("shapes from 1 to 9000: ones, tile edges, odd, prime") {
  constexpr std::uint32_t kSizes[] = {1,   2,   3,   7,   31,  32,   33,   127,  128,
                                      255, 256, 257, 509, 511, 1021, 4096, 8191, 9000};
  on_every_place([&](Place& place) {
    std::size_t shapes = 0;
    std::uint64_t seed = 100;
    for (const std::uint32_t k : kSizes) {
      for (const std::uint32_t n : kSizes) {
        ++seed;
        if (std::uint64_t{k} * n > max_elements(place)) continue;
        check_everywhere(place, random_problem({k, n}, seed));
        ++shapes;
      }
    }
    CHECK(shapes >= 100);
  });
}

TEST_CASE("buffers of exactly the sizes needed are never left") {
  on_every_place([](Place& place) {
    for (const Shape shape : {Shape{1, 1}, {1, 257}, {257, 1}, {255, 33}, {513, 300}, {63, 127}}) {
      const Problem problem = random_problem(shape, shape.k * 1000 + shape.n);
      for (const GemvChoice choice : choices(place)) {
        INFO("gemv " << to_string(choice));
        check_gemv(problem, run_exact(place, place.with_gemv(choice), problem),
                   roundings(choice, shape));
      }
    }
  });
}

TEST_CASE("k = 0 gives zeros and needs neither matrix nor vector") {
  on_every_place([](Place& place) {
    for (const GemvChoice choice : choices(place)) {
      INFO("gemv " << to_string(choice));
      const Launcher launcher = place.with_gemv(choice);
      std::vector<float> y(300, 1.0f);
      const Buffer<f32> out(place.context, y);
      launcher.gemv(out, {}, {}, 0, 300, place.stream);
      place.stream.synchronize();
      out.read(y);
      CHECK(y == std::vector<float>(300, 0.0f));
    }
  });
}

TEST_CASE("D6: 4096 x 4096 is within the error bound") {
  on_every_place([](Place& place) {
    check_everywhere(place, random_problem({4096, 4096}, 6, -1, 1));
  });
}

TEST_CASE("9000 x 9000") {
  on_every_place([](Place& place) {
    if (place.emulated() && !test::full()) {
      return test::skip_part("9000 x 9000 on the emulator is left to full runs");
    }
    check_everywhere(place, random_problem({9000, 9000}, 61, -1, 1));
  });
}

TEST_CASE("D10: a hundred random matrices are within the error bound") {
  on_every_place([](Place& place) {
    Numbers numbers(test::seed());
    for (int i = 0; i < test::count(100, 300); ++i) {
      // Long and thin ones too; most are no multiples of 4, 32 or 256.
      const Shape shape{numbers.integer(1, i % 4 == 0 ? 9000u : 400u),
                        numbers.integer(1, i % 4 == 1   ? 9000u
                                           : i % 4 == 0 ? 20u
                                                        : 400u)};
      if (std::uint64_t{shape.k} * shape.n > 4 * max_elements(place)) continue;
      INFO("matrix " << i << ", seed " << test::seed());
      check_everywhere(place, random_problem(shape, numbers.bits(), -3, 3));
    }
  });
}
