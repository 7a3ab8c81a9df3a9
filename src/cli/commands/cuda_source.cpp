// src/cli/commands/cuda_source.cpp - PTX of a file that may be CUDA C++
#include "cli/commands/cuda_source.hpp"

#include <filesystem>
#include <optional>

#include "cli/commands/commands.hpp"
#include "ptxgen/runtime/assemble/nvrtc.hpp"
#include "ptxgen/runtime/module/compile.hpp"
#include "ptxgen/support/error.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace ptxgen::cli {

namespace {

namespace fs = std::filesystem;

CompiledSource by_nvrtc(const std::string& path, std::string_view target,
                        const Settings& settings) {
  const Nvrtc nvrtc(settings);
  CudaOptions options;
  options.target = std::string(target);
  options.nvrtc = {"--std=c++17", "--generate-line-info",
                   "-I" + fs::absolute(path).parent_path().string()};
  options.name = path;
  options.gates = false;
  options.settings = settings;
  CudaProgram program = compile_cuda(read_input(path), options);
  return {std::move(program.ptx), "NVRTC " + nvrtc.version(), std::move(program.log)};
}

CompiledSource by_nvcc(const std::string& nvcc, const std::string& path, std::string_view target,
                       const Settings& settings) {
  const TemporaryDirectory folder(settings.temp_dir);
  const std::string output = folder.file("output.ptx");
  const SubprocessResult result =
      run_program({nvcc, "-ptx", "-arch=" + std::string(target), "-std=c++17", "-lineinfo", "-o",
                   output, fs::absolute(path).string()});
  const std::string tool = "nvcc " + cuda_program_version(nvcc);
  if (result.exit_code != 0) {
    Error error(Stage::Build, "nvcc-rejected",
                tool + " does not compile the file for " + std::string(target) +
                    (result.timed_out ? ": it was stopped after 120 s" : "; its messages follow"));
    error.file = path;
    error.log = result.out + result.err;
    throw error.refresh();
  }
  return {read_file(output), tool, result.out + result.err};
}

}  // namespace

bool is_cuda_source(const std::string& path) noexcept { return path.ends_with(".cu"); }

CompiledSource compile_source(const std::string& path, std::string_view target,
                              const Settings& settings) {
  // Report an unreadable file before looking for compilers.
  (void)read_input(path);
  std::optional<Error> first;
  try {
    return by_nvrtc(path, target, settings);
  } catch (const Error& error) {
    if (error.stage != Stage::Build) throw;
    first = error;
  }
  const FoundProgram nvcc = find_program(settings, "nvcc");
  if (!nvcc.path.empty()) return by_nvcc(nvcc.path, path, target, settings);
  if (first->code != "no-nvrtc") throw Error(*first);
  Error error(Stage::Build, "no-compiler",
              "CUDA C++ needs the NVRTC library or nvcc, and neither was found; install the CUDA "
              "toolkit, set PTXGEN_CUDA_PATH or PTXGEN_NVRTC_PATH, or give the file's PTX");
  error.file = path;
  error.log = first->log;
  throw error.refresh();
}

}  // namespace ptxgen::cli
