// tests/runtime/subprocess_test.cpp - running programs, temporary folders, excerpts
#include "support/subprocess.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <thread>

#include "ptxgen/support/error.hpp"
#include "support/excerpt.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;

namespace {

SubprocessResult shell(const std::string& script, const SubprocessOptions& options = {}) {
  return run_program({"/bin/sh", "-c", script}, options);
}

}  // namespace

TEST_CASE("a program's output and exit code come back", "[subprocess]") {
  const SubprocessResult result = shell("echo out; echo err >&2; exit 3");
  CHECK(result.out == "out\n");
  CHECK(result.err == "err\n");
  CHECK(result.exit_code == 3);
  CHECK(result.signal == 0);
  CHECK_FALSE(result.timed_out);
}

TEST_CASE("arguments reach a program unchanged, without a shell", "[subprocess]") {
  const SubprocessResult result =
      run_program({"/bin/sh", "-c", "printf '%s|' \"$@\"", "sh", "a b", "$HOME", "", "`x`"});
  CHECK(result.out == "a b|$HOME||`x`|");
}

TEST_CASE("large output on both streams is complete", "[subprocess]") {
  // Far more than a pipe holds, on both at once: a reader of one after the other would hang.
  const SubprocessResult result = shell(
      "head -c 3000000 /dev/zero | tr '\\0' a & head -c 2000000 /dev/zero | tr '\\0' b >&2; wait");
  CHECK(result.exit_code == 0);
  CHECK(result.out == std::string(3000000, 'a'));
  CHECK(result.err == std::string(2000000, 'b'));
}

TEST_CASE("stdin is empty and the working folder is chosen", "[subprocess]") {
  const TemporaryDirectory folder;
  const SubprocessResult result = shell("cat; pwd -P", {folder.path(), std::chrono::seconds(20)});
  CHECK(result.out == std::filesystem::canonical(folder.path()).string() + "\n");
}

TEST_CASE("a program that takes too long is killed with its children", "[subprocess]") {
  const auto begin = std::chrono::steady_clock::now();
  // The child in the background holds the pipes; waiting for their end alone would take 60 s.
  const SubprocessResult result =
      shell("echo begun; sleep 60 & sleep 60", {{}, std::chrono::milliseconds(200)});
  CHECK(result.timed_out);
  CHECK(result.signal == SIGKILL);
  CHECK(result.exit_code == -1);
  CHECK(result.out == "begun\n");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}

TEST_CASE("what a killed program has started ends with it", "[subprocess]") {
  const TemporaryDirectory folder;
  const SubprocessResult result = shell("(sleep 1; echo late > late) & sleep 60",
                                        {folder.path(), std::chrono::milliseconds(200)});
  CHECK(result.timed_out);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  CHECK_FALSE(std::filesystem::exists(folder.file("late")));
}

TEST_CASE("a program that closes its output and lingers is timed too", "[subprocess]") {
  const SubprocessResult result =
      shell("exec >&- 2>&-; sleep 60", {{}, std::chrono::milliseconds(200)});
  CHECK(result.timed_out);
}

TEST_CASE("the end of a program is not delayed by what it left running", "[subprocess]") {
  const auto begin = std::chrono::steady_clock::now();
  const SubprocessResult result = shell("sleep 15 & echo done");
  CHECK(result.out == "done\n");
  CHECK(result.exit_code == 0);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

TEST_CASE("a signal that ends a program is reported", "[subprocess]") {
  const SubprocessResult result = shell("kill -SEGV $$");
  CHECK(result.signal == SIGSEGV);
  CHECK(result.exit_code == -1);
}

TEST_CASE("a program that is not there is an error that names it", "[subprocess]") {
  try {
    (void)run_program({"/nowhere/ptxas", "-v"});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Io);
    CHECK(error.code == "not-found");
    CHECK(error.message == "cannot run /nowhere/ptxas: could not start: No such file or directory");
  }
  try {
    (void)run_program({"/etc/passwd"});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code == "spawn");
  }
  CHECK_THROWS_AS(run_program({}), Error);
}

TEST_CASE("programs may run from several threads", "[subprocess]") {
  std::vector<std::string> outputs(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    threads.emplace_back([&outputs, i] { outputs[i] = shell("echo " + std::to_string(i)).out; });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < outputs.size(); ++i) CHECK(outputs[i] == std::to_string(i) + "\n");
}

TEST_CASE("a temporary folder is private and goes away with its content", "[temporary]") {
  std::string path;
  {
    const TemporaryDirectory folder;
    path = folder.path();
    write_file(folder.file("a"), std::string_view("x\0y", 3));
    CHECK(read_file(folder.file("a")) == std::string("x\0y", 3));
    struct stat facts {};
    REQUIRE(::stat(path.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0700);
    CHECK_THROWS_AS(read_file(folder.file("none")), Error);
  }
  CHECK_FALSE(std::filesystem::exists(path));
  try {
    const TemporaryDirectory nowhere("/nowhere");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code == "no-temporary-folder");
    CHECK(error.message ==
          "cannot make a temporary folder (TMPDIR chooses where): No such file or directory");
  }
}

TEST_CASE("an excerpt shows two lines around the one", "[excerpt]") {
  const std::string text = "one\ntwo\nthree\nfour\nfive\nsix";
  CHECK(excerpt_around(text, 3) == "  1 | one\n  2 | two\n> 3 | three\n  4 | four\n  5 | five");
  CHECK(excerpt_around(text, 6) == "  4 | four\n  5 | five\n> 6 | six");
  CHECK(excerpt_around(text, 1) == "> 1 | one\n  2 | two\n  3 | three");
  CHECK(excerpt_around(text, 0).empty());
  CHECK(excerpt_around(text, 7).empty());
  CHECK(excerpt_around("\n\n\n\n\n\n\n\n\nx", 10) == "   8 | \n   9 | \n> 10 | x");
  CHECK(excerpt_around(std::string(200, 'x'), 1) == "> 1 | " + std::string(160, 'x') + "...");
  CHECK(excerpt_around(text, 0xffffffffU).empty());
}
