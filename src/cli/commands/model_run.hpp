// src/cli/commands/model_run.hpp - a model on a device, for a command
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/args/model_options.hpp"
#include "cli/commands/launch_statistics.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/model/model.hpp"
#include "ptxgen/model/session.hpp"
#include "ptxgen/model/tokenizer.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/support/trace.hpp"

namespace ptxgen::cli {

using Clock = std::chrono::steady_clock;
[[nodiscard]] double seconds_since(Clock::time_point begin);

/// A model file and a device; the model on the device after `load`.
class ModelRun {
 public:
  /// Opens both. Throws `UsageError`, and as `gguf::File`, `ModelConfig::read` and `Device::open`.
  explicit ModelRun(const ModelOptions& options);

  [[nodiscard]] const model::ModelConfig& config() const noexcept { return config_; }
  /// Throws `Error` if the file has no tokenizer that is supported; its message ends with `advice`.
  [[nodiscard]] const model::Tokenizer& tokenizer(std::string_view advice);
  /// The same, or null.
  [[nodiscard]] const model::Tokenizer* find_tokenizer();
  /// Tokens that end a text: the tokenizer's, or the file's `tokenizer.ggml.eos_token_id`.
  [[nodiscard]] std::vector<std::uint32_t> end_tokens();
  /// Throws `UsageError` for no tokens, and for an id that the vocabulary does not have.
  void check_tokens(std::string_view option, std::span<const std::uint32_t> tokens) const;
  /// Positions of a session with those options. Throws `UsageError` for a `--context` that the
  /// model does not have.
  [[nodiscard]] std::uint32_t context_size(std::uint32_t wanted) const;

  /// Copies the weights to the device, with progress on standard error. Throws as `Model`.
  const model::Model& load();
  /// A session of the loaded model, with the options of the prefill from the command line. Throws
  /// as `Session`.
  [[nodiscard]] model::Session session(model::SessionOptions options);
  /// Of both.
  [[nodiscard]] double load_seconds() const noexcept { return load_seconds_; }

  [[nodiscard]] const Context& context() const noexcept { return context_; }
  [[nodiscard]] const DeviceInfo& device() const noexcept { return device_.info(); }
  /// Of the device, for spans of the command.
  [[nodiscard]] const Trace& trace() const noexcept { return device_.trace(); }
  /// The summary of `--flame`, after the work.
  void report_profile() const { profile_.report(trace()); }
  [[nodiscard]] FindingCounts findings() const { return device_.finding_counts(); }
  [[nodiscard]] bool emulated() const noexcept { return choice_.emulator; }
  /// Whether times are those of a GPU.
  [[nodiscard]] bool on_gpu() const noexcept { return !choice_.emulator && !choice_.host; }
  /// "emulator", "cuda:0"
  [[nodiscard]] const std::string& device_name() const noexcept { return choice_.name; }
  /// Whether instructions of later launches are counted, which takes time; on a GPU they never are.
  void count_instructions(bool on);
  /// Launches since the last call; none on a GPU.
  [[nodiscard]] std::vector<KernelStatistics> take_statistics();

 private:
  void read_tokenizer();

  Profile profile_;
  Settings settings_;
  bool repack_;
  ElementType prefill_type_;
  std::uint32_t prefill_rows_;
  DeviceChoice choice_;
  std::optional<gguf::File> file_;  // until `load`
  model::ModelConfig config_;
  Device device_;
  Context context_;
  std::optional<LaunchStatistics> statistics_;
  std::optional<model::Model> model_;
  std::optional<model::Tokenizer> tokenizer_;
  std::optional<Error> tokenizer_error_;
  std::vector<std::uint32_t> file_ends_;
  double load_seconds_ = 0;
};

/// Called after each chunk of a prompt with the logits of its tokens, where they were asked for.
/// Returns whether to continue.
using ChunkSink = std::function<bool(std::span<const float> logits)>;
/// Appends tokens in the chunks that the session computes together, with progress on standard
/// error. Waits for each chunk.
void prefill_in_chunks(model::Session& session, std::span<const std::uint32_t> tokens,
                       bool all_logits, const ChunkSink& after);

/// The largest resident set of this process so far, in bytes; 0 if the system does not say.
[[nodiscard]] std::uint64_t peak_resident_bytes();

/// kFound after findings of severity error.
[[nodiscard]] ExitCode verdict(const FindingCounts& findings) noexcept;
/// Whether the error is one of the run, not of its call: a fault of the device, or a finding that
/// PTXGEN_STRICT=1 makes an error.
[[nodiscard]] bool is_fault(const Error& error);

}  // namespace ptxgen::cli
