// tests/support/harness_probe.cpp - cases whose outcomes the harness must tell apart
#include "support/harness.hpp"

#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include <cstdint>
#include <iostream>

using namespace ptxgen;

TEST_CASE("passes") { CHECK(1 + 1 == 2); }
TEST_CASE("fails") { CHECK(1 + 1 == 3); }
TEST_CASE("skips") { return test::skip("nothing to run it on"); }
TEST_CASE("skips, [then] fails") {
  test::skip("this must not hide the failure");
  CHECK(1 + 1 == 3);
}
TEST_CASE("skips a part") {
  test::skip_part("the second half");
  CHECK(1 + 1 == 2);
}
TEST_CASE("checks nothing") {}
TEST_CASE("succeeds without a comparison") { SUCCEED("every device was asked"); }
TEST_CASE("skips its only part") { test::skip_part("the only part"); }
TEST_CASE("draws") {
  std::uint64_t sum = 0;
  rc::prop("random numbers", [&sum](std::uint32_t value) {
    sum += value;
    RC_ASSERT(sum >= value);
  });
  std::cout << "drew " << sum << "\n";
}
