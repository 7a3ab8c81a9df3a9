// tests/gemv_bench/statistics_test.cpp - medians and intervals with known values
#include "bench/gemv/statistics.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::gemv_bench;

namespace {

std::vector<double> one_to(std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

}  // namespace

TEST_CASE("the interval of the median has the order statistics of the tables") {
  const auto check = [](std::size_t n, std::size_t first, std::size_t last, double coverage) {
    INFO(n);
    const MedianInterval interval = median_interval(n);
    CHECK(interval.first == first);
    CHECK(interval.last == last);
    CHECK(interval.coverage == Approx(coverage).margin(5e-5));
  };
  check(200, 86, 115, 0.9600);
  check(100, 40, 61, 0.9648);
  check(50, 18, 33, 0.9672);
  check(20, 6, 15, 0.9586);
  check(10, 2, 9, 0.9785);
  check(6, 1, 6, 0.96875);
  // Too few for 95 %: the range, and what it covers.
  check(5, 1, 5, 0.9375);
  check(2, 1, 2, 0.5);
  check(1, 1, 1, 0);
  check(0, 0, 0, 0);
  // Far beyond where 2^-n is 0: first = n/2 - 0.98 sqrt(n) or so.
  const MedianInterval many = median_interval(1'000'000);
  CHECK(many.first == 499'020);
  CHECK(many.first + many.last == 1'000'001);
  CHECK(many.coverage >= 0.95);
  CHECK(many.coverage < 0.9502);
}

TEST_CASE("statistics of samples in any order") {
  std::vector<double> samples = one_to(200);
  std::mt19937_64 random(test::seed());
  std::shuffle(samples.begin(), samples.end(), random);
  const Statistics found = statistics_of(samples);
  CHECK(found.n == 200);
  CHECK(found.median == 100.5);
  CHECK(found.low == 86);
  CHECK(found.high == 115);
  CHECK(found.p5 == 10);
  CHECK(found.p95 == 190);
  CHECK(found.min == 1);
  CHECK(found.max == 200);

  const Statistics odd = statistics_of(one_to(7));
  CHECK(odd.median == 4);
  CHECK(odd.low == 1);
  CHECK(odd.high == 7);
  CHECK(odd.p5 == 1);
  CHECK(odd.p95 == 7);

  const Statistics one = statistics_of(std::vector<double>{3.5});
  CHECK(one.median == 3.5);
  CHECK(one.p5 == 3.5);
  CHECK(one.p95 == 3.5);
  CHECK(one.coverage == 0);
  CHECK(statistics_of({}).n == 0);
}

TEST_CASE("the interval covers the median as often as it says") {
  // Exponential: skewed, so that an interval around a mean would not.
  std::mt19937_64 random(test::seed());
  std::exponential_distribution<double> wait(1.0);
  const double median = 0.6931471805599453;
  int covered = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> samples(50);
    for (double& sample : samples) sample = wait(random);
    const Statistics found = statistics_of(samples);
    covered += found.low <= median && median <= found.high ? 1 : 0;
  }
  // 96.72 % of 2000 with a standard deviation of 8.
  CHECK(covered > 1934 - 40);
  CHECK(covered < 1934 + 40);
}
