// tests/ptx/foreign_test.cpp - PTX of other producers: read, judged, printed, assembled
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/cubin.hpp"
#include "support/harness.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> texts_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// What was found in a set of texts; filled from several threads.
struct Report {
  std::mutex lock;
  std::map<std::string, int> unknown;  // opcodes outside the table
  std::vector<std::string> wrong;
  std::size_t texts = 0;
  std::size_t bytes = 0;
  std::size_t instructions = 0;
  std::size_t assembled = 0;
  std::size_t code = 0;

  void fault(const std::string& file, const std::string& what) {
    const std::lock_guard guard(lock);
    wrong.push_back(file + ": " + what);
  }
};

std::string first_word(std::string_view text) {
  return std::string(text.substr(0, text.find_first_of(" \t\n{[;")));
}

// Reads, judges and prints a text; the printed text, or empty if it cannot be read.
std::string read_and_print(const std::string& file, const std::string& text, Report& report) {
  try {
    const Module module = parse(text, file);
    const std::string printed = print(module);
    const Module back = parse(printed, file);
    if (const std::string found = difference(module, back); !found.empty())
      report.fault(file, found);
    if (print(back) != printed) report.fault(file, "prints differently the second time");
    for (const Finding& finding : verify(module)) {
      if (finding.severity == Severity::Error) report.fault(file, to_text(finding));
    }
    const std::lock_guard guard(report.lock);
    ++report.texts;
    report.bytes += text.size();
    for (const Function& function : module.functions) {
      for (const Instruction& statement : function.body) {
        if (statement.kind == StatementKind::Instruction) ++report.instructions;
        if (statement.kind != StatementKind::Unknown) continue;
        ++report.unknown[first_word(module.text(statement.text))];
      }
    }
    return printed;
  } catch (const Error& error) {
    report.fault(file, error.what());
    return {};
  }
}

std::string target_of(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with(".target")) continue;
    const std::size_t first = line.find("sm_");
    return line.substr(first, line.find_first_of(", \t/", first) - first);
  }
  return {};
}

// As an object that is to be linked: what the text declares may be defined elsewhere.
std::vector<std::byte> object_code(const std::string& text, const AssembleOptions& options,
                                   const std::string& ptxas) {
  const TemporaryDirectory folder(Settings::from_environment().temp_dir);
  const std::string source = folder.file("a.ptx");
  const std::string object = folder.file("a.o");
  write_file(source, text);
  const SubprocessResult result =
      run_program({ptxas, "-c", "-arch=" + options.target,
                   "-O" + std::to_string(options.optimization), source, "-o", object});
  if (result.exit_code != 0) throw Error(Stage::Assemble, "rejected", result.out + result.err);
  const std::string bytes = read_file(object);
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return {first, first + bytes.size()};
}

std::vector<std::byte> machine_code(const std::string& text, const AssembleOptions& options,
                                    const Assembler& assembler) {
  try {
    return assembler.assemble(text, options).cubin;
  } catch (const Error& error) {
    if (std::string_view(error.what()).find("Undefined reference") == std::string_view::npos) throw;
    for (const AssemblerFinding& tool : assembler.tools()) {
      if (tool.tool == AssemblerTool::Ptxas && tool.found)
        return object_code(text, options, tool.where);
    }
    throw;
  }
}

void assemble_both(const std::string& file, const std::string& text, const std::string& printed,
                   const Assembler& assembler, Report& report) {
  AssembleOptions options;
  options.target = target_of(printed);
  // Debug code cannot be optimised; the other texts only so far as it does not cost minutes.
  options.optimization = text.find(", debug") != std::string::npos ? 0 : 1;
  try {
    const auto expected = machine_code(text, options, assembler);
    const auto actual = machine_code(printed, options, assembler);
    if (const auto comparison = test::same_code(expected, actual); !comparison) {
      report.fault(file, comparison.text);
    }
    const std::lock_guard guard(report.lock);
    ++report.assembled;
    for (const auto& [name, code] : test::text_sections(expected)) report.code += code.size();
  } catch (const Error& error) {
    report.fault(file, error.what());
  }
}

// Each text through everything, on two threads.
void check_texts(const std::vector<fs::path>& files, Report& report) {
  const Assembler assembler(Settings::from_environment());
  const bool assembles = assembler.available();
  if (!assembles)
    test::skip_part("no assembler found: what is printed again is not compared as machine code");
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      const std::string name = files[i].filename().string();
      const std::string text = contents(files[i]);
      const std::string printed = read_and_print(name, text, report);
      // No assembler of today takes 32-bit addresses.
      if (printed.empty() || !assembles || name == "ptx_32bit.ptx") continue;
      assemble_both(name, text, printed, assembler, report);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

// The groups of instructions that the op table leaves out, by their mnemonics.
bool left_out_on_purpose(const std::string& opcode) {
  for (const std::string_view start : {"tex",     "tld4",     "txq",
                                       "suld",    "sust",     "sured",
                                       "suq",     "istypep",  "wgmma.mma_async.sp",
                                       "tcgen05", "vadd",     "vsub",
                                       "vmad",    "vabsdiff", "vmin",
                                       "vmax",    "vshl",     "vshr",
                                       "vset",    "multimem"}) {
    if (opcode.starts_with(start)) return true;
  }
  return false;
}

void conclude(Report& report) {
  std::cout << report.texts << " texts, " << report.bytes << " bytes, " << report.instructions
            << " instructions of the table; " << report.assembled << " assembled to the same "
            << report.code << " bytes of code\n";
  std::string missing;
  for (const auto& [opcode, count] : report.unknown) {
    std::cout << "  not in the table: " << opcode << " x" << count << "\n";
    if (!left_out_on_purpose(opcode)) missing += " " + opcode;
  }
  INFO("rows that should be there:" << missing);
  CHECK(missing.empty());
  std::sort(report.wrong.begin(), report.wrong.end());
  std::string all;
  for (std::size_t i = 0; i < report.wrong.size() && i < 25; ++i) all += report.wrong[i] + "\n";
  INFO(report.wrong.size() << " things wrong:\n" << all);
  CHECK(report.wrong.empty());
}

void check_folder(const fs::path& folder, std::size_t at_least) {
  Report report;
  check_texts(texts_in(folder), report);
  conclude(report);
  CHECK(report.texts >= at_least);
}

// What nvcc prints in this run for the corpus.
void check_generated(const std::vector<std::string>& options, std::size_t at_least) {
  const TemporaryDirectory out(Settings::from_environment().temp_dir);
  std::vector<std::string> call{PYTHON, CORPUS_FOLDER "/generate", out.path()};
  call.insert(call.end(), options.begin(), options.end());
  SubprocessOptions limits;
  limits.timeout = std::chrono::minutes(20);
  const SubprocessResult result = run_program(call, limits);
  if (result.out.starts_with("SKIP"))
    return test::skip("nvcc is not on PATH: no PTX of this run's compiler");
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  check_folder(out.path(), at_least);
}

}  // namespace

TEST_CASE("stored PTX of nvcc is read, found legal, and printed to the same code") {
  check_folder(CORPUS_FOLDER "/stored", 15);
}

TEST_CASE("PTX of other producers is read, found legal, and printed to the same code") {
  check_folder(CORPUS_FOLDER "/foreign", 11);
}

TEST_CASE("what nvcc prints now is read, found legal, and printed to the same code") {
  if (test::full()) {
    check_generated({}, 51);
  } else {
    // nvcc takes seconds for a file; the stored texts are of all of them.
    check_generated({"--targets", "sm_90", "--files",
                     "atomics.cu,hopper.cu,memory_ops.cu,shared_memory.cu,tensor_core.cu,warp.cu"},
                    6);
  }
}

TEST_CASE("what nvcc prints now with line tables, for debuggers and without optimisation") {
  if (test::full()) {
    check_generated(
        {"--targets", "sm_75,sm_80,sm_89,sm_90", "--variants", "lineinfo,debug,O0,jumptable"}, 272);
  } else {
    check_generated({"--targets", "sm_80", "--variants", "lineinfo,debug,O0,jumptable", "--files",
                     "control_flow.cu,calls.cu"},
                    8);
  }
}
