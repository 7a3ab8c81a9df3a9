// src/cli/commands/model_run.cpp - a model on a device, for a command
#include "cli/commands/model_run.hpp"

#ifndef _WIN32
#include <sys/resource.h>
#endif

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "cli/output/run_report.hpp"
#include "cli_common/files.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

namespace {

Settings settings_of(const ModelOptions& options, Profile& profile) {
  check_writable("-o", options.output);
  Settings settings = Settings::from_environment();
  profile.apply(settings);
  return settings;
}

}  // namespace

ModelRun::ModelRun(const ModelOptions& options)
    : profile_(options.profile),
      settings_(settings_of(options, profile_)),
      repack_(options.repack),
      prefill_type_(options.type_of_prefill()),
      prefill_rows_(options.prefill_rows),
      choice_(choose_device(options.device.device, options.emulator_only(), settings_)),
      file_(options.file),
      config_(model::ModelConfig::read(*file_)),
      device_(options.device.open(choice_, settings_)),
      context_(device_) {
  if (emulated()) {
    emulator::Options launches = driver::emulated::default_options();
    launches.checks = options.rules();
    statistics_.emplace(context_, launches);
  }
  read_tokenizer();
}

void ModelRun::read_tokenizer() {
  try {
    tokenizer_ = model::Tokenizer::read(*file_);
  } catch (const Error& error) {
    tokenizer_error_ = error;
  }
  const gguf::Value* const eos = file_->find("tokenizer.ggml.eos_token_id");
  const auto id = eos == nullptr ? std::nullopt : eos->unsigned_integer();
  if (id && *id < config_.vocabulary) file_ends_ = {static_cast<std::uint32_t>(*id)};
}

const model::Tokenizer& ModelRun::tokenizer(std::string_view advice) {
  if (tokenizer_) return *tokenizer_;
  Error error = *tokenizer_error_;
  if (error.message.find("--tokens") == std::string::npos) error.message += advice;
  throw error.refresh();
}

const model::Tokenizer* ModelRun::find_tokenizer() { return tokenizer_ ? &*tokenizer_ : nullptr; }

std::vector<std::uint32_t> ModelRun::end_tokens() {
  if (!tokenizer_) return file_ends_;
  return {tokenizer_->ends().begin(), tokenizer_->ends().end()};
}

void ModelRun::check_tokens(std::string_view option, std::span<const std::uint32_t> tokens) const {
  if (tokens.empty()) {
    throw UsageError(format_text("{}: no tokens; a model continues at least one", option));
  }
  for (const std::uint32_t token : tokens) {
    if (token < config_.vocabulary) continue;
    throw UsageError(format_text("{}: there is no token {}; the model has {}, 0 to {}", option,
                                 token, config_.vocabulary, config_.vocabulary - 1));
  }
}

std::uint32_t ModelRun::context_size(std::uint32_t wanted) const {
  if (wanted == 0) return std::min(config_.context, model::kDefaultContext);
  if (wanted <= config_.context) return wanted;
  throw UsageError(format_text("--context {}: the model was made for {}", wanted,
                               count_text(config_.context, "position")));
}

const model::Model& ModelRun::load() {
  const Span span(trace(), "load model", "program");
  const Clock::time_point begin = Clock::now();
  ProgressBar bar("loading", "MB", "");
  model::ModelOptions options;
  options.launcher.settings = settings_;
  options.repack = repack_;
  options.progress.user = &bar;
  options.progress.report = [](void* user, std::uint64_t bytes, std::uint64_t total) {
    constexpr std::uint64_t kMegabyte = 1'000'000;
    static_cast<ProgressBar*>(user)->show(bytes / kMegabyte,
                                          std::max<std::uint64_t>(total / kMegabyte, 1));
  };
  model_.emplace(context_, std::move(*file_), options);
  file_.reset();
  context_.synchronize();
  load_seconds_ += seconds_since(begin);
  return *model_;
}

model::Session ModelRun::session(model::SessionOptions options) {
  // The rows of the largest tile: larger chunks gain little there, and show less progress.
  constexpr std::uint32_t kEmulatedRows = 128;
  if (emulated()) options.prefill_rows = kEmulatedRows;
  if (prefill_rows_ != 0) options.prefill_rows = prefill_rows_;
  options.prefill_type = prefill_type_;
  const Clock::time_point begin = Clock::now();
  model::Session session(*model_, options);
  context_.synchronize();
  load_seconds_ += seconds_since(begin);
  return session;
}

void ModelRun::count_instructions(bool on) {
  if (statistics_) statistics_->count_instructions(on);
}

std::vector<KernelStatistics> ModelRun::take_statistics() {
  return statistics_ ? statistics_->take() : std::vector<KernelStatistics>();
}

void prefill_in_chunks(model::Session& session, std::span<const std::uint32_t> tokens,
                       bool all_logits, const ChunkSink& after) {
  ProgressBar bar("prompt", "tokens", "");
  const std::size_t rows = session.options().prefill_rows;
  for (std::size_t done = 0; done < tokens.size();) {
    const auto chunk = tokens.subspan(done, std::min(rows, tokens.size() - done));
    std::vector<float> logits;
    if (all_logits) {
      logits = session.prefill_all(chunk);
    } else {
      session.prefill(chunk);
      session.stream().synchronize();
    }
    done += chunk.size();
    bar.show(done, tokens.size());
    if (!after(logits)) return;
  }
}

namespace {

// Of Linux: getrusage counts what the process was before exec, a copy of the one that started it.
std::optional<std::uint64_t> peak_of_status() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t peak_resident_bytes() {
  if (const auto peak = peak_of_status()) return *peak;
#ifdef _WIN32
  return 0;
#else
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#ifdef __APPLE__
  return static_cast<std::uint64_t>(usage.ru_maxrss);
#else
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
#endif
#endif
}

ExitCode verdict(const FindingCounts& findings) noexcept {
  return findings.errors == 0 ? kDone : kFound;
}

bool is_fault(const Error& error) {
  if (error.code == "device-fault" || error.code == "context-lost") return true;
  emulator::Rule rule{};
  return error.stage == Stage::Launch && emulator::find_rule(error.code, rule);
}

}  // namespace ptxgen::cli
