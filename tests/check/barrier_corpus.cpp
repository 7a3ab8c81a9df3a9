// tests/check/barrier_corpus.cpp - reads and runs kernels with barriers
#include "check/barrier_corpus.hpp"

#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace ptxgen::test {
namespace {

constexpr std::uint32_t kWords = 1024;

/// Everything but what has nothing to do with barriers.
const emulator::RuleSet kChecks = [] {
  emulator::RuleSet rules = emulator::RuleSet::all();
  rules.remove(emulator::RuleSet::parse(
      "out-of-bounds,misaligned,uninitialized-read,write-to-readonly,shared-race,global-race,"
      "scope-too-narrow,nondeterminism,race-same-value,exited-lane-in-mask,division-by-zero"));
  return rules;
}();

std::string trimmed(std::string text) {
  while (!text.empty() && text.front() == ' ') text.erase(0, 1);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

BarrierCase read_head(const std::string& line) {
  BarrierCase result;
  const std::size_t colon = line.find(':');
  result.name = trimmed(line.substr(5, colon - 5));
  std::istringstream parts(line.substr(colon + 1));
  std::string part;
  while (std::getline(parts, part, ',')) {
    std::istringstream words(trimmed(part));
    std::string word;
    words >> word;
    if (word == "error") {
      result.verdict = BarrierCase::Verdict::Error;
    } else if (word == "exits") {
      result.verdict = BarrierCase::Verdict::Exits;
    } else if (word == "leaves") {
      result.run = BarrierCase::Run::Leaves;
    } else if (word == "warning") {
      result.verdict = BarrierCase::Verdict::Warning;
    } else if (word == "clean") {
      result.verdict = BarrierCase::Verdict::Clean;
    } else if (word == "fails") {
      result.run = BarrierCase::Run::Fails;
    } else if (word == "passes") {
      result.run = BarrierCase::Run::Passes;
    } else if (word == "cannot") {
      result.run = BarrierCase::Run::CannotRun;
    } else if (word == "block") {
      for (std::uint32_t& extent : result.block) words >> extent;
      for (std::uint32_t& extent : result.block) extent = extent == 0 ? 1 : extent;
    } else if (word == "n") {
      words >> result.n;
    } else if (word == "shape") {
      words >> word;
      result.shape = word == "unknown" ? BarrierCase::Shape::Unknown : BarrierCase::Shape::Required;
    } else {
      throw std::runtime_error(result.name + ": what is '" + word + "'?");
    }
  }
  return result;
}

}  // namespace

std::string barrier_kernel(const std::string& body, const std::string& functions,
                           const std::string& head) {
  return ".version 8.7\n.target sm_90\n.address_size 64\n"
         ".const .u32 table[4] = {1, 2, 3, 4};\n.shared .align 4 .b32 tile[64];\n" +
         functions + ".visible .entry kernel(.param .u32 n, .param .u64 data) " + head +
         "{\n"
         "  .reg .pred %p<40>;\n  .reg .b32 %r<80>, %tx, %n;\n  .reg .b64 %rd<20>, %data;\n"
         "  mov.u32 %tx, %tid.x;\n  ld.param.u32 %n, [n];\n  ld.param.u64 %data, [data];\n" +
         body + "}\n";
}

std::vector<BarrierCase> read_barrier_cases(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  std::vector<BarrierCase> cases;
  std::string line, body, functions;
  bool in_function = false;
  const auto close = [&] {
    if (cases.empty()) return;
    BarrierCase& last = cases.back();
    std::string head;
    if (last.shape == BarrierCase::Shape::Required) {
      head = ".reqntid " + std::to_string(last.block[0]) + ", " + std::to_string(last.block[1]) +
             ", " + std::to_string(last.block[2]) + " ";
    }
    last.ptx = barrier_kernel(body, functions, head);
    body.clear();
    functions.clear();
  };
  while (std::getline(in, line)) {
    if (line.starts_with("#")) continue;
    if (line.starts_with("case ")) {
      close();
      cases.push_back(read_head(line));
      continue;
    }
    in_function = in_function || line.starts_with(".func");
    (in_function ? functions : body) += line + "\n";
    if (line.starts_with("}")) in_function = false;
  }
  close();
  return cases;
}

BarrierProgram::BarrierProgram(const std::string& ptx)
    : device_(emulator::default_gpu("sm_90")), program_(emulator::Program::load(device_, ptx)) {
  std::istringstream lines(ptx);
  std::string line;
  is_warp_sync_.push_back(false);
  while (std::getline(lines, line))
    is_warp_sync_.push_back(line.find("bar.warp.sync") != std::string::npos);
  data_ = device_.allocate(kWords * 4);
  std::vector<std::uint32_t> words(kWords);
  for (std::uint32_t i = 0; i < kWords; ++i) words[i] = i;
  device_.write(data_, std::as_bytes(std::span(words)));
}

BarrierRun BarrierProgram::run(std::array<std::uint32_t, 3> block, std::uint32_t n,
                               std::uint64_t seed) {
  std::vector<std::byte> parameters(16);
  std::memcpy(parameters.data(), &n, sizeof n);
  std::memcpy(parameters.data() + 8, &data_, sizeof data_);
  emulator::Launch launch;
  launch.kernel = "kernel";
  launch.grid = {2, 1, 1};
  launch.block = {block[0], block[1], block[2]};
  launch.parameters = parameters;
  emulator::Options options;
  options.checks = kChecks;
  options.counters = false;
  options.seed = seed;
  options.threads = 1;
  options.max_instructions = 200'000;
  BarrierRun outcome;
  for (const emulator::RunFinding& finding : emulator::run(program_, launch, options).findings) {
    const bool mask = finding.rule == emulator::Rule::SyncMask;
    if (finding.rule == emulator::Rule::InstructionBudget) outcome.over_budget = true;
    const bool left = finding.rule == emulator::Rule::ExitedBeforeBarrier;
    outcome.left = outcome.left || left;
    // Other instructions of a warp are no barriers.
    outcome.fault = outcome.fault || finding.rule == emulator::Rule::BarrierDivergence ||
                    finding.rule == emulator::Rule::BarrierDeadlock ||
                    (mask && is_warp_sync_[finding.finding.line]);
    outcome.other_mask = outcome.other_mask || (mask && !is_warp_sync_[finding.finding.line]);
    outcome.findings += emulator::to_text(finding) + "\n";
  }
  return outcome;
}

}  // namespace ptxgen::test
