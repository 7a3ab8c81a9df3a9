// src/cli/commands/perplexity.cpp - ptxgen perplexity: how well a model predicts a text
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/args/model_options.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/commands/model_prompt.hpp"
#include "cli/output/run_report.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

constexpr std::uint32_t kDefaultWindow = 512;

struct PerplexityArguments {
  ModelOptions model;
  PromptOptions text;
  std::uint32_t windows = 0;
  bool all_positions = false;
};

// The fixed windows of a text; each begins with an empty cache.
struct Windows {
  std::vector<std::uint32_t> tokens;
  std::optional<std::uint32_t> bos;  // takes the place of the first token of each window
  std::uint32_t size = 0;
  std::uint32_t count = 0;
  std::uint32_t first = 0;  // position whose successor is the first that is predicted

  [[nodiscard]] std::vector<std::uint32_t> window(std::uint32_t index) const {
    const auto begin = tokens.begin() + std::ptrdiff_t{index} * size;
    std::vector<std::uint32_t> copy(begin, begin + size);
    if (bos) copy.front() = *bos;
    return copy;
  }
};

struct Result {
  std::uint64_t tokens = 0;
  std::uint32_t windows = 0;
  double sum = 0;      // of negative log-likelihoods
  double squares = 0;  // of them
  double seconds = 0;

  void add(double nll) {
    ++tokens;
    sum += nll;
    squares += nll * nll;
  }
  [[nodiscard]] double nll() const { return sum / static_cast<double>(tokens); }
  [[nodiscard]] double perplexity() const { return std::exp(nll()); }
  // One standard error of the perplexity.
  [[nodiscard]] double error() const {
    if (tokens < 2) return 0;
    const auto n = static_cast<double>(tokens);
    const double variance = std::max(squares / n - nll() * nll(), 0.0);
    return perplexity() * std::sqrt(variance / (n - 1));
  }
};

// -log softmax(logits)[token], in fp64.
double negative_log_likelihood(std::span<const float> logits, std::uint32_t token) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return std::log(sum) + largest - logits[token];
}

Windows windows_of(const PerplexityArguments& options, ModelRun& run, const Prompt& text) {
  Windows windows;
  windows.tokens = text.tokens;
  const std::uint32_t wanted = options.model.context != 0 ? options.model.context : kDefaultWindow;
  windows.size = run.context_size(std::min(wanted, run.config().context));
  if (options.model.context != 0) windows.size = run.context_size(wanted);
  if (windows.size > windows.tokens.size()) {
    windows.size = static_cast<std::uint32_t>(windows.tokens.size());
    std::cerr << format_text("one window of {}: the text has no more\n",
                             count_text(windows.size, "token"));
  }
  windows.first = options.all_positions ? 0 : windows.size / 2;
  if (windows.first + 1 >= windows.size) {
    throw UsageError(format_text("{}: {} in a window of {} leave none to predict", text.option,
                                 count_text(windows.tokens.size(), "token"), windows.size));
  }
  windows.count = static_cast<std::uint32_t>(windows.tokens.size() / windows.size);
  if (options.windows != 0) windows.count = std::min(windows.count, options.windows);
  // As `encode` has put it before the whole text.
  const model::Tokenizer* const tokenizer =
      options.text.as_tokens() ? nullptr : run.find_tokenizer();
  if (tokenizer != nullptr && tokenizer->bos() && windows.tokens.front() == *tokenizer->bos()) {
    windows.bos = tokenizer->bos();
  }
  return windows;
}

Result measure_windows(model::Session& session, const Windows& windows) {
  const Interrupt interrupt;
  ProgressBar bar("perplexity", "windows", "");
  const std::uint64_t vocabulary = session.model().config().vocabulary;
  Result result;
  for (std::uint32_t index = 0; index < windows.count && !interrupt.requested(); ++index) {
    const std::vector<std::uint32_t> tokens = windows.window(index);
    Result of_window;
    std::uint32_t position = 0;
    session.clear();
    prefill_in_chunks(session, tokens, true, [&](std::span<const float> logits) {
      for (std::size_t row = 0; row < logits.size() / vocabulary; ++row, ++position) {
        if (position < windows.first || position + 1 >= windows.size) continue;
        of_window.add(negative_log_likelihood(logits.subspan(row * vocabulary, vocabulary),
                                              tokens[position + 1]));
      }
      return !interrupt.requested();
    });
    if (position < windows.size) break;
    result.tokens += of_window.tokens;
    result.sum += of_window.sum;
    result.squares += of_window.squares;
    ++result.windows;
    bar.show(result.windows, windows.count);
  }
  return result;
}

nlohmann::json as_json(const Result& result, const Windows& windows,
                       const PerplexityArguments& options, const ModelRun& run) {
  const FindingCounts findings = run.findings();
  return {
      {"perplexity", result.perplexity()},
      {"nll", result.nll()},
      {"tokens", result.tokens},
      {"error", result.error()},
      {"model", run.config().name},
      {"device", run.device_name()},
      {"gpu", run.device().name},
      {"context", windows.size},
      {"windows", result.windows},
      {"positions", options.all_positions ? "all" : "second-half"},
      {"text_tokens", windows.tokens.size()},
      {"kv_type", options.model.kv_type},
      {"seconds", result.seconds},
      {"findings",
       {{"errors", findings.errors}, {"warnings", findings.warnings}, {"notes", findings.notes}}}};
}

std::string as_text(const Result& result, const Windows& windows,
                    const PerplexityArguments& options) {
  return format_text(
      "perplexity {:.4f} +/- {:.4f}, mean negative log-likelihood {:.6f}\n"
      "{} counted, {} in each of {} ({} tokens in the text)\n",
      result.perplexity(), result.error(), result.nll(), count_text(result.tokens, "token"),
      options.all_positions ? "all but the first" : "the second half",
      count_text(result.windows, "window") + " of " + std::to_string(windows.size),
      windows.tokens.size());
}

ExitCode perplexity_command(const PerplexityArguments& options) {
  options.text.check();
  (void)options.model.rules();
  model::SessionOptions how;
  how.cache = options.model.cache_type();
  ModelRun run(options.model);
  const Windows windows = windows_of(options, run, read_prompt(run, options.text));
  how.context = windows.size;
  Span span(run.trace(), "perplexity", "program");
  (void)run.load();
  model::Session session = run.session(how);
  Result result;
  try {
    result = measure_windows(session, windows);
  } catch (const Error& error) {
    if (!is_fault(error)) throw;
    std::cerr << error.what() << '\n';
    return kFound;
  }
  if (result.windows == 0) {
    std::cerr << "interrupted before the first window was complete\n";
    return kFound;
  }
  span.end();
  run.report_profile();
  write_output(options.model.output, options.model.json
                                         ? text_of(as_json(result, windows, options, run))
                                         : as_text(result, windows, options));
  return verdict(run.findings());
}

}  // namespace

void add_perplexity(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PerplexityArguments>();
  Command command(app, "perplexity", "How well a model in a GGUF file predicts a text");
  command.footer(
      "exp of the mean negative log-likelihood. The text is cut into windows of --context tokens, "
      "each with an empty cache; counted are the tokens of the second half of each window, as "
      "llama.cpp counts them.\n"
      "Example: ptxgen perplexity model.gguf -f text.txt --context 512");
  add_model_options(command, options->model, "of a window; default: 512, at most the model's",
                    "perplexity, nll, tokens, windows, ..");
  options->text.text_option.emplace(
      command.add_option("--prompt", options->text.text, "the text itself"));
  options->text.file_option.emplace(
      command.add_option("-f,--file", options->text.file, "a file with the text, or - for stdin"));
  options->text.tokens_option.emplace(
      command.add_option("--tokens", options->text.tokens, "token ids of the text, as 1,2,3"));
  command.add_option("--windows", options->windows, "only the first of them; 0: all")
      .capture_default_str();
  command.add_flag("--all-positions", options->all_positions,
                   "count all positions of a window but the first");
  command.callback([options, &exit_code] { exit_code = perplexity_command(*options); });
}

}  // namespace ptxgen::cli
