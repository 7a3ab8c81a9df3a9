// tests/cli/numbers_test.cpp - numbers of options, and inputs that are no files
#include <unistd.h>

#include <catch2/catch.hpp>

#include "help.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

TEST_CASE("every option with a whole number refuses what is none, with its range") {
  std::size_t tried = 0;
  for (const std::string& command : commands()) {
    const std::string help = ptxgen_program({command, "--help"}).out;
    for (const std::string& option : matches(help, "(--[a-z-]+) UINT")) {
      ++tried;
      for (const std::string value :
           {"-1", "18446744073709551616", "1.5", "0x10", "seven", "2^64", "1e3"}) {
        const auto result = ptxgen_program({command, option, value});
        INFO(command << ' ' << option << ' ' << value << '\n' << result.err);
        CHECK(result.exit_code == 2);
        CHECK(result.err.starts_with("ptxgen: " + option + " " + value +
                                     ": expects a whole number in "));
      }
    }
  }
  CHECK(tried >= 9);
}

TEST_CASE("a device, a folder and an endless pipe are refused as inputs") {
  const TemporaryDirectory folder;
  const auto refused = [](const std::vector<std::string>& call, std::string_view message) {
    const auto result = ptxgen_program(call);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, message));
  };
  for (const char* command : {"fmt", "check", "opt"}) {
    refused({command, "/dev/zero"},
            "/dev/zero: error: cannot read the file: it is a device; name a regular file or a "
            "pipe [read]");
    refused({command, folder.path()}, "cannot read the file: Is a directory");
  }
  const std::string ptx = folder.file("k.ptx");
  write_file(ptx,
             ".version 7.8\n.target sm_89\n.address_size 64\n"
             ".visible .entry k(.param .u64 p) { ret; }\n");
  refused({"run", ptx, "--grid", "1", "--block", "1", "--arg", "in:/dev/zero"},
          "/dev/zero: error: cannot read the file: it is a device");
  refused({"run", ptx, "--grid", "1", "--block", "1", "--suppressions", "/dev/zero"},
          "cannot read the file: it is a device");
}

TEST_CASE("inputs larger than can be are refused before they are read") {
  const TemporaryDirectory folder;
  const std::string ptx = folder.file("k.ptx");
  write_file(ptx,
             ".version 7.8\n.target sm_89\n.address_size 64\n"
             ".visible .entry k(.param .u64 p) { ret; }\n");
  // Files with holes, which take no space.
  const auto sparse = [&](const char* name, off_t bytes) {
    const std::string file = folder.file(name);
    write_file(file, "");
    REQUIRE(::truncate(file.c_str(), bytes) == 0);
    return file;
  };
  const std::string text = sparse("huge.ptx", (off_t{1} << 30) + 1);
  auto result = ptxgen_program({"check", text});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "it has 1073741825 bytes; at most 1073741824 bytes are read"));
  const std::string data = sparse("huge.bin", off_t{200} << 30);
  result = ptxgen_program(
      {"run", ptx, "--grid", "1", "--block", "1", "--gpu", "rtx4090", "--arg", "in:" + data});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "it has 214748364800 bytes; at most "));
}

TEST_CASE("PTX may come through a pipe with a name") {
  const TemporaryDirectory folder;
  const auto result = run_program({"/bin/sh", "-c",
                                   "mkfifo " + folder.file("pipe") + " && (" + PTXGEN_PROGRAM +
                                       " dump vadd > " + folder.file("pipe") + " & " +
                                       PTXGEN_PROGRAM + " fmt " + folder.file("pipe") + ")"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out, ".entry vadd("));
}
