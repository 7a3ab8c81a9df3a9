// src/cli/commands/generate.cpp - ptxgen generate: a model continues a prompt
#include <array>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/args/model_options.hpp"
#include "cli/commands/bench_job.hpp"
#include "cli/commands/bench_rules.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/generation.hpp"
#include "cli/commands/logits_comparison.hpp"
#include "cli/commands/model_prompt.hpp"
#include "cli/output/array_file.hpp"
#include "cli/output/generation_text.hpp"
#include "cli_common/numbers.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct GenerateArguments {
  ModelOptions model;
  PromptOptions prompt;
  std::uint32_t count = 128;
  bool greedy = false;
  std::string temperature, top_p, min_p;
  std::uint32_t top_k = model::SamplerOptions{}.top_k;
  std::uint64_t seed = 0;
  bool ignore_eos = false;
  bool stats = false;
  std::string logits;
  std::string compare_logits;
  std::vector<std::string> dump_layer;
};

model::SamplerOptions sampler_of(const GenerateArguments& options) {
  model::SamplerOptions sampler;
  const auto number = [](std::string_view option, const std::string& text, float& value,
                         float max) {
    if (!text.empty()) value = real_number(option, text);
    if (value >= 0 && value <= max) return;
    throw UsageError(max == 1 ? format_text("{} {}: expects a number from 0 to 1", option, text)
                              : format_text("{} {}: expects a number from 0", option, text));
  };
  number("--temperature", options.temperature, sampler.temperature,
         std::numeric_limits<float>::max());
  number("--top-p", options.top_p, sampler.top_p, 1);
  number("--min-p", options.min_p, sampler.min_p, 1);
  sampler.top_k = options.top_k;
  sampler.seed = options.seed;
  if (options.greedy && !options.temperature.empty() && sampler.temperature != 0) {
    throw UsageError("--greedy is --temperature 0; give one of them");
  }
  if (options.greedy) sampler.temperature = 0;
  (void)model::Sampler(sampler);  // throws for what it does not accept
  return sampler;
}

// Tokens as they come: text where the prompt was one, otherwise ids.
class Printer {
 public:
  Printer(const model::Tokenizer* tokenizer, bool ids, bool streams)
      : ids_(ids), streams_(streams) {
    // After a prompt, a space at the beginning is a part of the text.
    if (tokenizer != nullptr) stream_.emplace(*tokenizer, model::DecodeOptions{.continues = true});
  }
  void token(std::uint32_t id) {
    if (stream_) text_ += last_ = stream_->push(id);
    if (ids_) print(format_text("{}{}", printed_.empty() ? "" : " ", id));
    if (!ids_) print(last_);
  }
  void finish() {
    if (stream_) text_ += last_ = stream_->finish();
    print(ids_ ? "\n" : last_ + "\n");
  }
  /// Everything that was printed, or would have been.
  [[nodiscard]] const std::string& printed() const noexcept { return printed_; }
  [[nodiscard]] std::optional<std::string> text() const {
    return stream_ ? std::optional(text_) : std::nullopt;
  }

 private:
  void print(const std::string& piece) {
    printed_ += piece;
    if (streams_ && !piece.empty()) write_output({}, piece);
  }

  bool ids_;
  bool streams_;
  std::optional<model::TextStream> stream_;
  std::string last_, text_, printed_;
};

// The copy kernel on 256 MB, read and written.
double measured_copy(const model::Model& model) {
  BenchJob job;
  job.op = BenchOp::Copy;
  job.iters = 20;
  job.warmup = 5;
  const BenchRow row = measure(model.launcher(), model.context(), job, std::uint64_t{1} << 25, 0);
  return achieved(bytes_model(row.work), row.iters, row.time_ms_total);
}

ExitCode generate_on(ModelRun& run, const GenerateArguments& options, const GenerationJob& job,
                     const std::string& chat_template) {
  LayerDumps dumps(options.dump_layer, run.config().layers);
  std::optional<ReferenceLogits> reference;
  if (!options.compare_logits.empty()) {
    reference = read_reference(options.compare_logits, run.config().vocabulary);
  }
  Span span(run.trace(), "generate", "program");
  const model::Model& model = run.load();
  model::SessionOptions how;
  how.context = run.context_size(options.model.context);
  how.cache = options.model.cache_type();
  model::Session session = run.session(how);
  dumps.attach(session);
  Printer printer(run.find_tokenizer(), options.prompt.as_tokens(),
                  !options.model.json && options.model.output.empty());
  const Generation result =
      run_generation(run, session, job, dumps, [&](std::uint32_t token) { printer.token(token); });
  printer.finish();
  span.end();
  dumps.write();
  if (!options.logits.empty()) {
    const std::uint64_t vocabulary = run.config().vocabulary;
    write_array(options.logits, result.logits,
                std::array{result.logits.size() / vocabulary, vocabulary});
  }
  GenerationReport report{run,           model, session,       job, result, printer.text(),
                          chat_template, {},    options.stats, {}};
  if (reference) {
    report.comparison =
        compare_logits(result.logits, *reference, job.prompt.size(), run.config().vocabulary);
    report.comparison->max_nmse = max_logits_nmse(session.options().prefill_type);
  }
  if (run.on_gpu() && result.steps != 0) report.copy_gb_per_s = measured_copy(model);
  if (options.model.json) {
    write_output(options.model.output, text_of(to_json(report)));
  } else {
    if (!options.model.output.empty()) write_output(options.model.output, printer.printed());
    std::cerr << to_text(report);
  }
  run.report_profile();
  if (report.comparison && !report.comparison->ok()) return kFound;
  return verdict(run.findings());
}

ExitCode generate_command(const GenerateArguments& options) {
  GenerationJob job;
  job.max_tokens = options.count;
  job.sampler = sampler_of(options);
  job.all_logits = !options.logits.empty() || !options.compare_logits.empty();
  if (!options.compare_logits.empty() && job.sampler.temperature != 0) {
    throw UsageError(
        "--compare-logits: tokens that are drawn differ; add --greedy, here and there");
  }
  options.prompt.check();
  (void)options.model.cache_type();
  (void)options.model.rules();
  check_writable("--logits", options.logits);
  ModelRun run(options.model);
  const Prompt prompt = read_prompt(run, options.prompt);
  job.prompt = prompt.tokens;
  if (!options.ignore_eos) job.ends = run.end_tokens();
  const std::uint32_t context = run.context_size(options.model.context);
  if (job.prompt.size() > context) {
    throw UsageError(format_text(
        "{}: {}, and the context has {}; give a shorter prompt or a longer --context (the model "
        "has {})",
        prompt.option, count_text(job.prompt.size(), "token"), count_text(context, "position"),
        run.config().context));
  }
  try {
    return generate_on(run, options, job, prompt.chat_template);
  } catch (const Error& error) {
    if (!is_fault(error)) throw;
    std::cerr << error.what() << '\n';
    return kFound;
  }
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<GenerateArguments>();
  Command command(app, "generate", "Continue a prompt with a model in a GGUF file");
  command.footer("Example: ptxgen generate model.gguf --chat --prompt 'What is a warp?' -n 64");
  add_model_options(command, options->model, "default: the model's, at most 4096",
                    "prompt_tokens, tokens, text, prefill_seconds, tokens_per_second, ..");
  add_prompt_options(command, options->prompt);
  command.add_option("-n,--count", options->count, "tokens at most; 0: the prompt only")
      .capture_default_str();
  command.add_flag("--greedy", options->greedy, "always the most likely token");
  command.add_option("--temperature", options->temperature, "divides the logits; 0: greedy (0.8)");
  command.add_option("--top-k", options->top_k, "draw from that many tokens; 0: all")
      .capture_default_str();
  command.add_option("--top-p", options->top_p, "draw from tokens of that probability (0.95)");
  command.add_option("--min-p", options->min_p,
                     "no tokens below that share of the largest probability (0.05)");
  command.add_option("--seed", options->seed, "of the draws").capture_default_str();
  command.add_flag("--ignore-eos", options->ignore_eos, "do not stop at tokens that end a text");
  command.add_flag("--stats", options->stats,
                   "launches, lane instructions and time by kernel, and memory");
  command.add_option("--logits", options->logits,
                     "write f32 [positions, vocabulary] there, a NumPy file");
  command.add_option(
      "--compare-logits", options->compare_logits,
      "logits of another --greedy run (--logits): NMSE; above 1e-6 (prefill in f16 1e-5, "
      "bf16 1e-4) exit with 1");
  command
      .add_option("--dump-layer", options->dump_layer,
                  "N[:NAME] FILE.npy, repeatable: an output of layer N at every position")
      .values_each(2);
  command.callback([options, &exit_code] { exit_code = generate_command(*options); });
}

}  // namespace ptxgen::cli
