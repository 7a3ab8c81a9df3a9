// tests/kernels/attention_run.hpp - decode attention on the emulator, and in fp64
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels/attention/decode.hpp"

namespace ptxgen::test {

/// Operands before they are rounded to their types; k and v for all positions.
struct AttentionData {
  std::vector<double> q, k, v;
  std::vector<std::uint32_t> lengths;
  float scale = 0;
  float cap = 0;
};
/// Unit-normal numbers; every row is `max_seq` long.
[[nodiscard]] AttentionData normal_data(const AttentionDecode& spec, std::uint64_t seed);
/// The same numbers as their types store them.
[[nodiscard]] AttentionData as_stored(const AttentionDecode& spec, const AttentionData& data);

/// In fp64, written apart from the library's own reference.
struct AttentionExact {
  std::vector<double> out;
  std::vector<double> magnitude;  ///< weighted means of |v|
  double largest = 0;             ///< sum of |q k| times the scale, over all that counts
};
[[nodiscard]] AttentionExact exact_attention(const AttentionDecode& spec,
                                             const AttentionData& data);

struct AttentionOutcome {
  std::vector<double> out;
  std::vector<std::byte> bits;
  std::string findings;  ///< of the sanitizers, a line each, and what else is wrong
  emulator::Counters counters;
};

/// A launch on a device of its own. Buffers have their exact sizes, inputs are protected, and
/// positions of the cache that do not count were never written.
class AttentionRunner {
 public:
  AttentionRunner(const AttentionDecode& spec, const AttentionData& data,
                  std::string_view target = "sm_90");
  /// One launch, with every check. The first finds the output and the parts never written, later
  /// ones find NaN in both; tickets stay as the last launch left them.
  [[nodiscard]] AttentionOutcome run(const emulator::Options& options = {});
  /// New lengths for the same memory, and the positions that they add.
  void set_lengths(const std::vector<std::uint32_t>& lengths);
  [[nodiscard]] const std::string& ptx() const noexcept { return ptx_; }

 private:
  [[nodiscard]] std::uint64_t place(std::string_view name, std::span<const std::byte> bytes);
  void write_positions(std::uint64_t to, const std::vector<double>& values);
  void prepare();

  AttentionDecode spec_;
  AttentionData data_;
  emulator::Device device_;
  std::string ptx_;
  emulator::Program program_;
  std::uint64_t q_ = 0, k_ = 0, v_ = 0, lengths_ = 0, out_ = 0, workspace_ = 0;
  bool fresh_ = true;
};

/// Sum of squared differences over the sum of squares.
[[nodiscard]] double nmse(const std::vector<double>& got, const std::vector<double>& expected);

}  // namespace ptxgen::test
