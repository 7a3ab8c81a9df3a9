// src/runtime/module/compile_cuda.cpp - CUDA C++ text to a module
#include "ptxgen/runtime/module/compile.hpp"

#include <filesystem>

#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/runtime/assemble/nvrtc.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/module/gates.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::inline v0 {

namespace {

namespace fs = std::filesystem;

// Folders with the toolkit's headers: of the user's toolkit, then of NVRTC's.
std::vector<std::string> header_folders(const Settings& settings, const Nvrtc& nvrtc) {
  std::vector<fs::path> candidates;
  if (!settings.cuda_path.empty()) candidates.push_back(fs::path(settings.cuda_path) / "include");
  candidates.push_back(fs::path(nvrtc.where()).parent_path() / ".." / "include");
  std::vector<std::string> folders;
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (fs::is_regular_file(candidate / "cuda_fp16.h", ignored)) {
      folders.push_back(candidate.lexically_normal().string());
    }
  }
  return folders;
}

// The header that NVRTC could not open, or empty.
std::string missing_header(const std::string& log) {
  constexpr std::string_view kWords = "cannot open source file \"";
  const std::size_t at = log.find(kWords);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kWords.size();
  return log.substr(begin, log.find('"', begin) - begin);
}

[[noreturn]] void refuse_header(Error error, const std::string& header,
                                const std::vector<std::string>& arguments) {
  std::vector<std::string> folders;
  for (const std::string& argument : arguments) {
    if (argument.starts_with("-I")) folders.push_back(argument.substr(2));
  }
  error.code = "missing-header";
  error.message = format_text(
      "{} includes {}, which is in none of the folders searched ({}); add \"-I/its/folder\" to the "
      "options",
      error.file, header, folders.empty() ? "none" : join_text(folders));
  throw error.refresh();
}

}  // namespace

CudaProgram compile_cuda(std::string_view source, const CudaOptions& options) {
  const ptx::Target& target = ptx::target(options.target);
  const Nvrtc nvrtc(options.settings);
  std::vector<std::string> arguments = options.nvrtc;
  arguments.push_back("--gpu-architecture=compute_" + std::string(target.name.substr(3)));
  for (const std::string& folder : header_folders(options.settings, nvrtc)) {
    arguments.push_back("-I" + folder);
  }

  CudaProgram program;
  try {
    NvrtcResult result = nvrtc.compile(source, arguments, options.name);
    program.ptx = std::move(result.ptx);
    program.log = std::move(result.log);
  } catch (const Error& error) {
    const std::string header = missing_header(error.log);
    if (header.empty()) throw;
    refuse_header(error, header, arguments);
  }
  program.module = ptx::parse(program.ptx, options.name + ".ptx");
  if (options.gates) (void)pass_gates({program.module, options.name, program.ptx});
  return program;
}

}  // namespace ptxgen::inline v0
