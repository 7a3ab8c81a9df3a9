// ptxgen/runtime/launch/verify.hpp - a described kernel against reference and clock
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/check/sizes.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

struct VerifyOptions {
  std::uint64_t seed = 1;  ///< of the inputs
  /// Elements (blocks of a block format) between an address aligned to 256 bytes and each operand.
  /// For an operand with an alignment of its own: the smallest such steps that keep it.
  std::uint32_t offset = 0;
  /// Each output that may be identical to an input of its type and size is that input.
  bool in_place = false;
  /// Also launches with parts of each input of floats changed, up to four times an input, and
  /// compares which outputs change with those of the reference: findings "lost-dependence" and
  /// "false-dependence". Nothing for a kernel that reads what it writes. Runs `gates::sizes` on the
  /// kernel's code.
  bool dependence = false;
  /// Numbers of scalars; others are random.
  std::vector<OperandValue> scalars = {};
};

/// One call of a kernel, compared element by element.
struct Verification {
  std::string shape;           ///< "k = 5, n = 7"
  std::string kernel;          ///< that was launched: "gemv_coalesced"
  std::string implementation;  ///< of a family
  std::string reason;          ///< for that choice
  std::uint64_t compared = 0;  ///< elements of all outputs
  std::uint64_t wrong = 0;     ///< of these, outside their bound
  std::string first_wrong;     ///< "y[3] is 1.5, expected 2 +- 1e-07"
  double worst_share = 0;      ///< largest error / bound; 0 for exact results
  double worst_bound = 0;      ///< the bound of that element
  double max_error = 0;        ///< largest |result - reference|
  double nmse = 0;             ///< sum of squared errors / sum of squares of the reference
  std::uint64_t outside = 0;   ///< bytes around the operands, or of inputs, that were changed
  std::vector<std::string> findings;  ///< errors and warnings of the emulated device
  std::optional<Error> error;         ///< what building, loading or launching threw
  /// "inputs", "upload", "launch" (with loading), "run", "download", "reference", "compare".
  StageTimes stages;

  [[nodiscard]] bool ok() const noexcept {
    return compared != 0 && wrong == 0 && outside == 0 && findings.empty() && !error;
  }
  /// Of `error`; empty if there is none.
  [[nodiscard]] const char* error_text() const noexcept { return error ? error->what() : ""; }
};

/// Launches the kernel on random inputs and compares each output with the reference. Outputs are
/// NaN before, unless the kernel reads them; guard bytes around every operand, and the inputs, must
/// be unchanged after it. `values` are in the order of the parameters. Deterministic for a seed.
/// Errors of the kernel are part of the result. Throws `Error` (Stage::Build, "bad-parameter").
[[nodiscard]] Verification verify(const Launcher& launcher, const Context& context,
                                  const KernelDescription& kernel,
                                  std::span<const std::uint64_t> values,
                                  const VerifyOptions& options = {});

/// The kernel's numbers of elements, with what its parameters of the same names are multiples of.
[[nodiscard]] std::vector<gates::SizeDeclaration> declared_sizes(const KernelDescription& kernel);

struct BenchmarkOptions {
  std::uint64_t launches = 100;  ///< of a round, timed together
  std::uint32_t rounds = 5;
  std::uint64_t warmup = 10;  ///< launches before the first round
  /// A round is one launch with cold caches: before it, other memory is read. After it comes a copy
  /// of as many bytes as the launch moves, in the same way.
  bool cold = false;
  std::uint64_t lead_bytes = 0;  ///< cold: of that memory; 0: twice the L2, emulated 4096
  VerifyOptions operands = {};
  /// After each round one of cuBLAS, found by these settings, with the same operands and compared
  /// with the same reference; for the kernels of the family gemm.
  std::optional<Settings> cublas{};
};

/// A kernel's time.
struct Benchmark {
  /// Of a launch before, and of the results of each round.
  Verification verification;
  std::vector<double> microseconds;  ///< per launch, one for each round; empty if a result is wrong
  std::vector<double> copy_microseconds;    ///< cold: of a copy after the launch of each round
  std::uint64_t copy_bytes = 0;             ///< that such a copy reads and writes
  std::uint64_t lead_bytes = 0;             ///< read before each of them
  std::vector<double> cublas_microseconds;  ///< per product of cuBLAS, one for each round
  Verification cublas;                      ///< of those products; its `error`: why there is none
  std::string cublas_version;               ///< "13.0.2"
  KernelCost cost;                          ///< of one launch
  LaunchGeometry geometry;

  /// Microseconds per launch, per copy, and per product of cuBLAS; 0 if nothing was timed.
  [[nodiscard]] double median() const;
  [[nodiscard]] double copy_median() const;
  [[nodiscard]] double cublas_median() const;
};

/// Verifies the kernel, then times rounds of launches of a `LaunchPlan` between two events. Before
/// each round the operands are those of the verification, outputs NaN; after it the results are
/// compared with the reference (of one more launch, if launches read what they write). Time on the
/// emulated device is the host's. Throws `Error`: (Stage::Build) "bad-parameter", (Stage::Launch)
/// "arguments" for 0 launches or rounds, or several launches of a cold round.
[[nodiscard]] Benchmark benchmark(const Launcher& launcher, const Context& context,
                                  const KernelDescription& kernel,
                                  std::span<const std::uint64_t> values,
                                  const BenchmarkOptions& options = {});

}  // namespace ptxgen::inline v0
