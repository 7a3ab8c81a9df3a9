// tests/optimize/program_runner.cpp - runs random programs, what can be seen of a run
#include "program_runner.hpp"

#include <cstring>
#include <span>

namespace ptxgen::test {

namespace {

constexpr std::uint64_t kMaxInstructions = 40'000;  // of a warp; programs run far fewer

bool is_barrier(std::string_view opcode) { return opcode.rfind("bar", 0) == 0; }

bool is_observable(std::string_view opcode) {
  for (const std::string_view word : {"atom", "red.", "fence", "membar", "vote", "shfl", "redux"}) {
    if (opcode.rfind(word, 0) == 0) return true;
  }
  for (const std::string_view word : {".volatile", ".relaxed", ".acquire", ".release"}) {
    if (opcode.find(word) != std::string_view::npos) return true;
  }
  return is_barrier(opcode);
}

/// Allocations of one run, freed with it.
class Buffers {
 public:
  explicit Buffers(emulator::Device& device) : device_(device) {}
  std::uint64_t add(std::size_t bytes, std::string_view name) {
    const std::uint64_t address = device_.allocate(bytes, name);
    device_.fill(address, std::byte{0}, bytes);
    return address;
  }

 private:
  emulator::Device& device_;
};

}  // namespace

ProgramOutcome run_program(const RandomProgram& program, std::string_view ptx, bool all_checks) {
  emulator::Device device(emulator::gpu_named(program.target));
  emulator::Program loaded = emulator::Program::load(device, ptx, "random.ptx");
  Buffers buffers(device);
  const std::uint64_t in = buffers.add(program.input.size() * 4, "in");
  device.write(in, std::as_bytes(std::span(program.input)));
  device.protect(in);
  const std::size_t bytes =
      std::size_t{program.threads} * program.blocks * program.output_words * 4;
  const std::size_t sum_bytes = kProgramSumWords * 4;
  const std::uint64_t out = buffers.add(bytes, "out");
  const std::uint64_t sum = buffers.add(sum_bytes, "sum");
  std::vector<std::uint64_t> parameters{in, out, sum};
  parameters.insert(parameters.end(), program.parameters.begin(), program.parameters.end());

  emulator::Launch launch;
  launch.kernel = "k";
  launch.grid = {program.blocks, 1, 1};
  launch.block = {program.threads, 1, 1};
  launch.parameters = std::as_bytes(std::span(parameters));
  emulator::Options options;
  options.threads = 1;
  options.max_instructions = kMaxInstructions;
  options.checks = all_checks ? emulator::RuleSet::all() : emulator::RuleSet::none();
  const emulator::Result result = emulator::run(loaded, launch, options);

  ProgramOutcome outcome;
  outcome.status = result.status;
  for (const emulator::RunFinding& finding : result.findings) {
    outcome.findings += emulator::to_text(finding) + "\n";
  }
  outcome.memory.resize(bytes + sum_bytes);
  device.read(out, std::span(outcome.memory).first(bytes));
  device.read(sum, std::span(outcome.memory).subspan(bytes));
  outcome.warp_instructions = result.counters.warp_instructions;
  for (const emulator::LineCounters& line : result.counters.lines) {
    if (!is_observable(line.opcode) || line.predicated_on == 0) continue;
    outcome.observable[line.opcode] += line.predicated_on;
    if (is_barrier(line.opcode)) outcome.barriers += line.predicated_on;
  }
  return outcome;
}

std::string difference(const RandomProgram& program, const ProgramOutcome& before,
                       const ProgramOutcome& after) {
  if (after.status != before.status) return "the run ended otherwise: " + after.findings;
  for (const auto& [opcode, count] : before.observable) {
    const auto found = after.observable.find(opcode);
    const std::uint64_t now = found == after.observable.end() ? 0 : found->second;
    if (now != count) {
      return opcode + " was executed by " + std::to_string(count) + " threads, now by " +
             std::to_string(now);
    }
  }
  for (const auto& [opcode, count] : after.observable) {
    if (before.observable.count(opcode) == 0) return opcode + " is new";
  }
  for (std::size_t at = 0; at + 4 <= before.memory.size(); at += 4) {
    if (std::memcmp(&before.memory[at], &after.memory[at], 4) == 0) continue;
    std::uint32_t was = 0, is = 0;
    std::memcpy(&was, &before.memory[at], 4);
    std::memcpy(&is, &after.memory[at], 4);
    const std::size_t word = at / 4;
    char text[120];
    std::snprintf(text, sizeof text, "thread %zu stored %08x instead of %08x in word %zu",
                  word / program.output_words, is, was, word % program.output_words);
    return text;
  }
  return {};
}

}  // namespace ptxgen::test
