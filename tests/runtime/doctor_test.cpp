// tests/runtime/doctor_test.cpp - findings with nothing, with fakes, with this machine
#include "ptxgen/runtime/device/doctor.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "runtime/samples.hpp"
#include "support/harness.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

const std::vector<std::string> kPieces = {"NVIDIA driver", "nvJitLink", "ptxas",  "nvdisasm",
                                          "cuobjdump",     "NVRTC",     "cuBLAS", "cache folder"};

const PieceFinding& piece(const Diagnosis& diagnosis, const char* name) {
  const PieceFinding* found = diagnosis.find(name);
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("a machine without anything is described, not refused", "[doctor]") {
  const Diagnosis diagnosis = diagnose(bare_machine());
  REQUIRE(diagnosis.pieces.size() == kPieces.size());
  for (std::size_t i = 0; i < kPieces.size(); ++i) {
    const PieceFinding& finding = diagnosis.pieces[i];
    INFO(finding.piece);
    CHECK(finding.piece == kPieces[i]);
    CHECK_FALSE(finding.found);
    CHECK(finding.version.empty());
    CHECK_FALSE(finding.gives.empty());
    CHECK_FALSE(finding.problem.empty());
  }
  CHECK(diagnosis.gpus.empty());
  CHECK(diagnosis.find("toaster") == nullptr);
  CHECK(piece(diagnosis, "ptxas").problem == "the usual places: not searched, as the settings ask");
  CHECK(piece(diagnosis, "cache folder").problem ==
        "no folder: neither PTXGEN_CACHE_DIR, XDG_CACHE_HOME nor HOME is set");
}

TEST_CASE("this machine is described without an error", "[doctor]") {
  const Diagnosis diagnosis = diagnose(Settings::from_environment());
  REQUIRE(diagnosis.pieces.size() == kPieces.size());
  for (const PieceFinding& finding : diagnosis.pieces) {
    INFO(finding.piece);
    if (finding.found) {
      CHECK_FALSE(finding.where.empty());
      CHECK(finding.problem.empty());
      if (finding.piece != "cache folder") CHECK_FALSE(finding.version.empty());
    } else {
      CHECK_FALSE(finding.problem.empty());
    }
  }
}

TEST_CASE("a driver and its GPUs are shown", "[doctor]") {
  Settings settings = bare_machine();
  settings.libcuda_path = FAKE_LIBCUDA_GPU;
  const Diagnosis diagnosis = diagnose(settings);
  CHECK(piece(diagnosis, "NVIDIA driver").found);
  CHECK(piece(diagnosis, "NVIDIA driver").version == "13.2");
  CHECK(piece(diagnosis, "NVIDIA driver").where == FAKE_LIBCUDA_GPU);
  REQUIRE(diagnosis.gpus.size() == 1);
  CHECK(diagnosis.gpus[0].name == "Fake GPU");
  CHECK(diagnosis.gpus[0].target == "sm_90");
  CHECK(diagnosis.gpus[0].multiprocessors == 132);
  CHECK(diagnosis.gpus[0].memory_bytes == std::uint64_t{1} << 37);
}

TEST_CASE("the emulated driver is told from NVIDIA's", "[doctor]") {
  Settings settings = bare_machine();
  settings.libcuda_path = STANDIN_LIBCUDA;
  if (settings.libcuda_path.empty()) {
    return skip("the stand-in is not built (PTXGEN_BUILD_STANDIN)");
  }
  const Diagnosis diagnosis = diagnose(settings);
  CHECK(piece(diagnosis, "NVIDIA driver").found);
  CHECK(piece(diagnosis, "NVIDIA driver").gives ==
        "running kernels on the CPU: it is ptxgen's emulated driver, not NVIDIA's");
  REQUIRE(diagnosis.gpus.size() == 1);
  CHECK(diagnosis.gpus[0].name.find("(emulated)") != std::string::npos);
}

TEST_CASE("a driver without a GPU says so in its own words", "[doctor]") {
  Settings settings = bare_machine();
  settings.libcuda_path = FAKE_LIBCUDA_NOGPU;
  const Diagnosis diagnosis = diagnose(settings);
  CHECK_FALSE(piece(diagnosis, "NVIDIA driver").found);
  CHECK(piece(diagnosis, "NVIDIA driver").where == FAKE_LIBCUDA_NOGPU);
  CHECK(piece(diagnosis, "NVIDIA driver").problem ==
        "cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected");
  CHECK(diagnosis.gpus.empty());
}

TEST_CASE("broken and foreign pieces are reported with what is wrong", "[doctor]") {
  const TemporaryDirectory folder;
  const std::string broken = folder.file("broken.so");
  write_file(broken, std::string(4096, 'x'));
  Settings settings = bare_machine();
  settings.libcuda_path = broken;
  settings.nvjitlink_path = broken;
  settings.nvrtc_path = FAKE_LIBCUDA_GPU;
  settings.cublas_path = FAKE_LIBCUDA_GPU;
  settings.ptxas_path = "/bin/true";
  const Diagnosis diagnosis = diagnose(settings);
  for (const PieceFinding& finding : diagnosis.pieces) {
    INFO(finding.piece);
    CHECK_FALSE(finding.found);
  }
  CHECK(piece(diagnosis, "NVIDIA driver").problem.find("invalid ELF header") != std::string::npos);
  CHECK(piece(diagnosis, "NVIDIA driver").problem.find("(PTXGEN_LIBCUDA_PATH)") !=
        std::string::npos);
  CHECK(piece(diagnosis, "nvJitLink").problem.find("invalid ELF header") != std::string::npos);
  CHECK(piece(diagnosis, "NVRTC").problem ==
        std::string(FAKE_LIBCUDA_GPU) +
            " is not an NVRTC library: it has no function nvrtcVersion");
  CHECK(piece(diagnosis, "cuBLAS").problem ==
        "is not a cuBLAS library: it has no function cublasGetProperty");
  CHECK(piece(diagnosis, "ptxas").problem == "prints no version for --version");
}

TEST_CASE("the cache folder: there, to be made, impossible", "[doctor]") {
  const TemporaryDirectory folder;
  Settings settings = bare_machine();
  settings.cache_dir = folder.path();
  Diagnosis diagnosis = diagnose(settings);
  CHECK(piece(diagnosis, "cache folder").found);
  CHECK(piece(diagnosis, "cache folder").where == folder.path());

  settings.cache_dir = folder.file("a/b");
  diagnosis = diagnose(settings);
  CHECK_FALSE(piece(diagnosis, "cache folder").found);
  CHECK(piece(diagnosis, "cache folder").problem ==
        "does not exist yet; it is created when the first kernel is stored");
  CHECK_FALSE(std::filesystem::exists(settings.cache_dir));

  write_file(folder.file("file"), "x");
  settings.cache_dir = folder.file("file");
  CHECK(piece(diagnose(settings), "cache folder").problem == "is not a folder");
  settings.cache_dir = folder.file("file/below");
  CHECK(piece(diagnose(settings), "cache folder").problem.find("cannot be created in ") !=
        std::string::npos);
}
