// tests/support/count_test.cpp - counts with their nouns
#include "support/count.hpp"

#include <catch2/catch.hpp>

using namespace ptxgen;

TEST_CASE("a count of one has the noun alone, every other count its plural") {
  CHECK(count_text(1, "error") == "1 error");
  CHECK(count_text(0, "error") == "0 errors");
  CHECK(count_text(21, "error") == "21 errors");
  CHECK(count_text(2, "shared access") == "2 shared accesses");
  CHECK(count_verb(1, "is", "are") == "is");
  CHECK(count_verb(0, "is", "are") == "are");
}

TEST_CASE("plurals follow the noun's ending") {
  CHECK(plural_of("entry") == "entries");
  CHECK(plural_of("way") == "ways");
  CHECK(plural_of("branch") == "branches");
  CHECK(plural_of("pass") == "passes");
  CHECK(plural_of("box") == "boxes");
  CHECK(plural_of("flash") == "flashes");
  CHECK(plural_of("instruction") == "instructions");
}
