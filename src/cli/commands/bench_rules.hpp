// src/cli/commands/bench_rules.hpp - work models, validation and CSV rows of bench
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::cli {

/// Every report of the emulator's rates ends with it.
inline constexpr std::string_view kEmulatedNote =
    "these rates are the emulator's on this host; they say nothing about a GPU";

enum class BenchOp : std::uint8_t { Vadd, Copy, FmaRpt };
enum class BenchType : std::uint8_t { F32, F16, Bf16 };

[[nodiscard]] std::string_view to_string(BenchOp op) noexcept;      ///< "vadd", "copy", "fma_rpt"
[[nodiscard]] std::string_view to_string(BenchType type) noexcept;  ///< "fp32", "fp16", "bf16"
/// Nothing for any other name.
[[nodiscard]] std::optional<BenchOp> bench_op(std::string_view name) noexcept;
[[nodiscard]] std::optional<BenchType> bench_type(std::string_view name) noexcept;
[[nodiscard]] unsigned element_bytes(BenchType type) noexcept;

/// What one launch does.
struct BenchWork {
  BenchOp op = BenchOp::Vadd;
  BenchType type = BenchType::F32;
  std::uint64_t n = 0;
  std::uint64_t k = 0;  ///< repetitions of fma_rpt
};

/// The work models of one launch: vadd 3 n E bytes and n operations, copy 2 n E and none, fma_rpt 2
/// n E and 2 k n, E the bytes of an element. Exact for n and k below 2^31.
[[nodiscard]] std::uint64_t bytes_model(const BenchWork& work) noexcept;
[[nodiscard]] std::uint64_t flops_model(const BenchWork& work) noexcept;

/// Work over time of all launches, in 10^9 units per second; 0 for no time.
[[nodiscard]] double achieved(std::uint64_t per_launch, std::uint64_t launches,
                              double total_ms) noexcept;

/// Number of checked elements without --validate-all.
inline constexpr std::uint64_t kValidateSamples = 1024;
/// The checked elements: up to n = kValidateSamples all, above that every
/// `(n - 1) / (kValidateSamples - 1)`-th from 0 on and n - 1. Sorted, each once; empty for n = 0.
[[nodiscard]] std::vector<std::uint64_t> validation_indices(std::uint64_t n);
/// Every one.
[[nodiscard]] std::vector<std::uint64_t> all_indices(std::uint64_t n);

/// The result of a validation.
struct Validation {
  std::uint64_t compared = 0;
  std::uint64_t wrong = 0;
  std::uint64_t first_wrong = 0;  ///< index of the first wrong element, if any is
  double max_error = 0;  ///< largest |got - expected| of numbers; infinite if one is not a number
  [[nodiscard]] bool ok() const noexcept { return compared != 0 && wrong == 0; }
};

/// Absolute and relative tolerance of fma_rpt.
inline constexpr double kTolerance = 1e-4;

// Each compares the elements at `indices` with the results that the inputs there give.

/// Equal bits: a NaN's payload counts.
[[nodiscard]] Validation validate_copy(std::span<const std::uint32_t> in,
                                       std::span<const std::uint32_t> out,
                                       std::span<const std::uint64_t> indices);
/// Equal bits of the correctly rounded sum, or both NaN. 16-bit elements are given as their bits.
[[nodiscard]] Validation validate_vadd(std::span<const float> a, std::span<const float> b,
                                       std::span<const float> c,
                                       std::span<const std::uint64_t> indices);
[[nodiscard]] Validation validate_vadd(BenchType type, std::span<const std::uint16_t> a,
                                       std::span<const std::uint16_t> b,
                                       std::span<const std::uint16_t> c,
                                       std::span<const std::uint64_t> indices);
/// Within `kTolerance + kTolerance * |expected|` of the fused reference. NaN against a number,
/// infinities of different sign, and infinity against a number are wrong.
[[nodiscard]] bool within_tolerance(float got, float expected) noexcept;
/// Equal bits as the fused reference, or both NaN, since both sides round each step once; what is
/// within the tolerance but differs in bits is wrong too.
[[nodiscard]] Validation validate_fma(std::span<const float> in, std::span<const float> out,
                                      std::int32_t k, float a, float b,
                                      std::span<const std::uint64_t> indices);

/// A line of the CSV file. docs/bench.md has type, unit and meaning of each column.
struct BenchRow {
  std::string device;  ///< the GPU's name
  std::string driver;  ///< "13.0", or "emulated 13.0"
  std::string ptx_hash;
  BenchWork work;
  std::uint32_t block = 0;
  std::uint32_t grid = 0;
  std::uint64_t iters = 0;
  std::uint64_t warmup = 0;
  double time_ms_total = 0;
  Validation validation;
  std::string timing_source;  ///< "cuda_events" or "host"
  float fma_a = 0;
  float fma_b = 0;
};

/// The first line of every file, with its line end. Columns are only ever added at the end.
[[nodiscard]] std::string_view csv_header() noexcept;
/// One line with its line end: numbers that can be read back exactly, text quoted where needed (RFC
/// 4180).
[[nodiscard]] std::string csv_line(const BenchRow& row);

}  // namespace ptxgen::cli
