// bench/gemv/tune_command.cpp - gemv-bench tune: measured GEMV plans for a device
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/gemv/commands.hpp"
#include "bench/gemv/common_options.hpp"
#include "bench/gemv/tune.hpp"
#include "cli_common/files.hpp"
#include "cli_common/gemv_report.hpp"
#include "cli_common/numbers.hpp"
#include "cli_common/program.hpp"
#include "cli_common/text_table.hpp"
#include "runtime/launch/tuned_json.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::gemv_bench {

namespace {

struct Options {
  MeasuringWords measuring;
  std::string xy = "same,f32";
  std::string candidates = "8";
  std::string folder;
  std::string output;
  bool rehearse = false;
  bool json = false;
};

std::vector<std::string> xy_of(const std::string& text) {
  const std::vector<std::string> words = split_list(text);
  for (const std::string& word : words) {
    if (word != "same" && word != "f32") {
      throw cli::UsageError(
          format_text("--xy {}: expects same or f32, or both with a comma between", word));
    }
  }
  if (words.empty()) throw cli::UsageError("--xy: names nothing");
  return words;
}

TuneOptions tune_options(const Options& options, const DeviceInfo& device) {
  const BenchOptions bench = bench_options(options.measuring, device);
  TuneOptions result;
  result.problems = tune_problems(bench.shapes, bench.layouts, bench.types, xy_of(options.xy));
  result.candidates = cli::whole_number("--candidates", options.candidates, 1, 1000);
  result.measure.metrics = {Metric::Chained};
  result.measure.samples = bench.measure.samples;
  result.rotation_bytes = bench.rotation_bytes;
  result.min_chain = bench.min_chain;
  result.lead_bytes = bench.lead_bytes;
  result.seconds = bench.seconds;
  result.seed = bench.seed;
  return result;
}

void refuse_emulator(const Options& options, const cli::DeviceChoice& choice) {
  if (!choice.emulator) return;
  if (options.rehearse && !options.measuring.device.empty()) return;
  throw cli::UsageError(
      "tune chooses by time, and the emulator's times say nothing about a GPU; run it on a machine "
      "with a GPU, or see that it works with --device emulator --rehearse");
}

// The number of problems where the planner's first choice is within 3 % of the best.
struct Summary {
  std::size_t tuned = 0;
  std::size_t near = 0;
  explicit Summary(const std::vector<TunedRecord>& records) {
    for (const TunedRecord& record : records) {
      if (!record.plan) continue;
      ++tuned;
      near += record.planned_us > 0 && record.planned_us <= 1.03 * record.median_us ? 1 : 0;
    }
  }
  [[nodiscard]] std::string text() const {
    return format_text("the planner's first choice is within 3 % of the best measured for {} of {}",
                       near, count_text(tuned, "problem"));
  }
};

std::string as_text(const std::vector<TunedRecord>& records, const std::string& file) {
  cli::TextTable table({"problem", "us", "95 %", "planner's us", "plan"});
  for (const TunedRecord& record : records) {
    if (!record.plan) {
      table.add({to_text(record.problem), "", "", "", "failed: " + record.failure});
      continue;
    }
    table.add({to_text(record.problem), cli::fixed(record.median_us, 2),
               cli::fixed(record.low_us, 2) + "-" + cli::fixed(record.high_us, 2),
               cli::fixed(record.planned_us, 2), to_text(*record.plan)});
  }
  std::string text;
  for (std::size_t i = 0; i < table.rows(); ++i) text += table.line(i) + "\n";
  return text + Summary(records).text() + "\n" + file + "\n";
}

nlohmann::json as_json(const std::vector<TunedRecord>& records, const std::string& file,
                       bool emulated) {
  nlohmann::json list = nlohmann::json::array();
  for (const TunedRecord& record : records) list.push_back(tuned_json(record));
  const Summary summary(records);
  return {{"file", file},
          {"emulated", emulated},
          {"records", std::move(list)},
          {"tuned", summary.tuned},
          {"planner_within_3_percent", summary.near}};
}

void tune_command(const Options& options, int& exit_code) {
  const Settings settings = Settings::from_environment();
  const MeasuringWords& words = options.measuring;
  const cli::DeviceChoice choice =
      cli::choose_device(words.device, words.gpu.empty() ? "" : "--gpu", settings);
  refuse_emulator(options, choice);
  const ptx::Gpu gpu = cli::chosen_gpu(words.gpu, choice, {});
  const Device device = cli::open_device(choice, gpu, settings);
  const TuneOptions wanted = tune_options(options, device.info());
  const std::string folder = options.folder.empty() ? tuned_folder(settings) : options.folder;
  if (folder.empty()) {
    throw cli::UsageError(
        "there is no folder for measured plans: PTXGEN_TUNED is off, or no cache folder is known; "
        "say --folder");
  }
  ProgressLine line;
  std::vector<TunedRecord> records;
  std::string file;
  FileSystem files;
  // Write each record at once: a later candidate may stop the device.
  const auto keep = [&](TunedRecord record) {
    file = keep_tuned(folder, std::span(&record, 1), files);
    records.push_back(std::move(record));
  };
  tune(device, wanted, settings, keep, line.shower());
  line.end();
  for (const TunedRecord& record : records) {
    if (!record.plan)
      std::cerr << "gemv-bench: " << to_text(record.problem) << ": " << record.failure << '\n';
  }
  if (records.size() < wanted.problems.size()) {
    std::cerr << format_text(
        "gemv-bench: {} problems were left out: no time was left, or the device was lost\n",
        wanted.problems.size() - records.size());
  }
  cli::write_output(options.output, options.json
                                        ? cli::text_of(as_json(records, file, choice.emulator))
                                        : as_text(records, file));
  const bool all = std::all_of(records.begin(), records.end(),
                               [](const TunedRecord& record) { return record.plan.has_value(); });
  exit_code = all ? cli::kDone : cli::kFound;
}

}  // namespace

void add_tune(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  cli::Command command(app, "tune", "Measure the planner's short list; the launcher uses the best");
  command.footer("Example: gemv-bench tune --shapes llama-2-7b --layout R --dtype bf16");
  add_measuring(command, options->measuring);
  command.add_option("--xy", options->xy, "x and y: same as the weights, f32")
      .capture_default_str();
  command.add_option("--candidates", options->candidates, "of the planner's ranking")
      .capture_default_str();
  command.add_option("--folder", options->folder,
                     "for the file of the device (default: PTXGEN_TUNED, else the cache's)");
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--rehearse", options->rehearse,
                   "with --device emulator: see that it works; the plans mean nothing");
  command.add_flag("--json", options->json, "one JSON document: file and records");
  command.callback([options, &exit_code] { tune_command(*options, exit_code); });
}

}  // namespace ptxgen::gemv_bench
