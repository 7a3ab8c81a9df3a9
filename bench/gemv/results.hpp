// bench/gemv/results.hpp - everything that a run of gemv-bench found
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/gemv/measure.hpp"

namespace ptxgen::gemv_bench {

/// What was run on, as far as the driver tells.
struct BenchMachine {
  std::string device;   ///< "cuda:0", "emulator"
  std::string gpu;      ///< "NVIDIA H200"
  std::string driver;   ///< "13.0", or "emulated 13.0"
  std::string target;   ///< "sm_90"
  std::string table;    ///< the row of the GPU table that the planner used
  std::string version;  ///< of ptxgen
  std::string nvrtc;    ///< empty where it was not used
  std::string cublas;
  std::string started;  ///< "2026-11-21 19:40:00 UTC"
  std::uint32_t multiprocessors = 0;
  std::uint32_t clock_khz = 0;  ///< the most that the driver says
  std::uint64_t l2_bytes = 0;
  std::uint64_t memory_bytes = 0;
  double datasheet_gb_per_s = 0;
  bool emulated = true;
};

/// A limit of the device that no GEMV can pass, measured in the same process.
struct Ceiling {
  std::string name;         ///< "read", "copy", "hot-read", "launch-stream", "launch-graph"
  std::string doc;          ///< what was timed
  std::uint64_t bytes = 0;  ///< that a launch moves; 0 for the launches
  Statistics us;
  std::string wrong;    ///< empty, or what was wrong with what was read
  std::string missing;  ///< empty, or why it cannot be had here
  [[nodiscard]] double gb_per_s() const noexcept {
    return us.median > 0 ? static_cast<double>(bytes) / us.median * 1e-3 : 0;
  }
};

/// One problem and all that was measured for it.
struct ShapeResult {
  BenchShape shape;
  GemvProblem problem;
  Rotation rotation;
  std::vector<ArmResult> arms;
  std::vector<MissingArm> missing;
  std::string failed;  ///< empty, or what stopped it
  [[nodiscard]] const ArmResult* find(std::string_view arm) const noexcept;
  /// The median of an arm in microseconds; 0 if there is none.
  [[nodiscard]] double median(std::string_view arm, Metric metric) const noexcept;
  /// The least of the medians of cuBLAS's ways; 0 if there is none.
  [[nodiscard]] double best_cublas(Metric metric) const noexcept;
  /// Bytes of its matrix.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return matrix_bytes(problem); }
};

/// A claim and whether a run confirms it.
struct Verdict {
  enum class Says : std::uint8_t { Pass, Fail, NotApplicable };
  std::string id;     ///< "E1", "H4", "P2"
  std::string claim;  ///< with its bound
  Says says = Says::NotApplicable;
  std::string measured;  ///< the figure, or why there is none
};
[[nodiscard]] std::string_view to_string(Verdict::Says says) noexcept;  ///< "pass", "fail", "n/a"

struct BenchRun {
  BenchMachine machine;
  std::size_t samples = 0;
  std::uint64_t seed = 0;
  std::uint64_t rotation_bytes = 0;  ///< asked for
  std::uint64_t lead_bytes = 0;
  std::vector<Ceiling> ceilings;
  std::vector<ShapeResult> shapes;
  std::vector<std::string> left_out;  ///< problems for which the time did not suffice, as text
  std::vector<Verdict> verdicts;      ///< of the claims (`verdicts_of`)
  [[nodiscard]] const Ceiling* ceiling(std::string_view name) const noexcept;
  [[nodiscard]] const ShapeResult* find(GemvLayout layout, ElementType type, std::uint32_t k,
                                        std::uint32_t n) const noexcept;
  /// Whether everything that was measured was right and nothing failed.
  [[nodiscard]] bool right() const noexcept;
};

// Texts -----------------------------------------------------------------------------------------

/// The JSON document, without samples unless they were kept.
[[nodiscard]] std::string json_of(const BenchRun& run);
/// One line for each problem, arm and metric; the first has the names of the columns.
[[nodiscard]] std::string csv_of(const BenchRun& run);
/// A page for people, in Markdown.
[[nodiscard]] std::string page_of(const BenchRun& run);

}  // namespace ptxgen::gemv_bench
