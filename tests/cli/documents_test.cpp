// tests/cli/documents_test.cpp - the manual page and the completions of shells
#include <catch2/catch.hpp>

#include "help.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

bool has_program(const std::string& name) {
  return run_program({"/bin/sh", "-c", "command -v " + name}).exit_code == 0;
}

std::string without_backslashes(std::string text) {
  std::erase(text, '\\');
  return text;
}

}  // namespace

TEST_CASE("the manual page holds every command, option and variable") {
  const auto result = ptxgen_program({"manual"});
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.starts_with(".TH PTXGEN 1 "));
  const std::string page = without_backslashes(result.out);
  const std::vector<std::string> names = commands();
  CHECK(names.size() >= 15);
  for (const std::string& command : names) {
    const auto at = page.find("\n.SS " + command + "\n");
    INFO(command);
    REQUIRE(at != std::string::npos);
    const std::string section = page.substr(at, page.find("\n.SS ", at + 1) - at);
    const std::string help = ptxgen_program({command, "--help"}).out;
    for (const std::string& option : matches(help, "\n  (?:-[a-z],)?(--[a-z-]+)")) {
      INFO(option);
      CHECK(contains(section, "fB" + option + "fR"));
    }
  }
  CHECK(contains(page, "\n.SH EXIT STATUS\n"));
  CHECK(contains(page, "fBPTXGEN_EMULATED_GPUfR"));
}

TEST_CASE("the manual page is roff without mistakes") {
  if (!has_program("groff")) return skip("groff is not here");
  const TemporaryDirectory folder;
  REQUIRE(ptxgen_program({"manual", "-o", folder.file("ptxgen.1")}).exit_code == 0);
  const auto result =
      run_program({"/bin/sh", "-c", "groff -man -ww -Tascii -P-c " + folder.file("ptxgen.1")});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(contains(result.out, "ptxgen - build, check, run and study GPU kernels as PTX"));
}

TEST_CASE("bash completes commands, options and files") {
  if (!has_program("bash")) return skip("bash is not here");
  const TemporaryDirectory folder;
  const std::string script = folder.file("ptxgen.bash");
  REQUIRE(ptxgen_program({"completion", "bash", "-o", script}).exit_code == 0);
  write_file(folder.file("kernel.ptx"), "");
  const auto completed = [&](const std::string& words, int index) {
    const auto result = run_program(
        {"/bin/sh", "-c",
         "cd " + folder.path() + " && bash -c '. " + script + "; COMP_WORDS=(" + words +
             "); COMP_CWORD=" + std::to_string(index) + "; _ptxgen; echo ${COMPREPLY[@]}'"});
    INFO(result.err);
    CHECK(result.exit_code == 0);
    return result.out;
  };
  CHECK(completed("ptxgen che", 1) == "check\n");
  CHECK(completed("ptxgen --ver", 1) == "--version\n");
  CHECK(completed("ptxgen run --gri", 2) == "--grid\n");
  CHECK(completed("ptxgen run ker", 2) == "kernel.ptx\n");
  CHECK(completed("ptxgen check --json kernel.ptx --str", 4) == "--strict\n");
  std::string all;
  for (const std::string& command : commands()) all += (all.empty() ? "" : " ") + command;
  CHECK(completed("ptxgen \"\"", 1).starts_with(all));
}

TEST_CASE("zsh and fish know every command too") {
  for (const std::string shell : {"zsh", "fish"}) {
    const TemporaryDirectory folder;
    const std::string script = folder.file("script");
    REQUIRE(ptxgen_program({"completion", shell, "-o", script}).exit_code == 0);
    const std::string text = read_file(script);
    for (const std::string& command : commands()) {
      INFO(shell << ": " << command);
      CHECK(
          contains(text, shell == "zsh" ? "\n    " + command + ")\n" : " -a " + command + " -d "));
    }
    if (!has_program(shell)) {
      skip_part(shell + " is not here: its syntax is not checked");
      continue;
    }
    const auto result = run_program({"/bin/sh", "-c", shell + " -n " + script});
    INFO(result.err);
    CHECK(result.exit_code == 0);
  }
  const auto result = ptxgen_program({"completion", "tcsh"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "no completion for the shell 'tcsh'; expects bash, zsh or fish"));
}
