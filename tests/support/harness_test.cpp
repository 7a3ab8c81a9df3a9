// tests/support/harness_test.cpp - seed and counts of the test harness
#include "support/harness.hpp"

#include <catch2/catch.hpp>

#include <ptxgen/version.hpp>

#include <string>

using namespace ptxgen;

TEST_CASE("counts follow PTXGEN_TEST_FULL") {
  CHECK(test::count(10, 1000) == (test::full() ? 1000 : 10));
}

TEST_CASE("the version text agrees with the version numbers") {
  CHECK(std::string(kVersion) == std::to_string(kVersionMajor) + "." +
                                     std::to_string(kVersionMinor) + "." +
                                     std::to_string(kVersionPatch));
}
