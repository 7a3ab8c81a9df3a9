// tests/kernels/gemv_grid_run.hpp - points of the grid on the emulator
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gemv_grid_cases.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"

namespace ptxgen::test {

/// What a launch is given, each element as its bits. `a` has the matrix with its gaps, which the
/// device does not get; `y` is what is there before.
struct GemvData {
  std::vector<std::byte> a, x, y, bias, residual;
  float alpha = 1;
  float beta = 0;
};
/// Random numbers in [-1, 1], rounded to the types.
[[nodiscard]] GemvData make_data(const GemvCase& point);

/// Element `i` of a list, as the number that it is.
[[nodiscard]] float element(std::span<const std::byte> list, ElementType type, std::size_t i);
/// Rounds to nearest even and stores.
void set_element(std::span<std::byte> list, ElementType type, std::size_t i, float value);

/// In fp64, written apart from the library's own reference: what y is before it is rounded to its
/// type, and the sum of the absolute values of all terms.
struct GemvExact {
  std::vector<double> y, magnitude;
};
[[nodiscard]] GemvExact exact_gemv(const GemvProblem& problem, const GemvData& data);

/// What the epilogue makes of f32 sums, step by step in f32 as the problem says; elements of y.
[[nodiscard]] std::vector<std::byte> epilogue(const GemvProblem& problem, const GemvData& data,
                                              std::span<const float> sums);
/// The same point with f32 sums as its result.
[[nodiscard]] GemvCase bare(const GemvCase& point);

/// What a launch left.
struct GemvOutcome {
  std::vector<std::byte> y;
  std::string findings;  ///< of the sanitizers, a line each, and what else is wrong
  emulator::Counters counters;
  [[nodiscard]] std::vector<float> floats() const;  ///< of an f32 y
};

/// A point loaded on a device of its own: each buffer ends where its last element does, begins
/// after bytes that are watched (outputs) or were never written (inputs), and inputs are
/// protected. Gaps between rows were never written.
class GemvRunner {
 public:
  GemvRunner(const GemvCase& point, const GemvData& data);
  /// Another module instead of the one that the plan builds.
  GemvRunner(const GemvCase& point, const GemvData& data, const ptx::Module& module);

  /// One launch, with every check. The first finds y and the partial sums never written, later ones
  /// find NaN in both. Tickets stay as the last launch left them.
  [[nodiscard]] GemvOutcome run(const emulator::Options& options = {});
  /// What runs, as text.
  [[nodiscard]] const std::string& ptx() const noexcept { return ptx_; }

 private:
  struct Buffer {
    std::uint64_t start = 0;    ///< of the allocation
    std::uint64_t address = 0;  ///< of the first element, 0 if there is none
    std::uint64_t bytes = 0;
  };
  Buffer place(const char* name, std::uint64_t bytes, std::uint32_t offset);
  void put_matrix();
  void put_repacked();
  void prepare();
  void watch(const Buffer& buffer, const char* name, std::string& findings) const;

  GemvCase point_;
  GemvData data_;
  emulator::Device device_;
  std::string ptx_;
  emulator::Program program_;
  Buffer a_, x_, y_, bias_, residual_, workspace_;
  bool fresh_ = true;
};

}  // namespace ptxgen::test
