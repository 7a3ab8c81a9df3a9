// tests/support/error_test.cpp - the text of ptxgen::Error
#include <catch2/catch.hpp>

#include <ptxgen/support/error.hpp>

#include <string>

using namespace ptxgen;

TEST_CASE("an error with nothing but its message") {
  const Error error(Stage::Io, "not-found", "no file 'a.ptx'");
  CHECK(std::string(error.what()) == "error: no file 'a.ptx' [not-found]\n  stage io");
}

TEST_CASE("an error with everything set") {
  Error error(Stage::Assemble, "target-lacks", "cp.async needs sm_80 or later");
  error.file = "k.ptx";
  error.line = 12;
  error.column = 3;
  error.excerpt = "11: mov.u32 %r1, 0;\n12: cp.async.wait_all;";
  error.kernel = "k";
  error.target = "sm_75, PTX 7.0";
  error.site = {"user.cpp", 40, 1};
  error.driver_status = 218;
  error.log = "ptxas fatal\nand more";
  error.causes.emplace_back(Stage::Device, "busy", "unload failed");
  CHECK(error.refresh().what() ==
        std::string(R"(k.ptx:12:3: error: cp.async needs sm_80 or later [target-lacks]
  11: mov.u32 %r1, 0;
  12: cp.async.wait_all;
  stage assemble, kernel k, target sm_75, PTX 7.0, status 218
  built at user.cpp:40
  log:
  ptxas fatal
  and more
  also:
  error: unload failed [busy]
    stage device)"));
}

TEST_CASE("stages have stable names") {
  CHECK(to_string(Stage::Build) == "build");
  CHECK(to_string(Stage::Verify) == "verify");
  CHECK(to_string(Stage::Optimize) == "optimize");
  CHECK(to_string(Stage::Assemble) == "assemble");
  CHECK(to_string(Stage::Load) == "load");
  CHECK(to_string(Stage::Launch) == "launch");
  CHECK(to_string(Stage::Cache) == "cache");
  CHECK(to_string(Stage::Emulate) == "emulate");
  CHECK(to_string(Stage::Device) == "device");
  CHECK(to_string(Stage::Io) == "io");
}
