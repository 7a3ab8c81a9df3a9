// bench/gemv/decode_command.cpp - gemv-bench decode: the GEMVs of one token, measured
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/gemv/commands.hpp"
#include "bench/gemv/decode_chain.hpp"
#include "bench/gemv/run.hpp"
#include "cli_common/decode_estimate.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/files.hpp"
#include "cli_common/numbers.hpp"
#include "cli_common/program.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::gemv_bench {

namespace {

struct Options {
  cli::DecodeOptions decode;
  std::string n = "200";
  std::uint64_t seed = 0;
};

Device open_gpu(const Options& options, const Settings& settings) {
  const cli::DeviceChoice choice = cli::choose_device(options.decode.device, {}, settings);
  if (choice.emulator) {
    throw cli::UsageError(format_text(
        "{} is the emulator here, whose times say nothing about a GPU; measure on a machine with "
        "one, or predict with ptxgen decode-estimate",
        choice.from));
  }
  return Device::open(choice.name, settings);
}

ChainMeasurement measured(const Device& device, const cli::DecodeEstimate& estimate,
                          const Options& options, const Settings& settings) {
  std::vector<ChainShape> shapes;
  for (const cli::EstimatedShape& row : estimate.shapes) {
    shapes.push_back({row.choice.plan, row.shape.count, std::string(row.shape.name)});
  }
  return measure_chain(device, shapes, cli::whole_number("--n", options.n, 1, 1'000'000),
                       default_bench_options(device.info()).lead_bytes, options.seed, settings);
}

nlohmann::json chain_json(const ChainMeasurement& chain) {
  return {{"us",
           {{"n", chain.us.n},
            {"median", chain.us.median},
            {"ci_low", chain.us.low},
            {"ci_high", chain.us.high},
            {"p5", chain.us.p5},
            {"p95", chain.us.p95}}},
          {"tokens_per_s", chain.tokens_per_s()},
          {"kernels", chain.kernels},
          {"checked_launches", chain.checked},
          {"right", chain.wrong.empty()},
          {"wrong", chain.wrong}};
}

std::string chain_text(const ChainMeasurement& chain, double predicted_us) {
  if (!chain.wrong.empty()) return format_text("measured: WRONG, {}\n", chain.wrong);
  return format_text(
      "measured: {:.3f} ms ({:.3f}-{:.3f}, {} of a graph of {}): {:.0f} tokens/s, predicted {:.1f} "
      "% off\n",
      chain.us.median / 1e3, chain.us.low / 1e3, chain.us.high / 1e3,
      count_text(chain.us.n, "launch"), count_text(chain.kernels, "kernel"), chain.tokens_per_s(),
      100 * (predicted_us / chain.us.median - 1));
}

int decode_command(const Options& options) {
  const Settings settings = Settings::from_environment();
  cli::DecodeReport report = cli::decode_report(options.decode);
  const Device device = open_gpu(options, settings);
  report.predict_for(gpu_of(device.info()));
  const ChainMeasurement chain = measured(device, report.estimate, options, settings);
  if (options.decode.json) {
    nlohmann::json document = cli::to_json(report);
    document["measured"] = chain_json(chain);
    cli::write_output(options.decode.output, cli::text_of(document));
  } else {
    cli::write_output(options.decode.output,
                      cli::to_text(report) + chain_text(chain, report.estimate.predicted_us));
  }
  return chain.wrong.empty() ? cli::kDone : cli::kFound;
}

}  // namespace

void add_decode(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  cli::Command command(app, "decode", "Measure the GEMVs of one token of a model as one graph");
  command.footer("Example: gemv-bench decode --model llama-2-7b --dtype f16 --device cuda:0");
  cli::add_decode_options(command, options->decode);
  command.add_option("--device", options->decode.device, "auto or cuda:N");
  command.add_option("--n", options->n, "tokens measured").capture_default_str();
  command.add_option("--seed", options->seed, "of the random weights").capture_default_str();
  command.callback([options, &exit_code] { exit_code = decode_command(*options); });
}

}  // namespace ptxgen::gemv_bench
