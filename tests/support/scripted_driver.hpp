// tests/support/scripted_driver.hpp - a driver that answers as a test tells it
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ptxgen/driver/table.hpp"

namespace ptxgen::test {

/// One device that runs nothing: allocations are numbers, launches are written down. The answers
/// are fields; a test sets them and looks at what was asked. One thread, one object at a time.
struct ScriptedDriver {
  ScriptedDriver();
  ScriptedDriver(const ScriptedDriver&) = delete;
  ScriptedDriver& operator=(const ScriptedDriver&) = delete;
  ~ScriptedDriver();

  driver::Table table;

  int driver_version = 13000;
  int devices = 1;
  int sm = 90;
  std::map<int, int> attributes;           ///< of the device, beside the usual ones
  std::map<int, int> function_attributes;  ///< what cuFuncGetAttribute says

  driver::CUresult jit_result = driver::CUDA_SUCCESS;
  std::string jit_error_log;
  std::string jit_info_log;
  int jit_calls = 0;
  std::string jit_text;            ///< the text of the last call
  std::map<int, int> jit_options;  ///< CUjit_option and number of the last call

  driver::CUresult synchronize_result = driver::CUDA_SUCCESS;
  std::string logged;  ///< what the driver's log says at the next synchronisation

  int memory_free = 0;  ///< bytes; allocations of more are refused
  int contexts = 0, modules = 0, memories = 0, streams = 0, events = 0, graphs = 0;

  struct Launch {
    driver::CUlaunchConfig config;
    std::vector<driver::CUlaunchAttribute> attributes;
    std::vector<std::byte> arguments;
    bool extended = false;  ///< through cuLaunchKernelEx
  };
  std::vector<Launch> launches;
  std::vector<int> opted_in;               ///< values of cuFuncSetAttribute
  std::vector<driver::CUcontext> current;  ///< the thread's stack
  bool capturing = false;
};

}  // namespace ptxgen::test
