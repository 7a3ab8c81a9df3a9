// src/runtime/assemble/disassembler.cpp - the machine code of a cubin
#include "ptxgen/runtime/assemble/disassembler.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace ptxgen::inline v0 {

namespace {

using nlohmann::json;

constexpr std::uint32_t kInstructionBytes = 16;  // since sm_70

[[noreturn]] void fail(const char* code, const std::string& message) {
  throw Error(Stage::Assemble, code, message);
}

SassFunction function_of(const json& described) {
  SassFunction function;
  function.name = described.at("function-name");
  for (const json& row : described.at("sass-instructions")) {
    SassInstruction instruction;
    instruction.offset =
        static_cast<std::uint32_t>(function.instructions.size()) * kInstructionBytes;
    instruction.predicate = row.value("predicate", std::string());
    instruction.opcode = row.at("opcode");
    instruction.operands = row.value("operands", std::string());
    function.instructions.push_back(std::move(instruction));
  }
  return function;
}

// [{..about the file..}, [{"function-name":..,"sass-instructions":[..]}, ..]]
std::vector<SassFunction> functions_of(const std::string& text) {
  std::vector<SassFunction> functions;
  const json document = json::parse(text);
  for (const json& described : document.at(1)) functions.push_back(function_of(described));
  return functions;
}

}  // namespace

Disassembler::Disassembler(const Settings& settings) : temp_dir_(settings.temp_dir) {
  const FoundProgram found =
      find_program(settings, "nvdisasm", "PTXGEN_NVDISASM_PATH", settings.nvdisasm_path);
  program_ = found.path;
  if (!available()) why_not_ = to_text(found.attempts);
}

std::vector<SassFunction> Disassembler::disassemble(std::span<const std::byte> cubin) const {
  if (!available()) {
    fail("no-disassembler", format_text("there is no nvdisasm; install the CUDA toolkit or PyPI's "
                                        "nvidia-cuda-nvdisasm, or set PTXGEN_NVDISASM_PATH\n{}",
                                        why_not_));
  }
  const TemporaryDirectory folder(temp_dir_);
  const std::string_view bytes(reinterpret_cast<const char*>(cubin.data()), cubin.size());
  write_file(folder.file("code.cubin"), bytes);
  SubprocessOptions how;
  how.folder = folder.path();
  const SubprocessResult run =
      run_program({std::filesystem::absolute(program_).string(), "--emit-json", "code.cubin"}, how);
  if (run.exit_code != 0) {
    fail("tool-failed", format_text("nvdisasm refuses the machine code: {}{}", run.err, run.out));
  }
  try {
    return functions_of(run.out);
  } catch (const json::exception& error) {
    fail("tool-failed", format_text("nvdisasm prints what cannot be read ({}); version 13 or newer "
                                    "is needed: {}",
                                    error.what(), program_));
  }
}

}  // namespace ptxgen::inline v0
