// bench/gemv/run_command.cpp - gemv-bench run: GEMV beside cuBLAS, NVRTC and rooflines
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "bench/gemv/claims.hpp"
#include "bench/gemv/commands.hpp"
#include "bench/gemv/common_options.hpp"
#include "cli_common/files.hpp"
#include "cli_common/new_file.hpp"
#include "cli_common/numbers.hpp"
#include "cli_common/program.hpp"
#include "support/count.hpp"

namespace ptxgen::gemv_bench {

namespace {

struct Options {
  MeasuringWords measuring;
  std::string with = "cublas,nvrtc,roofline,copy";
  std::string rotation;
  std::string lead;
  std::string out;
  std::string csv;
  std::string claims;
  std::string output;
  bool isolated = false;
  bool chained = false;
  bool stream = false;
  bool no_ceilings = false;
  bool keep_samples = false;
  bool overwrite = false;
  bool json = false;
};

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 40;

BenchOptions bench_options(const Options& options, const DeviceInfo& device) {
  BenchOptions result = bench_options(options.measuring, device);
  result.arms = arm_choice(options.with);
  MeasureOptions& measure = result.measure;
  if (options.isolated || options.chained || options.stream) {
    measure.metrics.clear();
    if (options.isolated) measure.metrics.push_back(Metric::Isolated);
    if (options.chained) measure.metrics.push_back(Metric::Chained);
    if (options.stream) measure.metrics.push_back(Metric::Stream);
  }
  measure.keep_samples = options.keep_samples;
  if (!options.rotation.empty()) {
    result.rotation_bytes = cli::whole_number("--rotation", options.rotation, 0, kMaxBytes);
  }
  if (!options.lead.empty())
    result.lead_bytes = cli::whole_number("--lead", options.lead, 16, kMaxBytes);
  result.ceilings = !options.no_ceilings;
  return result;
}

// The files that the run is to leave, reserved before it begins.
struct Files {
  std::optional<cli::NewFile> json, csv, page;
};

Files files_of(const Options& options) {
  Files files;
  if (!options.out.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.out, error);
    if (error) {
      throw cli::UsageError("--out " + options.out +
                            ": the folder cannot be made: " + error.message());
    }
    const auto in_folder = [&](const char* name) {
      return cli::NewFile::named((std::filesystem::path(options.out) / name).string(),
                                 options.overwrite, "--out");
    };
    files.json.emplace(in_folder("gemv-bench.json"));
    files.page.emplace(in_folder("gemv-bench.md"));
    if (options.csv.empty()) files.csv.emplace(in_folder("gemv-bench.csv"));
  }
  if (!options.csv.empty()) files.csv.emplace(cli::NewFile::named(options.csv, options.overwrite));
  return files;
}

// What was wrong or failed, one line each, on standard error.
void complain(const BenchRun& run) {
  const auto say = [](const std::string& text) { std::cerr << "gemv-bench: " << text << '\n'; };
  for (const Ceiling& one : run.ceilings) {
    if (!one.wrong.empty()) say("ceiling " + one.name + ": " + one.wrong);
  }
  for (const ShapeResult& shape : run.shapes) {
    const std::string problem = to_text(shape.problem);
    if (!shape.failed.empty()) say(problem + ": " + shape.failed);
    for (const ArmResult& arm : shape.arms) {
      if (!arm.wrong.empty()) say(problem + ", " + arm.arm.name + ": " + arm.wrong);
    }
    for (const MissingArm& arm : shape.missing) {
      say(problem + ": without " + arm.name + ": " + arm.why);
    }
  }
  if (!run.left_out.empty()) {
    say(count_text(run.left_out.size(), "problem") + " were left out, the first is " +
        run.left_out.front() + ": no time was left, or the device was lost");
  }
}

void gemv_bench_command(const Options& options, int& exit_code) {
  const Settings settings = Settings::from_environment();
  const MeasuringWords& words = options.measuring;
  const cli::DeviceChoice choice =
      cli::choose_device(words.device, words.gpu.empty() ? "" : "--gpu", settings);
  const ptx::Gpu gpu = cli::chosen_gpu(words.gpu, choice, {});
  const Device device = cli::open_device(choice, gpu, settings);
  const BenchOptions wanted = bench_options(options, device.info());
  const std::vector<Claim> claims =
      options.claims.empty()
          ? read_claims(built_in_claims(), "claims.json")
          : read_claims(cli::read_input(options.claims), "--claims " + options.claims);
  Files files = files_of(options);

  ProgressLine line;
  BenchRun run =
      run_bench(device, machine_of(device, choice.name), wanted, settings, line.shower());
  line.end();
  run.verdicts = verdicts_of(run, claims);

  const std::string json = json_of(run);
  const std::string page = page_of(run);
  if (files.json) files.json->publish(json);
  if (files.csv) files.csv->publish(csv_of(run));
  if (files.page) files.page->publish(page);
  complain(run);
  cli::write_output(options.output, options.json ? json : page);
  exit_code = run.right() ? cli::kDone : cli::kFound;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  cli::Command command(
      app, "run", "Measure GEMV beside cuBLAS, NVRTC, a roofline and a copy; check every result");
  command.footer("Example: gemv-bench run --shapes grid,llama-2-7b --out results");
  add_measuring(command, options->measuring);
  command.add_option("--with", options->with, "what is measured beside the plan: " + arm_words())
      .capture_default_str();
  command.add_flag("--isolated", options->isolated, "single launches (default: and chains)");
  command.add_flag("--chained", options->chained, "chains of launches in a graph");
  command.add_flag("--stream", options->stream, "launches in a stream, by the host's clock");
  command.add_option("--rotation", options->rotation,
                     "bytes of all matrices of a problem (default 4 times the L2)");
  command.add_option("--lead", options->lead,
                     "bytes read before each sample (default twice the L2)");
  command.add_option("--out", options->out,
                     "a folder for gemv-bench.json, gemv-bench.csv and gemv-bench.md");
  command.add_option("--csv", options->csv, "one line for each problem, arm and metric");
  command.add_option("--claims", options->claims,
                     "a file of claims in place of bench/gemv/claims.json");
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--overwrite", options->overwrite, "replace files of --out and --csv");
  command.add_flag("--no-ceilings", options->no_ceilings, "do not measure the device's limits");
  command.add_flag("--keep-samples", options->keep_samples, "all samples in the JSON");
  command.add_flag("--json", options->json, "one JSON document instead of the page");
  command.callback([options, &exit_code] { gemv_bench_command(*options, exit_code); });
}

}  // namespace ptxgen::gemv_bench
