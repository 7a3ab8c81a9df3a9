// src/cli/commands/run_gpu.hpp - ptxgen run on a GPU
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/args/run_options.hpp"
#include "cli/output/printed_buffer.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/module/module.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::cli {

struct GpuOutcome {
  std::string kernel;
  std::string printed;        ///< device printf, where it was asked for; else it is on stdout
  std::string fault;          ///< the driver's message if it stopped the kernel
  bool outputs_lost = false;  ///< there were output files to write, and the fault took the memory
  FunctionResources resources;
  std::vector<PrintedBuffer> buffers;  ///< of `print:`, unless a fault took them
  double seconds = 0;                  ///< of the host, from launch to end
};

/// One launch of the PTX through the driver, its output files written. `keep_printf` keeps device
/// printf from standard output. `write_error` is the error if a file could not be written.
/// Throws `UsageError`, and `Error` as Module::load, Function::launch and emulator::Arguments.
[[nodiscard]] GpuOutcome run_on_gpu(const Device& device, const RunOptions& options,
                                    std::string_view text, const ptx::Module& module,
                                    std::span<const emulator::ArgumentSpec> specs, bool keep_printf,
                                    std::unique_ptr<Error>& write_error);

}  // namespace ptxgen::cli
