// src/cli/commands/explanation.hpp - what `explain` finds out about a module
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::cli {

struct Subject {
  std::string name;
  ptx::Module module;
  ptx::Gpu gpu;
  /// Known of the library's kernels.
  std::optional<LaunchGeometry> geometry;
  std::optional<KernelCost> cost;
  /// Of `--block`, before what the PTX's directives name.
  std::optional<std::array<std::uint32_t, 3>> block;
};

/// Registers of a thread and where the number comes from.
struct RegisterUse {
  std::uint32_t count = 0;
  std::string source;  ///< "nvJitLink 13.0", "estimate: values alive at once"
  bool assembled = false;
  std::uint64_t spill_stores = 0;
  std::uint64_t spill_loads = 0;
  std::uint32_t max_alive = 0;  ///< 32-bit registers alive at once in the text
  std::uint32_t max_alive_line = 0;
};

struct Occupancy {
  std::uint32_t threads = 0;  ///< of a block
  std::uint32_t blocks = 0;   ///< on a multiprocessor at once
  std::uint32_t warps = 0;
  std::uint32_t max_warps = 0;
  std::string limited_by;  ///< "registers", "shared memory", "threads", "blocks"
};

struct KernelExplanation {
  std::string name;
  analysis::MemoryReport memory;
  RegisterUse registers;
  std::uint64_t static_shared = 0;
  std::uint64_t dynamic_shared = 0;
  std::optional<Occupancy> occupancy;  ///< none: the block's size is not known
};

/// A lower bound: what must be moved, at the memory's full bandwidth.
struct Prediction {
  std::uint64_t bytes = 0;
  double microseconds = 0;
};

struct Explanation {
  Subject subject;  ///< its module after the passes
  optimize::PipelineReport passes;
  std::vector<KernelExplanation> kernels;
  std::optional<Prediction> prediction;
};

/// Throws `UsageError` where the subject's block is not the one that the PTX requires.
[[nodiscard]] Explanation explain(Subject subject, const optimize::PassOptions& passes);
/// `all`: every decision of every pass.
[[nodiscard]] std::string to_text(const Explanation& explanation, bool all);
[[nodiscard]] nlohmann::json to_json(const Explanation& explanation);

}  // namespace ptxgen::cli
