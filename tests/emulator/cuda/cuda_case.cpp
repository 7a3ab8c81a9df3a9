// tests/emulator/cuda/cuda_case.cpp - runs CUDA C++ kernels as nvcc compiles them
#include "cuda_case.hpp"

#include <algorithm>

#include "nvcc.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {

namespace {

// splitmix64: from its published definition (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

std::uint64_t number_of(std::string_view text, std::uint64_t start) noexcept {
  std::uint64_t value = start;
  for (const char c : text) value = mixed(value + static_cast<unsigned char>(c) + 1);
  return value;
}

// sm_80 as most people build, and one of the other ways, another one for every seed.
std::vector<Build> builds_of_this_run(const CudaCase& which, std::string_view source) {
  // Without optimisation, nvcc moves accumulators between the wgmma of a group.
  if (which.specific) return {{which.min_sm, "default", true}};
  std::vector<Build> builds = builds_from(which.min_sm);
  if (full() || builds.size() <= 2) return builds;
  const std::size_t other = 1 + number_of(source, seed()) % (builds.size() - 1);
  return {builds[0], builds[other]};
}

}  // namespace

std::uint64_t Dice::bits() noexcept {
  state_ += 0x9e3779b97f4a7c15u;
  return mixed(state_);
}

std::uint32_t Dice::below(std::uint32_t end) noexcept {
  return static_cast<std::uint32_t>((bits() >> 32) * end >> 32);
}

std::int32_t Dice::between(std::int32_t first, std::int32_t last) noexcept {
  const auto span = static_cast<std::uint32_t>(last) - static_cast<std::uint32_t>(first) + 1;
  const std::uint32_t step = span == 0 ? static_cast<std::uint32_t>(bits()) : below(span);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(first) + step);
}

float Dice::uniform(float low, float high) noexcept {
  return low + (high - low) * (static_cast<float>(bits() >> 40) * 0x1p-24f);
}

std::vector<float> Dice::floats(std::size_t count, float low, float high) {
  std::vector<float> values(count);
  for (float& value : values) value = uniform(low, high);
  return values;
}

CudaRun::CudaRun(std::string name, std::string_view target, std::string_view ptx,
                 std::uint64_t schedule)
    : dice(seed()),
      name_(std::move(name)),
      schedule_(schedule),
      device_(emulator::default_gpu(target)),
      program_(emulator::Program::load(device_, ptx, name_)) {}

void CudaRun::check_true(bool holds, std::string_view what) {
  ++checks_;
  INFO(name_ << ": " << what);
  REQUIRE(holds);
}

void CudaRun::launch_bytes(std::string_view kernel, emulator::Dim3 grid, emulator::Dim3 block,
                           std::uint32_t shared_bytes,
                           const std::vector<std::vector<std::byte>>& arguments) {
  INFO(name_ << ": kernel " << kernel);
  const emulator::Program::Kernel* entry = program_.find_kernel(kernel);
  REQUIRE(entry != nullptr);
  REQUIRE(entry->parameters.size() == arguments.size());
  std::vector<std::byte> block_of_parameters(entry->parameter_bytes);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& parameter = entry->parameters[i];
    INFO("argument " << i);
    REQUIRE(parameter.bytes == arguments[i].size());
    REQUIRE(parameter.offset + parameter.bytes <= entry->parameter_bytes);
    std::copy(arguments[i].begin(), arguments[i].end(),
              block_of_parameters.begin() + parameter.offset);
  }
  emulator::Launch launch;
  launch.kernel = kernel;
  launch.grid = grid;
  launch.block = block;
  launch.dynamic_shared_bytes = shared_bytes;
  launch.cooperative = cooperative;
  launch.parameters = block_of_parameters;
  emulator::Options options;
  options.seed = schedule_;
  options.checks = watched;
  const emulator::Result result = emulator::run(program_, launch, options);
  ++launches_;
  printed_ = result.printed;
  counters_ = result.counters;

  std::string text;
  bool errors = false;
  for (const emulator::RunFinding& finding : result.findings) {
    if (finding.finding.severity == Severity::Error) errors = true;
    // Notes are no complaint; a warning not asked for is worth reading beside an error.
    if (finding.finding.severity != Severity::Note) text += emulator::to_text(finding) + "\n";
  }
  INFO(text);
  REQUIRE_FALSE(errors);
  REQUIRE(result.status == emulator::Status::Ok);
  REQUIRE(result.counters.warp_instructions > 0);
}

void run_case(const CudaCase& which, const std::function<void(CudaRun&)>& host) {
  const Nvcc nvcc;
  if (!nvcc.found()) {
    skip("no nvcc found: install the CUDA toolkit or set PTXGEN_CUDA_PATH to where it is");
    return;
  }
  const std::string source = full() ? std::string(which.file) : Nvcc::together(which.file);
  const std::vector<Build> builds = builds_of_this_run(which, source);
  const std::vector<std::string> texts = nvcc.compile(source, builds);
  for (std::size_t i = 0; i < builds.size(); ++i) {
    for (const std::uint64_t schedule : {std::uint64_t{0}, number_of(which.file, seed())}) {
      const std::string name = std::string(which.file) + " " + target_of(builds[i]) + " " +
                               std::string(builds[i].variant) + ", schedule " +
                               std::to_string(schedule);
      INFO(name);
      CudaRun run(name, target_of(builds[i]), texts[i], schedule);
      host(run);
      REQUIRE(run.launches() > 0);
      REQUIRE(run.checks() > 0);
    }
  }
}

}  // namespace ptxgen::test
