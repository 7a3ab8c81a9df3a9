// bench/gemv/run.hpp - measures a list of problems on a device
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/gemv/ceilings.hpp"
#include "bench/gemv/results.hpp"

namespace ptxgen::gemv_bench {

/// What is to be measured, and how.
struct BenchOptions {
  std::vector<BenchShape> shapes;
  std::vector<GemvLayout> layouts;
  std::vector<ElementType> types;
  std::vector<std::string> arms;  ///< beside "planned", as arm_choice gives them
  MeasureOptions measure;
  std::uint64_t rotation_bytes = 0;  ///< of all matrices of a problem together, at least
  std::uint32_t min_chain = 64;
  std::uint64_t lead_bytes = 0;  ///< read before each sample
  bool ceilings = true;
  CeilingSizes ceiling_sizes;
  std::uint64_t seed = 0;
  double seconds = 0;  ///< begin no problem after so many; 0: no limit
};

/// What protocol and emulator call for: on a GPU 200 samples, rotation over four times the L2 and
/// chains of 64; on the emulator as little as shows that everything works.
[[nodiscard]] BenchOptions default_bench_options(const DeviceInfo& device);

/// The description of the device by its driver; `name` is its name for `--device`.
[[nodiscard]] BenchMachine machine_of(const Device& device, const std::string& name);

/// The plain product of a shape: weights, x and y of one type, aligned to 16 bytes.
[[nodiscard]] GemvProblem bench_problem(const BenchShape& shape, GemvLayout layout,
                                        ElementType type);

/// Measures all shapes in all layouts and types: shape by shape, so that what is compared with each
/// other is measured one after the other. A problem that fails says so in its result and does not
/// stop the others, unless it has taken the context with it. `progress` gets what comes next and
/// how far it is.
using BenchProgress = std::function<void(std::size_t done, std::size_t all, const std::string&)>;
[[nodiscard]] BenchRun run_bench(const Device& device, const BenchMachine& machine,
                                 const BenchOptions& options, const Settings& settings,
                                 const BenchProgress& progress);

}  // namespace ptxgen::gemv_bench
