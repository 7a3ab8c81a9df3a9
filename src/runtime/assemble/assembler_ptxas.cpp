// src/runtime/assemble/assembler_ptxas.cpp - assembling with the ptxas program
#include "runtime/assemble/assembler_tools.hpp"

#include <chrono>
#include <cstring>
#include <filesystem>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::inline v0 {

PtxasTool::PtxasTool(const Settings& settings)
    : program_(find_program(settings, "ptxas", "PTXGEN_PTXAS_PATH", settings.ptxas_path)),
      temp_dir_(settings.temp_dir) {}

AssemblerFinding PtxasTool::finding() const {
  AssemblerFinding finding;
  finding.tool = AssemblerTool::Ptxas;
  finding.found = !program_.path.empty();
  finding.where = program_.path;
  if (!finding.found) finding.why_not = to_text(program_.attempts);
  return finding;
}

std::string PtxasTool::version() const {
  std::call_once(version_once_, [this] { version_ = cuda_program_version(program_.path); });
  return version_;
}

ToolOutcome PtxasTool::assemble(const std::string& ptx, const AssembleOptions& options) const {
  const TemporaryDirectory folder(temp_dir_);
  write_file(folder.file("input.ptx"), ptx);
  // Bare file names in a working folder keep temporary paths out of logs.
  std::vector<std::string> argv = {program_.path, "-v", "-arch=" + options.target,
                                   format_text("-O{}", options.optimization)};
  if (options.line_info) argv.emplace_back("-lineinfo");
  if (options.max_registers != 0) {
    argv.push_back(format_text("--maxrregcount={}", options.max_registers));
  }
  argv.insert(argv.end(), {"input.ptx", "-o", "output.cubin"});
  // A relative program path would be resolved in that working folder.
  argv[0] = std::filesystem::absolute(argv[0]).string();
  SubprocessOptions how;
  how.folder = folder.path();
  how.timeout = std::chrono::milliseconds(options.timeout_ms);
  SubprocessResult run = run_program(argv, how);

  ToolOutcome outcome;
  outcome.log = run.err + run.out;
  outcome.status = run.signal != 0 ? run.signal : run.exit_code;
  if (run.timed_out) {
    outcome.verdict = ToolVerdict::TimedOut;
  } else if (run.signal != 0) {
    outcome.reason = format_text("ended by signal {}", run.signal);
  } else if (run.exit_code == 0) {
    const std::string cubin = read_file(folder.file("output.cubin"));
    outcome.cubin.resize(cubin.size());
    std::memcpy(outcome.cubin.data(), cubin.data(), cubin.size());
    outcome.verdict = ToolVerdict::Accepted;
  } else if (outcome.log.find("option 'gpu-name'") != std::string::npos) {
    outcome.verdict = ToolVerdict::UnknownTarget;
  } else {
    outcome.verdict =
        first_error(outcome.log).text.empty() ? ToolVerdict::Failed : ToolVerdict::Rejected;
    outcome.reason = format_text("exit status {}", run.exit_code);
  }
  return outcome;
}

}  // namespace ptxgen::inline v0
