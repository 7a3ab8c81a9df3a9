// src/qa/facts.cpp - what the environment lines know of machine and build
#include "qa/facts.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ptxgen/support/error.hpp"
#include "support/subprocess.hpp"

namespace ptxgen::qa {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void count_gpu_processes(Facts& facts) {
  try {
    const SubprocessResult result =
        run_program({"/usr/bin/nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"});
    if (result.exit_code != 0) return;
    facts.processes_known = true;
    facts.gpu_processes = static_cast<std::uint32_t>(std::ranges::count(result.out, '\n'));
  } catch (const Error&) {
    // The tool is not part of the driver everywhere.
  }
}

}  // namespace

Facts collect_facts(const Device& device, const Settings& settings) {
  Facts facts;
  facts.device = device.info();
  facts.gpu = facts.device.kind == DeviceKind::Cuda;
#if defined(__clang__)
  facts.compiler = "Clang";
  facts.compiler_version = __clang_major__;
#elif defined(__GNUC__)
  facts.compiler = "GCC";
  facts.compiler_version = __GNUC__;
#endif
  facts.language = __cplusplus;
  facts.cmake_major = PTXGEN_CMAKE_MAJOR;
  facts.cmake_minor = PTXGEN_CMAKE_MINOR;
  std::error_code error;
  const auto space = std::filesystem::space(settings.temp_dir, error);
  if (!error) facts.disk_free = space.available;
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page > 0) {
    facts.memory = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
  }
  facts.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (facts.gpu) count_gpu_processes(facts);
  return facts;
}

}  // namespace ptxgen::qa
