// bench/gemv/measure.hpp - times arms side by side and checks every launch
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gemv/arms.hpp"
#include "bench/gemv/statistics.hpp"

namespace ptxgen::gemv_bench {

enum class Metric : std::uint8_t {
  Isolated,  ///< one launch between two events, its matrix not in the L2
  Chained,   ///< a captured graph of `Rotation::chain` launches, divided by their number
  Stream,    ///< as many launches one after the other in a stream, by the host's clock, divided
};
[[nodiscard]] std::string_view to_string(Metric metric) noexcept;  ///< "isolated", ...

struct MeasureOptions {
  std::size_t samples = 200;  ///< of each metric and arm
  std::vector<Metric> metrics = {Metric::Isolated, Metric::Chained};
  bool keep_samples = false;
};

struct MetricResult {
  Metric metric = Metric::Isolated;
  Statistics us;              ///< microseconds of a launch
  std::uint64_t checked = 0;  ///< launches with a checked result
  /// Right results with other bits than the first launch on that matrix.
  std::uint64_t differing = 0;
  std::vector<double> samples;  ///< in the order in which they were taken, if they are kept
};

/// The measurements of an arm. An arm with a wrong result, or that cannot be launched, has no
/// times.
struct ArmResult {
  Arm arm;             ///< without its functions
  std::string wrong;   ///< launch, matrix and number of wrong elements, or empty
  std::string failed;  ///< the error of its first launch or capture, or empty
  double nmse = 0;     ///< the worst of the first results, against fp64
  double worst = 0;    ///< their largest error / bound
  std::vector<MetricResult> metrics;
  [[nodiscard]] const MetricResult* find(Metric metric) const noexcept;
};

/// Reads other memory before each sample. The device is busy and its caches hold other data while
/// the host queues the timed launch. Without it the time of an isolated launch would be the time of
/// the host's call.
class Lead {
 public:
  Lead(const Context& context, const ArmMaker& maker, std::uint64_t bytes);
  void queue(const ptxgen::Stream& stream) const;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return memory_.bytes(); }

 private:
  Arm arm_;
  Buffer<b8> memory_, sums_;
};

/// Launches every arm once on each matrix and compares with fp64; then takes `samples` rounds of
/// each metric, in each round every arm once (A B A B), isolated launches on the next matrix of the
/// rotation. After every sample, outside of its time, all results in it are compared, bit for bit
/// with the first, and where they differ with fp64 again. Outputs are spoiled before each sample.
///
/// `verify` gives the word sums of a copy (ArmMaker::roofline_arm of the matrix's bytes).
/// Throws what launches throw, once an arm's first has worked, and where the context is lost.
[[nodiscard]] std::vector<ArmResult> measure_arms(const Context& context, const GemvData& data,
                                                  std::vector<Arm> arms, const Arm& verify,
                                                  const Lead& lead, const MeasureOptions& options);

}  // namespace ptxgen::gemv_bench
