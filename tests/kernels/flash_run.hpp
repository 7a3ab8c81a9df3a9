// tests/kernels/flash_run.hpp - attention of many queries on the emulator, and in fp64
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels/attention/flash.hpp"

namespace ptxgen::test {

/// Operands before they are rounded to their types; k and v for all positions.
struct FlashData {
  std::vector<double> q, k, v;
  std::vector<std::uint32_t> key_lengths, query_lengths;  ///< of each row
  std::vector<std::uint32_t> table;
  float scale = 0;
};
/// Unit-normal numbers, full lengths, pages in an order drawn from the seed.
[[nodiscard]] FlashData normal_data(const FlashProblem& problem, std::uint64_t seed);
/// The same numbers as their types store them.
[[nodiscard]] FlashData as_stored(const FlashProblem& problem, const FlashData& data);
/// In fp64, written apart from the library's own reference.
[[nodiscard]] std::vector<double> exact_attention(const FlashProblem& problem,
                                                  const FlashData& data);
/// Where element 0 of that query or key is, in q and out, or in k and v.
[[nodiscard]] std::size_t query_place(const FlashProblem& problem, std::size_t row,
                                      std::size_t head, std::size_t query);
[[nodiscard]] std::size_t key_place(const FlashProblem& problem, const FlashData& data,
                                    std::size_t row, std::size_t kv_head, std::size_t key);

struct FlashOutcome {
  std::vector<double> out;
  std::vector<std::byte> bits;
  std::string findings;  ///< of all checks, a line each
  bool stopped = false;  ///< by a fault
  emulator::Counters counters;
};

/// A launch on a device of its own. Buffers have their exact sizes, inputs are protected; queries
/// and positions beyond their row's length were never written, nor was the output.
class FlashRunner {
 public:
  template <class K>
  FlashRunner(const K& kernel, const FlashData& data, std::string_view target = "sm_90")
      : FlashRunner(kDescription<K>, kernel.problem, kernel.geometry(),
                    kernel.build(ptx::target(target)).module(), data, target) {
    pack(&kernel);
  }
  /// The same with another module in its place.
  template <class K>
  FlashRunner(const K& kernel, const ptx::Module& module, const FlashData& data,
              std::string_view target = "sm_90")
      : FlashRunner(kDescription<K>, kernel.problem, kernel.geometry(), module, data, target) {
    pack(&kernel);
  }
  [[nodiscard]] FlashOutcome run(const emulator::Options& options = {});

 private:
  FlashRunner(const KernelDescription& description, const FlashProblem& problem,
              const LaunchGeometry& geometry, const ptx::Module& module, const FlashData& data,
              std::string_view target);
  void pack(const void* kernel);
  void write_rows(const FlashData& data);

  const KernelDescription& description_;
  FlashProblem problem_;
  LaunchGeometry geometry_;
  float scale_ = 0;
  emulator::Device device_;
  emulator::Program program_;
  std::uint64_t q_ = 0, k_ = 0, v_ = 0, key_lengths_ = 0, query_lengths_ = 0, table_ = 0, out_ = 0;
  std::vector<std::byte> block_;
};

/// Sum of squared differences over the sum of squares; infinite where a result is not finite.
[[nodiscard]] double nmse_of(const std::vector<double>& got, const std::vector<double>& expected);

}  // namespace ptxgen::test
