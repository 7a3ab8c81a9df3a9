// src/runtime/device/doctor.cpp - search for drivers and tools of this machine
#include "ptxgen/runtime/device/doctor.hpp"

#include <unistd.h>

#include <array>
#include <exception>
#include <filesystem>

#include "ptxgen/driver/table.hpp"
#include "ptxgen/kernels/host.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/runtime/assemble/nvrtc.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/device/device_state.hpp"
#include "support/format.hpp"
#include "support/toolkit.hpp"

namespace ptxgen::inline v0 {

namespace {

namespace fs = std::filesystem;

GpuFinding ask_gpu(const driver::Table& driver, int ordinal) {
  GpuFinding gpu;
  gpu.ordinal = ordinal;
  driver::CUdevice device = 0;
  if (const auto status = driver.device_get(&device, ordinal); status != driver::CUDA_SUCCESS) {
    gpu.name = driver::result_text(driver, status);
    return gpu;
  }
  std::array<char, 256> name{};
  if (driver.device_get_name(name.data(), static_cast<int>(name.size()) - 1, device) ==
      driver::CUDA_SUCCESS) {
    gpu.name = name.data();
  }
  const auto attribute = [&](driver::CUdevice_attribute which, int& value) {
    return driver.device_get_attribute(&value, which, device) == driver::CUDA_SUCCESS;
  };
  int major = 0;
  int minor = 0;
  if (attribute(driver::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major) &&
      attribute(driver::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor)) {
    gpu.target = format_text("sm_{}{}", major, minor);
  }
  (void)attribute(driver::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.multiprocessors);
  std::size_t bytes = 0;
  if (driver.device_total_mem(&bytes, device) == driver::CUDA_SUCCESS) gpu.memory_bytes = bytes;
  return gpu;
}

void ask_driver(const Settings& settings, PieceFinding& piece, std::vector<GpuFinding>& gpus) {
  const driver::Libcuda libcuda = driver::find_libcuda(settings);
  piece.where = libcuda.where;
  piece.problem = libcuda.problem;
  if (libcuda.table == nullptr) return;
  if (libcuda.emulated) {
    piece.gives = "running kernels on the CPU: it is ptxgen's emulated driver, not NVIDIA's";
  }
  const driver::Table& driver = *libcuda.table;
  const auto good = [&](const char* call, driver::CUresult status) {
    if (status == driver::CUDA_SUCCESS) return true;
    piece.problem = format_text("{}: {}", call, driver::result_text(driver, status));
    return false;
  };
  int count = 0;
  int version = 0;
  if (!good("cuInit", driver.init(0))) return;
  if (good("cuDriverGetVersion", driver.driver_get_version(&version))) {
    piece.version = driver::version_text(version);
  }
  if (!good("cuDeviceGetCount", driver.device_get_count(&count))) return;
  piece.found = count > 0;
  if (count == 0) piece.problem = "the driver has no GPU";
  for (int i = 0; i < count; ++i) gpus.push_back(ask_gpu(driver, i));
}

void ask_program(const FoundProgram& program, PieceFinding& piece) {
  if (program.path.empty()) {
    piece.problem = to_text(program.attempts);
    return;
  }
  piece.where = program.path;
  piece.version = cuda_program_version(program.path);
  piece.found = !piece.version.empty();
  if (!piece.found) piece.problem = "prints no version for --version";
}

void ask_nvjitlink(const Settings& settings, PieceFinding& piece) {
  const AssemblerFinding finding = Assembler(settings).tools().front();
  piece.found = finding.found;
  piece.where = finding.where;
  piece.version = finding.version;
  piece.problem = finding.why_not;
}

void ask_nvrtc(const Settings& settings, PieceFinding& piece) {
  try {
    const Nvrtc nvrtc(settings);
    piece.found = true;
    piece.where = nvrtc.where();
    piece.version = nvrtc.version();
  } catch (const Error& error) {
    // Places searched, if it was not found.
    piece.problem = error.log.empty() ? error.message : error.log;
  }
}

void ask_cublas(const Settings& settings, PieceFinding& piece) {
  const DynamicLibrary library = DynamicLibrary::find(cublas_search(settings));
  if (!library) {
    piece.problem = to_text(library.attempts());
    return;
  }
  piece.where = library.path();
  // cublasGetProperty needs no handle, hence no GPU: 0 major, 1 minor, 2 patch level.
  int (*property)(int, int*) = nullptr;
  if (!library.resolve("cublasGetProperty", property)) {
    piece.problem = "is not a cuBLAS library: it has no function cublasGetProperty";
    return;
  }
  for (int which = 0; which < 3; ++which) {
    int value = 0;
    if (property(which, &value) != 0) break;
    piece.version += (which == 0 ? "" : ".") + std::to_string(value);
  }
  piece.found = true;
}

void look_at_cache(const Settings& settings, PieceFinding& piece) {
  piece.where = settings.cache_folder();
  if (piece.where.empty()) {
    piece.problem = "no folder: neither PTXGEN_CACHE_DIR, XDG_CACHE_HOME nor HOME is set";
    return;
  }
  std::error_code ignored;
  if (fs::exists(piece.where, ignored)) {
    if (!fs::is_directory(piece.where, ignored)) {
      piece.problem = "is not a folder";
    } else if (::access(piece.where.c_str(), W_OK | X_OK) != 0) {
      piece.problem = "cannot be written to";
    } else {
      piece.found = true;
    }
    return;
  }
  fs::path parent = fs::absolute(piece.where, ignored);
  while (!fs::exists(parent, ignored) && parent.has_relative_path()) parent = parent.parent_path();
  const bool can_be_created =
      fs::is_directory(parent, ignored) && ::access(parent.c_str(), W_OK | X_OK) == 0;
  piece.problem = can_be_created
                      ? "does not exist yet; it is created when the first kernel is stored"
                      : "does not exist and cannot be created in " + parent.string();
}

HostFinding ask_host(const Settings& settings) {
  HostFinding host;
  for (const HostTarget& target : host_targets()) {
    if (target.supported) host.vectors.emplace_back(target.name);
  }
  try {
    host.backend = host_backend(settings);
  } catch (const Error& error) {
    host.problem = error.message;
  }
  return host;
}

}  // namespace

const PieceFinding* Diagnosis::find(std::string_view piece) const noexcept {
  for (const PieceFinding& finding : pieces) {
    if (finding.piece == piece) return &finding;
  }
  return nullptr;
}

Diagnosis diagnose(const Settings& settings) {
  Diagnosis diagnosis;
  const auto ask = [&diagnosis](const char* piece, const char* gives, auto&& question) {
    PieceFinding finding;
    finding.piece = piece;
    finding.gives = gives;
    try {
      question(finding);
    } catch (const std::exception& failure) {
      const auto* error = dynamic_cast<const Error*>(&failure);
      finding.found = false;
      finding.problem = error != nullptr ? error->message : failure.what();
    }
    diagnosis.pieces.push_back(std::move(finding));
  };
  ask("NVIDIA driver", "running kernels on a GPU; without it they run on the emulator",
      [&](PieceFinding& piece) { ask_driver(settings, piece, diagnosis.gpus); });
  ask("nvJitLink", "assembling PTX in process: registers, spills and machine code without a GPU",
      [&](PieceFinding& piece) { ask_nvjitlink(settings, piece); });
  ask("ptxas", "assembling PTX where nvJitLink is missing, one process per kernel",
      [&](PieceFinding& piece) {
        ask_program(find_program(settings, "ptxas", "PTXGEN_PTXAS_PATH", settings.ptxas_path),
                    piece);
      });
  ask("nvdisasm", "reading the machine code (SASS) of an assembled kernel",
      [&](PieceFinding& piece) {
        ask_program(
            find_program(settings, "nvdisasm", "PTXGEN_NVDISASM_PATH", settings.nvdisasm_path),
            piece);
      });
  ask("cuobjdump", "extracting kernels from programs and fat binaries",
      [&](PieceFinding& piece) { ask_program(find_program(settings, "cuobjdump"), piece); });
  ask("NVRTC", "compiling CUDA C++ at run time, the baseline that benchmarks compare with",
      [&](PieceFinding& piece) { ask_nvrtc(settings, piece); });
  ask("cuBLAS", "the vendor's matrix kernels, the baseline that benchmarks compare with",
      [&](PieceFinding& piece) { ask_cublas(settings, piece); });
  ask("cache folder", "keeping compiled kernels between runs",
      [&](PieceFinding& piece) { look_at_cache(settings, piece); });
  diagnosis.host = ask_host(settings);
  return diagnosis;
}

}  // namespace ptxgen::inline v0
