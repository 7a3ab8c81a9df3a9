// tests/emulator/defect_runner.cpp - runs a case of the corpus, judges the findings
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "emulator/defect_corpus.hpp"
#include "ptxgen/emulator/host/arguments.hpp"

namespace ptxgen::test {
namespace {

using emulator::Rule;
using emulator::RunFinding;

struct Buffer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

// The value of an argument that is a buffer; false if the text says something else.
bool make_buffer(emulator::Device& device, const std::string& text, std::size_t index,
                 std::vector<Buffer>& buffers, std::uint64_t& address) {
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const bool filled = kind == "iota" || kind == "readonly";
  if (kind != "zero" && kind != "out" && kind != "freed" && !filled) return false;
  const std::uint64_t bytes = std::stoull(text.substr(colon + 1));
  address = device.allocate(bytes, "argument " + std::to_string(index + 1));
  if (kind == "zero") device.fill(address, std::byte{0}, bytes);
  if (filled) {
    std::vector<std::uint32_t> words(static_cast<std::size_t>(bytes / 4));
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint32_t>(i);
    device.write(address, std::as_bytes(std::span(words)));
  }
  if (kind == "readonly") device.protect(address);
  if (kind == "freed") {
    device.free(address);
  } else {
    buffers.push_back({address, bytes});
  }
  return true;
}

std::string finding_text(const RunFinding& finding) { return emulator::to_text(finding); }

}  // namespace

DefectRun run_case(const DefectCase& test, std::string_view ptx, std::uint64_t seed) {
  const std::size_t target = ptx.find(".target ") + 8;
  emulator::Device device(
      emulator::default_gpu(ptx.substr(target, ptx.find_first_of(",\n\r ", target) - target)));
  emulator::Program program = emulator::Program::load(device, ptx, test.name);
  const emulator::Program::Kernel* kernel = program.find_kernel("kernel");
  if (kernel == nullptr) throw std::runtime_error("there is no kernel of the name 'kernel'");
  if (kernel->parameters.size() != test.arguments.size()) {
    throw std::runtime_error("the kernel has another number of parameters");
  }
  std::vector<std::byte> block(kernel->parameter_bytes);
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < test.arguments.size(); ++i) {
    std::byte* place = block.data() + kernel->parameters[i].offset;
    std::uint64_t address = 0;
    if (make_buffer(device, test.arguments[i], i, buffers, address)) {
      std::memcpy(place, &address, sizeof address);
      continue;
    }
    const emulator::ArgumentSpec spec = emulator::parse_argument(test.arguments[i]);
    emulator::check_argument(spec, kernel->parameters[i], i + 1);
    std::copy(spec.value.begin(), spec.value.end(), place);
  }
  emulator::Launch launch;
  launch.kernel = kernel->name;
  launch.grid = test.grid;
  launch.block = test.block;
  launch.dynamic_shared_bytes = test.shared_bytes;
  launch.parameters = block;
  emulator::Options options;
  options.checks = test.checks;
  options.seed = seed;
  options.threads = seed % 2 == 0 ? 1 : 2;
  if (test.max_instructions != 0) options.max_instructions = test.max_instructions;
  DefectRun run;
  run.result = emulator::run(program, launch, options);
  for (const Buffer& buffer : buffers) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(buffer.bytes));
    device.read(buffer.address, bytes);
    run.memory.insert(run.memory.end(), bytes.begin(), bytes.end());
  }
  return run;
}

std::string judge(const DefectCase& test, const emulator::Result& result,
                  const std::vector<std::uint32_t>* line_of) {
  const auto place = [line_of](std::uint32_t line) {
    if (line_of == nullptr) return line;
    return line < line_of->size() ? (*line_of)[line] : 0;
  };
  std::string text;
  std::set<std::uint32_t> named;
  bool found = false;
  bool errors = false;
  for (const RunFinding& finding : result.findings) {
    const emulator::RuleInfo& rule = emulator::info(finding.rule);
    errors = errors || finding.finding.severity == Severity::Error;
    if (finding.finding.rule != rule.name || finding.finding.severity != rule.severity ||
        finding.finding.message.empty() || finding.count == 0) {
      text += "ill-formed: " + finding_text(finding) + '\n';
    }
    if (std::ranges::find(test.expected, finding.rule) != test.expected.end()) {
      found = true;
      const std::uint32_t line = place(finding.finding.line);
      // Functions of headers that were not inlined have no line in the case's text.
      const auto marked = [&test, line_of](std::uint32_t at) {
        return test.must.contains(at) || test.may.contains(at) || (line_of != nullptr && at == 0);
      };
      named.insert(line);
      if (!marked(line)) {
        text += "line " + std::to_string(line) + " is not marked: " + finding_text(finding) + '\n';
      }
      if (finding.has_other && finding.other.line != 0) {
        const std::uint32_t other = place(finding.other.line);
        named.insert(other);
        if (!marked(other)) {
          text += "the other party's line " + std::to_string(other) +
                  " is not marked: " + finding_text(finding) + '\n';
        }
      }
    } else if (!test.allowed.contains(finding.rule) &&
               (test.clean || rule.severity == Severity::Error)) {
      text += "not expected: " + finding_text(finding) + '\n';
    }
  }
  if (!test.clean && test.about != Rule::Nondeterminism) {
    if (!found) text += "not found: " + std::string(emulator::info(test.about).name) + '\n';
    for (const std::uint32_t line : test.must) {
      if (found && !named.contains(line)) {
        text += "no finding names line " + std::to_string(line) + '\n';
      }
    }
  }
  if (errors == (result.status == emulator::Status::Ok)) {
    text += "the status does not fit the findings\n";
  }
  return text;
}

std::string complaints(const DefectCase& test, std::string_view ptx, int seeds,
                       const std::vector<std::uint32_t>* line_of) {
  std::vector<std::byte> first;
  bool differ = false;
  for (int seed = 0; seed < seeds; ++seed) {
    const std::string where = test.name + ", seed " + std::to_string(seed) + ": ";
    try {
      const DefectRun run = run_case(test, ptx, static_cast<std::uint64_t>(seed));
      std::string text = judge(test, run.result, line_of);
      if (seed == 0) first = run.memory;
      differ = differ || run.memory != first;
      if (differ && test.clean && !test.outputs_may_differ) {
        text += "memory is not what seed 0 left\n";
      }
      if (!text.empty()) {
        text.insert(0, where);
        for (const RunFinding& finding : run.result.findings) {
          text += "  found: " + finding_text(finding) + '\n';
        }
        return text;
      }
    } catch (const std::exception& error) {
      return where + error.what();
    }
  }
  if (test.about == Rule::Nondeterminism && !test.clean && !differ) {
    return test.name + ": all schedules left the same bytes";
  }
  return {};
}

}  // namespace ptxgen::test
