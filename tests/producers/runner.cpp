// tests/producers/runner.cpp - judges a producer's texts, runs them, compares results
#include "runner.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::test {

namespace {

constexpr std::size_t kShownDifferences = 3;

// Assemblers know PTX up to their own version, and a text may say a higher one than it needs.
constexpr ptx::Version kAssembled{9, 0};

emulator::Dim3 dimensions(const std::array<std::uint32_t, 3>& three) {
  return {three[0], three[1], three[2]};
}

/// Fields one after another, each aligned to its size, as C lays them out.
void put(const ProducerArgument& argument, const std::map<std::string, std::uint64_t>& addresses,
         std::vector<std::byte>& out) {
  if (argument.type == "structure") {
    for (const ProducerArgument& field : argument.fields) put(field, addresses, out);
    return;
  }
  std::vector<std::byte> bytes;
  if (argument.type == "buffer") {
    bytes.resize(8);
    const std::uint64_t address = addresses.at(argument.buffer);
    std::copy_n(reinterpret_cast<const std::byte*>(&address), 8, bytes.begin());
  } else {
    bytes = packed(argument.type, argument.number);
  }
  while (out.size() % bytes.size() != 0) out.push_back(std::byte{0});
  out.insert(out.end(), bytes.begin(), bytes.end());
}

class Run {
 public:
  Run(const ProducerFolder& producer, const ProducerProgram& program, bool passes)
      : producer_(producer), program_(program), passes_(passes) {}

  std::string errors() {
    if (program_.launches.empty()) return "has no launches\n";
    const ptx::Module first = module_of(program_.launches[0].text);
    device_.emplace(emulator::default_gpu(first.target));
    allocate();
    for (const ProducerLaunch& launch : program_.launches) {
      const std::string found = launched(launch);
      if (!found.empty()) return found;
    }
    return compared();
  }

 private:
  ptx::Module module_of(const std::string& file) const {
    ptx::Module module = ptx::parse(read_file((producer_.folder / file).string()), file);
    if (passes_) static_cast<void>(optimize::run_passes(module));
    return module;
  }

  void allocate() {
    for (const auto& [name, buffer] : program_.buffers) {
      const std::uint64_t address =
          device_->allocate(std::max<std::size_t>(1, buffer.count * bytes_of(buffer.type)), name);
      if (!buffer.bytes.empty()) device_->write(address, buffer.bytes);
      addresses_[name] = address;
    }
  }

  std::string launched(const ProducerLaunch& launch) {
    auto at = programs_.find(launch.text);
    if (at == programs_.end()) {
      const std::string text = ptx::print(module_of(launch.text));
      at = programs_.emplace(launch.text, emulator::Program::load(*device_, text, launch.text))
               .first;
    }
    emulator::Program& loaded = at->second;
    const emulator::Program::Kernel* kernel = loaded.find_kernel(launch.entry);
    if (kernel == nullptr) return "has no kernel '" + launch.entry + "'\n";
    if (kernel->parameters.size() != launch.arguments.size()) {
      return "'" + launch.entry + "' has " + std::to_string(kernel->parameters.size()) +
             " parameters, " + std::to_string(launch.arguments.size()) + " are stored\n";
    }
    std::vector<std::byte> block(kernel->parameter_bytes);
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      std::vector<std::byte> bytes;
      put(launch.arguments[i], addresses_, bytes);
      if (bytes.size() > kernel->parameters[i].bytes) {
        return "argument " + std::to_string(i) + " of '" + launch.entry + "' has " +
               std::to_string(bytes.size()) + " bytes, the parameter " +
               std::to_string(kernel->parameters[i].bytes) + "\n";
      }
      std::copy(bytes.begin(), bytes.end(), block.begin() + kernel->parameters[i].offset);
    }
    emulator::Launch built;
    built.kernel = launch.entry;
    built.grid = dimensions(launch.grid);
    built.block = dimensions(launch.block);
    built.dynamic_shared_bytes = launch.shared;
    built.parameters = block;
    const emulator::Result result = emulator::run(loaded, built);
    std::string found;
    for (const emulator::RunFinding& finding : result.findings) {
      if (finding.finding.severity == Severity::Error) found += emulator::to_text(finding) + "\n";
    }
    return found;
  }

  std::string compared() const {
    if (program_.expected.empty()) return "has no expected results\n";
    std::string found;
    for (const auto& [name, result] : program_.expected) {
      const ProducerBuffer& buffer = program_.buffers.at(name);
      if (result.values.size() != buffer.count || result.values.empty()) {
        found += "'" + name + "' holds " + std::to_string(buffer.count) + " elements, " +
                 std::to_string(result.values.size()) + " are expected\n";
        continue;
      }
      std::vector<std::byte> bytes(buffer.count * bytes_of(buffer.type));
      device_->read(addresses_.at(name), bytes);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < result.values.size(); ++i) {
        const double expected = result.values[i];
        const double actual = element(buffer.type, bytes, i);
        const double allowed = result.tolerance * std::max(1.0, std::fabs(expected));
        if (std::fabs(actual - expected) <= allowed) continue;
        if (++wrong > kShownDifferences) continue;
        found += "'" + name + "'[" + std::to_string(i) + "] is " + std::to_string(actual) +
                 ", expected " + std::to_string(expected) + "\n";
      }
      if (wrong > 0) found += std::to_string(wrong) + " elements of '" + name + "' are wrong\n";
    }
    return found;
  }

  const ProducerFolder& producer_;
  const ProducerProgram& program_;
  const bool passes_;
  std::optional<emulator::Device> device_;
  std::map<std::string, std::uint64_t> addresses_;
  std::map<std::string, emulator::Program> programs_;
};

}  // namespace

ptx::Module checked_module(const std::string& text, const std::string& file, std::string& wrong) {
  ptx::Module module = ptx::parse(text, file);
  const std::string printed = ptx::print(module);
  const ptx::Module back = ptx::parse(printed, file);
  if (const std::string found = ptx::difference(module, back); !found.empty())
    wrong += "printing loses something: " + found + "\n";
  if (ptx::print(back) != printed) wrong += "prints differently the second time\n";
  for (const Finding& finding : ptx::verify(module)) {
    if (finding.severity == Severity::Error) wrong += to_text(finding) + "\n";
  }
  for (const ptx::Function& function : module.functions) {
    for (const ptx::Instruction& statement : function.body) {
      if (statement.kind == ptx::StatementKind::Unknown)
        wrong += "not in the op table: " + std::string(module.text(statement.text)) + "\n";
    }
  }
  return module;
}

std::string gate_errors(const ptx::Module& module, const ProducerLaunch& launch) {
  std::string found;
  gates::GateOptions options;
  options.entry = launch.entry;
  options.block = launch.block;
  for (const gates::GateInfo& gate : gates::all_gates()) {
    if (!gate.before_load) continue;
    for (const Finding& finding : gate.run(module, options)) {
      if (finding.severity == Severity::Error && finding.kernel == launch.entry)
        found += to_text(finding) + "\n";
    }
  }
  return found;
}

std::string assembly_error(const ptx::Module& module, const Assembler& assembler) {
  ptx::Module assembled = module;
  if (kAssembled < module.version)
    assembled.version = std::min(kAssembled, ptx::lowest_version(module, module.target));
  AssembleOptions options;
  options.target = module.target;
  options.optimization = 0;
  try {
    return assembler.assemble(ptx::print(assembled), options).cubin.empty() ? "no code\n" : "";
  } catch (const Error& error) {
    return std::string(error.what()) + "\n";
  }
}

std::string run_errors(const ProducerFolder& producer, const ProducerProgram& program,
                       bool passes) {
  try {
    return Run(producer, program, passes).errors();
  } catch (const Error& error) {
    return std::string(error.what()) + "\n";
  }
}

}  // namespace ptxgen::test
