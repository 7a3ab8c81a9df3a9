// tests/emulator/defects_cuda_test.cpp - defects in CUDA C++, as nvcc compiles them
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "emulator/defect_corpus.hpp"
#include "support/harness.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// Which line of the main source file each line of the PTX comes from, 0 if unknown. Code of inlined
// functions belongs to the line of the outermost call.
std::vector<std::uint32_t> source_lines(std::string_view ptx) {
  std::vector<std::uint32_t> lines{0};
  std::uint32_t current = 0;
  while (!ptx.empty()) {
    const std::string_view line = ptx.substr(0, ptx.find('\n'));
    ptx.remove_prefix(std::min(ptx.size(), line.size() + 1));
    if (line.find(".entry ") != std::string_view::npos ||
        line.find(".func ") != std::string_view::npos) {
      current = 0;
    }
    const std::size_t loc = line.find(".loc");
    if (loc != std::string_view::npos && line.find_first_not_of(" \t") == loc) {
      const std::size_t inlined = line.find("inlined_at ");
      const std::string place(inlined == std::string_view::npos ? line.substr(loc + 4)
                                                                : line.substr(inlined + 10));
      unsigned file = 0;
      unsigned number = 0;
      // Other files than the first are headers; what was inlined from them keeps the caller's line.
      if (std::sscanf(place.c_str(), "%u %u", &file, &number) == 2 && file == 1 && number != 0) {
        current = number;
      }
    }
    lines.push_back(current);
  }
  return lines;
}

// The program's path, or empty: run_program does not search.
std::string nvcc() {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    const std::filesystem::path program = std::filesystem::path(folder) / "nvcc";
    if (std::filesystem::is_regular_file(program)) return program.string();
  }
  return {};
}

struct Mode {
  std::string_view name;
  std::vector<std::string> options;
};

}  // namespace

TEST_CASE("defects are found in what nvcc compiles") {
  const std::string compiler = nvcc();
  if (compiler.empty()) return skip("nvcc is not on PATH: no PTX of this run's compiler");
  const TemporaryDirectory folder;
  std::vector<Mode> modes = {{"default", {"-lineinfo"}}};
  if (full()) {
    modes.push_back({"-O0", {"-lineinfo", "-Xcicc", "-O0"}});
    modes.push_back({"-G", {"-G"}});
  }
  const std::vector<std::string> targets = full()
                                               ? std::vector<std::string>{"sm_75", "sm_80", "sm_90"}
                                               : std::vector<std::string>{"sm_80"};
  const std::vector<DefectCase> cases = read_cases(DEFECTS_FOLDER "/cuda", ".cu");
  CHECK(cases.size() >= 16);
  std::size_t number = 0;
  for (const DefectCase& test : cases) {
    if (!takes(number++, 2, 4)) continue;
    for (const Mode& mode : modes) {
      for (const std::string& target : targets) {
        const std::string output = folder.file("kernel.ptx");
        std::vector<std::string> command = {compiler, "-ptx", "-arch=" + target, "-o", output};
        command.insert(command.end(), mode.options.begin(), mode.options.end());
        command.push_back(std::string(DEFECTS_FOLDER "/cuda/") + test.name + ".cu");
        INFO(test.name << ", " << target << ", " << mode.name);
        const SubprocessResult compiled = run_program(command);
        INFO(compiled.err);
        REQUIRE(compiled.exit_code == 0);
        const std::string ptx = read_file(output);
        const std::vector<std::uint32_t> lines = source_lines(ptx);
        CHECK(complaints(test, ptx, 20, &lines) == "");
      }
    }
  }
}
