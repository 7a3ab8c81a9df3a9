// tests/support/harness_test.cpp - seed and counts of the test harness
#include "support/harness.hpp"

#include <catch2/catch.hpp>

#include <ptxgen/version.hpp>

#include <string>

using namespace ptxgen;

TEST_CASE("counts follow PTXGEN_TEST_FULL") {
  CHECK(test::count(10, 1000) == (test::full() ? 1000 : test::kSanitized ? 2 : 10));
  CHECK(test::count(1, 1000) == (test::full() ? 1000 : 1));
}

TEST_CASE("a sample takes one case in each period, a full run all") {
  int taken = 0;
  for (std::uint64_t i = 0; i < 60; ++i) taken += test::takes(i, 3, 10) ? 1 : 0;
  CHECK(taken == (test::full() ? 60 : test::kSanitized ? 6 : 20));
}

TEST_CASE("the version text agrees with the version numbers") {
  CHECK(std::string(kVersion) == std::to_string(kVersionMajor) + "." +
                                     std::to_string(kVersionMinor) + "." +
                                     std::to_string(kVersionPatch));
}
